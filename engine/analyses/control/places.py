"""Where loops stand in the source."""

from __future__ import annotations

import re

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir.locations import locate, place_text
from irgrad.engine.ir.model import Module

__all__ = ["loop_places"]

_NODES = re.compile(r"![0-9]+")


def loop_places(module: Module, loop: Loop) -> list[str]:
    """`file:line:column` of the begin of a loop, and of its end where that is known; of an instruction at its latch or
    header where its begin is not; nothing without debug information."""
    for latch in loop.latches:
        node = latch.terminator.metadata.get("llvm.loop")
        inside = _NODES.findall(module.metadata.get(node, "")) if node is not None else []
        found = [text for text in (place_text(module, part) for part in inside if part != node) if _real(text)]
        if found:
            return found
    rows = [block.terminator for block in (*loop.latches, *loop.exiting, loop.header) if block.instructions]
    texts = (locate(module, instr) for instr in (*rows, *loop.header.instructions))
    return [text for text in [next(filter(_real, texts), "")] if text]


def _real(text: str) -> bool:
    """Whether a place has a line; the compiler gives line 0 to what it made up."""
    return bool(text) and ":0:" not in text
