"""Programs of everyday C and C++ memory layouts (`tests/layouts`), `double loss(const double *x, long n)` each, at
every level of optimisation: gradients, tangents and second derivatives against differences."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import fast

import irgrad
from irgrad import engine
from irgrad.interop.cli import main

PROGRAMS = sorted(Path(__file__).with_name("layouts").iterdir())
X = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4])
V = np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
STEP = 1e-4
SINGLES = ("copies.c", "soa.c", "words_of_floats.c", "words_of_two_sizes.c")
"""Those that compute with f32 too: differences are no better than that."""
AGAIN = ("aligned_arena.c", "aligned_by_hand.c", "btree.c", "event_queue.cpp", "casts.c", "copies.c", "tagged_tree.c")
"""Those of which LLVM joins accesses at -O2 so that the second derivative is another one."""

MAIN = """
#include <stdio.h>
#ifdef __cplusplus
extern "C"
#endif
double __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;
int main(void) {
  double x[6] = {0.5, 0.3, 1.2, 0.7, 0.9, 0.4}, g[6] = {0};
  __enzyme_autodiff((void *)loss, enzyme_dup, x, g, enzyme_const, 6L);
  for (int i = 0; i < 6; i++) printf("%.17g\\n", g[i]);
}
"""


def _differences(f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    """The derivative along v, to the fourth order."""
    d = [np.asarray(f(x + k * STEP * v)) - np.asarray(f(x - k * STEP * v)) for k in (1, 2)]
    return (8 * d[0] - d[1]) / (12 * STEP)


@pytest.mark.parametrize("level", fast(1, [None, "O0", "O2", "O1", "O3"], most=3))
@pytest.mark.parametrize("path", PROGRAMS, ids=[path.name for path in PROGRAMS])
def test_derivatives(path: Path, level: str | None) -> None:
    kernel = irgrad.load(path, opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    gradient = engine.grad(kernel)
    found = gradient(X)
    close = 2e-3 if path.name in SINGLES else 1e-6
    np.testing.assert_allclose(found, [_differences(kernel, X, e) for e in np.eye(6)], rtol=close, atol=close)
    same = 1e-6 if path.name in SINGLES else 1e-12
    np.testing.assert_allclose(engine.jvp(kernel, (X,), (V,))[1], found @ V, rtol=same, atol=1e-13)


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize(
    "name", ["stack_beside_length.c", "words_reused.c", "grown_records.c", "header_then_arrays.c", "pool.c"]
)
def test_without_the_types_of_the_source(name: str, level: str) -> None:
    path = Path(__file__).with_name("layouts") / name
    kernel = irgrad.load(path, opt=level, flags=["-fno-strict-aliasing"]).kernel("loss", "f64(f64[n] x, i64 n)")
    want = [_differences(kernel, X, e) for e in np.eye(6)]
    np.testing.assert_allclose(engine.grad(kernel)(X), want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(engine.jacfwd(kernel)(X), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["containers.cpp", "pool.c"])
def test_level_among_the_flags(name: str) -> None:
    path = Path(__file__).with_name("layouts") / name
    kernel = irgrad.load(path, flags=["-O0"]).kernel("loss", "f64(f64[n] x, i64 n)")
    found = engine.grad(kernel)(X)
    np.testing.assert_allclose(found, [_differences(kernel, X, e) for e in np.eye(6)], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(engine.jvp(kernel, (X,), (V,))[1], found @ V, rtol=1e-12, atol=1e-13)


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "level"), [*((path, None) for path in PROGRAMS),
                        *((path, "O2") for path in PROGRAMS if path.name in AGAIN),
                        pytest.param(PROGRAMS[-1].with_name("stepper_tables.c"), "O0", marks=pytest.mark.slow)],
    ids=lambda of: of.name if isinstance(of, Path) else of,
)  # fmt: skip
def test_second_derivatives(path: Path, level: str | None) -> None:
    kernel = irgrad.load(path, opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    want = _differences(engine.grad(kernel), X, V)
    close = 2e-3 if path.name in SINGLES else 1e-5
    np.testing.assert_allclose(engine.hvp(kernel, (X,), V), want, rtol=close, atol=close)


@pytest.mark.long
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("path", PROGRAMS, ids=[path.name for path in PROGRAMS])
def test_programs_with_the_notation(path: Path, level: str, tmp_path: Path, capfd: Any) -> None:
    want = engine.grad(irgrad.load(path).kernel("loss", "f64(f64[n] x, i64 n)"))(X)
    program = tmp_path / path.name
    program.write_text(path.read_text() + MAIN)
    assert main(["run", level, str(program)]) == 0
    ctypes.CDLL(None).fflush(None)
    found = [float(row) for row in capfd.readouterr().out.split()]
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)
