"""Calls of kernels as devices have them: without a tape, but for `tape="store"`."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import irgrad
from irgrad.engine.differentiate.tape.long_tapes import WholeTape
from irgrad.engine.grids.threads_of_loops import for_device
from irgrad.engine.signature.slots import TAPE
from irgrad.interop.jax.for_device import with_tape, without_tape
from irgrad.interop.programs.algebra import Kept, Spec

jax.config.update("jax_enable_x64", True)
EACH = "#pragma clang loop vectorize(assume_safety)\n"
TEXT = """double f(const double *x, long n) {{ double s = 0;
{}for (long i = 0; i < n; i++) s += x[i] * x[i] * x[i]; return s; }}"""
PLAIN, PROMISED = (irgrad.load(TEXT.format(word)).kernel("f", "f64(f64[n] x, i64 n)") for word in ("", EACH))


class _Context(SimpleNamespace):
    def replace(self, **changes: Any) -> Any:
        return _Context(**{**vars(self), **changes})


def test_a_tape_stays_behind() -> None:
    """That of the first form is neither an operand nor a result of the second one."""
    kept = Kept((0,), (2,), 64)
    makes = Spec(PROMISED, (0,), wanted=(2, TAPE), tape=kept)
    context = _Context(avals_in=("x",), avals_out=("value", "tape"))
    ctx, rows, spec = without_tape(context, ["x"], makes)
    assert (ctx.avals_out, rows, spec.wanted, spec.kernel) == (("value",), ["x"], (2,), for_device(PROMISED))
    assert with_tape(makes, ("value", "tape"), ["v"], lambda aval: f"zeros of {aval}") == ["v", "zeros of tape"]
    takes = Spec(PROMISED, (0, TAPE), cotangents=(2,), wanted=(0,), tape=kept)
    ctx, rows, spec = without_tape(_Context(avals_in=("x", "tape", "w"), avals_out=("g",)), ["x", "t", "w"], takes)
    assert (ctx.avals_in, rows, spec.inputs, spec.tape) == (("x", "w"), ["x", "w"], (0,), None)


def test_other_calls_have_another_kernel_alone() -> None:
    spec = Spec(PLAIN, (0,), wanted=(2,))
    context = _Context(avals_in=("x",), avals_out=("value",))
    assert without_tape(context, ["x"], spec) == (context, ["x"], replace(spec, kernel=for_device(PLAIN)))
    assert with_tape(spec, ("value",), ["v"]) == ["v"]


def test_a_tape_that_is_to_be_stored_stays() -> None:
    context = _Context(avals_in=("x",), avals_out=("value", "tape"))
    for kernel, stays in ((PLAIN, True), (PROMISED, False)):
        spec = Spec(kernel.with_options(tape="store"), (0,), wanted=(2, TAPE), tape=Kept((0,), (2,), 64))
        assert (without_tape(context, ["x"], spec) == (context, ["x"], spec)) == stays


def test_states_in_place_of_a_tape_are_for_the_cpu(recwarn: pytest.WarningsRecorder) -> None:
    """The reverse sweep says so; the primal, which has no tape, does not."""
    kernel = irgrad.load(TEXT.format("")).kernel("f", "f64(f64[n] x, i64 n)", tape_memory="1MB")
    value, gradient = Spec(kernel, (0,), wanted=(2,)), Spec(kernel, (0,), cotangents=(2,), wanted=(0,))
    context = _Context(avals_in=("x", "w"), avals_out=("g",))
    without_tape(_Context(avals_in=("x",), avals_out=("value",)), ["x"], value)
    assert not recwarn.list
    with pytest.warns(WholeTape, match=r"`f` keeps a tape of all iterations on the GPU: `checkpoint` and"):
        assert without_tape(context, ["x", "w"], gradient)[2].kernel is for_device(kernel)


def test_no_tape_is_asked_for_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be zeros there, which a reverse sweep on the CPU must not read, and residuals can be moved by hand,
    whatever the default is; a tape that is to be stored is a tape."""
    library = irgrad.load("""#include <math.h>
    void f(const double *x, double *y, long n) {
        for (long i = 0; i < n; i++) { double s = x[i]; for (int j = 0; j < 5; j++) s = sin(s + j) * x[i]; y[i] = s; }
    }""")

    def taped(**options: Any) -> bool:
        kernel = library.kernel("f", "void(f64[n] x, out f64[n] y, i64 n)", **options)
        return "tape" in str(jax.make_jaxpr(lambda x: jax.vjp(kernel, x)[1](x))(np.ones(6)))

    assert taped()
    devices = jax.devices
    monkeypatch.setattr(jax, "devices", lambda kind=None: ["a GPU"] if kind == "gpu" else devices(kind))
    assert (taped(), taped(tape="store"), taped(device="cpu")) == (False, True, True)
