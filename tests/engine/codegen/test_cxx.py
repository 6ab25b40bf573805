"""C++ units that need libc++ at run time."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from irgrad import engine
from irgrad.engine.codegen import cxx
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.prepare import prepare
from irgrad.interop.loaders import load
from irgrad.rules.errors import LoadError

SOURCE = """
#include <string>
#include <vector>
extern "C" double digits(double x) {
  std::vector<double> v;
  for (int i = 0; i < 5; i++) v.push_back(x + i);
  return (double)std::to_string((int)v.back()).size();
}
"""


def test_symbols_of_the_cxx_runtime() -> None:
    assert cxx.is_cxx_symbol("_ZNSt3__19to_stringEi")
    assert cxx.is_cxx_symbol("_ZNSt20bad_array_new_lengthC1Ev")
    assert not cxx.is_cxx_symbol("_ZN4mine3fooEv")
    assert not cxx.is_cxx_symbol("sin")


@pytest.mark.long
def test_code_that_needs_libcxx_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    text = prepare(load(SOURCE, language="c++").text, ["digits"])
    unit = compile_module(text, ["digits"])
    digits = unit.function("digits", ctypes.c_double, ctypes.c_double)
    assert [digits(3.0), digits(996.0)] == [1.0, 4.0]

    def never(*_: object) -> None:
        raise AssertionError("linked again")

    monkeypatch.setattr(cxx, "_link", never)
    again = compile_module(text, ["digits"]).function("digits", ctypes.c_double, ctypes.c_double)
    assert again(12.0) == 2.0


def test_without_the_wheel_the_symbol_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cxx.util, "find_spec", lambda name: None)
    with pytest.raises(LoadError, match=r"`_ZNSt3__19to_stringEi` are not resolved(.*\n)+.*ziglang"):
        cxx.link_with_libcxx([b""], ["_ZNSt3__19to_stringEi"])


ROUNDED = """
@n = internal global double 0.0
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @init, ptr null }]
define internal void @init() {
  store volatile double 5.0, ptr @n
  ret void
}
define double @f(double %x) {
  %short = fptrunc double %x to bfloat
  %y = fpext bfloat %short to double
  %m = load volatile double, ptr @n
  %z = fadd double %y, %m
  ret double %z
}
"""


def test_constructors_run_where_the_processor_lacks_bfloat() -> None:
    """The conversions come with the unit; the loader runs its constructors all the same."""
    f = compile_module(ROUNDED, ["f"]).function("f", ctypes.c_double, ctypes.c_double)
    assert f(1.00390625) == 6.0


STATICS = r"""
#include <vector>
static std::vector<double> table{1, 2, 3};
struct Longer { std::vector<double> w; Longer() : w(table) { w.push_back(4); } ~Longer() { w.clear(); } };
static Longer longer;
extern "C" double global(double x) {
  double r = 0;
  for (double d : table) r += d * x * x;
  for (double d : longer.w) r += d * x;
  return r;
}
extern "C" double local(double x) {
  static const std::vector<double> w{1, 2, 4};
  double r = 0;
  for (double d : w) r += d * x * x * x;
  return r;
}
"""


@pytest.mark.long
def test_static_variables_with_destructors() -> None:
    """Their constructors run, in order, before anything else does."""
    library = load(STATICS, language="c++")
    assert library.kernel("global")(1.5) == 6 * 1.5**2 + 10 * 1.5
    assert engine.grad(library.kernel("global"))(1.5) == 12 * 1.5 + 10
    assert library.kernel("local")(1.5) == 7 * 1.5**3
    assert engine.grad(library.kernel("local"))(1.5) == 21 * 1.5**2


def test_constructors_move_to_where_a_shared_library_runs_them() -> None:
    entry = "{ i32, ptr, ptr } { i32"
    entries = f'{entry} 65535, ptr @late, ptr null }}, {entry} 101, ptr @"a b", ptr @x }}'
    listed = f"@llvm.global_ctors = appending global [2 x {{ i32, ptr, ptr }}] [{entries}]\n"
    handle = "@__dso_handle = external hidden global i8\n"
    assert cxx.run_at_start(handle) == handle
    moved = cxx.run_at_start(handle + listed)
    assert '= internal global [2 x ptr] [ptr @"a b", ptr @late], section ".init_array", align 8\n' in moved
    assert moved.count("@llvm.used = appending global [1 x ptr] [ptr @irgrad.init_array]") == 1
    used = "@llvm.used = appending global [1 x ptr] [ptr @late], section \"llvm.metadata\"\n"
    assert "@llvm.used = appending global [2 x ptr] [ptr @irgrad.init_array, ptr @late]" in cxx.run_at_start(
        handle + listed + used
    )


def test_constructors_run() -> None:
    source = """#include <stdlib.h>
static double w[3];
__attribute__((constructor)) static void init(void) { w[0] = atof("3"); w[1] = 2; }
double f(double x) { return w[0] * x + w[1] * x * x; }
"""
    kernel = load(source, language="c").kernel("f")
    assert kernel(1.5) == 9.0
    assert engine.grad(kernel)(1.5) == 9.0
