"""Progress: one line on stderr for what takes more than a second, while it runs.

Shown where somebody watches: on a terminal, and always by the command line. `IRGRAD_PROGRESS=1` shows it anywhere,
`IRGRAD_PROGRESS=0` nowhere.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

__all__ = ["Progress", "enabled", "show_always"]

PATIENCE = 1.0
"""Seconds that something takes before it is spoken of."""
_ALWAYS: list[bool] = []
_SHOWN: list[Progress] = []  # the one whose line is open: work inside of it, or beside it, has no line of its own


def enabled() -> bool:
    """Whether lines are printed here and now."""
    said = os.environ.get("IRGRAD_PROGRESS", "")
    if said:
        return said != "0"
    if _ALWAYS:
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # no stderr, or a closed one
        return False


def show_always() -> None:
    """From now on in this process, terminal or not: what the command line does."""
    _ALWAYS.append(True)


class Progress:
    """`with Progress("compiling x.c"):` prints a line when the block runs for more than `after` seconds, and its time
    at the end. `seconds` is the time it took."""

    __slots__ = ("_start", "_timer", "after", "seconds", "what")

    def __init__(self, what: str, after: float | None = None) -> None:
        self.what = what
        self.after = PATIENCE if after is None else after
        self.seconds = 0.0
        self._timer: threading.Timer | None = None
        self._start = 0.0

    def _show(self) -> None:
        if not _SHOWN:
            _SHOWN.append(self)
            _say(f"irgrad: {self.what} ...")

    def __enter__(self) -> Progress:
        if enabled():
            import threading

            self._timer = threading.Timer(self.after, self._show)
            self._timer.daemon = True
            self._timer.start()
        self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.perf_counter() - self._start
        if self._timer is not None:
            self._timer.cancel()
            if self in _SHOWN:
                _SHOWN.remove(self)
                _say(f" {'stopped' if kind else 'done'} after {self.seconds:.1f} s\n")


def _say(text: str) -> None:
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except (AttributeError, OSError, ValueError):  # nobody listens any more: the work goes on
        return
