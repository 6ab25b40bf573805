"""Integers that may be addresses by the points-to sets, and are numbers: distances, unless added to an address."""

from __future__ import annotations

import numpy as np
import pytest
from analysed import facts_of, named

import irgrad as ig
from irgrad.engine.analyses.activity.numbers import Numbers
from irgrad.rules.errors import Unsupported

SPANS = r"""
#include <stdint.h>
#include <stdlib.h>
struct span { double *first; long bytes; };
__attribute__((noinline)) static struct span *make(double *first, double *last) {
  struct span *s = malloc(sizeof *s); s->first = first; s->bytes = (char *)last - (char *)first; return s;
}
double spans(double *x, long n) {
  struct span *a = make(x, x + n - 1), *b = make(x + 1, x + n), c = *b;
  double s = 0;
  for (long i = 0; i * 8 < a->bytes; i++) s = 0.5 * s + a->first[i] * c.first[i];
  for (double *p = c.first; (char *)p < (char *)c.first + c.bytes; p++) s = 0.5 * s + *p * *p * s;
  free(a); free(b); return s;
}
struct node { double v; uintptr_t next; };
double relative(double *x, long n) {
  struct node *head = 0;
  for (long i = 0; i < n; i++) {
    struct node *p = malloc(sizeof *p + i % 3 * 1000);
    p->v = x[i]; p->next = head ? (uintptr_t)head - (uintptr_t)p : 0; head = p;
  }
  double s = 0;
  for (struct node *p = head;; p = (struct node *)((uintptr_t)p + p->next)) { s = s * s + p->v; if (!p->next) break; }
  return s;
}
double copied(double *x, long n) {
  struct node a = {x[0], 0}, b = {x[1], 0}, c[2];
  a.next = (uintptr_t)&b - (uintptr_t)&a;
  for (long i = 0; i < n; i++) c[i & 1].next = a.next;
  return ((struct node *)((uintptr_t)&a + c[0].next))->v * a.v;
}
"""


def test_a_distance_beside_an_address_is_a_number() -> None:
    kernel = ig.load(SPANS, language="c").kernel("spans", "f64(f64[n] x, i64 n)")
    x, h = np.array([0.5, -0.3, 1.2, 0.7]), 1e-6
    want = [(kernel(x + h * e) - kernel(x - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(ig.engine.grad(kernel)(x), want, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ig.engine.jacfwd(kernel)(x), want, rtol=1e-7, atol=1e-8)
    gradient = ig.engine.grad(kernel)
    second = [(gradient(x + h * e) - gradient(x - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(ig.engine.hessian(kernel)(x), second, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["relative", "copied"])
def test_a_distance_that_is_added_to_an_address_is_not(name: str) -> None:
    """Shadows do not lie as far apart as what they belong to."""
    kernel = ig.load(SPANS, language="c", opt="O0").kernel(name, "f64(f64[n] x, i64 n)")
    with pytest.raises(Unsupported, match="by the distance of two allocations"):
        ig.engine.grad(kernel)(np.array([0.5, -0.3, 1.2, 0.7]))


MOVES = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %out) {
entry:
  %from = ptrtoint ptr %x to i64
  %to = ptrtoint ptr %y to i64
  %apart = sub i64 %to, %from
  store ptr %x, ptr %a
  %place = getelementptr i8, ptr %a, i64 8
  store i64 %apart, ptr %place
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 16, i1 false)
  %copy = getelementptr i8, ptr %b, i64 8
  %loaded = load i64, ptr %copy
  %more = add i64 %loaded, 8
  store ptr %x, ptr %c
  %last = getelementptr i8, ptr %c, i64 8
  store i64 %more, ptr %last
  %again = load i64, ptr %last
  %less = mul i64 %again, 2
  %q = getelementptr i8, ptr %x, i64 %less
  %v = load double, ptr %q
  store double %v, ptr %out
  ret void
}
"""


def test_distances_are_followed_through_memory() -> None:
    facts = facts_of(MOVES, "f", {0, 1, 5})
    numbers = Numbers(facts.pointers, facts.types)
    held = [numbers.distances >> facts.pointers.object_of[arg].index & 1 for arg in facts.root.args]
    assert held == [0, 0, 1, 1, 1, 0]
    assert not any(numbers.computed(named(facts.root, name)) for name in ("apart", "loaded", "more", "again"))
    assert {value for value, _ in numbers.measured} == {named(facts.root, name) for name in ("apart", "more")}
