"""What a copy of an instruction in a derivative keeps: metadata, attributes of calls."""

from __future__ import annotations

from irgrad.engine.analyses.memory.tbaa import TYPE_TAG
from irgrad.engine.differentiate.layout.lanes import SHADOW_METADATA
from irgrad.engine.ir.model import CallInfo, Instruction
from irgrad.engine.ir.opcodes import having

__all__ = ["ASKED", "STRUCTURAL", "clean_call", "kept_metadata", "shadow_metadata"]

ASKED = "irgrad.asked"  # on what reads a pointer of which is asked where it leads
_KEPT = frozenset(
    ("tbaa", "dbg", "range", "nonnull", "noundef", "fpmath", "nosanitize", "tbaa.struct", TYPE_TAG, ASKED)
)
STRUCTURAL = having("shadow_alike")


def kept_metadata(instr: Instruction) -> dict[str, str]:
    """The metadata of an instruction that hold for its copy."""
    return {k: v for k, v in instr.metadata.items() if k in _KEPT or _chosen(instr, k)}


def shadow_metadata(instr: Instruction) -> dict[str, str]:
    """The metadata of an access or a choice that hold for the same one of shadows."""
    return {k: v for k, v in instr.metadata.items() if k in SHADOW_METADATA or _chosen(instr, k)}


def _chosen(instr: Instruction, kind: str) -> bool:
    """How often either side is chosen; of branches it is not kept, whose successors may be others in a derivative."""
    return kind == "prof" and instr.opcode == "select"


def clean_call(call: CallInfo | None) -> CallInfo | None:
    """Call information without what need not hold in the derivative (tail calls, attribute groups stay)."""
    if call is None:
        return None
    return CallInfo(
        call.fn_type, tail="" if call.tail != "notail" else call.tail, cc=call.cc, ret_attrs=call.ret_attrs,
        arg_attrs=call.arg_attrs, fn_attrs=call.fn_attrs, bundles=call.bundles,
    )  # fmt: skip
