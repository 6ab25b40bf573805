"""The runtime of OpenMP: what modules compiled with `-fopenmp` call, linked into them from `openmp.c`.

No library of OpenMP is needed or used. Modules that were compiled elsewhere get the same runtime.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from irgrad.interop.loaders.compiler import Options, compile_source
from irgrad.interop.loaders.library_parts import declared, with_parts
from irgrad.rules.errors import LoadError

__all__ = ["complete"]

_SOURCE = Path(__file__).with_name("openmp.c")
_FLAGS = ("-std=gnu11", "-w", "-g0", "-O2", "-Xclang", "-disable-llvm-passes")
_NAME = re.compile(r"(?:__kmpc_|omp_|irgrad_omp_|__tgt_)\w+")
_TASK = re.compile(r"@__kmpc_omp_task_alloc\([^\n,]*, i32 [^\n,]*, i32 (?:noundef )?(\d+),")
_DESTRUCTORS = 8
"""The flag of a task whose private variables have destructors."""
_TOLD = re.compile(r"^(@irgrad_omp_destructors) = external [a-z_ ]*i32", re.M)
_DEFINED = re.compile(r"^define [^@\n]*@([\w$.]+)\(|^@(irgrad_omp_\w+) = ", re.M)


def complete(text: str) -> str:
    """The module with the functions of OpenMP that it calls; unchanged when it calls none.

    Raises LoadError for a function that only a larger runtime has (devices, detached tasks), with its line.
    """
    wanted = [name for name in declared(text) if _NAME.fullmatch(name)]
    if not wanted:
        return text
    from irgrad.engine.grids.worksharing import mark_worksharing  # a cached gradient does not need them
    from irgrad.engine.parallel.regions import has_forks, on_one_thread

    text = mark_worksharing(text)
    if has_forks(text):
        text = on_one_thread(text)
    known = _known()
    unknown = [name for name in declared(text) if _NAME.fullmatch(name) and name not in known and _called(text, name)]
    unknown = [name for name in unknown if not name.startswith("omp_")]  # perhaps a function of the user's
    if unknown:
        raise LoadError(
            f"`{unknown[0]}` is not supported", where=_line(text, unknown[0]),
            because="this construct of OpenMP asks for more than irgrad's runtime has (docs/openmp.md lists it)",
            fix="leave the construct out where derivatives are wanted: #ifndef",
        )  # fmt: skip
    whole = with_parts(text, lambda name: str(_SOURCE) if name in known else None, lambda source: _runtime())
    flags = [int(found[1]) for found in _TASK.finditer(text)]
    told = f"internal unnamed_addr constant i32 {int(any(flag & _DESTRUCTORS for flag in flags))}"
    return _TOLD.sub(rf"\1 = {told}", whole)


def _runtime() -> str:
    return compile_source(_SOURCE, "c", Options(flags=_FLAGS)).text


@cache
def _known() -> frozenset[str]:
    return frozenset(found[1] or found[2] for found in _DEFINED.finditer(_runtime()))


def _called(text: str, name: str) -> bool:
    return re.search(rf"^ [^\n]*(?:call|invoke) [^\n]*@{re.escape(name)}\(", text, re.M) is not None


def _line(text: str, name: str) -> str:
    """The source line of the first call of a function, as far as the module tells."""
    call = re.search(rf"^ [^\n]*@{re.escape(name)}\([^\n]*!dbg (!\d+)", text, re.M)
    place = call and re.search(rf"^{call[1]} = (?:distinct )?!DILocation\(line: (\d+), column: (\d+)", text, re.M)
    file = re.search(r'!DIFile\(filename: "([^"]+)"', text)
    return f"{file[1]}:{place[1]}:{place[2]}" if file and place else ""
