"""Ruled calls where control flow is hard: uncounted loops, branches, recursion, split functions, swapped buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import hessian, jvp, vjp
from irgrad.rules import Duplicated, Ptr, f64, layer, rule

SOURCE = """#include <math.h>
#include <stdlib.h>
void scale(int n, double a, double *x) { for (int i = 0; i < n; i++) x[i] *= a; }
double dotp(int n, const double *x, const double *y) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * y[i];
  return s;
}
double g1(double a, double b){ return a*sin(b); }
__attribute__((noinline)) double helper(int n, double *x, double *y, int k) {
  double s = dotp(n, x, y);
  if (k % 2) { scale(n, 0.9 + 0.01*s, x); s = s*s; }
  else if (s > 0.5) { scale(n, g1(1.1, s), y); }
  return s + g1(s, x[0]);
}
double recurse(int n, double *x, double *y, int depth) {
  if (depth == 0) return dotp(n, x, x);
  double s = helper(n, x, y, depth);
  scale(n, 0.7, y);
  return s * 0.5 + recurse(n, x, y, depth - 1);
}
double top(double *x, double *y, long n, long m) {
  double s = 0, t = 1;
  int it = 0;
  while (t > 0.05 && it < 20) {           // uncounted
    double h = helper((int)n, x, y, it);
    t = t * 0.6 / (1 + 0.1*h*h);
    s += h * t;
    it++;
    if (it == 7) continue;
    for (long j = 0; j < m; j++)
      if (x[j] > 0) { scale((int)n, 1.0 - 0.02 * x[j], x); s += dotp((int)n, x, y); }
  }
  return s + recurse((int)n, x, y, 4);
}
double swapb(double *x, long n, long m) {
  double *a = malloc(n*8), *b = malloc(n*8);
  for (long i=0;i<n;i++){a[i]=x[i];b[i]=0;}
  double s=0;
  for (long k = 0; k < m; k++) {
    for (long i = 0; i < n; i++) b[i] = a[i] * a[i];
    scale((int)n, 0.5, b);
    s += dotp((int)n, a, b);
    double *t = a;
    a = b;
    b = t;
  }
  free(a);free(b);
  return s;
}
"""
RNG = np.random.default_rng(1)
CASES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "top": ("f64(inout f64[n] x, inout f64[n] y, i64 n, i64 m)", (RNG.uniform(0.2, 1, 4), RNG.uniform(-1, 1, 4), 2)),
    "swapb": ("f64(f64[n] x, i64 n, i64 m)", (RNG.uniform(0.2, 1, 4), 5)),
}


def _define() -> None:
    @rule("scale", mode="reverse", x=Duplicated[Ptr[f64]])
    def _(ctx, n, a, x):  # type: ignore[no-untyped-def]
        old = x.saved(n)
        with ctx.for_range(n) as i:
            a.d += old[i] * x.d[i]
            x.d[i] = a * x.d[i]

    @rule("scale", mode="forward", x=Duplicated[Ptr[f64]])
    def _(ctx, n, a, x):  # type: ignore[no-untyped-def]
        old = x.saved(n)
        with ctx.for_range(n) as i:
            x.d[i] = a * x.d[i] + a.d * old[i]

    @rule("dotp", mode="reverse")
    def _(ctx, n, x, y):  # type: ignore[no-untyped-def]
        for p, q in ((x, y), (y, x)):
            if p.active:
                other = q.saved(n)
                with ctx.for_range(n) as i:
                    p.d[i] += ctx.result.d * other[i]

    @rule("dotp", mode="forward")
    def _(ctx, n, x, y):  # type: ignore[no-untyped-def]
        total = ctx.variable(0.0)
        with ctx.for_range(n) as i:
            for p, q in ((x, y), (y, x)):
                if p.active:
                    total.value += p.d[i] * q[i]
        ctx.result.d = total.value

    @rule("g1")
    def _(a, b):  # type: ignore[no-untyped-def]
        return np.sin(b), a * np.cos(b)


def _wave(like: Any) -> Any:
    value = np.asarray(like)
    return np.cos(np.arange(value.size) + 1.0).reshape(value.shape)[()] if value.dtype.kind == "f" else None


def _all(kernel: Any, args: tuple[Any, ...]) -> list[Any]:
    out, pull = vjp(kernel, *args)
    found = list(pull(tuple(map(_wave, out)) if isinstance(out, tuple) else _wave(out)))
    tangents = jvp(kernel, args, tuple(map(_wave, args)))[1]
    found += tangents if isinstance(tangents, tuple) else [tangents]
    return [*found, hessian(kernel, wrt="x")(*args)] if kernel.name == "swapb" else found


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_rules_agree_with_the_bodies(name: str, tmp_path: Any) -> None:
    source = tmp_path / "flow.c"
    source.write_text(SOURCE)
    signature, args = CASES[name]
    kernel = irgrad.load(source).kernel(name, signature)
    expected = _all(kernel, args)
    with layer():
        _define()
        got = _all(kernel, args)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
