"""The team: every part runs once, failures come back, callers do not wait, forked children start anew. Memory for
copies is zeros, and is kept."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import Counter

from irgrad.engine.codegen import symbols
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.team import COPIES, RUN, pages_text, provide, release_copies

PART = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
JOB = ctypes.CFUNCTYPE(ctypes.c_void_p, PART, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def _run() -> object:
    provide()
    return JOB(symbols.lookup(RUN))


def _parts(count: int, threads: int, failing: int = -1) -> tuple[list[int], object]:
    done: list[int] = []
    record = (ctypes.c_int64 * 5)(7, 0, 0, 0, 0)

    def part(context: int, number: int) -> int | None:
        done.append(number)
        return ctypes.addressof(record) if number == failing else None

    failure = _run()(PART(part), None, count, threads)  # type: ignore[operator]
    return done, ctypes.cast(failure, ctypes.POINTER(ctypes.c_int64))[0] if failure else None


def test_every_part_runs_once() -> None:
    for threads in (1, 2, 5, 0):
        for count in (0, 1, 2, 16, 100):
            done, failure = _parts(count, threads)
            assert Counter(done) == Counter(range(count)) and failure is None


def test_a_failure_comes_back_and_ends_the_job() -> None:
    for threads in (1, 3):
        done, failure = _parts(1000, threads, failing=3)
        assert failure == 7 and len(done) < 1000


def test_many_callers() -> None:
    found: list[bool] = []

    def call() -> None:
        found.extend(sorted(_parts(16, 3)[0]) == list(range(16)) for _ in range(30))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found) and len(found) == 120


def test_a_job_inside_a_job_runs_there() -> None:
    inner: list[int] = []

    def part(context: int, number: int) -> None:
        inner.extend(_parts(4, 4)[0])

    assert _run()(PART(part), None, 3, 2) is None  # type: ignore[operator]
    assert Counter(inner) == dict.fromkeys(range(4), 3)


def test_a_child_of_a_fork_has_its_own() -> None:
    _parts(16, 3)
    child = os.fork()
    if child == 0:
        os._exit(0 if sorted(_parts(16, 3)[0]) == list(range(16)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _entry(name: str, result: object, *arguments: object) -> object:
    provide()
    return ctypes.CFUNCTYPE(result, *arguments)(symbols.lookup(name))  # type: ignore[arg-type]


def test_copies_are_zeros_that_are_kept() -> None:
    ask = _entry(COPIES, ctypes.c_void_p, ctypes.c_int64)
    back, drop = (_entry(f"{COPIES}_{word}", None, ctypes.c_void_p) for word in ("back", "drop"))
    release_copies()
    first = ask(1 << 20)  # type: ignore[operator]
    assert first % 4096 == 0 and ctypes.string_at(first, 1 << 20) == bytes(1 << 20)
    second = ask(5000)  # type: ignore[operator]
    assert second not in (None, first)
    ctypes.memset(first, 1, 100)
    drop(first)  # type: ignore[operator]
    back(second)  # type: ignore[operator]
    assert ask(4000) == second  # type: ignore[operator]
    back(second)  # type: ignore[operator]
    larger = ask(1 << 20)  # type: ignore[operator]
    assert ctypes.string_at(larger, 1 << 20) == bytes(1 << 20)
    back(larger)  # type: ignore[operator]
    back(None)  # type: ignore[operator]
    assert ask(0) is None  # type: ignore[operator]
    assert release_copies() == 1 << 20 and release_copies() == 0


def test_pages_that_were_written_to() -> None:
    """By a scan, and page by page."""
    unit = compile_module(pages_text().replace("linkonce_odr hidden ", ""), ["irgrad_team_present"])
    present = unit.function("irgrad_team_present", ctypes.c_bool, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    scan = _entry("irgrad_team_touched", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    ask, drop = _entry(COPIES, ctypes.c_void_p, ctypes.c_int64), _entry(f"{COPIES}_drop", None, ctypes.c_void_p)
    free = ctypes.CDLL(None).free
    release_copies()
    pages, written = 1500, {0, 3, 511, 512, 513, 1499}
    memory = ask(pages * 4096)  # type: ignore[operator]
    for page in written:
        ctypes.memset(memory + page * 4096 + 17, 1, 1)
    flags = (ctypes.c_uint8 * pages)()
    if present(pages, memory, flags):
        assert {n for n, flag in enumerate(flags) if flag} == written
    found = scan(memory, pages * 4096)  # type: ignore[operator]
    told = {n for n, flag in enumerate(ctypes.string_at(found, pages)) if flag}
    assert told in (written, set(range(pages)))  # all: where the system does not say
    free(ctypes.c_void_p(found))
    drop(memory)  # type: ignore[operator]
