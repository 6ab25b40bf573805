"""Functions with global variables are called by one thread at a time, others are left alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.kernel.serialised_calls import in_turn, shared_state

GLOBALS = {
    "@s = internal global double 0.0\n": True,
    '@"a b" = internal unnamed_addr global [2 x i32] zeroinitializer\n': True,
    "@s = internal thread_local(initialexec) global double 0.0\n": True,
    "@s = internal unnamed_addr constant double 1.0\n": False,
    "@irgrad.tape.pool = internal global [64 x ptr] zeroinitializer\n": False,
    "@irgrad_tape_peak = internal global i64 0\n": False,
    "@irgrad.f.normal.r.shadow.constant._ZTV1A = internal global [3 x ptr] zeroinitializer\n": False,
    "@irgrad.f.normal.r.shadow.s = internal global [3 x ptr] zeroinitializer\n": True,
    "@irgrad.g.shadow.irgrad.f.normal.r.shadow.constant._ZTV1A = internal global [3 x ptr] zeroinitializer\n": True,
    "@s = external global double\n  %1 = load double, ptr @s\n": False,
    "@s = external global double\n  store double %1, ptr @s\n": True,
    "@s = external global [2 x double]\n  call void @f(ptr getelementptr (i8, ptr @s, i64 8))\n": True,
}


@pytest.mark.parametrize("text", GLOBALS)
def test_shared_memory_is_seen(text: str) -> None:
    assert bool(shared_state(text)) == GLOBALS[text]


def test_others_are_called_as_they_are() -> None:
    def entry(address: int) -> None:
        assert address

    assert in_turn(entry, "@s = internal unnamed_addr constant double 1.0\n") is entry
    assert in_turn(entry, "@s = internal global double 0.0\n") is not entry


SOURCE = """
static volatile int inside;
double others(double x) {                               /* how many calls run beside this one */
  int before = inside++;
  for (volatile int i = 0; i < 1000000; i++) ;
  inside--;
  return x * before;
}
"""


@pytest.mark.parametrize("how", ["call", "gradient", "batch"])
def test_threads_take_turns(how: str) -> None:
    kernel = irgrad.load(SOURCE).kernel("others")
    calls = {"call": lambda: kernel(1.0), "gradient": lambda: engine.grad(kernel)(1.0),
             "batch": lambda: engine.batch(kernel)(np.ones(3)).sum()}  # fmt: skip
    call, seen, barrier = calls[how], list[float](), threading.Barrier(4, timeout=60)

    def work() -> None:
        barrier.wait()
        seen.extend(float(call()) for _ in range(5))

    call()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [0.0] * 20
