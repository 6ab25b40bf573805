"""Loops of a team compute only what later loops read, where that is known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.engine.threads.on_demand import settle_demand

SOURCE = """
#include <math.h>
#include <stdlib.h>
static double heavy(const double *x, long v, long m) {
    double s[3] = {0, 0, 0};
    for (long j = 0; j < m; j++)
        for (int i = 0; i < 3; i++) s[i] += sin(x[v] * x[j] + i) * (x[j] + 0.1 * v);
    return s[0] * s[1] + s[2];
}
void f(const double *x, const int *index, double *y, long m, long n) {
    double *t = malloc(m * sizeof *t);
    for (long v = 0; v < m; v++) { BODY }
    GATHER
    free(t);
}
"""
SIGNATURE = "void(f64[m] x, i32[n] index, out f64[n] y, i64 m, i64 n)"
FILL, GATHER = "t[v] = heavy(x, v, m);", "for (long i = 0; i < n; i++) y[i] = t[index[i]] * x[0];"
ASKED = {
    "plain": (FILL, GATHER),
    "variable": ("double s[2] = {x[v], 0}; for (long j = 0; j < m; j++) for (int i = 0; i < 2; i++) "
                 "s[i] += cos(s[1 - i] + x[j]) * x[v] + exp(x[j]); t[v] = s[0] + s[1];", GATHER),
    "twice": (FILL, f"{GATHER} for (long i = 0; i < n; i++) y[i] += t[index[n - 1 - i]] * x[1];"),
    "if longer": (FILL, f"if (n > 3) {GATHER} else for (long i = 0; i < n; i++) y[i] = x[0];"),
}  # fmt: skip
LEFT = {
    "all are read": (FILL, f"{GATHER} for (long i = 0; i < n && i < m; i++) y[i] += t[i];"),
    "the others' too": ("t[v] = heavy(x, v, m) + (v > 0 ? 0.1 * t[v - 1] : 0);", GATHER),
    "little work": ("t[v] = x[v] * x[v];", GATHER),
    "by the result": (FILL, f"if (t[0] > 0.1) {GATHER} else for (long i = 0; i < n; i++) y[i] = t[0];"),
    "a sum as well": (f"{FILL} y[0] += t[v];", GATHER.replace("i = 0", "i = 1")),
}


def _text(body: str, gather: str) -> str:
    return SOURCE.replace("BODY", body).replace("GATHER", gather)


def _kernels(body: str, gather: str, *threads: int | None) -> list[Any]:
    lib = irgrad.load(_text(body, gather))
    return [lib.kernel("f", SIGNATURE, threads=count) for count in threads]


def _asks(kernel: Any) -> bool:
    return "@calloc(" in str(kernel.primal.stage.text)


@pytest.mark.parametrize("name", ASKED)
def test_what_is_wanted_is_known_before_chunks_are_made(name: str) -> None:
    f, plain = _kernels(*ASKED[name], 2, None)
    assert _asks(f) and not _asks(plain)
    assert shared_loops(f.primal).shared


@pytest.mark.parametrize("name", LEFT)
def test_other_loops_compute_all(name: str) -> None:
    assert not _asks(_kernels(*LEFT[name], 2)[0])


@pytest.mark.parametrize(("name", "m", "n"), [
    (name, m, n) for name in (*ASKED, *LEFT) for m, n in ((64, 7), (20, 20), (20, 90), (1, 5))
    if m > 1 or name != "twice"  # it reads x[1]
])  # fmt: skip
def test_derivatives_are_those_without_a_team(name: str, m: int, n: int) -> None:
    body, gather = {**ASKED, **LEFT}[name]
    one, four, plain = _kernels(body, gather, 1, 4, None)
    rng = np.random.default_rng(m + n)
    x, index, bar = rng.uniform(0.1, 0.9, m), rng.integers(0, m, n).astype(np.int32), rng.normal(size=n)
    along = rng.normal(size=m)
    slope = irgrad.jvp(plain, (x, index), (along, None))[1]
    gradient = irgrad.vjp(plain, x, index, wrt="x")[1](bar)
    assert np.vdot(gradient, along) == pytest.approx(np.vdot(bar, slope), rel=1e-11)
    found = [(f(x, index), irgrad.vjp(f, x, index, wrt="x")[1](bar), irgrad.jvp(f, (x, index), (along, None))[1],
              irgrad.jacfwd(f, wrt="x")(x, index)) for f in (one, four)]  # fmt: skip
    for row in zip(*found, strict=True):
        assert all(np.array_equal(row[0], other) for other in row[1:])
    wanted = (plain(x, index), gradient, slope, irgrad.jacfwd(plain, wrt="x")(x, index))
    for value, known in zip(found[0], wanted, strict=True):
        np.testing.assert_allclose(value, known, rtol=1e-11, atol=1e-11)


ARRAY = """
declare void @elsewhere(ptr)
define void @f(ptr noalias %x, ptr noalias %k, ptr noalias %y, i64 %m, i64 %n) {
entry:
  %t = alloca [4096 x double]
  br label %fill
fill:
  %v = phi i64 [ 0, %entry ], [ %v.next, %fill.latch ]
  %p = getelementptr inbounds double, ptr %x, i64 %v
  %a = load double, ptr %p
  br label %inner
inner:
  %j = phi i64 [ 0, %fill ], [ %j.next, %inner ]
  %s = phi double [ 0.0, %fill ], [ %s.next, %inner ]
  %b = call double @llvm.sin.f64(double %s)
  %c = call double @llvm.cos.f64(double %b)
  %s.next = fadd double %c, %a
  %j.next = add nuw nsw i64 %j, 1
  %j.more = icmp ult i64 %j.next, %m
  br i1 %j.more, label %inner, label %fill.latch
fill.latch:
  %q = getelementptr inbounds double, ptr %t, i64 %v
  store double %s.next, ptr %q
  %v.next = add nuw nsw i64 %v, 1
  %v.more = icmp ult i64 %v.next, %m
  br i1 %v.more, label %fill, label %between
between:
  WRITE
  br label %gather
gather:
  %i = phi i64 [ 0, %between ], [ %i.next, %gather ]
  %kp = getelementptr inbounds i64, ptr %k, i64 %i
  %at = load i64, ptr %kp
  %r = getelementptr inbounds double, ptr %t, i64 %at
  %d = load double, ptr %r
  %w = getelementptr inbounds double, ptr %y, i64 %i
  store double %d, ptr %w
  %i.next = add nuw nsw i64 %i, 1
  %i.more = icmp ult i64 %i.next, %n
  br i1 %i.more, label %gather, label %done
done:
  ret void
}
declare double @llvm.sin.f64(double)
declare double @llvm.cos.f64(double)
"""


@pytest.mark.parametrize(
    ("between", "asks"),
    [("", 1), ("store i64 0, ptr %k", 0), ("call void @elsewhere(ptr null)", 0), ("store double 0.0, ptr %y", 1)],
)
def test_indices_are_read_before_where_nothing_writes_to_them(between: str, asks: int) -> None:
    module = read(ARRAY.replace("WRITE", between))
    assert settle_demand(module, module.functions["f"]) == asks
    verify_module(module)
