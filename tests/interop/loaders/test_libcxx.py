"""Library bodies on demand: `std::sort`, `shared_ptr`, hash tables and strings become IR of the program."""

from __future__ import annotations

import cmath
import ctypes
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen import cxx
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.prepare import prepare
from irgrad.interop.cli import main
from irgrad.interop.linking import undefined
from irgrad.interop.loaders import libcxx, load
from irgrad.interop.loaders.compiler import find_compiler, libstdcxx_headers

NODES = """
#include <list>
#include <map>
#include <string>
#include <unordered_map>
extern "C" double nodes(double x) {
  std::map<int, double> m;
  for (int i = 0; i < 20; i++) m[i * 7 % 20] = x * i;
  for (int i = 0; i < 20; i++) if (i != 5) m.erase(i);
  double r = 0;
  for (auto &p : m) r += p.second;
  std::list<double> l{x * 8, x * x};
  l.reverse();
  for (double d : l) r += d;
  std::unordered_map<int, double> h;
  for (int i = 0; i < 40; i++) h[i] = i == 3 ? x * x * x : 0;
  for (auto &p : h) r += p.second;
  std::unordered_map<std::string, double> named;
  named["one"] = x; named["three"] = x * x;
  for (auto &p : named) r += p.second * p.first.size();
  std::multimap<int, double> s{{2, 2 * x}, {1, x}};
  return r + s.rbegin()->second * s.rbegin()->second;
}
"""
SORTED = """
#include <algorithm>
#include <memory>
#include <vector>
extern "C" double sorted(const double *x, long n) {
  auto v = std::make_shared<std::vector<double>>(x, x + n);
  std::sort(v->begin(), v->end());
  double s = 0;
  for (long i = 0; i < n; i++) s += (i + 1) * (*v)[i] * (*v)[i];
  return s;
}
"""


@pytest.mark.parametrize(("symbol", "source"), [
    ("_ZNSt3__16__sortIRNS_6__lessIddEEPdEEvT0_S5_T_", "libcxx/src/algorithm.cpp"),
    ("_ZNSt3__119__shared_weak_count14__release_weakEv", "libcxx/src/memory.cpp"),
    ("_ZTVNSt3__119__shared_weak_countE", "libcxx/src/memory.cpp"),
    ("_ZNSt3__112__next_primeEm", "libcxx/src/hash.cpp"),
    ("_ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE6appendEPKcm", "libcxx/src/string.cpp"),
    ("_ZNSt3__19to_stringEi", "libcxx/src/string.cpp"),
    ("_ZNSt20bad_array_new_lengthC1Ev", "libcxxabi/src/stdlib_exception.cpp"),
    ("_ZNSt3__14coutE", None),
    ("_ZN4mine6__sortEv", None),
    ("sort", None),
])  # fmt: skip
def test_the_table_names_the_source(symbol: str, source: str | None) -> None:
    assert libcxx.source_of(symbol) == source
    if source is not None:
        assert (Path(find_compiler().command["c++"][0]).parent / "lib" / source).is_file()


@pytest.mark.long
def test_the_library_is_differentiated_like_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("libc++ is linked")

    monkeypatch.setattr(cxx, "_link", never)
    library = load(SORTED, language="c++")
    assert not any(name.startswith("_ZNSt3__16__sort") for name in library.functions())
    kernel = library.kernel("sorted", "f64(f64[n] x, i64 n)")
    x = [3.0, -1.0, 2.0, 0.5]
    assert kernel(x) == 1 * 1.0 + 2 * 0.25 + 3 * 4.0 + 4 * 9.0
    assert ig.engine.grad(kernel)(x).tolist() == [8 * 3.0, 2 * -1.0, 6 * 2.0, 4 * 0.5]
    tangent = ig.engine.jvp(kernel, (x,), ([1.0, 0.0, 0.0, 1.0],))[1]
    assert tangent == 8 * 3.0 + 4 * 0.5


