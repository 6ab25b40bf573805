"""Library: its names, and the error for a name it does not have."""

from __future__ import annotations

import pytest

import irgrad
from irgrad.interop.loaders import load
from irgrad.interop.loaders.library import Library
from irgrad.rules.errors import LoadError

TEXT = """
define double @energy(double %x) {
  ret double %x
}
define internal double @hidden(double %x) {
  ret double %x
}
define linkonce_odr void @"odd name"() {
  ret void
}
define void @_ZN2ns5forceEd(double %x) {
  ret void
}
define void @_Z4kickd(double %x) {
  ret void
}
define void @_Z4kickf(float %x) {
  ret void
}
declare double @sin(double)
"""


@pytest.fixture
def library() -> Library:
    return Library(TEXT, ["a.c", "b.cc"])


def test_functions_are_the_visible_definitions(library: Library) -> None:
    assert library.functions() == ("energy", "odd name", "_ZN2ns5forceEd", "_Z4kickd", "_Z4kickf")
    assert "5 functions" in repr(library)
    assert not library.debug


def test_names_resolve(library: Library) -> None:
    assert library.resolve("energy") == "energy"
    assert library.resolve("force") == "_ZN2ns5forceEd"
    assert library.resolve("_Z4kickf") == "_Z4kickf"


def test_overloads_are_listed(library: Library) -> None:
    with pytest.raises(LoadError, match=r"`kick` names 2 overloads(.*\n)+.*`_Z4kickd`, `_Z4kickf`"):
        library.resolve("kick")


def test_a_missing_name_gets_the_nearest(library: Library) -> None:
    with pytest.raises(LoadError) as caught:
        library.resolve("energi")
    message = str(caught.value)
    assert "there is no function `energi`" in message
    assert "a.c, b.cc" in message
    assert "`energy`" in message
    assert 'lib.kernel("energy")' in message
    with pytest.raises(LoadError, match="it defines `energy`"):
        library.resolve("zzzzzzzzzzz")
    with pytest.raises(LoadError, match="defines no function"):
        Library("", ["empty.c"]).resolve("f")


def test_digest_is_of_the_text() -> None:
    assert Library(TEXT, ["a"]).digest == Library(TEXT, ["b"]).digest
    assert Library(TEXT, ["a"]).digest != Library(TEXT + " ", ["a"]).digest


def test_options_of_derivatives_reach_the_engine() -> None:
    """strict_fp keeps sums of adjoints in the order of the program: no operation may be reordered."""
    body = "double s = 0; for (long i = 0; i < n; i++) s += x[i] * x[0]; return s;"
    library = load(f"double f(const double *x, long n) {{ {body} }}")
    for strict in (False, True):
        kernel = library.kernel("f", "f64(f64[n] x, i64 n)", strict_fp=strict)
        assert ("reassoc" in kernel.primal.pullback((0, 2)).stage.text) is not strict
        assert kernel.options.strict_fp is strict
    assert library.kernel("f", "f64(f64[n] x, i64 n)", strong_zero=True).options.strong_zero


@pytest.mark.parametrize(("source", "language"), [
    ("static double f(double x) { return x * x; }\nint g(void) { return 0; }", "c"),
    ("static double f(double x) { return x * x; }\ndouble g(double x) { return 2 * f(x); }", "c"),
    ("inline double f(double x) { return x * x; }\ndouble g(double x) { return 2 * f(x); }", "c"),
    ("static inline double f(double x) { return x * x; }", "c++"),
    ("namespace { double f(double x) { return x * x; } }\ndouble g(double x) { return 2 * f(x); }", "c++"),
])  # fmt: skip
def test_functions_of_one_file_are_kernels(source: str, language: str) -> None:
    """`static` and `inline` functions, called by others or not."""
    kernel = irgrad.load(source, language=language).kernel("f", "f64(f64 x)")
    assert kernel(3.0) == 9
    assert irgrad.grad(kernel)(3.0) == 6


def test_functions_of_one_file_have_a_signature_too() -> None:
    library = irgrad.load("static double f(double x) { return x * x; }\nint g(void) { return 0; }")
    assert library.functions() == ("g",)
    assert irgrad.grad(library.kernel("f"))(3.0) == 6
    with pytest.raises(irgrad.LoadError, match="there is no function `h`"):
        library.kernel("h")
