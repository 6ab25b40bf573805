"""What a copy of an instruction in a derivative keeps: metadata, attributes of calls."""

from __future__ import annotations

from irgrad.engine.analyses.memory.tbaa import TYPE_TAG
from irgrad.engine.differentiate.layout.lanes import SHADOW_METADATA
from irgrad.engine.ir.model import CallInfo, Instruction
from irgrad.engine.ir.opcodes import having

__all__ = ["ASKED", "KEPT_METADATA", "STRUCTURAL", "clean_call", "shadow_metadata"]

ASKED = "irgrad.asked"  # on what reads a pointer of which is asked where it leads
KEPT_METADATA = frozenset(
    ("tbaa", "dbg", "range", "nonnull", "noundef", "fpmath", "nosanitize", "tbaa.struct", TYPE_TAG, ASKED)
)
STRUCTURAL = having("shadow_alike")


def shadow_metadata(instr: Instruction) -> dict[str, str]:
    """The metadata of an access that hold for the same access to shadow memory."""
    return {k: v for k, v in instr.metadata.items() if k in SHADOW_METADATA}


def clean_call(call: CallInfo | None) -> CallInfo | None:
    """Call information without what need not hold in the derivative (tail calls, attribute groups stay)."""
    if call is None:
        return None
    return CallInfo(
        call.fn_type, tail="" if call.tail != "notail" else call.tail, cc=call.cc, ret_attrs=call.ret_attrs,
        arg_attrs=call.arg_attrs, fn_attrs=call.fn_attrs, bundles=call.bundles,
    )  # fmt: skip
