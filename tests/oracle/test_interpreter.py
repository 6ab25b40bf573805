"""The interpreter computes what the machine computes, and its three ways to a derivative agree."""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handwritten import cases as table
from shares import fast

from irgrad.engine.ir.text.reader import read
from oracle.build import to_ir, to_library
from oracle.differences import Subject
from oracle.generator import generate, source_file
from oracle.interpreter import Machine
from oracle.memory import Fault
from oracle.native import run_native
from oracle.numbers import FloatDomain


def _agree(k: Any, subject: Subject, library: Any) -> None:
    inputs = k.sample(np.random.default_rng(k.seed))
    values, native = subject.values(inputs), run_native(library, k.name, k.signature, inputs)
    close = {"rtol": 2e-5, "atol": 2e-5} if k.has_f32 else {"rtol": 1e-12, "atol": 1e-12}
    for n, v in native.items():
        np.testing.assert_allclose(values[n], v, **close, err_msg=f"{k.name}.{n}\n{k.source}")
    if k.has_f32:
        return
    rng = np.random.default_rng(1)
    directions = {n: rng.uniform(-1, 1, np.shape(inputs[n])) for n in k.wrt}
    _, tangents = subject.directional(inputs, directions)
    steps = subject.complex_step(inputs, directions)
    for n, t in tangents.items():
        np.testing.assert_allclose(t, steps[n], rtol=1e-10, atol=1e-12, err_msg=f"{k.name}.{n}\n{k.source}")


@pytest.mark.parametrize("level", fast(1, ["-O2", "-O0", "-O1", "-O3"]))
def test_random_kernels_as_the_machine(level: str) -> None:
    """Values to 1e-12 of native code (single precision: to its rounding), duals to 1e-10 of complex step."""
    kernels = [generate(40_000 + s) for s in range(60)]
    text = source_file(kernels)
    module, library = read(to_ir(text, level)), to_library(text, "-O1")
    for k in kernels:
        _agree(k, Subject(module, k.name, k.signature), library)


def test_duals_over_forty_digits_agree_with_duals_over_floats() -> None:
    """The exact reading of a kernel and the rounded one give one derivative."""
    kernels = [generate(41_000 + s, features={"libm", "triangular", "recursion", "heap", "struct"}) for s in range(12)]
    module = read(to_ir(source_file(kernels)))
    for k in kernels:
        subject = Subject(module, k.name, k.signature)
        inputs = k.sample(np.random.default_rng(k.seed))
        directions = {n: np.ones(np.shape(inputs[n])) for n in k.wrt}
        rounded, exact = (subject.directional(inputs, directions, exact=e)[1] for e in (False, True))
        for n in rounded:
            np.testing.assert_allclose(rounded[n], exact[n], rtol=2e-7 if k.has_f32 else 1e-10, atol=1e-7 if k.has_f32 else 1e-12)


def test_jacobian_is_made_of_directional_derivatives() -> None:
    """A run with array tangents gives the columns that single directions give."""
    k = generate(40_003, features={"inplace", "branch", "loops", "local_array"})
    subject = Subject(read(to_ir(source_file([k]))), k.name, k.signature)
    inputs = k.sample(np.random.default_rng(3))
    jacobian = subject.jacobian(inputs, ["x", "y"])
    for j in range(np.size(inputs["x"])):
        e = np.eye(np.size(inputs["x"]))[j]
        _, column = subject.directional(inputs, {"x": e})
        for n, c in column.items():
            np.testing.assert_allclose(jacobian[n, "x"][:, j], c, rtol=1e-14, atol=1e-15)


def test_differences_agree_with_duals() -> None:
    """Five points on a smooth kernel: 1e-9."""
    source = "#include <math.h>\ndouble f(const double *x) { double s = 0; for (int i = 0; i < 4; i++) s = sin(s) * x[i] + x[i] * x[i]; return s; }"
    subject = Subject(read(to_ir(source)), "f", "f64(f64[4] x)")
    x, v = np.array([0.3, -0.5, 0.8, 1.1]), np.array([1.0, 0.5, -0.25, 2.0])
    _, want = subject.directional({"x": x}, {"x": v})
    np.testing.assert_allclose(subject.differences({"x": x}, {"x": v})["return"], want["return"], rtol=1e-9)


FAULTS = {
    "uninitialised": "double f(double x) { double t[2]; t[0] = x; return t[1]; }",
    "out of bounds": "double f(double x) { double t[2] = {x, x}; int i = 3; return t[i]; }",
    "use after free": "#include <stdlib.h>\ndouble f(double x) { double *t = malloc(8); *t = x; free(t); return *t; }",
    "double free": "#include <stdlib.h>\ndouble f(double x) { double *t = malloc(8); free(t); free(t); return x; }",
    "null": "double f(double x) { double *t = 0; return x + *t; }",
    "abort": "#include <stdlib.h>\ndouble f(double x) { abort(); }",
    "endless": "double f(double x) { while (x == x) x = x * 0.5 + 1; return x; }",
    "dangling": "static double *g(double x) { double t[1] = {x}; double *volatile p = t; return p; } double f(double x) { return *g(x); }",
    "division": "double f(double x) { volatile int z = 0; return x + 1 / z; }",
    "no body": "double h(double); double f(double x) { return h(x); }",
    "constant": "static const double c[2] = {1, 2}; double f(double x) { *(double *volatile *)&(double *){(double *)c}; ((double *)c)[1] = x; return c[1]; }",
}


@pytest.mark.parametrize("name", [n for n in FAULTS if n != "constant"])
def test_undefined_behaviour_is_a_fault(name: str) -> None:
    """What C does not define stops the interpreter."""
    machine = Machine(read(to_ir(FAULTS[name])), FloatDomain(), limit=100_000)
    with pytest.raises(Fault):
        machine.call("f", [0.5])


_BFLOAT = """
__attribute__((weak)) __bf16 __truncsfbf2(float x) {
    unsigned bits; unsigned short half; __bf16 y;
    __builtin_memcpy(&bits, &x, 4);
    half = (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    __builtin_memcpy(&y, &half, 2);
    return y;
}
"""
"""What processors without an instruction for it call, and older systems lack."""


@pytest.mark.long
def test_hand_written_kernels_as_the_machine() -> None:
    """Every kernel of the table at -O0 and -O2: native values; complex step where the arithmetic is double."""
    cases = [c for c in table.all_cases() if c.language == "c" and not c.flags]
    text = table.HEADER + "\n".join(c.source for c in cases)
    library = to_library(text + _BFLOAT, "-O1")
    for level in ("-O0", "-O2"):
        module = read(to_ir(text, level))
        for c in cases:
            subject, inputs = Subject(module, c.function, c.signature), c.inputs()
            values, native = subject.values(inputs), run_native(library, c.function, c.signature, inputs)
            for n, v in native.items():
                np.testing.assert_allclose(values[n], v, rtol=max(1e-12, c.tolerance / 10), atol=1e-9, err_msg=c.name)
            if any(w in c.source + c.signature for w in ("float", "f32", "16")):
                continue
            directions = {n: np.full(np.shape(inputs[n]), 0.7) for n in c.active}
            _, tangents = subject.directional(inputs, directions)
            for n, t in subject.complex_step(inputs, directions).items():
                np.testing.assert_allclose(tangents[n], t, rtol=1e-9, atol=1e-11, err_msg=c.name)
