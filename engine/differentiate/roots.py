"""What the derivatives of roots have in common: empty functions to fill, the functions that they call, memory that
starts from zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.differentiate.forward.forward import forward_function
from irgrad.engine.differentiate.reverse.reverse import Reverse
from irgrad.engine.differentiate.reverse.segments import emit_segments
from irgrad.engine.differentiate.shadow import persistent_memory
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.derived_functions import split_functions
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.tape.long_tapes import warn_of_tapes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstAggregate, Constant, ConstInt, ConstZero, Function, Module
from irgrad.rules.errors import Unsupported

__all__ = ["REVERSE_TAIL", "Derived", "drain", "emit_reverse", "fill_descriptor", "forget_globals", "root_function"]


@dataclass(frozen=True, slots=True)
class Derived:
    """Name of the derivative's function; `scratch`: arguments that were not asked for but need zeroed scratch
    shadows; `facts`: what the analyses found; `note`: what else there is to know of it."""

    name: str
    scratch: tuple[int, ...]
    facts: Facts | None
    note: str = ""


def root_function(module: Module, name: str, params: Sequence[ty.Type]) -> Function:
    """An empty function of pointers that do not overlap."""
    target = Function(name, ty.function(ty.VOID, tuple(params)))
    for arg in target.args:
        arg.attrs = "noalias" if arg.type is ty.PTR else ""
    target.tail = "nounwind"
    module.functions[name] = target
    return target


REVERSE_TAIL = 'nounwind "irgrad-reverse"'  # tells the optimiser that this is adjoint code


def emit_reverse(unit: Unit, fn: Function, abi: Abi, primal: Function, reverse: Function) -> None:
    """Fill the reverse derivative of `fn`: both sweeps in one function where the two are one, else one in each."""
    made = unit.segments.get(fn)
    if made is not None:
        emit_segments(unit, made, abi, primal, reverse)
        return
    sweeps = Reverse(unit, fn, abi, primal, reverse)
    sweeps.generate()
    warn_of_tapes(sweeps.plan)


def drain(unit: Unit) -> None:
    """Generate what is queued, then fill the descriptors of functions whose address is taken, until nothing is left."""
    filled = 0
    while unit.queue or filled < len(unit.addressed):
        while unit.queue:
            unit.queue.pop()()
        while filled < len(unit.addressed):
            fill_descriptor(unit, unit.addressed[filled])
            filled += 1


def fill_descriptor(unit: Unit, fn: Function) -> None:
    """The descriptor of a function: {forward, augmented, reverse} entry points of this unit's mode."""

    null: Constant = ConstZero(ty.PTR)
    entries: list[Constant] = [null, null, null]
    if fn in unit.abis and not fn.is_declaration:
        if unit.mode == "forward":
            entries[0] = forward_function(unit, fn)
        else:
            entries[1], entries[2] = split_functions(unit, fn)
    elif unit.indirectly_active(fn):
        raise Unsupported(
            f"the address of `{fn.name}` is taken and it may be called with active arguments",
            because="it has no body in this module",
            fix=f'load(..., link=["the file that defines {fn.name}"])',
        )
    var = unit.descriptors[fn]
    var.init = ConstAggregate(var.value_type, entries)


def forget_globals(unit: Unit, target: Function) -> None:
    """Derivatives of mutable globals, and of memory that they keep, start from zero in every call."""
    b = Builder(target.blocks[0], at=0)
    persistent_memory.clear(unit, b)
    ftype = ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
    for var, at, size in unit.mutable_float_shadows():
        fn = unit.declare("llvm.memset.p0.i64", ftype)
        start = b.gep(ty.I8, var, ConstInt(ty.I64, at)) if at else var
        b.call(fn, [start, ConstInt(ty.I8, 0), ConstInt(ty.I64, size), ConstInt(ty.I1, 0)])
