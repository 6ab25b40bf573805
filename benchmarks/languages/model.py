"""The functions of the table in Python, for Numba."""

from __future__ import annotations

from typing import Any

import numpy as np


def energy(pos: Any, mass: Any) -> Any:
    e = 0.0
    for i in range(len(mass)):
        for j in range(i):
            r = 0.01
            for k in range(3):
                r += (pos[i, k] - pos[j, k]) ** 2
            e -= mass[i] * mass[j] / np.sqrt(r)
    return e


def rk4(y: Any, h: Any, steps: Any) -> None:
    k, t = np.empty((4, 3)), np.empty(3)
    for _ in range(steps):
        for m in range(4):
            w = 0.0 if m == 0 else h if m == 3 else h / 2
            for i in range(3):
                t[i] = y[i] + (w * k[m - 1, i] if m > 0 else 0.0)
            k[m, 0] = 10 * (t[1] - t[0])
            k[m, 1] = t[0] * (28 - t[2]) - t[1]
            k[m, 2] = t[0] * t[1] - 8.0 / 3 * t[2]
        for i in range(3):
            y[i] += h / 6 * (k[0, i] + 2 * k[1, i] + 2 * k[2, i] + k[3, i])


def diffuse(u: Any, v: Any) -> None:
    v[0], v[-1] = u[0], u[-1]
    for i in range(1, len(u) - 1):
        v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) * np.exp(-u[i])
