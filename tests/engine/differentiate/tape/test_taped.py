"""The two halves of a root, run apart on buffers that have moved, against complex steps and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from handwritten.halves import Halves, complex_step, run_halves

from irgrad.engine.differentiate.with_tape import reverse_name
from irgrad.engine.ir.printer import to_text

N = 7
X = np.linspace(0.3, 1.4, N)
W = np.cos(np.arange(1.0, N + 1))


def recurrence(x: Any) -> Any:
    s, out = 0.5, []
    for v in x:
        s = np.sin(s * v) + v
        out.append(s)
    return np.array(out)


def in_place(x: Any) -> Any:
    y = np.array(x)
    for i in range(1, len(y)):
        y[i] = y[i] * np.exp(-y[i - 1])
    return y


def with_work(x: Any) -> Any:
    work = np.array([np.exp(v) for v in x])
    for i in range(1, len(x)):
        work[i] = work[i] * work[i - 1] * x[i]
    return work * work


def nested(x: Any) -> Any:
    out = []
    for v in x:
        t = v
        for k in range(len(x)):
            t = np.sin(t) * (1 + 0.1 * k) + x[k] * t
        out.append(t)
    return np.array(out)


def by_sign(x: Any) -> Any:
    out, s = [], 0.1
    for v in x:
        s = np.exp(-s) * v if np.real(v * s) > 0.4 else np.sin(s) + v
        out.append(s)
    return np.array(out)


def ring(x: Any) -> Any:
    y, v = np.array(x), 0 * np.array(x)
    for _ in range(3):
        v = v - 0.1 * (np.sin(y) + 0.1 * (y - np.roll(y, -1)))
        y = y + 0.1 * v
    return y


SOURCES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "recurrence": ("""void f(double *x, double *y, long *n) {
        double s = 0.5;
        for (long i = 0; i < *n; i++) { s = sin(s * x[i]) + x[i]; y[i] = s; } }""", recurrence),
    "outputs are overwritten": ("""void f(double *x, double *y, long *n) {
        for (long i = 0; i < *n; i++) y[i] = x[i];
        for (long i = 1; i < *n; i++) y[i] *= exp(-y[i - 1]); }""", in_place),
    "memory from malloc": ("""void f(double *x, double *y, long *n) {
        double *work = malloc(*n * sizeof *work);
        for (long i = 0; i < *n; i++) work[i] = exp(x[i]);
        for (long i = 1; i < *n; i++) work[i] *= work[i - 1] * x[i];
        for (long i = 0; i < *n; i++) y[i] = work[i] * work[i];
        free(work); }""", with_work),
    "memory on the stack": ("""void f(double *x, double *y, long *n) {
        double work[64];
        for (long i = 0; i < *n; i++) work[i] = exp(x[i]);
        for (long i = 1; i < *n; i++) work[i] *= work[i - 1] * x[i];
        for (long i = 0; i < *n; i++) y[i] = work[i] * work[i]; }""", with_work),
    "memory of variable size": ("""void f(double *x, double *y, long *n) {
        double work[*n + 1];
        for (long i = 0; i < *n; i++) work[i] = exp(x[i]);
        for (long i = 1; i < *n; i++) work[i] *= work[i - 1] * x[i];
        for (long i = 0; i < *n; i++) y[i] = work[i] * work[i]; }""", with_work),
    "a nest of loops": ("""void f(double *x, double *y, long *n) {
        for (long i = 0; i < *n; i++) {
          double t = x[i];
          for (long k = 0; k < *n; k++) t = sin(t) * (1 + 0.1 * k) + x[k] * t;
          y[i] = t; } }""", nested),
    "an index that is carried along": ("""void f(double *x, double *y, long *n) {
        double v[64] = {0};
        for (long i = 0; i < *n; i++) y[i] = x[i];
        for (long k = 0; k < 3; k++) {
          for (long i = 0; i < *n; i++) v[i] -= 0.1 * (sin(y[i]) + 0.1 * (y[i] - y[(i + 1) % *n]));
          for (long i = 0; i < *n; i++) y[i] += 0.1 * v[i]; } }""", ring),
    "branches on values": ("""void f(double *x, double *y, long *n) {
        double s = 0.1;
        for (long i = 0; i < *n; i++) {
          if (x[i] * s > 0.4) s = exp(-s) * x[i]; else s = sin(s) + x[i];
          y[i] = s; } }""", by_sign),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_gradients_of_a_tape_that_was_moved(name: str) -> None:
    """One tape serves two cotangents; it lies in read-only memory elsewhere, as do the arguments."""
    source, f = SOURCES[name]
    made = Halves(source)
    y, gradients = run_halves(made, X, [W, W * W])
    np.testing.assert_allclose(y, f(X), rtol=1e-13)
    for w, gradient in zip((W, W * W), gradients, strict=True):
        np.testing.assert_allclose(gradient, complex_step(f, X, w), rtol=1e-11, atol=1e-12)
    assert made.bytes(N) > 0


@pytest.mark.parametrize("n", [0, 1, 2])
def test_short_loops(n: int) -> None:
    _, (gradient,) = run_halves(Halves(SOURCES["recurrence"][0]), X[:n], [W[:n]])
    np.testing.assert_allclose(gradient, complex_step(recurrence, X[:n], W[:n]), rtol=1e-12)


def test_a_branch_on_an_address_is_remembered() -> None:
    """What was decided by an address must not be decided again where the buffers lie elsewhere."""
    made = Halves("""void f(double *x, double *y, long *n) {
        double s = x[0];
        if (((unsigned long)x >> 3) & 1) for (long i = 0; i < *n; i++) { s = sin(s) * x[i]; y[i] = s; }
        else for (long i = 0; i < *n; i++) { s = exp(-s * x[i]); y[i] = s; } }""")  # fmt: skip

    def f(x: Any, odd: bool) -> Any:
        s, out = x[0], []
        for v in x:
            s = np.sin(s) * v if odd else np.exp(-s * v)
            out.append(s)
        return np.array(out)

    room = np.zeros(N + 3)
    start = room.ctypes.data // 8 % 2
    for odd in (False, True):
        at = (start + odd) % 2
        there, elsewhere = room[at : at + N], np.zeros(N + 3)
        there[:] = X
        tape, count = np.zeros(made.bytes(N) + 64, np.uint8), np.array([N])
        tape = tape[-tape.ctypes.data % 64 :][: made.bytes(N)]
        y = np.zeros(N)
        made.half(made.pair.name)(there, y, count, tape, np.array([tape.nbytes]))
        np.testing.assert_allclose(y, f(X, odd), rtol=1e-13)
        other = (elsewhere.ctypes.data // 8 + odd + 1) % 2
        moved = elsewhere[other : other + N]
        moved[:] = X
        assert (moved.ctypes.data // 8) % 2 != there.ctypes.data // 8 % 2
        dx = np.zeros(N)
        made.half(reverse_name(made.pair.note))(moved, dx, W.copy(), count, tape)
        np.testing.assert_allclose(dx, complex_step(lambda z, o=odd: f(z, o), X, W), rtol=1e-11)


REFUSED = {
    "cannot be counted before it": """void f(double *x, double *y, long *n) {
        double s = x[0];
        while (s > 0.1) s = s * sin(s);
        y[0] = s; }""",
    "do not follow from integer arguments": """void f(double *x, double *y, long *n) {
        double s = x[0];
        for (long i = 0; i < (long)x[1]; i++) s = sin(s);
        y[0] = s; }""",
    "an address would have to be kept": """NOINLINE static double deep(double a, long k) {
        return k <= 0 ? a : sin(deep(a * a, k - 1)) * deep(a + 1, k - 2); }
      void f(double *x, double *y, long *n) { y[0] = deep(x[0], *n); }""",
    "allocated in a loop": """void f(double *x, double *y, long *n) {
        for (long i = 0; i < *n; i++) {
          double *t = malloc(*n * 8);
          for (long k = 0; k < *n; k++) t[k] = exp(x[k]);
          for (long k = 0; k < *n; k++) y[i] += t[k] * t[*n - 1 - k];
          free(t); } }""",
}


@pytest.mark.parametrize("because", REFUSED)
def test_what_does_not_fit_is_refused_with_its_reason(because: str) -> None:
    made = Halves(REFUSED[because])
    assert made.pair.name == "" and because in made.note["because"]


def test_variables_are_read_when_the_primal_runs() -> None:
    """Somebody may have written them before the reverse sweep."""
    made = Halves("""extern double scale;
      void f(double *x, double *y, long *n) { for (long i = 0; i < *n; i++) y[i] = sin(scale * x[i]) * x[i]; }""")
    text = to_text(made.module)
    forward, _, reverse = text[text.index(f"@{made.pair.name}") :].partition(f"@{reverse_name(made.pair.note)}")
    assert "@scale" in forward and "@scale" not in reverse[: reverse.index("\n}")]
