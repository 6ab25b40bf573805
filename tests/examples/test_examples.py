"""The examples run, learn something, and draw their picture. With fewer steps than a user would take."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from matplotlib.image import imread
from scipy.special import ndtr

import irgrad

pytestmark = pytest.mark.long

# name: (steps or cells, last loss over first loss at most)
TRAINED = {"heat_control": (60, 0.6), "fit_ode": (25, 0.1), "residual": (120, 0.1),
           "hm_lstm": (80, 0.2)}  # fmt: skip


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


def test_times_without_training(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/figures.md says: `hm_lstm.py 0` compares the ways, and trains nothing."""
    first, last = _main(repository, "hm_lstm")(0, "")
    assert first == last
    assert "jax.numpy" in capsys.readouterr().out


# name: last error over first error at most, after the steps that a user takes
SOLVED = {"heat_sink": 0.2, "camera_calibration": 0.003, "force_fit": 0.03, "inverse_heat": 0.35}


@pytest.mark.parametrize("name", SOLVED)
def test_problems_are_solved(name: str, repository: Path, tmp_path: Path) -> None:
    if name == "force_fit":
        pytest.importorskip("numba", reason="numba is not installed: pip install irgrad[numba]")
    first, last = _main(repository, name)(picture=str(tmp_path / "picture.png"))
    assert last < SOLVED[name] * first
    _alike(tmp_path / "picture.png", repository, name)


def test_crawler(repository: Path, tmp_path: Path) -> None:
    before, after = _main(repository, "crawler")(picture=str(tmp_path / "picture.png"))
    assert abs(before) < 0.2 and abs(after - 1) < 0.1
    _alike(tmp_path / "picture.png", repository, "crawler")


def test_option_book(repository: Path, tmp_path: Path) -> None:
    """Values by SciPy's normal distribution, Greeks by differences of them."""
    greeks = _main(repository, "option_book")(300, str(tmp_path / "picture.png"))
    _alike(tmp_path / "picture.png", repository, "option_book")
    rng = np.random.default_rng(0)
    strikes, expiries, amounts, kinds = (rng.uniform(70, 130, 300), rng.uniform(0.1, 2, 300), rng.normal(size=300),
                                         rng.integers(0, 3, 300))  # fmt: skip
    smile = 0.2 + 0.06 * np.array([-1, -0.5, 0, 0.2, 0.6]) ** 2 + 0.02 * np.array([[2], [1], [0], [-0.5]])

    def value(spot: float, surface: np.ndarray = smile, rate: float = 0.03) -> float:
        nodes = np.array([[np.interp(k, range(60, 141, 20), row) for row in surface] for k in strikes])
        vol = np.array([np.interp(t, [0.25, 0.5, 1, 2], row) for t, row in zip(expiries, nodes, strict=True)])

        def call(spot: np.ndarray | float) -> np.ndarray:
            d = (np.log(spot / strikes) + (rate + vol**2 / 2) * expiries) / (vol * np.sqrt(expiries))
            return spot * ndtr(d) - strikes * np.exp(-rate * expiries) * ndtr(d - vol * np.sqrt(expiries))

        put = call(spot) - spot + strikes * np.exp(-rate * expiries)
        barrier = 0.8 * strikes
        out = call(spot) - (barrier / spot) ** (2 * rate / vol**2 - 1) * call(barrier**2 / spot)
        prices = np.choose(kinds, [call(spot), put, np.where(spot > barrier, out, 0)])
        return float((amounts * prices).sum())

    def difference(name: str, n: int) -> float:
        spot = greeks["spot"][n]
        step = np.zeros((4, 5))
        step[2, 1] = 1e-5
        return {
            "delta": lambda: (value(spot + 1e-4) - value(spot - 1e-4)) / 2e-4,
            "gamma": lambda: (value(spot + 1e-2) - 2 * value(spot) + value(spot - 1e-2)) / 1e-4,
            "rho": lambda: (value(spot, rate=0.03 + 1e-5) - value(spot, rate=0.03 - 1e-5)) / 2e-5,
            "vega": lambda: (value(spot, smile + step) - value(spot, smile - step)) / 2e-5,
        }[name]()

    np.testing.assert_allclose(greeks["value"], [value(spot) for spot in greeks["spot"]], rtol=1e-9, atol=1e-9)
    for n in (11, 30, 50):
        for name in ("delta", "gamma", "rho", "vega"):
            got = greeks[name][n, 2, 1] if name == "vega" else greeks[name][n]
            np.testing.assert_allclose(got, difference(name, n), rtol=1e-4, atol=1e-4)


def _alike(picture: Path, repository: Path, name: str) -> None:
    """The picture has the shape of the gallery's and about as much ink."""
    shapes, ink = [], []
    for file in (picture, repository / "docs" / "gallery" / f"{name}.png"):
        pixels = imread(file)[..., :3]
        shapes.append(pixels.shape[1] / pixels.shape[0])
        ink.append((pixels < 0.9).any(axis=2).mean())
    assert shapes[0] == pytest.approx(shapes[1], rel=0.02)
    assert 0.5 < ink[0] / ink[1] < 2


def test_the_gallery_shows_every_picture(repository: Path) -> None:
    page = (repository / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"\(gallery/(\w+)\.png\)\n\n\[\1\.py\]\(\.\./examples/\1\.py\)", page)
    pictures = {file.stem: file.stat().st_size for file in (repository / "docs" / "gallery").iterdir()}
    assert len(shown) >= 8 and sorted(shown) == sorted(pictures)
    assert max(pictures.values()) < 60_000


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
    ("heat_sink", "residual", "void(f64[n,n] u, f64[n,n] density, out f64[n,n] r, i64 n)"): (
        (RNG.normal(size=(6, 6)), RNG.uniform(0.2, 0.9, (6, 6))), ()),
    ("inverse_heat", "measure", "void(f64[n,n] p, out f64[4,m,36] seen, i64 n, i64 m, i64 steps)"): (
        (0.3 * RNG.normal(size=(12, 12)),), (2, 10)),
    ("camera_calibration", "residuals",
     "void(f64[8 + 6*m] p, f64[k,2] board, f64[m,k,2] pixels, out f64[m,k,2] r, i64 m, i64 k)"): (
        (np.array([2.0, 2, 0.3, 0.2, -0.3, 0.1, 0.01, 0.02, 0.1, 0.2, 0.3, 0, 0.1, 1, 0, 0, 0, 0, 0, 1.0]),
         RNG.normal(size=(5, 2))), (np.zeros((2, 5, 2)),)),
    ("nbody", "energy", "f64(f64[n,3] pos, f64[n] mass, i64 n)"): (
        (RNG.normal(size=(4, 3)), RNG.uniform(0.5, 1.5, 4)), ()),
}  # fmt: skip


LANGUAGES = {"camera_calibration": "c++"}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k[0])
def test_derivatives_of_both_orders(kernel: tuple[str, str, str], repository: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    example, name, signature = kernel
    source = runpy.run_path(str(repository / "examples" / f"{example}.py"))["SOURCE"]
    function = irgrad.load(source, language=LANGUAGES.get(example)).kernel(name, signature)
    active, rest = KERNELS[kernel]
    check_grads(lambda *a: function(*a, *rest), tuple(map(jnp.asarray, active)), order=2, atol=1e-4, rtol=1e-4)
