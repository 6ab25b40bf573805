"""Symbols resolve before anything runs, and what does not is named."""

from __future__ import annotations

import pytest

from irgrad.engine.codegen import symbols
from irgrad.engine.codegen.jit import compile_object
from irgrad.engine.codegen.llvm import binding
from irgrad.rules.errors import LoadError

CALLS = """
declare double @erf(double)
declare ptr @malloc(i64)
@table = external global i32
define double @f(double %x) {
  %a = call double @erf(double %x)
  %m = call ptr @malloc(i64 8)
  store double %a, ptr %m
  %t = load i32, ptr @table
  %d = sitofp i32 %t to double
  %l = load volatile double, ptr %m
  %r = fadd double %l, %d
  ret double %r
}
"""


def test_undefined_symbols_of_an_object() -> None:
    image, _ = compile_object(CALLS, ["f"])
    assert symbols.undefined_symbols(image) == ("erf", "malloc", "table")


def test_what_is_no_elf_object_is_refused() -> None:
    with pytest.raises(ValueError, match="not a 64-bit"):
        symbols.undefined_symbols(b"not an object at all" * 10)


@pytest.mark.parametrize(
    "name",
    "erf lgamma sincos sincosf exp10 j0 memcpy fmod malloc printf "
    "__muldc3 __divdc3 __mulsc3 __divsc3 __multi3".split(),
)
def test_c_and_complex_helpers_are_there(name: str) -> None:
    assert symbols.is_known(name)


def test_missing_symbols_are_named() -> None:
    with pytest.raises(LoadError, match="`no_such_symbol_1` is not resolved") as caught:
        symbols.resolve_all(["sin", "no_such_symbol_1"])
    assert "link=" in str(caught.value)
    with pytest.raises(LoadError, match="`no_such_a`, `no_such_b` are not resolved"):
        symbols.resolve_all(["no_such_a", "no_such_b"])
    assert symbols.missing(["sin", "no_such_c", "cos"]) == ("no_such_c",)


def test_blas_of_scipy_is_found_by_the_plain_names() -> None:
    import ctypes

    from blas_cases import library

    binding().load_library_permanently(library())
    expected = ctypes.CDLL(library()).scipy_cblas_dgemm
    assert symbols.resolve("cblas_dgemm") == ctypes.cast(expected, ctypes.c_void_p).value
    assert symbols.is_known("dpotrf_")
    assert not symbols.is_known("cblas_no_such")
