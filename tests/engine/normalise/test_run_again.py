"""Memory and addresses that are others when a loop is run again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from guarded_programs import close, run

import irgrad as ig

HEAD = "#include <stdlib.h>\n#include <math.h>\n"
SIGNATURE = "f64(f64[n] x, i64 n, i64 steps)"
REFUSED = {
    "one of many allocations": ("an address that it reads may be another one", """
    double f(const double *x, long n, long steps) {
        double *r[6], s = 0;
        for (long t = 0; t < 6; t++) {
            r[t] = malloc(4 * sizeof(double));
            for (int j = 0; j < 4; j++) r[t][j] = x[(t + j) % n];
            for (long k = 0; k < steps; k++)
                for (long i = 0; i <= t; i++)
                    r[i][k % 4] = sin(r[i][(k + 1) % 4]) + 0.3 * r[t - i][k % 4] * x[k % n];
        }
        for (long t = 0; t < 6; t++) { s += r[t][0] * r[t][3]; }
        for (long t = 0; t < 6; t++) free(r[t]);
        return s;
    }"""),
    "the one before as well": ("there may be several from before it", """
    double f(const double *x, long n, long steps) {
        double *old = malloc(8 * sizeof *old), s = 0;
        for (int j = 0; j < 8; j++) old[j] = x[j % n];
        for (long t = 0; t < 6; t++) {
            double *new = malloc(8 * sizeof *new);
            for (int j = 0; j < 8; j++) new[j] = 0.5 * old[j];
            for (long k = 0; k < steps; k++) {
                new[k % 8] = sin(old[(k + 1) % 8]) + new[(k + 3) % 8];
                old[k % 8] = 0.9 * new[(k + 2) % 8] * old[k % 8];
            }
            s += old[0] * new[1];
            free(old);
            old = new;
        }
        free(old);
        return s;
    }"""),
    "a row made by a function": ("there may be several from before it", """
    __attribute__((noinline)) static double *row(const double *x, double *other, long n, long steps) {
        double *r = malloc(4 * sizeof *r);
        for (int j = 0; j < 4; j++) r[j] = x[j % n];
        for (long k = 0; k < steps; k++) {
            r[k % 4] = sin(other ? other[(k + 1) % 4] : 0.5) * r[(k + 2) % 4];
            if (other) other[k % 4] = 0.5 * other[k % 4] + r[k % 4];
        }
        return r;
    }
    double f(const double *x, long n, long steps) {
        double *a = row(x, 0, n, steps), *b = row(x, a, n, steps), *c = row(x, b, n, steps);
        double s = a[0] * b[1] + c[2];
        free(a); free(b); free(c);
        return s;
    }"""),
}  # fmt: skip
LINES = {"one of many allocations": 9, "the one before as well": 10, "a row made by a function": 7}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    """Each of these gave a wrong gradient: a state held the newest memory alone."""
    reason, source = REFUSED[name]
    library = ig.load(HEAD + source)
    with pytest.raises(ig.Unsupported, match=reason):
        ig.grad(library.kernel("f", SIGNATURE, checkpoint={LINES[name]: 2}))(np.array([0.3, 0.5, 0.9]), 4)


SAME = r"""#include <math.h>
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
extern void __enzyme_autodiff(void *, ...);
static double f(double **p, double **q, double *w, long n, long steps) {
    for (long t = 0; t < steps; t++)
        for (long k = 0; k < n; k++)
            for (long i = 0; i < 4; i++) p[k][i] = sin(p[k][i]) + 0.2 * p[n - 1 - k][i] * (t + 1);
    double s = p[0][1] * p[1][2];
    q[0] = w;
    return s * p[1][2];
}
int main(void) {
    double u[2][4] = {{0.3, 0.5, 0.9, 0.4}, {1, 2, 0.3, 0.4}}, w[4] = {1, 2, 3, 4}, du[2][4] = {{0}}, dw[4] = {0};
    double *p[3] = {u[0], u[1], w}, *dp[3] = {du[0], du[1], dw};
    __enzyme_autodiff((void *)f, enzyme_dup, p, dp, enzyme_dup, p + AT, dp + AT, enzyme_dup, w, dw,
                      enzyme_const, 2L, enzyme_const, 5L);
    for (int i = 0; i < 4; i++) printf("%.17g %.17g %.17g\n", du[0][i], du[1][i], dw[i]);
}
"""


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_address_that_another_pointer_changes_later(tmp_path: Path, at: int) -> None:
    """Two pointers of the caller to one table: nothing tells which addresses they meet at."""
    text = SAME.replace("AT", str(at))
    plain, _ = run(tmp_path, text, "-O2")
    states, said = run(tmp_path, text, "-O2", "--tape-memory=1kB")
    assert close(plain, states)
    assert "an address that it reads may be another one" in said


def test_memory_of_each_iteration_of_a_loop_around() -> None:
    """Where a loop touches what the last run of an allocation gave and nothing older, a state holds that."""
    body = """double f(const double *x, long n, long steps) {
        double s = 0;
        for (long t = 0; t < n; t++) s += sample(x, t, n, steps);
        return s;
    }"""
    sample = """static double sample(const double *x, long t, long n, long steps) {
        struct v v = {malloc(8 * sizeof(double)), 8};
        double s = 0;
        for (int j = 0; j < 8; j++) v.u[j] = x[(t + j) % n];
        for (long k = 0; k < steps; k++)
            move(&v, k);
        for (int j = 0; j < 8; j++) s += v.u[j];
        free(v.u);
        return s;
    }
    """
    move = """struct v { double *u; long n; };
    __attribute__((noinline)) static void move(struct v *it, long k) {
        double *u = it->u;
        for (int j = 0; j < 8; j++) u[j] = sin(u[(j + k) % 8]) + 0.5 * u[j];
    }
    """
    x = np.array([0.3, 0.5, 0.9])
    library = ig.load(HEAD + move + "__attribute__((noinline)) " + sample + body)
    wanted = ig.grad(library.kernel("f", SIGNATURE))(x, 5)
    found = ig.grad(library.kernel("f", SIGNATURE, checkpoint={12: 2}))(x, 5)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
    library = ig.load(HEAD + move + sample + body)  # one variable for all iterations: its shadow has the last address
    with pytest.raises(ig.Unsupported, match="an address that it reads may be another one"):
        ig.grad(library.kernel("f", SIGNATURE, checkpoint={12: 2}))(x, 5)
