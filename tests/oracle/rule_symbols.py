"""Functions that the tables know and this C library lacks, made from their definitions so that rules can be run."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

from irgrad.engine.codegen.llvm import binding
from irgrad.engine.codegen.symbols import resolve

DEFINED: dict[str, Callable[[float], float]] = {
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sinpi": lambda x: math.sin(math.pi * x),
    "cospi": lambda x: math.cos(math.pi * x),
    "tanpi": lambda x: math.tan(math.pi * x),
    "asinpi": lambda x: math.asin(x) / math.pi,
    "acospi": lambda x: math.acos(x) / math.pi,
    "atanpi": lambda x: math.atan(x) / math.pi,
}
_KEPT: list[object] = []


def provide() -> None:
    """Give the functions addresses that compiled code finds; they stay for the life of the process."""
    for name, body in DEFINED.items():
        for suffix, real in (("", ctypes.c_double), ("f", ctypes.c_float)):
            if not resolve(name + suffix):
                function = ctypes.CFUNCTYPE(real, real)(body)
                _KEPT.append(function)
                binding().add_symbol(name + suffix, ctypes.cast(function, ctypes.c_void_p).value)
