"""Loops that keep states in place of a tape: the same gradients, the same values, less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad import engine

SIGNATURE = "f64(f64[n] x, i64 n, i64 steps)"
CHOICES: tuple[Any, ...] = (1, 3, 100, "recompute", "binomial:2", "binomial:5", "memory:2kB", "memory:1MB")
HEAD = "#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n"
LOOPS = {
    "scalars": """double f(const double *x, long n, long steps) {
        double a = x[0], b = 1;
        for (long t = 0; t < steps; t++) { double c = a; a = sin(a * x[1]) + b; b = 0.5 * b + c * 0.1; }
        return a * b;
    }""",
    "buffers that change places": """double f(const double *x, long n, long steps) {
        double *u = malloc(n * sizeof *u), *w = malloc(n * sizeof *w), e = 0;
        memcpy(u, x, n * sizeof *u);
        for (long t = 0; t < steps; t++) {
            for (long i = 0; i < n; i++) w[i] = u[i] + 0.1 * sin(u[(i + 1) % n]);
            double *s = u; u = w; w = s;
        }
        for (long i = 0; i < n; i++) e += u[i] * u[i];
        free(u); free(w);
        return e;
    }""",
    "scratch of an iteration": """double f(const double *x, long n, long steps) {
        double s = 0.5;
        for (long t = 0; t < steps; t++) {
            double *w = malloc(n * sizeof *w), e = 0;
            for (long i = 0; i < n; i++) w[i] = sin(s * x[i] + t);
            for (long i = 0; i < n; i++) e += w[i] * w[n - 1 - i];
            s = tanh(e) + 0.3 * s;
            free(w);
        }
        return s;
    }""",
    "a pointer that walks": """double f(const double *x, long n, long steps) {
        double s = 0.3;
        const double *q = x;
        for (long t = 0; t < steps; t++) { s = sin(s) + *q; q++; if (q == x + n) q = x; }
        return s;
    }""",
    "a pointer that walks at two speeds": """double f(const double *x, long n, long steps) {
        double y[64];
        for (int i = 0; i < 64; i++) y[i] = x[i % n];
        for (double *p = y, *e = y + 60; p < e; p += sin(*p) < x[0] ? 2 : 1) *p = 0.6 * p[1] + 0.3 * *p * x[1];
        memmove(y + 1, y, 6 * sizeof *y);
        return y[0] + y[1] * y[5] + y[50];
    }""",
    "two ends": """double f(const double *x, long n, long steps) {
        double s = x[0];
        long t = 0;
        for (;; t++) {
            if (t >= steps) { s *= 2; break; }
            if (s > 5) { s -= x[1]; break; }
            s = s * 1.05 + x[t % n] * x[t % n];
        }
        return s * t;
    }""",
    "convergence": """double f(const double *x, long n, long steps) {
        double a = 2;
        for (long t = 0; t < 1000; t++) {
            double d = (a * a * a - x[0] * a - x[1]) / (3 * a * a - x[0]);
            a -= d;
            if (fabs(d) < 1e-13) break;
        }
        return a * x[2];
    }""",
    "integers and structs": """struct p { double m, v; int tag; double a[3]; };
    double f(const double *x, long n, long steps) {
        struct p p = {x[0], x[1], 3, {x[2], x[0], x[1]}};
        unsigned r = 12345;
        for (long t = 0; t < steps; t++) {
            r = r * 1664525u + 1013904223u;
            p.v += sin(p.m) * 0.1 + p.a[r % 3];
            p.m += p.v * 0.05;
            p.a[(r >> 8) % 3] *= 0.9;
            p.tag = (p.tag * 7 + 1) % 5;
            if (p.tag == 2) p.m *= 0.99;
        }
        return p.m * p.v + p.a[0];
    }""",
    "a static workspace": """static double work[64];
    double f(const double *x, long n, long steps) {
        double s = 0;
        for (long i = 0; i < n; i++) work[i] = x[i];
        for (long t = 0; t < steps; t++) {
            for (long i = 0; i < n; i++) work[i] = sin(work[i]) + 0.1 * work[(i * 3 + t) % n];
            s += work[t % n];
        }
        return s;
    }""",
    "memory that is copied, functions that are called": """
    static __attribute__((noinline)) void rhs(const double *y, double *d, long n, double p) {
        for (long i = 0; i < n; i++) d[i] = -p * y[i] + sin(y[(i + 1) % n]);
    }
    double f(const double *x, long n, long steps) {
        double y[16], k[16], b[16], s = 0;
        memcpy(y, x, n * sizeof *x);
        for (long t = 0; t < steps; t++) {
            memcpy(b, y, n * sizeof *b);
            rhs(b, k, n, x[0]);
            for (long i = 0; i < n; i++) y[i] += 0.1 * k[i] * b[(i + 1) % n];
        }
        for (long i = 0; i < n; i++) s += y[i] * y[i];
        return s;
    }""",
    "rows of a table": """double f(const double *x, long n, long steps) {
        double **u = malloc(n * sizeof *u), **w = malloc(n * sizeof *w), s = 0;
        for (long i = 0; i < n; i++) {
            u[i] = malloc(4 * sizeof **u); w[i] = malloc(4 * sizeof **w);
            for (int j = 0; j < 4; j++) w[i][j] = u[i][j] = x[i] + 0.1 * j;
        }
        for (long t = 0; t < steps; t++) {
            for (long i = 1; i < n; i++) {
                memcpy(w[i], u[n - i], 3 * sizeof **w);
                for (int j = 0; j < 3; j++) w[i][j] = 0.5 * sin(w[i][j] + u[i - 1][j + 1]);
            }
            w[0][2] = 0.9 * u[0][3] + 0.1 * u[0][0];
            double **c = u; u = w; w = c;
        }
        for (long i = 0; i < n; i++) for (int j = 0; j < 4; j++) s += u[i][j] * w[i][3 - j];
        for (long i = 0; i < n; i++) { free(u[i]); free(w[i]); }
        free(u); free(w);
        return s;
    }""",
    "rows of some length": """struct grid { double **u; long n, m; };
    static double **table(long n, long m) {
        double **u = malloc(n * sizeof *u);
        for (long i = 0; i < n; i++) u[i] = calloc(m, sizeof **u);
        return u;
    }
    double f(const double *x, long n, long steps) {
        struct grid g = {table(n, 2 * n), n, 2 * n};
        double s = 0;
        for (long i = 0; i < g.n; i++) for (long j = 0; j < g.m; j++) g.u[i][j] = x[i] * (1 + 0.1 * j);
        for (long t = 0; t < steps; t++)
            for (long i = g.n - 1; i > 0; i--) {
                for (long j = 1; j < g.m; j++)
                    if (g.u[i][j] > 0.1) g.u[i][j] = sin(g.u[i - 1][j]) + 0.2 * g.u[i][j - 1];
                g.u[i][(3 * t) % g.m] *= 0.8;
            }
        for (long i = 0; i < g.n; i++) s += g.u[i][i];
        for (long i = 0; i < g.n; i++) free(g.u[i]);
        free(g.u);
        return s;
    }""",
    "tables of tables": """double f(const double *x, long n, long steps) {
        double ***u = malloc(n * sizeof *u), s = 0;
        for (long i = 0; i < n; i++) {
            u[i] = malloc(4 * sizeof **u);
            for (long j = 0; j < 4; j++) {
                u[i][j] = malloc(n * sizeof ***u);
                for (long k = 0; k < n; k++) u[i][j][k] = x[i] + 0.1 * j * x[k];
            }
        }
        for (long t = 0; t < steps; t++)
            for (long i = 1; i < n; i++) for (long j = 0; j < 3; j++) for (long k = 1; k < n; k++)
                u[i][j][k] = sin(u[i][j + 1][k]) + 0.2 * u[i - 1][j][k - 1];
        for (long i = 0; i < n; i++) for (long j = 0; j < 4; j++) s += u[i][j][i] * u[0][j][1];
        for (long i = 0; i < n; i++) { for (long j = 0; j < 4; j++) free(u[i][j]); free(u[i]); }
        free(u);
        return s;
    }""",
    "down, and not all of it": """double f(const double *x, long n, long steps) {
        double s = 0.2;
        long t = steps;
        while (t-- > 0) { if (t % 3 == 0) continue; s = s * exp(-x[t % n]) + 0.1; }
        return s;
    }""",
}
X = np.array([0.9, 0.3, 0.7, 0.5, 1.1, 0.4, 0.8])
STEPS = 23


def made(name: str, **options: Any) -> ig.Kernel:
    return ig.load(HEAD + LOOPS[name]).kernel("f", SIGNATURE, **options)


def segments(kernel: ig.Kernel) -> int:
    """How many loops of a gradient run in segments."""
    active = [i for i, slot in enumerate(kernel.primal.slots) if slot.differentiable]
    return kernel.primal.pullback(active).stage.text.count("define internal { ptr } @irgrad.f.normal.r.aug.f.normal.s")


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_are_those_of_the_tape(name: str) -> None:
    plain = made(name)
    value, gradient = ig.value_and_grad(plain)(X, STEPS)
    numbers = [(plain(X + 1e-6 * e, STEPS) - plain(X - 1e-6 * e, STEPS)) / 2e-6 for e in np.eye(X.size)]
    np.testing.assert_allclose(gradient, numbers, rtol=1e-5, atol=1e-7)
    for choice in CHOICES[: 3 if name != "scalars" else None]:
        kernel = made(name, checkpoint={"*": choice})
        assert segments(kernel) >= 1
        again, other = ig.value_and_grad(kernel)(X, STEPS)
        np.testing.assert_allclose(again, value, rtol=1e-14)
        np.testing.assert_allclose(other, gradient, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", LOOPS)
def test_values_are_those_of_the_tape(name: str) -> None:
    """To the last bit where no operation changes its place; otherwise a loop may be vectorised in one of them."""
    plain, kernel = (made(name, strict_fp=True, **more) for more in ({}, {"checkpoint": {"*": CHOICES[0]}}))
    assert segments(kernel) >= 1
    assert ig.value_and_grad(kernel)(X, STEPS)[0] == ig.value_and_grad(plain)(X, STEPS)[0] == plain(X, STEPS)


@pytest.mark.long
@pytest.mark.parametrize("flags", ["-O0", "-O1", "-O3"])
@pytest.mark.parametrize("name", LOOPS)
def test_every_choice_at_every_level(name: str, flags: str) -> None:
    library = ig.load(HEAD + LOOPS[name], flags=[flags])
    gradient = ig.grad(library.kernel("f", SIGNATURE))(X, STEPS)
    for choice in CHOICES[3:]:
        other = ig.grad(library.kernel("f", SIGNATURE, checkpoint={"*": choice}))(X, STEPS)
        np.testing.assert_allclose(other, gradient, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "line"), [("rows of a table", 10), ("rows of some length", 14), ("tables of tables", 13)])  # fmt: skip
def test_rows_are_in_states(name: str, line: int) -> None:
    """What is named is refused where it cannot be."""
    wanted = ig.grad(made(name))(X, STEPS)
    for choice in (3, "binomial:2"):
        found = ig.grad(made(name, checkpoint={line: choice}))(X, STEPS)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", ["buffers that change places", "scalars", "convergence"])
def test_second_derivatives(name: str) -> None:
    """Forward over reverse, through the states."""
    v = np.linspace(0.5, 1.5, X.size)
    wanted = ig.hvp(made(name), (X, STEPS), v)
    np.testing.assert_allclose(ig.hvp(made(name, checkpoint={"*": 3}), (X, STEPS), v), wanted, rtol=1e-11, atol=1e-12)


INOUT = HEAD + """
void heat(double *u, double *w, long n, long steps, double k) {
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i + 1 < n; i++) w[i] = u[i] + k * sin(u[i - 1] - 2 * u[i] + u[i + 1]);
        for (long i = 1; i + 1 < n; i++) u[i] = w[i];
    }
}
double rounds(double *x, double *y, long n, long steps) {
    double s = 1;
    for (long r = 0; r < 3; r++) {
        for (long t = 0; t < steps; t++)
            for (long i = 0; i < n; i++) x[i] = sin(x[i] + y[i] * x[(i + 1) % n]);
        for (long i = 0; i < n; i++) { s += x[i] * x[i]; x[i] *= 1.1; y[i] *= 1 + 0.01 * s; }
    }
    return s;
}
"""


@pytest.mark.parametrize("choice", ["recompute", 4, "binomial:3"])
def test_the_caller_finds_the_last_state(choice: Any) -> None:
    """Runs again write to the caller's own arrays, which hold what the loop left when the sweep is through."""
    library = ig.load(INOUT)
    signature = "void(inout f64[n] u, inout f64[n] w, i64 n, i64 steps, f64 k)"
    programs = []
    for options in ({}, {"checkpoint": {"*": choice}}):
        kernel = library.kernel("heat", signature, **options)
        program = kernel.primal.vjp([0, 1, 4])
        bound = kernel.bind((X, X * 0, STEPS, 0.1), {})
        rows = {slot.index: row for slot, row in zip(kernel.primal.slots, bound.buffers, strict=True)}
        buffers = [(rows[s.index].copy() if not s.steps else np.ones(s.shape(bound.sizes))) for s in program.slots]  # type: ignore[union-attr]
        programs.append(program.run(buffers, bound.sizes))  # type: ignore[arg-type]
    for (plain, other), slot in zip(zip(*programs, strict=True), program.slots, strict=True):
        if slot.steps:
            np.testing.assert_allclose(other, plain, rtol=1e-12, atol=1e-13)
        else:
            np.testing.assert_array_equal(other, plain)


