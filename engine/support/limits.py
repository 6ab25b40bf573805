"""Limits that protect the process, all in one place, and how to raise them.

    IRGRAD_MAX_TEXT           characters of IR that are read (default 2^28)
    IRGRAD_MAX_INSTRUCTIONS   instructions of a module, as loaded and as differentiated (default 5,000,000)
    IRGRAD_MAX_OPTIMISED      lines of a module of more than 50,000 that get all of LLVM's passes (default 20,000)
    IRGRAD_MAX_COPIES         bytes of what a loop on threads copies or keeps, in native code (default 1 GiB)
    IRGRAD_MAX_SECONDS        seconds that one derivation, or one run of the C compiler, may take (default 900)

The environment is read each time, so that a program may set them in `os.environ`. How deep types, constants and
metadata nest is limited as well (64 levels, 256 brackets), and cannot be raised: LLVM's own parser recurses into them.
What LLVM does in its passes cannot be interrupted; its time follows from the number of instructions.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from irgrad.rules.errors import IRGradError, LimitExceeded

__all__ = ["DEFAULTS", "check_count", "check_length", "limit", "within_time"]

Result = TypeVar("Result")

DEFAULTS = {"TEXT": 1 << 28, "INSTRUCTIONS": 5_000_000, "OPTIMISED": 20_000, "COPIES": 1 << 30, "SECONDS": 900}


def limit(name: str) -> float:
    """The limit of that name (one of DEFAULTS). Raises IRGradError for a variable that is no positive number."""
    text = os.environ.get(f"IRGRAD_MAX_{name}", "")
    if not text:
        return DEFAULTS[name]
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise IRGradError(f"`IRGRAD_MAX_{name}={text}` is no limit", because="a positive number is wanted",
                          fix=f"unset IRGRAD_MAX_{name}   or   IRGRAD_MAX_{name}={DEFAULTS[name]}")
    return value


def check_length(text: str) -> None:
    """Raise LimitExceeded for IR text that is too long."""
    most = limit("TEXT")
    if len(text) > most:
        because = f"it has {len(text)} characters, the limit is {most:.0f}"
        raise LimitExceeded("the IR text is too long", because=because,
                            fix="load only the files that hold the function, compile without debug info, or set "
                                "IRGRAD_MAX_TEXT to more")  # fmt: skip


def check_count(instructions: int, what: str = "the module", where: str = "") -> None:
    """Raise LimitExceeded for too many instructions."""
    most = limit("INSTRUCTIONS")
    if instructions > most:
        raise LimitExceeded(f"{what} has too many instructions", where=where,
                            because=f"it has at least {instructions}, the limit is {most:.0f}",
                            fix="load only the functions needed, or set IRGRAD_MAX_INSTRUCTIONS to more")


class _Expired(BaseException):
    """Raised inside of the work; no handler of `Exception` on the way takes it."""


def within_time(work: Callable[[], Result], what: str, where: str = "") -> Result:
    """What `work()` gives, if it takes no longer than `limit("SECONDS")`; else LimitExceeded ends it.

    For work in Python only: it is ended between two of its steps, from another thread. Calls of LLVM must not be in it,
    what they allocate would be lost half made.
    """
    seconds = limit("SECONDS")
    guard = _Guard(threading.get_ident(), seconds)
    start = time.perf_counter()
    try:  # all in one frame: wherever in it the exception arrives, it is caught
        try:
            guard.start()
            return work()
        finally:
            guard.leave()
    except _Expired:
        _stop(guard)  # it may have arrived in `leave`
        raise LimitExceeded(f"{what} takes too long", where=where,
                            because=f"it has run for {time.perf_counter() - start:.1f} s, the limit is {seconds:g} s",
                            fix="differentiate a smaller function, or set IRGRAD_MAX_SECONDS to more") from None


def _stop(guard: _Guard) -> None:
    while True:
        try:
            guard.leave()
            return
        except _Expired:
            continue


class _Guard(threading.Thread):
    """Sends `_Expired` to a thread that is still at work after some seconds; again, if something swallowed it."""

    def __init__(self, thread: int, seconds: float) -> None:
        super().__init__(name="irgrad-limit", daemon=True)
        self.worker = ctypes.c_ulong(thread)
        self.seconds = min(seconds, threading.TIMEOUT_MAX)
        self.lock = threading.Lock()
        self.over = threading.Event()

    def run(self) -> None:
        wait = self.seconds
        while not self.over.wait(wait):
            with self.lock:
                if not self.over.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(self.worker, ctypes.py_object(_Expired))
            wait = 1.0

    def leave(self) -> None:
        """The work is over: nothing is sent any more, and what has been sent arrives before this returns.

        It is not taken back: CPython 3.11 would stay alert for it, slow, and in circles under a tracer.
        """
        with self.lock:
            self.over.set()
        for _ in range(2):  # a jump back is where the interpreter looks for exceptions
            pass
