"""Which loops can be run again: each reason why one cannot, with its line."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.differentiate.tape.long_tapes import WholeTape

HEAD = "#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n"
SIGNATURE = "f64(f64[n] x, i64 n, i64 steps)"
AGAIN = "nothing says that a second call would do the same"
REFUSED = {
    "it prints": (AGAIN, """double f(const double *x, long n, long steps) {
        double s = 1;
        for (long t = 0; t < steps; t++) { s = sin(s) * x[t % n]; if (s > 2) puts("large"); }
        return s;
    }"""),
    "rand": (AGAIN, """double f(const double *x, long n, long steps) {
        double s = 1;
        for (long t = 0; t < steps; t++) s = sin(s) * x[rand() % n];
        return s;
    }"""),
    "volatile": ("is volatile, atomic or of an unknown effect", """volatile int flag;
    double f(const double *x, long n, long steps) {
        double s = 1;
        for (long t = 0; t < steps; t++) { flag = t; s = sin(s) * x[t % n]; }
        return s;
    }"""),
    "atomic": ("is volatile, atomic or of an unknown effect", """static int calls;
    double f(const double *x, long n, long steps) {
        double s = 1;
        for (long t = 0; t < steps; t++) s = sin(s) * x[__atomic_fetch_add(&calls, 1, 5) % n];
        return s;
    }"""),
    "older memory is freed": ("memory from before the loop is freed in it|hands on memory that it made", """
    double f(const double *x, long n, long steps) {
        double *w = malloc(n * sizeof *w), s = 0.3;
        for (long i = 0; i < n; i++) w[i] = x[i];
        for (long t = 0; t < steps; t++) {
            double *v = malloc(n * sizeof *v);
            for (long i = 0; i < n; i++) v[i] = sin(w[i]) * s + x[i];
            s = v[t % n] * w[(t + 1) % n];
            free(w);
            w = v;
        }
        free(w);
        return s;
    }"""),
    "freed on the way": ("memory from before the loop is freed in it", """
    double f(const double *x, long n, long steps) {
        double *w = malloc(n * sizeof *w), s = 0.3;
        for (long i = 0; i < n; i++) w[i] = x[i];
        for (long t = 0; t < steps; t++) {
            if (w && s > 1.2) { s += w[1]; free(w); w = 0; }
            s = sin(s) * x[t % n] + (w ? w[0] * w[0] : 0);
        }
        return s;
    }"""),
    "a list that grows": ("leaves the address of its own memory behind|hands on memory that it made", """
    struct l { double v; struct l *next; };
    double f(const double *x, long n, long steps) {
        struct l *head = 0;
        double s = 0;
        for (long t = 0; t < steps; t++) {
            struct l *e = malloc(sizeof *e);
            e->v = x[t % n]; e->next = head; head = e;
        }
        for (struct l *e = head; e; e = e->next) s += sin(e->v);
        return s;
    }"""),
    "an address in a variable": ("an address is stored in memory that outlives an iteration", """
    double f(const double *x, long n, long steps) {
        const double *best[8] = {x, x, x, x, x, x, x, x};
        double s = 0.3;
        for (long t = 0; t < steps; t++) { best[t % 8] = x + t % n; s = sin(s) * *best[(3 * t + 1) % 8] + 0.1; }
        return s * *best[steps % 8];
    }"""),
    "rows": ("how far it reaches into a row is not known before the loop", """
    double f(const double *x, long n, long steps) {
        double **r = malloc(n * sizeof *r), s = 0;
        for (long i = 0; i < n; i++) {
            r[i] = malloc((i + 1) * sizeof **r);
            for (int j = 0; j <= i; j++) r[i][j] = x[i];
        }
        for (long t = 0; t < steps; t++)
            for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) r[i][j] = sin(r[i][j + 1]);
        for (long i = 0; i < n; i++) s += r[i][0];
        return s;
    }"""),
    "rows of several lengths": ("its subscript depends on what the loop computes", """
    double f(const double *x, long n, long steps) {
        double *r[6], s = 0;
        #pragma clang loop unroll(disable)
        for (int i = 0; i < 6; i++) { r[i] = malloc((i + 1) * sizeof(double)); r[i][0] = x[i % n]; r[i][i] = 0.5; }
        for (long t = 0; t < steps; t++)
            for (long i = 1; i < 6; i++) { r[i][0] *= 0.9; r[i][t * t % i] = sin(r[i][t % i]); }
        #pragma clang loop unroll(disable)
        for (int i = 0; i < 6; i++) s += r[i][0];
        return s;
    }"""),
    "rows that are written through": ("its address is read from memory that the loop writes", """
    double f(const double *x, long n, long steps) {
        double **r = malloc(n * sizeof *r), s = 0;
        for (long i = 0; i < n; i++) { r[i] = malloc(8 * sizeof **r); for (int j = 0; j < 8; j++) r[i][j] = x[i]; }
        for (long t = 0; t < steps; t++) {
            if (t == 3) r[0] = 0;
            for (long i = 1; i < n; i++) r[i][t % 8] = sin(r[i][(t + 1) % 8]);
        }
        for (long i = 0; i < n; i++) s += r[i] ? r[i][0] : 0.5;
        return s;
    }"""),
}  # fmt: skip
LINES = {
    "volatile": 7, "atomic": 7, "older memory is freed": 8, "freed on the way": 8, "an address in a variable": 8,
    "it prints": 6, "rand": 6, "a list that grows": 9, "rows": 11, "rows that are written through": 8,
    "rows of several lengths": 9,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    reason, source = REFUSED[name]
    kernel = ig.load(HEAD + source).kernel("f", SIGNATURE, checkpoint={LINES[name]: 2})
    with pytest.raises(ig.Unsupported, match=reason) as refused:
        ig.grad(kernel)(np.ones(3), 4)
    assert f"the loop at {LINES[name]} cannot be run again" in str(refused.value)
    assert "leave it out of `checkpoint`" in str(refused.value)


@pytest.mark.parametrize("name", ["a list that grows", "rows"])
def test_all_loops_means_those_that_can(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others keep their tape, with a warning."""
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    x = np.array([0.3, 0.5, 0.9])
    library = ig.load(HEAD + REFUSED[name][1])
    wanted = ig.grad(library.kernel("f", SIGNATURE))(x, 5)
    kernel = library.kernel("f", SIGNATURE, tape_memory="1MB")
    told = rf":{LINES[name]}:.* keeps a tape of all its iterations: .*({REFUSED[name][0]})"
    with pytest.warns(WholeTape, match=told):
        found = ig.grad(kernel)(x, 5)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_memory_of_conditions() -> None:
    """A vector of n elements allocates nothing where n is 0: its address is null then."""
    kernel_source = HEAD + """double f(const double *x, long n, long steps) {
        double *u = n > 2 ? malloc(n * sizeof *u) : 0, s = 1;
        for (long t = 0; t < steps; t++) {
            if (u) u[t % n] = s * x[t % n];
            s = 0.5 * s + (u ? sin(u[0]) : x[0]);
        }
        free(u);
        return s;
    }"""
    library = ig.load(kernel_source)
    for x in (np.array([0.4, 0.2, 0.9]), np.array([0.3, 0.1])):
        wanted = ig.grad(library.kernel("f", SIGNATURE))(x, 9)
        other = ig.grad(library.kernel("f", SIGNATURE, checkpoint={"*": 2}))(x, 9)
        np.testing.assert_allclose(other, wanted, rtol=1e-13)


