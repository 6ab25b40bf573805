"""Pointers that are copied through vectors, wide integers, and pieces of an address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irgrad
from irgrad.engine import jacfwd, jacrev
from irgrad.rules.errors import Unsupported

SOURCE = """
#include <stdlib.h>
typedef MOVED moved __attribute__((vector_size(SIZE), aligned(8), may_alias));
struct two { double *p, *q; };
static void move(void *a, const void *b) {
  for (unsigned i = 0; i < 16 / sizeof(moved); i++) ((moved *)a)[i] = ((const moved *)b)[i];
}
double once(double *x) {
  double *w = malloc(24);
  w[0] = x[0] * 2; w[1] = x[1]; w[2] = x[2];
  struct two *a = malloc(16), *b = malloc(16);
  a->p = w; a->q = x;
  move(b, a);
  b->p[1] += b->q[0] * b->p[0];
  double r = b->p[1] * w[0] + w[1];
  free(w); free(a); free(b);
  return r;
}
double swapped(double *x, long n) {
  double w[3] = {x[0] * 2, x[1], x[2]}, s = 0;
  struct two a = {w, x}, b = {x, w}, c;
  for (int k = 0; k < n; k++) {
    move(&c, k % 2 ? &b : &a);
    w[k % 3] += c.p[1] * c.q[0];
    move(&a, &b);
    move(&b, &c);
    s += a.p[0] * b.q[2];
  }
  return s;
}
double number(double *x, long n) {
  struct { double *p; int k; } *a = malloc(16), *b = malloc(16);
  a->p = x; a->k = n; b->k = a->k;
  b->p = a->p;
  double r = b->p[b->k - 1] * b->k;
  free(a); free(b);
  return r;
}
"""
X = np.array([0.7, 1.3, -0.4])


def _module(moved: str, size: int) -> irgrad.Module:
    return irgrad.load(SOURCE.replace("MOVED", moved).replace("SIZE", str(size)), language="c", flags=["-O0"])


@pytest.mark.parametrize(("moved", "size"), [("char", 16), ("char", 8), ("int", 16), ("short", 16), ("long", 16)])
def test_vectors_carry_pointers(moved: str, size: int) -> None:
    lib = _module(moved, size)
    once, swapped = lib.kernel("once", "f64(f64[3] x)"), lib.kernel("swapped", "f64(f64[3] x, i64 n)")
    want = np.zeros((2, 3))
    for i, h in enumerate(np.eye(3) * 1e-6):
        want[0, i] = (once(X + h) - once(X - h)) / 2e-6
        want[1, i] = (swapped(X + h, 3) - swapped(X - h, 3)) / 2e-6
    for jacobian in (jacfwd, jacrev):
        for width in (1, 3):
            np.testing.assert_allclose(jacobian(once, width=width)(X), want[0], rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(jacobian(swapped, width=width)(X, 3), want[1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("moved", "size"), [("char", 1), ("short", 2), ("int", 4), ("float", 4)])
def test_pieces_of_a_straight_copy_are_joined(moved: str, size: int) -> None:
    once = _module(moved, size).kernel("once", "f64(f64[3] x)")
    want = [(once(X + h) - once(X - h)) / 2e-6 for h in np.eye(3) * 1e-6]
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(jacobian(once)(X), want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("name", "moved", "size"), [
    ("swapped", "char", 1), ("swapped", "short", 2), ("swapped", "int", 4),
])  # fmt: skip
def test_pieces_of_pointers_are_refused(name: str, moved: str, size: int) -> None:
    kernel = _module(moved, size).kernel(name, "f64(f64[3] x)" if name == "once" else "f64(f64[3] x, i64 n)")
    for jacobian in (jacfwd, jacrev):
        with pytest.raises(Unsupported, match="a pointer is copied in pieces") as caught:
            jacobian(kernel)(X, *([] if name == "once" else [3]))
        assert "memcpy" in caught.value.fix


PART_OF_A_VARIABLE = """
static struct { double a; double *p; } v;
static double other;
__attribute__((noinline)) static void touch(double *q, double by) { *q += by; }
double loss(const double *x, long n) {
  char *to = (char *)&v.p;
  unsigned long bits = (unsigned long)&v.a;
  v.a = x[0];
  to[0] = (char)bits;
  touch(&other, x[1]);
  for (int i = 1; i < 8; i++) to[i] = (char)(bits >> 8 * i);
  return v.p[0] * x[1] + other;
}
"""


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_pieces_of_the_address_of_a_variable_are_refused(level: str) -> None:
    """One of them is a constant, `ptrtoint (ptr @v to i8)`."""
    kernel = irgrad.load(PART_OF_A_VARIABLE, language="c", opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    for jacobian in (jacfwd, jacrev):
        with pytest.raises(Unsupported, match="a pointer is copied in pieces"):
            jacobian(kernel)(X)


def test_numbers_beside_pointers_are_no_pieces() -> None:
    kernel = _module("long", 16).kernel("number", "f64(f64[3] x, i64 n)")
    np.testing.assert_array_equal(jacrev(kernel)(X, 3), [0, 0, 3])


BESIDE = """
#include <stdlib.h>
typedef struct { union { double *p; unsigned char length; char text[8]; } u; double *rest; } entry;
static char *append(char *to, const double *from, long n) {
  for (long i = 0; i < n; i++) *to++ = (char)('0' + i); return to; }
