"""What is told about the tape of a kernel, and the choice to keep it."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.kernel.tapes import frugal, tape_of
from irgrad.engine.signature.slots import TAPE, TAPE_BYTES, TAPE_NAME

SOURCE = """
#include <math.h>
void chain(const double *x, double *y, long n) {
  double s = 0.3;
  for (long i = 0; i < n; i++) { s = sin(s * x[i]) + x[i]; y[i] = s; }
}
void square(const double *x, double *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] * x[i]; }
double root(double a) { double s = a; while (fabs(s * s - a) > 1e-12) s = 0.5 * (s + a / s); return s; }
"""
LIBRARY = irgrad.load(SOURCE)
CHAIN = "void(f64[n] x, out f64[n] y, i64 n)"


def test_explanations() -> None:
    kernel = LIBRARY.kernel("chain", CHAIN)
    assert engine.explain_tape(kernel) == "an array; its bytes follow from n"
    assert engine.explain_tape(kernel, n=100) == "an array of 832 bytes, kept where that is little"
    always = LIBRARY.kernel("chain", CHAIN, tape="store")
    assert engine.explain_tape(always, n=100) == 'an array of 832 bytes, kept, as tape="store" says'
    never = LIBRARY.kernel("chain", CHAIN, tape="recompute")
    again = "the primal runs again in front of each reverse sweep"
    assert engine.explain_tape(never) == f'no array: {again}, as tape="recompute" says'
    square = LIBRARY.kernel("square", CHAIN)
    assert engine.explain_tape(square, n=8) == "nothing is kept: the reverse sweep reads the arguments only"
    text = engine.explain_tape(LIBRARY.kernel("root", "f64(f64 a)"))
    assert text.startswith(f"no array: {again}, because the iterations of a loop cannot be counted before it (@root")


def test_wrong_words() -> None:
    with pytest.raises(irgrad.SignatureError, match="`m` is no integer argument"):
        engine.explain_tape(LIBRARY.kernel("chain", CHAIN), m=3)
    with pytest.raises(irgrad.IRGradError, match="tape='always' is no choice"):
        LIBRARY.kernel("chain", CHAIN, tape="always")


def test_the_choice_is_by_size() -> None:
    for choice, little, much in (("auto", True, False), ("store", True, True), ("recompute", False, False)):
        kernel = LIBRARY.kernel("chain", CHAIN, tape=choice)
        assert frugal(kernel, 65_536, 10) is little
        assert frugal(kernel, 160_000, 10_000) is little
        assert frugal(kernel, 160_001, 10_000) is much


def test_the_choice_is_no_part_of_the_code() -> None:
    kernels = [LIBRARY.kernel("chain", CHAIN, tape=choice) for choice in ("auto", "store", "recompute")]
    assert len({kernel.primal.key for kernel in kernels}) == 1


def test_the_two_programs() -> None:
    """Slots, kinds of slots, and the gradient that comes out, against differences."""
    program = LIBRARY.kernel("chain", CHAIN).primal
    active = (0, 1)
    first, second = program.forward_with_tape(active), program.reverse_from_tape(active)
    assert [(s.name, s.role, s.index) for s in first.slots] == [
        ("x", "in", 0), ("y", "out", 1), ("n", "in", 2), ("tape", "out", TAPE), ("bytes of the tape", "in", TAPE_BYTES),
    ]  # fmt: skip
    assert [(s.name, s.role, s.steps) for s in second.slots] == [
        ("x", "in", ()), ("x'", "inout", (0,)), ("y'", "inout", (0,)), ("n", "in", ()), ("tape", "in", ()),
    ]  # fmt: skip
    x, w, n = np.linspace(0.2, 1.0, 9), np.cos(np.arange(9.0)), np.array(9)
    size = tape_of(program, active).bytes({2: 9})
    assert size is not None and tape_of(program, active).layout == tape_of(program, active, 4).layout
    sizes = {"n": 9, TAPE_NAME: size}
    _, y, _, tape, _ = first.run([x, None, n, None, np.array(size)], sizes)
    _, gradient, *_ = second.run([x, np.zeros(9), w.copy(), n, tape], sizes)

    def value(z: np.ndarray) -> float:
        return float(w @ program.run([z, None, n], {"n": 9})[1])

    assert y[-1] == program.run([x, None, n], {"n": 9})[1][-1]
    steps = [1e-6 * row for row in np.eye(9)]
    np.testing.assert_allclose(gradient, [(value(x + h) - value(x - h)) / 2e-6 for h in steps], rtol=1e-8)


def test_an_error_of_the_derivative_is_a_reason() -> None:
    source = "double missing(double); void f(const double *x, double *y) { *y = missing(*x); }"
    program = irgrad.load(source).kernel("f", "void(f64[1] x, out f64[1] y)").primal
    assert tape_of(program, (0, 1)).because.startswith("no derivative is known for this call")


REMAINDER = """
#include <math.h>
double f(double x, int n) {
    double a = x, b = 1;
    for (int i = 0; i < n; i++) { double s = sin(a), c = cos(a); a = s * b; b = c + 0.1 * a; }
    return a + b;
}
"""


def test_the_tape_of_a_loop_that_was_unrolled() -> None:
    """The loop over what is left does not run for n = 4, and would count 2^32 turns."""
    kernel = irgrad.load(REMAINDER, opt="O3").kernel("f", "f64(f64 x, i32 n)")
    tape = tape_of(kernel.primal, (0, 2))
    small, large = tape.bytes({1: 4}), tape.bytes({1: 5})
    assert small is not None and large is not None and small <= large
