"""Programs whose derivative would be a guess are refused, with the reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from handwritten.made import OUT, Made, asked, gradient, make

import irgrad
from irgrad import engine
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import derive
from irgrad.rules.errors import Unsupported

UNION = """
#include <stdlib.h>
union cell { double d; const double *p; };
struct tagged { int tag; union cell u; };
double f(const double *x, const int *k) {
  struct tagged *a = malloc(3 * sizeof *a); double s = 0;
  for (int i = 0; i < 3; i++) { a[i].tag = k[i]; if (k[i]) a[i].u.d = x[i] * x[i]; else a[i].u.p = x + i; }
  for (int i = 0; i < 3; i++) { struct tagged t = a[2 - i]; s += t.tag ? t.u.d : *t.u.p; }
  free(a);
  return s;
}
"""
BITS = """
double f(const double *x, const int *k) {
  long b; double y; __builtin_memcpy(&b, x, 8); b = b / 2 + k[0]; __builtin_memcpy(&y, &b, 8); return y * x[1];
}
"""

FROM_A_NUMBER = """
define void @f(ptr %x, ptr %where, ptr %o) {
  %number = load i64, ptr %where, align 8
  %scaled = mul i64 %number, 8
  %p = inttoptr i64 %scaled to ptr
  %a = load double, ptr %x, align 8
  %sq = fmul double %a, %a
  store double %sq, ptr %p, align 8
  %again = load double, ptr %p, align 8
  %r = fmul double %again, %a
  store double %r, ptr %o, align 8
  ret void
}
"""


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    ("source", "language", "message"),
    [
        (BITS, "c", r"(?s)integer arithmetic on the bits of an active float.*function of its own with a rule"),
    ],
)
def test_refused(source: str, language: str, message: str, mode: str) -> None:
    kernel = irgrad.load(source, language=language).kernel("f", "f64(f64[3] x, i32[3] k)")
    x, k = np.array([0.5, 1.5, -0.5]), np.array([1, 0, 1], np.int32)
    with pytest.raises(irgrad.IRGradError, match=message):
        if mode == "forward":
            engine.jvp(kernel, [x, k], [x, None])
        else:
            engine.grad(kernel, wrt="x")(x, k)


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_the_union_of_a_number_and_a_pointer(level: str) -> None:
    kernel = irgrad.load(UNION, opt=level).kernel("f", "f64(f64[3] x, i32[3] k)")
    x, k = np.array([0.5, 1.5, -0.5]), np.array([1, 0, 1], np.int32)
    want = np.array([1.0, 1.0, -1.0])
    np.testing.assert_allclose(engine.grad(kernel, wrt="x")(x, k), want)
    np.testing.assert_allclose(engine.jvp(kernel, [x, k], [x, None])[1], want @ x)
    np.testing.assert_allclose(engine.hvp(kernel, (x, k), np.ones(3), wrt="x"), [2.0, 0.0, 2.0])


def test_the_union_of_numbers_is_fine() -> None:
    source = UNION.replace("const double *p;", "long p;").replace("x + i", "i").replace("*t.u.p", "t.u.p")
    kernel = irgrad.load(source).kernel("f", "f64(f64[3] x, i32[3] k)")
    x, k = np.array([0.5, 1.5, -0.5]), np.array([1, 0, 1], np.int32)
    np.testing.assert_allclose(engine.grad(kernel, wrt="x")(x, k), [1.0, 0.0, -1.0])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_pointers_made_of_numbers(mode: str) -> None:
    with pytest.raises(irgrad.Unsupported, match=r"pointer of unknown origin\n +in +@f(.|\n)*because(.|\n)*to fix"):
        make(FROM_A_NUMBER, "f", mode, ["dup", "const", "dup"])


def test_inactive_memory_may_come_from_anywhere() -> None:
    """The same kind of access with data that no derivative depends on."""
    source = "void f(double *x, double **table, double *o) { *o = x[0] * table[1][0]; }"
    weights = np.array([3.0, 4.0])
    table = np.array([0, weights[1:].ctypes.data])
    (dx, _), _made = gradient(source, "f", "dcd", np.array([2.0]), table, OUT)
    assert dx.tolist() == [4.0]


GIVEN = """
#include <stdlib.h>
#include <string.h>
typedef union { double d; const double *p; } cell;
double f(const double *x, cell *c, int k) {
  for (int i = 0; i < 3; i++) if (i == k) c[i].d = x[i] * x[i]; else c[i].p = x + i;
  long word; double s = 0;
  for (int i = 0; i < 3; i++) { memcpy(&word, c + (i + k) % 3, 8); memcpy(c + i, &word, 8); }
  for (int i = 0; i < 3; i++) s += i == (k * 2) % 3 ? c[i].d : *c[i].p;
  return s;
}
"""


def test_bytes_of_the_caller_that_are_a_float_or_a_pointer_go_forwards_only() -> None:
    """Nobody knows what the shadow of such memory holds when the derivative begins."""
    kernel = irgrad.load(GIVEN).kernel("f", "f64(f64[3] x, inout f64[3] c, i32 k)")
    with pytest.raises(irgrad.Unsupported, match=r"are used as(.|\n)*forward mode"):
        engine.grad(kernel, wrt="x")(np.ones(3), np.ones(3), 1)


COPIED = """
#include <stdlib.h>
typedef double v2 __attribute__((vector_size(16), may_alias));
struct cell { double d; const double *p; };
double f(const double *x, const int *k) {
  struct cell *a = malloc(3 * sizeof *a), *b = malloc(3 * sizeof *b); double s = 0;
  for (int i = 0; i < 3; i++) { a[i].d = x[i] * x[i]; a[i].p = x + (i + 1) % 3; }
  for (int i = 0; i < 3; i++) *(v2 *)&b[k[i]] = *(v2 *)&a[i];
  for (int i = 0; i < 3; i++) s += b[i].d * *b[i].p;
  free(a); free(b);
  return s;
}
"""
BEHIND_BITS = """
define void @f(ptr %x, ptr %k, ptr %o) {
  %a = alloca double, align 8
  store ptr %x, ptr %a, align 8
  %n = load i32, ptr %k, align 4
  %odd = trunc i32 %n to i1
  br i1 %odd, label %left, label %right
left:
  %l = load double, ptr %a, align 8
  br label %join
right:
  %r = load double, ptr %x, align 8
  br label %join
join:
  %v = phi double [ %l, %left ], [ %r, %right ]
  %b = bitcast double %v to i64
  %p = inttoptr i64 %b to ptr
  %y = load double, ptr %p, align 8
  %z = fmul double %y, %y
  store double %z, ptr %o, align 8
  ret void
}
"""


def test_pointers_that_were_copied_as_floats() -> None:
    """The analysis of pointers does not follow floats: without the refusal the derivative would be zero."""
    kernel = irgrad.load(COPIED).kernel("f", "f64(f64[3] x, i32[3] k)")
    x, k = np.array([0.5, 1.5, -0.5]), np.array([1, 2, 0], np.int32)
    with pytest.raises(irgrad.Unsupported, match=r"are used as(.|\n)*to fix +keep floats"):
        engine.grad(kernel, wrt="x")(x, k)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_pointers_made_of_the_bits_of_a_float(mode: str) -> None:
    """A pointer that is loaded as a float is one; what a caller's memory holds, nobody knows."""
    module = read(BEHIND_BITS, roots=["f"])
    made = Made(module, derive(module, asked("f", mode, ["dup", "const", "dup"])))
    dx, do = (np.array([1.0 if mode == kind else 0.0]) for kind in ("forward", "reverse"))
    made(np.array([0.7]), dx, np.array([1], np.int32), np.zeros(1), do)
    np.testing.assert_allclose(do if mode == "forward" else dx, [1.4])
    module = read(BEHIND_BITS.replace("load double, ptr %a,", "load double, ptr %o,"), roots=["f"])
    with pytest.raises(irgrad.Unsupported, match=r"are used as"):
        derive(module, asked("f", mode, ["dup", "const", "dup"]))


