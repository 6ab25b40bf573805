"""Control flow run backwards: every way through a function is retraced, whatever its shape."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, gradient, make

SWITCH = """
void f(double *x, int *k, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++)
        switch (k[i]) {
        case 0: s = s * x[1]; break;
        case 1: s = s + x[2] * x[2];            /* falls through */
        case 2: s = sin(s); break;
        case 5: s = 2 * s; continue;
        default: s = s * s;
        }
    *o = s;
}"""
EXITS = """
void f(double *x, long *n, double *o) {
    double s = x[0];
    for (long i = 0; i < *n; i++) {
        for (long j = 0; j < *n; j++) {
            s = s + 0.1 * x[1] * s;
            if (s > 3) goto far;
            if (j > i) break;
        }
        if (s < -5) { *o = -s; return; }
        s = s * x[2];
    }
    *o = s * s;
    return;
far:
    *o = s * x[0];
}"""


def _complex(f: object, x: np.ndarray) -> np.ndarray:
    """The gradient by complex steps."""
    assert callable(f)
    h = 1e-30
    return np.array([f(x + 1j * h * e).imag / h for e in np.eye(len(x))])


@pytest.mark.parametrize("seed", range(6))
def test_switches_in_a_loop(seed: int) -> None:
    k = np.random.default_rng(seed).choice([0, 1, 2, 3, 5], 9).astype(np.int32)
    x = np.array([0.7, -1.2, 0.9])

    def f(z: np.ndarray) -> complex:
        s = z[0]
        for which in k:
            if which == 0:
                s = s * z[1]
            elif which in (1, 2):
                s = np.sin(s + z[2] * z[2]) if which == 1 else np.sin(s)
            else:
                s = 2 * s if which == 5 else s * s
        return complex(s)

    (dx, _), _made = gradient(SWITCH, "f", "dccd", x, k, np.array([9]), OUT)
    np.testing.assert_allclose(dx, _complex(f, x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 3, 8])
@pytest.mark.parametrize("x", [(0.5, 0.3, 1.1), (1.0, 2.0, 2.0), (-2.0, 3.0, 1.5), (0.2, -1.0, -1.3)])
def test_loops_that_are_left_early(n: int, x: tuple[float, float, float]) -> None:
    def f(z: np.ndarray) -> complex:
        s = z[0]
        for i in range(n):
            for j in range(n):
                s = s + 0.1 * z[1] * s
                if s.real > 3:
                    return complex(s * z[0])
                if j > i:
                    break
            if s.real < -5:
                return complex(-s)
            s = s * z[2]
        return complex(s * s)

    at = np.array(x)
    (dx, _), _made = gradient(EXITS, "f", "dcd", at, np.array([n]), OUT)
    np.testing.assert_allclose(dx, _complex(f, at), rtol=1e-12, atol=1e-14)


def test_a_branch_that_can_be_decided_again_is_not_recorded() -> None:
    source = """
    void f(double *x, long *n, double *o) {
        double s = 0;
        for (long i = 0; i < *n; i++) { if (i & 1) s += x[i] * x[i]; else s += exp(x[i]); }
        *o = s;
    }"""
    made = make(source, "f", "reverse", ["dup", "const", "dup"])
    assert not made.calls("irgrad.tape.alloc")


def test_the_last_iteration_of_an_empty_loop_is_none() -> None:
    source = """
    void f(double *x, long *n, double *o) { double s = x[0]; for (long i = *n; i > 0; i--) s *= x[1]; *o = s; }"""
    for n, want in ((0, [1, 0]), (-3, [1, 0]), (1, [3.0, 2.0]), (2, [9.0, 12.0])):
        (dx, _), _made = gradient(source, "f", "dcd", np.array([2.0, 3.0]), np.array([n]), OUT)
        assert dx.tolist() == want, n
