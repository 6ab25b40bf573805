"""Handlers are IR that LLVM accepts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad.engine.codegen.llvm import parse
from irgrad.interop.jax.handler import TARGETS, handler_text, register

jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("slots", [0, 1, 7])
def test_llvm_accepts_it(slots: int) -> None:
    module = parse(handler_text("h.x", "irgrad.entry.f", slots) + "declare ptr @irgrad.entry.f(ptr)\n")
    assert "h.x" in {f.name for f in module.functions if not f.is_declaration}


def test_names_are_digests_and_registered_once() -> None:
    program = sample("product").primal
    assert register(program) == register(program) == f"irgrad.product.{program.key[:32]}"


ALONE = irgrad.load("""
static volatile int inside;
static double work[4];
double others(double x) {                               /* how many calls run beside this one */
  int before = inside++;
  for (volatile int i = 0; i < 1000000; i++) ;
  inside--;
  return x * before;
}
double squares(const double *x, long n) {               /* by way of memory that all calls share */
  double s = 0;
  for (long i = 0; i < n; i++) work[i] = x[i] * x[i];
  for (long i = 0; i < n; i++) s += work[i];
  return s;
}
""")


@pytest.mark.parametrize("batch", [False, True])
def test_functions_with_global_variables_take_turns(batch: bool) -> None:
    kernel = ALONE.kernel("others")
    call: Any = jax.jit(jax.vmap(kernel) if batch else kernel)
    x, seen = jnp.ones(3) if batch else jnp.float64(1), list[float]()
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        seen.extend(float(jnp.sum(call(x))) for _ in range(5))

    call(x)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [0.0] * 20


def test_only_those_take_turns() -> None:
    kernel, x = ALONE.kernel("squares", "f64(f64[n] x, i64 n)"), jnp.array([1.0, 2.0])
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.value_and_grad(kernel)))(jnp.stack([x, 3 * x]))[1], [2 * x, 6 * x])
    np.testing.assert_allclose(jax.hessian(kernel)(x), 2 * np.eye(2))
    assert "@irgrad.turn =" in TARGETS[register(kernel.primal)].text
    assert "@irgrad.turn" not in TARGETS[register(sample("cubes").primal)].text


def test_second_derivatives_of_programs_that_keep_data() -> None:
    """Layers with virtual methods: shadows of what leads to their methods are variables, so that calls take turns."""
    path = Path(__file__).parents[2] / "cpp_styles" / "layers.cpp"
    kernel = irgrad.load(path, flags=["-std=c++20"]).kernel("loss", "f64(f64[n] x, i64 n)")
    x, v = np.array([0.5, 0.3, 1.2, 0.7, 0.9, 0.4]), np.array([0.3, -0.2, 0.5, 0.1, -0.4, 0.6])
    found = jax.jvp(jax.grad(lambda a: kernel(a)), (x,), (v,))[1]
    np.testing.assert_allclose(found, irgrad.hvp(kernel, (x,), v), rtol=1e-13)
