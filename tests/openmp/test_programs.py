"""OpenMP programs that check themselves (`selfcheck.h`): values against the program without OpenMP, derivatives in both
modes against differences; as kernels at each level of optimisation, and as programs of `irgrad run`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.interop.cli import main
from irgrad.rules.errors import OneThread

HERE = Path(__file__).parent
PROGRAMS = sorted(path for path in HERE.iterdir() if path.suffix in (".c", ".cpp"))
QUICK = (
    "reduction_sum.c", "reduction_extremes.c", "collapse.c", "ordered.c", "sections.c", "single_master.c",
    "critical_atomic.c", "tasks.c", "private_kinds.c", "locks.c", "by_thread_number.c", "cancel.c",
)  # fmt: skip
LEVELS = [None, "O0", "O1", "O2", "O3"]
NESTING = ("if_clause.c", "nested.c", "teams.c")
"""Those whose value without OpenMP is another one: they ask how many regions are around, or need teams."""
BY_NUMBER = "by_thread_number.c"
"""What it computes depends on how many threads there are (see test_thread_numbers.py)."""
SIGNATURE = "f64(f64[n] x, i32 n)"
X = 0.8 + 0.37 * np.sin(2.3 * np.arange(23))


def _marks(number: int, level: str | None) -> list[pytest.MarkDecorator]:
    """Twelve run always, all at one level more with --long, and at each level with --slow."""
    if level is None:
        return [] if PROGRAMS[number].name in QUICK else [pytest.mark.long]
    return [pytest.mark.long if LEVELS[1 + number % 4] == level else pytest.mark.slow]


def _cases() -> list[object]:
    return [
        pytest.param(path, level, id=f"{path.name} {level or 'default'}", marks=_marks(number, level))
        for number, path in enumerate(PROGRAMS) for level in LEVELS
    ]  # fmt: skip


def test_there_are_thirty() -> None:
    assert len(PROGRAMS) >= 30
    assert set(QUICK) <= {path.name for path in PROGRAMS}


@pytest.mark.parametrize(("path", "level"), _cases())
def test_kernels(path: Path, level: str | None) -> None:
    kernel = ig.load(path, flags=["-fopenmp"], opt=level).kernel("whole", SIGNATURE)
    report = ig.check(kernel, X)
    assert report.ok, report
    if path.name not in NESTING:
        without = ig.load(path, flags=["-Wno-unknown-pragmas"], opt=level).kernel("whole", SIGNATURE)
        np.testing.assert_allclose(kernel(X), without(X), rtol=1e-13)


def _results(kernel: Any) -> list[np.ndarray]:
    """Value, gradient and the tangent along one direction."""
    slope = np.cos(1.7 * np.arange(X.size))
    gradient = ig.grad(kernel)(X)
    value, tangent = ig.jvp(kernel, (X,), (slope,))
    assert float(gradient @ slope) == pytest.approx(float(tangent), rel=1e-10)
    return [np.asarray(kernel(X)), np.asarray(value), gradient, np.asarray(tangent)]


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.name, marks=[] if path.name in ("reduction_sum.c", "gather.c") else [pytest.mark.long])
    for path in PROGRAMS if path.name != BY_NUMBER
])  # fmt: skip
def test_kernels_on_threads(path: Path) -> None:
    lib = ig.load(path, flags=["-fopenmp"])
    plain = _results(lib.kernel("whole", SIGNATURE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)  # of many constructs a team shares no loop
        found = {threads: _results(lib.kernel("whole", SIGNATURE, threads=threads)) for threads in (1, 2, 4, 16)}
    for results in found.values():
        for one, other, alone in zip(results, found[1], plain, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_allclose(one, alone, rtol=1e-11, atol=1e-12)


@pytest.mark.long
def test_a_kernel_that_asks_for_its_number_on_threads() -> None:
    path = next(path for path in PROGRAMS if path.name == BY_NUMBER)
    lib = ig.load(path, flags=["-fopenmp"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)
        for threads in (1, 2, 4, 16):
            kernel = lib.kernel("whole", SIGNATURE, threads=threads)
            _results(kernel)  # forward against reverse
            report = ig.check(kernel, X)
            assert report.ok, (threads, report)


@pytest.mark.parametrize(("path", "level"), [
    pytest.param(path, level, id=f"{path.name} {level}",
                 marks=[] if path.name == "reduction_sum.c" and level == "-O0"
                 else [pytest.mark.long if level == "-O0" and number % 4 == 0 else pytest.mark.slow])
    for number, path in enumerate(PROGRAMS) for level in ("-O0", "-O3")
])  # fmt: skip
def test_programs(
    path: Path, level: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert main(["run", level, "-fopenmp", "-DPROGRAM", str(path), "-lm"]) == 0, capfd.readouterr()
    assert "good" in capfd.readouterr().out


def test_tasks_of_a_team_are_told() -> None:
    path = HERE / "tasks.c"
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        lib = ig.load(path, flags=["-fopenmp"])
        lib.kernel("whole", SIGNATURE)  # nobody asked for more than one thread
    line = next(n for n, row in enumerate(path.read_text().splitlines(), 1) if "omp task" in row)
    with pytest.warns(OneThread, match=rf"one thread runs tasks, in the order of the source: .*tasks\.c:{line}:"):
        lib.kernel("whole", SIGNATURE, threads=2)
