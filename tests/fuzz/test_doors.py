"""Random kernels through every door: inside of C programs, as IR of clang, by every public function."""

from __future__ import annotations

import argparse
import os
from typing import Any

import jax
import pytest
from oracle.generator import STRAIGHT, generate
from shares import fast

from irgrad import engine
from irgrad.engine.enzyme.names import DERIVATIVES
from irgrad.interop.cli import _parser

from .doors import DOORS, visit
from .driver import hint, run, summary
from .programs import LEVELS
from .verdicts import Verdict

COUNT = int(os.environ.get("IRGRAD_FUZZ", "40"))
FIRST = int(os.environ.get("IRGRAD_FUZZ_SEED", "0"))
NO_DOORS = {"Kernel", "Signature", "batch", "bench", "broadcast", "check", "check_rule", "explain", "explain_batch",
            "explain_plan", "explain_rules", "explain_tape", "first_nonfinite", "fixed_point", "linear_solve",
            "primal", "release", "root"}  # fmt: skip
"""What is public and gives no derivative, or that of a solver whose equation the user states, or takes kernels of
numbers alone (`broadcast`; random kernels have arrays)."""
NO_COMMANDS = {"ar", "cache", "check", "cmake-file", "demo", "explain", "hints", "opt", "ranlib", "rules", "tesseract",
               "tune"}  # fmt: skip


def _share(part: int, of: int) -> int:
    return -(-COUNT * part // of)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("half", (0, 1))
def test_straight_kernels_in_programs(level: str, half: int) -> None:
    """Half of IRGRAD_FUZZ kernels, a sixth of them at each level; none is wrong, none refused."""
    count = _share(1, 24)
    first = STRAIGHT + FIRST + (2 * list(LEVELS).index(level) + half + 1) * 100_000
    results = run(range(first, first + count), level=level)
    bad = [(k, v) for k, v in results if v.bad]
    assert not bad, summary(results) + "\n\n" + hint(*bad[0], False, f"--level='{level}' ")
    assert sum(v.kind == "ok" for _, v in results) >= 0.9 * count, summary(results)


@pytest.mark.parametrize("level", fast(3, LEVELS))
def test_kernels_in_programs(level: str) -> None:
    """The older kernels, with loops, memory and calls."""
    first = FIRST + 30_000 + 1000 * list(LEVELS).index(level)
    results = run(range(first, first + _share(1, 250)), batch=10, level=level)
    bad = [(k, v) for k, v in results if v.bad]
    assert not bad, summary(results) + "\n\n" + hint(*bad[0], False, f"--level='{level}' ")
    assert sum(v.kind == "ok" for _, v in results) >= 0.8 * len(results), summary(results)


@pytest.mark.parametrize("level", fast(3, LEVELS))
def test_kernels_as_ir(level: str) -> None:
    """What clang wrote at this level, vectorised by its own passes, through `lib.kernel`: straight and older ones."""
    at = FIRST + 1000 * list(LEVELS).index(level)
    results = run(range(STRAIGHT + at, STRAIGHT + at + _share(1, 40)), level=level, ir=True)
    results += run(range(40_000 + at, 40_000 + at + _share(1, 100)), level=level, ir=True)
    bad = [(k, v) for k, v in results if v.bad]
    assert not bad, summary(results) + "\n\n" + hint(*bad[0], False, f"--level='{level}' --ir ")
    assert sum(v.kind == "ok" for _, v in results) >= 0.8 * len(results), summary(results)


@pytest.mark.parametrize("start", fast(1, [STRAIGHT + 70_000, 50_000]))
def test_public_functions(start: int) -> None:
    kernels = [generate(s) for s in range(FIRST + start, FIRST + start + _share(1, 150))]
    found: list[Any] = []
    with jax.enable_x64(True):  # in this process: JAX does not survive a fork
        visit(kernels, found.append)
    bad = [v for v in found if isinstance(v, Verdict) and v.bad]
    assert not bad, "\n\n".join(f"{v.name} {v.kind}\n{v.detail}" for v in bad[:3])
    assert sum(isinstance(v, Verdict) and v.kind == "ok" for v in found) >= 0.8 * len(kernels)


def test_no_door_is_missing() -> None:
    """Whoever adds a public way to get a derivative has it visited by random kernels too."""
    commands = next(a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    public = {f"engine.{name}" for name in engine.__all__ if name not in NO_DOORS}
    public |= {f"irgrad {name}" for name in commands if name not in NO_COMMANDS} | set(DERIVATIVES)
    public |= {"jax.grad", "jax.jvp", "jax.vmap", "jax on CUDA", "interop.jax.export", "irgrad.load of .ll"}
    public |= {"lib.kernel(checkpoint=)"}
    assert public == set(DOORS)
