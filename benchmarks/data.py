"""Inputs of the benchmark kernels: fixed seeds, the sizes of the peers' measurements, and reduced ones for tests.

Every function takes `quick` and gives all inputs by name: NumPy arrays, ints and floats. Names that no kernel has as a
parameter (`wu`, `tv`, ...) are cotangents and tangents of the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Data = dict[str, Any]


def gmm(quick: bool, d: int) -> Data:
    rng = np.random.default_rng(1)
    k, n = (5, 40) if quick else (25, 1000)
    d = min(d, 4) if quick else d
    return {
        "alphas": rng.normal(size=k),
        "means": rng.uniform(size=(k, d)),
        "icf": 0.3 * rng.normal(size=(k, d + d * (d - 1) // 2)),
        "x": rng.normal(size=(n, d)),
        "gamma": 1.0,
        "m": 0,
        "k": k,
        "d": d,
        "n": n,
    }


def ba(quick: bool) -> Data:
    """49 cameras and 7,776 points, gathered per observation."""
    rng = np.random.default_rng(2)
    n, m, p = (5, 40, 100) if quick else (49, 7776, 31843)
    cameras = np.concatenate(
        [
            0.3 * rng.normal(size=(n, 3)),
            0.5 * rng.normal(size=(n, 3)) - [0.0, 0.0, 6.0],
            rng.uniform(400.0, 600.0, size=(n, 1)),
            rng.normal(size=(n, 2)),
            0.05 * rng.normal(size=(n, 2)),
        ],
        axis=1,
    )
    points, weights = rng.normal(size=(m, 3)), rng.uniform(0.5, 1.5, size=p)
    return {
        "cameras": cameras[rng.integers(0, n, size=p)],
        "points": points[rng.integers(0, m, size=p)],
        "weights": weights,
        "features": 50.0 * rng.normal(size=(p, 2)),
        "p": p,
    }


def lstm(quick: bool, layers: int, steps: int) -> Data:
    rng = np.random.default_rng(3)
    b, c = (5, 12) if quick else (14, steps)
    return {
        "weights": 0.5 * rng.normal(size=(layers, 2, 4 * b)),
        "outer": rng.normal(size=(3, b)),
        "start": 0.1 * rng.normal(size=(layers, 2, b)),
        "sequence": (rng.uniform(size=(c, b)) < 0.2).astype(np.float64),
        "l": layers,
        "c": c,
        "b": b,
    }


def hand(quick: bool) -> Data:
    """22 bones, 544 vertices, 100 measured points. Rest poses are rigid, skinning weights sum to one."""
    rng = np.random.default_rng(4)
    bones, vertices, n = 22, *((40, 15) if quick else (544, 100))
    parents = np.array([-1, 0] + [1 if i % 4 == 0 else i + 1 for i in range(20)], dtype=np.int32)
    local = np.zeros((bones, 3, 4))
    local[:, :, :3] = np.linalg.qr(rng.normal(size=(bones, 3, 3)))[0]
    local[:, :, 3] = rng.normal(size=(bones, 3))
    rest = np.zeros((bones, 4, 4))
    for b, parent in enumerate(parents):
        own = np.vstack([local[b], [0.0, 0.0, 0.0, 1.0]])
        rest[b] = own if parent < 0 else rest[parent] @ own
    weights = rng.uniform(size=(vertices, bones)) ** 4
    return {
        "theta": 0.4 * rng.normal(size=26),
        "relative": local.reshape(bones, 12),
        "parents": parents,
        "inverse_rest": np.ascontiguousarray(np.linalg.inv(rest)[:, :3]).reshape(bones, 12),
        "rest": rng.normal(size=(vertices, 3)),
        "weights": weights / weights.sum(axis=1, keepdims=True),
        "points": rng.normal(size=(n, 3)),
        "nearest": rng.integers(0, vertices, size=n).astype(np.int32),
        "bones": bones,
        "vertices": vertices,
        "n": n,
    }


def vector(quick: bool, n: int) -> Data:
    n = 1000 if quick else n
    return {"x": np.random.default_rng(5).uniform(-1.0, 1.0, size=n), "n": n}


def product(quick: bool) -> Data:
    """Factors near one, so that 10^5 of them neither overflow nor vanish."""
    n = 1000 if quick else 100_000
    return {"x": np.exp(0.01 * np.random.default_rng(7).normal(size=n)), "n": n}


def recurrence(quick: bool) -> Data:
    rng = np.random.default_rng(8)
    n = 1000 if quick else 500_000
    return {"a": rng.uniform(0.2, 0.9, size=n), "b": rng.normal(size=n), "n": n}


def histogram(quick: bool) -> Data:
    rng = np.random.default_rng(9)
    n, bins = (1000, 16) if quick else (1_000_000, 1024)
    return {"x": rng.uniform(size=n), "bin": rng.integers(0, bins, size=n).astype(np.int32), "n": n, "bins": bins}


def gather(quick: bool) -> Data:
    rng = np.random.default_rng(10)
    n = 1000 if quick else 1_000_000
    return {
        "table": rng.normal(size=n),
        "index": rng.integers(0, n, size=n).astype(np.int32),
        "w": rng.uniform(size=n),
        "n": n,
        "m": n,
    }


def burgers(quick: bool) -> Data:
    n, steps = (50, 10) if quick else (10_000, 100)
    x = np.linspace(0.0, 1.0, n)
    u0 = np.sin(2.0 * np.pi * x) + 0.5 * np.cos(6.0 * np.pi * x)
    dx = 1.0 / (n - 1)
    return {"u0": u0, "n": n, "steps": steps, "dt": 0.2 * dx, "dx": dx, "nu": 0.5 * dx}


def brusselator(quick: bool) -> Data:
    rng = np.random.default_rng(11)
    n = 9 if quick else 128
    fields = {name: rng.normal(size=(n, n)) for name in ("u", "v", "wu", "wv", "tu", "tv")}
    return {**fields, "n": n, "a": 3.4, "b": 1.0, "alpha": 0.1 * (n - 1) ** 2 / 1e3}


def lorenz(quick: bool, steps: int) -> Data:
    steps = 100 if quick else steps
    return {
        "y0": np.array([1.0, 2.0, 20.0]),
        "par": np.array([10.0, 28.0, 8.0 / 3.0]),
        "steps": steps,
        "dt": min(1e-2, 10.0 / steps),
    }


def mlp(quick: bool) -> Data:
    rng = np.random.default_rng(13)
    batch, width = (6, 5) if quick else (64, 64)
    return {
        "w1": rng.normal(size=(width, width)) / width**0.5,
        "b1": 0.1 * rng.normal(size=width),
        "w2": rng.normal(size=(width, width)) / width**0.5,
        "b2": 0.1 * rng.normal(size=width),
        "w3": rng.normal(size=(1, width)) / width**0.5,
        "b3": 0.1 * rng.normal(size=1),
        "x": rng.normal(size=(batch, width)),
        "y": rng.normal(size=batch),
        "batch": batch,
        "width": width,
        "hidden": width,
        "second": width,
    }


def matmul(quick: bool) -> Data:
    rng = np.random.default_rng(14)
    n = 12 if quick else 192
    return {"a": rng.normal(size=(n, n)), "b": rng.normal(size=(n, n)), "n": n}


def matvec(quick: bool) -> Data:
    rng = np.random.default_rng(15)
    n = 30 if quick else 1000
    return {"a": rng.normal(size=(n, n)), "x": rng.normal(size=n), "n": n}


def nbody(quick: bool) -> Data:
    rng = np.random.default_rng(16)
    n = 20 if quick else 1024
    return {"pos": rng.normal(size=(n, 3)), "mass": rng.uniform(0.5, 1.5, size=n), "n": n}


def kmeans(quick: bool) -> Data:
    rng = np.random.default_rng(17)
    n, k, d = (60, 4, 3) if quick else (4096, 32, 8)
    return {
        "centres": rng.normal(size=(k, d)),
        "x": rng.normal(size=(n, d)),
        "v": rng.normal(size=(k, d)),
        "n": n,
        "k": k,
        "d": d,
    }
