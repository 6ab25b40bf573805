"""Nests of loops in C by chance, for kernels over arrays and over rows."""

from __future__ import annotations

import numpy as np

__all__ = ["loops"]


def loops(rng: np.random.Generator) -> tuple[str, list[str]]:
    """One to three loops up or down, triangles among them, in C, and their counters. Bounds are `n`, `m` or 4."""
    counters = list("ijk"[: int(rng.integers(1, 4))])
    rows = []
    for n, c in enumerate(counters):
        low = "0" if n == 0 or rng.random() < 0.6 else f"{counters[n - 1]}{rng.choice(['', ' + 1'])}"
        high = rng.choice(["n", "n - 1", "4", "m"])
        if n and rng.random() < 0.2:
            low, high = "0", counters[n - 1]
        up = rng.random() < 0.75
        step = int(rng.integers(1, 3))
        rows.append(f"for (int {c} = {low}; {c} < {high}; {c} += {step})" if up else
                    f"for (int {c} = {high} - 1; {c} >= {low}; {c} -= {step})")  # fmt: skip
    return " ".join(rows), counters
