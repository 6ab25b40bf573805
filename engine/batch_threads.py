"""Threads for batches: a pool that lives as long as the process, and the rule for how many of its threads help.

A batch runs on the calling thread and on helpers from the pool; all of them claim chunks from one atomic counter in
native code, without the GIL. The caller never waits for a helper that has not begun, so that a busy pool costs nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from irgrad.rules.errors import SignatureError

__all__ = ["ENOUGH", "MOST", "cores", "helped", "run_chunks", "thread_limit"]

ENOUGH = 200_000
"""Nanoseconds of remaining work from which helpers are called: starting one takes some 30 microseconds."""
MOST = 256
"""The most threads that a batch may ask for."""

helped = threading.local()
"""`helped.count`: threads beside the calling one that its last batch asked for (what `explain` and tests read)."""

_LOCK = threading.Lock()


@cache
def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=MOST, thread_name_prefix="irgrad-batch")


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


def run_chunks(call: Callable[[int, int], None], chunks: int, threads: int | None) -> None:
    """Run `call(worker, limit)`, which claims up to `limit` chunks, until all chunks are done.

    threads: how many; None: the first chunk is timed, and all cores help when what is left takes longer than `ENOUGH`.
    """
    limit, everything = thread_limit(threads), max(chunks, 1)
    helped.count = 0
    if threads is None and limit > 1 and chunks > 1:
        start = time.perf_counter_ns()
        call(0, 1)
        if (time.perf_counter_ns() - start) * (chunks - 1) < ENOUGH:
            limit = 1
    helpers = min(limit, chunks) - 1
    if helpers < 1:
        call(0, everything)
        return
    helped.count = helpers
    with _LOCK:
        pool = _pool()
        running = [pool.submit(call, worker, everything) for worker in range(1, helpers + 1)]
    call(0, everything)
    for future in running:
        if not future.cancel():
            future.result()
