"""Exceptions thrown and caught within differentiated code: values, both modes, destructors, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import irgrad as ig
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.kernel.normal_form import normal_name, normal_text
from irgrad.engine.normalise.exceptions.unwinding import PANIC, has_exceptions, lower_exceptions
from irgrad.rules.errors import Unsupported

SOURCE = r"""
#include <memory>
#include <stdexcept>
#include <vector>
#define NOINLINE __attribute__((noinline))
#define F extern "C" double
static double square(double x) { if (x < 0) throw std::runtime_error("negative"); return x * x; }
F standard(double x) {
  double r = 0;
  for (int i = -1; i < 3; i++) try { r += square(x * i); } catch (const std::exception &e) { r += 2 * x; }
  return r;
}
struct Carries { double v; int k; };
static NOINLINE double over(double x) { if (x > 1) throw Carries{x * x, 3}; return x; }
F active(double x) { try { return over(x) * 5; } catch (const Carries &e) { return e.v * e.k * x; } }
struct Guard { double *p; double s; ~Guard() { *p += s * s; } };
static NOINLINE double deep(double x, int n) {
  if (n == 0) { if (x > 1) throw Carries{x, 2}; return x; }
  Guard g{&x, x};
  return deep(x * 1.1, n - 1) + x;
}
F cleanups(double x) {
  double sum = x;
  try { Guard g{&sum, x}; sum += deep(x, 3); } catch (Carries e) { sum += e.v * e.k; }
  return sum;
}
struct Base { double a; Base(double a) : a(a) {} virtual ~Base() {} virtual double value() const { return a; } };
struct Derived : Base {
  std::vector<double> v;
  Derived(double a) : Base(a), v(3, a * a) {}
  double value() const override { return a * v[1]; }
};
F classes(double x) {
  double r = 0;
  for (int i = 0; i < 3; i++)
    try { if (i == 1) throw Derived(x); if (i == 2) throw Base(x * 2); r += x; }
    catch (const Base &b) { r += b.value(); }
  return r;
}
F again(double x) {
  double r = 0;
  try { try { throw x * 2; } catch (double d) { r += d; if (d > 0) throw; } }
  catch (double d) { r += d * d; } catch (...) { r = -1; }
  return r;
}
F library(double x) {
  double r = 0;
  try { std::vector<double> v(3, x); r += v.at(1); r += v.at(7); } catch (std::out_of_range &) { r *= x; }
  return r;
}
struct Node { virtual double at(double x) const = 0; virtual ~Node() {} };
struct Square : Node {
  double at(double x) const override { if (x > 10) throw std::domain_error("far"); return x * x; }
};
struct Sum : Node {
  std::unique_ptr<Node> a, b;
  double at(double x) const override { return a->at(x) + b->at(2 * x); }
};
F indirect(double x) {
  Sum n; n.a = std::make_unique<Square>(); n.b = std::make_unique<Square>();
  double r = 0;
  for (int i = 1; i < 6; i++) try { r += n.at(x * i); } catch (const std::logic_error &) { r += x * i; }
  return r;
}
static double safe(double x) noexcept { try { return square(x); } catch (...) { return x * 3; } }
F everything(double x) { return safe(x) * safe(-x); }
F numbers(double x) {
  double r = 0;
  for (int i = 0; i < 4; i++) try { if (i % 2) throw i; r += x * i; } catch (int k) { r += x * x * k; }
  return r;
}
struct Left { double l; }; struct Right { double r; };
struct Both : Left, Right { Both(double x) { l = x; r = x * x; } };
F parts(double x) { double s = 0; try { throw Both(x); } catch (const Right &p) { s = p.r * x; } return s; }
F pointers(double x) {
  static Both b(0); b.l = x; b.r = 2 * x;
  try { throw &b; } catch (const Both *p) { return p->r * p->l; }
}
F nested(double x) {
  double r = x;
  try { try { throw Carries{x, 1}; } catch (Carries &a) {
    try { throw x * a.v; } catch (double d) { r += d; }
    r *= a.v; throw Carries{r, 2}; }
  } catch (Carries &c) { r += c.v * c.k; }
  return r;
}
static int alive = 0;
struct Counted {
  double v;
  Counted(double v) : v(v) { alive++; }
  Counted(const Counted &o) : v(o.v) { alive++; }
  ~Counted() { alive--; }
};
F balance(double x) {
  alive = 0;
  double r = 0;
  for (int i = 0; i < 4; i++)
    try { Counted c(x); if (i % 2) throw Counted(x * i); r += c.v; }
    catch (Counted &e) { r += e.v + (alive - 1) * 100; }
  return r + alive * 1000;
}
"""
NAMES = ["standard", "active", "cleanups", "classes", "again", "library", "indirect", "everything", "numbers", "parts",
         "pointers", "nested", "balance"]  # fmt: skip


def check(library: Any, name: str, x: float = 1.3) -> None:
    """Reverse and forward against differences of fourth order, and the values against the function's own."""
    kernel = library.kernel(name)
    h = 1e-4
    want = (kernel(x - 2 * h) - 8 * kernel(x - h) + 8 * kernel(x + h) - kernel(x + 2 * h)) / (12 * h)
    value, gradient = ig.engine.value_and_grad(kernel)(x)
    assert value == pytest.approx(kernel(x), rel=1e-13)
    assert gradient == pytest.approx(want, rel=1e-8)
    assert ig.engine.jvp(kernel, (x,), (1.0,))[1] == pytest.approx(gradient, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_follow_the_path_that_was_taken(name: str) -> None:
    check(ig.load(SOURCE, language="c++"), name)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("name", NAMES)
def test_at_every_level(name: str, level: str) -> None:
    check(ig.load(SOURCE, language="c++", opt=level), name)


def test_exception_objects_and_destructors_are_balanced() -> None:
    kernel = ig.load(SOURCE, language="c++").kernel("balance")
    assert kernel(1.0) == 2 + 4
    assert ig.engine.value_and_grad(kernel)(1.0) == (6.0, 6.0)


def test_a_derivative_of_a_derivative() -> None:
    kernel = ig.load(SOURCE, language="c++").kernel("active")
    assert ig.engine.hvp(kernel, (1.5,), 1.0) == pytest.approx(18 * 1.5)  # 3 x**3


def test_exceptions_become_branches() -> None:
    kernel = ig.load(SOURCE, language="c++").kernel("standard")
    stage = kernel.primal.stage
    assert has_exceptions(stage.text)
    module = read(stage.text, roots=[stage.name])
    lower_exceptions(module, module.functions[stage.name])
    text = to_text(module)
    assert not has_exceptions(text)
    assert " invoke " not in text
    assert "call void @__cxa_throw(" not in text


def test_the_root_gets_a_place_for_what_leaves_it_only_where_something_does() -> None:
    kernels = ig.load("""
    extern "C" double thrown(double x) { if (x > 1) throw 5; return x; }
    extern "C" double caught(double x) { try { if (x > 1) throw 5; } catch (...) { return 2 * x; } return x; }
    """, language="c++")
    for name, types, slots in (("thrown", ["_ZTIi"], 1), ("caught", [], 0)):
        source, normal = kernels.kernel(name).primal.source, normal_name(name)
        module = read(prepare(source.text + normal_text(name, source.signature), [normal]), roots=[normal])
        root = module.functions[normal]
        before = len(root.args)
        found = lower_exceptions(module, root, leaving=True)
        assert [info.name for info, _ in found] == types
        assert len(root.args) == before + slots
        assert "call ptr @malloc(" not in to_text(module)


PANICS = """
@three = private constant i32 3
declare void @irgrad.panic(ptr) noreturn nounwind
define internal double @checked(double %x) nounwind noreturn {
  call void @irgrad.panic(ptr @three) noreturn nounwind
  unreachable
}
define internal double @deep(double %x) nounwind {
  %bad = fcmp olt double %x, 0.0
  br i1 %bad, label %no, label %yes
no:
  %never = call double @checked(double %x) noreturn nounwind
  unreachable
yes:
  ret double %x
}
define void @root(ptr %x, ptr %status) nounwind {
  %v = load double, ptr %x
  %r = call double @deep(double %v)
  store double %r, ptr %x
  store i32 0, ptr %status
  ret void
}
"""


def test_panics_leave_the_root_with_their_number() -> None:
    module = read(PANICS)
    root = module.functions["root"]
    assert lower_exceptions(module, root, status=root.args[-1]) == []
    text = to_text(module)
    assert f"call void @{PANIC}" not in text and "noreturn" not in text.split("declare")[0]
    assert text.count("ptr noalias %in.flight") == 2  # of `checked` and `deep`
    thrown = text.split("thrown:")[-1]
    assert "load i32, ptr" in thrown and "ptr %status" in thrown


def test_a_root_that_always_fails_returns_and_writes_its_status() -> None:
    """LLVM had found that it never returns and never writes."""
    module = read("""
@seven = private constant { i32, [1 x i8] } { i32 7, [1 x i8] zeroinitializer }
define void @root(ptr noalias readnone captures(none) %status) #0 {
  call void @irgrad.panic(ptr @seven) noreturn nounwind
  unreachable
}
declare void @irgrad.panic(ptr)
attributes #0 = { noreturn nounwind }
""")
    root = module.functions["root"]
    lower_exceptions(module, root, status=root.args[-1])
    assert "noreturn" not in root.tail and root.args[-1].attrs.split() == ["noalias", "captures(none)"]
    assert "ptr %status" in to_text(module).split("thrown:")[-1]


def test_panics_and_exceptions_in_one_function_are_refused() -> None:
    module = read(PANICS.replace("%v = load", "call void @throws()\n  %v = load") + """
@_ZTId = external constant ptr
declare ptr @__cxa_allocate_exception(i64)
declare void @__cxa_throw(ptr, ptr, ptr)
define internal void @throws() {
  %e = call ptr @__cxa_allocate_exception(i64 8)
  call void @__cxa_throw(ptr %e, ptr @_ZTId, ptr null)
  unreachable
}
""")
    with pytest.raises(Unsupported, match="exceptions of C\\+\\+ beside panics"):
        lower_exceptions(module, module.functions["root"], status=module.functions["root"].args[-1])


def test_functions_with_a_rule_may_not_panic() -> None:
    module = read(PANICS)
    root = module.functions["root"]
    with pytest.raises(Unsupported, match="`deep` has a rule, and may panic"):
        lower_exceptions(module, root, {"deep"}, status=root.args[-1])
