"""Split reverse mode of a root: two functions that a program calls one by one, and what the second reads again."""

from __future__ import annotations

import pytest
from handwritten.made import module_of

from irgrad.engine.differentiate.roots import REVERSE_TAIL, Derived
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.split import REVERSE
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.pipeline.derivatives import derive

PRODUCT = "void f(double *x, long *n, double *o) { *o = x[0] * x[*n]; }"


def _halves(source: str = PRODUCT, kept: tuple[int, ...] = ()) -> tuple[Module, Derived, Function, Function]:
    module = module_of(source, "f")
    derived = derive(module, Request("f", "split_reverse", ("dup", "const", "dup"), kept=kept))
    return module, derived, module.functions[derived.name], module.functions[derived.name + REVERSE]


def test_names_and_types_of_both_halves() -> None:
    _, derived, augmented, reverse = _halves()
    assert derived.name == "f.split_reverse.101" and reverse.name == "f.split_reverse.101.reverse"
    assert str(augmented.ftype) == "{ ptr } (ptr, ptr, ptr, ptr, ptr, ptr)"  # x, x', n, o, o', the arena
    assert str(reverse.ftype) == "void (ptr, ptr, ptr, ptr, ptr, ptr)"  # x, x', n, o, o', the tape
    assert (augmented.tail, reverse.tail) == ("nounwind", REVERSE_TAIL)
    assert derived.facts is not None and derived.scratch == ()


@pytest.mark.parametrize(("kept", "loads"), [((), 0), ((0, 1), 3)])
def test_the_second_half_reads_again_what_is_promised_to_stay(kept: tuple[int, ...], loads: int) -> None:
    _, _, augmented, reverse = _halves(kept=kept)
    read = [i for i in reverse.instructions() if i.opcode == "load" and i.operands[0] is reverse.args[0]]
    assert bool(read) is bool(loads)
    number = [i for i in reverse.instructions() if i.opcode == "load" and i.operands[0] is reverse.args[2]]
    assert bool(number) is bool(loads)
    assert any(i.callee_name == "irgrad.tape.alloc" for i in augmented.instructions() if i.is_call) is not bool(loads)


def test_callees_of_both_halves_are_derived() -> None:
    called = "NOINLINE static double g(double a, double b) { return sin(a) * b; }\n" + PRODUCT.replace(
        "x[0] * x[*n]", "g(x[0], x[*n])"
    )
    module, _, augmented, reverse = _halves(called)
    for half, callee in ((augmented, "g"), (reverse, ".vjp.g")):  # its adjoint needs nothing that was kept
        (call,) = [i for i in half.instructions() if i.is_call and (i.callee_name or "").endswith(callee)]
        assert module.functions[call.callee_name or ""].blocks
