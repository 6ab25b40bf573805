"""OpenMP programs in further styles, which check themselves (`selfcheck.h`): parts of arrays as reductions, dependences
of tasks, memory of threads, captures, blocks by number, schedules of run time, nested regions."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import irgrad as ig
from irgrad.interop.cli import main
from irgrad.rules.errors import OneThread

PROGRAMS = sorted(path for path in (Path(__file__).parent / "styles").iterdir() if path.suffix in (".c", ".cpp"))
LEVELS = ("O0", "O1", "O2", "O3")
SIGNATURE = "f64(f64[n] x, i32 n)"
SHARED = {"vectors": (12, 19, 28, 38), "particles": (24, 32, 38), "swapped": (7,)}
"""Lines of worksharing loops that threads share in both sweeps."""
X = 0.8 + 0.37 * np.sin(2.3 * np.arange(23))


def _cases() -> list[object]:
    return [
        pytest.param(path, level, id=f"{path.name} {level}",
                     marks=pytest.mark.long if LEVELS[number % 4] == level else pytest.mark.slow)
        for number, path in enumerate(PROGRAMS) for level in LEVELS
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "level"), _cases())
def test_kernels(path: Path, level: str) -> None:
    lib = ig.load(path, flags=["-fopenmp"], opt=level)
    plain = lib.kernel("whole", SIGNATURE)
    report = ig.check(plain, X)
    assert report.ok, report
    without = ig.load(path, flags=["-Wno-unknown-pragmas"], opt=level).kernel("whole", SIGNATURE)
    np.testing.assert_allclose(plain(X), without(X), rtol=1e-12)
    # Where the program divides its work by the number of threads, another number cuts its loops elsewhere, and what a
    # vector leaves over is other iterations: they have the same bits where products are not joined to sums.
    divides = "omp_get_num_threads" in path.read_text()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)  # of many constructs a team shares no loop
        for threads in (1, 2, 4, 16):
            kernel = lib.kernel("whole", SIGNATURE, threads=threads, strict_fp=divides)
            if divides:
                loose = ig.grad(lib.kernel("whole", SIGNATURE, threads=threads))(X)
                np.testing.assert_allclose(loose, ig.grad(kernel)(X), rtol=1e-13, atol=1e-15)
            found.append((kernel(X), ig.grad(kernel)(X), ig.jvp(kernel, (X,), (np.cos(X),))[1]))
    for results in found:
        for one, first in zip(results, found[0], strict=True):
            np.testing.assert_array_equal(one, first)
    np.testing.assert_allclose(found[0][1], ig.grad(plain)(X), rtol=1e-10)
    assert found[0][2] == pytest.approx(float(found[0][1] @ np.cos(X)), rel=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_programs(path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert main(["run", "-O2", "-fopenmp", "-DPROGRAM", str(path), "-lm"]) == 0, capfd.readouterr()
    assert "good" in capfd.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize(("name", "lines"), SHARED.items())
def test_vectors_are_shared(name: str, lines: tuple[int, ...]) -> None:
    """Scratch in vectors, fields of structs and vectors that are swapped keep no loop of a region on one thread, in
    neither sweep."""
    lib = ig.load(Path(__file__).parent / "styles" / f"{name}.cpp", flags=["-fopenmp"])
    kernel = lib.kernel("whole", SIGNATURE, threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        ig.grad(kernel)(X)
    rows = [row for row in str(ig.explain(kernel)).splitlines() if "threads:" in row]
    shared = next(row for row in rows if "shared by a team" in row)
    places = [f"{name}.cpp:{line}:" for line in lines]
    assert all(place in shared for place in places), rows
    others = [row.partition(" (inlined at")[0] for row in rows if "one runs" in row]
    assert not [row for row in others if any(place in row for place in places)], rows
