"""The state of a reverse derivative: adjoints of values, stack variables, trip counts, and the parts that see it."""

from __future__ import annotations

import pytest
from handwritten.made import asked, module_of
from handwritten.planned import find
from handwritten.protocols import lacks

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.differentiate.reverse.reverse import Reverse
from irgrad.engine.differentiate.roots import root_function
from irgrad.engine.differentiate.shared.derived_functions import split_functions
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.tape import state
from irgrad.engine.differentiate.tape.level_rows import Rows
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, ConstZero, Instruction, const_float
from irgrad.engine.pipeline.derivatives import checked

SOURCE = """
NOINLINE static double g(double *x, double a) { return x[0] * sin(a); }
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++) s = sin(s * x[1]) * s;
    for (long i = 0; i < 8; i++) s = g(x, s);
    *o = s;
}"""
ONE, TWO = const_float(ty.F64, 1.0), const_float(ty.F64, 2.0)


def _state(callee: str = "", width: int = 1) -> Reverse:
    """Before anything was emitted."""
    unit, abi = checked(module_of(SOURCE, "f"), asked("f", "reverse", ["dup", "const", "dup"], width=width))
    if callee:
        fn = unit.module.functions[callee]
        return Reverse(unit, fn, unit.abis[fn], *split_functions(unit, fn))
    target = root_function(unit.module, "g.target", [ty.PTR] * 5)
    return Reverse(unit, unit.root, abi, target, target)


def _taped() -> Reverse:
    request = Request("f", "forward_with_tape", ("dup", "const", "dup"), outputs=(2,))
    unit, abi = checked(module_of(SOURCE.replace("g(x, s)", "s * s"), "f"), request)
    forward, reverse = (root_function(unit.module, name, [ty.PTR] * 5) for name in ("forward", "reverse"))
    return Reverse(unit, unit.root, abi, forward, reverse)


def test_the_parts_have_what_the_protocols_name() -> None:
    made = _state()
    parts = {state.Recall: made.recall, state.TapeStore: made.storage, state.ControlFlow: made.flow,
             state.WindowAdjoints: made.neighbours, state.CallerTape: _taped().taped}  # fmt: skip
    for protocol, part in parts.items():
        assert not lacks(part, protocol), protocol
    assert not lacks(object.__new__(Rows), state.FilledAgain)
    assert made.taped is None


# -- adjoints ------------------------------------------------------------------------------------------------------


def test_the_adjoint_of_a_value_that_lives_in_one_block_is_no_memory() -> None:
    made = _state()
    value = next(i for i in made.fn.instructions() if i.opcode == "fmul" and i in made.one_block)
    made.give(value, ONE)
    assert not made.b.block.instructions
    made.give(value, TWO)
    (total,) = made.b.block.instructions
    assert (total.opcode, total.operands, total.flags) == ("fadd", [ONE, TWO], made.unit.flags)
    assert made.b.flags == ()
    assert made.take(value) is total
    assert made.take(value) is None, "taken once"


def test_the_adjoint_of_a_value_that_is_carried_is_an_accumulator() -> None:
    made = _state()
    phi = next(i for i in made.fn.instructions() if i.opcode == "phi" and i.type is ty.F64)
    assert phi not in made.one_block
    made.give(phi, ONE)
    slot = made.accumulators[phi]
    assert made.zeroed == [slot] and made.accumulator(phi) is slot
    assert [i.opcode for i in made.b.block.instructions] == ["load", "fadd", "store"]
    taken = made.take(phi)
    load, cleared = made.b.block.instructions[3:]
    assert taken is load and load.operands == [slot]
    assert cleared.opcode == "store" and cleared.operands[1] is slot
    assert getattr(cleared.operands[0], "value", None) == 0.0 or isinstance(cleared.operands[0], ConstZero)


def test_nothing_is_given_to_what_is_not_active() -> None:
    made = _state()
    counter = next(i for i in made.fn.instructions() if i.opcode == "phi" and i.type.is_int)
    made.give(counter, ConstInt(counter.type, 1))
    made.give(find(made, "fmul"), None)
    assert not made.local and not made.accumulators and not made.b.block.instructions


