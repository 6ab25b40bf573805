"""Integers beside floats at unknown places: numbers where the source calls them so and computes them."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.analyses.memory.objects import BY_VALUE
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.types.memory_types import MemoryTypes
from irgrad.engine.ir.text.reader import read
from irgrad.rules.errors import Unsupported

IR = """
declare ptr @malloc(i64)
define void @f(double %x, i64 %n, i64 %k, i32 %m) {
  %p = call ptr @malloc(i64 800)
  %d = getelementptr double, ptr %p, i64 %k
  store double %x, ptr %d, !tbaa !3
  %i = getelementptr i32, ptr %p, i64 %n
  %v = load i32, ptr %i, !tbaa !0
  %w = add i32 %v, 1
  %z = add i32 7, 1
  %y = bitcast double %x to i64
  %b = trunc i64 %y to i32
  store i32 STORED, ptr %i, !tbaa !0
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"int", !2, i64 0}
!2 = !{!"omnipotent char", !5, i64 0}
!3 = !{!4, !4, i64 0}
!4 = !{!"double", !2, i64 0}
!5 = !{!"C"}
"""


@pytest.mark.parametrize(("stored", "tag", "wanted"), [
    ("7", "tbaa", True), ("%z", "tbaa", True), ("%w", "tbaa", False), ("%m", "tbaa", False), ("%b", "tbaa", False),
    ("7", "irgrad.type", False),
])  # fmt: skip
def test_given_integers(stored: str, tag: str, wanted: bool) -> None:
    """Computed from no memory and from no float's bits, and with a name that LLVM believes."""
    module = read(IR.replace("STORED", stored).replace("!tbaa", f"!{tag}"), roots=["f"])
    pointers = Pointers(module, module.functions["f"])
    types = MemoryTypes(pointers)
    accesses = [i for i in module.functions["f"].instructions() if i.opcode in ("load", "store")]
    assert [types.numbers.are(i) for i in accesses] == [False, wanted, wanted]


def test_a_known_place_is_what_it_is() -> None:
    text = IR.replace("i64 %n\n", "i64 6\n").replace("STORED", "7")
    module = read(text, roots=["f"])
    types = MemoryTypes(Pointers(module, module.functions["f"]))
    assert not any(types.numbers.are(i) for i in module.functions["f"].instructions() if i.opcode == "load")


BITS = """
#include <stdlib.h>
double f(const double *x, long n) {
  float *v = malloc(n * sizeof *v), s = 0;
  for (long i = 0; i < n; i++) v[i] = (float)x[i];
  int *bits = (int *)v;
  for (long i = 0; i < n; i++) bits[i] = 0x5f3759df - (bits[i] >> 1);
  for (long i = 0; i < n; i++) s += v[i];
  free(v);
  return s;
}
"""


@pytest.mark.parametrize("level", [None, "O0", "O1", "O2", "O3"])
def test_bits_of_floats_in_place_are_not_lost(level: str | None) -> None:
    kernel = irgrad.load(BITS, language="c", opt=level).kernel("f", "f64(f64[n] x, i64 n)")
    with pytest.raises(Unsupported, match="bits of"):
        engine.grad(kernel)(np.array([0.5, 1.5, 2.5]))


LIST = """
#include <cmath>
#include <list>
extern "C" double loss(const double *x, long n) {
  double s = 0;
  std::list<double> first, kept(4, x[4] * std::tanh(x[4]));
  for (int i = 0; i < 3; i++) first.push_back(x[0] * x[0]);
  { std::list<double> other(x, x + n); kept = std::move(other); }
  for (long i = 0; i < n; i++) for (auto &e : kept) e *= 0.7;
  if (kept.size() < 12) kept.insert(std::next(kept.begin(), kept.size() / 2), first.front() * std::cos(x[1]));
  s += kept.empty() ? 0.3 : kept.back();
  for (const auto &e : first) s = 0.9 * s + e * x[3];
  for (const auto &e : kept) s += std::sin(e) * kept.size();
  return s;
}
"""


