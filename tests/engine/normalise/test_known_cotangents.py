"""Which cotangents are known before a loop: what each condition stands for, and the program that breaks it."""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig

SIGNATURE = "f64(f64[n] x, inout f64[m] w, i64[n] p, i64 n, i64 m)"
SOURCE = """
#include <math.h>
#include <stdlib.h>
double f(const double *x, double *w, const long *p, long n, long m) {
    double s = 0, r = w[1], c = 0.3, result; double *t = calloc(m, sizeof *t), *e = calloc(m, sizeof *e); long ran = 0;
    for (long k = 0; k < m; k++) e[k] = exp(w[k]);
    for (long i = 0; i < n; i++) {
        double v = x[i];
        for (long k = 0; k < m; k++) t[k] = sin(v * e[k]);
        for (long k = 0; k < m; k++) v += t[k] * t[m - 1 - k];
        s += v * v;
        /* more */
    }
    /* behind */
    result = s;
    /* end */
    free(t); free(e);
    return result;
}
"""
FUSED = {
    "as it is": {},
    "a factor, and another one": {"result = s;": "result = -2 * s * w[0] / (1 + w[1] * w[1]) + 3;"},
    "two sums, on conditions": {"/* more */": "if (v > 1) r += v; else r -= 0.5 * x[i];", "result = s": "result = s - r"},
    "a sum that goes on in another loop": {"/* behind */": "for (long k = 0; k < m; k++) s -= e[k] * e[k];"},
    "a sum that may go on": {"/* behind */": "if (n > 3) s += w[1] * w[1];"},
    "a choice between equals": {"result = s;": "result = s > 1 ? s + w[0] : s + w[1];"},
    "into two places": {"/* end */": "w[m - 1] = 2 * s;"},
    "into two places of an array": {"/* end */": "w[0] = 2 * s; w[1] = 1 - s;"},
    "numbers that are handed on": {"/* more */": "ran = ran * 5 + 1; if (ran % 3) s += v;"},
    "an early end": {"/* more */": "if (ran++ > 20) break;"},
    "a constant that is handed on": {"/* more */": "c *= 0.9; s += c * v;"},
    "memory of the iteration before, if any": {"long k = 0; k < m; k++) t": "long k = 1; k < m; k++) t"},
    "what is behind reads the table": {"result = s;": "result = s + log(1 + e[0] * e[1]);"},
}
NOT_FUSED = {
    "a square": ({"result = s;": "result = s * s;"}, "is not known before it"),
    "a choice": ({"result = s;": "result = s > 1 ? s : 0.5 * s;"}, "is not known before it"),
    "a factor that the loop makes": ({"/* more */": "r += v;", "result = s;": "result = s * r;"}, "is not known before it"),
    "a sum that shrinks": ({"/* more */": "s *= 0.9;"}, "which is no sum"),
    "a state": ({"/* more */": "r = 0.5 * r + v; s += r;"}, "which is no sum"),
    "a part of a sum that is used": ({"/* more */": "r += v; s += sin(r);"}, "which is no sum"),
    "the last value": ({"/* more */": "r = v;", "result = s;": "result = s + r;"}, "is no sum of its iterations"),
    "scratch that is read behind": ({"/* end */": "result += t[0];"}, "is reached behind it"),
    "a table that changes behind": ({"/* behind */": "for (long k = 0; k < m; k++) { e[k] *= 2; s += e[k]; }"}, "no memory"),
    "memory that the sum goes to and the loop reads": ({"s += v * v": "s += v * w[i % m]", "/* end */": "w[0] = s;"}, "it reaches the memory"),
    "memory that the sum goes to and that is read": ({"/* end */": "w[0] = s; result += w[1];"}, "is reached behind it"),
    "a power": ({"result = s;": "result = sqrt(1 + s);"}, "is not known before it"),
    "one place twice, perhaps": ({"/* end */": "w[m - 1] = s; w[n & 1] = 2 * s;"}, "into the same memory twice"),
    "a store on a condition": ({"/* end */": "if (n > 3) w[0] = s;"}, "is not known before it"),
}
LINE = 7
X = np.linspace(0.2, 0.9, 45)
W = np.array([0.3, -0.2, 0.4])


def _gradient(kernel: ig.Kernel) -> tuple[np.ndarray, np.ndarray]:
    (_, _), pullback = ig.vjp(kernel, X, W.copy(), np.zeros(45, dtype=int))
    found = pullback((1.3, np.array([0.2, -0.4, 0.7])))
    return found[0], found[1]


def _source(changes: dict[str, str]) -> str:
    source = SOURCE
    for old, new in changes.items():
        assert old in source
        source = source.replace(old, new)
    return source


@pytest.mark.parametrize("name", FUSED)
def test_both_sweeps_at_once(name: str) -> None:
    """The gradient is that of a tape, and, in a direction, that of differences."""
    library = ig.load(_source(FUSED[name]))
    plain = library.kernel("f", SIGNATURE)
    fused = library.kernel("f", SIGNATURE, checkpoint={LINE: "fused"})
    for found, wanted in zip(_gradient(fused), _gradient(plain), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)

    def value(step: float) -> float:
        w = W + step * np.array([0.5, 1.0, -0.7])
        result = plain(X * (1 + step), w, np.zeros(45, dtype=int))
        return float(1.3 * result[0] + np.array([0.2, -0.4, 0.7]) @ result[1])

    gradient = _gradient(fused)
    slope = (value(1e-6) - value(-1e-6)) / 2e-6
    np.testing.assert_allclose(gradient[0] @ X + gradient[1] @ np.array([0.5, 1.0, -0.7]), slope, rtol=1e-7)


@pytest.mark.parametrize("name", NOT_FUSED)
def test_what_stands_in_the_way(name: str) -> None:
    """Refused where it is asked for, with the reason; right with `tape_memory`, which takes states."""
    changes, reason = NOT_FUSED[name]
    library = ig.load(_source(changes))
    with pytest.raises(ig.Unsupported, match=f"the loop at {LINE} has no fused schedule") as refused:
        _gradient(library.kernel("f", SIGNATURE, checkpoint={LINE: "fused"}))
    assert reason in str(refused.value)
    wanted = _gradient(library.kernel("f", SIGNATURE))
    for found, other in zip(_gradient(library.kernel("f", SIGNATURE, tape_memory="4kB")), wanted, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-12, atol=1e-14)
