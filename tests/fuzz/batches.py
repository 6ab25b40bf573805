"""Batched values and derivatives of random kernels against single calls, sample by sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

SAMPLES = 11  # a whole block and a part of one, for most numbers of lanes


def compare(
    kernel: Any, inputs: Mapping[str, Any], wrt: Iterable[str], tolerance: float, seed: int = 0,
    width: int | str = "auto",
) -> tuple[list[str], str]:  # fmt: skip
    """Differences beyond `tolerance` (relative to the size of each result), one line each; and the strategy used."""
    from irgrad import engine

    rng = np.random.default_rng(seed)
    names = [p.name for p in kernel.signature.arguments]
    axes = dict.fromkeys(wrt, 0)
    data = {n: inputs[n] for n in names}
    for n in axes:
        x = np.asarray(inputs[n])
        data[n] = (x * rng.uniform(0.9, 1.1, (SAMPLES, *x.shape))).astype(x.dtype)
    rows = [[data[n][i] if n in axes else data[n] for n in names] for i in range(SAMPLES)]
    options = {"in_axes": axes, "width": width, "threads": 1}
    tangents = {n: rng.uniform(-1, 1, data[n].shape).astype(data[n].dtype) for n in axes}
    found: list[str] = []

    def judge(what: str, got: Any, want: list[Any]) -> None:
        for k, (a, b) in enumerate(zip(_parts(got), zip(*map(_parts, want), strict=True), strict=True)):
            if a is None:
                continue
            a, b = np.asarray(a, float), np.asarray(b, float)  # noqa: PLW2901
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
            if not (same | (np.abs(np.where(same, 0, a - b)) <= tolerance * scale)).all():
                found.append(f"{what} {k}: got {a}, want {b}")

    judge("value", engine.batch(kernel, **options)(*data.values()), [kernel(*row) for row in rows])
    moved = engine.batch_jvp(kernel, list(data.values()), [tangents.get(n) for n in names], **options)[1]
    singles = [engine.jvp(kernel, row, [tangents[n][i] if n in axes else None for n in names])[1]
               for i, row in enumerate(rows)]  # fmt: skip
    judge("tangent", moved, singles)
    out, pullback = engine.batch_vjp(kernel, *data.values(), wrt=tuple(axes), **options)
    weights = [None if m is None else rng.uniform(-1, 1, np.shape(o)).astype(o.dtype)
               for o, m in zip(_parts(out), _parts(moved), strict=True)]  # fmt: skip
    pulled = []
    for i, row in enumerate(rows):
        w = [None if v is None else v[i] for v in weights]
        pulled.append(engine.vjp(kernel, *row, wrt=tuple(axes))[1](w[0] if len(w) == 1 else tuple(w)))
    judge("gradient", pullback(weights[0] if len(weights) == 1 else tuple(weights)), pulled)
    text = engine.explain_batch(engine.batch(kernel, **options), *data.values())
    return found, text.split("\n")[1].split(":")[0].strip() + "|" + text.split("because ")[1].split("\n")[0][:90]


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]
