"""Records of pointers are split into their fields."""

from __future__ import annotations

import numpy as np
import pytest
from analysed import all_of, facts_of, facts_of_c, named

import irgrad
from irgrad import engine
from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.analyses.memory.fields import WHOLE, residues
from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.analyses.memory.strided_sets import Offsets


def obj(facts: Facts, kind: str, number: int = 0) -> Object:
    """The numbered object of a kind."""
    return [o for o in facts.pointers.objects if o.kind == kind][number]


CONTEXT = """
struct ctx { double *x; const double *coef; int *idx; double **rows; int n; double scale; };
__attribute__((noinline)) static double eval(const struct ctx *c) {
  double s = 0;
  for (int i = 0; i < c->n; i++) s += c->x[c->idx[i]] * c->coef[i] * c->rows[i][0];
  return s * c->scale;
}
__attribute__((noinline)) static double outer(const struct ctx *c, struct ctx *t) { *t = *c; t->n = 5; return eval(t); }
void f(double *x, double *coef, int *idx, double *scale, double *out) {
  double *rows[10];
  for (int i = 0; i < 10; i++) rows[i] = x + i;
  struct ctx c = { x, coef, idx, rows, 10, *scale }, t;
  *out = outer(&c, &t);
}
"""


def test_a_struct_of_pointers_does_not_mix_its_fields() -> None:
    facts = facts_of_c(CONTEXT, "f", {0, 3, 4})
    assert facts.activity.scratch == set()
    assert not facts.activity.shadowed(obj(facts, "argument", 1))
    assert not facts.activity.shadowed(obj(facts, "argument", 2))
    assert sum(facts.activity.holds_pointers(o) for o in facts.pointers.objects if o.kind == "alloca") >= 2
    assert facts.types.region(facts.root.args[2]).fields == ((0, INT),)


WIDE = """
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %z, ptr noalias %out) {
  %a = alloca [3 x ptr], align 16
  %b = alloca [3 x ptr], align 16
  %a1 = getelementptr i8, ptr %a, i64 8
  %a2 = getelementptr i8, ptr %a, i64 16
  store ptr %x, ptr %a
  store ptr %x, ptr %a1
  store ptr %y, ptr %a2
  %v = load <2 x i64>, ptr %a
  store <2 x i64> %v, ptr %b
  %b1 = getelementptr i8, ptr %b, i64 8
  %b2 = getelementptr i8, ptr %b, i64 16
  store ptr %z, ptr %b2
  %p = load ptr, ptr %b1
  %q = load ptr, ptr %b2
  %r = load double, ptr %p
  %s = load double, ptr %q
  %t = fadd double %r, %s
  store double %t, ptr %out
  ret void
}
"""


def test_two_pointers_in_one_vector_have_cells_of_their_own() -> None:
    facts = facts_of(WIDE, "f", {0, 3})
    pointers = facts.pointers
    x, _, z, _ = (pointers.of(arg) for arg in facts.root.args)
    assert pointers.of(named(facts.root, "p")) == x
    assert pointers.of(named(facts.root, "q")) == z
    assert facts.types.ranges.places(named(facts.root, "p")) == {x.bit_length() - 1: Offsets(0)}


PASSED_ON = """
declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(ptr noalias %x, ptr noalias %out) {
  %from = alloca [3 x ptr], align 8
  %middle = alloca [3 x ptr], align 8
  %to = alloca [3 x ptr], align 8
  %a = call ptr @malloc(i64 8)
  %b = call ptr @malloc(i64 8)
  %c = call ptr @malloc(i64 8)
  %from1 = getelementptr i8, ptr %from, i64 8
  %from2 = getelementptr i8, ptr %from, i64 16
  store ptr %a, ptr %from
  store ptr %b, ptr %from1
  store ptr %c, ptr %from2
  call void @llvm.memcpy.p0.p0.i64(ptr %middle, ptr %from, i64 24, i1 false)
  %middle1 = getelementptr i8, ptr %middle, i64 8
  %p = load ptr, ptr %middle
  %q = load ptr, ptr %middle1
  %v = load double, ptr %x
  store double %v, ptr %q
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %middle, i64 24, i1 false)
  %to2 = getelementptr i8, ptr %to, i64 16
  %r = load ptr, ptr %to2
  store double %v, ptr %r
  %w = load double, ptr %r
  store double %w, ptr %out
  ret void
}
"""


def test_a_copy_takes_along_what_nobody_asks_for_on_the_way() -> None:
    facts = facts_of(PASSED_ON, "f", {0, 1})
    heap = [facts.pointers.object_of[named(facts.root, name)].index for name in "abc"]
    assert [facts.pointers.of(named(facts.root, name)) for name in "pq"] == [1 << heap[0], 1 << heap[1]]
    assert facts.pointers.of(named(facts.root, "r")) >> heap[2] & 1


