"""The runtime of OpenMP: what modules compiled with `-fopenmp` call, linked into them from `openmp.c`.

No library of OpenMP is needed or used. Modules that were compiled elsewhere get the same runtime.
"""

from __future__ import annotations

import os
import re
import warnings
from functools import cache
from pathlib import Path

from irgrad.engine.ir.text.entities import restrict
from irgrad.engine.parallel.numbered import MAX_THREADS
from irgrad.engine.parallel.one_thread import ATOMIC, CRITICAL, UPDATES, loops_on_one_thread, tasks
from irgrad.interop.loaders.compiler import Options, compile_source
from irgrad.interop.loaders.library_parts import declared, with_parts
from irgrad.rules.errors import LoadError, OneThread

__all__ = ["complete", "with_threads"]

_SOURCE = Path(__file__).with_name("openmp.c")
_FLAGS = ("-std=gnu11", "-w", "-g0", "-O2", "-Xclang", "-disable-llvm-passes")
_NAME = re.compile(r"(?:__kmpc_|omp_|irgrad_omp_|__tgt_)\w+")
_TASK = re.compile(r"@__kmpc_omp_task_alloc\([^\n,]*, i32 [^\n,]*, i32 (?:noundef )?(\d+),")
_DESTRUCTORS = 8
"""The flag of a task whose private variables have destructors."""
_TOLD = re.compile(r"^(@irgrad_omp_destructors) = external [a-z_ ]*i32", re.M)
_SAYS = ("__kmpc_push_num_threads", "omp_set_num_threads")
"""What sources say how many threads they want with."""
_THREADS = re.compile(rf"^(@{MAX_THREADS}) = [a-z_ ]*(global|constant) i32 \d+", re.M)
_LAST = re.compile(r'^(@(?:"\.pl_cond\.[^"\n]*\.iv"|\.pl_cond\.[-\w$.]+\.iv)) = [a-z_ ]*global (i\d+) ', re.M)
_LOOP = re.compile(r"^  call void @__kmpc_(?:for_static|dispatch)_init_\w+\(", re.M)
_FUNCTION = re.compile(r"^define [^\n]*\{\n.*?^\}", re.M | re.S)
_DEFINED = re.compile(r"^define [^@\n]*@([\w$.]+)\(|^@(irgrad_omp_\w+) = ", re.M)


def complete(text: str, *, program: bool = False) -> str:
    """The module with the functions of OpenMP that it calls; unchanged when it calls none.

    program: regions have as many threads as OMP_NUM_THREADS says, or as there are cores, where the source does not say
    how many; in kernels one, or `threads`. Warns of regions that depend on how many threads run them and stay with one.
    Raises LoadError for a function that only a larger runtime has (devices, detached tasks), with its line.
    """
    wanted = [name for name in declared(text) if _NAME.fullmatch(name)]
    if not wanted:
        return text
    from irgrad.engine.grids.worksharing import mark_worksharing  # a cached gradient does not need them
    from irgrad.engine.parallel.critical_updates import with_critical_updates
    from irgrad.engine.parallel.numbered import with_numbers
    from irgrad.engine.parallel.regions import has_forks, on_one_thread
    from irgrad.engine.parallel.sections import with_exchanges_as_sections, with_fences

    text = with_critical_updates(with_exchanges_as_sections(_begun_anew(text)), variables=program)
    text = mark_worksharing(with_fences(text))
    if program:
        _tell(text, program=True)
    if has_forks(text):
        tell = program or any(name in wanted for name in _SAYS)
        numbered = with_numbers(text)
        for row in numbered.others if tell else ():
            said = f"one thread runs a region that depends on how many there are: {row}"
            warnings.warn(OneThread(said), stacklevel=2)
        text = on_one_thread(numbered.text)
    known = _known()
    unknown = [name for name in declared(text) if _NAME.fullmatch(name) and name not in known and _called(text, name)]
    unknown = [name for name in unknown if not name.startswith("omp_")]  # perhaps a function of the user's
    if unknown:
        raise LoadError(
            f"`{unknown[0]}` is not supported", where=_line(text, unknown[0]),
            because="this construct of OpenMP asks for more than irgrad's runtime has (docs/openmp.md lists it)",
            fix="leave the construct out where derivatives are wanted: #ifndef",
        )  # fmt: skip
    whole = with_parts(text, lambda name: str(_SOURCE) if name in known else None, lambda source: _runtime(program))
    flags = [int(found[1]) for found in _TASK.finditer(text)]
    told = f"internal unnamed_addr constant i32 {int(any(flag & _DESTRUCTORS for flag in flags))}"
    whole = _TOLD.sub(rf"\1 = {told}", whole)
    if not program and "@omp_set_num_threads(" not in whole:  # nothing else writes to it
        whole = _THREADS.sub(r"\1 = internal unnamed_addr constant i32 1", whole)
    return whole


def _begun_anew(text: str) -> str:
    """`lastprivate(conditional)`: clang keeps the number of the last iteration that assigned a variable of the module,
    and never clears it; a loop would go on with that of the call before."""
    rows = "".join(f"  store {kind} 0, ptr {name}\n" for name, kind in _LAST.findall(text))

    def cleared(function: re.Match[str]) -> str:
        return _LOOP.sub(lambda found: rows + found[0], function[0]) if "@.pl_cond." in function[0] else function[0]

    return _FUNCTION.sub(cleared, text) if rows else text


def _tell(text: str, *, program: bool) -> None:
    for row in loops_on_one_thread(text):
        later = (CRITICAL, UPDATES) if program else (CRITICAL, ATOMIC, UPDATES)  # that is told when the loops are known
        if not row.endswith(later):
            warnings.warn(OneThread(f"a worksharing loop runs on one thread: {row}"), stacklevel=3)
    for place in tasks(text):
        warnings.warn(OneThread(f"one thread runs tasks, in the order of the source: {place}"), stacklevel=3)


def with_threads(text: str, name: str, threads: int) -> str:
    """The module of a kernel whose regions have so many threads where the source does not say how many. Warns of loops
    of its function that OpenMP gives to threads, and that one thread runs.

    threads: -1 for as many as OMP_NUM_THREADS says or as there are cores, 0 for one
    """
    if threads < 0:
        said = os.environ.get("OMP_NUM_THREADS", "")
        threads = int(said) if said.isdecimal() and int(said) > 0 else len(os.sched_getaffinity(0))
    if threads > 1:
        _tell(restrict(text, [name]), program=False)
    return _THREADS.sub(rf"\1 = internal unnamed_addr \2 i32 {max(threads, 1)}", text)


def _runtime(program: bool = False) -> str:
    return compile_source(_SOURCE, "c", Options(flags=(*_FLAGS, *(["-DPROGRAM"] if program else [])))).text


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
