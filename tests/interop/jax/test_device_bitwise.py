"""Forty kernels as kernels of a device, thread by thread on the host: bit by bit the CPU's batch, in value, gradient,
tangent and second derivative, where no operation may change its place (`strict_fp`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import on_grid
from handwritten.cases import HEADER, Case, all_cases

import irgrad
from irgrad.engine.grids import grid, grid_text

pytestmark = pytest.mark.long
jax.config.update("jax_enable_x64", True)

NAMES = """
straight branch branch_else branch_store select_kink switch_data switch_table phi_swap fibonacci_phi
three_phi_rotate counted counted_down strided do_while break_data break_twice continue_data early_return
return_in_nest goto_forward goto_loop goto_out_of_nest triangular triangular_depth3 counted_inside_dynamic
two_inductions powers_of_two short_circuit loop_with_two_latches argmax inplace_product inplace_product_sum
inplace_backward inplace_far inplace_scatter prefix_sum reverse_inplace transpose_inplace bubble_sort lu_pivot
burgers_swapped swap_heap alias_x_and_x1 malloc_in_loop
""".split()
CASES = {case.name: case for case in all_cases() if case.name in NAMES}


def _all_of(case: Case) -> tuple[Callable[..., Any], list[Any]]:
    """Values, gradients, tangents and tangents of the gradients of a kernel; three samples."""
    kernel = irgrad.load(HEADER + case.source).kernel(case.name, case.signature, strict_fp=True)
    inputs, names = case.inputs(), [p.name for p in kernel.signature.arguments]
    floats = [name for name in names if np.asarray(inputs[name]).dtype.kind == "f"]

    def values(*given: Any) -> tuple[Any, ...]:
        full = {**inputs, **dict(zip(floats, given, strict=True))}
        rows = [full[name] if name in floats or np.ndim(full[name]) else int(full[name]) for name in names]
        return tuple(o for o in jax.tree.leaves(kernel(*rows)) if o.dtype.kind == "f")

    def gradients(*given: Any) -> Any:
        out, pullback = jax.vjp(values, *given)
        return pullback(tuple(jnp.asarray(np.cos(np.arange(o.size)).reshape(o.shape), o.dtype) for o in out))

    def whole(*given: Any) -> Any:
        return jax.jvp(values, given, given), jax.jvp(gradients, given, given)

    samples = [np.stack([np.asarray(inputs[name]) * f for f in (1, 0.99, 1.01)]).astype(np.asarray(inputs[name]).dtype)
               for name in floats]  # fmt: skip
    return jax.vmap(whole), samples


@cache
def _on_the_cpu(name: str) -> tuple[Callable[..., Any], list[Any], Any]:
    function, samples = _all_of(CASES[name])
    return function, samples, jax.jit(function)(*samples)


def _same(name: str, threads: int = 2) -> bool:
    function, samples, wanted = _on_the_cpu(name)
    with on_grid(threads) as made:
        got = jax.jit(function)(*samples)
    assert made
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def test_there_are_forty() -> None:
    assert len(CASES) >= 40 and set(CASES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_bit_by_bit_the_cpu(name: str) -> None:
    assert _same(name)


@pytest.mark.parametrize(
    ("module", "function", "found", "planted", "kernel"),
    [
        (grid_text, "sample_text", 'number = "%row" if slot.per_thread else "%sample"', 'number = "0"', "straight"),
        (grid_text, "_row", "row = digit if not row", 'row = "0" if not row', "straight"),
        (grid_text, "_thread_text", 'w.add(first, w.mul(turn, step))', 'w.add(first, turn)', "straight"),
    ],
)
def test_a_wrong_index_is_caught(
    module: Any, function: str, found: str, planted: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another index planted in the generator: of a sample's row, of its inputs, of a thread's samples."""
    source, space = inspect.getsource(getattr(module, function)), dict(vars(module))
    assert found in source
    exec(source.replace(found, planted), space)
    monkeypatch.setattr(module, function, space[function])
    if hasattr(grid, function):
        monkeypatch.setattr(grid, function, space[function])
    assert not _same(kernel)
