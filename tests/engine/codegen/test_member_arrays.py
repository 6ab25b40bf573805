"""Indices of arrays that are members of structs: bounded where a derivative would be refused otherwise."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine import grad, hvp, jvp
from irgrad.engine.codegen.member_arrays import has_indices, perhaps_bounded
from irgrad.engine.codegen.prepare import prepare
from irgrad.interop.cli import main
from irgrad.rules.errors import KernelError, Unsupported

SIGNATURE, WORDS = "f64(f64[n] x, i64 n)", "leaves the array that is a member of its struct"
HEAD = """
#include <stdlib.h>
typedef struct { double w[2]; unsigned char live[4]; const double *x; int n; double cost; } state;
"""
PAIRS = """
#include <stdlib.h>
struct pair { int tag; double number; };
typedef struct { double w[2]; unsigned char live[4]; struct pair pairs[4]; const double *x; } state;
"""
SOURCE = HEAD + """
double walk(const double *x, long n) {
  state *s = calloc(1, sizeof *s);
  s->w[0] = 1.5; s->w[1] = 0.5; s->x = x; s->n = (int)n;
  int id = s->n - 1, k = 0;
  for (long t = 0; t < 20; t++) {
    s->live[id / 8] |= 1 << (id % 8);
    k = s->live[0] & 1;
    if (x[1] > 3) k = 3;
    s->cost += s->w[k] * s->x[id] * s->x[id];
    id = (id * 7 + 3) % s->n;
  }
  double c = s->cost + s->w[0] * s->w[1];
  free(s);
  return c;
}
"""
MAIN = """
#include <stdio.h>
double __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;
int main(void) {
  double x[3] = {0.5, X1, 0.2}, g[3] = {0};
  __enzyme_autodiff((void *)walk, enzyme_dup, x, g, enzyme_const, 3L);
  printf("%.9f %.9f %.9f\\n", g[0], g[1], g[2]);
}
"""
X = np.array([0.5, 0.3, 0.2])
OUTSIDE = np.array([0.5, 4.0, 0.2])
WANTED = np.array([0, 0, 12.0])


@pytest.mark.parametrize("level", [None, "O2"])
def test_pickled_kernels_have_derivatives_and_explain_names_the_places(level: str | None) -> None:
    walk = pickle.loads(pickle.dumps(ig.load(SOURCE, opt=level).kernel("walk", SIGNATURE)))
    np.testing.assert_allclose(grad(walk)(X), WANTED)
    found = ig.explain(walk, lanes=False)
    assert [place.split(":")[1] for place in found.looks] == ["10", "13"]
    assert "indices: compared with their arrays in structs: <string>:10:" in str(found)


@pytest.mark.parametrize("level", [None, "O0", "O2"])
def test_derivatives(level: str | None) -> None:
    walk = ig.load(SOURCE, opt=level).kernel("walk", SIGNATURE)
    np.testing.assert_allclose(grad(walk)(X), WANTED)
    np.testing.assert_allclose(jvp(walk, (X,), (X,))[1], WANTED @ X)
    np.testing.assert_allclose(ig.jacobian(walk)(X), WANTED)
    np.testing.assert_allclose(hvp(walk, (X,), X), [0, 0, 12.0])


def test_an_index_outside_ends_the_call() -> None:
    walk = ig.load(SOURCE).kernel("walk", SIGNATURE)
    for derivative in (lambda: grad(walk)(OUTSIDE), lambda: jvp(walk, (OUTSIDE,), (X,)),
                       lambda: hvp(walk, (OUTSIDE,), X)):  # fmt: skip
        with pytest.raises(KernelError, match=f"an index of `walk` {WORDS}") as found:
            derivative()
        assert "<string>:13" in str(found.value)
        np.testing.assert_allclose(grad(walk)(X), WANTED)


def test_in_jax() -> None:
    import jax

    walk = ig.load(SOURCE).kernel("walk", SIGNATURE)
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(walk))
        np.testing.assert_allclose(slope(X), WANTED)
        with pytest.raises(ValueError, match=f"an index of `walk` {WORDS}, at <string>:13"):
            np.asarray(slope(OUTSIDE))


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_in_programs(level: str, tmp_path: Path, capfd: Any) -> None:
    program = tmp_path / "walk.c"
    program.write_text(SOURCE + MAIN.replace("X1", "0.3"))
    assert main(["run", level, str(program)]) == 0
    np.testing.assert_allclose([float(word) for word in capfd.readouterr().out.split()], WANTED)
    program.write_text(SOURCE + MAIN.replace("X1", "4.0"))
    assert main(["run", level, str(program)]) != 0
    assert f"irgrad: an index {WORDS}, at {program}:13" in capfd.readouterr().err


def bounds(body: str, types: str = "") -> int:
    """How many indices of a function are bounded."""
    source = f"{PAIRS if 'pair' in body else HEAD}{types} double f(state *s, double *x, long k, long n) {{ {body} }}"
    text = ig.load(source, flags=["-Wno-array-bounds"]).text
    return prepare(text, ["f"], preopt=False, members=True).count("call void @irgrad.tape.leaves(")


@pytest.mark.parametrize(("count", "body"), [
    (1, "return s->w[k];"),
    (1, "return s->live[k] * s->w[1];"),
    (2, "return s->live[k] * s->w[n];"),
    (1, "s->live[k]++; return 0;"),
    (2, "struct pair a = s->pairs[k]; s->pairs[n] = a; return 0;"),  # copied in parts
    (0, "struct pair *p = &s->pairs[k]; return ((double *)p)[3];"),  # the second one behind
    (0, "return s->w[1];"),
    (0, "double *w = s->w; return w[k];"),  # a pointer may walk
    (0, "double *w = &s->w[k]; return w[-1];"),
    (0, "double sum = 0; for (double *p = s->w, *end = &s->w[k]; p != end; p++) sum += *p; return sum;"),
    (0, "return s->x[k] + x[k];"),
    (0, "double a[4] = {x[0], x[1]}; return a[k];"),  # memory of its own
])  # fmt: skip
def test_what_is_bounded(count: int, body: str) -> None:
    assert bounds(body) == count


def test_arrays_of_one_element_are_as_long_as_their_memory() -> None:
    types = "struct rest { long n; double a[1]; }; struct none { long n; double a[]; };"
    assert bounds("return ((struct rest *)x)->a[k] + ((struct none *)x)->a[k];", types) == 0


def test_rows_are_walked_through() -> None:
    """Of several dimensions the place in all of them is bounded, and no other."""
    types = "struct table { double t[3][4]; int n; };"
    assert bounds("return ((struct table *)x)->t[k][n];", types) == 1
    source = f"{HEAD}{types}" + """
