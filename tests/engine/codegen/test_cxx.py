"""C++ units that need libc++ at run time."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

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
        cxx.link_with_libcxx(b"", ["_ZNSt3__19to_stringEi"])
