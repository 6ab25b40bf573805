"""Bytes of tapes, and memory that is given back."""

from __future__ import annotations

import threading

import numpy as np

import irgrad
from irgrad import engine
from irgrad.engine.kernel import pages

LIBRARY = irgrad.load("""
double power(double x, long n) { for (long i = 0; i < n; i++) x = x * x - 0.5; return x; }
double line(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += 2 * x[i]; return s; }
""")
POWER = LIBRARY.kernel("power", "f64(f64 x, i64 n)")
LINE = LIBRARY.kernel("line", "f64(f64[n] x, i64 n)")


def test_bytes_of_a_call_are_those_of_its_sizes() -> None:
    for n in (10_000, 100, 1000):  # not the most that any call has used
        assert POWER.tape_bytes(0.3, n) == engine.explain(POWER).tape_bytes({"n": n}) == 8 * n
    assert LINE.tape_bytes(np.ones(100)) == 0


def test_the_most_of_all_calls_is_still_known() -> None:
    gradient = engine.grad(POWER)
    gradient(0.3, 5000)
    most = gradient.tape_bytes
    POWER.tape_bytes(0.3, 10)
    assert gradient.tape_bytes == most >= 40_000


def test_release_gives_tapes_back_and_calls_go_on() -> None:
    gradient = engine.grad(POWER)
    want = gradient(0.3, 200_000)
    gradient(0.3, 200_000)  # its tape is one piece
    assert irgrad.release() >= 1_600_000
    assert irgrad.release() == 0
    assert gradient(0.3, 200_000) == want
    batch = engine.batch_grad(POWER, wrt="x")
    for _ in range(2):
        batch(np.linspace(0.1, 0.3, 8), 20_000)
    assert irgrad.release() >= 160_000


def test_release_gives_pages_back() -> None:
    irgrad.release()
    array = pages.zeros((pages.LEAST,), np.dtype(np.float64))
    assert irgrad.release() == 0  # it is in use
    del array
    assert irgrad.release() == 8 * pages.LEAST


def test_release_beside_calls() -> None:
    gradient, stop = engine.grad(POWER), threading.Event()
    want, wrong = gradient(0.3, 3000), []

    def calls() -> None:
        while not stop.is_set():
            if gradient(0.3, 3000) != want:
                wrong.append(1)

    threads = [threading.Thread(target=calls) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        irgrad.release()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
