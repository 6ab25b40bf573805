"""C functions `void f(const double *x, double *r, int n)` written with intrinsics, and what they are compared with.

Against machine code: what clang compiles for this CPU gives the same bits, and finite differences the derivatives.
Against plain C, for instructions that this CPU may lack: the same bits, and the same derivatives.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from oracle.build import to_library

import irgrad as ig
from irgrad.engine.codegen.llvm import host_features

__all__ = ["D2", "D4", "D8", "F4", "F8", "F16", "Plain", "Width", "same_as_machine_code", "same_as_plain"]

SIZE = 24
HEAD = "#include <immintrin.h>\n#include <math.h>\n"
SIGNATURE = f"void(f64[{SIZE}] x, inout f64[{SIZE}] r, i32 n)"
Bodies = dict[str, str]


class Width(NamedTuple):
    """A kind of vector: `load` declares a, b, c; `store` puts a result into r."""

    load: str
    store: str

    def body(self, expression: str, before: str = "") -> str:
        """The body of a function that stores a result."""
        return f"{before} {self.load} {self.store % expression}"


def _doubles(bits: str, kind: str) -> Width:
    load = ", ".join(f"{name} = _mm{bits}_loadu_pd(x + {at})" for name, at in (("a", 0), ("b", 8), ("c", 3)))
    return Width(f"__m{kind}d {load};", f"_mm{bits}_storeu_pd(r, %s);")


def _floats(bits: str, kind: str, count: int) -> Width:
    load = ", ".join(f"{name} = _mm{bits}_loadu_ps(q + {at})" for name, at in (("a", 0), ("b", 8), ("c", 3)))
    return Width(f"float q[{SIZE}]; for (int i = 0; i < {SIZE}; i++) q[i] = (float)x[i]; __m{kind} {load};",
                 f"float o[{count}]; _mm{bits}_storeu_ps(o, %s); for (int i = 0; i < {count}; i++) r[i] = o[i];")


D2, D4, D8 = _doubles("", "128"), _doubles("256", "256"), _doubles("512", "512")
F4, F8, F16 = _floats("", "128", 4), _floats("256", "256", 8), _floats("512", "512", 16)


class Plain(NamedTuple):
    """The same in plain C: `expression` of lane i of a, b, c; m is the mask."""

    count: int
    type: str = "double"

    def body(self, expression: str, before: str = "") -> str:
        """The body of a function that stores lane after lane."""
        arrays = " ".join(f"{self.type} {name}[16]; for (int i = 0; i < 16; i++) {name}[i] = x[(i + {at}) % {SIZE}];"
                          for name, at in (("a", 0), ("b", 8), ("c", 3)))  # fmt: skip
        return f"{before} {arrays} for (int i = 0; i < {self.count}; i++) r[i] = {expression};"


def _sources(prefix: str, bodies: tuple[str, ...]) -> str:
    return "".join(f"void {prefix}{k}(const double *x, double *r, int n) {{ {body} }}\n"
                   for k, body in enumerate(bodies))  # fmt: skip


@cache
def _library(source: str, flags: tuple[str, ...]) -> Any:
    return ig.load(HEAD + source, flags=flags)


def _bits(values: np.ndarray) -> np.ndarray:
    return values.view(np.int64)


def same_as_machine_code(bodies: Bodies, name: str, *, step: float = 1e-6, within: float = 1e-6) -> None:
    """The value is that of the machine code, bit by bit; both Jacobians are near its differences."""
    if not {"+avx2", "+fma", "+f16c"} <= set(host_features().split(",")):
        pytest.skip("no CPU with AVX2")
    flags, number = ("-march=haswell", "-ffp-contract=off"), list(bodies).index(name)
    source = _sources("f", tuple(bodies.values()))
    native = getattr(to_library(HEAD + source, "-O2", flags), f"f{number}")
    kernel = _library(source, flags).kernel(f"f{number}", SIGNATURE)

    def run(x: np.ndarray, n: int) -> np.ndarray:
        r = np.zeros(SIZE)
        native(x.ctypes.data_as(ctypes.c_void_p), r.ctypes.data_as(ctypes.c_void_p), n)
        return r

    for n in (1, 2):
        x, r = np.random.default_rng(n).uniform(-2, 2, SIZE), np.zeros(SIZE)
        np.testing.assert_array_equal(_bits(kernel(x, r, n)), _bits(run(x, n)))
        rows = [(run(x + e, n) - run(x - e, n)) / (2 * step) for e in step * np.eye(SIZE)]
        for jacobian in (ig.engine.jacrev, ig.engine.jacfwd):
            np.testing.assert_allclose(jacobian(kernel, "x")(x, r, n), np.transpose(rows), within, within)


def same_as_plain(pairs: dict[str, tuple[str, str]], name: str) -> None:
    """Values, bit by bit, and both Jacobians are those of the function in plain C."""
    number = list(pairs).index(name)
    source = _sources("f", tuple(f for f, _ in pairs.values())) + _sources("g", tuple(g for _, g in pairs.values()))
    library = _library(source, ("-march=skylake-avx512", "-ffp-contract=off"))
    ours, plain = (library.kernel(f"{letter}{number}", SIGNATURE) for letter in "fg")
    for n in (2, 3):
        x, r = np.random.default_rng(n).uniform(-3, 3, SIZE), np.zeros(SIZE)
        np.testing.assert_array_equal(_bits(ours(x, r, n)), _bits(plain(x, r, n)))
        expected = ig.engine.jacrev(plain, "x")(x, r, n)
        assert np.any(expected)
        for jacobian in (ig.engine.jacrev, ig.engine.jacfwd):
            np.testing.assert_allclose(jacobian(ours, "x")(x, r, n), expected, 1e-14, 1e-14)
