"""A force field fitted to forces: `python examples/force_fit.py [steps] [picture.png]`.

Stillinger and Weber's potential of silicon, pairs and angles, as a Python function that Numba compiles. Forces are its
derivative in the positions; a misfit of forces is differentiated once more, in the parameters. JAX composes the two.
"""

from __future__ import annotations

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import irgrad as ig


@ig.jit("f64(f64[n,3] pos, f64 box, f64[5] p)")
def energy(pos, box, p):  # type: ignore[no-untyped-def]  # no annotations: Numba's own types
    """The energy of a periodic box; p: strength and offset of pairs, strength and range of angles, length."""
    n, sigma = pos.shape[0], p[4]
    cut = 1.8 * sigma
    near, away = np.empty((n, 3)), np.empty(n)
    total = 0.0
    for i in range(n):
        count = 0
        for j in range(n):
            if j == i:
                continue
            square = 0.0
            for k in range(3):
                d = pos[j, k] - pos[i, k]
                near[count, k] = d - box * round(d / box)
                square += near[count, k] ** 2
            if square < cut * cut:
                away[count] = math.sqrt(square)
                count += 1
        for a in range(count):
            r = away[a]
            total += 0.5 * p[0] * (p[1] * (sigma / r) ** 4 - 1) * math.exp(sigma / (r - cut))
            for b in range(a):
                s = away[b]
                cosine = (near[a, 0] * near[b, 0] + near[a, 1] * near[b, 1] + near[a, 2] * near[b, 2]) / (r * s)
                reach = p[3] * sigma * (1 / (r - cut) + 1 / (s - cut))
                total += p[2] * (cosine + 1 / 3) ** 2 * math.exp(reach)
    return total


NAMES = ("pairs / eV", "offset", "angles / eV", "range", "length / A")
TRUE = np.array([15.2855, 0.60222, 45.534, 1.2, 2.0951])
BOX = 10.862


def snapshots(count: int, rng: np.random.Generator) -> np.ndarray:
    """64 atoms of a diamond lattice that vibrate, shape (count, 64, 3)."""
    corner = np.array([[0, 0, 0], [0, 2, 2], [2, 0, 2], [2, 2, 0]]) / 4
    cell = np.concatenate([corner, corner + 0.25])
    cells = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    return (cells + cell).reshape(-1, 3) * BOX / 2 + rng.normal(scale=0.15, size=(count, 64, 3))


def main(steps: int = 40, picture: str = "") -> tuple[float, float]:
    """Fit, print parameters, draw forces. Returns the first and the last error of the forces, in eV per Angstrom."""
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    forces = jax.jit(jax.vmap(lambda pos, p: -jax.grad(energy)(pos, BOX, p), in_axes=(0, None)))
    train, test = snapshots(8, rng), snapshots(4, rng)
    wanted = forces(train, TRUE) + 0.02 * rng.standard_normal(train.shape)

    @jax.jit
    def misfit(scale: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(lambda s: jnp.mean((forces(train, start * jnp.exp(s)) - wanted) ** 2))(scale)

    start = TRUE * np.array([0.7, 1.15, 0.5, 1.2, 1.03])
    history: list[float] = []
    fit = minimize(misfit, np.zeros(5), jac=True, method="BFGS", options={"maxiter": steps, "gtol": 1e-9},
                   callback=lambda s: history.append(float(misfit(s)[0] ** 0.5)))  # fmt: skip
    found = start * np.exp(fit.x)
    for name, got, true in zip(NAMES, found, TRUE, strict=True):
        print(f"{name:12s} {got:8.4f}   (true {true:g})")
    first, last = (float(misfit(s)[0] ** 0.5) for s in (np.zeros(5), fit.x))
    print(f"error of the forces {first:.3f} eV/A at first, {last:.4f} after {len(history)} steps (noise 0.02)")
    if picture:
        draw(picture, forces(test, TRUE), forces(test, start), forces(test, found), history)
    return first, last


def draw(path: str, true: jax.Array, before: jax.Array, after: jax.Array, history: list[float]) -> None:
    """Forces of snapshots that were not fitted, and the misfit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(np.ravel(true), np.ravel(before), ".", ms=3, alpha=0.5, label="first guess")
    left.plot(np.ravel(true), np.ravel(after), ".", ms=3, label="fitted")
    left.plot([-8, 8], [-8, 8], "k-", lw=0.5)
    left.set(xlabel="true force, eV/A", ylabel="force of the model", title="atoms that were not fitted", aspect="equal")
    left.legend()
    right.semilogy(history)
    right.axhline(0.02, color="k", ls=":", lw=1, label="noise")
    right.set(xlabel="step", title="error of the forces, eV/A")
    right.legend()
    figure.savefig(path, dpi=90)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, sys.argv[2] if len(sys.argv) > 2 else "force_fit.png")
