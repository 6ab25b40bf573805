"""Sums over independent samples, with a tape of all samples and with both sweeps of one at a time ("fused"):

    python -m benchmarks.independent_loops [names...] [--quick]

For each kernel: CPU time of the primal, over it that of the gradient by each schedule (minima of rounds in turns), the
bytes of its tape, and how far the gradients are apart. "default" is what is taken where nobody asks.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the clone is not installed

from benchmarks import data  # noqa: E402
from benchmarks.cases import GMM, KMEANS  # noqa: E402
from benchmarks.native import HERE, inputs_of  # noqa: E402

TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class Case:
    """A line of the table. loop: how the line begins at which the loop over samples does, behind the function's."""

    name: str
    source: str
    function: str
    parameters: str
    wrt: tuple[str, ...]
    inputs: Callable[[bool], data.Data]
    loop: str = "for (long p = 0; p < n; p++)"

    def place(self) -> str:
        """The loop over samples, as `checkpoint=` names it."""
        text = (HERE / "kernels" / self.source).read_text()
        at = text.index(self.loop, re.search(rf"^double {self.function}\(", text, re.MULTILINE).start())  # type: ignore[union-attr]
        return f"{self.source}:{text.count(chr(10), 0, at) + 1}"


def _mixture(quick: bool, d: int, k: int) -> data.Data:
    rng = np.random.default_rng(1)
    n = 40 if quick else max(200_000 // (k * d), 50)
    row = d + d * (d - 1) // 2
    return {"alphas": rng.normal(size=k), "means": rng.uniform(size=(k, d)), "icf": 0.3 * rng.normal(size=(k, row)) / d,
            "x": rng.normal(size=(n, d)), "gamma": 1.0, "m": 0, "k": k, "d": d, "n": n}  # fmt: skip


def _classes(quick: bool, k: int, d: int) -> data.Data:
    rng = np.random.default_rng(2)
    n = 40 if quick else 400_000 // (k * d)
    return {"weights": rng.normal(size=(k, d)), "bias": rng.normal(size=k), "x": rng.normal(size=(n, d)),
            "label": rng.integers(0, k, n), "n": n, "k": k, "d": d}  # fmt: skip


def _quotes(quick: bool) -> data.Data:
    rng = np.random.default_rng(3)
    n = 40 if quick else 10_000
    return {"p": np.array([100, 0.02, 0.2, -0.1, 0.3, 0.05, 1.0]), "strike": rng.uniform(60, 140, n),
            "time": rng.uniform(0.1, 2, n), "quote": rng.uniform(0, 40, n), "n": n}  # fmt: skip


def _pixels(quick: bool) -> data.Data:
    rng = np.random.default_rng(4)
    n, m = (40, 5) if quick else (2000, 50)
    return {"centre": rng.uniform(size=(m, 2)), "width": rng.uniform(5, 50, m), "density": rng.uniform(0.1, 0.9, m),
            "colour": rng.uniform(size=m), "ray": rng.uniform(size=(n, 2)), "pixel": rng.uniform(size=n), "n": n,
            "m": m}  # fmt: skip


def _populations(quick: bool) -> data.Data:
    rng = np.random.default_rng(5)
    n = 40 if quick else 1000
    return {"rate": np.array([1.1, 0.4, 0.1, 0.4]), "start": rng.uniform(1, 5, (n, 2)),
            "end": rng.uniform(1, 5, (n, 2)), "n": n, "steps": 100, "h": 0.02}  # fmt: skip


FACTORS = "f64[k] alphas, f64[k,d] means, f64[k,d+d*(d-1)/2] icf, f64[n,d] x, i64 k, i64 d, i64 n"
CLASSES = "f64[k,d] weights, f64[k] bias, f64[n,d] x, i64[n] label, i64 n, i64 k, i64 d"
QUOTES = "f64[7] p, f64[n] strike, f64[n] time, f64[n] quote, i64 n"
PIXELS = "f64[m,2] centre, f64[m] width, f64[m] density, f64[m] colour, f64[n,2] ray, f64[n] pixel, i64 n, i64 m"
POPULATIONS = "f64[4] rate, f64[n,2] start, f64[n,2] end, i64 n, i64 steps, f64 h"
PARTS = ("alphas", "means", "icf")
SIZES = ((2, 5), (10, 25), (20, 50), (64, 10))
CASES = (
    *(Case(f"gmm d{d} k{k}", "gmm.c", "gmm", GMM, PARTS, partial(_mixture, d=d, k=k)) for d, k in SIZES),
    *(Case(f"mixture d{d} k{k}", "independent.c", "mixture", FACTORS, PARTS, partial(_mixture, d=d, k=k))
      for d, k in SIZES),
    *(Case(f"classify k{k} d{d}", "independent.c", "classify", CLASSES, ("weights", "bias"),
           partial(_classes, k=k, d=d)) for k, d in ((3, 4), (10, 64))),
    Case("kmeans", "kmeans.c", "kmeans", f"{KMEANS}, i64 n, i64 k, i64 d", ("centres",), data.kmeans),
    Case("smile", "independent.c", "smile", QUOTES, ("p",), _quotes, "for (long i = 0; i < n; i++)"),
    Case("render", "independent.c", "render", PIXELS, ("centre", "width", "density", "colour"), _pixels),
    Case("trajectories", "independent.c", "trajectories", POPULATIONS, ("rate",), _populations),
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 where gradients differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(",")[0])
    parser.add_argument("names", nargs="*", help="cases, by how their names begin; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes: a check, not a measurement")
    options = parser.parse_args(words)
    print("| kernel | primal | store | fused | default | tape: store | fused | default | apart |\n|" + "---|" * 9)
    right = True
    for case in CASES:
        if not options.names or case.name.startswith(tuple(options.names)):
            right &= _row(case, options.quick)
    return 0 if right else 1


def _row(case: Case, quick: bool) -> bool:
    import irgrad

    named = case.inputs(quick)
    signature = f"f64({case.parameters})"
    inputs = inputs_of(signature, named)
    library = irgrad.load(HERE / "kernels" / case.source)
    primal = library.kernel(case.function, signature)
    said: tuple[dict[str, Any], ...] = ({"tape_memory": None}, {"checkpoint": {case.place(): "fused"}}, {})
    gradients, found, refused = [], [], ""
    for choice in said:
        gradient = irgrad.grad(library.kernel(case.function, signature, **choice), wrt=case.wrt)
        try:
            made = gradient(*inputs)
        except irgrad.Unsupported as error:
            gradient, refused = None, str(error.because)
        else:
            parts = made if isinstance(made, tuple | list) else [made]
            found.append(np.concatenate([np.ravel(part) for part in parts]))
        gradients.append(gradient)
    apart = max(float(np.abs(other - found[0]).max() / np.abs(found[0]).max()) for other in found)
    calls = [partial(call, *inputs) for call in (primal, *gradients) if call]
    first, *others = _least(calls, 1 if quick else 21)
    rest = iter(others)
    ratios = " | ".join(f"{next(rest) / first:.2f}" if gradient else "no" for gradient in gradients)
    tapes = " | ".join(f"{gradient.tape_bytes:,}" if gradient else "" for gradient in gradients)
    print(f"| {case.name} | {first * 1e3:.2f} ms | {ratios} | {tapes} | {apart:.0e} |", flush=True)
    if refused:
        print(f"  not fused: {refused}")
    return apart < TOLERANCE


def _least(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """CPU seconds of each call, the least of rounds in which all have their turn."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for n, call in enumerate(calls):
            begin = time.process_time()
            call()
            best[n] = min(best[n], time.process_time() - begin)
    return best


if __name__ == "__main__":
    sys.exit(main())
