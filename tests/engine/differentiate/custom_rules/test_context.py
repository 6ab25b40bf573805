"""`ctx`: loops, conditions, temporaries, variables, and what it says about the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad, vjp
from irgrad.rules import extern, f32, f64, i64, layer, rule

SOURCE = """
double cube(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i] * x[i]; return s; }
double twice(double *x, int n) {
  double s = cube(x, n);
  for (int i = 0; i < n; i++) x[i] = 2 * x[i];
  return s + cube(x, n);
}
double once(double *x, int n) { return 3 * cube(x, n); }
"""
X = np.array([0.5, -1.5, 2.0])


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("context") / "cube.c"
    path.write_text(SOURCE)
    return irgrad.load(path)


def test_memory_variables_and_conditions(lib: Any) -> None:
    with layer():

        @rule("cube", mode="reverse")
        def _(ctx, x, n, *, y):  # type: ignore[no-untyped-def]
            work = ctx.temporary(n, f64, zero=True)
            ctx.copy(work, x.saved(n), n)
            counter = ctx.variable(ctx.constant(0, i64))
            with ctx.for_range(0, n, 1) as i:
                single = ctx.temporary(1, f32)
                single[0] = 3
                with ctx.when(work[i] > 0):
                    counter.value += 1
                    x.d[i] += single[0].astype(f64) * work[i] ** 2 * y.d
                with ctx.when(False):
                    x.d[i] = 1e9
                x.d[i] += ctx.where(work[i] > 0, 0.0, 7.0)
            ctx.zero(work, n)
            with ctx.when(counter.value != 2):
                x.d[0] = -1.0
            (x.d + 1)[0] += work[1]

        once = lib.kernel("once", "f64(inout f64[n] x, i32 n)")
        got = vjp(once, X)[1]((1.0, np.zeros(3)))[0]
        np.testing.assert_allclose(got, np.where(X > 0, 9 * X**2, 7.0))


def test_texts_and_small_temporaries(tmp_path: Any) -> None:
    source = tmp_path / "flag.c"
    source.write_text("""
double flagged(const char *flag, double x) { return flag[0] == 'T' ? 2 * x : 3 * x; }
double entry(double x) { return flagged("N", x) * x; }
""")
    entry = irgrad.load(source).kernel("entry")
    with layer():

        @rule("flagged", mode="reverse")
        def _(ctx, flag, x):  # type: ignore[no-untyped-def]
            again, small = ctx.foreign("flagged", "f64(ptr flag, f64 x)"), ctx.temporary(2)
            small[0] = again(flag, 1.0)
            small[1] = again(ctx.text("T"), 1.0) - 2.0
            x.d += ctx.result.d * (small[0] + small[1])

        assert grad(entry)(0.7) == pytest.approx(6 * 0.7)
        text = entry.primal.pullback((0, 1)).stage.text
        assert 'c"T\\00"' in text
        assert "call ptr @malloc" not in text


def test_references_and_null(tmp_path: Any) -> None:
    source = tmp_path / "ref.c"
    source.write_text("""
double apply_(const double *x, const int *n, const void *none) { return none ? 0 : *x * *n; }
double entry(double x) { int n = 3; double r = apply_(&x, &n, 0); n = 4; return r + apply_(&x, &n, 0); }
""")
    entry = irgrad.load(source).kernel("entry")
    with layer():
        extern("apply_", "f64(f64& x, i32& n, ptr none)")

        @rule("apply_", mode="reverse")
        def _(ctx, x, n, none):  # type: ignore[no-untyped-def]
            again = ctx.foreign("apply_")
            x.d += ctx.result.d * again(1.0, n, ctx.null)

        assert grad(entry)(0.7) == 7.0
