"""Sizes and alignments of shadows of allocations, from the arguments of the copied call."""

from __future__ import annotations

from irgrad.engine.analyses.memory.call_effects import facts_of
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.shared.sweeps import PrimalCopy
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Function, Instruction, Value
from irgrad.engine.runtime.persistent_memory import BESIDE, NEW

__all__ = ["allocation_alignment", "allocation_bytes"]


def allocation_bytes(sweep: PrimalCopy, call: Instruction) -> Value | None:
    """Bytes of the shadow of a copied allocation; None where the table does not say.

    As many as the call asks for; where `realloc` copies all usable bytes of a block (see desugar), as many as are
    usable.
    """
    callee = resolve(call.callee)
    facts = facts_of(sweep.unit.module, callee) if isinstance(callee, Function) else None
    if facts is None or not facts.sizes:
        return None
    total: Value | None = None
    for i in facts.sizes:
        factor = sweep.b.to_i64(call.args[i], signed=False)
        total = factor if total is None else sweep.b.mul(total, factor, ())
    usable = sweep.unit.module.functions.get("malloc_usable_size")
    if usable is not None and call.callee.name in ("malloc", "calloc"):
        return sweep.b.call(usable, [call])
    return total


def allocation_alignment(sweep: PrimalCopy, call: Instruction) -> Value:
    """The alignment that an allocation asks for, else that of `malloc`."""
    name = call.callee_name or ""
    at = 0 if name in ("aligned_alloc", "memalign") else 1 if "align_val_t" in name else None
    at = {NEW: 3, BESIDE: 5}.get(name, at)
    if at is None:
        return ConstInt(ty.I64, 16)
    return sweep.b.to_i64(sweep.value(call.args[at]), signed=False)