def test_adjoints_have_all_lanes() -> None:
    made = _state(width=4)
    phi = next(i for i in made.fn.instructions() if i.opcode == "phi" and i.type is ty.F64)
    assert made.accumulator(phi).elem is ty.vector(4, ty.F64)


# -- stack variables and the arena ---------------------------------------------------------------------------------


@pytest.mark.parametrize("callee", ["", "g"])
def test_stack_variables_belong_to_a_sweep_where_there_are_two_functions(callee: str) -> None:
    made = _state(callee)
    forward, reverse = made.stack(ty.F64, forward=True), made.stack(ty.I64, forward=False)
    both = {True: [forward, reverse], False: []}
    assert made.stacks == ({True: [forward], False: [reverse]} if callee else both)
    assert (forward.elem, forward.align) == (ty.F64, 8)


def test_the_arena_is_acquired_once_and_only_where_something_lies_in_it() -> None:
    made = _state()
    assert not made.needs_arena and made.arena is None
    b = Builder(Block())
    first, second = made.allocate(b, ConstInt(ty.I64, 8)), made.allocate(b, ConstInt(ty.I64, 16))
    assert made.needs_arena
    assert isinstance(made.arena, Instruction) and made.arena.callee_name == "irgrad.tape.acquire"
    for call, size in ((first, 8), (second, 16)):
        assert isinstance(call, Instruction) and call.callee_name == "irgrad.tape.alloc"
        assert call.args[0] is made.arena and getattr(call.args[1], "value", 0) == size


def test_a_given_arena_is_used() -> None:
    made = _state("g")
    arena = Argument(ty.PTR, "arena", 0)
    made.take_arena(arena)
    assert not made.needs_arena
    assert made.arena_value() is arena and made.needs_arena


# -- loops ---------------------------------------------------------------------------------------------------------


def _loop(made: Reverse, *, fixed: bool) -> Loop:
    for loop in made.loops.all:
        count = made.trip(loop)
        if count is not None and (count.const is not None) is fixed:
            return loop
    raise AssertionError("no such loop")


def test_trip_counts_are_numbers_or_instructions_of_the_primal_sweep() -> None:
    made = _state()
    b = Builder(Block())
    count = made.emit_trip(b, _loop(made, fixed=True))
    assert isinstance(count, ConstInt) and count.value == 7 and not b.block.instructions, "back to the header"
    loop = _loop(made, fixed=False)
    trip = made.trip(loop)
    assert trip is not None
    made.sweep.values.update({use: Argument(use.type, f"copy{i}", i) for i, use in enumerate(trip.uses)})
    copies = {made.sweep.values[use] for use in trip.uses}
    result = made.emit_trip(b, loop)
    operands = {o for i in b.block.instructions for o in i.operands} | {result}
    assert operands & copies and not operands & set(trip.uses)


def test_the_number_of_the_iteration_is_loaded_once_in_a_block() -> None:
    made = _state()
    loop = made.loops.all[0]
    slot = made.iteration_slot(loop)
    assert made.iteration_slot(loop) is slot is not made.limit_slot(loop)
    first = made.iteration(loop)
    assert made.iteration(loop) is first and made.b.block.instructions == [first]
    made.recall.new_block()
    assert made.iteration(loop) is not first


def test_the_reverse_sweep_goes_on_elsewhere() -> None:
    made = _state()
    block = Block("r.next")
    assert made.emit_in(block) is made.b and made.b.block is block and made.b.at is None
    assert made.emit_in(block, at=0).at == 0


def test_arguments_as_the_reverse_sweep_has_them() -> None:
    made = _state()
    x, n, _ = made.fn.args
    made.sweep.values[x], made.sweep.shadows[x] = ONE, TWO
    assert (made.reverse_argument(x), made.reverse_shadow_argument(x)) == (ONE, TWO)
    made.reverse_values[x], made.reverse_shadows[x] = TWO, ONE
    assert (made.reverse_argument(x), made.reverse_shadow_argument(x)) == (TWO, ONE)
    assert isinstance(made.reverse_shadow_argument(n), ConstZero)
