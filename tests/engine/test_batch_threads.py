"""Helpers are called for long batches, never waited for when they have not begun, and survive a fork."""

from __future__ import annotations

import os
import threading
import time

import pytest

import irgrad
from irgrad.engine import batch_threads
from irgrad.engine.batch_threads import cores, helped, run_chunks, thread_limit


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
    monkeypatch.setattr(batch_threads, "cores", lambda: 4)
    for enough, count in ((10**15, 0), (0, 3)):
        monkeypatch.setattr(batch_threads, "ENOUGH", enough)
        work = _Work(8, 0.001)
        run_chunks(work, 8, None)
        assert len(work.done) == 8 and helped.count == count


def test_limits() -> None:
    assert thread_limit(None) == cores() >= 1 and thread_limit(3) == 3
    for wrong in (0, -1, 1.5, True, 10_000):
        with pytest.raises(irgrad.SignatureError, match="is no number of threads"):
            thread_limit(wrong)  # type: ignore[arg-type]


def test_errors_of_helpers_are_raised() -> None:
    barrier = threading.Barrier(2, timeout=10)

    def call(worker: int, limit: int) -> None:
        barrier.wait()
        if worker:
            raise ValueError("helper")

    with pytest.raises(ValueError, match="helper"):
        run_chunks(call, 2, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_has_a_pool_of_its_own() -> None:
    run_chunks(_Work(4, 0.001), 4, 2)
    child = os.fork()
    if child == 0:
        work = _Work(4, 0.001)
        run_chunks(work, 4, 3)
        os._exit(0 if len(work.done) == 4 else 1)
    for _ in range(200):
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
