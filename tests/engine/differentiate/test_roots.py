"""What the derivatives of roots have in common: empty functions, a queue that is drained, variables that forget."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, asked, gradient, make, module_of

from irgrad.engine.differentiate.roots import (
    REVERSE_TAIL,
    Derived,
    drain,
    emit_reverse,
    fill_descriptor,
    forget_globals,
    root_function,
)
from irgrad.engine.differentiate.shared.derived_functions import combined_function, split_functions
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstAggregate, ConstZero, Module
from irgrad.engine.pipeline.derivatives import checked
from irgrad.rules.errors import Unsupported

TABLE = """
NOINLINE static double twice(double x) { return 2 * x; }
NOINLINE static double square(double x) { return twice(x) * x; }
double outside(double);
double (*const table[2])(double) = {twice, square};
void f(double *x, int *k, double *o) { *o = table[*k](x[0]); }"""
TOTAL = """
double total, weights[4];
long count;
void f(double *x, long *n, double *o) {
    total = 0;
    for (long i = 0; i < *n; i++) {
        weights[i % 4] = x[i];
        count++;
        total += x[i] * x[i] * total + weights[(i * i) % 4];
    }
    *o = total;
}"""


def _unit(source: str = TABLE, mode: str = "reverse") -> Unit:
    return checked(module_of(source, "f", prepared=False), asked("f", mode, ["dup", "const", "dup"]))[0]


def test_an_empty_function_of_pointers_that_do_not_overlap() -> None:
    module = Module()
    made = root_function(module, "g", [ty.PTR, ty.array(2, ty.PTR)])
    assert module.functions["g"] is made
    assert str(made.ftype) == "void (ptr, [2 x ptr])" and not made.blocks
    assert [arg.attrs for arg in made.args] == ["noalias", ""]
    assert made.tail == "nounwind"


def test_a_queue_is_drained_of_what_is_queued_meanwhile() -> None:
    unit, ran = _unit(), []

    def later() -> None:
        ran.append("later")

    def first() -> None:
        ran.append("first")
        unit.queue += [later, later]

    unit.queue.append(first)
    drain(unit)
    assert ran == ["first", "later", "later"]
    assert not unit.queue
    drain(unit)
    assert len(ran) == 3


def test_everything_that_a_descriptor_names_is_filled() -> None:
    """`square` is only known by its address, and calls `twice`: its derivative asks for another one."""
    unit = _unit()
    square, twice = unit.module.functions["square"], unit.module.functions["twice"]
    var = unit.descriptor(square)
    var.init = None
    drain(unit)
    halves = split_functions(unit, square)
    assert isinstance(var.init, ConstAggregate)
    assert isinstance(var.init.elems[0], ConstZero) and tuple(var.init.elems[1:]) == halves
    assert not unit.queue, "nothing new was asked for"
    assert all(half.blocks for half in halves)
    assert combined_function(unit, twice).blocks


def test_a_descriptor_has_the_entry_points_of_its_direction() -> None:
    unit = _unit(mode="forward")
    twice = unit.module.functions["twice"]
    var = unit.descriptor(twice)
    drain(unit)
    assert isinstance(var.init, ConstAggregate)
    tangent, *others = var.init.elems
    assert tangent is unit.derived[twice, "forward"] and tangent.blocks
    assert all(isinstance(entry, ConstZero) for entry in others)


def test_of_a_function_from_elsewhere_there_is_a_descriptor_only_where_no_active_call_reaches_it() -> None:
    for called in (False, True):
        unit = _unit(TABLE if not called else TABLE.replace("{twice, square}", "{twice, outside}"))
        unit_fn = unit.declare("outside", ty.function(ty.F64, (ty.F64,)))
        var = unit.descriptor(unit_fn)
        if called:
            with pytest.raises(Unsupported, match=r"the address of `outside` is taken(.|\n)*link="):
                fill_descriptor(unit, unit_fn)
        else:
            fill_descriptor(unit, unit_fn)
            assert isinstance(var.init, ConstAggregate)
            assert all(isinstance(entry, ConstZero) for entry in var.init.elems)


def test_shadows_of_variables_are_cleared_first() -> None:
    unit = _unit(TOTAL)
    shadows = [unit.shadow_global(unit.module.globals[name]) for name in ("total", "weights")]
    target = root_function(unit.module, "g", [])
    target.blocks.append(Block("entry"))
    Builder(target.blocks[0]).ret(None)
    forget_globals(unit, target)
    *cleared, last = target.blocks[0].instructions
    assert last.opcode == "ret"
    assert {c.args[0]: getattr(c.args[2], "value", None) for c in cleared} == {shadows[0]: 8, shadows[1]: 32}
    assert {c.callee_name for c in cleared} == {"llvm.memset.p0.i64"}


def test_both_sweeps_are_in_one_function_or_in_two() -> None:
    unit = _unit("void f(double *x, int *k, double *o) { *o = sin(x[*k]); }")
    whole = root_function(unit.module, "whole", [ty.PTR] * 5)
    emit_reverse(unit, unit.root, unit.abis[unit.root], whole, whole)
    opcodes = [i.callee_name if i.is_call else i.opcode for i in whole.instructions()]
    assert opcodes.index("llvm.sin.f64") < opcodes.index("llvm.cos.f64")
    assert not unit.queue
    assert "irgrad-reverse" in REVERSE_TAIL and Derived("whole", (), None).note == ""


def test_globals_start_from_zero_in_every_call() -> None:
    """The derivative called twice gives the same: shadows of mutable globals do not remember."""
    source = """
    double total;
    void f(double *x, long *n, double *o) {
        total = 0;
        for (long i = 0; i < *n; i++) total += x[i] * x[i] * total + x[i];
        *o = total;
    }"""
    made = make(source, "f", "reverse", ["dup", "const", "dup"])
    x, n = np.array([0.3, -0.2, 0.9]), np.array([3])
    results = []
    for _ in range(3):
        dx = np.zeros(3)
        made(x, dx, n, np.zeros(1), np.ones(1))
        results.append(dx.tolist())
    assert results[0] == results[1] == results[2]
    (again, _), _made = gradient(source, "f", "dcd", x, n, OUT)
    assert again.tolist() == results[0]
    assert np.abs(results[0]).min() > 0.1