ADDRESS = """
declare noalias ptr @malloc(i64)
declare void @free(ptr)
define void @f(ptr noalias %x, ptr noalias %k, ptr noalias %o) {
  %box = call noalias ptr @malloc(i64 16)
  %address = ptrtoint ptr %box to i64
  %bits = bitcast i64 %address to double
  %a = load double, ptr %x, align 8
  %n = load i32, ptr %k, align 4
  %odd = trunc i32 %n to i1
  br i1 %odd, label %left, label %right
left:
  br label %join
right:
  %square = fmul double %a, %a
  br label %join
join:
  %v = phi double [ %bits, %left ], [ %square, %right ]
  store double %v, ptr %box, align 8
  %kept = load double, ptr %box, align 8
  %z = fmul double %kept, %a
  store double %z, ptr %o, align 8
  LAST
  call void @free(ptr %box)
  ret void
}
"""


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_bits_of_an_address_are_a_number(mode: str) -> None:
    """A variant that is read as what it does not hold, where the optimiser saw what it holds."""
    made = make(ADDRESS.replace("LAST", ""), "f", mode, ["dup", "const", "dup"])
    x, dx, o, do = np.array([3.0]), np.array([1.0 if mode == "forward" else 0.0]), np.zeros(1), np.array([1.0])
    made(x, dx, np.array([0], np.int32), o, do)
    assert (do if mode == "forward" else dx).tolist() == [27.0]
    dx[:], do[:] = (1.0, 0.0) if mode == "forward" else (0.0, 1.0)
    made(x, dx, np.array([1], np.int32), o, do)
    assert abs((do if mode == "forward" else dx)[0] - o[0] / 3) <= 1e-15 * abs(o[0])


