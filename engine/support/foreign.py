"""How a Kernel recognises the values of array libraries that differentiate or trace by themselves, without importing
any: a library that is not imported yet cannot have made a value.

The bridges are modules of the floor above, which says how to import them; that happens when the first value arrives.
`torch.compile` traces through this, and follows import statements only.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irgrad.rules.errors import Unsupported

__all__ = ["BRIDGES", "bridge_for", "bridge_function"]

BRIDGES: dict[str, Callable[[], Any]] = {}
"""By library: a function that imports the bridge. Filled by `irgrad.interop`."""
_PLAIN = frozenset((int, float, bool))
_KNOWN: dict[type, Callable[..., Any]] = {}


def bridge_for(values: Iterable[Any]) -> Callable[..., Any] | None:
    """The bridge's `call(kernel, args, kwargs)` when one of the values (or of those in lists) belongs to its library,
    else None."""
    for value in values:
        kind = type(value)
        known = _KNOWN.get(kind)
        if known is not None:
            return known
        if kind in _PLAIN or kind.__module__ == "numpy":
            continue
        if kind is list or kind is tuple:
            found = bridge_for(value)
            if found is not None:
                return found
            continue
        if not BRIDGES:
            importlib.import_module("irgrad.interop")
        for library, load in BRIDGES.items():
            if library in sys.modules:
                bridge = load()
                if bridge.owns(value):
                    _KNOWN[kind] = bridge.call
                    return _KNOWN[kind]
    return None


def bridge_function(values: Sequence[Any], name: str) -> Callable[..., Any] | None:
    """The function `name` of the bridge to whose library one of the values belongs, None where they belong to none.

    Raises Unsupported where that bridge has no such function.
    """
    if bridge_for(values) is None:
        return None
    for library, load in BRIDGES.items():
        if library in sys.modules and any(load().owns(value) for value in values):
            function: Callable[..., Any] | None = getattr(load(), name, None)
            if function is None:
                raise Unsupported(f"`{name}` does not take values of {library}",
                                  because="derivatives would not flow through it",
                                  fix="pass NumPy arrays or values of JAX   or   map the kernel")  # fmt: skip
            return function
    return None
