"""`irgrad opt`: passes of the engine, one or some, on a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from irgrad.engine.codegen.optimise import is_adjoint
from irgrad.engine.codegen.passes import Code, Settings, run_passes
from irgrad.engine.codegen.target import HOST
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.text.validate import validate
from irgrad.engine.pipeline.stages import STAGES, find_passes
from irgrad.interop.loaders import load
from irgrad.rules.errors import IRGradError

__all__ = ["listed", "optimised"]


def listed() -> str:
    """Every stage with its passes and what each does, in the order in which a module goes through them."""
    lines: list[str] = []
    for stage, passes in STAGES.items():
        lines += [stage, *(f"  {step.name:22} {step.about}" for step in passes)]
    return "\n".join(lines)


def optimised(file: str, passes: str, roots: Sequence[str] = (), *, preopt: bool = True) -> str:
    """The IR of a file after some passes or whole stages.

    file: C, C++ or LLVM IR, "-" for IR on standard input; passes: names, separated by commas; roots: functions that
    stay visible (by default all that have a body)

    Raises IRGradError for a name that is no pass, for a root that the file does not define, and what loading raises.
    """
    chosen = find_passes(passes)
    if file == "-" or Path(file).suffix == ".ll":
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8", errors="surrogateescape")
        validate(read(text))  # what LLVM accepts may still end the process
    else:
        text = load(file).text
    defined = outline(text).defined
    for root in roots:
        if root not in defined:
            raise IRGradError(f"`{root}` has no body in this file", fix=f"one of {', '.join(sorted(defined)[:8])}")
    chosen_roots = tuple(roots) or tuple(sorted(defined))
    code = Code(text, roots=chosen_roots)
    machine = HOST.machine_for(adjoint=is_adjoint(text))
    run_passes(chosen, code, Settings(chosen_roots, preopt=preopt, machine=machine))
    result = code.text
    code.close()
    return result
