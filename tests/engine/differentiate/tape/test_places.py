"""Where saved values lie: a stack variable that both sweeps share or that each has, or an array over iterations."""

from __future__ import annotations

import pytest
from handwritten.made import asked, module_of
from handwritten.protocols import lacks

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.differentiate.reverse.reverse import Reverse
from irgrad.engine.differentiate.roots import root_function
from irgrad.engine.differentiate.shared.derived_functions import split_functions
from irgrad.engine.differentiate.tape.places import Flat, RowsOfSteps, Slot
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Instruction
from irgrad.engine.pipeline.derivatives import checked

UNCOUNTED = """{{
    double s = x[0];
    long i = 0;
    while (s * s < 1e4 && i < {n}) {{ s = s + sin(s * x[1]) + x[2] / (s * s + 1); i++; }}
    {end}
}}"""
WHOLE = "void f(double *x, long *n, double *o) " + UNCOUNTED.format(n="*n", end="*o = s;")
CALLED = ("NOINLINE static double g(double *x, long n) " + UNCOUNTED.format(n="n", end="return s;")
          + "\nvoid f(double *x, long *n, double *o) { *o = g(x, *n); }")  # fmt: skip
NEST = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++)
        for (long j = 0; j < *n; j++) s = sin(s * x[1]) + x[2] / (s * s + 1);
    *o = s;
}"""


def _emitted(source: str, callee: str = "") -> Reverse:
    """The reverse derivative of `f`, or of a function that it calls."""
    unit, abi = checked(module_of(source, "f"), asked("f", "reverse", ["dup", "const", "dup"]))
    if callee:
        fn = unit.module.functions[callee]
        return Reverse(unit, fn, unit.abis[fn], *split_functions(unit, fn)).generate()
    target = root_function(unit.module, "g", [ty.PTR] * 5)
    return Reverse(unit, unit.root, abi, target, target).generate()


@pytest.mark.parametrize("callee", ["", "g"])
def test_sweeps_share_a_stack_variable_where_they_share_a_function(callee: str) -> None:
    made = _emitted(CALLED if callee else WHOLE, callee)
    slots = [slot for slot in made.storage.slots.values() if slot.type is ty.F64]  # not the pointers to records
    assert slots
    for slot in slots:
        assert slot.forward.opcode == slot.reverse.opcode == "alloca"
        assert slot.forward.elem is slot.reverse.elem is slot.type
        assert (slot.forward is slot.reverse) is not bool(callee)
        primal = made.sweep.target
        assert slot.forward.block in primal.blocks
        assert (slot.reverse.block in primal.blocks) is not bool(callee)


def test_an_array_spans_the_loops_of_its_nest() -> None:
    made = _emitted(NEST)
    assert made.storage.flats and not made.storage.records
    outer, inner = made.loops.all
    for key, flat in made.storage.flats.items():
        assert flat.key == key
        assert list(flat.chain) == [outer, inner]
        assert flat.type is ty.F64
        assert isinstance(flat.pointer, Instruction) and flat.pointer.block in made.target.blocks


def test_an_array_is_empty_handed_before_it_is_emitted() -> None:
    flat = Flat("key", ty.F32, Loop(Block()), [])
    assert (flat.key, flat.type, flat.chain) == ("key", ty.F32, [])
    assert (flat.span, flat.slack, flat.levels, flat.pointer) == (0, 0, None, None)


@pytest.mark.parametrize("kind", [Slot, Flat])
def test_places_have_no_other_attributes(kind: type) -> None:
    alloca = Instruction("alloca", ty.PTR, [], elem=ty.F64)
    place = Slot(ty.F64, alloca, alloca) if kind is Slot else Flat("key", ty.F64, Loop(Block()), [])
    with pytest.raises(AttributeError):
        place.room = 1  # type: ignore[union-attr]


def test_rows_of_steps_have_what_arrays_ask_for() -> None:
    from irgrad.engine.differentiate.tape.level_rows import Rows

    made = object.__new__(Rows)
    assert lacks(made, RowsOfSteps) == ["levels"], "an attribute of what was made; the methods are there"