double f(const double *x, long n) {
  struct table *t = calloc(1, sizeof *t + sizeof(state));
  unsigned char *live = ((state *)(t + 1))->live;
  t->n = 12;
  for (int i = 0; i < t->n; i++) { t->t[0][i] = x[i % n] * x[0]; live[i % 4] |= i; }
  double s = t->t[1][2] * live[0];
  free(t);
  return s;
}"""
    f = ig.load(source, flags=["-Wno-array-bounds"]).kernel("f", SIGNATURE)
    steps = [f(X + 1e-4 * e) - f(X - 1e-4 * e) for e in np.eye(3)]
    np.testing.assert_allclose(grad(f)(X), np.array(steps) / 2e-4, rtol=1e-7, atol=1e-7)


def test_elements_by_reference() -> None:
    """`std::array::operator[]`: what is done with the element is seen where it is called."""
    source = """
#include <array>
struct both { std::array<double, 3> a; std::array<int, 4> n; double *p; };
extern "C" double f(both *b, long k) { b->n[k]++; return b->a[k]; }
extern "C" double *g(both *b, long k) { return &b->a[k]; }
"""
    text = ig.load(source, language="c++").text
    assert prepare(text, ["f"], members=True).count("call void @irgrad.tape.leaves(") == 2
    assert "irgrad.tape.leaves" not in prepare(text, ["g"], members=True)


def test_the_first_error_stays() -> None:
    text = ig.load(SOURCE).text
    assert has_indices(text) and not has_indices("define void @f(ptr %p) {\n ret void\n}")
    asked: list[str] = []

    def ask(members: str) -> str:
        asked.append(members)
        if len(asked) < 3:
            raise Unsupported(f"refused {len(asked)}")
        return "found"

    with pytest.raises(Unsupported, match="refused 1"):
        perhaps_bounded(ask, lambda: text)
    assert asked == ["", text]
    assert perhaps_bounded(ask, lambda: text) == "found"
    asked.clear()
    with pytest.raises(Unsupported, match="refused 1"):
        perhaps_bounded(ask, str)
    assert asked == [""]


ARRAYS_IN_ARRAYS = """
#include <math.h>
#include <stdlib.h>
struct inner { long a, b; double *w; double d[2]; char live[2]; };
struct outer { double *x; struct inner in[3]; double f[3]; };
double loss(const double *x, long n) {
  long *k = malloc(8 * sizeof *k);
  double *w = malloc(3 * sizeof *w), s = 0;
  for (long i = 0; i < 8; i++) k[i] = (i * 5 + n) % 3;
  struct outer o;
  o.x = w;
  for (int i = 0; i < 3; i++) {
    o.in[i].a = i; o.in[i].b = n; o.in[i].w = w + i; o.in[i].live[0] = 1; o.in[i].live[1] = 2;
    o.in[i].d[0] = w[i] = x[i] * x[0]; o.in[i].d[1] = sin(x[i]); o.f[i] = x[i] * x[1];
  }
  for (int i = 0; i < 4; i++) o.in[k[3]].live[k[i] / 2] ^= 1 << i;
  for (int i = 0; i < 3; i++)
    s += *o.in[i].w * o.in[i].d[0] * o.in[i].d[1] * (o.in[i].live[0] + o.in[i].live[1]) + o.f[i];
  free(w); free(k);
  return s;
}
"""


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_bytes_of_structs_in_an_array(level: str) -> None:
    """Two indices without bounds: which struct, and which of its bytes. LLVM makes a choice of two of the latter."""
    loss = ig.load(ARRAYS_IN_ARRAYS, opt=level).kernel("loss", SIGNATURE)
    h, found = 1e-6, grad(loss)(X)
    np.testing.assert_allclose(found, [(loss(X + h * e) - loss(X - h * e)) / (2 * h) for e in np.eye(3)], rtol=1e-7)
    np.testing.assert_allclose(jvp(loss, (X,), (X,))[1], found @ X, rtol=1e-12)