def test_inner_loops_and_memory_that_changes_later() -> None:
    library = ig.load(INOUT)
    signature = "f64(inout f64[n] x, inout f64[n] y, i64 n, i64 steps)"
    line = str(1 + [row.strip()[:8] for row in INOUT.splitlines()].index("for (lon", 9) + 1)

    def gradients(**options: Any) -> tuple[np.ndarray[Any, Any], ...]:
        outputs, pullback = ig.vjp(library.kernel("rounds", signature, **options), X, X[::-1].copy(), 5)
        return pullback(tuple(np.full_like(out, 1.3) for out in outputs))

    for plain, other in zip(gradients(), gradients(checkpoint={line: 2}), strict=True):
        np.testing.assert_allclose(other, plain, rtol=1e-12, atol=1e-13)


NESTED = HEAD + """
double f(const double *x, long n, long steps) {
    double *u = malloc(n * sizeof *u), *w = malloc(n * sizeof *w), e = 0, s = 0.1;
    memcpy(u, x, n * sizeof *u);
    for (long t = 0; t < steps; t++) {
        for (long k = 0; k < 2 + t % 5; k++) {
            for (long i = 0; i < n; i++) w[i] = u[i] + 0.1 * sin(u[(i + 1) % n] * s);
            memcpy(u, w, n * sizeof *u);
            s = 0.9 * s + 0.1 * u[k % n];
            if (s > 0.4 + 0.1 * (t % 3)) break;
            if (s < -2) { s = -1; break; }
        }
        u[t % n] *= 0.9;
    }
    for (long i = 0; i < n; i++) e += u[i] * u[i];
    free(u); free(w);
    return e * s;
}
"""


