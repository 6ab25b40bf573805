"""Memory of the user's allocators: what it is given back by, after the reverse sweep, which still reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Function

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["release_of", "stated_free"]


def stated_free(unit: Unit, callee: Function) -> bool:
    """A rule says that this function gives memory back: it is not C's `free`."""
    rules = unit.rules
    if rules is None or not rules.tables(callee.name or ""):
        return False
    facts = rules.facts(callee)
    return facts is not None and facts.kind == "deallocator"


def release_of(unit: Unit, callee: Function) -> Function:
    """`void release(ptr p)`: calls `callee` with the arguments that lie at p, eight bytes each."""
    name = f"irgrad.release.{callee.name}"
    found = unit.module.functions.get(name)
    if found is not None:
        return found
    fn = Function(name, ty.function(ty.VOID, (ty.PTR,)))
    fn.head, fn.tail = "internal", "nounwind"
    block = Block("entry")
    block.function = fn
    fn.blocks.append(block)
    b = Builder(block)
    args = [b.load(type_, b.gep(ty.I8, fn.args[0], 8 * i), align=8) for i, type_ in enumerate(callee.ftype.params)]
    b.call(callee, args)
    b.ret()
    unit.module.functions[name] = fn
    return fn
