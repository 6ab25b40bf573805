"""Words that are a float here and a pointer there, moved as words: reverse mode asks the shadow which they are."""

from __future__ import annotations

import numpy as np
import pytest
from handwritten.made import OUT, gradient

import irgrad as ig
from irgrad.engine.enzyme.lower import lower

CLOSURES = """
#include <cmath>
#include <functional>
#include <vector>
extern "C" double f(double x) {
  std::vector<std::function<double(double)>> all;
  double a = x * x, b = std::sin(x), c = 2 * x;
  all.push_back([a](double y) { return a * y; });
  all.push_back([&b](double y) { return b + y * y; });
  all.push_back([a, c](double y) { return a * y + c; });
  std::function<double(double)> first = all[0];
  all.push_back([&](double y) { return first(y) * y; });
  double y = x;
  for (auto &g : all) y = g(y);
  return y;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("level", ["O2", pytest.param("O0", marks=pytest.mark.slow),
                                   pytest.param("O1", marks=pytest.mark.slow),
                                   pytest.param("O3", marks=pytest.mark.slow)])  # fmt: skip
def test_closures_of_different_shapes_in_one_vector(level: str) -> None:
    kernel = ig.load(CLOSURES, language="c++", opt=level).kernel("f")
    x, h = 0.7, 1e-4
    want = (kernel(x - 2 * h) - 8 * kernel(x - h) + 8 * kernel(x + h) - kernel(x + 2 * h)) / (12 * h)
    got = ig.engine.grad(kernel)(x)
    assert got == pytest.approx(want, rel=1e-9)
    assert got == pytest.approx(ig.engine.jvp(kernel, (x,), (1.0,))[1], rel=1e-14)


WORDS = """
typedef struct {{ long tag; union {{ {kind} d; double *p; }} u; }} cell;
static NOINLINE double get(cell *c) {{ return c->tag ? *c->u.p : c->u.d; }}
static NOINLINE void put(cell *c, double d) {{ c->tag = 0; c->u.d = d; }}
static NOINLINE void lead(cell *c, double *p) {{ c->tag = 1; c->u.p = p; }}
static NOINLINE void hand(cell *to, cell *from) {{ {move} }}
void f(double *x, double *o) {{
  double a = x[0] * x[0], s = 0;
  cell *c = malloc(4 * sizeof *c);
  for (int i = 0; i < 12; i++) {{
    if (i % 3 == 1) lead(c + i % 2, &a); else put(c + i % 2, 3 * x[1] * i);
    hand(c + 2, c + i % 2);
    hand(c + 3, c + 2);
    s += get(c + 3) * x[0] + get(c + i % 2) * i;
  }}
  free(c);
  *o = s;
}}
"""
MOVES = {
    "word": "long w; to->tag = from->tag; memcpy(&w, &from->u, 8); memcpy(&to->u, &w, 8);",
    "struct": "*to = *from;",
    "several": "memmove(to, from, (size_t)(from->tag + 2 - from->tag) * 8);",
    "none": "if (from->tag) lead(to, from->u.p); else put(to, from->u.d);",
}


@pytest.mark.parametrize(("kind", "move"), [*(("double", move) for move in MOVES), ("float", "none")])
def test_words_that_change_their_sort(kind: str, move: str) -> None:
    """Floats after pointers and pointers after floats in the same place, copied by words, structs, and bytes."""
    x = np.array([1.25, 0.75])
    (dx, _), _made = gradient(WORDS.format(kind=kind, move=MOVES[move]), "f", "dd", x, OUT)
    i = np.arange(12)
    leads, puts = i[i % 3 == 1], i[i % 3 != 1]
    # s = sum a (x0 + i) over leads + 3 x1 i (x0 + i) over puts
    want = [(2 * x[0] * (x[0] + leads) + x[0] ** 2).sum() + (3 * x[1] * puts).sum(), (3 * puts * (x[0] + puts)).sum()]
    np.testing.assert_allclose(dx, want, rtol=1e-14 if kind == "double" else 1e-6)


@pytest.mark.parametrize("move", ["word", "struct", "several"])
def test_halves_of_words_are_refused(move: str) -> None:
    """A float that is stored over a part of a pointer leaves the rest of it behind."""
    with pytest.raises(ig.Unsupported, match=r"are used as"):
        gradient(WORDS.format(kind="float", move=MOVES[move]), "f", "dd", np.ones(2), OUT)


@pytest.mark.parametrize("shift", [-1, 1])
def test_rows_of_words_that_overlap(shift: int) -> None:
    source = """
    typedef union { double d; double *p; } cell;
    static NOINLINE double get(cell *c, int lead) { return lead ? *c->p : c->d; }
    void f(double *x, long *k, double *o) {
      double a = x[0] * x[1], s = 0;
      cell *c = malloc(8 * sizeof *c);
      for (int i = 0; i < 8; i++) if (i % 3) c[i].d = x[0] * i; else c[i].p = &a;
      memmove(c + 2 + k[0], c + 2, (size_t)k[1] * sizeof *c);
      for (int i = 0; i < 8; i++) {
        int from = i >= 2 + k[0] && i < 2 + k[0] + k[1] ? i - k[0] : i;
        s += get(c + i, from % 3 == 0) * x[1] * (i + 1);
      }
      free(c);
      *o = s;
    }"""
    x = np.array([1.25, 0.75])
    (dx, _), _made = gradient(source, "f", "dcd", x, np.array([shift, 4]), OUT)
    want = np.zeros(2)
    for i in range(8):
        source_of = i - shift if 2 + shift <= i < 6 + shift else i
        if source_of % 3:  # x0 j x1 (i + 1)
            want += np.array([source_of * x[1], x[0] * source_of]) * (i + 1)
        else:  # x0 x1 x1 (i + 1)
            want += np.array([x[1] ** 2, 2 * x[0] * x[1]]) * (i + 1)
    np.testing.assert_allclose(dx, want, rtol=1e-14)


REUSED = """
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
typedef union {{ {kind} d; double *p; }} word;
typedef struct {{ double x; word u; }} cell;
static __attribute__((noinline)) double behind(cell *c) {{ return *c->u.p; }}
static double f(cell *c) {{
  {first}
  {second}
  return v * v + c->x;
}}
void reverse(cell *c, cell *d) {{ __enzyme_autodiff((void *)f, c, d); }}
"""
FORWARD = "double forward(cell *c, cell *d) { return __enzyme_fwddiff((void *)f, c, d); }"
FLOAT, POINTER = "c->u.d = v * v; v += c->u.d;", "c->u.p = &c->x; v += behind(c);"


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize(("first", "second", "says"), [
    ("double v = *c->u.p;", FLOAT, "a float is stored where a pointer lies"),
    ("double v = c->u.d;", POINTER, "a pointer is stored where a float lies"),
])  # fmt: skip
def test_a_place_of_the_caller_that_changes_its_sort(kind: str, first: str, second: str, says: str) -> None:
    """Its shadow is a pointer for one half and an adjoint for the other: a garbage gradient, were it not refused."""
    source = REUSED.format(kind=kind, first=first, second=second)
    with pytest.raises(ig.Unsupported, match=rf"{says}\n.*\n.*store[^\n]*\n.*because it is a") as caught:
        lower(ig.load(source).text)
    assert "members of their own" in caught.value.fix
    assert "@irgrad" in lower(ig.load(source.replace("void reverse", "static void reverse") + FORWARD).text)


PLACES = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
struct part { long n; struct part *other; double v; };
typedef long __attribute__((may_alias)) word;
static void by_words(void *to, const void *from, size_t n) {
  word *t = to; const word *f = from;
  for (size_t i = 0; i < n / sizeof *t; i++) t[i] = f[i];
}
double f(const double *x) {
  struct part *p = calloc(2, sizeof *p), *q = calloc(2, sizeof *q);
  for (int i = 0; i < 2; i++) {
    p[i].v = sin(x[i]); p[i].other = &q[1 - i]; p[i].n = i; q[i].v = x[i] * x[1]; q[i].other = &p[i]; q[i].n = 2;
  }
  struct part *spare = malloc(sizeof *p); memcpy(spare, p, sizeof *p);
  spare->v *= 0.5; p[1] = *spare; free(spare);
  by_words(p, q, sizeof *p);
  double s = p[0].v * p[1].v + p[0].other->v * p[1].other->v + q[0].other->other->v + p[0].n;
  free(p); free(q);
  return s;
}
"""


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_pointers_and_floats_copied_as_words_from_known_places(level: str) -> None:
    """A word that carries a pointer is none of a float, though both are stored as i64."""
    kernel = ig.load(PLACES, language="c", opt=level).kernel("f", "f64(f64[2] x)")
    x, h = np.array([0.7, -0.4]), 1e-4
    ways = h * np.eye(2)
    want = [(8 * (kernel(x + e) - kernel(x - e)) - kernel(x + 2 * e) + kernel(x - 2 * e)) / (12 * h) for e in ways]
    np.testing.assert_allclose(ig.engine.grad(kernel)(x), want, rtol=1e-9)
    np.testing.assert_allclose(ig.engine.jacfwd(kernel)(x), want, rtol=1e-9)