def test_the_length_of_a_list_is_no_float() -> None:
    """It lies where a node has its number, and a pointer to nodes may be one to the list."""
    loss = irgrad.load(LIST, language="c++", flags=["-O2"]).kernel("loss", "f64(f64[n] x, i64 n)")
    x, h = np.array([0.5, 0.3, 1.2, 0.7, 0.9]), 1e-6
    want = [(loss(x + h * e) - loss(x - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(engine.grad(loss)(x), want, rtol=1e-7)
    np.testing.assert_allclose(engine.jvp(loss, (x,), (x,))[1], np.dot(want, x), rtol=1e-7)


MEMBER = """
declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @f(ptr noalias SAID %n, ptr noalias %x) {
  %list = alloca [ROOM x i8], align 8
  %node = call ptr @malloc(i64 56)
  %k = load i64, ptr %n
  %odd = trunc i64 %k to i1
  %end = select i1 %odd, ptr %list, ptr %node
  %inside = getelementptr i8, ptr %end, i64 16
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %inside, ptr align 8 %x, i64 40, i1 false)
  %at = getelementptr i8, ptr %list, i64 16
  store i64 0, ptr %at, !tbaa !0
  store i64 %k, ptr %at, !tbaa !0
  %v = load i64, ptr %at, !tbaa !0
  %w = add i64 %v, -1
  store i64 %w, ptr %at, !tbaa !0
  ret void
}
!0 = !{!1, !2, i64 16}
!1 = !{!"list", !4, i64 0, !4, i64 8, !2, i64 16}
!2 = !{!"long", !3, i64 0}
!3 = !{!"omnipotent char", !5, i64 0}
!4 = !{!"any pointer", !3, i64 0}
!5 = !{!"C"}
"""


@pytest.mark.parametrize(("said", "room", "wanted"), [(BY_VALUE, 24, True), ("", 24, False), (BY_VALUE, 56, False)])
def test_members_that_are_given_a_number_of_the_callers(said: str, room: int, wanted: bool) -> None:
    """A copy of forty bytes is none to memory of twenty-four, wherever its address may lead to."""
    module = read(MEMBER.replace("SAID", said).replace("ROOM", str(room)), roots=["f"])
    types = MemoryTypes(Pointers(module, module.functions["f"]))
    load = next(i for i in module.functions["f"].instructions() if i.name == "v")
    assert types.numbers.are(load) is wanted


NODES = """
#include <cmath>
#include <list>
#include <variant>
struct pair { double a, b; };
using item = std::variant<double, int, pair>;
extern "C" double loss(const double *x, long n) {
  std::list<pair> first;
  for (long i = 0; i < n; i++) first.push_back({std::sin(x[i]), x[i] * x[0]});
  for (long i = 0; i < n; i++) {
    if (x[i] > 0.6) continue;
    std::list<pair> other;
    for (long k = 0; k < n; k++) other.push_back({x[k] * x[2], first.back().b});
    first = std::move(other);
  }
  if (first.size() > 2) first.erase(first.begin());
  (*std::next(first.begin(), 1 % first.size())).a = x[3] * x[1];
  std::list<item> items(2, x[1]), more;
  for (long i = 0; i < n; i++) {
    if (i % 2) more.push_back(x[i] * x[i]); else more.push_back(pair{x[i], x[0]});
    if (i == 2) items = more;
  }
  double s = 0;
  for (auto &p : first) s = 0.9 * s + p.a * p.b * first.size();
  for (auto &v : items)
    if (auto *d = std::get_if<double>(&v)) s += std::exp(*d);
    else if (auto *p = std::get_if<pair>(&v)) s += p->a * p->b * items.size();
  return s;
}
"""


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_lengths_of_lists_that_are_assigned(level: str) -> None:
    loss = irgrad.load(NODES, language="c++", opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    x, h = np.array([0.5, 0.3, 1.2, 0.7, 0.9]), 1e-6
    want = [(loss(x + h * e) - loss(x - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(engine.grad(loss)(x), want, rtol=1e-7)
    np.testing.assert_allclose(engine.jvp(loss, (x,), (x,))[1], np.dot(want, x), rtol=1e-7)


TRUTH = """
#include <memory>
#include <set>
struct Queue { std::set<std::pair<double, int>> waiting; int served; double scale; };
extern "C" double f(const double *x, long n) {
  auto q = std::make_unique<Queue>();
  q->scale = x[0];
  q->served = 0;
  for (int i = 0; i < n; i++) q->waiting.insert({x[i] * x[i], i});
  double s = 0;
  while (!q->waiting.empty()) {
    auto [d, u] = *q->waiting.begin();
    q->waiting.erase(q->waiting.begin());
    s += d * ++q->served * (u + 1);
  }
  return s * q->scale;
}
"""


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_truth_values_are_no_bytes_of_floats(level: str) -> None:
    """A node that is erased may be the end of the tree, where the colour of a node would be a byte of `scale`."""
    kernel = irgrad.load(TRUTH, language="c++", opt=level).kernel("f", "f64(f64[n] x, i64 n)")
    a, b, c = 0.5, 0.7, 1.1
    want = [3 * a * a + 4 * b * b + 9 * c * c, 8 * a * b, 18 * a * c]  # of a (a a + 4 b b + 9 c c)
    np.testing.assert_allclose(engine.grad(kernel)(np.array([a, b, c])), want, rtol=1e-13)
