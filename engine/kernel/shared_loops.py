"""Loops of a kernel that threads share: in the text that is made machine code of, and what is to be said of them."""

from __future__ import annotations

import ctypes
import json
import re
import warnings
from collections.abc import Sequence
from typing import Any, Protocol

from irgrad.engine.codegen import team
from irgrad.engine.codegen.cache import default_cache
from irgrad.engine.codegen.jit import Compiled, compile_known
from irgrad.engine.ir.text.entities import restrict
from irgrad.engine.kernel.checkpoints import bytes_of
from irgrad.engine.parallel.one_thread import ALONE, ATOMIC, CRITICAL, UPDATES, loops_on_one_thread
from irgrad.engine.pipeline.derivatives import scheduled
from irgrad.engine.runtime.arena import WANTED
from irgrad.engine.runtime.exceptions import catching
from irgrad.engine.signature.slots import Slot, Step
from irgrad.engine.threads.chunks import SharedLoops, share_loops
from irgrad.engine.threads.shadows import mark_shadows
from irgrad.engine.threads.teams import Teams, with_teams
from irgrad.rules.errors import OneThread

__all__ = ["Sharing", "compiled_with_threads", "shared_loops", "teams_of", "warn_of_one_thread"]


class Sharing(Protocol):
    """What is asked of a program (see `programs.py`)."""

    parent: Any
    source: Any
    word: tuple[Step, ...]

    @property
    def stage(self) -> Any: ...

    @property
    def slots(self) -> Sequence[Slot]: ...

    @property
    def key(self) -> str: ...

    @property
    def ir(self) -> str: ...

    @property
    def entry_symbol(self) -> str: ...


def teams_of(program: Sharing) -> Teams:
    """The text of a program with its shared loops as jobs of the team."""
    name, wide = program.stage.name, bool(program.word) and program.word[-1].width > 1
    text = catching(mark_shadows(program.stage.text, name))
    if wide:
        text = scheduled(text, name)
    made = with_teams(text, name, bytes_of(program.slots))
    default_cache().put("teams", program.key, json.dumps([made.shared, made.others]).encode())
    return made


def shared_loops(program: Sharing) -> SharedLoops:
    """Which loops of a program threads share, and why others run on one thread: of the source's loops, and of those of
    the derivative."""
    shared, others = _known(program)
    return SharedLoops(tuple(dict.fromkeys(shared)), tuple(dict.fromkeys([*_left(program), *others])))


def _known(program: Sharing) -> tuple[list[str], list[str]]:
    stored = default_cache().get("teams", program.key)
    if stored is None:
        made = teams_of(program)
        return made.shared, made.others
    shared, others = json.loads(stored)
    return shared, others


def _left(program: Sharing) -> tuple[str, ...]:
    """Why loops of the source are not in chunks."""
    from irgrad.engine.ir.text.reader import read

    while program.parent is not None:
        program = program.parent
    stage = program.stage
    module = read(stage.text, roots=[stage.name])
    return share_loops(module, module.functions[stage.name]).others


def warn_of_one_thread(program: Sharing) -> None:
    """Warn where no loop of a program that was given threads is shared."""
    _tell(program)
    if not _known(program)[0]:
        because = "; ".join(shared_loops(program).others[:3]) or "it has no loop"
        warnings.warn(f"`{program.source.name}` runs on one thread, whatever `threads` says: {because}", OneThread,
                      stacklevel=5)  # fmt: skip


def _tell(program: Sharing) -> None:
    """Warn of loops with critical sections and atomic updates that no team shares."""
    source = program.source
    if f"!{ALONE}" not in source.text or source.options.threads == 1:
        return
    shared = {place for row in _known(program)[0] for place in re.split(r" \(inlined at |\)", row)}
    for row in loops_on_one_thread(restrict(source.text, [source.name]), shared):
        if row.endswith((CRITICAL, ATOMIC, UPDATES)) and row.partition(": ")[0] not in shared:
            warnings.warn(f"a worksharing loop runs on one thread: {row}", OneThread, stacklevel=6)


def compiled_with_threads(program: Sharing) -> Compiled:
    """The machine code of a program, which knows the team and how many of its threads share a loop. Warns where no loop
    of the program is shared."""
    team.provide()
    options, optional = program.source.options, (*WANTED, team.THREADS)
    unit = compile_known(program.key, lambda: program.ir, [program.entry_symbol], optional, options.strict_fp,
                         options.cpu)  # fmt: skip
    warn_of_one_thread(program)  # (which loops those are is known from then on)
    if unit.has(team.THREADS):
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(unit.address(team.THREADS))(max(options.threads, 0))
    return unit
