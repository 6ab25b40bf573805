"""Other ways to ask for the derivatives of a random kernel: few active arguments, programs that keep the value, twice.

A seed decides which of them its kernel gets, so that every way meets every feature.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
from oracle.differences import Subject
from oracle.generator import Kernel

STEP = 1e-5


def active_arguments(k: Kernel) -> list[str]:
    """All float arguments for six kernels in ten, else some of them."""
    rng = random.Random(k.seed * 7_919 + 5)
    if rng.random() < 0.6:
        return list(k.wrt)
    return [n for n in k.wrt if rng.random() < 0.5] or [rng.choice(k.wrt)]


def run_program(
    kernel: Any, derivative: str, wrt: list[str], inputs: list[Any], start: Mapping[str, Any]
) -> dict[str, Any]:
    """Run the program of one derivative; `start` holds tangents, or cotangents of outputs, by name.

    Returns the primal's outputs by name, and the derivatives under names with a prime.
    """
    from irgrad.engine.kernel.run import Run

    names = [p.name for p in kernel.signature.parameters]
    index = {name: i for i, name in enumerate([*names, "return"])}
    outputs = [p for p in kernel.output_positions if kernel.primal.slots[p].differentiable]
    program = getattr(kernel.primal, derivative)((*(index[n] for n in wrt), *outputs))
    given = {program.find(index[name], 0): value for name, value in start.items()}
    full = Run(program, kernel.bind(tuple(inputs), {}), given)()
    out: dict[str, Any] = {}
    for number, slot in enumerate(program.slots):
        if slot.role != "scratch" and len(slot.steps) <= 1:
            out[slot.name] = full[number].copy()
    return out


def second_order(kernel: Any, subject: Subject, k: Kernel, inputs: Mapping[str, Any], wrt: list[str]) -> list[str]:
    """What is wrong with the Hessian along two directions: symmetry, and against differences of the oracle's duals.

    Empty for kernels without a scalar value, in single precision, or where kinks are too near for differences.
    """
    from irgrad import engine

    if not k.returns or k.has_f32:
        return []
    rng = np.random.default_rng(k.seed + 1)
    u, v = ({n: rng.uniform(-1, 1, np.shape(inputs[n])) for n in wrt} for _ in range(2))
    order = [inputs[p.name] for p in subject.signature.arguments]

    def product(d: Mapping[str, Any]) -> Any:
        return engine.hvp(kernel, order, tuple(d[n] for n in wrt), wrt=tuple(wrt))

    def along(t: float, exact: bool) -> float:
        moved = {n: np.asarray(inputs[n] + t * v[n]) if n in v else inputs[n] for n in inputs}
        return float(subject.directional(moved, u, exact=exact)[1]["return"][0])

    def pairing(rows: Any, d: Mapping[str, Any]) -> float:
        return sum(float(np.sum(row * d[n])) for n, row in zip(wrt, rows, strict=True))

    hv, hu = product(v), product(u)
    one, two = pairing(hv, u), pairing(hu, v)
    size = max(1.0, sum(float(np.abs(row * u[n]).sum()) for n, row in zip(wrt, hv, strict=True)))
    want = (along(STEP, False) - along(-STEP, False)) / (2 * STEP)
    if abs(one - want) <= 1e-6 * size and abs(one - two) <= 1e-11 * size:
        return []
    closer, wider = ((along(h, True) - along(-h, True)) / (2 * h) for h in (STEP / 8, STEP / 2))
    if abs(closer - wider) > 1e-7 * size or abs(closer - want) > 1e-6 * size:
        return []  # a kink, or badly conditioned: differences cannot judge
    return [f"second order: u'Hv = {one!r}, v'Hu = {two!r}, want {want!r}"]
