"""Costs of tests: the shipped ones, but that any work is worth a chunk of a loop that threads share."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from llvmlite.binding import get_host_cpu_name

__all__ = ["small_chunks"]


def small_chunks(folder: Path | None = None, chunk: int = 1, copied: int = 1) -> Path:
    """Have this process and those that it starts plan by these costs; their file. chunk: additions that are worth a
    chunk, copied: 8 bytes of its copy of an array; folder: for the file, by default one that stays.

    Tests of `rules` run without the engine, which is told only where it is there already.
    """
    path = (folder or Path(tempfile.mkdtemp(prefix="irgrad-costs"))) / f"costs-{chunk}-{copied}.txt"
    rows = ["irgrad-costs 1", f"cpu {get_host_cpu_name()}", "tape 28", f"chunk {chunk}", f"copied {copied}", "end\n"]
    path.write_text("\n".join(rows), encoding="utf-8")
    os.environ["IRGRAD_COSTS"] = str(path)
    known = sys.modules.get("irgrad.engine.codegen.own_sources")
    if known is not None:
        known.forget_costs()
    return path
