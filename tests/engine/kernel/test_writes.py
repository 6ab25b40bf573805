"""What is declared `in` is never written: a store is an error that names it, code without a body gets a copy."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import irgrad
from irgrad import engine

STORE = """double f(double *x, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) { x[i] *= 2; s += x[i]; }
  return s;
}"""


def test_a_store_is_an_error_that_names_it() -> None:
    """When the kernel is made; where only points-to analysis tells, at the first call."""
    x = np.array([1.0, 2.0])
    hidden = STORE.replace("double *x", "double *a").replace("{", "{ double *x = n > 5 ? a + 1 : a;", 1)
    late = irgrad.load(hidden).kernel("f", "f64(f64[n] x, i64 n)")
    made = lambda: irgrad.load(STORE).kernel("f", "f64(f64[n] x, i64 n)")  # noqa: E731
    for call in (made, lambda: late(x), lambda: engine.grad(late)(x)):
        with pytest.raises(irgrad.SignatureError) as caught:
            call()
        for words in ("`x` is declared `in`, and the function writes to it", "@f (<string>:3", "inout f64[n] x"):
            assert words in str(caught.value), str(caught.value)
    assert x.tolist() == [1.0, 2.0]
    inout = irgrad.load(STORE).kernel("f", "f64(inout f64[n] x, i64 n)")
    value, after = inout(x)
    assert (value, after.tolist(), x.tolist()) == (6.0, [2.0, 4.0], [1.0, 2.0])


@pytest.mark.parametrize("body", ["memset(x, 0, 8 * n);", "memcpy(x, x + n / 2, 8);", "poke(x + 1, n);"])
def test_stores_by_other_names(body: str) -> None:
    helper = "__attribute__((noinline)) static void poke(double *x, long n) { x[0] = n; }"
    source = f"#include <string.h>\n{helper}\ndouble f(double *x, long n) {{ {body} return x[0]; }}"
    kernel = irgrad.load(source).kernel("f", "f64(f64[n] x, i64 n)")
    with pytest.raises(irgrad.SignatureError, match="is declared `in`, and the function writes to it"):
        kernel(np.ones(4))


def test_reading_and_local_copies_are_fine() -> None:
    source = "double f(const double *x) { double t[2] = {x[0], x[1]}; t[1] *= 3; double *p = t; return p[0] * p[1]; }"
    kernel = irgrad.load(source).kernel("f", "f64(f64[2] x)")
    assert engine.grad(kernel)(np.array([2.0, 5.0])).tolist() == [15.0, 6.0]


CHOSEN = """
double f(const double *x, long n, long k) {
  double t[8] = {5, 5}; double *p[2] = {(double *)x, t};
  for (long i = 0; i < k; i++) p[i & 1][i / 2] = 7;
  return x[0] * x[1] + t[0];
}
"""
UNSEEN = """
void *memfrob(void *, unsigned long);  /* of the C library: turns bits of each byte */
double f(const double *x, int *k, int n) {
  double s = 0;
  memfrob(k, 4 * n);
  for (int i = 0; i < n; i++) s += x[i] * (k[i] & 255);
  return s;
}
"""


def test_what_may_be_written_is_a_copy() -> None:
    """A pointer that is the argument or a local array: nobody can tell, and the caller's array stays as it is."""
    kernel = irgrad.load(CHOSEN).kernel("f", "f64(f64[n] x, i64 n, i64 k)")
    x = np.array([2.0, 3.0])
    assert (kernel(x, 1), kernel(x, 0), kernel(x, 2)) == (26.0, 11.0, 28.0)
    assert engine.grad(kernel, wrt="x")(x, 1).tolist() == [0.0, 7.0]
    assert engine.jvp(kernel, (x, 1), (np.array([1.0, 1.0]), None))[1] == 7.0
    assert x.tolist() == [2.0, 3.0]
    with jax.enable_x64(True):
        given = jax.numpy.asarray(x)
        assert jax.jit(lambda v: kernel(v, 1))(given) == 26.0
        assert jax.grad(lambda v: kernel(v, 1))(given).tolist() == [0.0, 7.0]
        assert given.tolist() == [2.0, 3.0]


def test_code_that_nobody_sees_gets_a_copy() -> None:
    kernel = irgrad.load(UNSEEN).kernel("f", "f64(f64[n] x, i32[n] k, i32 n)")
    x, k = np.array([2.0, 3.0]), np.array([0, 43], np.int32)
    assert kernel(x, k) == 2 * 42 + 3 * 1
    assert k.tolist() == [0, 43]


def test_a_copy_needs_an_extent() -> None:
    kernel = irgrad.load(CHOSEN).kernel("f", "f64(f64[m] x, i64 n, i64 k)")
    with pytest.raises(irgrad.SignatureError, match="`m` is no C parameter"):
        kernel(np.ones(2), 2, 1)


ELEMENTS = """
#include <string.h>
static double last(const double *p, long n) { return p[n - 1]; }
double f(const double *x, const int *k, double *w, long n) {
  const double *y = n > 3 ? x : x + 1;
  for (long i = 0; i < n; i++) w[i] = k[i];
  return last(y, n - 1) * w[0];
}
double raw(const char *x, long n) { double v; memcpy(&v, x + 8 * (n - 1), 8); return v; }
"""


@pytest.mark.parametrize("opt", [None, "O0", "O2"])
@pytest.mark.parametrize(("signature", "name", "used"), [
    ("f64(f32[n] x, i32[n] k, out f64[n] w, i64 n)", "x", "f64"),
    ("f64(i64[n] x, i32[n] k, out f64[n] w, i64 n)", "x", "f64"),
    ("f64(f64[n] x, f32[n] k, out f64[n] w, i64 n)", "k", "i32"),
    ("f64(f64[n] x, i32[n] k, out u64[n] w, i64 n)", "w", "f64"),
])  # fmt: skip
def test_elements_of_another_type(opt: str | None, signature: str, name: str, used: str) -> None:
    kernel = irgrad.load(ELEMENTS, opt=opt).kernel("f", signature)
    arrays = [np.ones(5, p.dtype.numpy) for p in kernel.signature.arguments if p.intent == "in" and p.is_array]
    with pytest.raises(irgrad.SignatureError) as caught:
        kernel(*arrays)
    for words in (f"the elements of `{name}` are no", f"the function uses them as `{used}`", "<string>:"):
        assert words in str(caught.value), str(caught.value)


def test_the_right_elements_and_bytes() -> None:
    library = irgrad.load(ELEMENTS)
    kernel = library.kernel("f", "f64(f64[n] x, i32[n] k, out f64[n] w, i64 n)")
    value, w = kernel(np.arange(5.0), np.full(5, 3, np.int32))
    assert (value, w.tolist()) == (9.0, [3.0] * 5)
    assert library.kernel("raw", "f64(u8[8*n] x, i64 n)")(np.arange(3.0).view(np.uint8)) == 2.0


def test_an_output_that_is_only_read() -> None:
    kernel = irgrad.load("double f(const double *x, const double *w) { return x[0] * w[0]; }").kernel(
        "f", "f64(f64[1] x, out f64[1] w)")
    with pytest.raises(irgrad.SignatureError, match=r"`w` is declared `out`, and the function only reads it"):
        kernel(np.ones(1))