def test_a_plain_vector_needs_no_shared_library(monkeypatch: pytest.MonkeyPatch) -> None:
    text = prepare(load('#include <string>\n#include <vector>\nextern "C" double digits(double x) {'
                        "std::vector<double> v; for (int i = 0; i < 5; i++) v.push_back(x + i);"
                        "return (double)std::to_string((int)v.back()).size(); }", language="c++").text, ["digits"])
    monkeypatch.setattr(cxx, "_link", lambda *_: pytest.fail("libc++ is linked"))
    digits = compile_module(text, ["digits"]).function("digits", ctypes.c_double, ctypes.c_double)
    assert [digits(3.0), digits(996.0)] == [1.0, 4.0]


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_memory_resources_are_followed(level: str) -> None:
    lib = ig.load(r"""
#include <list>
#include <map>
#include <memory_resource>
#include <vector>
extern "C" double pooled(const double *x, long n) {
  std::byte room[512]; std::pmr::monotonic_buffer_resource arena(room, sizeof room);
  std::pmr::unsynchronized_pool_resource pool;
  std::pmr::vector<double> v(&arena), w; std::pmr::map<int, double> m(&pool); std::pmr::list<double> l(&pool);
  for (long i = 0; i < n; i++) {
    v.push_back(x[i] * x[i]); w.push_back(v[i] * x[0]); m[i % 3] += w[i]; l.push_back(m[i % 3] * x[i]);
  }
  double s = 0; for (double d : l) s += d * d; return s;
}""", language="c++", opt=level, flags=["-std=c++20"])
    pooled, x, h = lib.kernel("pooled", "f64(f64[n] x, i64 n)"), np.array([0.5, 0.3, 1.2, 0.7, 0.9]), 1e-6
    want = [(pooled(x + h * e) - pooled(x - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(ig.grad(pooled)(x), want, rtol=1e-7)


def test_other_compilers_keep_their_own_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcxx, "_library", lambda: None)
    text = load(SORTED, language="c++").text
    assert re.search(r"^declare .*@_ZNSt3__16__sortI", text, re.M)
    assert libcxx.complete(text) == text


@pytest.mark.long
def test_trees_lists_and_tables_of_libstdcxx_are_right(tmp_path: Path) -> None:
    if not libstdcxx_headers():
        pytest.skip("libstdc++ is not installed: no headers below /usr/include/c++")
    stress, image = Path(__file__).with_name("libstdcxx_stress.cpp"), tmp_path / "stress.o"
    assert main(["run", "-stdlib=libstdc++", str(stress)]) == 0
    assert main(["cc", "-c", "-stdlib=libstdc++", str(stress), "-o", str(image)]) == 0
    wanted = undefined([str(image)])
    assert "_Rb_tree_" not in wanted and "_List_node_base" not in wanted and "_Prime_rehash" not in wanted


@pytest.mark.long
def test_maps_of_libstdcxx_have_derivatives() -> None:
    if not libstdcxx_headers():
        pytest.skip("libstdc++ is not installed: no headers below /usr/include/c++")
    kernel = ig.load(NODES, language="c++", flags=["-stdlib=libstdc++"]).kernel("nodes")
    x = 1.3
    assert kernel(x) == pytest.approx(15 * x + x * x + 8 * x + x**3 + 4 * x * x + 3 * x + 5 * x * x)
    value, gradient = ig.engine.value_and_grad(kernel)(x)
    assert value == kernel(x)
    assert gradient == pytest.approx(26 + 12 * x + 3 * x * x + 8 * x, rel=1e-14)
    assert ig.engine.jvp(kernel, (x,), (1.0,))[1] == pytest.approx(gradient, rel=1e-14)


LIBSTDCXX = r"""
#include <cmath>
#include <functional>
#include <iostream>
#include <set>
#include <vector>
extern "C" double backwards(double x) {
  std::set<double> s{x, 3 * x, 2 * x, x * x};
  double r = 0; int i = 1;
  for (auto it = s.rbegin(); it != s.rend(); ++it) r += *it * *it * i++;
  return r;
}
extern "C" double closures(double x) {
  std::function<double(double)> f = [x](double y) { return x * y; };
  std::vector<std::function<double(double)>> all{f, [k = x * x](double y) { return k * y * y; },
                                                 [](double y) { return std::sin(y); }};
  double r = x;
  for (auto &g : all) r = g(r) + r;
  return r;
}
extern "C" double streams(double x) {
  double r = x * x;
  if (r > 1e9) std::cout << "large " << r << std::endl;
  return r * x;
}
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["backwards", "closures", "streams"])
def test_what_includes_the_streams_of_libstdcxx(name: str) -> None:
    """Its header defines a static variable with a destructor."""
    if not libstdcxx_headers():
        pytest.skip("libstdc++ is not installed: no headers below /usr/include/c++")
    kernel = ig.load(LIBSTDCXX, language="c++", flags=["-stdlib=libstdc++"]).kernel(name)
    x, h = 1.3, 1e-4
    want = (kernel(x - 2 * h) - 8 * kernel(x - h) + 8 * kernel(x + h) - kernel(x + 2 * h)) / (12 * h)
    assert ig.engine.grad(kernel)(x) == pytest.approx(want, rel=1e-8)
    assert ig.engine.jvp(kernel, (x,), (1.0,))[1] == pytest.approx(want, rel=1e-8)


_COMPLEX = "exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_complex_functions_at_real_numbers(level: str) -> None:
    """libc++'s own shortcuts there (`exp(x + 0i)`, `copysign(0, im)`) say nothing of the imaginary part."""
    parts = [(name, part) for name in [*_COMPLEX, "power"] for part in ("real", "imag")]
    lines = [f'extern "C" double {name}_{part}(const double *x) {{ return std::{part}(std::{name}(C(x[0], x[1]))); }}'
             for name, part in parts if name != "power"]  # fmt: skip
    lines += [f'extern "C" double power_{part}(const double *x) {{ return std::{part}(std::pow(C(x[0], x[1]), 2.5)); }}'
              for part in ("real", "imag")]  # fmt: skip
    source = "#include <complex>\nusing C = std::complex<double>;\n" + "\n".join(lines)
    lib = ig.load(source, language="c++", opt=level)
    wanted: dict[str, Callable[[complex], complex]] = {name: getattr(cmath, name) for name in _COMPLEX}
    wanted["power"] = lambda z: cmath.exp(2.5 * cmath.log(z))
    for point in ([0.5, 0.0], [-0.25, 0.0], [0.0, 0.0], [1.5, 0.0], [0.0, 0.5], [0.3, -0.4]):
        z, h = complex(*point), 1e-4
        for name, f in wanted.items():
            cut = {"acosh": point[1] == 0 and point[0] < 1, "log": point[0] <= 0 == point[1],
                   "power": point[0] <= 0 == point[1], "sqrt": point[0] <= 0 == point[1]}  # fmt: skip
            if cut.get(name, name in ("asin", "acos", "atanh") and abs(point[0]) > 1):
                continue
            slope = (8 * (f(z + h) - f(z - h)) - f(z + 2 * h) + f(z - 2 * h)) / (12 * h)  # holomorphic
            for part, want in (("real", [slope.real, -slope.imag]), ("imag", [slope.imag, slope.real])):
                kernel = lib.kernel(f"{name}_{part}", "f64(f64[2] x)")
                np.testing.assert_allclose(ig.engine.grad(kernel)(np.array(point)), want, rtol=1e-7, atol=1e-9)
                np.testing.assert_allclose(kernel(np.array(point)), getattr(f(z), part), rtol=1e-14, atol=1e-15)


def test_complex_exponentials_are_those_of_libcxx() -> None:
    """The same bits, where numbers are not finite too; but for the sign of the zero in cosh(-0 + 0i)."""
    names = ("exp_real", "exp_imag", "cosh_real", "cosh_imag")
    lines = [f'extern "C" double {name}_{part}(const double *x) {{ return std::{part}(std::{name}(C(x[0], x[1]))); }}'
             for name, part in (name.split("_") for name in names)]  # fmt: skip
    source = "#include <complex>\nusing C = std::complex<double>;\n" + "\n".join(lines)
    ours, theirs = ig.load(source, language="c++"), ig.load(source, language="c++", define={"IRGRAD_COMPLEX": "1"})
    for name in names:
        one, other = (lib.kernel(name, "f64(f64[2] x)") for lib in (ours, theirs))
        for re_, im in itertools.product([0.0, -0.0, 0.7, -1.5, 800.0, -800.0, np.inf, -np.inf, np.nan], repeat=2):
            point = np.array([re_, im])
            got, want = one(point), other(point)
            assert np.array_equal(got, want, equal_nan=True), (name, point, got, want)
            same_sign = np.signbit(got) == np.signbit(want) or np.isnan(got) or (re_ == im == 0 and name == "cosh_imag")
            assert same_sign, (name, point, got, want)


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_a_memory_resource_without_a_buffer_of_its_own(level: str) -> None:
    """It rounds the cursor of its first chunk, which is null, before it asks for memory."""
    lib = ig.load(r"""
#include <memory_resource>
#include <vector>
extern "C" double f(double x, long n) {
  std::pmr::monotonic_buffer_resource arena; std::pmr::vector<double> v(&arena);
  for (long i = 0; i < n; i++) v.push_back(x * i);
  double s = 0; for (double d : v) s += d * d; return s;
}""", language="c++", opt=level)
    assert ig.grad(lib.kernel("f", "f64(f64 x, i64 n)"))(0.5, 3) == 5.0
