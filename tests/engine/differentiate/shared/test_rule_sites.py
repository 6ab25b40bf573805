"""Which rule a call gets, by the types of its arguments."""

from __future__ import annotations

from typing import Any

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.shared.rule_sites import call_types, site_of
from irgrad.engine.differentiate.shared.rulebook import Rulebook
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.ir.text.reader import read
from irgrad.rules import current, layer, rule

TEXT = """
@count = internal global i64 0
declare double @outside(ptr, i32, double)
define internal double @inside(double %x) #0 {
  %n = load i64, ptr @count
  %m = add i64 %n, 1
  store i64 %m, ptr @count
  %y = fmul double %x, %x
  ret double %y
}
define void @root(ptr %x, ptr %w, ptr %y) {
  %v = load double, ptr %x
  %a = call double @inside(double %v)
  %b = call double @outside(ptr %w, i32 7, double %a)
  store double %b, ptr %y
  ret void
}
attributes #0 = { noinline nounwind }
"""


def _define(name: str) -> None:
    @rule(name)
    def _(*x: Any) -> Any:
        return x


def _module() -> tuple[Module, Rulebook]:
    module = read(TEXT, roots=["root"])
    book = Rulebook(current(), "", module)
    module.rules = book
    return module, book


def _call(module: Module, name: str) -> Instruction:
    return next(i for i in module.functions["root"].instructions() if i.is_call and i.callee_name == name)


def test_types_of_a_call() -> None:
    with layer():
        _define("outside")
        module, _ = _module()
        root = module.functions["root"]
        unit = Unit(module, root, Facts(module, root, {0, 2}), Request("f", "vjp"))
        types = call_types(unit, _call(module, "outside"), None)
        assert [str(t) for t in types] == ["Reverse[1]", "Active[f64]", "Const[Ptr]", "Const[Known[7]]", "Active[f64]"]
        site = site_of(unit, _call(module, "outside"))
        assert site is not None
        assert site.rule.form == "partials"
        assert site_of(unit, _call(module, "inside")) is None