def test_sizes_that_are_no_parameters() -> None:
    source = """void f(double *x) {
        for (int t = 0; t < 9; t++) for (int i = 1; i < 300; i++) x[(long)x[i] + i] *= x[i - 1]; }"""
    kernel = ig.load(source).kernel("f", "void(inout f64[n] x)", checkpoint={2: 2})
    with pytest.raises(ig.Unsupported, match="a size in its shape is no C parameter"):
        ig.vjp(kernel, np.ones(300))[1](np.ones(300))
    x, rows = np.linspace(0.9, 0.99, 300), []
    for options in ({}, {"checkpoint": {2: 2}}):
        kernel = ig.load(source).kernel("f", "void(inout f64[300] x)", **options)
        rows.append(ig.vjp(kernel, x)[1](np.ones(300))[0])
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-12)


USED_BEFORE = r"""__attribute__((noinline)) static double smooth(const double *x, long n) {
    double w[8], s = 0;
    for (int i = 0; i < 8; i++) w[i] = sin(x[i % n] + i);
    for (int i = 0; i < 8; i++) s += w[i] * w[(i + 3) % 8];
    return s;
}
double f(const double *x, long n, long steps) {
    double *y = malloc(n * sizeof *y), s = smooth(x, n);
    for (long i = 0; i < n; i++) y[i] = x[i];
    for (long t = 0; t < steps; t++)
        for (long i = 0; i < n; i++) y[i] = 0.5 * y[i] + 0.1 * smooth(y, n);
    for (long i = 0; i < n; i++) s += y[i];
    free(y);
    return s;
}"""
UNDER_WAY = r"""static double g(const double *x, double *outer, long n, long depth, long steps);
__attribute__((noinline)) static double loop(const double *x, double *outer, long n, long depth, long steps) {
    double s = 0;
    for (long t = 0; t < steps; t++) {
        outer[t % 4] = sin(outer[(t + 1) % 4]) * x[t % n];
        if (depth > 0) s += 0.1 * g(x, outer, n, depth - 1, steps);
        s += outer[t % 4];
    }
    return s;
}
__attribute__((noinline)) static double g(const double *x, double *outer, long n, long depth, long steps) {
    double w[4];
    for (int i = 0; i < 4; i++) w[i] = outer[i] * x[i % n];
    double s = loop(x, w, n, depth, steps);
    for (int i = 0; i < 4; i++) s += w[i] * outer[i];
    return s;
}
double f(const double *x, long n, long steps) {
    double w[4] = {x[0], 1, x[1], 2};
    return g(x, w, n, 1, steps);
}"""


@pytest.mark.filterwarnings("error")
def test_variables_of_functions_that_ran_before_the_loop_as_well() -> None:
    x = np.array([0.3, -0.5, 0.8])
    library = ig.load(HEAD + USED_BEFORE)
    wanted = ig.grad(library.kernel("f", SIGNATURE))(x, 7)
    np.testing.assert_array_equal(ig.grad(library.kernel("f", SIGNATURE, tape_memory="1kB"))(x, 7), wanted)


def test_variables_of_functions_that_are_under_way() -> None:
    """The loop writes to a variable of the function around it, which it calls once more."""
    x = np.array([0.3, -0.5, 0.8])
    library = ig.load(HEAD + UNDER_WAY)
    wanted = ig.grad(library.kernel("f", SIGNATURE))(x, 7)
    with pytest.warns(WholeTape, match="the bytes of alloca %w"):
        found = ig.grad(library.kernel("f", SIGNATURE, tape_memory="1kB"))(x, 7)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
