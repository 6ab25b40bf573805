"""Folders for files that a compiler or linker writes. They go when their user is through, also when a signal ends it.

A `with` removes its folder after exceptions and, with `orderly_end`, after SIGTERM and SIGHUP. A process that is killed
in another way leaves its folder, whose name tells which process that was: the next one that needs a folder removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["orderly_end", "scratch_folder"]

_PREFIX = "irgrad-tmp-"
_LEFT = 3600.0  # seconds without a change: the process may be one of another machine or container
_ENDING = (signal.SIGTERM, signal.SIGHUP)


def scratch_folder(kind: str) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder, for `with`; `kind` says in its name what it is for."""
    parent = tempfile.gettempdir()
    _sweep(parent)
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-{kind}-")


@cache
def _sweep(parent: str) -> None:
    """Remove the folders of processes that are gone."""
    with contextlib.suppress(OSError), os.scandir(parent) as rows:
        for row in rows:
            if not row.name.startswith(_PREFIX):
                continue
            number = row.name[len(_PREFIX) :].partition("-")[0]
            with contextlib.suppress(OSError):
                left = time.time() - row.stat().st_mtime > _LEFT and row.stat().st_uid == os.getuid()
                if left and number.isdigit() and not Path(f"/proc/{number}").exists():
                    shutil.rmtree(row.path, ignore_errors=True)


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """SIGTERM and SIGHUP end the process with its `with` statements run, and the status that a shell gives them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
