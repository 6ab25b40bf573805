"""Room for inner loops: told by the loop's own guard, not by the size of a count that may have wrapped."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.analyses.evolution.guards import wraps_in_32_bits
from irgrad.engine.analyses.evolution.trips import TripCount

LOOPS = {
    "unsigned": "for (unsigned j = a; j < b; j++)",
    "from zero": "for (unsigned j = 0; j < b; j++)",
    "signed": "for (int j = a; j < (int)b; j++)",
    "downwards": "for (unsigned j = b; j > a; j--)",
    "behind a condition": "if (x[i] > 0) for (unsigned j = a; j < b; j++)",
    "behind two": "if (i != 1 && a != 77) for (unsigned j = a; j < b; j++)",
}


def _kernel(loop: str) -> irgrad.Kernel:
    body = f"double s = x[0]; for (long i = 0; i < n; i++) {loop} s = sin(s) * x[i] + 0.1 * (j & 7); return s;"
    source = f"#include <math.h>\ndouble f(const double *x, long n, unsigned a, unsigned b) {{ {body} }}"
    return irgrad.load(source).kernel("f", "f64(f64[n] x, i64 n, u32 a, u32 b)")


BOUNDS = [(0, 3), (3, 0), (2, 6), (7, 7), (4294967290, 4294967295), (4294967295, 0)]  # the last two: as unsigned only


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [(n, a, b) for n in LOOPS for a, b in BOUNDS if max(a, b) < 100 or n not in ("from zero", "signed")],
)
def test_any_bounds(name: str, a: int, b: int) -> None:
    kernel, x = _kernel(LOOPS[name]), np.array([0.3, 0.7, -0.4])
    h = 1e-5
    want = [(kernel(x + h * e, a, b) - kernel(x - h * e, a, b)) / (2 * h) for e in np.eye(3)]
    got = engine.grad(kernel, wrt="x")(x, a, b)
    assert np.allclose(got, want, rtol=1e-6, atol=1e-7 * max(1.0, np.abs(want).max()))
    forward = [engine.jvp(kernel, (x, a, b), (e, None, None))[1] for e in np.eye(3)]
    assert np.allclose(got, forward, rtol=1e-12)


def test_no_count_of_iterations_is_too_large_for_the_guarded_room() -> None:
    """2**31 iterations and more get their room: nothing in the code cuts the extent off there."""
    kernel = _kernel(LOOPS["from zero"])
    program = kernel.primal.pullback((0, 4))
    text = program.stage.text
    assert "irgrad.tape.alloc" in text
    assert not re.search(r"icmp ult i64 %\S+, 2147483648\b", text)
    assert re.search(r"icmp ult i64 %\S+, 4294967297\b", text)


def test_what_wraps() -> None:
    n = ("value", object())
    assert wraps_in_32_bits(TripCount(("zext", ("sub", n, n), 32)))
    assert wraps_in_32_bits(TripCount(("add", ("zext", n, 32), ("const", 1))))
    assert not wraps_in_32_bits(TripCount(("sub", n, n))) and not wraps_in_32_bits(TripCount(("zext", n, 16)))
