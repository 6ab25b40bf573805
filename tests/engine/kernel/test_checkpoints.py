"""What may be said of long loops, and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from steps import STEPS

import irgrad as ig
from irgrad.engine.kernel import programs
from irgrad.engine.kernel.checkpoints import LongTape, bytes_of, checkpoints, choices, memory
from irgrad.engine.kernel.options import Options
from irgrad.engine.normalise.segments import Choice
from irgrad.engine.signature.slots import primal_slots


@pytest.mark.parametrize(
    ("said", "number"),
    [(4096, 4096), ("65536", 65536), ("64kB", 2**16), ("1.5MB", 3 * 2**19), ("2GB", 2**31), ("1MiB", 2**20)],
)
def test_memory(said: object, number: int) -> None:
    assert memory(said) == number


@pytest.mark.parametrize("said", ["much", "-3MB", 0, -1, True, None, 1.5, "12TB"])
def test_no_memory(said: object) -> None:
    with pytest.raises(ig.IRGradError, match="is no amount of memory"):
        memory(said)


def test_choices() -> None:
    said = checkpoints({"a.c:3": 32, 7: "recompute", "b.c:9": "binomial:16", "c.c:1": "memory:1MB"}, "2MB")
    assert choices(Options(checkpoint=said)) == (
        ("a.c:3", Choice(unit=32)), ("7", Choice()), ("b.c:9", Choice(states=16)), ("c.c:1", Choice(bytes=2**20)),
        ("*", Choice(bytes=2**21)),
    )  # fmt: skip
    assert choices(Options(checkpoint=said, device=True)) == ()
    assert checkpoints(None) == ()


@pytest.mark.parametrize("choice", [0, -2, True, 1.5, "store", "binomial", "binomial:x", "memory:", None])
def test_no_choice(choice: Any) -> None:
    with pytest.raises(ig.IRGradError, match=r"is no choice|is no amount of memory") as refused:
        checkpoints({"a.c:3": choice})
    assert "to fix" in str(refused.value)


@pytest.mark.parametrize("said", [8, "recompute", [32]])
def test_a_choice_is_for_a_loop(said: Any) -> None:
    with pytest.raises(ig.IRGradError, match="is no choice") as refused:
        checkpoints(said)
    assert "by its file and line" in str(refused.value)


def test_bytes_of_arrays() -> None:
    slots = primal_slots(ig.Signature("f64(f64[n,2] x, f32[n*m+1] y, i32 n, i64 m, f64[k] z)"))
    assert bytes_of(slots) == (
        ("*", ("*", 8, (2, 32, True)), 2),
        ("*", 4, ("+", ("*", (2, 32, True), (3, 64, True)), 1)), 4, 8, None, 8,
    )  # fmt: skip


SOURCE = STEPS + """
double walk(double x, double p, long n) {
    double y = x;
    long t = 0;
    while (y < 9 && t++ < n) y += 1e-3 * __builtin_sin(y * p);
    return y;
}
"""
N = 20
Found = list[Any]


def _pullback(kernel: ig.Kernel, steps: int, x: np.ndarray, y: np.ndarray) -> Found:
    (value, end), pullback = ig.vjp(kernel, x, y, steps)
    return [value, end, *pullback((1.0, end)), *pullback((0.5, None))]


def _gradient(kernel: ig.Kernel, steps: int, x: np.ndarray, y: np.ndarray) -> Found:
    gradient = ig.value_and_grad(kernel, wrt=("x", "y"))
    return [part for _ in range(2) for value, rows in [gradient(x, y, steps)] for part in (value, *rows)]


@pytest.mark.parametrize("call", [_pullback, _gradient])
def test_a_long_tape_becomes_states(call: Callable[..., Found], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "free_memory", lambda: 1 << 20)
    library, signature = ig.load(SOURCE), "f64(f64[n] x, inout f64[n] y, i64 n, i64 steps)"
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.1, 0.9, N), rng.uniform(0.1, 0.9, N)
    kept = x.copy(), y.copy()
    kernels = [library.kernel("f", signature, tape_memory=how) for how in (None, "auto")]
    for steps in (5, 8000, 5, 8000, 8001):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            plain, bounded = (call(kernel, steps, x, y) for kernel in kernels)
        for a, b in zip(plain, bounded, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-13)
        assert np.array_equal(x, kept[0]) and np.array_equal(y, kept[1])
        words = [str(one.message) for one in told if issubclass(one.category, LongTape)]
        assert all("a derivative of `f` would take more than 524,288 bytes" in word for word in words)
        assert len(words) <= 1


def test_it_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "free_memory", lambda: 1 << 20)
    gradient = ig.grad(ig.load(SOURCE).kernel("walk", "f64(f64 x, f64 p, i64 n)"))
    plain = ig.grad(ig.load(SOURCE).kernel("walk", "f64(f64 x, f64 p, i64 n)", tape_memory=None))
    with pytest.warns(LongTape, match=r"which runs until it is left: its loops keep states within 524,288 bytes"):
        assert np.isclose(gradient(1.0, 0.5, 100_000), plain(1.0, 0.5, 100_000), rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (100_000, 10, 200_000):
            assert np.isclose(gradient(1.0, 0.5, n), plain(1.0, 0.5, n), rtol=1e-9)


def test_only_where_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "free_memory", lambda: 1 << 20)
    library, signature = ig.load(SOURCE), "f64(f64 x, f64 p, i64 n)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for said in ({"tape_memory": None}, {"tape_memory": "1MB"}, {"checkpoint": {"*": 10}}):
            ig.grad(library.kernel("walk", signature, **said))(1.0, 0.5, 100_000)
    assert Options().bounded
    assert str(Options()) != str(Options(bounded=False)), "some loops are fused where nothing else is said"
    assert checkpoints(None, "auto") == ()


def test_a_loop_that_cannot_run_again_keeps_its_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "free_memory", lambda: 1 << 20)
    source = """#include <stdio.h>
