"""Costs of tests: the shipped ones, but that any work is worth a chunk of a loop that threads share."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["small_chunks"]


def small_chunks(folder: Path | None = None, chunk: int = 1) -> None:
    """Have this process and those that it starts plan by these costs. chunk: additions that are worth a chunk; folder:
    for a file of them, by default one that stays"""
    from irgrad.engine.codegen.llvm import host_cpu
    from irgrad.engine.codegen.machine_costs import written
    from irgrad.engine.codegen.own_sources import forget_costs
    from irgrad.rules.expressions.costs import Costs

    folder = folder or Path(tempfile.mkdtemp(prefix="irgrad-costs"))
    path = folder / f"costs-{chunk}.txt"
    path.write_bytes(written(Costs(chunk=chunk), host_cpu()))
    os.environ["IRGRAD_COSTS"] = str(path)
    forget_costs()
