"""Calls outside of every transformation: the second one of a kind goes straight to compiled code.

Checking arguments, binding extents and looking up a program is work in Python for each call. Where nothing is traced
and the arguments are arrays of JAX and Python numbers, `jax.jit` remembers the answer, by shapes, dtypes and the values
of integers, in native code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, update_wrapper
from typing import Any

import jax
from jax.extend.core import get_opaque_trace_state

from irgrad.engine.kernel.kernel import Kernel
from irgrad.rules.layers import token

__all__ = ["compiled_call"]


def _untraced() -> tuple[Any, type]:
    """JAX's state where nothing is traced, and the type of its arrays there: those of a thread which has just begun.
    This module may well be imported while JAX traces."""
    found: list[tuple[Any, type]] = []
    thread = threading.Thread(target=lambda: found.append((get_opaque_trace_state(), type(jax.numpy.zeros(())))))
    thread.start()
    thread.join()
    return found[0]


_UNTRACED, _ARRAY = _untraced()


def compiled_call(kernel: Kernel, values: Sequence[Any], function: Callable[..., Any]) -> Callable[..., Any] | None:
    """`jit` of `function(kernel, *values)`, with Python integers as constants; None where something is traced, or where
    a value is neither an array of JAX nor a Python number."""
    kinds = tuple(map(type, values))
    for kind in kinds:
        if kind is not _ARRAY and kind is not float and kind is not int:
            return None
    if get_opaque_trace_state() != _UNTRACED:
        return None
    return _jitted(kernel, kinds, token(), function)


@lru_cache(maxsize=1024)
def _jitted(kernel: Kernel, kinds: tuple[type, ...], _: Any, function: Callable[..., Any]) -> Callable[..., Any] | None:
    signature = kernel.signature
    extents = {name for p in signature.parameters for e in p.shape or () for name in e.names()}
    constants = []
    for number, (p, kind) in enumerate(zip(signature.arguments, kinds, strict=True)):
        sizes = not p.is_array and p.name in extents
        if sizes if kind is _ARRAY else p.is_array:
            return None  # a value that determines shapes; or an error, to be raised where the user called
        if kind is int and not p.dtype.is_float:
            constants.append(number)
    called = partial(function, kernel)
    update_wrapper(called, kernel, updated=())  # what JAX names in messages, profiles and code
    compiled: Callable[..., Any] = jax.jit(called, static_argnums=tuple(constants))
    return compiled
