"""The passes that made a derivative, with times and sizes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from irgrad.engine.report.facts import PassTime

if TYPE_CHECKING:
    from irgrad.engine.report.derivation import Question

__all__ = ["CODE", "passes_of"]

CODE = "generate-code"
"""What follows the passes: LLVM's code generation, for a module that is ready."""


def passes_of(asked: Question) -> tuple[PassTime, ...]:
    """Make the kernel and its derivative anew, without the disk cache, and tell each pass in the order in which they
    ran, its seconds, and the instructions of the module after it. Nothing runs."""
    from irgrad.engine.codegen.jit import compile_object
    from irgrad.engine.codegen.passes import recorded
    from irgrad.engine.kernel.programs import Program

    with recorded() as runs:
        primal = Program(asked.kernel.source)
        primal.remake()
        program = asked.of(primal)
        program.remake()
        text = program.ir
        before, start = len(runs), time.perf_counter()
        compile_object(text, [program.entry_symbol], strict_fp=asked.kernel.options.strict_fp, cache=False)
        seconds = time.perf_counter() - start - sum(run.seconds for run in runs[before:])
    found = [PassTime(run.name, run.seconds, run.instructions) for run in runs]
    return (*found, PassTime(CODE, max(seconds, 0.0), 0))
