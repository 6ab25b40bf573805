"""The writer of IR text: loops, conditions, early leaves, run as machine code."""

from __future__ import annotations

import ctypes

import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.runtime.ir_writer import Writer


def _run(w: Writer, number: int) -> int:
    compiled = compile_module(w.text(), ["f"])
    out = ctypes.c_int64(0)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(compiled.address("f"))(ctypes.addressof(out), number)
    return out.value


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nested_loops_and_conditions(n: int) -> None:
    w = Writer("define void @f(ptr %out, i64 %n)")
    with w.loop("%n") as i, w.loop(i) as j, w.when(w.compare("ne", j, "1")):
        w.do(f"store i64 {w.add(w.load('i64', '%out'), w.mul(i, j))}, ptr %out")
    assert _run(w, n) == sum(i * j for i in range(n) for j in range(i) if j != 1)


@pytest.mark.parametrize("n", [0, 3, 9])
def test_a_loop_that_is_left(n: int) -> None:
    w = Writer("define void @f(ptr %out, i64 %n)")
    with w.forever() as done:
        now = w.load("i64", "%out")
        w.leave(w.compare("uge", w.mul(now, now), "%n"), done)
        w.do(f"store i64 {w.add(now, '1')}, ptr %out")
    assert _run(w, n) == next(k for k in range(9) if k * k >= n)
