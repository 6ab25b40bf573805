"""Bounds of rounding errors, against the same expressions in sixty digits. Programs: `notation_programs/rounding.c`."""

from __future__ import annotations

import random

import mpmath
import numpy as np
import pytest
from handwritten.made import make

import irgrad
from irgrad.engine.enzyme.lower import lower
from irgrad.rules.errors import Unsupported

FUNCTIONS = ("sin", "cos", "exp", "atan", "tanh", "sqrt(1.5 + sin", "log(2.5 + cos")


def expression(rng: random.Random, depth: int) -> str:
    """An expression of C and of Python, in x, y and z."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice("xyz")
    if rng.random() < 0.35:
        name = rng.choice(FUNCTIONS)
        return f"{name}({expression(rng, depth - 1)})" + ")" * name.count("(")
    first, second = expression(rng, depth - 1), expression(rng, depth - 1)
    return f"({first} {rng.choice('+-*')} {second})" if rng.random() < 0.8 else f"({first} / (2 + {second} * {second}))"


@pytest.mark.parametrize("seed", range(40))
def test_the_error_is_below_the_bound(seed: int) -> None:
    """Also where the arguments are wrong by as much as is said."""
    rng = random.Random(seed)
    text = expression(rng, 5)
    if not set("xyz") & set(text.replace("exp", "")):
        text += " * x"
    source = f"""#include <math.h>
    void f(double *v, double *o) {{ double x = v[0], y = v[1], z = v[2]; *o = {text}; }}"""
    made = make(source, "f", "forward", ["dup", "dup"], "-ffp-contract=off", rounding=True)
    scope = {name: getattr(mpmath, name) for name in ("sin", "cos", "exp", "atan", "tanh", "sqrt", "log")}
    for _ in range(4):
        v = np.array([rng.uniform(-2, 2) for _ in range(3)])
        given = np.array([10.0 ** rng.uniform(-15, -9) for _ in range(3)])
        for errors in (np.zeros(3), given):
            o, bound = np.zeros(1), np.zeros(1)
            made(v, errors.copy(), o, bound)
            with mpmath.workdps(60):
                for signs in ((1, 1, 1), (1, -1, 1), (-1, 1, 1), (-1, -1, 1)):
                    rows = zip(map(mpmath.mpf, map(float, v)), signs, map(float, errors), strict=True)
                    at = [value * (1 + sign * mpmath.mpf(error)) for value, sign, error in rows]
                    exact = eval(text, {**scope, **dict(zip("xyz", at, strict=True))})
                    error = abs(float(mpmath.mpf(float(o[0])) - exact))
                    assert error <= bound[0] * (abs(o[0]) or 1.0) * (1 + 1e-6)


def test_lanes_of_vectors_have_errors_of_their_own() -> None:
    source = """
    typedef double four __attribute__((vector_size(32), aligned(8)));
    void f(four *v, four *o) { *o = *v * *v - 1; }"""
    made = make(source, "f", "forward", ["dup", "dup"], "-ffp-contract=off", rounding=True)
    v, o, bound = np.array([1.5, 2.0, 0.1, 1 + 1e-8]), np.zeros(4), np.zeros(4)
    made(v, np.full(4, 1e-12), o, bound)
    u = 2.0**-53
    np.testing.assert_allclose(bound, (2e-12 + u) * v * v / abs(o) + u, rtol=1e-6)


def test_a_call_with_a_rule_is_refused() -> None:
    source = """extern int enzyme_dup; double __enzyme_error_estimate(void *, ...);
    void cblas_daxpy(int n, double a, const double *x, int i, double *y, int j);
    double dot(const double *x, double *y) { cblas_daxpy(3, 2.0, x, 1, y, 1); return y[0]; }
    double f(const double *x, const double *e, double *y, double *g) {
      return __enzyme_error_estimate((void *)dot, enzyme_dup, x, e, enzyme_dup, y, g); }"""
    with pytest.raises(Unsupported, match="an estimate of rounding errors goes through a rule"):
        lower(irgrad.load(source).text)
