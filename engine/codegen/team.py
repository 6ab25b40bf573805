"""The team of threads of this process (`team.ll`), for machine code that asks for it."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from pathlib import Path
from typing import Any

from irgrad.engine.codegen import symbols
from irgrad.engine.codegen.jit import compile_module

__all__ = ["COPIES", "RUN", "THREADS", "pages_text", "provide", "release_copies", "team_text"]

RUN = "irgrad_team_run"
"""The entry: `void *(void *(*part)(void *, i64), void *context, i64 count, i64 threads)`."""
THREADS = "irgrad_team_threads"
"""The entry of a module with jobs that takes how many threads are to share one at most, 0 for as many as there are
cores."""
COPIES = "irgrad_team_copies"
"""Memory for copies of arrays (`pages.ll`): the entry of whoever asks for some."""
_ENTRIES = (COPIES, f"{COPIES}_back", f"{COPIES}_drop", "irgrad_team_touched")
_TRIM = f"{COPIES}_trim"
_LOCK = threading.Lock()
_UNIT: list[Any] = []  # it stays as long as the process: its threads never end


@cache
def team_text() -> str:
    """The module of the team."""
    return Path(__file__).with_name("team.ll").read_text(encoding="utf-8")


@cache
def pages_text() -> str:
    """The module of copies of memory that chunks add to."""
    return Path(__file__).with_name("pages.ll").read_text(encoding="utf-8")


def provide() -> None:
    """Make the team known to code that is linked from now on."""
    with _LOCK:
        if not _UNIT:
            shared = pages_text().replace("linkonce_odr hidden ", "")
            _UNIT.append(compile_module(team_text(), [RUN]))
            _UNIT.append(compile_module(shared, [*_ENTRIES, _TRIM]))
            symbols.define(RUN, _UNIT[0].address(RUN))
            for name in _ENTRIES:
                symbols.define(name, _UNIT[1].address(name))


def release_copies() -> int:
    """Free the memory for copies of arrays that is kept for the next loop; its bytes."""
    with _LOCK:
        return int(_UNIT[1].function(_TRIM, ctypes.c_int64)()) if _UNIT else 0
