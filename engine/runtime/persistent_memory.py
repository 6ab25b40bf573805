"""The list of memory that lives from call to call, in LLVM IR (see `differentiate/shadow/persistent_memory.py`)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.ir.text.outline import outline

__all__ = ["BESIDE", "CLEAR", "FREE", "NEW", "PREFIX", "SHADOW", "TYPES", "link_kept"]

PREFIX = "irgrad.kept."
NEW, CLEAR, FREE = f"{PREFIX}new", f"{PREFIX}clear", (f"{PREFIX}free", f"{PREFIX}free_later")
BESIDE, SHADOW = "irgrad_found_beside", "irgrad_found_shadow"
"""(tag, owner, fields, allocation, bytes, alignment, lane) -> the shadow of an allocation that was there before the
call; (shadow, tag, allocation, lane): which allocation a shadow of `NEW` belongs to."""
TYPES = {
    BESIDE: ty.function(ty.PTR, (ty.PTR, ty.PTR, ty.PTR, ty.PTR, ty.I64, ty.I64, ty.I64)),
    SHADOW: ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.PTR, ty.I64)),
    NEW: ty.function(ty.PTR, (ty.PTR, ty.PTR, ty.I64, ty.I64)), CLEAR: ty.function(ty.VOID, (ty.PTR,)),
    FREE[0]: ty.function(ty.VOID, (ty.PTR,)), FREE[1]: ty.function(ty.VOID, (ty.PTR, ty.PTR)),
}  # fmt: skip
_DECLARED = re.compile(r"^(?:declare [^\n]*@irgrad\.kept\.\w+\(|@irgrad\.kept\.\w+ = external )[^\n]*\n", re.M)
_LATER = f"""
define internal void @{FREE[1]}(ptr %t, ptr %memory) nounwind {{
  call void @irgrad.tape.release_later(ptr %t, ptr %memory, ptr @{FREE[0]})
  ret void
}}
declare void @irgrad.tape.release_later(ptr, ptr, ptr)
"""


@cache
def _text() -> str:
    return Path(__file__).with_name("persistent_memory.ll").read_text(encoding="utf-8")


def link_kept(text: str) -> str:
    """The module with the definitions of the list in place of their declarations; unchanged when it uses none."""
    if f"@{PREFIX}" not in text or not _DECLARED.search(text):
        return text
    return joined(_DECLARED.sub("", text + "\n"), _text() + (_LATER if FREE[1] in outline(text).functions else ""))