@pytest.mark.parametrize(("outer", "inner"), [
    (3, 2), *(pytest.param(*pair, marks=pytest.mark.long) for pair in (
        ("binomial:2", "recompute"), (1, "binomial:1"), ("memory:2kB", 1), ("recompute", "memory:1kB")))])  # fmt: skip
def test_states_within_states(outer: Any, inner: Any) -> None:
    """A time loop in a time loop: its segments run again within those of the other one."""
    library = ig.load(NESTED)
    lines = [number for number, row in enumerate(NESTED.splitlines(), 1) if "(long t" in row or "(long k" in row]
    kernel = library.kernel("f", SIGNATURE, checkpoint=dict(zip(lines, (outer, inner), strict=True)))
    assert segments(kernel) == 2
    value, wanted = ig.value_and_grad(library.kernel("f", SIGNATURE))(X, STEPS)
    again, found = ig.value_and_grad(kernel)(X, STEPS)
    assert again == value
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("choice", [2, pytest.param("binomial:2", marks=pytest.mark.long)])
def test_an_inner_loop_that_ends_in_several_ways(choice: Any) -> None:
    """Each time that it is entered it may be left by another exit."""
    source = """double f(const double *x, long n, long steps) {
        double s = 0.1;
        for (long t = 0; t < steps; t++)
            for (long k = 0; k < 50; k++) {
                s = s * 1.1 + 0.1 * x[(k + t) % n];
                if (s > 1 + t % 3) { s = 0.3 * s; break; }
                if (k > 2 && t % 2) { s = 0.9 * s * x[0]; break; }
            }
        return s;
    }"""
    library = ig.load(source)
    wanted = ig.grad(library.kernel("f", SIGNATURE))(X, STEPS)
    found = ig.grad(library.kernel("f", SIGNATURE, checkpoint={4: choice}))(X, STEPS)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["buffers that change places", pytest.param("convergence", marks=pytest.mark.long)])
