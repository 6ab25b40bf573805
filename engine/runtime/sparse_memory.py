"""What a derivative stores through an address of `__enzyme_todense`, in LLVM IR (see `engine/enzyme/todense.py`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["CLOSE", "FIND", "PLACE", "PREFIX", "WORDS", "sparse_text"]

PREFIX = "irgrad.sparse."
FIND, PLACE, CLOSE = f"{PREFIX}find", f"{PREFIX}place", f"{PREFIX}close"
WORDS = 4
"""Of the memory's head: cells, table, their count, the table's room. The cells have 24 bytes, the value from 8 on."""


@cache
def sparse_text() -> str:
    """The definitions."""
    return Path(__file__).with_name("sparse_memory.ll").read_text(encoding="utf-8")