double f(double x, long n) {
    for (long t = 0; t < n; t++) { x += 1e-3 * __builtin_sin(x); if (t % 1000 == 7) fflush(stdout); }
    return x;
}"""
    library = ig.load(source)
    for _ in ("made", "from the cache"):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = ig.grad(library.kernel("f", "f64(f64 x, i64 n)"))(1.0, 200_000)
        assert {"LongTape", "WholeTape"} <= {one.category.__name__ for one in told}
        library = ig.load(source)
    plain = ig.grad(library.kernel("f", "f64(f64 x, i64 n)", tape_memory=None))(1.0, 200_000)
    assert found == plain


JACOBIAN = """
void g(const double *x, double *out, long n, long steps) {
    for (long i = 0; i < n; i++) {
        double y = x[i];
        for (long t = 0; t < steps; t++) y += 1e-3 * __builtin_sin(y * x[i]) * x[(i + t) % n];
        out[i] = y;
    }
}
"""


@pytest.mark.parametrize("door", ["hvp", "hessian", "jacrev", "threads"])
def test_every_derivative(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "free_memory", lambda: 1 << 20)
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.1, 0.9, 4), rng.uniform(0.1, 0.9, 4)
    scalar, vector = "f64(f64[n] x, inout f64[n] y, i64 n, i64 steps)", "void(f64[n] x, out f64[n] o, i64 n, i64 steps)"

    def call(how: str | None, steps: int) -> Any:
        library = ig.load(SOURCE + JACOBIAN)
        f, g = library.kernel("f", scalar, tape_memory=how), library.kernel("g", vector, tape_memory=how)
        if door == "hvp":
            return ig.hvp(f, (x, y, steps), np.ones(4))
        if door == "hessian":
            return ig.hessian(f)(x, y, steps)
        if door == "jacrev":
            return ig.jacrev(g)(x, steps)
        shared = library.kernel("g", vector, tape_memory=how, threads=2)
        return ig.vjp(shared, x, steps, wrt="x")[1](np.ones(4))

    np.testing.assert_allclose(call("auto", 5), call(None, 5), rtol=1e-12)
    with pytest.warns(LongTape, match="would take more than 524,288 bytes"):
        found = call("auto", 40_000)
    np.testing.assert_allclose(found, call(None, 40_000), rtol=1e-9)