def test_batches(name: str) -> None:
    """Samples as lanes, more of them than lanes; each may leave its loop at another time."""
    points = np.stack([X * (1 - 0.02 * k) for k in range(9)])
    wanted = engine.batch_grad(made(name), wrt="x")(points, STEPS)
    found = engine.batch_grad(made(name, checkpoint={"*": 3}), wrt="x")(points, STEPS)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("many", [4, pytest.param(8, marks=pytest.mark.long)])
def test_many_cotangents(many: int) -> None:
    """As lanes of one run, whose shadows have other sizes than the states."""
    library = ig.load(INOUT)
    signature = "void(inout f64[n] u, inout f64[n] w, i64 n, i64 steps, f64 k)"
    cotangents = tuple(np.random.default_rng(k).normal(size=(many, X.size)) for k in range(2))
    rows = [engine.multi_vjp(library.kernel("heat", signature, **options), X, 0 * X, STEPS, 0.1)[1](cotangents)
            for options in ({}, {"checkpoint": {"*": 3}})]  # fmt: skip
    for wanted, found in zip(*rows, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_memory_is_bounded() -> None:
    """Far less tape than one of the whole loop, of as much as was allowed."""
    library = ig.load(INOUT)
    signature = "void(inout f64[n] u, inout f64[n] w, i64 n, i64 steps, f64 k)"
    used, rows = [], []
    x = np.sin(np.arange(500.0))
    for options in ({}, {"tape_memory": "1MB"}):
        kernel = library.kernel("heat", signature, **options)
        outputs, pullback = ig.vjp(kernel, x, 0 * x, 2000, 0.1)
        rows.append(pullback((outputs[0], None))[0])
        used.append(kernel.primal.pullback([0, 1, 4]).tape_bytes)
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-11, atol=1e-15 * np.abs(rows[0]).max())
    assert used[0] > 8_000_000
    assert used[1] < 1_000_000


