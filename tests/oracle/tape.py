"""The arena of the tape (engine/runtime/arena.ll) for the interpreter: every allocation is an object of its own.

So an access beyond what was asked for is found, memory that the sweep never wrote is undefined, and what is used after
`finish` was freed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import types as ty

from .undefined import Fault

_SIZE = 80  # of an arena's own record, which nobody but the arena looks into


def _acquire(m: Any) -> int:
    return int(m.memory.allocate(_SIZE, 0, heap=True))


def _pending(m: Any, arena: int) -> list[tuple[str, Any]]:
    """What happens when an arena is finished, in the order of the calls."""
    block, offset = m.memory.find(arena)
    if offset or block.size != _SIZE:
        raise Fault(f"{arena:#x} is no arena")
    found: list[tuple[str, Any]] = m.arenas.setdefault(arena, [])
    return found


def _alloc(m: Any, arena: int, size: int) -> int:
    made = int(m.memory.allocate(int(size), heap=True))
    _pending(m, arena).append(("free", made))
    return made


def _carve(m: Any, buffer: int, size: int) -> int:
    """Out of the caller's buffer { top, end }."""
    top, end = m.memory.load(buffer, ty.PTR), m.memory.load(buffer + 8, ty.PTR)
    size = (int(size) + 15) & -16
    if top + size > end:
        raise Fault(f"the caller's tape is {end - top} bytes too small for {size}")
    m.memory.store(buffer, ty.PTR, top + size)
    return int(top)


def _later(what: str) -> Callable[..., None]:
    def run(m: Any, arena: int, *args: int) -> None:
        _pending(m, arena).append((what, [int(a) for a in args]))

    return run


def _finish(m: Any, arena: int) -> None:
    pending = _pending(m, arena)
    for what, p in reversed(pending):
        if what == "finish":
            _finish(m, *p)
        elif what == "release":
            m.call_pointer(p[1], p[:1])
        elif what == "later":
            m.memory.free(*p)
    for what, p in pending:
        if what == "free":
            m.memory.free(p)
    m.memory.free(arena)
    del m.arenas[arena]


def _need(m: Any, arena: int, missing: int, size: int) -> None:
    if missing:
        raise Fault("the program found no memory")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acquire": _acquire, "alloc": _alloc, "carve": _carve, "finish": _finish, "need": _need,
    "free_later": _later("later"), "finish_later": _later("finish"), "release_later": _later("release"),
    "at": lambda m, arena, count, where: None,
}  # fmt: skip


def _native(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda m, f, args: run(m, *args)


TAPE: dict[str, Callable[..., Any]] = {f"irgrad.tape.{name}": _native(run) for name, run in _FUNCTIONS.items()}
