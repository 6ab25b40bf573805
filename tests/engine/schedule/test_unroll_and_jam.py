"""Nests of wide derivatives that run several outer iterations side by side: the same sums, and which nests do."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from fuzz.widths import MODES, compare
from oracle.interpreter import Machine
from oracle.numbers import FloatDomain
from shares import fast

import irgrad
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.schedule.unroll_and_jam import MOST, jam

SOURCE = """
#include <math.h>
#include <string.h>
void product(const double *x, const double *w, double *y, long n) {
    for (long i = 0; i < n; i++) { double s = 0; for (long j = 0; j < n; j++) s += w[i * n + j] * x[j]; y[i] = s; }
}
void layer(const double *x, const double *w, double *y, long n) {
    double t[64];
    for (long i = 0; i < n; i++) { double s = 0.1; for (long j = 0; j < n; j++) s += w[i * n + j] * x[j]; t[i] = tanh(s); }
    for (long i = 0; i < n; i++) { double s = x[i]; for (long j = 0; j < n; j++) s += w[i * n + j] * t[j]; y[i] = s * t[i]; }
}
void backwards(const double *x, const double *w, double *y, long n) {
    for (long i = n - 1; i >= 0; i--) {
        double s = 0; for (long j = n - 1; j >= 0; j--) s += w[j * n + i] * x[j]; y[n - 1 - i] = s * x[i]; }
}
void columns(const double *x, const double *w, double *y, long n) {          /* lanes are added to memory */
    for (long j = 0; j < n; j++) y[j] = 0;
    for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) y[j] += w[i * n + j] * x[i];
}
void repeated(const double *x, const double *w, double *y, long n) {         /* a nest in a loop */
    double t[64];
    memcpy(t, x, n * sizeof *x);
    for (long k = 0; k < 1 + n % 3; k++) {
        for (long i = 0; i < n; i++) { double s = 0; for (long j = 0; j < n; j++) s += w[i * n + j] * t[j]; y[i] = s + k; }
        for (long i = 0; i < n; i++) t[i] = sin(y[i]);
    }
}
void place(const double *x, const double *w, double *y, long n) {            /* the next row reads what this one wrote */
    for (long i = 0; i < n; i++) y[i] = x[i];
    for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) y[j] += w[i * n + j] * y[i];
}
void sweeps(const double *x, const double *w, double *y, long n) {           /* Gauss-Seidel: y is read as it changes */
    for (long i = 0; i < n; i++) y[i] = x[i];
    for (long i = 0; i < n; i++) { double s = 0; for (long j = 0; j < n; j++) s += w[i * n + j] * y[j]; y[i] = s; }
}
void shifted(const double *x, const double *w, double *y, long n) {          /* a row adds where the next one does, moved */
    double t[256];
    memset(t, 0, sizeof t);
    for (long i = 0; i < n; i++) for (long j = 0; j < n; j++) t[i + j] += w[i * n + j] * x[j] * (1 + t[i + j]);
    for (long i = 0; i < n; i++) y[i] = t[i] + t[n + i];
}
void carried(const double *x, const double *w, double *y, long n) {          /* a row needs the sum of the one before */
    double s = 0;
    for (long i = 0; i < n; i++) { for (long j = 0; j < n; j++) s = w[i * n + j] * x[j] + 0.1 * s; y[i] = s; }
}
void triangle(const double *x, const double *w, double *y, long n) {         /* rows of other lengths */
    for (long i = 0; i < n; i++) { double s = 0; for (long j = 0; j <= i; j++) s += w[i * n + j] * x[j]; y[i] = s; }
}
void heavy(const double *x, const double *w, double *y, long n) {            /* time does not go to memory */
    for (long i = 0; i < n; i++) {
        double s = 0;
        for (long j = 0; j < n; j++) { double d = x[j] - x[i]; s += d / sqrt(0.1 + d * d * d * d + w[i * n + j] * d * d); }
        y[i] = s;
    }
}
"""  # noqa: E501
SIGNATURE = "void(f64[n] x, f64[n,n] w, out f64[n] y, i64 n)"
# nests by mode: forward, reverse (not where a row adds to the very shadow that the inner loop adds to)
JAMMED = {"product": (1, 1), "layer": (2, 1), "backwards": (1, 0), "columns": (1, 1), "repeated": (1, 1)}
LEFT = ("place", "sweeps", "shifted", "carried", "triangle", "heavy")


@cache
def _kernel(name: str) -> Any:
    return irgrad.load(SOURCE).kernel(name, SIGNATURE)


def _module(name: str, mode: str, width: int = 4) -> tuple[Module, str]:
    program = getattr(_kernel(name).primal, "jvp_only" if mode == "forward" else "pullback")((0, 2), width)
    text, root = program.stage.text, program.stage.name
    return read(prepare(text, [root]), roots=[root]), root


def _inputs(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    return {"x": rng.uniform(-1, 1, n), "w": rng.uniform(-1, 1, (n, n)) / n, "n": n}


@pytest.mark.parametrize("n", fast(2, [MOST - 1, 2 * MOST, 1, MOST, MOST + 1, 23]))
@pytest.mark.parametrize("name", [*JAMMED, *LEFT])
def test_the_same_derivatives(name: str, n: int) -> None:
    """Against separate derivatives, whose loops are as they were."""
    for mode in MODES:
        assert not compare(_kernel(name), _inputs(n), ["x"], 4, mode)
        if n == 23:
            assert not compare(_kernel(name), _inputs(n), ["x"], 16, mode)
            assert not compare(_kernel(name), _inputs(n), ["x", "w"], 3, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*JAMMED, *LEFT])
def test_which_nests(name: str, mode: str) -> None:
    expected = JAMMED.get(name, (0, 0))[mode == "reverse"]
    assert jam(_module(name, mode)[0]) == expected


def _run(module: Module, root: str, n: int, width: int) -> tuple[list[Any], int]:
    """What the derivative leaves in the shadows, by the interpreter, and how often it loads and stores lanes."""
    from unittest.mock import patch

    machine, rng = Machine(module, FloatDomain()), np.random.default_rng(5)
    numbers = _inputs(n)
    arrays = [numbers["x"], rng.uniform(-1, 1, n * width), numbers["w"], np.zeros(n), rng.uniform(-1, 1, n * width)]
    places = [machine.array(ty.F64, [float(v) for v in a.reshape(-1)]) for a in arrays]
    accesses, load, store = [0], Machine.load, Machine.store

    def loading(self: Machine, address: int, t: Any) -> Any:
        accesses[0] += t.is_vector
        return load(self, address, t)

    def storing(self: Machine, address: int, t: Any, value: Any) -> None:
        accesses[0] += t.is_vector
        store(self, address, t, value)

    with patch.object(Machine, "load", loading), patch.object(Machine, "store", storing):
        machine.call(root, [*places, machine.array(ty.I64, [n])])
    return [machine.read(places[k], ty.F64, n * width) for k in (1, 4)], accesses[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["product", "columns"])
def test_the_same_bits_under_the_interpreter(name: str, mode: str) -> None:
    """Sums keep their order; memory has bounds."""
    before, root = _module(name, mode)
    after, _ = _module(name, mode)
    assert jam(after) == 1
    for n in (1, 3, 4, 5, 9):
        assert _run(before, root, n, 4)[0] == _run(after, root, n, 4)[0]


@pytest.mark.parametrize("mode", MODES)
def test_lanes_go_through_memory_less_often(mode: str) -> None:
    """Once LLVM has passed on what a copy stores to the next one."""
    from irgrad.engine.codegen.optimise import optimise
    from irgrad.engine.ir.printer import to_text

    counts = []
    for change in (lambda _: 0, jam):
        module, root = _module("product", mode, 8)
        change(module)
        counts.append(_run(read(optimise(to_text(module), [root]), roots=[root]), root, 16, 8)[1])
    assert counts[1] < 0.5 * counts[0], counts


def test_scopes_end_with_an_iteration() -> None:
    """What metadata says about one iteration does not hold between copies of several."""
    text = """
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %t) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i1, %last ]
  %p = getelementptr inbounds [8 x double], ptr %y, i64 %i
  %a = load <8 x double>, ptr %p, align 8, !noalias !1, !tbaa !4
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j1, %inner ]
  %q = getelementptr inbounds [8 x double], ptr %x, i64 %j
  %b = load <8 x double>, ptr %q, align 8, !alias.scope !1, !llvm.access.group !3
  %c = fadd <8 x double> %a, %b
  store <8 x double> %c, ptr %q, align 8, !noalias !1
  %j1 = add nuw nsw i64 %j, 1
  %more = icmp ult i64 %j1, 10
  br i1 %more, label %inner, label %last
last:
  %i1 = add nuw nsw i64 %i, 1
  %again = icmp ult i64 %i1, 10
  br i1 %again, label %outer, label %end, !llvm.loop !5
end:
  ret void
}
!0 = distinct !{!0}
!1 = !{!2}
!2 = distinct !{!2, !0}
!3 = distinct !{}
!4 = !{!6, !6, i64 0}
!5 = distinct !{!5}
!6 = !{!"double", !7}
!7 = !{!"root"}
"""
    module = read(text, roots=["f"])
    known = {id(i) for i in module.functions["f"].instructions()}
    assert jam(module) == 1
    new = [i for i in module.functions["f"].instructions() if id(i) not in known]
    assert sum(i.opcode == "load" for i in new) == 2 * MOST
    assert {key for i in new for key in i.metadata} == {"tbaa"}
