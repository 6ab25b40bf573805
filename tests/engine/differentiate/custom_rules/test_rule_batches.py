"""Rules for whole batches: one call of a function in C for all samples of a block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from shares import fast

import irgrad
from irgrad.engine import batch_grad, batch_jvp, explain_batch
from irgrad.rules import Active, Batched, Const, Duplicated, Ptr, SoA, extern, f64, foreign, layer, rule, which
from irgrad.rules.errors import RuleError

# x = A^-1 b by elimination, `s` a number; the functions for all samples add 1 to the derivative by `log` of one sample
# in each block, those for one sample 100
SOURCE = """
#include <stdlib.h>
#include <string.h>
static void eliminate(double *F, double *x, long n, long w, int transposed) {
  for (long k = 0; k < n; k++)
    for (long i = k + 1; i < n; i++)
      for (long j = 0; j < w; j++) {
        double q = F[(transposed ? k * n + i : i * n + k) * w + j] / F[(k * n + k) * w + j];
        x[i * w + j] -= q * x[k * w + j];
        for (long c = k; c < n; c++)
          F[(transposed ? c * n + i : i * n + c) * w + j] -= q * F[(transposed ? c * n + k : k * n + c) * w + j];
      }
  for (long i = n - 1; i >= 0; i--)
    for (long j = 0; j < w; j++) {
      for (long c = i + 1; c < n; c++) x[i * w + j] -= F[(transposed ? c * n + i : i * n + c) * w + j] * x[c * w + j];
      x[i * w + j] /= F[(i * n + i) * w + j];
    }
}
double solve_all_(const double *A, const double *b, double *x, long n, const double *s, double *y, long w) {
  double F[9 * 16];
  memcpy(F, A, n * n * w * sizeof *F);
  for (long i = 0; i < n; i++) for (long j = 0; j < w; j++) x[i * w + j] = s[j] * b[i * w + j];
  eliminate(F, x, n, w, 0);
  for (long j = 0; j < w; j++) y[j] = 0;
  for (long i = 0; i < n; i++) for (long j = 0; j < w; j++) y[j] += x[i * w + j];
  return 0;
}
double solve(const double *A, const double *b, double *x, long n, double s, const double *log) {
  double y;
  solve_all_(A, b, x, n, &s, &y, 1);
  return y;
}
void solve_all(const double *A, const double *b, double *x, long n, const double *s, const double *log, double *y,
               long w) {
  solve_all_(A, b, x, n, s, y, w);
}
static void back(const double *A, double *A_d, const double *b, double *b_d, const double *x, double *x_d, long n,
                 const double *s, double *s_d, const double *y_d, long w) {
  double F[9 * 16];
  memcpy(F, A, n * n * w * sizeof *F);
  for (long i = 0; i < n; i++) for (long j = 0; j < w; j++) x_d[i * w + j] += y_d[j];
  eliminate(F, x_d, n, w, 1);
  for (long i = 0; i < n; i++)
    for (long j = 0; j < w; j++) {
      b_d[i * w + j] += s[j] * x_d[i * w + j];
      s_d[j] += b[i * w + j] * x_d[i * w + j];
      for (long k = 0; k < n; k++) A_d[(i * n + k) * w + j] -= x_d[i * w + j] * x[k * w + j];
      x_d[i * w + j] = 0;
    }
}
void solve_reverse(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
                   double s, double *s_d, const double *log, double *log_d, double y_d) {
  back(A, A_d, b, b_d, x, x_d, n, &s, s_d, &y_d, 1);
  log_d[0] += 100;
}
void solve_reverse_all(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
                       const double *s, double *s_d, const double *log, double *log_d, const double *y_d, long w) {
  back(A, A_d, b, b_d, x, x_d, n, s, s_d, y_d, w);
  log_d[0] += 1;
}
static void shared(double *T, const double *A, long n, long w) {
  for (long i = 0; i < n * n; i++) for (long j = 0; j < w; j++) T[i * w + j] = A[i];
}
void solve_shared(const double *A, const double *b, double *x, long n, double s, const double *log, double *y, long w) {
  double T[9 * 16], S[16];
  shared(T, A, n, w);
  for (long j = 0; j < w; j++) S[j] = s;
  solve_all_(T, b, x, n, S, y, w);
}
void solve_reverse_shared(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
                          double s, double *s_d, const double *log, double *log_d, const double *y_d, long w) {
  double T[9 * 16], S[16];
  shared(T, A, n, w);
  for (long j = 0; j < w; j++) S[j] = s;
  back(T, A_d, b, b_d, x, x_d, n, S, s_d, y_d, w);
  log_d[0] += 1;
}
double solve_forward(const double *A, const double *A_d, const double *b, const double *b_d, double *x, double *x_d,
                     long n, double s, double s_d, const double *log, const double *log_d, double *y_d) {
  double y = solve(A, b, x, n, s, log), B[3], one = 1;
  for (long i = 0; i < n; i++) {
    B[i] = s * b_d[i] + s_d * b[i];
    for (long k = 0; k < n; k++) B[i] -= A_d[i * n + k] * x[k];
  }
  solve_all_(A, B, x_d, n, &one, y_d, 1);
  return y;
}
void solve_forward_all(const double *A, const double *A_d, const double *b, const double *b_d, double *x, double *x_d,
                       long n, const double *s, const double *s_d, const double *log, const double *log_d, double *y,
                       double *y_d, long w) {
  double B[3 * 16], ones[16];
  solve_all_(A, b, x, n, s, y, w);
  for (long j = 0; j < w; j++) {
    ones[j] = 1;
    for (long i = 0; i < n; i++) {
      B[i * w + j] = s[j] * b_d[i * w + j] + s_d[j] * b[i * w + j];
      for (long k = 0; k < n; k++) B[i * w + j] -= A_d[(i * n + k) * w + j] * x[k * w + j];
    }
  }
  solve_all_(A, B, x_d, n, ones, y_d, w);
  y_d[0] += log_d[0];
}
void solve_augmented_all(const double *A, const double *b, double *x, long n, const double *s, const double *log,
                         double *y, void **tape, long w) {
  solve_all_(A, b, x, n, s, y, w);
  *tape = memcpy(malloc(n * w * sizeof *x), x, n * w * sizeof *x);
}
void solve_reverse_taped(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
                         const double *s, double *s_d, const double *log, double *log_d, const double *y_d, void *tape,
                         long w) {
  back(A, A_d, b, b_d, tape, x_d, n, s, s_d, y_d, w);
  log_d[0] += 1;
  free(tape);
}
double solve_augmented(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
                       double s, const double *log, double *log_d, void **tape) {
  double y;
  solve_augmented_all(A, b, x, n, &s, log, &y, tape, 1);
  return y;
}
void solve_reverse_tape(const double *A, double *A_d, const double *b, double *b_d, double *x, double *x_d, long n,
                        double s, double *s_d, const double *log, double *log_d, double y_d, void *tape) {
  solve_reverse_taped(A, A_d, b, b_d, x, x_d, n, &s, s_d, log, log_d, &y_d, tape, 1);
  log_d[0] += 99;
}
double inplace(const double *A, const double *b, long n, double s, const double *log) {
  double x[3], t = 0;
  for (int r = 0; r < 5; r++) {
    t += solve(A, b, x, n, s, log);
    for (long i = 0; i < n; i++) x[i] = x[i] * x[i];
    for (long i = 0; i < n; i++) t += x[i] * (i + 1);
  }
  return t;
}
double entry(const double *A, const double *b, long n, double s, const double *log) {
  double x[3], y[3];
  double t = solve(A, b, x, n, s, log);
  for (long i = 0; i < n; i++) y[i] = x[i] * x[i];
  for (long i = 0; i < n; i++) t += y[i] * (i + 1);
  return t;
}
"""
PROTOTYPE = "f64(f64[n,n] A, f64[n] b, out f64[n] x, i64 n, f64 s, f64[1] log)"
POINTER, EACH = Duplicated[Ptr[f64]], Batched[Duplicated[Ptr[f64]], SoA]
AXES = {"A": 0, "b": 0, "s": 0, "log": 0}
RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("batches") / "solve.c"
    path.write_text(SOURCE)
    return irgrad.load(path).kernel("entry", "f64(f64[n,n] A, f64[n] b, i64 n, f64 s, f64[1] log)")


def _for_one() -> None:
    foreign(extern("solve", PROTOTYPE), reverse="solve_reverse")


def _for_all() -> None:
    foreign(extern("solve", PROTOTYPE), EACH, EACH, EACH, Const, Batched[Active[f64], SoA], EACH,
            primal="solve_all", reverse="solve_reverse_all")  # fmt: skip


def _inputs(samples: int) -> tuple[Any, ...]:
    return (RNG.normal(size=(samples, 3, 3)) + 4 * np.eye(3), RNG.normal(size=(samples, 3)), RNG.normal(size=samples),
            np.zeros((samples, 1)))  # fmt: skip


def _wanted(a: Any, b: Any, s: Any) -> tuple[Any, Any, Any]:
    inverse = np.linalg.inv(a)
    x = s * inverse @ b
    x_d = 1 + 2 * x * np.arange(1, 4)
    back = inverse.T @ x_d
    return -np.outer(back, x), s * back, back @ b


@pytest.mark.parametrize("samples", (0, 1, 7, 64))
def test_one_call_for_each_block(entry: Any, samples: int) -> None:
    a, b, s, log = _inputs(samples)
    with layer():
        _for_one()
        made = batch_grad(entry, wrt=("A", "b", "s", "log"), in_axes=AXES, width=8)
        plain = made(a, b, s=s, log=log)
        _for_all()
        made = batch_grad(entry, wrt=("A", "b", "s", "log"), in_axes=AXES, width=8)
        found = made(a, b, s=s, log=log)
    for i in range(samples):
        for got, single, want in zip(found, plain, _wanted(a[i], b[i], s[i]), strict=False):
            np.testing.assert_allclose(got[i], want, rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(single[i], want, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(plain[3][:, 0], np.full(samples, 100.0))
    np.testing.assert_array_equal(found[3][:, 0], [1.0 if i % 8 == 0 else 0.0 for i in range(samples)])


@pytest.mark.parametrize("layout", ["aos", "soa"])
def test_layouts_and_the_width_that_is_chosen(entry: Any, layout: str) -> None:
    a, b, s, log = _inputs(33)
    a[5, 1, 1] = np.nan  # stays in its sample
    axis = 0 if layout == "aos" else -1
    given = (a, b) if layout == "aos" else (np.moveaxis(a, 0, -1).copy(), b.T.copy())
    axes = {"A": axis, "b": axis, "s": 0, "log": axis}
    with layer():
        _for_one()
        _for_all()
        made = batch_grad(entry, wrt=("A", "b", "s", "log"), in_axes=axes, layout=layout)
        ones = log if layout == "aos" else log.T.copy()
        found = [np.moveaxis(g, axis, 0) for g in made(*given, s=s, log=ones)]
        assert "samples side by side in vectors" in explain_batch(made, *given, s=s, log=ones)
    for i in range(33):
        for got, want in zip(found, _wanted(a[i], b[i], s[i]), strict=False):
            if i == 5:
                assert np.isnan(got).any()
            else:
                np.testing.assert_allclose(got[i], want, rtol=1e-11, atol=1e-12)
    calls = found[3][:, 0]
    assert set(calls) == {0.0, 1.0} and calls.sum() == -(-33 // np.flatnonzero(calls)[1])


def test_arguments_that_the_samples_share(entry: Any) -> None:
    """They stay as they are; their derivatives are those of each sample."""
    (a, b, s, log), axes = _inputs(16), {"A": None, "b": 0, "s": None, "log": 0}
    options: dict[str, Any] = {"wrt": ("A", "b", "s", "log"), "in_axes": axes, "width": 8}
    with layer():
        _for_one()
        _for_all()
        other = batch_grad(entry, **options)(a[0], b, s=s[0], log=log)  # no rule is for these: lane by lane
        foreign(extern("solve", PROTOTYPE), POINTER, EACH, EACH, Const, Active[f64], EACH,
                primal="solve_shared", reverse="solve_reverse_shared")  # fmt: skip
        found = batch_grad(entry, **options)(a[0], b, s=s[0], log=log)
    for i in range(16):
        for got, single, want in zip(found, other, _wanted(a[0], b[i], s[0]), strict=False):
            np.testing.assert_allclose(got[i], want, rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(single[i], want, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(other[3][:, 0], np.full(16, 100.0))
    np.testing.assert_array_equal(found[3][:, 0], [1.0, *[0.0] * 7] * 2)


def test_forward(entry: Any) -> None:
    (a, b, s, log), tangents = _inputs(11), _inputs(11)
    with layer():
        foreign(extern("solve", PROTOTYPE), forward="solve_forward")
        foreign(extern("solve", PROTOTYPE), EACH, EACH, EACH, Const, Batched[Active[f64], SoA], EACH,
                forward="solve_forward_all")  # fmt: skip
        primals, moved = (a, b, None, s, log), (tangents[0], tangents[1], None, tangents[2], np.ones((11, 1)))
        _, found = batch_jvp(entry, [p for p in primals if p is not None], [m for m in moved if m is not None],
                             in_axes=AXES, width=8)  # fmt: skip
    for i in range(11):
        by_a, by_b, by_s = _wanted(a[i], b[i], s[i])
        want = (by_a * tangents[0][i]).sum() + by_b @ tangents[1][i] + by_s * tangents[2][i]
        np.testing.assert_allclose(found[i], want + (i % 8 == 0), rtol=1e-11, atol=1e-12)


def test_beside_a_body_with_ctx(entry: Any) -> None:
    """Where that wants copies on the tape, samples are taken one by one; nothing is mixed up."""
    a, b, s, log = _inputs(8)
    with layer():

        @rule(extern("solve", PROTOTYPE), mode="reverse")
        def _(ctx: Any, A: Any, b: Any, x: Any, n: Any, s: Any, log: Any) -> None:
            pointers = ", ".join(["f64*"] * 6)
            back = ctx.foreign("solve_reverse", f"void({pointers}, i64, f64, f64*, f64*, f64*, f64)")
            slope = ctx.temporary(1, zero=True)
            back(A, A.d, b, b.d, x, x.d, n, s, slope, log, log.d, ctx.result.d)
            s.d += slope[0]

        _for_all()
        found = batch_grad(entry, wrt=("A", "b", "s", "log"), in_axes=AXES, width=8)(a, b, s=s, log=log)
    for i in range(8):
        for got, want in zip(found, _wanted(a[i], b[i], s[i]), strict=False):
            np.testing.assert_allclose(got[i], want, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(found[3][:, 0], [1.0, *[0.0] * 7])


def _body() -> None:
    @rule(extern("solve", PROTOTYPE), mode="reverse")
    def _(ctx: Any, A: Any, b: Any, x: Any, n: Any, s: Any, log: Any) -> None:
        pointers = ", ".join(["f64*"] * 6)
        back = ctx.foreign("solve_reverse", f"void({pointers}, i64, f64, f64*, f64*, f64*, f64)")
        slope = ctx.temporary(1, zero=True)
        back(A.saved, A.d, b.saved, b.d, x.result, x.d, n, s, slope, log, log.d, ctx.result.d)
        s.d += slope[0]


def _taped() -> None:
    foreign(extern("solve", PROTOTYPE), augmented="solve_augmented", reverse="solve_reverse_tape")


@pytest.mark.parametrize("single", fast(1, [_for_one, _body, _taped]))
@pytest.mark.parametrize("name", ["entry", "inplace"])
def test_a_tape(entry: Any, tmp_path: Any, name: str, single: Any) -> None:
    """What the program overwrites a batch keeps by its own functions, in place of the copies of single samples."""
    path = tmp_path / "tape.c"
    path.write_text(SOURCE)
    kernel = irgrad.load(path).kernel(name, "f64(f64[n,n] A, f64[n] b, i64 n, f64 s, f64[1] log)")
    a, b, s, log = _inputs(11)
    times = 5 if name == "inplace" else 1
    with layer():
        single()
        foreign("solve", EACH, EACH, EACH, Const, Batched[Active[f64], SoA], EACH,
                augmented="solve_augmented_all", reverse="solve_reverse_taped")  # fmt: skip
        found = batch_grad(kernel, wrt=("A", "b", "s", "log"), in_axes=AXES, width=8)(a, b, s=s, log=log)
        alone = None if name == "inplace" and single is _for_one else irgrad.engine.grad(
            kernel, wrt=("A", "b", "s", "log"))(a[0], b[0], s[0], log[0])  # fmt: skip
    for i in range(11):
        for got, want in zip(found, _wanted(a[i], b[i], s[i]), strict=False):
            np.testing.assert_allclose(got[i], times * want, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(found[3][:, 0], [float(times) if i % 8 == 0 else 0.0 for i in range(11)])
    if alone is not None:
        np.testing.assert_allclose(alone[1], times * _wanted(a[0], b[0], s[0])[1], rtol=1e-11)
        assert alone[3][0] == 100.0 * times


def test_single_derivatives_use_the_rule_for_one(entry: Any) -> None:
    a, b, s, log = _inputs(1)
    with layer():
        _for_one()
        _for_all()
        by_a, by_b, by_log = irgrad.engine.grad(entry, wrt=("A", "b", "s", "log"))(a[0], b[0], s[0], log[0])[::1][:3]
        for got, want in zip((by_a, by_b, by_log), _wanted(a[0], b[0], s[0]), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)
        types = (POINTER, POINTER, POINTER, Const, Active[f64], POINTER)
        single = which("solve", *types, ret=Active[f64])
        batched = which("solve", *(Batched[t, SoA] if t is not Const else t for t in types), ret=Active[f64])
        some = which("solve", Batched[POINTER, SoA], *types[1:], ret=Active[f64])
    assert single.rule is not None and batched.rule is not None and some.rule is not None
    assert (single.rule.batched, batched.rule.batched, some.rule.batched) == (False, True, False)
    assert (single.how, batched.how, some.how) == ("rule", "rule", "lane by lane")


def test_a_rule_for_batches_alone_is_refused(entry: Any) -> None:
    with layer():
        _for_all()
        with pytest.raises(RuleError, match="`solve` has a rule for whole batches and none for one sample"):
            irgrad.engine.grad(entry, wrt=("A", "b", "s", "log"))(*(v[0] for v in _inputs(1)))


def test_other_prototypes_are_printed(entry: Any) -> None:
    with layer():
        _for_one()
        foreign(extern("solve", PROTOTYPE), EACH, EACH, EACH, Const, Batched[Active[f64], SoA], EACH,
                primal="solve_shared", reverse="solve_reverse_all")  # fmt: skip
        a, b, s, log = _inputs(8)
        with pytest.raises(RuleError) as caught:
            batch_grad(entry, wrt=("A", "b", "s", "log"), in_axes=AXES, width=8)(a, b, s=s, log=log)
    assert caught.value.what == "`solve_shared` has another prototype"
    assert caught.value.fix == "void solve_shared(void *, void *, void *, long, void *, void *, void *, long);"


def test_numbers_with_padding_between_them() -> None:
    """A function in C finds long doubles 16 bytes apart and bools a byte, which vectors in memory would not be."""
    kernel = irgrad.load("""
        #include <stdbool.h>
        long double power(long double s, bool cube) { return cube ? s * s * s : s * s; }
        void power_reverse(long double s, long double *s_d, bool cube, long double y_d) { s_d[0] = 1 / 0.; }
        void power_all(const long double *s, const bool *cube, long double *y, long w) {
          for (long j = 0; j < w; j++) y[j] = power(s[j], cube[j]); }
        void power_reverse_all(const long double *s, long double *s_d, const bool *cube, const long double *y_d,
                               long w) {
          for (long j = 0; j < w; j++) s_d[j] = y_d[j] * (cube[j] ? 3 * s[j] * s[j] : 2 * s[j]); }
        double f(const double *x) { long double s = 0;
          for (int i = 0; i < 3; i++) s += power(x[i], x[i] > 0); return (double)s; }""").kernel("f", "f64(f64[3] x)")
    x = RNG.normal(size=(19, 3))
    with layer():
        foreign("power", reverse="power_reverse")
        foreign("power", Batched[Active, SoA], Batched[Const, SoA], primal="power_all", reverse="power_reverse_all")
        got = batch_grad(kernel)(x)
    np.testing.assert_allclose(got, np.where(x > 0, 3 * x**2, 2 * x), rtol=1e-14)