@pytest.mark.parametrize("last", ["%p = load ptr, ptr %box, align 8\n store ptr %p, ptr %o, align 8",
                                  "%w = bitcast double %v to i64\n %p = inttoptr i64 %w to ptr\n"
                                  "store double %a, ptr %p, align 8"])  # fmt: skip
def test_the_bits_of_an_address_that_become_one_again(last: str) -> None:
    module = read(ADDRESS.replace("LAST", last), roots=["f"])
    with pytest.raises(irgrad.Unsupported, match=r"are used as"):
        derive(module, asked("f", "reverse", ["dup", "const", "dup"]))


TAGGED = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
enum { NUMBER, TEXT, LIST };
struct list;
typedef struct { union { double number; const char *text; struct list *list; } as; long tag; } value;
typedef struct list { long count, room; value *items; } list;
static value number(double x) { value v; v.as.number = x; v.tag = NUMBER; return v; }
static value text(const char *t) { value v; v.as.text = t; v.tag = TEXT; return v; }
static value boxed(list *l) { value v; v.as.list = l; v.tag = LIST; return v; }
__attribute__((noinline)) static void push(list *l, value v) {
  if (l->count == l->room) {
    long room = l->room ? 2 * l->room : 2;
    value *items = malloc(room * sizeof *items);
    for (long i = 0; i < l->count; i++) items[i] = l->items[i];
    free(l->items);
    l->items = items;
    l->room = room;
  }
  l->items[l->count++] = v;
}
__attribute__((noinline)) static value at(const list *l, value key) {
  long i = (long)key.as.number;
  return l->items[i];
}
__attribute__((noinline)) static double sum(value v) {
  switch (v.tag) {
    case NUMBER: return sin(v.as.number);
    case TEXT: return (double)strlen(v.as.text);
    default: {
      double s = 0;
      for (long i = 0; i < v.as.list->count; i++) s += (double)(i + 1) * sum(v.as.list->items[i]);
      return s;
    }
  }
}
double loss(const double *x, long n) {
  list inner = {0}, outer = {0};
  for (long i = 0; i < n; i++) {
    push(&inner, number(x[i] * x[i]));
    if (i % 2) push(&inner, text("abc"));
  }
  push(&outer, number(exp(x[0])));
  push(&outer, boxed(&inner));
  push(&outer, at(&inner, number(2)));
  push(&outer, at(&inner, number(0)));
  double s = sum(boxed(&outer));
  free(inner.items);
  free(outer.items);
  return s;
}
"""


@pytest.mark.parametrize("level", [None, "O0", "O2"])
def test_tagged_values_by_value(level: str | None) -> None:
    """Every access of the values is one of an integer: no float, and no pointer, is seen in their memory."""
    kernel = irgrad.load(TAGGED, language="c", opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    x, v = np.array([0.5, 0.3, 1.2, 0.7]), np.array([0.3, -0.2, 0.5, 0.1])
    with pytest.raises(Unsupported, match="are used as"):
        engine.grad(kernel)(x)
    step = 1e-4
    want = (8 * (kernel(x + step * v) - kernel(x - step * v)) - kernel(x + 2 * step * v) + kernel(x - 2 * step * v))
    np.testing.assert_allclose(engine.jvp(kernel, (x,), (v,))[1], want / (12 * step), rtol=1e-8)


HIDDEN = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define N __attribute__((noinline)) static
typedef struct { union { struct { float a, b; } f; void *p; } u; } pair;
N void putp(pair *a, long i, pair p) { a[i] = p; }
N float sump(pair p) { return p.u.f.a * p.u.f.b; }
double pairs(const double *x, long n) {
  pair *a = malloc(8 * sizeof *a);
  for (long i = 0; i < n; i++) { pair p; p.u.f.a = (float)x[i]; p.u.f.b = (float)(x[i] * x[0]); putp(a, i, p); }
  pair q; q.u.p = a; putp(a, n, q);
  double r = 0;
  for (long i = 0; i < n; i++) r += sump(a[i]);
  r += a[n].u.p == a;
  free(a);
  return r;
}
N void split(double d, unsigned *lo, unsigned *hi) { unsigned w[2]; memcpy(w, &d, 8); *lo = w[0]; *hi = w[1]; }
N double join(unsigned lo, unsigned hi) { unsigned w[2] = {lo, hi}; double d; memcpy(&d, w, 8); return d; }
double halves(const double *x, long n) {
  unsigned *lo = malloc(4 * n), *hi = malloc(4 * n);
  for (long i = 0; i < n; i++) split(cos(x[i]), &lo[i], &hi[i]);
  double r = 0;
  for (long i = 0; i < n; i++) r += join(lo[i], hi[i]) * (double)(i + 1);
  free(lo); free(hi);
  return r;
}
"""


