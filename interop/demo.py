"""`irgrad demo`: a real C function, its gradient, the check, the cost, and the same under JAX."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irgrad.engine.support.progress import Progress

__all__ = ["run_demo"]

_SIGNATURE = "f64(f64[n,3] pos, f64[n,3] vel, f64[n] mass, i64 n)"
_SOURCE = Path(__file__).with_name("demo_nbody.c")


def run_demo(bodies: int = 256, batch: int = 8, jax: bool = True) -> bool:
    """Print the demo. Returns whether every check passed."""
    import numpy as np

    from irgrad import engine
    from irgrad.interop.loaders import load

    rng = np.random.default_rng(2026)
    pos, vel = rng.standard_normal((bodies, 3)), rng.standard_normal((bodies, 3))
    mass = rng.uniform(0.5, 1.5, bodies)
    _say(f"The energy of {bodies} gravitating bodies: {_SOURCE.name}, {_lines()} lines of plain C.")
    _say("")
    with Progress("compiling the C function") as compiling:
        energy = load(_SOURCE).kernel("energy", _SIGNATURE)
        value = energy(pos, vel, mass)
    _row("C to machine code", f"{compiling.seconds:6.2f} s", f"energy = {value:.12g}")
    gradient = engine.value_and_grad(energy, wrt=("pos", "vel", "mass"))
    with Progress("differentiating") as deriving:
        _, (d_pos, d_vel, d_mass) = gradient(pos, vel, mass)
    _row("its gradient", f"{deriving.seconds:6.2f} s", f"{d_pos.size + d_vel.size + d_mass.size} derivatives, "
         f"d energy/d pos[0] = {np.array2string(d_pos[0], precision=6)}")  # fmt: skip
    primal = _seconds(energy.prepare(pos, vel, mass))
    reverse = _seconds(gradient.prepare(pos, vel, mass))
    _row("one energy", f"{primal * 1e6:6.1f} us", "native call")
    _row("energy and all gradients", f"{reverse * 1e6:6.1f} us", f"{reverse / primal:.1f} times one energy; "
         f"by differences it would be {2 * 7 * bodies} times")  # fmt: skip
    _say("")
    report = engine.check(energy, pos, vel, mass)
    _say(str(report))
    _say("")
    good = bool(report)
    if jax:
        good = _under_jax(energy, (pos, vel, mass), d_pos, batch) and good
    _say("Next: irgrad grad FILE.c FUNCTION --sig \"...\" --wrt x -o gradient.so   or, in Python, "
         'irgrad.load("FILE.c")')  # fmt: skip
    return good


def _under_jax(energy: Any, point: tuple[Any, Any, Any], d_pos: Any, batch: int) -> bool:
    with Progress("importing JAX"):
        import jax
        import numpy as np

        x64 = jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_enable_x64", True)
    try:
        pos, vel, mass = point
        with Progress("jax.jit(jax.grad(energy))") as tracing:
            fast = jax.jit(jax.grad(energy))
            under_jit = np.asarray(fast(pos, vel, mass))
        error = float(np.max(np.abs(under_jit - d_pos)))
        _row("jax.jit(jax.grad(energy))", f"{tracing.seconds:6.2f} s",
             f"differs from the gradient above by {error:.1e}")  # fmt: skip
        many = pos + 0.01 * np.random.default_rng(1).standard_normal((batch, *pos.shape))
        rows = np.asarray(jax.jit(jax.vmap(jax.grad(energy), (0, None, None)))(many, vel, mass))
        singles = np.stack([np.asarray(fast(row, vel, mass)) for row in many])
        spread = float(np.max(np.abs(rows - singles)))
        _row("jax.vmap(jax.grad(energy))", f"{batch:4d} at once",
             f"one native call; differs from {batch} calls by {spread:.1e}")  # fmt: skip
        _say("")
        scale = float(np.max(np.abs(d_pos)))
        return error <= 1e-12 * scale and spread <= 1e-12 * scale
    finally:
        jax.config.update("jax_enable_x64", x64)


def _seconds(call: Callable[[], None], budget: float = 0.2) -> float:
    """Best time of one call."""
    best, spent = float("inf"), 0.0
    while spent < budget:
        start = time.perf_counter()
        call()
        taken = time.perf_counter() - start
        best, spent = min(best, taken), spent + taken
    return best


def _lines() -> int:
    return len([line for line in _SOURCE.read_text(encoding="utf-8").splitlines() if line.strip()])


def _row(what: str, number: str, note: str) -> None:
    _say(f"  {what:<27} {number:>12}   {note}")


def _say(text: str) -> None:
    print(text, flush=True)
