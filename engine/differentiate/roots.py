"""What the derivatives of roots have in common: empty functions to fill, the functions that they call, memory that
starts from zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.objects import Object, holds_address
from irgrad.engine.analyses.memory.strided_sets import Offsets, meets
from irgrad.engine.differentiate.forward.forward import forward_function
from irgrad.engine.differentiate.layout.leaves import floats_of, has_pointer
from irgrad.engine.differentiate.reverse.fused import emit_fused
from irgrad.engine.differentiate.reverse.reverse import Reverse
from irgrad.engine.differentiate.reverse.segments import emit_segments
from irgrad.engine.differentiate.shadow import persistent_memory
from irgrad.engine.differentiate.shared.alias_scopes import declare_scopes
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.derived_functions import split_functions
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.tape.long_tapes import warn_of_tapes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstAggregate, Constant, ConstInt, ConstZero, Function, GlobalVariable, Module
from irgrad.engine.runtime.arena import CONSTANT_SHADOW
from irgrad.rules.errors import Unsupported

__all__ = ["REVERSE_TAIL", "Derived", "drain", "emit_reverse", "fill_descriptor", "forget_globals", "root_function"]
_MOST_PARTS = 256  # of a variable with pointers, that are cleared one by one


@dataclass(frozen=True, slots=True)
class Derived:
    """Name of the derivative's function; `scratch`: arguments that were not asked for but need zeroed scratch
    shadows; `facts`: what the analyses found; `note`: what else there is to know of it; `warned`: of loops with long
    tapes."""

    name: str
    scratch: tuple[int, ...]
    facts: Facts | None
    note: str = ""
    warned: tuple[str, ...] = ()


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
        emit = emit_fused if made.choice.fused else emit_segments
        emit(unit, made, abi, primal, reverse)
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
    declare_scopes(unit)


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
    for var, at, size in _zeroed(unit):
        fn = unit.declare("llvm.memset.p0.i64", ftype)
        start = b.gep(ty.I8, var, ConstInt(ty.I64, at)) if at else var
        b.call(fn, [start, ConstInt(ty.I8, 0), ConstInt(ty.I64, size), ConstInt(ty.I1, 0)])
    copy = ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
    for (var, _), shadow in list(unit.shadow_globals.items()):
        obj = unit.pointers.object_of.get(var)
        if CONSTANT_SHADOW in (var.name or "") and obj is not None and unit.activity.object(obj):
            name = f"{shadow.name}.first"
            first = unit.module.globals[name] = GlobalVariable(name, shadow.value_type, shadow.init, True, "internal")
            length = ConstInt(ty.I64, ty.size_of(shadow.value_type))
            b.call(unit.declare("llvm.memcpy.p0.p0.i64", copy), [shadow, first, length, ConstInt(ty.I1, 0)])


def _zeroed(unit: Unit) -> Iterator[tuple[GlobalVariable, int, int]]:
    """(shadow of a variable, first byte, bytes) of what starts a call from zero; shadow pointers stay."""
    for (var, _), shadow in unit.shadow_globals.items():
        obj = unit.pointers.object_of.get(var)
        kept = has_pointer(var.value_type) or holds_address(var.init)
        if not var.constant and not kept and (obj is None or not unit.activity.holds_pointers(obj)):
            yield shadow, 0, ty.size_of(shadow.value_type)
            continue
        if var.constant or obj is None or not unit.activity.object(obj) or CONSTANT_SHADOW in (var.name or ""):
            continue
        parts = list(islice(floats_of(var.value_type), _MOST_PARTS + 1))
        if len(parts) > _MOST_PARTS or not _floats_apart(unit, obj, parts):
            raise Unsupported(
                f"the variable `{var.name}` keeps pointers beside active floats",
                because="a later call would find in it the derivatives of an earlier one",
                fix="keep the pointers and the floats in variables of their own",
            )
        yield from ((shadow, at * unit.memory.scale, size * unit.memory.scale) for at, size in parts)


def _floats_apart(unit: Unit, obj: Object, parts: Sequence[tuple[int, int]]) -> bool:
    """Whether the floats that are seen in an object lie in these parts of it, and nothing else does."""
    return all(
        isinstance(kind, ty.FloatType) is any(meets(where, Offsets(at), 1 - size, length) for at, size in parts)
        for where, kind, length, _ in unit.types.record(obj.index).evidence
    )