TURNED = """
#include <stdlib.h>
typedef union { double d; double *p; long i; } word;
double f(const double *x, long n) {
  word *w = calloc(8, sizeof *w), *v = malloc(8 * sizeof *v);
  double l = x[0] * x[1], sum = 0;
  for (int i = 0; i < n; i++)
    if (i % 2) w[i].d = x[i] * x[i];
    else if (i % 4 == 0) w[i].p = &l;                   /* by an index that has no bounds */
  for (int i = 0; i < 8; i++) v[7 - i] = w[i];          /* at places that are known */
  for (int i = 0; i < n; i++) {
    word q = v[7 - i];
    if (i % 2) sum += q.d * (i + 1);
    else if (q.i) sum += *q.p * x[i];
  }
  free(w);
  free(v);
  return sum;
}
"""


def test_second_derivatives_know_that_adjoints_lie_where_shadow_pointers_do() -> None:
    """From the reverse sweep alone the words of shadow memory look like doubles."""
    kernel = ig.load(TURNED, opt="O0").kernel("f", "f64(f64[n] x, i64 n)")
    x, v = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4]), np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
    a, b, c = x[0], x[1], x[4]  # of the sum a a b + a b c + 2 x1 x1 + 4 x3 x3 + 6 x5 x5
    want = np.diag([2 * b, 4.0, 0, 8, 0, 12])
    for i, j, second in ((0, 1, 2 * a + c), (0, 4, b), (1, 4, a)):
        want[i, j] = want[j, i] = second
    np.testing.assert_allclose(ig.engine.hvp(kernel, (x,), v), want @ v, rtol=1e-13)


@pytest.mark.parametrize("move", ["word", "struct", "several"])
def test_second_derivatives_of_words_that_change_their_sort(move: str) -> None:
    """The adjoint of such a word is a word as well, whatever LLVM makes of the reverse sweep."""
    source = "#include <stdlib.h>\n#include <string.h>\n#define NOINLINE __attribute__((noinline))\n"
    source += WORDS.format(kind="double", move=MOVES[move])
    source += "double loss(const double *x, long n) { double o; f((double *)x, &o); return o; }\n"
    kernel = ig.load(source).kernel("loss", "f64(f64[n] x, i64 n)")
    x, v, h = np.array([1.25, 0.75]), np.array([0.3, -0.7]), 1e-4
    found, slope = ig.engine.grad(kernel), [1.0, -8.0, 8.0, -1.0]
    want = sum(c * found(x + k * h * v) for c, k in zip(slope, (-2, -1, 1, 2), strict=True)) / (12 * h)
    np.testing.assert_allclose(ig.engine.hvp(kernel, (x,), v), want, rtol=1e-8)
