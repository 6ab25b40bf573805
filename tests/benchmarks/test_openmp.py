"""The OpenMP applications at small sizes: values against NumPy, every gradient right."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.openmp import __main__ as table
from benchmarks.openmp.applications import APPLICATIONS


@pytest.mark.long
def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["openmp", "--quick"])
    assert table.main() == 0
    assert capsys.readouterr().out.count(" right ") == len(APPLICATIONS)


@pytest.mark.long
def test_nodes_that_are_held_stay() -> None:
    kernel, data = APPLICATIONS["hydrodynamics"].kernel(), APPLICATIONS["hydrodynamics"].data(True)
    data["held"][:] = 7
    x = data["positions"]
    corners = x[data["corners"]]
    volume = np.abs(np.linalg.det(corners[:, [1, 3, 4]] - corners[:, :1]))  # of the box that the cell nearly is
    mass = np.zeros(len(x))
    np.add.at(mass, data["corners"], (data["densities"] * volume / 8)[:, None])
    near = (mass * (x**2).sum(1)).sum() / mass.sum()
    assert abs(kernel(**data) - near) < 0.05 * near
    assert kernel(**data) == kernel(**{**data, "steps": 0})
    data["held"][:] = 0  # a gas in a vacuum expands
    assert kernel(**data) > kernel(**{**data, "steps": 0})


@pytest.mark.long
def test_energies_of_poses() -> None:
    application = APPLICATIONS["docking"]
    data = application.data(True)
    value, energies = application.kernel()(**data)
    ligand, pocket, kinds = (data[name] for name in ("ligand", "pocket", "kinds"))
    at = np.stack([ligand[axis] for axis in "xyz"], 1)
    around = np.stack([pocket[axis] for axis in "xyz"], 1)
    a, b = ({name: row[k[:, None] if k is ligand["kind"] else k[None]] for name, row in kinds.items()}
            for k in (ligand["kind"], pocket["kind"]))  # fmt: skip
    touching, bonds = a["radius"] + b["radius"], (a["bonds"], b["bonds"])
    charged, strength = (bonds[0] == 3) & (bonds[1] == 3), a["charge"] * b["charge"]
    strength = np.where(charged, strength, np.where(bonds[0] == bonds[1], 0, -abs(strength)))
    strength = np.where((bonds[0] == 0) | (bonds[1] == 0), 0, strength)
    mixed, sum_ = a["hydrophobic"] * b["hydrophobic"] < 0, a["hydrophobic"] + b["hydrophobic"]

    def fading(apart: Any, reach: Any) -> Any:
        return np.clip(1 - apart / reach, 0, 1)

    for pose, energy in zip(data["poses"], energies, strict=True):
        distance = np.linalg.norm((at @ _rotation(*pose[:3]).T + pose[3:])[:, None] - around, axis=-1)
        apart = distance - touching
        pairs = np.where(apart < 0, (1 - distance / touching) * 76, 0)
        pairs += strength * fading(apart, np.where(charged, 4, 1))
        pairs += np.where(mixed, 0.5 * abs(sum_), -abs(sum_)) * fading(apart, np.where(mixed, 5.5, 2.75))
        np.testing.assert_allclose(energy, 0.5 * pairs.sum(), rtol=1e-11)
    least = energies.min()
    np.testing.assert_allclose(value, least - 2 * np.log(np.mean(np.exp((least - energies) / 2))), rtol=1e-12)


def _rotation(x: float, y: float, z: float) -> Any:
    """About the first axis, then the second, then the third."""
    (sx, sy, sz), (cx, cy, cz) = np.sin([x, y, z]), np.cos([x, y, z])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    return np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]]) @ about_y @ about_x
