"""Functions written with `Code`, as bodies of rules write them, run as machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.differentiate.custom_rules.symbols import Code
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Module, Value
from irgrad.engine.ir.printer import to_text


def coded(body: Callable[[Code, list[Value]], None], *buffers: np.ndarray) -> None:
    """Run what `body` writes; it gets the pointers to the buffers."""
    module = Module()
    fn = module.functions["g"] = Function("g", ty.function(ty.VOID, (ty.PTR,) * len(buffers)))
    unit: Any = SimpleNamespace(module=module, flags=())
    unit.declare = partial(Unit.declare, unit)
    code = Code(unit, fn)
    first = code.b.block
    body(code, list(fn.args))
    code.b.ret()
    code.before.br(first)
    run = compile_module(to_text(module), ["g"], cache=False).function("g", None, *[ctypes.c_void_p] * len(buffers))
    run(*(ctypes.c_void_p(buffer.ctypes.data) for buffer in buffers))


def writer_of(code: Code, mode: str, **options: Any) -> Any:
    """What stands for a writer, for arguments of bodies: nothing is overwritten, and there is one lane."""
    given = {"overwritten": lambda position, when: False, "lanes": False, "width": 1,
             "site": SimpleNamespace(rule=SimpleNamespace(place="here.py:1"))}  # fmt: skip
    return SimpleNamespace(code=code, mode=mode, **{**given, **options})
