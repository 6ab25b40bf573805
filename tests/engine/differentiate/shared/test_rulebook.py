"""Which functions are hidden, what they are taken to do to memory, and by which types their calls are looked up."""

from __future__ import annotations

from typing import Any

from irgrad.engine.differentiate.shared.rulebook import Rulebook
from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.ir.text.reader import read
from irgrad.rules import current, extern, inactive, layer, rule

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


def test_ruled_bodies_are_hidden_and_restored() -> None:
    with layer():
        _define("inside")
        module, book = _module()
        inside = module.functions["inside"]
        book.hide()
        assert inside.is_declaration
        assert [g.name for g in book.globals_of(inside)] == ["count"]
        book.restore()
        assert not inside.is_declaration
        assert "noinline" not in module.attribute_groups[inside.tail.strip()]
        assert "noinline" in module.attribute_groups["#0"]


def test_memory_of_ruled_declarations() -> None:
    with layer():

        @rule("outside", mode="reverse")
        def _(ctx: Any, p: Any, n: Any, x: Any) -> None:
            pass

        module, book = _module()
        facts = book.facts(module.functions["outside"])
        assert facts is not None
        assert (facts.reads, facts.writes, facts.captures) == ((0,), (0,), ())
        extern("outside", "f64(f64[n] p, i32 n, f64 x)")
        module, book = _module()
        facts = book.facts(module.functions["outside"])
        assert facts is not None
        assert (facts.reads, facts.writes) == ((0,), ())
    with layer():
        inactive("outside")
        module, book = _module()
        facts = book.facts(module.functions["outside"])
        assert facts is not None
        assert facts.inactive
