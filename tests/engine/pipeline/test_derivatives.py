"""A module and a request in, the module with the derivative out."""

from __future__ import annotations

import dataclasses
from textwrap import dedent

import pytest
from analysed import ir_of

from irgrad.engine.codegen.passes import Code, Pass, Settings
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.differentiate.layout.lanes import LANES
from irgrad.engine.differentiate.shared.request import DERIVATIVES, Request
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.pipeline import stages
from irgrad.engine.pipeline.derivatives import checked, derive, link_runtime, ready, scheduled
from irgrad.rules.errors import IRInvalid, MissingRuleError

SOURCE = """
#include <math.h>
void f(const double *x, double *y, const long *n) {
    double s = 0.5;
    for (long i = 0; i < *n; i++) s = s * x[i] + sin(x[i] * s);
    *y = s;
}"""


def _module() -> Module:
    return read(prepare(ir_of(SOURCE), ["f"]), roots=["f"])


def _request(derivative: str, **more: object) -> Request:
    return Request("f", derivative, ("dup", "dup", "const"), ("double", "double", ""), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("derivative", [name for name in DERIVATIVES if name != "reverse_from_tape"])
@pytest.mark.parametrize("width", [1, 4])
def test_every_derivative_is_one_request(derivative: str, width: int) -> None:
    module = _module()
    more = {"discard": (1,)} if derivative in ("jvp_only", "pullback") else {}
    more |= {"outputs": (1,)} if derivative == "forward_with_tape" else {}
    derived = derive(module, _request(derivative, width=width, **more))
    assert derived.name.startswith(f"f.{derivative}") and derived.name in module.functions
    assert not verify_module(module)


def test_a_request_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        _request("vjp").width = 2  # type: ignore[misc]


def test_checked_makes_no_derivative() -> None:
    module = _module()
    before = set(module.functions)
    unit, abi = checked(module, _request("vjp"))
    assert set(module.functions) == before
    assert abi.shadow == [True, True, False] and unit.root.name == "f"


def test_what_has_no_derivative_is_refused_before_anything_is_made() -> None:
    text = dedent("""
    define void @f(ptr %x, ptr %y) {
      %v = load double, ptr %x
      %w = call double asm sideeffect "fancy $0, $1", "=x,x"(double %v)
      store double %w, ptr %y
      ret void
    }""")
    module = read(text, roots=["f"])
    with pytest.raises(MissingRuleError, match="inline assembly"):
        derive(module, Request("f", "vjp", ("dup", "dup"), ("double", "double")))


def test_ready_lowers_exceptions() -> None:
    text = ir_of(SOURCE)
    made, thrown = ready(text, "f")
    assert thrown == () and "define void @f(" in made
    assert ready(made, "f", fresh=False)[0] is made


def test_only_wide_derivatives_are_scheduled() -> None:
    module = _module()
    derived = derive(module, _request("pullback", discard=(1,)))
    from irgrad.engine.ir.printer import to_text

    text = to_text(module)
    assert LANES not in text and scheduled(text, derived.name) is text


def test_the_runtime_is_linked_once() -> None:
    from irgrad.engine.ir.printer import to_text

    module = _module()
    derive(module, _request("vjp"))
    once = link_runtime(to_text(module))
    assert "define internal noalias ptr @irgrad.tape.alloc" in once
    assert link_runtime(once) == once


def test_a_value_used_before_its_definition_has_no_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweeps keep values in memory, where a use before the definition reads what was there: nobody else notices."""

    def late(code: Code, settings: Settings) -> None:
        loads = [i for i in code.model.functions["f"].instructions() if i.opcode == "load" and i.type.is_fp]
        assert loads
        for load in loads:
            assert load.block is not None
            load.block.instructions.remove(load)
            load.block.instructions.insert(-1, load)

    monkeypatch.setenv("IRGRAD_VERIFY", "0")
    broken = Pass("late", late, "model", "Loads come last.")
    monkeypatch.setattr(stages, "NORMALISE", (*stages.NORMALISE, broken))
    with pytest.raises(IRInvalid, match="is not well formed"):
        derive(_module(), _request("vjp"))
