"""C++20 programs in the styles that people write classes in (`tests/cpp_styles`): gradients, tangents and second
derivatives of `double loss(const double *x, long n)`, and programs with the notation, against differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import containers
from shares import fast

import irgrad
from irgrad import engine

FOLDER = Path(__file__).with_name("cpp_styles")
FIRST = ("sparse_map.cpp", "function_tables.cpp", "hidden_parts.cpp", "text_keys.cpp")
"""Those that the fast tests run."""
NO_HVP = {("maps_of_maps.cpp", "O2")}
"""Refused, and to be mended: the length of a list that lies in a node, in the derivative of a derivative."""
PROGRAMS = sorted(FOLDER.iterdir(), key=lambda path: (path.name not in FIRST, path.name))
X, V = containers.X, containers.V


def _kernel(path: Path, level: str) -> Any:
    return irgrad.load(path, opt=level, flags=["-std=c++20"]).kernel("loss", "f64(f64[n] x, i64 n)")


def _differences(f: Any, v: Any, h: float) -> Any:
    """The derivative of f along v at X, to the fourth order."""
    d = [np.asarray(f(X + k * h * v)) - np.asarray(f(X - k * h * v)) for k in (1, 2)]
    return (8 * d[0] - d[1]) / (12 * h)


@pytest.mark.parametrize("level", fast(1, ["O2", "O0"], most=1))
@pytest.mark.parametrize("path", fast(len(FIRST), PROGRAMS), ids=[path.name for path in PROGRAMS])
def test_derivatives(path: Path, level: str) -> None:
    kernel = _kernel(path, level)
    gradient = engine.grad(kernel)
    found = gradient(X)
    np.testing.assert_allclose(found, [_differences(kernel, e, 1e-4) for e in np.eye(6)], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(engine.jvp(kernel, (X,), (V,))[1], found @ V, rtol=1e-12, atol=1e-13)
    if (path.name, level) in NO_HVP:
        with pytest.raises(irgrad.IRGradError, match="integer arithmetic on the bits of an active float"):
            engine.hvp(kernel, (X,), V)
        return
    want = _differences(gradient, V, 1e-5)
    np.testing.assert_allclose(engine.hvp(kernel, (X,), V), want, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("path", fast(0, PROGRAMS, most=5), ids=[path.name for path in PROGRAMS])
def test_programs_with_the_notation(path: Path) -> None:
    assert containers.program_verdict(path.read_text(), "O2", standard="c++20") == ("ok", "")
