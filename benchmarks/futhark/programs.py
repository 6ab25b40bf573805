"""Programs whose derivative is one gradient: sources, signatures, data. The others are cases of `benchmarks.run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CASES", "PROGRAMS", "Program"]

CASES = {"BA": ("ba", "13.0 (by hand 8.6)"), "D-LSTM": ("lstm-4", "3.2 (6.2)"), "GMM": ("gmm-10", "5.1 (4.6)"),
         "GMM, 64 wide": ("gmm-64", "5.1 (4.6)"), "HAND": ("hand", "49.8 (4.6)"), "k-means": ("kmeans", ""),
         "k-means, Hessian": ("kmeans-hvp", "")}  # fmt: skip
"""Row -> case of `benchmarks.cases`, ratio of the paper."""


@dataclass(frozen=True, slots=True)
class Program:
    """signature: of the function that has the source's name; wrt: names; data: of a size; goal: a ratio that is aimed
    at; options: of `lib.kernel`"""

    source: str
    signature: str
    wrt: tuple[str, ...]
    data: Callable[[bool], tuple[Any, ...]]
    goal: str
    options: tuple[tuple[str, Any], ...] = ()


def _xsbench(quick: bool) -> tuple[Any, ...]:
    rng, (nuclides, points, n) = np.random.default_rng(1), (6, 20, 30) if quick else (60, 1000, 20_000)
    energy = np.sort(rng.uniform(0, 1, (nuclides, points)), axis=1)
    energy[:, 0], energy[:, -1] = 0.0, 1.0
    return (energy, rng.uniform(0, 1, (nuclides, points, 5)), rng.uniform(0, 1, (12, nuclides)),
            rng.uniform(0.01, 0.99, n), rng.integers(0, 12, n), rng.uniform(0, 1, 5))  # fmt: skip


def _rsbench(quick: bool) -> tuple[Any, ...]:
    rng, (nuclides, windows, poles, n) = np.random.default_rng(2), (4, 5, 2, 20) if quick else (30, 100, 4, 5000)
    pole = rng.uniform(0, 1, (nuclides, windows, poles, 2))
    pole[..., 1] = -rng.uniform(1e-3, 1e-2, pole.shape[:-1])
    residues = rng.normal(size=(2, nuclides, windows, poles, 2))
    return (pole, *residues, rng.normal(size=(nuclides, windows, 2)), rng.uniform(0, 1, nuclides),
            rng.uniform(0.01, 0.98, n), 300.0)  # fmt: skip


def _lbm(quick: bool) -> tuple[Any, ...]:
    rng, (n, steps) = np.random.default_rng(3), (5, 4) if quick else (24, 100)
    weights = np.repeat([1 / 3, 1 / 18, 1 / 36], [1, 6, 12])[:, None, None, None]
    f = weights * (1 + 0.1 * rng.uniform(-1, 1, (19, n, n, n)))
    return f, np.zeros_like(f), 1.2, steps


def _kmeans_sparse(quick: bool) -> tuple[Any, ...]:
    rng, (k, d, n, each) = np.random.default_rng(4), (3, 20, 30, 4) if quick else (10, 500, 5000, 20)
    column = np.sort(rng.permuted(np.tile(np.arange(d), (n, 1)), axis=1)[:, :each], axis=1)
    return (rng.normal(size=(k, d)), rng.normal(size=n * each), column.reshape(-1), each * np.arange(n + 1))


def _lstm_batched(quick: bool) -> tuple[Any, ...]:
    rng, (d, k, batch, steps) = np.random.default_rng(5), (3, 4, 2, 3) if quick else (32, 64, 32, 20)
    return (0.2 * rng.normal(size=(4 * k, d)), 0.2 * rng.normal(size=(4 * k, k)), rng.normal(size=4 * k),
            rng.normal(size=(steps, batch, d)), rng.normal(size=(steps, batch, k)))  # fmt: skip


_LBM = "f64(inout f64[19,n,n,n] f, inout f64[19,n,n,n] g, f64 omega, i64 n, i64 steps)"
PROGRAMS = {
    "sparse k-means": Program(
        "kmeans_sparse", "f64(f64[k,d] centres, f64[e] value, i64[e] column, i64[n+1] row, i64 k, i64 d, i64 e, i64 n)",
        ("centres",), _kmeans_sparse, "2.0"),
    "LSTM, batched": Program(
        "lstm_batched", "f64(f64[4*k,d] w, f64[4*k,k] u, f64[4*k] bias, f64[steps,batch,d] x, "
        "f64[steps,batch,k] target, i64 d, i64 k, i64 batch, i64 steps)", ("w", "u", "bias"), _lstm_batched, "2.0"),
    "RSBench": Program(
        "rsbench", "f64(f64[i,w,k,2] pole, f64[i,w,k,2] total, f64[i,w,k,2] absorbed, f64[i,w,2] fit, f64[i] density, "
        "f64[n] at, f64 doppler, i64 i, i64 w, i64 k, i64 n)", ("pole", "total", "absorbed", "fit", "density"),
        _rsbench, "3.9"),
    "XSBench": Program(
        "xsbench", "f64(f64[i,g] energy, f64[i,g,5] micro, f64[m,i] density, f64[n] at, i64[n] material, "
        "f64[5] weight, i64 i, i64 g, i64 m, i64 n)", ("micro", "density"), _xsbench, "2.7"),
    "lattice Boltzmann": Program("lbm", _LBM, ("f", "omega"), _lbm, "3.4"),
    "lattice Boltzmann, states": Program("lbm", _LBM, ("f", "omega"), _lbm, "3.4",
                                         (("checkpoint", (("lbm.c:63", "binomial:8"),)),)),
}  # fmt: skip
