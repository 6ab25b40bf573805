"""Functions of the C library that are taken apart: complex numbers of floats and long doubles, `cproj`, `scalb`."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad

COMPLEX = """
#include <complex.h>
{0} complex g({0} complex z, {0} complex w) {{
  return cexp{1}(z) * csqrt{1}(w) + clog{1}(z) * csin{1}(w) - ccos{1}(z) + ctan{1}(z * w) + csinh{1}(z) * ccosh{1}(w)
    + ctanh{1}(z) + casin{1}(w) * cacos{1}(z) + catan{1}(w) + casinh{1}(z) * cacosh{1}(w) + catanh{1}(z) + cpow{1}(z, w)
    + cabs{1}(z) * carg{1}(w) + cproj{1}(z) * w;
}}
void f(const double *x, double *y) {{
  {0} complex r = g(({0})x[0] + ({0})x[1] * I, ({0})x[2] + ({0})x[3] * I);
  y[0] = creal{1}(r); y[1] = cimag{1}(r);
}}
"""


@pytest.mark.parametrize("level", ["O0", "O2", None])
@pytest.mark.parametrize(("type_", "suffix", "close"), [("float", "f", 2e-6), ("long double", "l", 1e-13)])
def test_complex_functions_of_floats_and_long_doubles(type_: str, suffix: str, close: float, level: str | None) -> None:
    """Against the same functions of `double complex`, whose rules have their own tests."""
    x = np.array([0.6, 0.35, 0.45, 0.8])
    library = [irgrad.load(COMPLEX.format(*names), opt=level) for names in ((type_, suffix), ("double", ""))]
    kernel, plain = (one.kernel("f", "void(f64[4] x, out f64[2] y)") for one in library)
    np.testing.assert_allclose(kernel(x), plain(x), rtol=close)
    want = irgrad.jacrev(plain)(x)
    np.testing.assert_allclose(irgrad.jacrev(kernel)(x), want, rtol=5 * close, atol=close)
    np.testing.assert_allclose(irgrad.jacfwd(kernel)(x), want, rtol=5 * close, atol=close)
    value = irgrad.jvp(kernel, (x,), (np.ones(4),))[0]
    np.testing.assert_array_equal(value, kernel(x))


def test_projection_of_infinite_numbers() -> None:
    source = ("#include <complex.h>\n#include <math.h>\n"
              "double f(double a, double b) { double complex z = cproj(__builtin_complex(a, b)); "
              "return isinf(creal(z)) ? cimag(z) * a : creal(z) * creal(z) + cimag(z); }")
    kernel = irgrad.load(source).kernel("f")
    assert irgrad.grad(kernel, argnums=(0, 1))(3.0, 2.0) == (6.0, 1.0)
    assert irgrad.grad(kernel, argnums=(0, 1))(np.inf, 2.0)[1] == 0


def test_scalb() -> None:
    source = "double scalb(double, double); double f(double x, double n) { return scalb(x, n) * x; }"
    kernel = irgrad.load(source).kernel("f")
    assert kernel(3.0, 2.0) == 36
    assert irgrad.grad(kernel)(3.0, 2.0) == 24
    assert np.isnan(kernel(3.0, 1.5)) and np.isnan(irgrad.value_and_grad(kernel)(3.0, 1.5)[0])
    assert irgrad.value_and_grad(kernel)(3.0, -2000.0)[0] == 0


@pytest.mark.parametrize("level", ["O0", "O2", None])
def test_a_struct_by_value_of_a_function_elsewhere(level: str | None) -> None:
    """The C library finds it on the stack, in derivatives too."""
    source = """#include <complex.h>
double f(const double *x, long n) { long double complex z = 2 + n * I;
  return x[0] * x[0] * (double)creall(cexpl(z)); }"""
    kernel = irgrad.load(source, opt=level).kernel("f", "f64(f64[n] x, i64 n)")
    x = np.array([1.5, 2, 3])
    value, gradient = irgrad.value_and_grad(kernel)(x)
    assert value == kernel(x) == pytest.approx(2.25 * np.exp(2) * np.cos(3))
    np.testing.assert_allclose(gradient, [3 * np.exp(2) * np.cos(3), 0, 0])
