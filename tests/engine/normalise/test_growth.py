"""Containers that never have to grow: the branch that would make them larger goes, and only where that is sure."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.passes import Code, Settings, run_passes
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.growth import drop_growth
from irgrad.engine.pipeline.stages import NORMALISE

PUSHES = """declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define double @f(i64 %n, double %x) {{
entry:
  %bytes = shl nuw nsw i64 %n, 3
  %first = call ptr @malloc(i64 %bytes)
  %given = add nsw i64 %bytes, {less}
  %room = getelementptr inbounds nuw i8, ptr %first, i64 %given
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %before, label %out
before:
  br label %loop
loop:
  %i = phi i64 [ 0, %before ], [ %next, %push ]
  %begin = phi ptr [ %first, %before ], [ %begin2, %push ]
  %end = phi ptr [ %first, %before ], [ %after, %push ]
  %limit = phi ptr [ %room, %before ], [ %limit2, %push ]
  %full = icmp {asked} ptr %end, %limit
  br i1 %full, label %grow, label %push
grow:
  %to = ptrtoint ptr %end to i64
  %from = ptrtoint ptr %begin to i64
  %held = sub i64 %to, %from
  %twice = shl i64 %held, 1
  %more = add i64 %twice, 16
  %new = call ptr @malloc(i64 %more)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %begin, i64 %held, i1 false)
  call void @free(ptr %begin)
  %moved = getelementptr inbounds i8, ptr %new, i64 %held
  %most = getelementptr inbounds i8, ptr %new, i64 %more
  br label %push
push:
  %begin2 = phi ptr [ %begin, %loop ], [ %new, %grow ]
  %end2 = phi ptr [ %end, %loop ], [ %moved, %grow ]
  %limit2 = phi ptr [ %limit, %loop ], [ %most, %grow ]
  %k = uitofp i64 %i to double
  %y = fmul double %k, %x
  store double %y, ptr %end2
  %after = getelementptr inbounds nuw i8, ptr %end2, i64 8
  %next = add nuw nsw i64 %i, 1
  %done = icmp {done}, {last}
  br i1 %done, label %out.loop, label %loop
out.loop:
  %last = phi double [ %y, %push ]
  %all = phi ptr [ %begin2, %push ]
  %second = load double, ptr %all
  %sum = fadd double %last, %second
  br label %out
out:
  %memory = phi ptr [ %first, %entry ], [ %all, %out.loop ]
  %result = phi double [ 0.5, %entry ], [ %sum, %out.loop ]
  call void @free(ptr %memory)
  ret double %result
}}
"""


def _values(text: str) -> list[float]:
    call = compile_module(text, ["f"], cache=False).function("f", ctypes.c_double, ctypes.c_int64, ctypes.c_double)
    return [call(n, 0.25) for n in (0, 1, 2, 7)]


@pytest.mark.parametrize(("less", "asked", "done", "last", "gone"), [
    (0, "eq", "eq i64 %next", "%n", 1),
    (0, "uge", "eq i64 %next", "%n", 1),
    (0, "uge", "sge i64 %next", "%n", 1),
    (8, "eq", "eq i64 %next", "%n", 1),
    (-8, "uge", "eq i64 %next", "%n", 0),  # the last one has no room
    (-8, "eq", "eq i64 %next", "%n", 0),
    (0, "eq", "sgt i64 %next", "%n", 0),  # one more iteration than there is room for
    (0, "ugt", "sge i64 %next", "%n", 1),
    (0, "ult", "sge i64 %next", "%n", 0),  # taken in each iteration
])  # fmt: skip
def test_only_where_there_is_room(less: int, asked: str, done: str, last: str, gone: int) -> None:
    text = PUSHES.format(less=less, asked=asked, done=done, last=last)
    module = read(text)
    assert drop_growth(module.functions["f"]) == gone
    made = to_text(module)
    assert made.count("call ptr @malloc") == 2 - gone
    if gone:
        assert _values(made) == _values(text)
    else:
        assert made == to_text(read(text))


SOURCE = """#include <vector>
#include <cmath>
struct List { double *at; long size, room;
  void push(double x) { if (size == room) { double *more = new double[room *= 2];
    for (long i = 0; i < size; i++) more[i] = at[i]; delete[] at; at = more; } at[size++] = x; } };
extern "C" double reserved(const double *x, long n) {
  std::vector<double> v; v.reserve(2 * n);
  for (long i = 0; i < n; i++) { v.push_back(std::sin(x[i])); v.push_back(x[i] * x[i]); }
  double s = 0; for (double y : v) s += y * y; return s; }
extern "C" double cleared(const double *x, long n) {
  std::vector<double> v; v.reserve(n); double s = 0;
  for (long k = 0; k < 3; k++) {
    v.clear(); for (long i = 0; i < n; i++) v.push_back(x[i] * (s + k));
    for (double y : v) s += std::sin(y); }
  return s; }
extern "C" double short_by_one(const double *x, long n) {
  std::vector<double> v; v.reserve(n);
  for (long i = 0; i <= n; i++) v.push_back(std::sin(x[i / 2]));
  double s = 0; for (double y : v) s += y * y; return s; }
extern "C" double own(const double *x, long n) {
  List v{new double[n], 0, n};
  for (long i = 0; i < n; i++) v.push(x[i] * x[i]);
  double s = 0; for (long i = 0; i < v.size; i++) s += std::sin(v.at[i]); delete[] v.at; return s; }
extern "C" double chosen(const double *x, long n) {
  std::vector<double> v; v.reserve(n);
  for (long i = 0; i < n; i++) if (x[i] > 0) v.push_back(std::sin(x[i]));
  double s = 0; for (double y : v) s += y * y; return s; }
"""


@pytest.mark.parametrize(("name", "gone"), [
    ("reserved", True), ("cleared", True), ("short_by_one", False), ("own", True), ("chosen", True)])  # fmt: skip
def test_containers_with_room(name: str, gone: bool) -> None:
    kernel = ig.load(SOURCE, language="c++").kernel(name, "f64(f64[n] x, i64 n)")
    stage = kernel.primal.stage
    text = run_passes(NORMALISE, Code(stage.text, roots=[stage.name]), Settings((stage.name,))).text
    assert (text.count("call") and text.count("@_Znwm(") + text.count("@_Znam(") <= 2) is gone  # declared, and once
    x = np.array([0.4, -0.3, 1.2, 0.7, -1.1])
    steps = np.eye(5) * 1e-6
    want = [(kernel(x + step) - kernel(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(ig.grad(kernel)(x), want, rtol=1e-6, atol=1e-8)
