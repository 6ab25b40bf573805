"""Loops as two: what threads do at once, then critical sections and the like in the order of the iterations."""

# ruff: noqa: E501  (C sources read better unbroken)
from __future__ import annotations

import os
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.part_cases import CASES, CRITICAL, EIGHT, FUNCTION, HEAD, MAIN, SIGNATURE, SUM, X, Y, source_of

import irgrad as ig
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.interop.driver import main_cc
from irgrad.rules.errors import OneThread

QUICK = ("the place of the largest", "a captured place", "variables of an iteration", "under conditions", "an array reduction", "an operator that chooses")


def _results(kernel: Any) -> list[np.ndarray]:
    values, pullback = ig.vjp(kernel, X, Y)
    bars = (1.3, np.cos(np.arange(Y.size)))
    gradients = pullback(bars)
    slopes = np.sin(np.arange(X.size) + 1.0), np.cos(np.arange(Y.size) * 2.0)
    _, pushed = ig.jvp(kernel, (X, Y), slopes)
    both = sum(float(g @ t) for g, t in zip(gradients, slopes, strict=True))
    assert bars[0] * pushed[0] + bars[1] @ pushed[1] == pytest.approx(both, rel=1e-5)
    return [*map(np.asarray, values), *gradients, *map(np.asarray, pushed)]


def _cases() -> list[Any]:
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in CASES]


@pytest.mark.parametrize("name", _cases())
def test_kernels(name: str) -> None:
    lib = ig.load(source_of(name).replace("static double f(", "double f("), flags=["-fopenmp"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneThread)
        kernels = {t: lib.kernel("f", SIGNATURE, threads=t) for t in (1, 2, 4, 16)}
        found = {t: _results(kernel) for t, kernel in kernels.items()}
    assert shared_loops(kernels[2].primal).shared
    plain = lib.kernel("f", SIGNATURE)
    single = "float m" in CASES[name][0]
    for results in found.values():
        for a, b, c in zip(results, found[1], _results(plain), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-4 if single else 1e-10, atol=1e-12)
    report = ig.check(plain, X, Y)
    assert single or report.ok, report


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", _cases())
def test_programs(name: str, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.c"
    file.write_text(source_of(name) + MAIN)
    for flags in ([level, "-fopenmp"], [level]):
        assert main_cc([*flags, str(file), "-lm", "-o", str(tmp_path / f"p{len(flags)}")]) == 0
    assert "a loop of the program runs on one thread" not in (said := capfd.readouterr().err)
    assert "a worksharing loop" not in said
    runs = [(2, threads) for threads in (1, 2, 4, 16)] + [(1, 1)]
    found = [subprocess.run([str(tmp_path / f"p{number}")], env={**os.environ, "OMP_NUM_THREADS": str(threads)},
                            check=True, capture_output=True, text=True).stdout for number, threads in runs]  # fmt: skip
    assert set(found[:-1]) == {found[0]}
    ours, plain = ([float(row.split()[1]) for row in said.splitlines()] for said in (found[0], found[-1]))
    assert ours == pytest.approx(plain, rel=1e-4 if "float m" in CASES[name][0] else 1e-9)
    assert ours[-1] == pytest.approx(ours[-2], rel=1e-4 if "float m" in CASES[name][0] else 1e-9)


def test_cheap_iterations_stay_with_one_thread_and_are_told() -> None:
    text = HEAD + FUNCTION.replace("START", EIGHT).replace("CLAUSE", "").replace("RESULT", SUM)
    text = text.replace("BODY", f"{CRITICAL}h[i % 8] = fmax(h[i % 8], x[i]);").replace("static double f(", "double f(")
    kernel = ig.load(text, flags=["-fopenmp"]).kernel("f", SIGNATURE, threads=2)
    with pytest.warns(OneThread, match="but for what one thread does at a time, its iterations do too little"):
        kernel(X, Y)
