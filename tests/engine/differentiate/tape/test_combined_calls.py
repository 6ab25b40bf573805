"""Callees that run both of their sweeps in the reverse sweep: which, and that their gradients are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from handwritten.planned import planned
from shares import fast

import irgrad
from irgrad import engine
from irgrad.interop.cli import main

HEAD = "#include <math.h>\n#include <string.h>\n#define NOINLINE __attribute__((noinline))\n"
ROOT = """
%s
void f(double *restrict x, double *restrict p, long *n, double *restrict o) {
    double y = x[0];
    for (long i = 0; i < *n; i++) { y += 0.1 * g(y, p); %s }
    *o = y;
}"""
PLAIN = """NOINLINE static double g(double y, const double *p) {
    double u = sin(y * p[0]); return u * exp(p[1] * u) / (u * u + 2);
}"""
OWN = """NOINLINE static double g(double y, const double *p) {
    double w[3] = {y, y * p[0], p[1]}, v[3];
    memcpy(v, w, sizeof w);
    return sin(v[0] * v[1]) * v[2] / (1 + v[1] * v[1]);
}"""
NESTED = """NOINLINE static double h(double y, const double *p) {
    double u = sin(y * p[0]); return u * u / (1 + u * y);
}
NOINLINE static double g(double y, const double *p) {
    double u = h(y, p); return u * cos(u * y + p[1]) / (1 + u * u);
}"""
BRANCH = """NOINLINE static double g(double y, const double *p) {
    double u = y * p[0], v = u * u + 1;
    if (u > 0.3) { v = sin(u) * v; return v * v / (1 + u * v); }
    return v * p[1] / (u * v + 3);
}"""
LONG_LOOP = """NOINLINE static double g(double y, const double *p) {
    for (int k = 0; k < 40; k++) y = sin(y * p[0]) * y;
    return y;
}"""
RECURSIVE = """NOINLINE static double g(double y, const double *p) {
    double u = sin(y * p[0]); return u > 0.2 ? u * g(u * 0.5, p) : u * p[1];
}"""
WRITES = """static double count;
NOINLINE static double g(double y, const double *p) { count += 1;
    double u = sin(y * p[0]); return u * u / (1 + u * p[1]); }"""
COSTLY = """NOINLINE static double g(double y, const double *p) {
    double c = 0;
    c += sin(p[1]) + sin(p[1] + 1) + sin(p[1] + 2) + sin(p[1] + 3) + sin(p[1] + 4) + sin(p[1] + 5) + sin(p[1] + 6);
    return y * c;
}"""
PRINTS = """int puts(const char *);
NOINLINE static double g(double y, const double *p) { if (y > 1e9) puts("far"); double u = sin(y * p[0]);
    return u * u / (1 + u); }"""
PROGRAMS = {"plain": PLAIN, "own": OWN, "nested": NESTED, "branch": BRANCH}
X, P, N = np.array([0.7]), np.array([0.9, -0.4]), 6


def _combined(callee: str, after: str = "", active: str = "ddcd") -> bool:
    plan = planned(ROOT % (callee, after), active)
    return bool(list(plan.combined.callees()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_without_effects_leave_no_tape(name: str) -> None:
    assert _combined(PROGRAMS[name])


@pytest.mark.parametrize(("callee", "after"), [
    (PLAIN, "p[0] = p[0] * 0.9;"),  # what it reads changes later
    (LONG_LOOP, ""), (RECURSIVE, ""), (WRITES, ""), (PRINTS, ""), (COSTLY, ""),
], ids=["overwritten", "loop", "recursive", "writes", "prints", "costly"])  # fmt: skip
def test_others_keep_theirs(callee: str, after: str) -> None:
    assert not _combined(callee, after, "dddd" if callee is not COSTLY else "dccd")


BODY = """
%s
double f(const double *x, const double *q, long n) {
    double p[2] = {q[0], q[1]}, y = x[0];
    for (long i = 0; i < n; i++) { y += 0.1 * g(y, p); %s }
    return y;
}"""


@pytest.mark.parametrize("after", fast(1, ["p[0] = p[0] * 0.9;", ""]), ids=["overwritten", "kept"])
@pytest.mark.parametrize("callee", [*PROGRAMS.values(), LONG_LOOP, RECURSIVE, WRITES],
                         ids=[*PROGRAMS, "loop", "recursive", "writes"])  # fmt: skip
def test_gradients(callee: str, after: str) -> None:
    source = HEAD + BODY % (callee, after)
    apart, inlined = (
        irgrad.load(text).kernel("f", "f64(f64[1] x, f64[2] q, i64 n)")
        for text in (source, source.replace("NOINLINE static", "static inline __attribute__((always_inline))")
                     if callee is not RECURSIVE else source)
    )  # fmt: skip
    assert engine.check(apart, X, P, N)
    expected = engine.grad(inlined, argnums=(0, 1))(X, P, N)
    for found, wanted in zip(engine.grad(apart, argnums=(0, 1))(X, P, N), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
    np.testing.assert_allclose(engine.hessian(apart, argnums=1)(X, P, N), engine.hessian(inlined, argnums=1)(X, P, N),
                               rtol=1e-11, atol=1e-13)  # fmt: skip
    many = engine.batch_grad(apart, argnums=1, in_axes=(0, None, None))(np.linspace(0.2, 0.9, 4)[:, None], P, N)
    one = [engine.grad(inlined, argnums=1)(np.array([x]), P, N) for x in np.linspace(0.2, 0.9, 4)]
    np.testing.assert_allclose(many, one, rtol=1e-12)


def test_several_cotangents_at_once() -> None:
    source = HEAD + NESTED + """
    void f(const double *x, const double *p, double *out, long n) {
        for (long i = 0; i < n; i++) out[i] = g(x[i] + (i ? out[i - 1] : 0), p);
    }"""
    kernel = irgrad.load(source).kernel("f", "void(f64[n] x, f64[2] p, out f64[n] out, i64 n)")
    x = np.linspace(0.1, 0.8, 5)
    for number in (0, 1):
        forward = engine.jacfwd(kernel, argnums=number)(x, P)
        np.testing.assert_allclose(engine.jacrev(kernel, argnums=number)(x, P), forward, rtol=1e-12, atol=1e-14)


def test_a_tape_of_the_caller_needs_no_addresses() -> None:
    """Under JAX the sweeps run at different times: a callee's tape of its own would have to be an address."""
    import jax

    jax.config.update("jax_enable_x64", True)
    source = HEAD + (BODY % (PLAIN, "")).replace("double p[2] = {q[0], q[1]}, y", "const double *p = q; double y")
    kernel = irgrad.load(source).kernel("f", "f64(f64[1] x, f64[2] q, i64 n)", tape="store")
    value, pull = jax.vjp(lambda x, q: kernel(x, q, N), X, P)
    expected = engine.grad(kernel, argnums=(0, 1))(X, P, N)
    for found, wanted in zip(pull(np.ones_like(value)), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


PROGRAM = """
#include <stdio.h>
int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
struct taped { void *tape; double value; };
struct taped __enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
int main(void) {
    double x[1] = {0.7}, q[2] = {0.9, -0.4}, one[3] = {0}, two[3] = {0};
    __enzyme_autodiff((void *)f, enzyme_dup, x, one, enzyme_dup, q, one + 1, enzyme_const, 6L);
    struct taped t = __enzyme_augmentfwd((void *)f, enzyme_dup, x, two, enzyme_dup, q, two + 1, enzyme_const, 6L);
    x[0] = q[0] = q[1] = 100;
    __enzyme_reverse((void *)f, enzyme_dup, x, two, enzyme_dup, q, two + 1, enzyme_const, 6L, 1.0, t.tape);
    for (int k = 0; k < 3; k++) if (!(fabs(one[k] - two[k]) < 1e-13) || one[0] == 0) return 1;
    printf("%.17g %.17g %.17g\\n", one[0], one[1], one[2]);
    return 0;
}
"""


@pytest.mark.parametrize("callee", PROGRAMS.values(), ids=PROGRAMS)
def test_through_programs(callee: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Called by a C program, in one piece, and in two with the arguments changed in between."""
    path = tmp_path / "program.c"
    path.write_text(HEAD + (BODY % (callee, "")).replace("double f(", "static double f(") + PROGRAM)
    assert main(["run", "-O2", str(path), "-lm"]) == 0
    kernel = irgrad.load(HEAD + BODY % (callee, "")).kernel("f", "f64(f64[1] x, f64[2] q, i64 n)")
    expected = np.concatenate(engine.grad(kernel, argnums=(0, 1))(X, P, N))
    np.testing.assert_allclose([float(word) for word in capfd.readouterr().out.split()], expected, rtol=1e-12)


def test_what_is_explained() -> None:
    kernel = irgrad.load(HEAD + BODY % (NESTED, "")).kernel("f", "f64(f64[1] x, f64[2] q, i64 n)")
    text = str(engine.explain_plan(kernel))
    titles = [line for line in text.splitlines() if line.startswith("tape of ")]
    assert [title.split()[2] for title in titles] == ["f.normal", "g", "h"]
    assert "tape of %call" not in text  # none of them leaves one
