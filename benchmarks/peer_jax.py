"""JAX's derivative of a case: `jax.jit` of what a user of JAX calls, on one thread and in float64."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import Case


def one_thread() -> None:
    """Environment for a single-threaded XLA; without effect once JAX has started."""
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if flags not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    os.environ.setdefault("NPROC", "1")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


def derivative(case: Case, data: dict[str, Any]) -> Callable[[], list[Any]]:
    """A call without arguments that returns the derivatives in the order of irgrad's, ready on return."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from benchmarks import jax_models

    assert case.jax is not None
    model = getattr(jax_models, case.jax)
    names = list(inspect.signature(model).parameters)
    # Sizes are static, and so is the skeleton of the hand: its parents are walked in Python.
    static = {n: data[n] for n in names if np.isscalar(data[n]) or n == "parents"}
    passive = {n: jax.device_put(data[n]) for n in names if n not in static and n not in case.wrt}
    active = tuple(jax.device_put(data[n]) for n in case.wrt)
    seeds = tuple(jax.device_put(data[n]) for n in case.seeds)

    def f(active: tuple[Any, ...], passive: dict[str, Any]) -> Any:
        return model(**dict(zip(case.wrt, active, strict=True)), **passive, **static)

    def rows(active: tuple[Any, ...], passive: dict[str, Any], _: Any) -> Any:
        jacobian = jax.jacrev(jax_models.ba_one, argnums=(0, 1, 2))
        return jax.vmap(jacobian, out_axes=1)(*active, passive["features"])

    operations: dict[str, Callable[..., Any]] = {
        "grad": lambda a, p, _: jax.grad(f)(a, p),
        "vjp": lambda a, p, w: jax.vjp(lambda a: f(a, p), a)[1](w)[0],
        "jvp": lambda a, p, t: jax.jvp(lambda a: f(a, p), (a,), (t,))[1],
        "jacfwd": lambda a, p, _: jax.jacfwd(f)(a, p),
        "hvp": lambda a, p, v: jax.jvp(lambda a: jax.grad(f)(a, p), (a,), (v,))[1],
        "rows": rows,
    }
    compiled = jax.jit(operations[case.operation])

    def call() -> list[Any]:
        return list(jax.block_until_ready(compiled(active, passive, seeds)))

    return call
