"""What bodies of rules get for their arguments, for one lane and for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import jacfwd, jacrev
from irgrad.rules import extern, layer, rule
from irgrad.rules.errors import RuleError

SOURCE = """
double inner(const double *x, const double *M, double *out, long n, double s) {
  double total = 0;
  for (long i = 0; i < n; i++) {
    out[i] = 0;
    for (long j = 0; j < n; j++) out[i] += s * M[i * n + j] * x[j];
    total += s * x[i] * x[i];
  }
  return total;
}
void entry(const double *x, const double *M, double *out, long n, double s) {
  double t = inner(x, M, out, n, s);
  for (long i = 0; i < n; i++) out[i] += t * x[i];
}
void scaled(const double *a, double *x, long n) { for (long i = 0; i < n; i++) x[i] *= *a; }
void refs(const double *a, const double *x, double *out, long n) {
  for (long i = 0; i < n; i++) out[i] = x[i] * x[i];
  scaled(a, out, n);
}
"""
INNER_PROTOTYPE = "f64(f64[n] x, f64[n,n] M, out f64[n] out, i64 n, f64 s)"
RNG = np.random.default_rng(9)


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("arguments") / "inner.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


@pytest.mark.parametrize("width", (1, 3))
@pytest.mark.parametrize("options", [{}, {"width": "any"}], ids=["each", "all"])
def test_numbers_by_reference(inner: Any, options: Any, width: int) -> None:
    refs = inner.kernel("refs", "void(f64[1] a, f64[n] x, out f64[n] out, i64 n)")
    x, a = RNG.normal(size=3), np.array([1.5])
    with layer():
        declared = extern("scaled", "void(f64& a, inout f64[n] x, i64 n)")

        @rule(declared, mode="reverse", **options)
        def _(ctx: Any, a: Any, x: Any, n: Any) -> None:
            a.d += np.sum(x.saved * x.d)
            x.d[...] = a * x.d

        @rule(declared, mode="forward", **options)
        def _(ctx: Any, a: Any, x: Any, n: Any) -> None:
            x.d = a * x.d + a.d * x.saved

        for jacobian in (jacfwd, jacrev):
            by_a, by_x = jacobian(refs, wrt=("a", "x"), width=width)(a, x)
            np.testing.assert_allclose(by_a[:, 0], x * x, rtol=1e-14)
            np.testing.assert_allclose(by_x, np.diag(3.0 * x), rtol=1e-14)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (lambda ctx, x, M, out, n, s: setattr(s, "d", 1.0), "is assigned"),
        (lambda ctx, x, M, out, n, s: setattr(ctx.result, "d", 1.0), "the cotangent of the result is assigned"),
        (lambda ctx, x, M, out, n, s: ctx.temporary_like(x).assign(x.d), "derivatives in all lanes are stored"),
        (lambda ctx, x, M, out, n, s: x.d.assign(M.saved), "an array of more axes is stored into one of fewer"),
        (lambda ctx, x, M, out, n, s: x.d[0], "1 indices for 2 axes"),
    ],
)
def test_messages_for_bodies(inner: Any, body: Any, what: str) -> None:
    entry = inner.kernel("entry", "void(f64[n] x, f64[n,n] M, out f64[n] out, i64 n, f64 s)")
    with layer():
        rule(extern("inner", INNER_PROTOTYPE), mode="reverse", width="any")(body)
        with pytest.raises(RuleError) as caught:
            _ = entry.primal.pullback((0, 1, 2, 4), 4).stage
    assert what in caught.value.what
