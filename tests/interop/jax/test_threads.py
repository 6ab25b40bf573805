"""Chunks shared with a thread pool: tasks that run at once, at the same time, too late or not at all."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from samples import sample

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.runtime.batch_driver import FIELDS, HEAD, driver_text
from irgrad.interop.jax import threads
from irgrad.interop.jax.threads import WORDS as CONTROL
from irgrad.interop.jax.threads import sharing_text

jax.config.update("jax_enable_x64", True)

BLOCK = """
declare void @free(ptr)
define ptr @block(i64 %count, ptr %p, ptr %s) {
  %a = load ptr, ptr %p
  %x = load double, ptr %a
  %y = fadd double %x, 1.0
  store double %y, ptr %a
  ret ptr null
}
"""
WORDS = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
N = 40


@cache
def _share() -> Any:
    text = BLOCK + driver_text(BLOCK) + sharing_text()
    compiled = compile_module(text, ["irgrad.batch.share", "block"])
    kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return compiled, ctypes.CFUNCTYPE(ctypes.c_void_p, *kinds)(compiled.address("irgrad.batch.share"))


class _Pool:
    """XLA's part: a call frame whose table has a thread pool."""

    def __init__(self, size: int, run: Any) -> None:
        self.tasks: list[tuple[int, int]] = []
        self.destroyed = 0

        def schedule(words: Any) -> int | None:
            return run(self, ctypes.CFUNCTYPE(None, ctypes.c_int64)(words[3]), words[4])

        def number(words: Any) -> int | None:
            ctypes.cast(words[3], ctypes.POINTER(ctypes.c_int64))[0] = size
            return None

        def destroy(words: Any) -> int | None:
            assert words[2] == 77
            self.destroyed += 1
            return None

        self.calls = [WORDS(f) for f in (schedule, number, destroy)]
        table = (ctypes.c_void_p * 20)()
        for at, call in zip((11, 12, 2), self.calls, strict=True):
            table[6 + at] = ctypes.cast(call, ctypes.c_void_p).value
        self.table = table
        self.frame = (ctypes.c_void_p * 8)(None, None, ctypes.addressof(table), 5)


def _call(pool: _Pool, helpers: int = 15) -> np.ndarray[Any, Any]:
    """One chunk per sample; every sample is counted up once."""
    compiled, share = _share()
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    counts = np.zeros(N)
    head = {"samples": N, "rows": 1, "chunk": 1, "chunks": N, "block": 1, "scratch": 64, "axes": 0, "slots": 1,
            "lanes": 0, "lead": 0}  # fmt: skip
    record = {"place": 1, "source_sample": 8, "source_element": 8, "count": 1, "size": 8}
    meta = [head[k] for k in HEAD] + [record.get(k, 0) for k in FIELDS]
    memory = libc.malloc(8 * 400)
    words = (ctypes.c_int64 * 400).from_address(memory)
    words[: len(meta)] = meta
    words[100] = counts.ctypes.data
    known = {"scratch": memory + 8 * 200, "block": compiled.address("block"), "users": 1, "memory": memory,
             "meta": memory, "bases": memory + 800}  # fmt: skip
    words[110 : 110 + len(CONTROL)] = [known.get(name, 0) for name in CONTROL]
    assert share(ctypes.addressof(pool.frame), memory + 880, N, helpers) is None
    return counts


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ENOUGH", 0)


def test_tasks_that_run_at_once() -> None:
    def run(pool: _Pool, task: Any, data: int) -> None:
        pool.tasks.append((0, data))
        task(data)

    pool = _Pool(4, run)
    assert np.array_equal(_call(pool), np.ones(N)) and len(pool.tasks) == 3


def test_tasks_that_begin_when_the_call_is_over() -> None:
    """The caller did all of it; the memory is still there for the tasks, the last of which frees it."""
    late: list[tuple[Any, int]] = []
    pool = _Pool(4, lambda pool, task, data: late.append((task, data)))
    counts = _call(pool)
    assert np.array_equal(counts, np.ones(N)) and len(late) == 3
    for task, data in late:
        task(data)
    assert np.array_equal(counts, np.ones(N))


def test_tasks_at_the_same_time() -> None:
    running: list[threading.Thread] = []

    def run(pool: _Pool, task: Any, data: int) -> None:
        running.append(threading.Thread(target=task, args=(data,)))
        running[-1].start()

    for _ in range(20):
        assert np.array_equal(_call(_Pool(5, run)), np.ones(N))
    for thread in running:
        thread.join(20)
    assert len(running) == 80


def test_a_pool_that_refuses_and_one_that_has_no_other_thread() -> None:
    pool = _Pool(4, lambda pool, task, data: 77)
    assert np.array_equal(_call(pool), np.ones(N)) and pool.destroyed == 3
    alone = _Pool(1, lambda pool, task, data: pytest.fail("scheduled"))
    assert np.array_equal(_call(alone), np.ones(N))
    assert np.array_equal(_call(_Pool(9, lambda *_: pytest.fail("scheduled")), helpers=0), np.ones(N))


def test_under_jax() -> None:
    """With tasks in every call: values, gradients, and calls beside each other."""
    kernel, rng = sample("energy"), np.random.default_rng(1)
    pos, mass = rng.normal(size=(200, 4, 3)), np.ones(4)
    both = jax.jit(jax.vmap(jax.value_and_grad(kernel), (0, None)))
    wanted = np.array([kernel(p, mass) for p in pos])
    first = both(pos, mass)
    for _ in range(20):
        value, slope = both(pos, mass)
        assert np.array_equal(value, first[0]) and np.array_equal(slope, first[1])
    np.testing.assert_allclose(first[0], wanted, rtol=1e-12)
