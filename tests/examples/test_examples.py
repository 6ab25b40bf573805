"""The examples run, learn something, and draw their picture. With fewer steps than a user would take."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import irgrad

pytestmark = pytest.mark.long

# name: (steps or cells, last loss over first loss at most)
TRAINED = {"heat_control": (60, 0.6), "fit_ode": (25, 0.1), "residual": (120, 0.1)}


def _main(repository: Path, name: str) -> Any:
    return runpy.run_path(str(repository / "examples" / f"{name}.py"))["main"]


@pytest.mark.parametrize("name", TRAINED)
def test_training_lowers_the_loss(
    name: str, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps, ratio = TRAINED[name]
    first, last = _main(repository, name)(steps, str(tmp_path / "picture.png"))
    assert last < ratio * first
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.count("\n") > 3  # progress is shown


def test_flow_map(repository: Path, tmp_path: Path) -> None:
    lowest, highest = _main(repository, "flow_map")(12, str(tmp_path / "picture.png"))
    assert 0 <= lowest < 0.1 and 0.9 < highest < 1.2  # at the saddle points on the wall about 0.1 pi^2
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.parametrize(("library", "name"), [("torch", "torch_fit"), ("tensorflow", "tf_fit")])
def test_fits_in_other_frameworks(
    library: str, name: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: .ci/doors runs this")
    first, last = _main(repository, name)(60)
    assert last < 0.02 * first and "rates" in capsys.readouterr().out


def test_nbody(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _main(repository, "nbody")()
    assert "the derivatives agree" in capsys.readouterr().out


def test_rules(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _main(repository, "rules")()
    lines = {line.partition(" ")[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines() if line}
    assert float(lines["whitened"][0]) < 1e-14 and float(lines["distances"][0]) < 1e-13
    assert float(lines["state"][0]) == 0.3


RNG = np.random.default_rng(3)
# example, function, signature: active and other arguments
KERNELS: dict[tuple[str, str, str], tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    ("heat_control", "heat", "void(f64[n] power, out f64[n] u, i64 n, i32 steps)"): ((RNG.normal(size=6),), (30,)),
    ("fit_ode", "misfit", "f64(f64[6] p, f64[n,2] data, i64 n, f64 dt)"): (
        (np.array([1.1, 0.4, 0.1, 0.4, 2.0, 1.0]), RNG.normal(size=(4, 2)), np.float64(0.2)), ()),
    ("flow_map", "flow", "void(f64[2] start, out f64[2] end, f64 time, i32 steps)"): (
        (np.array([0.4, 0.3]), np.float64(2.0)), (8,)),
    ("residual", "trial", "f64(f64[192] p, f64 x)"): ((RNG.normal(size=192), np.float64(0.4)), ()),
    ("nbody", "energy", "f64(f64[n,3] pos, f64[n] mass, i64 n)"): (
        (RNG.normal(size=(4, 3)), RNG.uniform(0.5, 1.5, 4)), ()),
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k[0])
def test_derivatives_of_both_orders(kernel: tuple[str, str, str], repository: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    example, name, signature = kernel
    source = runpy.run_path(str(repository / "examples" / f"{example}.py"))["SOURCE"]
    function = irgrad.load(source).kernel(name, signature)
    active, rest = KERNELS[kernel]
    check_grads(lambda *a: function(*a, *rest), tuple(map(jnp.asarray, active)), order=2, atol=1e-4, rtol=1e-4)
