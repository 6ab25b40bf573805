"""Derivatives of width W against W separate ones, lane by lane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

WIDTHS = (1, 2, 3, 4, 8, 16)
MODES = ("forward", "reverse")


def compare(
    kernel: Any, inputs: Mapping[str, Any], wrt: Iterable[str], width: int, mode: str, tolerance: float = 1e-12,
    seed: int = 0,
) -> list[str]:  # fmt: skip
    """Differences beyond `tolerance`, relative to the size of each array; one line each."""
    from irgrad.engine.kernel.run import Run
    from irgrad.engine.kernel.select import active_outputs

    rng = np.random.default_rng(seed)
    order = [p.name for p in kernel.signature.arguments]
    index = {p.name: i for i, p in enumerate(kernel.signature.parameters)}
    given, asked = [index[n] for n in wrt], list(active_outputs(kernel))
    bound = kernel.bind([inputs[n] for n in order], {})
    seeds, results = (given, asked) if mode == "forward" else (asked, given)
    derivative = "jvp" if mode == "forward" else "pullback"
    active = sorted({*given, *asked})
    wide = getattr(kernel.primal, derivative)(active, width)
    single = getattr(kernel.primal, derivative)(active)
    run, one = Run(wide, bound, {}), Run(single, bound, {})
    values: dict[int, Any] = {}
    for i in seeds:
        buffer = one.buffers[single.find(i, 0)]
        values[i] = rng.uniform(-1, 1, (*buffer.shape, width)).astype(buffer.dtype)
    full = run({wide.find(i, 0): v.reshape(run.buffers[wide.find(i, 0)].shape) for i, v in values.items()})
    got = {i: full[wide.find(i, 0)].copy() for i in results}
    found = []
    for j in range(width):
        full = one({single.find(i, 0): v[..., j] for i, v in values.items()})
        for i in results:
            want = full[single.find(i, 0)]
            lane = got[i][..., j] if width > 1 else got[i]
            same = (lane == want) | (np.isnan(lane) & np.isnan(want))
            scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
            near = np.abs(np.where(same, 0, lane - want)) <= tolerance * scale
            if not (same | near).all():
                name = kernel.signature.parameters[i].name if i < len(kernel.signature.parameters) else "return"
                found.append(f"{mode}, width {width}, lane {j} of {name}: got {lane}, want {want}")
    return found