INITIAL = """
struct both { const char *text; int n; double *numbers; };
__attribute__((noinline)) static double first(const struct both *b) { return b->text[0] * b->numbers[0]; }
void f(double *x, double *out) {
  struct both b = { "abc", 1, 0 };
  b.numbers = x;
  *out = first(&b);
}
"""


def test_the_initial_value_of_a_struct_has_its_pointers_where_they_are() -> None:
    facts = facts_of_c(INITIAL, "f", {0, 1})
    first = next(fn for fn in facts.pointers.functions if fn.name == "first")
    loads = [i for i in first.instructions() if i.opcode == "load"]
    numbers = [i for i in loads if i.type.is_ptr and "argument" in facts.pointers.names(facts.pointers.of(i))]
    assert len(numbers) == 1
    assert facts.pointers.names(facts.pointers.of(numbers[0])).count(",") == 0


OWNER = """
#include <map>
#include <vector>
struct Body { double x[3], mass; bool fixed; };
struct World { std::vector<Body> bodies; std::map<int, double> named; };
extern "C" double f(const double *x, long n) {
    World w;
    for (long i = 0; i < n; i++) w.bodies.push_back({{x[i], x[i] * x[i], 0}, 1 + x[i], i == 0});
    double e = 0;
    for (auto &b : w.bodies) e += b.x[1] * b.mass;
    return e;
}
"""


def test_an_object_that_points_to_itself_is_split_where_its_places_are_known() -> None:
    """An empty map points to itself. So the first solution takes elements of the vector for nodes of it, anywhere."""
    kernel = irgrad.load(OWNER, language="c++").kernel("f", "f64(f64[n] x, i64 n)")
    x = np.array([0.5, -2.0, 3.0])
    assert engine.grad(kernel)(x) == pytest.approx(2 * x + 3 * x**2, rel=1e-14)


NODES = """
#include <stdlib.h>
struct link { struct link *previous, *next; };
struct item { struct link link; double value; };
struct node { struct node *left, *right, *parent; long mark; double *data; long n; struct link head; };
__attribute__((noinline)) static struct node *made(struct node *parent, double *data, long n) {
  struct node *t = malloc(sizeof *t);
  t->left = t->right = 0; t->parent = parent; t->mark = 0; t->data = data; t->n = n;
  t->head.previous = t->head.next = &t->head;
  return t;
}
__attribute__((noinline)) static void add(struct link *head, double value) {
  struct item *i = malloc(sizeof *i);
  i->value = value; i->link.next = head->next; i->link.previous = head;
  head->next->previous = &i->link; head->next = &i->link;
}
double f(const double *x, long n) {
  double *data = malloc(n * sizeof *data), s = 0;
  for (long i = 0; i < n; i++) data[i] = x[i] * x[i];
  struct node *root = made(0, data, n);
  for (struct node *t = root; t->mark < 3 && n > 2; t = t->left) {
    t->left = made(t, data, n);
    t->left->mark = t->mark + 1;
  }
  for (struct node *t = root; t; t = t->left)
    for (long i = 0; i < t->n; i++) add(&t->head, t->data[i] * (1 + t->mark));
  for (struct node *t = root; t; t = t->left)
    for (struct link *l = t->head.next; l != &t->head; l = l->next) s += ((struct item *)l)->value;
  return s;
}
"""


def test_an_object_of_known_size_does_not_repeat() -> None:
    """The head of a list in a node of a tree leads to items, the nodes of the tree do not."""
    facts = facts_of_c(NODES, "f", {0})
    node = next(o for o in facts.pointers.objects if o.kind == "heap" and o.size == 64)
    lefts = [i for i in all_of(facts, "load") if i.type.is_ptr and facts.pointers.of(i) == 1 << node.index]
    assert lefts
    x = np.arange(1.0, 6.0)
    kernel = irgrad.load(NODES, language="c").kernel("f", "f64(f64[n] x, i64 n)")
    np.testing.assert_allclose(engine.grad(kernel)(x), 2 * x * 10)


def test_places_in_an_object_of_known_size() -> None:
    every = Offsets(0, ((56, None),))
    assert residues(every, WHOLE, 80) == {0, 56}
    assert residues(every.shift(24), WHOLE, 80) == {24}
    assert residues(Offsets(60, ((56, None),), True), WHOLE, 80) == {4, 60}
    assert residues(Offsets(96), WHOLE, 80) == set()
    assert residues(every, WHOLE) is None
    assert residues(Offsets(0, ((8, None),)), WHOLE, 80) is None
    assert residues(every.shift(8), 56, None) == {8}
