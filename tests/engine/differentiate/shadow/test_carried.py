"""Tangents and adjoints inside integers: structs passed in registers, sign tricks, words that are taken apart."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, gradient, make

import irgrad
from irgrad import engine
from irgrad.rules.errors import Unsupported

MIXED = """
typedef struct { int k; float v; } Pair;
NOINLINE static float weigh(Pair p, double by) { return p.v * p.k * (float)by; }
NOINLINE static Pair flip(Pair p) { Pair q = {p.k + 3, p.v * p.v}; return q; }
void f(float *x, double *w, int *k, double *o) {
    Pair p = {k[0], x[0]}, q = {k[1], x[1]};
    *o = weigh(p, w[0]) + weigh(flip(q), w[1]);
}"""


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_struct_of_an_int_and_a_float_in_one_register(mode: str) -> None:
    made = make(MIXED, "f", mode, ["dup", "dup", "const", "dup"])
    x, w, k = np.array([1.5, -2.0], np.float32), np.array([0.5, 3.0]), np.array([4, 7], np.int32)
    dx = np.array([4 * 0.5, 10 * 2 * -2.0 * 3.0])
    dw = np.array([1.5 * 4, 10 * 4.0])
    o = np.zeros(1)
    if mode == "reverse":
        gx, gw = np.zeros(2, np.float32), np.zeros(2)
        made(x, gx, w, gw, k, o, np.ones(1))
        assert (gx.tolist(), gw.tolist()) == (dx.tolist(), dw.tolist())
    else:
        for i in range(2):
            vx, vw, to = np.zeros(2, np.float32), np.zeros(2), np.zeros(1)
            vx[i], vw[i] = 1.0, 0.5
            made(x, vx, w, vw, k, o, to)
            assert to[0] == dx[i] + 0.5 * dw[i]
    assert o[0] == 1.5 * 4 * 0.5 + 10 * 4.0 * 3.0


SIGNS = {
    "and i64 %bits, 9223372036854775807": lambda x: np.sign(x),  # |x|
    "or i64 %bits, -9223372036854775808": lambda x: -np.sign(x),  # -|x|
    "xor i64 %bits, -9223372036854775808": lambda x: -1.0,  # -x
}


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("operation", list(SIGNS))
def test_masks_of_the_sign(operation: str, mode: str) -> None:
    text = f"""define void @f(ptr %x, ptr %o) {{
  %bits = load i64, ptr %x, align 8
  %masked = {operation}
  %y = bitcast i64 %masked to double
  %a = load double, ptr %x, align 8
  %z = fmul double %y, %a
  store double %z, ptr %o, align 8
  ret void
}}"""
    for x in (1.5, -2.5):
        value = {"and": abs(x), "or": -abs(x), "xor": -x}[operation.split(maxsplit=1)[0]]
        want = SIGNS[operation](x) * x + value
        made = make(text, "f", mode, ["dup", "dup"])
        o, shadow = np.zeros(1), np.ones(1)
        if mode == "forward":
            to = np.zeros(1)
            made(np.array([x]), shadow, o, to)
            assert to[0] == want
        else:
            dx = np.zeros(1)
            made(np.array([x]), dx, o, shadow)
            assert dx[0] == want


ROUNDED = {
    "the low word of a double": "U u = {a}; u.w &= 0xffffffff00000000ull; return u.d;",
    "the low word through memory": "U u = {a}; u.h[0] = 0; return u.d;",
    "its last byte is another's": "U u = {a}; u.w = (u.w & ~255ull) | (unsigned char)i; return u.d;",
    "last bits set": "U u = {a}; u.w |= 7; return u.d;",
    "last bits turned": "U u = {a}; u.w ^= 5; return u.d;",
    "twelve bits of a single": "F u = {(float)a}; u.w &= 0xfffff000; return u.f;",
}
ROUNDING = """
typedef union { double d; unsigned long w; unsigned h[2]; } U;
typedef union { float f; unsigned w; } F;
static double meant(double a, long i) { %s }
double f(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += meant(x[i], i) * meant(x[i], i) * x[i];
    return s;
}"""


@pytest.mark.parametrize("level", ["O0", None, "O2"])
@pytest.mark.parametrize("name", ROUNDED)
def test_last_bits_of_a_significand_are_rounding(name: str, level: str | None) -> None:
    """The derivative is that of the number which is meant: 2 m x + m^2 where m is x to some digits."""
    kernel = irgrad.load(ROUNDING % ROUNDED[name], opt=level).kernel("f", "f64(f64[n] x, i64 n)")
    x = np.array([0.3, -1.7, 12.25, 1 / 3, -7e-3])
    want = 3 * x**2
    tolerance = 2e-3 if "single" in name else 1e-5
    assert kernel(x) == pytest.approx(np.sum(x**3), rel=tolerance)
    assert engine.grad(kernel)(x) == pytest.approx(want, rel=tolerance)
    v = np.array([1.0, -2.0, 0.5, 3.0, 0.25])
    same = 1e-6 if "single" in name else 1e-12
    assert engine.jvp(kernel, (x,), (v,))[1] == pytest.approx(engine.grad(kernel)(x) @ v, rel=same)


@pytest.mark.parametrize("mask", ["0xfff8000000000000ull", "0x7ff0000000000000ull", "0x000fffffffffffffull"])
def test_bits_that_are_no_rounding_are_refused(mask: str) -> None:
    """An index into a table, an exponent and a bare significand are no rounding."""
    source = ROUNDING % f"U u = {{a}}; u.w &= {mask}; return u.d;"
    kernel = irgrad.load(source).kernel("f", "f64(f64[n] x, i64 n)")
    with pytest.raises(Unsupported, match="bits"):
        engine.grad(kernel)(np.array([0.3, -1.7]))


CLOSEST = """
#include <cmath>
#include <optional>
struct Hit { double t, shade; int id; };
static std::optional<Hit> hit(const double *p, double q) {
    double d = p[0] * p[0] - q;
    if (d < 0) return {};
    double t = std::sqrt(d) - 0.3;
    if (t < 1e-6) return {};
    return Hit{t, p[1] * t, 1};
}
extern "C" double f(const double *x, long n) {
    double s = 0;
    for (int b = 0; b < 3; b++) {
        std::optional<Hit> best;
        for (long i = 0; i + 1 < n; i += 2)
            if (auto h = hit(x + i, 0.1 * b))
                if (!best || h->t < best->t) best = h;
        if (!best) { s += 0.2; break; }
        s += best->shade * best->t;
    }
    return s;
}"""


@pytest.mark.parametrize("level", ["O0", None, "O1", "O2"])
def test_an_optional_in_a_loop(level: str | None) -> None:
    """The byte that an empty optional clears meets what the iteration before left there."""
    kernel = irgrad.load(CLOSEST, language="c++", opt=level).kernel("f", "f64(f64[n] x, i64 n)")
    x, h = np.array([1.2, 0.4, -0.9, 1.5, 2.0, -0.3, 0.1, 7.0]), 1e-6
    want = [(kernel(x + h * e) - kernel(x - h * e)) / (2 * h) for e in np.eye(8)]
    got = engine.grad(kernel)(x)
    assert got == pytest.approx(want, rel=1e-7, abs=1e-8)
    assert engine.jvp(kernel, (x,), (np.arange(8.0),))[1] == pytest.approx(got @ np.arange(8.0), rel=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("operation", ["or", "xor"])
def test_the_sign_of_another_float(operation: str, mode: str) -> None:
    """`or` is copysign(x, y) for x > 0 (LLVM drops the mask of a known sign), `xor` is x times the sign of y."""
    text = f"""define void @f(ptr %x, ptr %y, ptr %o) {{
  %a = load i64, ptr %x, align 8
  %b = load i64, ptr %y, align 8
  %s = and i64 %b, -9223372036854775808
  %t = {operation} i64 %a, %s
  %u = bitcast i64 %t to double
  %p = load double, ptr %x, align 8
  %q = load double, ptr %y, align 8
  %v = fmul double %u, %p
  %w = fmul double %v, %q
  store double %w, ptr %o, align 8
  ret void
}}"""
    for x, y in ((1.5, 0.5), (1.5, -0.5), (-2.5, 0.5), (-2.5, -0.5)):
        sign = 1.0 if y > 0 or (operation == "or" and x < 0) else -1.0
        want = (2 * sign * x * y, sign * x * x)
        made = make(text, "f", mode, ["dup"] * 3)
        o, shadow = np.zeros(1), np.ones(1)
        for i in range(2):
            if mode == "forward":
                to = np.zeros(1)
                made(np.array([x]), np.array([1.0 - i]), np.array([y]), np.array([float(i)]), o, to)
                assert to[0] == want[i]
        if mode == "reverse":
            dx, dy = np.zeros(1), np.zeros(1)
            made(np.array([x]), dx, np.array([y]), dy, o, shadow)
            assert (dx[0], dy[0]) == want


def test_halves_of_a_word_that_change_places() -> None:
    """Two floats in one i64, swapped by shifts."""
    text = """define void @f(ptr %x, ptr %y, ptr %o) {
  %both = load i64, ptr %x, align 4
  %low = shl i64 %both, 32
  %high = lshr i64 %both, 32
  %turned = or disjoint i64 %low, %high
  store i64 %turned, ptr %y, align 4
  %a = load float, ptr %y, align 4
  %p = getelementptr inbounds float, ptr %y, i64 1
  %b = load float, ptr %p, align 4
  %q = getelementptr inbounds float, ptr %x, i64 1
  %c = load float, ptr %q, align 4
  %t = fmul float %a, %a
  %u = fmul float %t, %b
  %s = fadd float %u, %c
  %d = fpext float %s to double
  store double %d, ptr %o, align 8
  ret void
}"""
    x = np.array([3.0, 2.0], np.float32)
    (dx, _, _), _made = gradient(text, "f", "ddd", x, np.zeros(2, np.float32), OUT)
    assert dx.tolist() == [4.0, 2 * 2.0 * 3.0 + 1]


@pytest.mark.parametrize("operation", ["and i64 %bits, 4503599627370495", "lshr i64 %bits, 3"])
def test_bits_taken_apart_are_refused(operation: str) -> None:
    text = f"""define void @f(ptr %x, ptr %o) {{
  %a = load double, ptr %x, align 8
  %sq = fmul double %a, %a
  %bits = bitcast double %sq to i64
  %part = {operation}
  %y = bitcast i64 %part to double
  %z = fmul double %y, %a
  store double %z, ptr %o, align 8
  ret void
}}"""
    for mode in ("forward", "reverse"):
        with pytest.raises(Unsupported, match=r"in +@f"):
            make(text, "f", mode, ["dup", "dup"])


ALIGNED = """
#include <stdint.h>
#include <stdlib.h>
double f(const double *x, long n) {
  char *raw = malloc(n * 8 + 64);
  double *a = __builtin_assume_aligned((char *)(((uintptr_t)raw + 64) & ~(uintptr_t)63), 64);
  double s = 0;
  for (long i = 0; i < n; i++) a[i] = x[i] * x[i];
  for (long i = 0; i + 1 < n; i++) s += a[i] * a[i + 1];
  free(raw);
  return s;
}
"""


def test_memory_that_is_aligned_by_hand() -> None:
    """Its shadow lies elsewhere, aligned like any; and the derivative can be differentiated again."""
    kernel = irgrad.load(ALIGNED, flags=["-mavx2", "-mfma"]).kernel("f", "f64(f64[n] x, i64 n)")
    for n in (1, 4, 5, 16, 33):
        x = np.linspace(0.5, 1.5, n)
        assert engine.check(kernel, x)
        square = np.pad(x**2, 1)
        beside = np.diag(4 * x[1:] * x[:-1], 1)
        want = np.diag(2 * (square[:-2] + square[2:])) + beside + beside.T
        np.testing.assert_allclose(engine.hessian(kernel)(x), want, rtol=1e-13)


COPIED_AS_INTS = """
#include <stdlib.h>
double f(const double *x, long n) {
  float *g = malloc(n * 4), *h = malloc(n * 4);
  for (long i = 0; i < n; i++) g[i] = (float)x[i];
  int *p = (int *)g, *q = (int *)h;
  for (long i = 0; i < n; i++) q[n - 1 - i] = p[i];
  double s = 0;
  for (long i = 0; i < n; i++) s += h[i] * (double)(i + 1);
  free(g); free(h);
  return s;
}
"""


@pytest.mark.parametrize("opt", [None, "O0", "O1", "O2", "O3"])
def test_floats_that_are_copied_as_vectors_of_integers(opt: str | None) -> None:
    kernel = irgrad.load(COPIED_AS_INTS, opt=opt).kernel("f", "f64(f64[n] x, i64 n)")
    for n in (7, 8, 12, 40):
        x, want = np.linspace(1, 2, n), np.arange(n, 0, -1.0)
        np.testing.assert_allclose(engine.grad(kernel)(x), want)
        np.testing.assert_allclose(engine.jvp(kernel, (x,), (x,))[1], want @ x, rtol=1e-6)


@pytest.mark.parametrize("opt", [None, "O1"])
def test_tags_in_the_low_bits_of_addresses(opt: str | None) -> None:
    """A tag moves the shadow as far as the address, also where LLVM has put addresses into vectors."""
    source = """
    #include <stdint.h>
    #include <stdlib.h>
    double f(const double *x, long n) {
      double *a = malloc(16 * n), s = 0; uintptr_t t[8];
      for (long i = 0; i < n; i++) {
        a[2 * i] = x[i]; a[2 * i + 1] = x[i] * x[i];
        t[i] = (uintptr_t)(a + 2 * i) | (i & 1);
      }
      for (long i = 0; i < n; i++) {
        double *p = (double *)(t[i] & ~(uintptr_t)7);
        s += t[i] & 1 ? p[1] * 2 : p[0] * x[0];
      }
      free(a);
      return s;
    }"""
    kernel = irgrad.load(source, opt=opt).kernel("f", "f64(f64[n] x, i64 n)")
    x = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4])
    want = np.where(np.arange(6) % 2, 4 * x, x[0])
    want[0] += x[::2].sum()
    np.testing.assert_allclose(engine.grad(kernel)(x), want, rtol=1e-15)
    np.testing.assert_allclose(engine.jvp(kernel, (x,), (x,))[1], want @ x, rtol=1e-15)


SIZES = """
#include <math.h>
#include <stdlib.h>
struct part { int id; double a[2]; float b; long n; };
struct whole { double a, c; struct part inner; float b; };
static void by_bytes(void *to, const void *from, size_t n) {
  char *t = to; const char *f = from;
  for (size_t i = 0; i < n; i++) t[i] = f[i];
}
double f(const double *x) {
  struct whole *w = calloc(3, sizeof *w);
  for (int i = 0; i < 2; i++) {
    w[i].a = w[i].c = x[0] * (i + 1); w[i].b = (float)x[1]; w[i].inner.id = i;
    w[i].inner.a[0] = sin(x[2]); w[i].inner.a[1] = x[3] * x[0]; w[i].inner.b = (float)(x[1] * i);
  }
  by_bytes(&w[2], &w[1], sizeof *w);
  w[2].inner.b *= w[1].inner.b;
  double s = 0;
  for (int i = 0; i < 3; i++)
    s += (i + 1) * (w[i].a * w[i].inner.a[0] + w[i].inner.a[1] * w[i].b + w[i].inner.b * w[i].inner.id);
  free(w);
  return s;
}
"""


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_adjoints_of_floats_of_two_sizes_in_one_vector_of_bytes(level: str) -> None:
    """What was copied is used again, so that two adjoints that are not zero meet, float by float."""
    kernel = irgrad.load(SIZES, language="c", opt=level).kernel("f", "f64(f64[4] x)")
    x, v = np.array([0.5, 1.25, 0.7, 0.9]), np.array([0.3, -0.2, 0.5, 0.1])
    found = engine.grad(kernel)(x)
    steps = [1e-2 * e for e in np.eye(4)]
    want = [(8 * (kernel(x + h) - kernel(x - h)) - kernel(x + 2 * h) + kernel(x - 2 * h)) / 0.12 for h in steps]
    np.testing.assert_allclose(found, want, rtol=1e-4)
    np.testing.assert_allclose(engine.jvp(kernel, (x,), (v,))[1], found @ v, rtol=1e-6)
    tangents = engine.jacfwd(kernel)(x)
    np.testing.assert_allclose(tangents, found, rtol=1e-6)


NUMBERS = """
define double @loss(ptr %x, i64 %n) {
  %m = call ptr @malloc(i64 64)
  %at = getelementptr i64, ptr %m, i64 %n
  %bits = ptrtoint ptr %x to i64
  store i64 %bits, ptr %at
  %first = getelementptr i8, ptr %m, i64 8
  %second = getelementptr i8, ptr %m, i64 16
  store i64 1, ptr %first, !tbaa !0
  store i64 2, ptr %second, !tbaa !0
  call void @g(ptr %m)
  %a = load i64, ptr %first, !tbaa !0
  %b = load i64, ptr %second, !tbaa !0
  %sum = add i64 %a, %b
  store i64 %sum, ptr %second, !tbaa !0
  %p = load ptr, ptr %at
  %v = load double, ptr %p, !tbaa !4
  %again = load i64, ptr %second, !tbaa !0
  %times = sitofp i64 %again to double
  %w = fmul double %v, %v
  %r = fmul double %w, %times
  ret double %r
}
define internal void @g(ptr %m) noinline {
  %first = getelementptr i8, ptr %m, i64 8
  %a = load i64, ptr %first, !tbaa !0
  %b = add i64 %a, 1
  store i64 %b, ptr %first, !tbaa !0
  CAST
  ret void
}
declare noalias ptr @malloc(i64)
!0 = !{!1, !1, i64 0}
!1 = !{!"long", !2, i64 0}
!2 = !{!"omnipotent char", !3, i64 0}
!3 = !{!"Simple C/C++ TBAA"}
!4 = !{!5, !5, i64 0}
!5 = !{!"double", !2, i64 0}
"""


def test_sums_of_what_the_source_calls_integers() -> None:
    """Where a pointer may be kept in the same memory, and no integer becomes one."""
    x = np.array([0.5, 0.25])
    kernel = irgrad.load(NUMBERS.replace("CAST", ""), language="ll").kernel("loss", "f64(f64[2] x, i64 n)")
    np.testing.assert_allclose(engine.grad(kernel)(x, 0), [4, 0])
    np.testing.assert_allclose(engine.jacfwd(kernel)(x, 0), [4, 0])
    cast = "%q = inttoptr i64 %b to ptr\n  store ptr %q, ptr %m"
    kernel = irgrad.load(NUMBERS.replace("CAST", cast), language="ll").kernel("loss", "f64(f64[2] x, i64 n)")
    with pytest.raises(irgrad.Unsupported, match="a pointer is computed from two pointers as integers"):
        engine.grad(kernel)(x, 3)