@pytest.mark.parametrize("level", [None, "O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("name", ["pairs", "halves"])
def test_floats_that_hide(name: str, level: str | None) -> None:
    """Two floats in what the compiler passes as a pointer; the halves of a double in two arrays of integers."""
    kernel = irgrad.load(HIDDEN, language="c", opt=level).kernel(name, "f64(f64[n] x, i64 n)")
    x = np.array([0.5, 0.3, 1.2, 0.7])
    for derivative in (lambda: engine.grad(kernel)(x), lambda: engine.jvp(kernel, (x,), (x,))):
        with pytest.raises(Unsupported, match=r"are used as|makes a float again"):
            derivative()


TWO_USES = """
#include <stdint.h>
#include <string.h>
typedef struct { uint64_t tag, word; } cell;
static __attribute__((noinline)) cell of_number(double d) {
  cell c = {1, 0};
  memcpy(&c.word, &d, 8);
  return c;
}
static __attribute__((noinline)) cell of_place(double *p) { return (cell){2, (uint64_t)p}; }
static __attribute__((noinline)) double value(cell c) {
  double d = 0;
  if (c.tag == 2) return *(double *)c.word;
  memcpy(&d, &c.word, 8);
  return d;
}
double f(const double *x, long n) {
  double square = x[0] * x[0], sum = 0;
  for (long i = 0; i < n; i++) sum += value(i % 2 ? of_number(x[i]) : of_place(&square));
  return sum;
}
"""


def test_both_uses_are_named_with_their_lines(tmp_path: Path) -> None:
    source = tmp_path / "cells.c"
    source.write_text(TWO_USES)
    kernel = irgrad.load(source).kernel("f", "f64(f64[n] x, i64 n)")
    with pytest.raises(irgrad.Unsupported, match=r"`double` \(\S*cells.c:7:\d+\) and as `ptr` \(\S*cells.c:10:"):
        irgrad.engine.grad(kernel)(np.array([0.5, 2.0, 3.0]))
