"""Progress on stderr for what takes more than a second."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

__all__ = ["Progress"]


class Progress:
    """`with Progress("compiling x.c"):` prints a line when the block runs for more than `after` seconds, and its time
    at the end. `seconds` is the time it took."""

    __slots__ = ("_shown", "_start", "_timer", "seconds", "what")

    def __init__(self, what: str, after: float = 1.0) -> None:
        self.what = what
        self.seconds = 0.0
        self._shown = threading.Event()
        self._timer = threading.Timer(after, self._show)
        self._timer.daemon = True
        self._start = 0.0

    def _show(self) -> None:
        self._shown.set()
        print(f"irgrad: {self.what} ...", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        self._start = time.perf_counter()
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self.seconds = time.perf_counter() - self._start
        if self._shown.is_set():
            print(f" {'stopped' if kind else 'done'} after {self.seconds:.1f} s", file=sys.stderr, flush=True)