double flagged(double *x, long n) {
  entry *e = malloc(n * sizeof *e);
  double s = 0;
  for (long i = 0; i < n; i++) {
    e[i].rest = x + i;
    if (i % 2) { char *end = append(e[i].u.text + 1, x, i); e[i].u.length = (unsigned char)((end - e[i].u.text) << 1); }
    else e[i].u.p = x;
  }
  for (long i = 0; i < n; i++) s += i % 2 ? e[i].rest[0] * (e[i].u.length >> 1) : e[i].u.p[i] * e[i].rest[0];
  free(e);
  return s;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_lengths_and_flags_in_the_place_of_a_pointer_are_no_pieces(level: str) -> None:
    kernel = irgrad.load(BESIDE, language="c", flags=[level]).kernel("flagged", "f64(f64[n] x, i64 n)")
    x = np.array([0.7, 1.3, -0.4, 0.9])
    for jacobian in (jacfwd, jacrev):
        np.testing.assert_allclose(jacobian(kernel)(x), [1.4, 2, -0.8, 4], rtol=1e-14)

ACROSS = """
#include <stdlib.h>
typedef char eight __attribute__((vector_size(8), aligned(2), may_alias));
struct two { double *p, *q; };
double f(double *x, long n) {
  double *w = malloc(16);
  w[0] = x[0] * 2; w[1] = x[1];
  struct two *a = malloc(sizeof *a), *b = malloc(sizeof *b);
  a->p = w; a->q = w + 1;
  char *to = (char *)b, *from = (char *)a;
  for (int i = 0; i < 6; i++) to[i] = from[i];
  *(eight *)(to + 6) = *(eight *)(from + 6);
  for (int i = 14; i < 16; i++) to[i] = from[i];
  double r = b->p[0] * b->q[0];
  free(w); free(a); free(b);
  return r;
}
"""


WIDE = """
define double @f(ptr %x, i64 %n) {
  %w = call noalias ptr @malloc(i64 32)
  %v = load double, ptr %x
  %d = fmul double %v, %v
  %w1 = getelementptr i8, ptr %w, i64 8
  store double %d, ptr %w1
  %a = call noalias ptr @malloc(i64 24)
  %b = call noalias ptr @malloc(i64 24)
  store ptr %w1, ptr %a
  %s = ptrtoint ptr %w1 to i64
  %t = trunc i64 %s to i32
  store i32 %t, ptr %b
  %h = icmp sgt i64 %n, 1
  br i1 %h, label %more, label %out
more:
  %a4 = getelementptr i8, ptr %a, i64 4
  %b4 = getelementptr i8, ptr %b, i64 4
  %m = load <16 x i8>, ptr %a4, align 1
  store <16 x i8> %m, ptr %b4, align 1
  br label %out
out:
  %p = load ptr, ptr %b
  %r = load double, ptr %p
  ret double %r
}
declare noalias ptr @malloc(i64)
"""


@pytest.mark.parametrize("derivative", [jacfwd, jacrev])
def test_the_end_of_a_pointer_in_a_wide_store(derivative: Callable[..., Any]) -> None:
    kernel = irgrad.load(WIDE, language="ll").kernel("f", "f64(f64[2] x, i64 n)")
    with pytest.raises(Unsupported, match="a pointer is copied in pieces"):
        derivative(kernel)(np.array([3.0, 5.0]), 2)


@pytest.mark.parametrize("derivative", [jacfwd, jacrev])
@pytest.mark.parametrize("level", [None, "O0", "O2"])
def test_a_load_that_ends_inside_of_a_pointer(level: str | None, derivative: Callable[..., Any]) -> None:
    kernel = irgrad.load(ACROSS, opt=level).kernel("f", "f64(f64[2] x, i64 n)")
    if level == "O2":  # one copy of six bytes by then, the rest of a pointer in a store of its own
        if derivative is jacfwd:
            np.testing.assert_allclose(derivative(kernel)(np.array([3.0, 5.0]), 2), [10, 6])
        else:
            with pytest.raises(Unsupported, match="the bytes that are moved here are used as `ptr`"):
                derivative(kernel)(np.array([3.0, 5.0]), 2)
        return
    with pytest.raises(Unsupported, match="a pointer is copied in pieces"):
        derivative(kernel)(np.array([3.0, 5.0]), 2)
