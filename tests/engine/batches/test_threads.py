"""Helpers are called for long batches, never waited for when they have not begun, and survive a fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import cache

import pytest

import irgrad
from irgrad.engine.batches import threads
from irgrad.engine.batches.threads import cores, helped, run_chunks, thread_limit


class _Work:
    """Chunks that are claimed as in native code."""

    def __init__(self, chunks: int, seconds: float) -> None:
        self.left, self.seconds = chunks, seconds
        self.lock = threading.Lock()
        self.done: list[int] = []

    def __call__(self, worker: int, limit: int) -> None:
        for _ in range(limit):
            with self.lock:
                if not self.left:
                    return
                self.left -= 1
            time.sleep(self.seconds)
            self.done.append(worker)


@pytest.mark.parametrize(("threads", "workers"), [(1, 1), (2, 2), (5, 5), (9, 6)])
def test_every_chunk_runs_once(threads: int, workers: int) -> None:
    work = _Work(6, 0.01)
    run_chunks(work, 6, threads)
    assert len(work.done) == 6 and set(work.done) <= set(range(workers)) and helped.count == workers - 1


def test_helpers_come_when_the_first_chunk_was_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 4)
    for enough, count in ((10**15, 0), (0, 3)):
        monkeypatch.setattr(threads, "ENOUGH", enough)
        work = _Work(8, 0.001)
        run_chunks(work, 8, None)
        assert len(work.done) == 8 and helped.count == count


def test_limits() -> None:
    assert thread_limit(None) == cores() >= 1 and thread_limit(3) == 3
    for wrong in (0, -1, 1.5, True, 10_000):
        with pytest.raises(irgrad.SignatureError, match="is no number of threads"):
            thread_limit(wrong)  # type: ignore[arg-type]


def test_errors_of_helpers_are_raised() -> None:
    barrier, met = threading.Barrier(2, timeout=10), list[int]()

    def call(worker: int, limit: int) -> None:
        if worker or not met:
            met.append(worker)
            barrier.wait()
        if worker:
            raise ValueError("helper")

    with pytest.raises(ValueError, match="helper"):
        run_chunks(call, 2, 2)


def test_errors_of_the_caller_wait_for_helpers() -> None:
    """They use memory of the caller."""
    begun, ended = threading.Event(), []

    def call(worker: int, limit: int) -> None:
        if worker:
            begun.set()
            time.sleep(0.05)
            ended.append(worker)
        else:
            begun.wait(10)
            raise ValueError("caller")

    with pytest.raises(ValueError, match="caller"):
        run_chunks(call, 2, 2)
    assert ended == [1]


@pytest.mark.parametrize("workers", [None, 1, 2])
def test_a_signal_is_answered_between_chunks(workers: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No further chunk is claimed, by nobody; helpers have ended theirs."""
    monkeypatch.setattr(threads, "cores", lambda: 2)
    work, stopped = _Work(1000, 0.01), []

    def stop() -> None:
        with work.lock:
            stopped.append(work.left)
            work.left = 0

    def handler(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    begin = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            run_chunks(work, 1000, workers, stop)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 1
    if workers != 1:
        assert stopped and stopped[0] > 900
    done = len(work.done)
    time.sleep(0.05)
    assert len(work.done) == done < 100


def test_a_busy_pool_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only thread of the pool hangs in another batch: its task is made void, and the caller does all."""
    monkeypatch.setattr(threads, "MOST", 2)
    monkeypatch.setattr(threads, "_pool", cache(threads._Pool))
    hold, held = threading.Event(), threading.Barrier(3, timeout=10)

    def slow(worker: int, limit: int) -> None:
        if worker:
            held.wait()
            hold.wait(10)

    pool = threads._pool()
    first = [threads._Task(slow, worker, 1) for worker in (1, 2)]
    pool.start(first)
    held.wait()
    work = _Work(6, 0.001)
    run_chunks(work, 6, 2)
    assert work.done == [0] * 6 and pool.threads == 2
    hold.set()
    pool.finish(first)
    again = _Work(6, 0.01)
    run_chunks(again, 6, 2)
    assert len(again.done) == 6 and pool.unfinished == 0 and pool.threads == 2


def test_batches_from_many_threads() -> None:
    """Each runs all of its chunks; nothing is left of them."""
    works = [_Work(20, 0.0001) for _ in range(40)]

    def several(first: int) -> None:
        for work in works[first::4]:
            run_chunks(work, 20, 3)

    callers = [threading.Thread(target=several, args=(k,)) for k in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all(len(work.done) == 20 for work in works)
    pool = threads._pool()
    assert pool.unfinished == 0 and pool.threads <= threads.MOST


FORK = """
import os
from irgrad.engine.batches.threads import run_chunks
def batch(threads):
    done = []
    left = iter(range(4))
    def call(worker, limit):
        for _ in left:
            done.append(worker)
    run_chunks(call, 4, threads)
    return len(done)
assert batch(2) == 4
child = os.fork()
if child == 0:
    os._exit(batch(3))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_the_child_of_a_fork_has_a_pool_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=60,
                          check=True)  # fmt: skip
    assert done.stdout.split() == ["4"]
