"""Where saved values live: flat arrays for counted nests, records otherwise; one block of memory, used again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from handwritten.made import OUT, Made, gradient, make

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.model import Instruction

CHAIN = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++) s = sin(s * x[1]) + x[2] / (s * s + 1);
    *o = s;
}"""
NEST = """
void f(double *x, long *n, long *m, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++)
        for (long j = 0; j < *m; j++) s = sin(s * x[1]) + x[2] / (s * s + 1);
    *o = s;
}"""
UNCOUNTED = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    long i = 0;
    while (s * s < 1e4 && i < *n) { s = s + sin(s * x[1]) + x[2] / (s * s + 1); i++; }
    *o = s;
}"""
X = np.array([0.4, 1.1, 0.7])


def _inside_loops(made: Made) -> list[Instruction]:
    loops = Loops(Cfg(made.function))
    return [c for c in made.calls("irgrad.tape.alloc") if c.block is not None and loops.of(c.block) is not None]


def _differences(f: object, x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    assert callable(f)
    unit = np.eye(len(x)) * h
    return np.array([(8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / (12 * h) for e in unit])


def _chain(x: np.ndarray, n: int) -> float:
    s = x[0]
    for _ in range(n):
        s = np.sin(s * x[1]) + x[2] / (s * s + 1)
    return float(s)


def test_counted_loops_allocate_before_the_nest() -> None:
    (dx, _), made = gradient(CHAIN, "f", "dcd", X, np.array([25]), OUT)
    assert made.calls("irgrad.tape.alloc")
    assert not _inside_loops(made)
    np.testing.assert_allclose(dx, _differences(lambda x: _chain(x, 25), X), rtol=1e-8, atol=1e-10)


def test_a_counted_nest_has_one_array_per_value() -> None:
    (dx, _), made = gradient(NEST, "f", "dccd", X, np.array([5]), np.array([6]), OUT)
    assert not _inside_loops(made)
    np.testing.assert_allclose(dx, _differences(lambda x: _chain(x, 30), X), rtol=1e-8, atol=1e-10)
    assert 30 * 8 <= made.tape_bytes() <= 4 * 30 * 8 + 256


@pytest.mark.parametrize("kind", ["int", "long", "unsigned char"])
@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_an_inner_loop_that_never_runs_takes_no_room(kind: str, n: int) -> None:
    """Its count, asked for before the nest, is -1 or -2 there."""
    source = f"""
    void f(double *x, {kind} *n, double *o) {{
        double s = x[0];
        for (int i = 0; i < 3; i++)
            for ({kind} j = 2; j < *n; j++) s = sin(s * x[1]) + x[2] / (s * s + 1);
        *o = s;
    }}"""
    dtype = {"int": np.int32, "long": np.int64, "unsigned char": np.uint8}[kind]
    (dx, _), made = gradient(source, "f", "dcd", X, np.array([n], dtype), OUT)
    np.testing.assert_allclose(dx, _differences(lambda x: _chain(x, 3 * max(n - 2, 0)), X), rtol=1e-8, atol=1e-10)
    assert made.tape_bytes() < 1 << 14  # a count of eight bits has wrapped to 255 at most


TWO_LOOPS = """
void f(double *x, long *n, long *m, double *o) {
    double s = x[0], t = x[1];
    for (long i = 0; i < *n; i++) { double u = cos(s) * x[1]; s = sin(u + s * t) + exp(u) * x[2] / (s * s + 1); }
    for (long j = 0; j < *m; j++) s = sin(s * x[1]) + x[2] / (s * s + 1);
    *o = s + t;
}"""


def test_of_arrays_of_one_loop_the_arena_is_told_once_what_they_are_for() -> None:
    (dx, _), made = gradient(TWO_LOOPS, "f", "dccd", X, np.array([5]), np.array([7]), OUT)
    said = [(call.args[1], call.args[2]) for call in made.calls("irgrad.tape.at")]
    assert 2 <= len(said) == len(set(said)) < len(made.calls("irgrad.tape.alloc"))

    def value(x: np.ndarray) -> float:
        s, t = x[0], x[1]
        for _ in range(5):
            u = np.cos(s) * x[1]
            s = np.sin(u + s * t) + np.exp(u) * x[2] / (s * s + 1)
        for _ in range(7):
            s = np.sin(s * x[1]) + x[2] / (s * s + 1)
        return float(s + t)

    np.testing.assert_allclose(dx, _differences(value, X), rtol=1e-8, atol=1e-10)


def test_uncounted_loops_keep_records() -> None:
    (dx, _), made = gradient(UNCOUNTED, "f", "dcd", X, np.array([25]), OUT)
    assert _inside_loops(made), "the number of iterations is not known before"

    def f(x: np.ndarray) -> float:
        s = x[0]
        for _ in range(25):
            if not s * s < 1e4:
                break
            s = s + np.sin(s * x[1]) + x[2] / (s * s + 1)
        return float(s)

    np.testing.assert_allclose(dx, _differences(f, X), rtol=1e-7, atol=1e-9)


def test_tape_grows_with_the_trip_count() -> None:
    made = make(CHAIN, "f", "reverse", ["dup", "const", "dup"])
    sizes = []
    for n in (20_000, 40_000, 80_000):
        made(X, np.zeros(3), np.array([n]), np.zeros(1), np.ones(1))
        sizes.append(made.tape_bytes())
    assert sizes[1] - sizes[0] == 20_000 * (sizes[0] // 20_000)
    assert sizes[2] - sizes[1] == 40_000 * (sizes[0] // 20_000)


def test_no_call_leaves_memory_behind() -> None:
    """10^4 calls of a kernel with records, with trip counts that change: the same memory is used again and again."""
    made = make(UNCOUNTED, "f", "reverse", ["dup", "const", "dup"])
    frame = [X, np.zeros(3), np.array([300]), np.zeros(1), np.ones(1)]
    rng = np.random.default_rng(0)
    for n in [300, *rng.integers(0, 300, 1000)]:  # whatever Python and NumPy load on first use is loaded now
        frame[2][0] = n
        made(*frame)
    before = _resident()
    for n in rng.integers(0, 300, 10_000):
        frame[2][0] = n
        made(*frame)
    assert _resident() - before < 1 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
