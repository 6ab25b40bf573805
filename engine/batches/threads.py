"""Threads for batches: a pool that lives as long as the process, and the rule for how many of its threads help.

A batch runs on the calling thread and on helpers from the pool; all of them claim chunks from one atomic counter in
native code, without the GIL. The caller never waits for a helper that has not begun, so that a busy pool costs nothing.

The pool is a queue and locks. `concurrent.futures` makes a condition, two locks and a record for each call, and takes
three times as long to begin (30 microseconds where this takes 10; a batch of a millisecond is 5 % faster).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue

from irgrad.rules.errors import SignatureError

__all__ = ["ENOUGH", "MOST", "PAUSE", "cores", "helped", "run_chunks", "thread_limit"]

ENOUGH = 200_000
"""Nanoseconds of remaining work from which helpers are called: they begin some 10 microseconds later, or many more."""
PAUSE = 100_000_000
"""Nanoseconds after which a batch lets Python answer signals."""
MOST = 256
"""The most threads that a batch may ask for."""

helped = threading.local()
"""`helped.count`: threads beside the calling one that its last batch asked for (what `explain` and tests read)."""

_LOCK = threading.Lock()


@cache
def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Task:
    """One helper's part of a batch. Who holds `taken` runs it, or has made it void; `done` is released at its end."""

    __slots__ = ("call", "done", "error", "limit", "taken", "worker")

    def __init__(self, call: Callable[[int, int], None], worker: int, limit: int) -> None:
        self.call: Callable[[int, int], None] | None = call
        self.worker, self.limit = worker, limit
        self.error: BaseException | None = None
        self.taken, self.done = threading.Lock(), threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        """Run it, unless it is void."""
        if self.taken.acquire(blocking=False):
            call, self.call = self.call, None
            try:
                assert call is not None
                call(self.worker, self.limit)
            except BaseException as error:  # raised where the batch was called
                self.error = error
            finally:
                self.done.release()

    def finish(self) -> None:
        """Make it void if nobody has begun, otherwise wait for its end."""
        if self.taken.acquire(blocking=False):
            self.call = None
        else:
            self.done.acquire()


class _Pool:
    """Threads that wait for tasks: as many as tasks were unfinished at a time, `MOST` at most."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[_Task] = SimpleQueue()
        self.lock = threading.Lock()
        self.threads = 0
        self.unfinished = 0

    def start(self, tasks: list[_Task]) -> None:
        """Hand tasks to threads, new ones where there are too few."""
        with self.lock:
            self.unfinished += len(tasks)
            for _ in range(min(self.unfinished, MOST) - self.threads):
                self.threads += 1
                threading.Thread(target=self._serve, name=f"irgrad-batch-{self.threads}", daemon=True).start()
        for task in tasks:
            self.queue.put(task)

    def finish(self, tasks: list[_Task]) -> None:
        """Wait for those that have begun. Raises the first error, or what a signal's handler raises meanwhile."""
        try:
            for task in tasks:
                task.finish()
        finally:
            with self.lock:
                self.unfinished -= len(tasks)
        for task in tasks:
            if task.error is not None:
                raise task.error

    def _serve(self) -> None:
        while True:
            self.queue.get().run()


@cache
def _pool() -> _Pool:
    return _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # the child of a fork has none of the threads


def thread_limit(threads: int | None) -> int:
    """The most threads for `threads=`. Raises SignatureError for what is no number of threads."""
    if threads is None:
        return cores()
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST:
        raise SignatureError(f"threads = {threads!r} is no number of threads", because=f"wanted None or 1 to {MOST}",
                             fix="threads=None uses every core for batches that are worth it")
    return threads


def run_chunks(
    call: Callable[[int, int], None], chunks: int, threads: int | None, stop: Callable[[], None] = lambda: None
) -> None:
    """Run `call(worker, limit)`, which claims up to `limit` chunks, until all chunks are done.

    threads: how many; None: the first chunk is timed, and all cores help when what is left takes longer than `ENOUGH`.
    stop:    makes it that no further chunk is claimed: called where a signal's handler raises, which is asked between
             chunks that take long. What it raised is raised when the helpers have ended their chunks.
    """
    limit, everything = thread_limit(threads), max(chunks, 1)
    helped.count = 0
    piece = 1
    if threads is None and limit > 1 and chunks > 1:
        start = time.perf_counter_ns()
        call(0, 1)
        taken = time.perf_counter_ns() - start
        everything, piece = everything - 1, 1 + PAUSE // max(taken, 1)
        if taken * everything < ENOUGH:
            limit = 1
    helpers = min(limit, chunks) - 1
    if helpers < 1:
        _in_pieces(call, everything, piece)
        return
    helped.count = helpers
    with _LOCK:
        pool = _pool()
    tasks = [_Task(call, worker, everything) for worker in range(1, helpers + 1)]
    pool.start(tasks)
    try:
        _in_pieces(call, everything, piece)
    except BaseException:
        stop()
        raise
    finally:
        pool.finish(tasks)


def _in_pieces(call: Callable[[int, int], None], left: int, piece: int) -> None:
    """Claim so many chunks, `PAUSE` long at a time."""
    while left > 0:
        start = time.perf_counter_ns()
        call(0, min(piece, left))
        left -= piece
        piece = max(1, piece * PAUSE // max(time.perf_counter_ns() - start, 1))
