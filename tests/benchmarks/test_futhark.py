"""The ten programs at small sizes: values against NumPy and SciPy, every gradient right."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from benchmarks.futhark import __main__ as table
from benchmarks.futhark.programs import CASES, PROGRAMS


def _value(name: str) -> tuple[float, tuple[Any, ...]]:
    arguments = PROGRAMS[name].data(True)
    out = table.kernel_of(PROGRAMS[name])(*arguments)
    return float(out[0] if isinstance(out, tuple) else out), arguments


@pytest.mark.long
def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["futhark", "--quick", "k-means", *PROGRAMS])
    assert table.main() == 0
    printed = capsys.readouterr().out
    assert printed.count(" right ") == 1 + len(PROGRAMS)
    assert "WRONG" not in printed
    assert len(CASES) + len(PROGRAMS) == 13


def test_threads_have_columns_of_their_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["futhark", "--quick", "--threads", "2", "k-means", "sparse k-means"])
    assert table.main() == 0
    printed = capsys.readouterr().out
    assert "| 1 thread | 2 threads |" in printed
    assert [line.count("|") for line in printed.splitlines()] == [11] * 4


@pytest.mark.long
def test_values_of_sparse_k_means_and_look_ups() -> None:
    value, (centres, entries, column, row) = _value("sparse k-means")
    dense = np.zeros((len(row) - 1, centres.shape[1]))
    dense[np.repeat(np.arange(len(row) - 1), np.diff(row)), column] = entries
    np.testing.assert_allclose(value, ((dense[:, None] - centres) ** 2).sum(2).min(1).sum(), rtol=1e-12)
    value, (energy, micro, density, at, material, weight) = _value("XSBench")
    want = sum(rho * np.interp(e, energy[i], micro[i] @ weight)
               for e, m in zip(at, material, strict=True) for i, rho in enumerate(density[m]))  # fmt: skip
    np.testing.assert_allclose(value, want, rtol=1e-12)


@pytest.mark.long
def test_the_value_of_the_batched_lstm() -> None:
    value, (w, u, bias, x, target) = _value("LSTM, batched")
    hidden, cell, loss = np.zeros(target.shape[1:]), np.zeros(target.shape[1:]), 0.0
    for step, wanted in zip(x, target, strict=True):
        rows = np.split(step @ w.T + hidden @ u.T + bias, 4, axis=1)
        enter, forget, leave = (1 / (1 + np.exp(-rows[i])) for i in (0, 1, 3))
        cell = forget * cell + enter * np.tanh(rows[2])
        hidden = leave * np.tanh(cell)
        loss += ((hidden - wanted) ** 2).sum()
    np.testing.assert_allclose(value, loss / target.size, rtol=1e-12)


@pytest.mark.long
def test_the_lattice_keeps_mass_and_rests_in_balance() -> None:
    kernel = table.kernel_of(PROGRAMS["lattice Boltzmann"])
    f, g, omega, steps = PROGRAMS["lattice Boltzmann"].data(True)
    _, after, _ = kernel(f, g, omega, steps)
    np.testing.assert_allclose(after.sum(), f.sum(), rtol=1e-13)
    momentum = [np.tensordot(_velocities(), row.sum((1, 2, 3)), 1) for row in (f, after)]
    np.testing.assert_allclose(*momentum, atol=1e-12)
    rest = np.repeat([1 / 3, 1 / 18, 1 / 36], [1, 6, 12])[:, None, None, None] * np.ones_like(f)
    energy, still, _ = kernel(rest, g, omega, steps)
    np.testing.assert_allclose(still, rest, rtol=1e-14)
    assert abs(energy) < 1e-25


def _velocities() -> np.ndarray[Any, Any]:
    """The 19 directions in the order of the program."""
    axes = np.concatenate([[s * row] for row in np.eye(3) for s in (1, -1)])
    pairs = [(a, s, b, t) for a, b in ((0, 1), (0, 2), (1, 2)) for s, t in ((1, 1), (-1, -1), (1, -1), (-1, 1))]
    diagonal = [s * np.eye(3)[a] + t * np.eye(3)[b] for a, s, b, t in pairs]
    return np.concatenate([np.zeros((1, 3)), axes, diagonal]).T


@pytest.mark.long
def test_the_faddeeva_function() -> None:
    from scipy import special
    kernel = ig.load(table.HERE / "rsbench.c").kernel("faddeeva", "void(f64[2] z, out f64[2] w)")
    rng = np.random.default_rng(0)
    for radius, close in ((7.9, 1e-9), (300.0, 1e-5)):
        angle, size = rng.uniform(0.05, 3.0, 50), radius * rng.uniform(0.1, 1.0, 50)
        z = size * np.exp(1j * angle)
        got = ig.batch(kernel)(np.stack([z.real, z.imag], axis=1)) @ [1, 1j]
        np.testing.assert_allclose(got, special.wofz(z), rtol=close)
