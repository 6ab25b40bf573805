"""Pointers into a block that moves: relocated by the distance of two blocks (refused), or from their place in it."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine import grad, jvp
from irgrad.rules.errors import KernelError, Unsupported

SOURCE = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef struct node { struct node *next; double v; int id; } node;
typedef struct { node *a; long len, cap; } list;
static void grow(list *l) {
  node *old = l->a;
  l->cap *= 2;
  l->a = realloc(l->a, l->cap * 50 * sizeof *l->a);
  for (long i = 0; i < l->len; i++)
    if (l->a[i].next) l->a[i].next = (node *)(RELOCATED((char *)l->a[i].next, (char *)l->a, (char *)old));
}
double linked(const double *x, long n) {
  list l = {malloc(sizeof(node)), 0, 1};
  for (long i = 0; i < n; i++) {
    if (l.len == l.cap) grow(&l);
    l.a[i].v = x[i]; l.a[i].id = (int)i; l.a[i].next = 0; l.len++;
    if (i) l.a[i - 1].next = &l.a[i];
  }
  double s = 0; int k = 1;
  for (node *q = l.a; q; q = q->next) { q->v = q->v * q->v; s += sin(q->v) * k++; }
  free(l.a);
  return s;
}
double rows(const double *x, long n) {
  double *block = malloc(n * sizeof *block), **p = malloc(n * sizeof *p);
  for (long i = 0; i < n; i++) { block[i] = x[i] * x[i]; p[i] = block + (n - 1 - i); }
  double *big = malloc(2 * n * sizeof *big);
  memcpy(big, block, n * sizeof *big);
  for (long i = 0; i < n; i++) p[i] = (double *)(RELOCATED((char *)p[i], (char *)big, (char *)block));
  free(block);
  double s = 0;
  for (long i = 0; i < n; i++) { *p[i] = sin(*p[i]); s += *p[i] * (i + 1); }
  free(big); free(p);
  return s;
}
"""
KEPT = """
#include <stdint.h>
#include <stdlib.h>
struct node { double v; INTEGER next; };
double kept(const double *x, long n) {
  struct node **all = malloc(n * sizeof *all);
  for (long i = 0; i < n; i++) { all[i] = calloc(1, sizeof **all + i % 3 * 1000); all[i]->v = x[i]; }
  for (long i = 0; i + 1 < n; i++) all[i]->next = (INTEGER)all[i + 1] - (INTEGER)all[i];
  double s = 0;
  for (struct node *p = all[0];; p = (struct node *)((INTEGER)p + p->next)) { s = s * s + p->v; if (!p->next) break; }
  return s;
}
"""
ENDS = """
#include <cstddef>
#include <vector>
struct part { double *first; std::ptrdiff_t bytes; };
extern "C" double ends(const double *x, long n) {
  std::vector<std::vector<double>> rows;
  for (long i = 0; i < n; i++) {
    rows.emplace_back();
    for (long j = 0; j <= i; j++) rows.back().push_back(x[i] * x[j]);
  }
  std::vector<part> parts;
  for (auto &row : rows) parts.push_back({row.data(), (char *)(row.data() + row.size()) - (char *)row.data()});
  double s = 0;
  for (auto &p : parts) for (double *q = p.first; (char *)q < (char *)p.first + p.bytes; q++) s += *q * *q;
  return s;
}
"""
FRONT = """
#include <deque>
#include <cmath>
extern "C" double ends(const double *x, long n) {
  std::deque<double> d;
  for (long i = 0; i < n; i++) { if (i % 2) d.push_front(x[i] * x[i]); else d.push_back(x[i]); }
  for (int k = 0; k < 1100; k++) d.push_front(d.back() * 0.999 + 0.001 * d[1]);
  while (d.size() > 1) { double l = d.front(); d.pop_front(); d.back() = d.back() * 0.99 + 0.01 * std::sin(l); }
  return d[0];
}
"""
COPIED = """
#include <deque>
extern "C" double ends(const double *x, long n) {
  std::deque<double> d(x, x + n), e(600, x[1]);
  d.push_back(x[0] * x[1]); d.push_front(d[2]); e.resize(3); e.push_front(x[2]); d.resize(7);
  double s = 0;
  for (size_t i = 0; i < d.size(); i++) s = 0.5 * s + d[i] * d[i] * e[i % e.size()];
  return s;
}
"""
X = np.array([0.5, 0.3, 1.2, 0.7, 0.9])
BY_DISTANCE, FROM_BASE = "-DRELOCATED(p,new,old)=p+(new-old)", "-DRELOCATED(p,new,old)=new+(p-old)"


@pytest.mark.parametrize("name", ["linked", "rows"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_distance_of_two_blocks_is_refused(name: str, level: str) -> None:
    kernel = irgrad.load(SOURCE, language="c", flags=[level, BY_DISTANCE]).kernel(name, "f64(f64[n] x, i64 n)")
    with pytest.raises(Unsupported, match="moves by the distance of two allocations") as found:
        grad(kernel)(X)
    assert "new + (p - old)" in str(found.value)
    with pytest.raises(Unsupported, match="moves by the distance of two allocations"):
        jvp(kernel, (X,), (X,))


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_from_the_base_of_the_block(level: str) -> None:
    lib, weights = irgrad.load(SOURCE, language="c", flags=[level, FROM_BASE]), np.arange(1, 6)
    linked, rows = (lib.kernel(name, "f64(f64[n] x, i64 n)") for name in ("linked", "rows"))
    slope = 2 * X * np.cos(X * X)
    np.testing.assert_allclose(grad(linked)(X), slope * weights, rtol=1e-13)
    np.testing.assert_allclose(grad(rows)(X), slope * weights[::-1], rtol=1e-13)
    np.testing.assert_allclose(jvp(linked, (X,), (X,))[1], (slope * weights) @ X, rtol=1e-13)


@pytest.mark.parametrize("integer", ["uintptr_t", "char *"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_distances_kept_in_memory(integer: str, level: str) -> None:
    """Each block has a shadow of its own, so that the distance of two leads from one shadow to nowhere: known
    of numbers that become addresses, else seen where it is computed."""
    source = KEPT.replace("(INTEGER)", f"({integer})").replace("INTEGER", "long")
    kernel = irgrad.load(source, language="c", flags=[level]).kernel("kept", "f64(f64[n] x, i64 n)")
    for call in (lambda: grad(kernel)(X), lambda: jvp(kernel, (X,), (X,))):
        with pytest.raises(Unsupported if integer == "uintptr_t" else KernelError,
                           match="moves by the distance of two allocations"):  # fmt: skip
            call()


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("source", [ENDS, *(pytest.param(text, marks=pytest.mark.long) for text in (COPIED, FRONT))])
def test_sizes_and_lengths_are_no_distances(level: str, source: str) -> None:
    """The length of a block beside its address; a deque, whose start depends on how long its map is,
    and whose size grows by how far a pointer walked in a block."""
    kernel = irgrad.load(source, language="c++", flags=[level]).kernel("ends", "f64(f64[n] x, i64 n)")
    h = 1e-6
    want = [(kernel(X + h * e) - kernel(X - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(grad(kernel)(X), want, rtol=1e-7)
    np.testing.assert_allclose(jvp(kernel, (X,), (X,))[1], np.dot(want, X), rtol=1e-7)
