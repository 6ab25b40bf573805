"""Library bodies on demand: `std::sort`, `shared_ptr`, hash tables and strings become IR of the program."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

import irgrad as ig
from irgrad.engine.codegen import cxx
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.prepare import prepare
from irgrad.interop.loaders import libcxx, load
from irgrad.interop.loaders.compiler import find_compiler

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


def test_other_compilers_keep_their_own_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcxx, "_library", lambda: None)
    text = load(SORTED, language="c++").text
    assert re.search(r"^declare .*@_ZNSt3__16__sortI", text, re.M)
    assert libcxx.complete(text) == text