def test_tape_bytes_are_those_of_all_that_is_there_at_once() -> None:
    """The states and the tape of a segment: here one state, and a segment of all iterations."""
    x = np.sin(np.arange(4000.0))
    plain, whole = (made("buffers that change places", **options).tape_bytes(x, STEPS)
                    for options in ({}, {"checkpoint": {"*": STEPS}}))  # fmt: skip
    assert whole - plain > 2 * x.nbytes


def test_under_jax() -> None:
    import jax
    with jax.enable_x64(True):
        plain, kernel = made("buffers that change places"), made("buffers that change places", checkpoint={"*": 4})
        points = np.stack([X, 0.9 * X, 1.1 * X])

        def gradients(k: ig.Kernel) -> Any:
            return jax.jit(jax.vmap(jax.grad(lambda x: k(x, STEPS) ** 2)))(points)

        np.testing.assert_allclose(gradients(kernel), gradients(plain), rtol=1e-12)


def test_another_way_is_no_gradient(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A loop that ends by what it computes, and does not find the state again (planted), raises."""
    from irgrad.engine.differentiate.reverse import segments as emitted

    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(emitted.Half, "restore", lambda self, *args: None)
    kernel = made("convergence", checkpoint={"*": 2})
    with pytest.raises(ig.KernelError, match="ended in another way when its iterations ran again"):
        ig.grad(kernel)(X, STEPS)
    import jax
    with jax.enable_x64(True), pytest.raises(jax.errors.JaxRuntimeError, match="ended in another way"):
        jax.jit(jax.grad(lambda x: kernel(x, STEPS)))(X)
