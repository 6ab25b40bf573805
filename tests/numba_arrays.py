"""What those who write for Numba take from NumPy for arrays: rows (function, signature, arguments)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

RNG = np.random.default_rng(3)
X, P = RNG.normal(size=6), RNG.uniform(0.5, 2, 6)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
V, M = "f64(f64[n] x)", "f64(f64[n,n] a)"


def zeros_like(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] ** 2
    return y.sum()


def empty_like(x: Any) -> Any:
    y = np.empty_like(x)
    y[:] = x * x
    return y.sum()


def concatenate(x: Any) -> Any:
    return (np.concatenate((x, x * x)) ** 2).sum()


def stack(x: Any) -> Any:
    return (np.stack((x, x * x)) ** 2).sum()


def stacked_both_ways(x: Any) -> Any:
    return (np.hstack((x, x * x)) ** 2).sum() + np.vstack((x, x * 3)).sum()


def columnstack(x: Any) -> Any:
    return (np.column_stack((x, x * x)) ** 2).sum()


def argsort(x: Any) -> Any:
    i = np.argsort(x)
    y = x[i]
    return y[0] * y[1]


def argmax(x: Any) -> Any:
    return x[np.argmax(x)] ** 2 + x[np.argmin(x)]


def cumsum(x: Any) -> Any:
    return (np.cumsum(x) ** 2).sum()


def cumprod(x: Any) -> Any:
    return (np.cumprod(x)).sum()


def diff(x: Any) -> Any:
    return (np.diff(x) ** 2).sum()


def where(x: Any) -> Any:
    return np.where(x > 0, x * x, -x).sum()


def boolmask(x: Any) -> Any:
    return (x[x > 0] ** 2).sum()


def boolset(x: Any) -> Any:
    y = x.copy()
    y[y < 0] = 0.0
    return (y * y).sum()


def clip(x: Any) -> Any:
    return (np.clip(x, -0.5, 0.5) ** 2).sum()


def statistics(x: Any) -> Any:
    return x.mean() + x.std() + x.var() + np.median(x)


def percentile(x: Any) -> Any:
    return np.percentile(x, 30) + np.quantile(x, 0.7)


def minmax(x: Any) -> Any:
    return x.max() * x.min() + np.ptp(x)


def linspace(x: Any) -> Any:
    return (np.linspace(0.0, x[0], 5) ** 2).sum()


def arange(x: Any) -> Any:
    return (np.arange(len(x)) * x**2).sum()


def roll(x: Any) -> Any:
    return (np.roll(x, 2) * x).sum()


def flip(x: Any) -> Any:
    return (x[::-1] * np.flip(x) * x).sum()


def reshape(x: Any) -> Any:
    y = x.reshape((2, 3))
    return (y[0] * y[1]).sum()


def transpose(a: Any) -> Any:
    return (a.T * a).sum() + (np.ascontiguousarray(a.T) @ a).sum()


def sum_axis(a: Any) -> Any:
    return (a.sum(axis=0) ** 2).sum() + (np.sum(a, axis=1) ** 3).sum()


def ravel(a: Any) -> Any:
    return (a.ravel() ** 2).sum() + a.flatten()[0]


def interp(x: Any) -> Any:
    return np.interp(0.3, x, x**2)


def convolve(x: Any) -> Any:
    return (np.convolve(x, x) ** 2).sum()


def kron(x: Any) -> Any:
    return np.kron(x.reshape((2, 3)), x.reshape((3, 2))).sum()


def absolute(x: Any) -> Any:
    return np.abs(x).sum() + np.sign(x[0]) * x[0] ** 2


def ufuncs(x: Any) -> Any:
    return (
        np.sqrt(x)
        + np.exp(x)
        + np.log(x)
        + np.sin(x)
        + np.cos(x)
        + np.tan(x)
        + np.arctan(x)
        + np.tanh(x)
        + np.power(x, 1.7)
        + np.hypot(x, 2.0)
        + np.expm1(x)
        + np.log1p(x)
        + np.cbrt(x)
    ).sum()


def minimum(x: Any) -> Any:
    return np.minimum(x, 1.0).sum() + np.fmax(x, 0.8).sum()


def enumerate_zip(x: Any) -> Any:
    s = 0.0
    for i, (a, b) in enumerate(zip(x[1:], x[:-1])):  # noqa: B905
        s += i * a * b
    return s


def nditer(a: Any) -> Any:
    s = 0.0
    for v in np.nditer(a):
        s += v.item() ** 2
    return s


def ndindex(a: Any) -> Any:
    s = 0.0
    for i in np.ndindex(a.shape):
        s += a[i] ** 2
    return s


def diag(a: Any) -> Any:
    return (np.diag(a) ** 2).sum() + np.diag(a[0]).sum()


def fill_diag(a: Any) -> Any:
    b = a.copy()
    np.fill_diagonal(b, 0.0)
    return (b * b).sum()


def eye(a: Any) -> Any:
    return ((a + np.eye(4)) ** 2).sum() + np.identity(4)[0, 0]


def full(x: Any) -> Any:
    return (np.full(6, x[0]) * x).sum() + np.full_like(x, x[1]).sum()


def append(x: Any) -> Any:
    return (np.append(x, x[0] ** 2) ** 2).sum()


def repeated(x: Any) -> Any:
    return (np.repeat(x, 2) ** 2).sum()


def unique(x: Any) -> Any:
    return (np.unique(x) ** 2).sum()


def searchsorted(x: Any) -> Any:
    y = np.sort(x)
    return y[np.searchsorted(y, 0.1)] ** 2


def nansums(x: Any) -> Any:
    return np.nansum(x * x) + np.nanmean(x)


def isnan(x: Any) -> Any:
    return x[0] ** 2 if not np.isnan(x).any() else 0.0


def fancy(x: Any) -> Any:
    return (x[np.array([0, 2, 2])] ** 2).sum()


def nonzero(x: Any) -> Any:
    return (x[np.nonzero(x > 0)[0]] ** 2).sum()


def complexarr(x: Any) -> Any:
    z = x * (1 + 2j)
    return (z * z.conjugate()).real.sum()


def phases(x: Any) -> Any:
    return abs(np.exp(1j * x).sum()) ** 2


def closure(x: Any) -> Any:
    def g(v):
        return v * v + x[0]

    s = 0.0
    for v in x:
        s += g(v)
    return s


def tupleuse(x: Any) -> Any:
    t = (x[0], x[1], x[2])
    s = 0.0
    for v in t:
        s += v * v
    return s


def caught(x: Any) -> Any:
    try:
        if x[0] > 100:
            raise ValueError("q")
        s = x[0] ** 2
    except Exception:
        s = 0.0
    return s


def none_or_number(x: Any) -> Any:
    r = None
    for v in x:
        if v > 0:
            r = v
    if r is None:
        return 0.0
    return r * r


def mode_by_name(x: Any) -> Any:
    mode = "a"
    if len(x) > 3:
        mode = "b"
    return x[0] ** 2 if mode == "b" else x[0]


def asserting(x: Any) -> Any:
    assert x[0] < 100, "big"
    return x[0] ** 2


def whileloop(x: Any) -> Any:
    i = 0
    s = x[0]
    while s < 10 and i < 20:
        s = s * 1.5 + abs(x[1]) * 0.1 + 0.3
        i += 1
    return s


def stencil2(u: Any, steps: Any) -> Any:
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


def rows_written(x: Any) -> Any:
    y = np.zeros((2, 3))
    y[0] = x[:3]
    y[1, :] = x[3:]
    return (y @ y.T).sum()


def three_axes(x: Any) -> Any:
    y = x.reshape(1, 2, 3).copy()
    return (y.transpose(2, 1, 0) ** 2).sum()


def atleast(x: Any) -> Any:
    return np.atleast_2d(x).sum() + np.expand_dims(x, 0).sum() ** 2


def cov(x: Any) -> Any:
    return np.cov(x.reshape(2, 3))[0, 1] + np.corrcoef(x.reshape(2, 3))[0, 1]


def cross(x: Any) -> Any:
    return np.cross(x[:3], x[3:]).sum()


def vdot(x: Any) -> Any:
    return np.vdot(x, x)


def all_and_any(x: Any) -> Any:
    return x[0] ** 2 if np.all(x < 10) and np.any(x > -10) else 0.0


def rounded(x: Any) -> Any:
    return np.floor(x[0]) * x[1] + round(x[0]) * x[2] + int(x[0]) * x[3]


def mod(x: Any) -> Any:
    return (x[0] % 0.7) ** 2 + (x[1] // 0.7) * x[0] + math.fmod(x[0], 0.3)


def swap(x: Any) -> Any:
    y = x.copy()
    y[0], y[1] = y[1], y[0]
    return y[0] * y[0] + y[1]


ARRAYS: list[tuple[Any, str, tuple[Any, ...]]] = [
    (zeros_like, V, (X,)),
    (empty_like, V, (X,)),
    (concatenate, V, (X,)),
    (stack, V, (X,)),
    (stacked_both_ways, V, (X,)),
    (columnstack, V, (X,)),
    (argsort, V, (X,)),
    (argmax, V, (X,)),
    (cumsum, V, (X,)),
    (cumprod, V, (P,)),
    (diff, V, (X,)),
    (where, V, (X,)),
    (boolmask, V, (X,)),
    (boolset, V, (X,)),
    (clip, V, (X,)),
    (statistics, V, (X,)),
    (percentile, V, (X,)),
    (minmax, V, (X,)),
    (linspace, V, (X,)),
    (arange, V, (X,)),
    (roll, V, (X,)),
    (flip, V, (X,)),
    (reshape, V, (X,)),
    (transpose, M, (A,)),
    (sum_axis, M, (A,)),
    (ravel, M, (A,)),
    (interp, V, (np.sort(X),)),
    (convolve, V, (X,)),
    (kron, V, (X,)),
    (absolute, V, (X,)),
    (ufuncs, V, (P,)),
    (minimum, V, (P,)),
    (enumerate_zip, V, (X,)),
    (nditer, M, (A,)),
    (ndindex, M, (A,)),
    (diag, M, (A,)),
    (fill_diag, M, (A,)),
    (eye, M, (A,)),
    (full, V, (X,)),
    (append, V, (X,)),
    (repeated, V, (X,)),
    (unique, V, (X,)),
    (searchsorted, V, (X,)),
    (nansums, V, (X,)),
    (isnan, V, (X,)),
    (fancy, V, (X,)),
    (nonzero, V, (X,)),
    (complexarr, V, (X,)),
    (phases, V, (X,)),
    (closure, V, (X,)),
    (tupleuse, V, (X,)),
    (caught, V, (X,)),
    (none_or_number, V, (X,)),
    (mode_by_name, V, (X,)),
    (asserting, V, (X,)),
    (whileloop, V, (X,)),
    (
        stencil2,
        "f64(f64[n,m] u, i64 steps)",
        (
            RNG.normal(size=(4, 5)),
            3,
        ),
    ),
    (rows_written, V, (X,)),
    (three_axes, V, (X,)),
    (atleast, V, (X,)),
    (cov, V, (X,)),
    (cross, V, (X,)),
    (vdot, V, (X,)),
    (all_and_any, V, (X,)),
    (rounded, V, (X,)),
    (mod, V, (X,)),
    (swap, V, (X,)),
]
