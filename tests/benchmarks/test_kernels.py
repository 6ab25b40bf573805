"""Hand-written gradients, JAX and five-point differences agree on every kernel, at reduced sizes, without irgrad."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import native, peer_jax
from benchmarks.cases import CASES, Case, select
from benchmarks.native import HERE

pytestmark = pytest.mark.long

STEP = 1e-3


def expected(case: Case, data: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    name, signature = case.manual
    source = HERE / "manual" / case.source.replace(".cpp", ".c")
    return [np.array(out) for out in native.bind(source, name, signature, data)()[1]]


def along(case: Case, data: dict[str, Any], tangents: dict[str, Any]) -> list[Any]:
    """Derivative of everything the kernel returns along the tangents, by five-point differences."""

    def at(t: float) -> list[Any]:
        moved = {**data, **{name: data[name] + t * STEP * tangents[name] for name in case.wrt}}
        if case.operation == "hvp":
            return expected(select(["kmeans"])[0], moved)
        value, outs = native.bind(HERE / "kernels" / case.source, case.function, case.signature, moved)()
        return [np.array(out) for out in outs] if value is None else [value]

    points = zip(at(-2), at(-1), at(1), at(2), strict=True)
    return [(a - 8 * b + 8 * c - d) / (12 * STEP) for a, b, c, d in points]


def predicted(
    case: Case, data: dict[str, Any], tangents: dict[str, Any]
) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """What the hand-written derivative says about the same direction, and how to read the differences for it."""
    parts = expected(case, data)
    moves = [tangents[name] for name in case.wrt]
    if case.operation in ("jvp", "hvp"):
        return parts, lambda d: d
    if case.operation == "jacfwd":
        return [parts[0] @ moves[0]], lambda d: d
    if case.operation == "rows":
        per_row = sum((p * m).reshape(2, data["p"], -1).sum(axis=2) for p, m in zip(parts, moves, strict=True))
        return [per_row.T], lambda d: d
    total = sum(np.vdot(p, m) for p, m in zip(parts, moves, strict=True))
    if case.operation == "vjp":
        return [total], lambda d: [sum(np.vdot(data[w], x) for w, x in zip(case.seeds, d, strict=True))]
    return [total], lambda d: d


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_hand_written_derivative_agrees_with_differences(case: Case) -> None:
    data = case.inputs(True)
    rng = np.random.default_rng(0)
    seeds = dict(zip(case.wrt, case.seeds, strict=False)) if case.operation in ("jvp", "hvp") else {}
    for _ in range(1 if seeds else 3):
        tangents = {n: data[seeds[n]] if seeds else 0.3 * rng.normal(size=np.shape(data[n])) for n in case.wrt}
        wanted, read = predicted(case, data, tangents)
        for want, got in zip(wanted, read(along(case, data, tangents)), strict=True):
            scale = np.max(np.abs(want))
            assert scale > 1e-5  # a direction that shows nothing would pass anything
            np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7 * scale)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_jax_agrees_with_hand_written_derivative(case: Case) -> None:
    peer_jax.one_thread()
    data = case.inputs(True)
    want, got = expected(case, data), peer_jax.derivative(case, data)()
    assert len(want) == len(got)
    for w, g in zip(want, got, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-9, atol=1e-11 * np.max(np.abs(w)))


def test_both_burgers_compute_the_same() -> None:
    copy, swap = select(["burgers"])
    values = [
        native.bind(HERE / "kernels" / c.source, c.function, c.signature, c.inputs(True))()[0] for c in (copy, swap)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-14)


def test_the_table_names_all_sixteen_kernels() -> None:
    assert {case.number for case in CASES} == set(range(1, 17))
    assert len({case.name for case in CASES}) == len(CASES)


def test_an_unknown_name_is_refused_with_the_choice() -> None:
    with pytest.raises(SystemExit, match="no benchmark is called gnn; there are: gmm-10"):
        select(["gnn"])
