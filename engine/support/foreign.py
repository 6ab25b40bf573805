"""How a Kernel recognises the values of array libraries that differentiate or trace by themselves, without importing
any: a library that is not imported yet cannot have made a value.

The bridge of a library is a module of the floor above, found by name when the first of its values arrives.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

__all__ = ["bridge_for"]

_BRIDGES = {"jax": "irgrad.interop.jax"}
_PLAIN = frozenset((int, float, bool, list, tuple))


def bridge_for(values: Iterable[Any]) -> Callable[..., Any] | None:
    """The bridge's `call(kernel, args, kwargs)` when one of the values belongs to its library, else None."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN or kind.__module__ == "numpy":
            continue
        for library, home in _BRIDGES.items():
            if library in sys.modules:
                bridge = _module(home)
                if bridge.owns(value):
                    call: Callable[..., Any] = bridge.call
                    return call
    return None


@cache
def _module(home: str) -> Any:
    return importlib.import_module(home)
