"""Kernels that keep exceptions beyond their handlers, against differences of their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.exceptions.kept import OPERATIONS, check_places, holds_exceptions
from irgrad.interop.cli import main
from irgrad.rules.errors import Unsupported

SOURCE = r"""
#include <exception>
#include <stdexcept>
#include <vector>
struct Bad : std::runtime_error { double v; Bad(double a) : std::runtime_error("bad"), v(a * a) {} };
static int alive = 0;
struct Counted { double v; Counted(double a) : v(a) { alive++; } Counted(const Counted &o) : v(o.v) { alive++; }
                 ~Counted() { alive--; } };
__attribute__((noinline)) static std::exception_ptr grab() noexcept { return std::current_exception(); }
__attribute__((noinline)) static double told(std::exception_ptr p, double a) {
  try { std::rethrow_exception(p); } catch (const Bad &b) { return b.v * a; } catch (double d) { return d + a; }
}
extern "C" double last(const double *x, long n) {                       // the last one that was thrown
  double s = 0;
  std::exception_ptr p;
  for (long i = 0; i < n; i++)
    try { if (x[i] > 1) throw Bad(x[i]); s += x[i] * x[i]; } catch (...) { p = std::current_exception(); }
  try { if (p) std::rethrow_exception(p); } catch (const std::exception &) { s *= x[1]; }
  return p ? s + told(p, x[0]) : s;
}
extern "C" double several(const double *x, long n) {                    // kept in a vector, of two types
  double s = 0;
  std::vector<std::exception_ptr> kept;
  for (long i = 0; i < n; i++)
    try { if (x[i] > 1.2) throw Bad(x[i]); if (x[i] > 1) throw x[i] * x[0]; s += x[i]; }
    catch (...) { kept.push_back(grab()); }
  for (auto &p : kept) s += told(p, x[1]) + told(p, s);
  return s;
}
extern "C" double made(const double *x, long n) {                       // without a throw, thrown several times
  double s = 0;
  std::exception_ptr p = std::make_exception_ptr(x[0] * x[1]);
  for (long i = 0; i < n; i++) try { std::rethrow_exception(p); } catch (double &d) { s += d * x[i]; d *= x[2]; }
  return s;
}
extern "C" double nested(const double *x, long n) {                     // handled in two places at once
  double s = 0;
  try { throw Bad(x[0]); } catch (Bad &b) {
    auto p = std::current_exception();
    try { throw b.v * x[1]; } catch (double d) {
      try { std::rethrow_exception(p); } catch (Bad &c) {
        c.v *= d;
        try { std::rethrow_exception(std::current_exception()); } catch (const Bad &e) { s += e.v * x[2]; }
      }
      s += d * b.v;
      auto q = std::current_exception();
      s += told(q, x[3]);
    }
    s += b.v + (std::current_exception() == p ? x[4] : 0);
  }
  return std::current_exception() ? 0 : s;
}
extern "C" double balance(const double *x, long n) {                    // every object is destroyed, once
  double s = 0;
  {
    std::vector<std::exception_ptr> kept(2);
    for (long i = 0; i < n; i++)
      try {
        try { throw Counted(x[i]); } catch (...) { kept[0] = kept[1]; kept[1] = std::current_exception(); throw; }
      } catch (const Counted &c) { s += c.v * x[0]; }
    for (auto p : kept) try { std::rethrow_exception(p); } catch (const Counted &c) { s += c.v * c.v; }
    s += 100 * alive;
  }
  return s + 1000 * alive;
}
"""
PROGRAM = r"""
#include <exception>
#include <stdexcept>
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
struct Bad : std::runtime_error { double v; Bad(double a) : std::runtime_error("bad"), v(a) {} };
double f(const double *x, int n) {
  std::exception_ptr first;
  double s = 0;
  for (int i = 0; i < n; i++)
    try { if (x[i] > 5) throw Bad(x[i]); if (x[i] > 4) throw x[i]; s += x[i] * x[i]; }
    catch (double d) { s += d; } catch (...) { if (!first) first = std::current_exception(); }
  if (first) std::rethrow_exception(first);
  return s;
}
int main() {
  double x[3] = {1, 2, 4.5}, d[3] = {0};
  __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 3);
  int wrong = d[0] != 2 || d[1] != 4 || d[2] != 1, caught = 0;
  x[1] = 7; x[2] = 8;
  for (int round = 0; round < 3; round++) {
    std::exception_ptr p;
    try { __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 3); }
    catch (const Bad &b) { caught += b.v == 7; p = std::current_exception(); }
    try { std::rethrow_exception(p); } catch (const std::exception &e) { caught += e.what()[0] == 'b'; }
  }
  return wrong || caught != 6;
}
"""
CALLS = """
declare void @_ZSt17current_exceptionv(ptr)
define internal void @deep(ptr %to) {
  call void @_ZSt17current_exceptionv(ptr %to)
  ret void
}
define void @root(ptr %memory) {
  %part = getelementptr i8, ptr %memory, i64 8
  %local = alloca ptr
  call void @deep(ptr %local)
  call void @deep(ptr %part)
  ret void
}"""
NAMES = ["last", "several", "made", "nested", "balance"]


def check(level: str | None, name: str, *flags: str) -> None:
    library = ig.load(SOURCE, language="c++", opt=level, flags=list(flags))
    kernel = library.kernel(name, "f64(f64[n] x, i64 n)")
    x, v, h = np.array([1.1, 0.7, 1.3, 1.05, 0.8]), np.array([0.3, -0.4, 0.6, 0.2, 0.9]), 1e-4

    def slope(f: Callable[[Any], Any]) -> Any:
        at = [np.asarray(f(x + k * h * v)) for k in (-2, -1, 1, 2)]
        return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)

    value, gradient = ig.value_and_grad(kernel)(x)
    assert value == kernel(x)
    np.testing.assert_allclose(gradient @ v, slope(kernel), rtol=1e-9)
    np.testing.assert_allclose(ig.jvp(kernel, (x,), (v,))[1], slope(kernel), rtol=1e-9)
    np.testing.assert_allclose(ig.hvp(kernel, (x,), v), slope(ig.grad(kernel)), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_what_is_kept(name: str) -> None:
    check(None, name)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("name", NAMES)
def test_at_every_level(name: str, level: str) -> None:
    check(level, name)


@pytest.mark.parametrize("again", ["kept", "std::move(kept)", "std::make_exception_ptr(2.0)", "all[0]"])
def test_an_exception_in_a_variable_is_refused(again: str) -> None:
    kept = "all[0]" if again == "all[0]" else "kept"
    kernel = ig.load(f"""
    #include <exception>
    #include <vector>
    static std::exception_ptr kept;
    static std::vector<std::exception_ptr> all(1);
    extern "C" double f(double x) {{
      try {{ if (x > 0) throw x; }} catch (...) {{ {kept} = std::current_exception(); }}
      try {{ std::rethrow_exception({again}); }} catch (double d) {{ return d * x; }}
      return x;
    }}""", language="c++").kernel("f")
    with pytest.raises(Unsupported, match=r"kept beyond the call(.|\n)*a variable(.|\n)*to fix"):
        ig.engine.grad(kernel)(1.0)


def test_an_exception_in_memory_of_the_caller_is_refused() -> None:
    module = read(CALLS)
    functions = [fn for fn in module.functions.values() if fn.blocks]
    assert holds_exceptions(functions) and not holds_exceptions([module.functions["root"]])
    with pytest.raises(Unsupported, match="memory of the caller"):
        check_places(functions, module.functions["root"])


def test_what_is_thrown_from_a_pointer_leaves_a_derivative(tmp_path: Path) -> None:
    """The program's runtime gets the exception itself, catches it, keeps it, and throws it again."""
    if which("g++") is None:
        pytest.skip("there is no libstdc++")
    file = tmp_path / "program.cpp"
    file.write_text(PROGRAM)
    assert main(["run", "-stdlib=libstdc++", str(file)]) == 0


def test_the_operations_of_both_libraries() -> None:
    for library in ("_ZNSt13exception_ptr", "_ZNSt15__exception_ptr13exception_ptr"):
        named = {operation for name, operation in OPERATIONS.items() if name.startswith(library)}
        assert {"release", "copy", "assign", "own"} <= named
    assert OPERATIONS["_ZNSt15__exception_ptr13exception_ptrC1ERKS0_"] == "copy"
