"""Thread-local variables of kernels are variables of the process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.thread_locals import as_shared

TEXT = """
@own = internal thread_local(initialexec) unnamed_addr global i64 5, align 8
@"odd name" = linkonce_odr thread_local global [2 x i64] zeroinitializer
@theirs = external thread_local global i64
declare nonnull ptr @llvm.threadlocal.address.p0(ptr nonnull)
declare i32 @__cxa_thread_atexit(ptr, ptr, ptr)
define i64 @f() {
  %a = call align 8 ptr @llvm.threadlocal.address.p0(ptr align 8 @own)
  %b = tail call ptr @llvm.threadlocal.address.p0(ptr nonnull @"odd name")
  %c = call ptr @llvm.threadlocal.address.p0(ptr @theirs)
  %r = call i32 @__cxa_thread_atexit(ptr null, ptr %a, ptr null)
  %x = load i64, ptr %a
  ret i64 %x
}
"""


@pytest.mark.parametrize("more", ["", "declare i32 @__cxa_atexit(ptr, ptr, ptr)\n"])
def test_definitions_are_shared_and_declarations_are_not(more: str) -> None:
    found = as_shared(TEXT + more)
    parse(found).verify()
    assert "@own = internal unnamed_addr global i64 5" in found
    assert '@"odd name" = linkonce_odr global' in found
    assert "@theirs = external thread_local global" in found
    assert found.count("@llvm.threadlocal.address.p0(") == 2  # the declaration, and the one of others
    assert "__cxa_thread_atexit" not in found


def test_other_modules_are_as_they_were() -> None:
    text = "@own = internal global i64 5\n"
    assert as_shared(text) is text


SOURCE = """
#include <vector>
static thread_local std::vector<double> work;
thread_local double scale = 2;
extern "C" double f(const double *x, long n) {
  static thread_local double rows[64];
  if ((long)work.size() < n) work.resize(n);
  for (long i = 0; i < n; i++) { work[i] = x[i] * x[i] * scale; rows[i] = work[i] * x[0]; }
  double s = 0;
  for (long i = 0; i < n; i++) s += work[i] * rows[n - 1 - i];
  return s;
}
"""


def test_workspaces_of_a_thread() -> None:
    kernel = irgrad.load(SOURCE, language="c++").kernel("f", "f64(f64[n] x, i64 n)")
    x = np.array([0.5, -0.3, 1.2, 0.7])
    value = sum(4 * a * a * b * b * x[0] for a, b in zip(x, x[::-1], strict=True))
    assert kernel(x) == pytest.approx(value, rel=1e-14)
    gradient = engine.grad(kernel)
    want = 16 * x[0] * x * x[::-1] ** 2
    want[0] += value / x[0]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(gradient, [x] * 40):
            np.testing.assert_allclose(found, want, rtol=1e-13)
    np.testing.assert_allclose(engine.jvp(kernel, (x,), (x,))[1], want @ x, rtol=1e-13)
    np.testing.assert_allclose(engine.batch_grad(kernel)(np.tile(x, (8, 1))), np.tile(want, (8, 1)), rtol=1e-13)


@pytest.mark.long
def test_under_jax() -> None:
    import jax

    kernel = irgrad.load(SOURCE, language="c++").kernel("f", "f64(f64[n] x, i64 n)")
    rows = np.random.default_rng(3).standard_normal((6, 4))
    want = engine.batch_grad(kernel)(rows)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(kernel)))(rows), want, rtol=1e-13)
