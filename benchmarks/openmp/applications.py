"""The applications: sources, signatures, data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import irgrad as ig

HERE = Path(__file__).parent
HYDRODYNAMICS = """
f64(f64[nodes,3] positions, f64[elements] energies, f64[elements] densities, i32[elements,8] corners,
    i32[nodes+1] first, i32[8*elements] list, i32[nodes] held, i32[elements] material, i64 nodes, i64 elements,
    i64 steps)"""
DOCKING = """
struct atom { f64 x; f64 y; f64 z; i32 kind; };
struct kind { i32 bonds; f64 radius; f64 hydrophobic; f64 charge; };
f64(f64[n,6] poses, atom[ligands] ligand, atom[pockets] pocket, kind[count] kinds, out f64[n] energies, f64 temperature,
    i64 n, i64 ligands, i64 pockets, i64 count)"""
FLEXIBLE = """
struct site { f64 x; f64 y; f64 z; f64 charge; i32 kind; i32 bonded; };
struct kind { f64 radius; f64 depth; f64 volume; f64 solvation; i32 role; };
f64(site[atoms] rest, i32[torsions,2] axis, i32[torsions+1] first, i32[all] moved, i32[pairs,2] pair,
    site[count] sites, kind[kinds] kind, f64[6] weights, f64[n,torsions+7] genes, f64[atoms,3] known, f64 temperature,
    out f64[n] energies, out i32[16] bins, i64 atoms, i64 torsions, i64 all, i64 pairs, i64 count, i64 kinds, i64 n)"""


@dataclass(frozen=True)
class Application:
    """A C program: its file and function, the signature, what is differentiated, data of a size, the goal, and options
    of the kernel."""

    source: str
    function: str
    signature: str
    wrt: tuple[str, ...]
    data: Any
    goal: str
    options: dict[str, Any] = field(default_factory=dict)

    def kernel(self, **options: Any) -> Any:
        """The function as a kernel; `options` as `lib.kernel` takes them."""
        return ig.load(HERE / f"{self.source}.c", flags=["-fopenmp"]).kernel(
            self.function, self.signature, **self.options, **options)  # fmt: skip


def cube(cells: int, seed: int = 0) -> dict[str, Any]:
    """A cube of cells with a blast at a corner and a shell of foam, its nodes and elements numbered at random."""
    rng = np.random.default_rng(seed)
    side = cells + 1
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    nodes, elements = side**3, cells**3
    renumber = rng.permutation(nodes)
    around = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])
    base = np.stack(np.meshgrid(*[np.arange(cells)] * 3, indexing="ij"), -1).reshape(-1, 3)
    base = base[rng.permutation(elements)]
    flat = np.array([side * side, side, 1])
    corners = renumber[(base[:, None] + around) @ flat].astype(np.int32)
    positions = np.empty((nodes, 3))
    positions[renumber] = (grid + 0.1 * (grid > 0) * rng.uniform(-1, 1, grid.shape)) / cells
    held = np.empty(nodes, np.int32)
    held[renumber] = (grid == 0) @ np.array([1, 2, 4])
    order = np.argsort(corners.ravel(), kind="stable").astype(np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(corners.ravel(), minlength=nodes))]).astype(np.int32)
    distance = np.linalg.norm((base + 0.5) / cells, axis=1)
    return {"positions": positions, "energies": 0.1 + 5.0 * np.exp(-((distance / 0.25) ** 2)),
            "densities": np.where(distance > 0.7, 0.82, 1.0), "corners": corners, "first": first, "list": order,
            "held": held, "material": (distance > 0.7).astype(np.int32)}  # fmt: skip


def hydrodynamics(quick: bool) -> dict[str, Any]:
    """10^3 cells and 100 steps; 4^3 and 10."""
    return {**cube(4 if quick else 10), "steps": 10 if quick else 100}


def docking(quick: bool) -> dict[str, Any]:
    """1,024 poses of 20 atoms in a pocket of 400; 40 poses of 5 in 30."""
    rng = np.random.default_rng(1)
    poses, ligands, pockets, kinds = (40, 5, 30, 6) if quick else (1024, 20, 400, 12)
    shell = rng.standard_normal((pockets, 3))
    shell *= (rng.uniform(4, 12, pockets) / np.linalg.norm(shell, axis=1))[:, None]

    def atoms(at: Any) -> dict[str, Any]:
        return {**dict(zip("xyz", at.T.copy(), strict=True)), "kind": rng.integers(0, kinds, len(at), np.int32)}

    return {"poses": np.concatenate([rng.uniform(-3, 3, (poses, 3)), rng.uniform(-2, 2, (poses, 3))], 1),
            "ligand": atoms(rng.uniform(-2, 2, (ligands, 3))), "pocket": atoms(shell),
            "kinds": {"bonds": rng.integers(0, 4, kinds, np.int32), "radius": rng.uniform(1, 2, kinds),
                      "hydrophobic": rng.uniform(-1, 1, kinds), "charge": rng.uniform(-1, 1, kinds)},
            "temperature": 2.0}  # fmt: skip


def chain(atoms: int, rng: Any) -> dict[str, Any]:
    """A molecule that is a folded chain, every second bond of which turns: its sites, torsions, and pairs of atoms with
    more than three bonds between them."""
    steps = rng.normal([1.0, 0.0, 0.0], 1.0, (atoms, 3))
    at = np.cumsum(1.5 * steps / np.linalg.norm(steps, axis=1)[:, None], axis=0)
    turning = np.arange(1, atoms - 2, 2)
    moved = [np.arange(bond + 2, atoms) for bond in turning]
    pairs = [(a, b) for a in range(atoms) for b in range(a + 4, atoms)]
    return {"rest": at, "axis": np.stack([turning, turning + 1], 1).astype(np.int32),
            "first": np.cumsum([0, *map(len, moved)]).astype(np.int32),
            "moved": np.concatenate(moved).astype(np.int32), "pair": np.array(pairs, np.int32)}  # fmt: skip


def flexible_docking(quick: bool) -> dict[str, Any]:
    """512 conformations of 24 atoms with 11 torsions in a pocket of 600; 24 of 8 atoms in 40."""
    rng = np.random.default_rng(2)
    conformations, atoms, pockets, kinds = (24, 8, 40, 5) if quick else (512, 24, 600, 8)
    shell = rng.standard_normal((pockets, 3))
    shell *= (rng.uniform(5, 14, pockets) / np.linalg.norm(shell, axis=1))[:, None]
    molecule = chain(atoms, rng)
    torsions = len(molecule["axis"])

    def sites(at: Any, bonded: Any) -> dict[str, Any]:
        return {**dict(zip("xyz", at.T.copy(), strict=True)), "charge": rng.uniform(-0.4, 0.4, len(at)),
                "kind": rng.integers(0, kinds, len(at), np.int32), "bonded": bonded.astype(np.int32)}  # fmt: skip

    genes = [rng.uniform(-2, 2, (conformations, 3)), rng.standard_normal((conformations, 4)),
             rng.uniform(-3, 3, (conformations, torsions))]  # fmt: skip
    return {**molecule, "rest": sites(molecule["rest"], np.arange(atoms) - 1),
            "sites": sites(shell, rng.integers(-1, pockets, pockets)),
            "kind": {"radius": rng.uniform(2.4, 4, kinds), "depth": rng.uniform(0.02, 0.2, kinds),
                     "volume": rng.uniform(5, 30, kinds), "solvation": rng.uniform(-0.01, 0.01, kinds),
                     "role": np.arange(kinds, dtype=np.int32) % 3},
            "weights": rng.uniform(0.1, 1, 6), "genes": np.concatenate(genes, 1),
            "known": rng.uniform(-3, 3, (atoms, 3)), "temperature": 20.0}  # fmt: skip


_LINES = (HERE / "hydrodynamics.c").read_text().splitlines()
_MARCH = next(n for n, row in enumerate(_LINES, 1) if "step < steps" in row)
_BLAST = Application("hydrodynamics", "blast", HYDRODYNAMICS, ("energies", "positions"), hydrodynamics, "6")
APPLICATIONS = {
    "hydrodynamics": _BLAST,
    "hydrodynamics, states": replace(_BLAST, options={"checkpoint": {f"hydrodynamics.c:{_MARCH}": 1}}),
    "docking": Application("docking", "free_energy", DOCKING, ("poses",), docking, "2.4"),
    "flexible docking": Application("flexible_docking", "misfit", FLEXIBLE,
                                    ("genes", "kind_radius", "kind_depth", "weights"), flexible_docking, ""),
}
