"""Idioms of those who write for Numba, one function each: lists and `np.linalg`.

Each table has rows (function, signature, arguments); what a function gives is what Python gives for it.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba.experimental import jitclass

RNG = np.random.default_rng(3)
X, P = RNG.normal(size=6), RNG.uniform(0.5, 2, 6)
A, B = RNG.normal(size=(4, 4)) + 4 * np.eye(4), RNG.normal(size=4)
V, M, MB = "f64(f64[n] x)", "f64(f64[n,n] a)", "f64(f64[n,n] a, f64[n] b)"


def reflected_list(x: Any) -> Any:
    made = []
    for v in x:
        made.append(v * v)
    s = 0.0
    for i in range(len(made)):
        s += made[i] * (i + 1)
    return s


def list_comprehension(x: Any) -> Any:
    made = [math.sin(v) for v in x]
    return sum(made)


def list_to_array(x: Any) -> Any:
    made = [v * v for v in x if v > 0]
    return np.array(made).sum()


def list_of_tuples(x: Any) -> Any:
    made = [(v, v * v) for v in x]
    s = 0.0
    for a, b in made:
        s += a * b
    return s


def list_of_arrays(x: Any) -> Any:
    made = [x * 2.0, np.sin(x)]
    s = 0.0
    for a in made:
        s += (a * a).sum()
    return s


def list_pop_sort(x: Any) -> Any:
    made = [v * v for v in x]
    made.sort()
    a = made.pop()
    return a * made[0]


@jitclass([("k", numba.float64), ("x", numba.float64[:]), ("v", numba.float64[:])])
class Oscillator:
    def __init__(self, k: Any, x: Any, v: Any) -> None:
        self.k = k
        self.x = x.copy()
        self.v = v.copy()

    def step(self, h: Any) -> None:
        for i in range(self.x.size):
            self.v[i] -= h * self.k * self.x[i]
        self.x += h * self.v


def objects(x: Any) -> Any:
    one, other = Oscillator(x[0], x[:2], x[1:3]), Oscillator(2.0, x[2:4], x[:2])
    for _ in range(4):
        one.step(0.1)
        other.step(0.2)
    return np.sum(one.v**2) * other.x[0] + one.k


def svd(a: Any) -> Any:
    u, s, vt = np.linalg.svd(a)
    return s[0] * s[-1] + u[0, 0] * vt[0, 1]


def svd_of_rows(a: Any) -> Any:
    u, s, vt = np.linalg.svd(a[:3].copy())
    return np.sum(s**3) + u[1, 0] * vt[0, 1] + np.sum((vt.T @ vt) ** 2)


def svd_of_columns(a: Any) -> Any:
    u, s, vt = np.linalg.svd(a[:, :2].copy(), full_matrices=False)
    return s[0] * u[3, 1] * vt[1, 1]


def pinv(a: Any, b: Any) -> Any:
    return np.sum((np.linalg.pinv(a[:3].copy()) @ b[:3]) ** 2)


def lstsq(a: Any, b: Any) -> Any:
    x, residual, rank, s = np.linalg.lstsq(a[:, :2].copy(), b)
    return np.sum(x**2) + residual[0] * rank + s[1]


def norms(a: Any) -> Any:
    return np.linalg.norm(a, 2) + np.linalg.cond(a) + np.linalg.norm(a, 1) + np.linalg.norm(a, np.inf)


def solve(a: Any, b: Any) -> Any:
    x = np.linalg.solve(a, b)
    return (x * x).sum()


def solve2(a: Any, b: Any) -> Any:
    x = np.linalg.solve(a, b)
    return (x * x).sum()


def inv(a: Any) -> Any:
    return (np.linalg.inv(a) ** 2).sum()


def det(a: Any) -> Any:
    return np.linalg.det(a)


def slogdet(a: Any) -> Any:
    s, log = np.linalg.slogdet(a)
    return s * log


def cholesky(a: Any) -> Any:
    return np.linalg.cholesky(a + a.T).sum()


def eigh(a: Any) -> Any:
    return np.linalg.eigh(a + a.T)[0][0]


def qr(a: Any) -> Any:
    q, r = np.linalg.qr(a)
    return r[0, 0] + q[1, 0] * q[2, 1]


def norm(x: Any) -> Any:
    return np.linalg.norm(x)


def norm_of_matrix(a: Any) -> Any:
    return np.linalg.norm(a)


def matpow(a: Any) -> Any:
    return np.linalg.matrix_power(a, 3).sum()


def trace(a: Any) -> Any:
    return np.trace(a @ a)


def quadform(a: Any, b: Any) -> Any:
    return b @ a @ b


def dotmv(a: Any, b: Any) -> Any:
    return (np.dot(a, b) ** 2).sum()


def outer(a: Any, b: Any) -> Any:
    return (np.outer(b, b) * a).sum()


LISTS: list[tuple[Any, str, tuple[Any, ...]]] = [
    (reflected_list, V, (X,)),
    (list_comprehension, V, (X,)),
    (list_to_array, V, (X,)),
    (list_of_tuples, V, (X,)),
    (list_of_arrays, V, (X,)),
    (list_pop_sort, V, (X,)),
    (objects, V, (X,)),
]
LINALG: list[tuple[Any, str, tuple[Any, ...]]] = [
    (
        solve,
        MB,
        (
            A,
            B,
        ),
    ),
    (
        solve2,
        "f64(f64[n,n] a, f64[n,m] b)",
        (
            A,
            RNG.normal(size=(4, 2)),
        ),
    ),
    (inv, M, (A,)),
    (det, M, (A,)),
    (slogdet, M, (A,)),
    (cholesky, M, (A,)),
    (eigh, M, (A,)),
    (qr, M, (A,)),
    (svd, M, (A,)),
    (svd_of_rows, M, (A,)),
    (svd_of_columns, M, (A,)),
    (pinv, MB, (A, B)),
    (lstsq, MB, (A, B)),
    (norms, M, (A,)),
    (norm, "f64(f64[n] x)", (X,)),
    (norm_of_matrix, M, (A,)),
    (matpow, M, (A,)),
    (trace, M, (A,)),
    (
        quadform,
        MB,
        (
            A,
            B,
        ),
    ),
    (
        dotmv,
        MB,
        (
            A,
            B,
        ),
    ),
    (
        outer,
        MB,
        (
            A,
            B,
        ),
    ),
]
