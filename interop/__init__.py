"""The top floor: loaders, bridges to other systems, the command line. See `irgrad` for the public names.

`irgrad.interop.jax`, `irgrad.interop.torch` and `irgrad.interop.loaders` are imported when they are asked for; a bridge
also when the first value of its library meets a Kernel.
"""

from __future__ import annotations

import importlib
from typing import Any

from irgrad.engine.support.foreign import BRIDGES

_PACKAGES = ("jax", "loaders", "tensorflow", "torch")


def _jax() -> Any:
    import irgrad.interop.jax as bridge

    return bridge


def _torch() -> Any:
    import irgrad.interop.torch as bridge

    return bridge


def _tensorflow() -> Any:
    import irgrad.interop.tensorflow as bridge

    return bridge


BRIDGES.update(jax=_jax, torch=_torch, tensorflow=_tensorflow)


def __getattr__(name: str) -> Any:
    """Import a package of this floor on first use. Raises AttributeError for a name that is none of them."""
    if name not in _PACKAGES:
        raise AttributeError(f"module 'irgrad.interop' has no attribute {name!r}")
    return importlib.import_module(f"irgrad.interop.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PACKAGES])
