"""Derivatives of small C programs in normal form, as IR and as machine code, for the tests of the transforms.

A root is a C function that takes pointers only and returns nothing; `restrict` and `noalias` are not needed, since
buffers of a root never overlap.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from analysed import ir_of

from irgrad.engine.differentiate.roots import Derived
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.ir.model import Function, Instruction, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.pipeline.derivatives import derive

HEADER = "#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n#define NOINLINE __attribute__((noinline))\n"


@dataclass
class Made:
    """A derivative: its module, its name, its scratch arguments."""

    module: Module
    derived: Derived

    @property
    def function(self) -> Function:
        """The derivative itself."""
        return self.module.functions[self.derived.name]

    @cached_property
    def text(self) -> str:
        """The module with the runtime, ready for machine code."""
        from irgrad.engine.pipeline.derivatives import link_runtime

        return link_runtime(to_text(self.module))

    @cached_property
    def unit(self) -> Any:
        """Machine code."""
        from irgrad.engine.codegen.jit import compile_module
        from irgrad.engine.kernel.normal_form import entry_name, entry_text

        name = self.derived.name
        text = self.text + "\n" + entry_text(name, len(self.function.args))
        extra = [n for n in ("irgrad_tape_drain", "irgrad_tape_bytes") if f"@{n}()" in text]
        return compile_module(text, [entry_name(name), *extra], cache=False)

    def __call__(self, *buffers: Any) -> None:
        """Run on one array per parameter."""
        from irgrad.engine.kernel.normal_form import entry_name

        entry = self.unit.function(entry_name(self.derived.name), None, ctypes.c_void_p)
        frame = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))
        entry(ctypes.addressof(frame))

    def tape_bytes(self) -> int:
        """The largest tape of one call since this was last asked; 0 without a tape."""
        if "@irgrad_tape_bytes" not in self.text:
            return 0
        return int(self.unit.function("irgrad_tape_bytes", ctypes.c_int64)())

    def calls(self, callee: str) -> list[Instruction]:
        """Calls to a function of that name (or that begins with it and a dot) in all functions of the module."""
        found = []
        for fn in self.module.functions.values():
            for instr in fn.instructions():
                if instr.is_call and isinstance(instr.callee, Function):
                    name = instr.callee.name or ""
                    if name == callee or name.startswith(f"{callee}."):
                        found.append(instr)
        return found


def module_of(source: str, name: str, *flags: str, prepared: bool = True) -> Module:
    """A C program (or IR text) as a module, prepared as loaders and kernels do it."""
    from irgrad.engine.codegen.prepare import prepare

    text = source if "define " in source else ir_of(HEADER + source, flags)
    return read(prepare(text, [name]) if prepared else text, roots=[name])


def make(source: str, name: str, mode: str, args: Sequence[str], *flags: str, **options: Any) -> Made:
    """Differentiate a function of a C program (or IR text)."""
    module = module_of(source, name, *flags)
    return Made(module, derive(module, asked(name, mode, args, **options), options.get("rules")))


def asked(name: str, mode: str, args: Sequence[str], **options: Any) -> Request:
    """A request for the derivative in one piece, `discard` (those whose values nobody asks for) included."""
    options.pop("rules", None)
    discard = tuple(options.pop("discard", ()))
    whole, without = ("jvp", "jvp_only") if mode == "forward" else ("vjp", "pullback")
    elements = tuple(options.pop("buffers", ()))
    return Request(name, without if discard else whole, tuple(args), elements, discard=discard, **options)  # type: ignore[arg-type]


def gradient(source: str, name: str, active: str, *buffers: Any, **options: Any) -> tuple[list[Any], Made]:
    """Shadows after a reverse run, for the parameters marked `d` in `active` (`c`: const).

    A float buffer that is all NaN is an output: it starts from zero and its shadow from one. Returns the shadows.
    """
    made = make(source, name, "reverse", ["dup" if a == "d" else "const" for a in active], **options)
    frame: list[Any] = []
    shadows = []
    for i, (a, given) in enumerate(zip(active, buffers, strict=True)):
        value = np.array(given)
        out = value.dtype.kind == "f" and np.isnan(value).all()
        frame.append(np.zeros_like(value) if out else value)
        if a == "d" or i in made.derived.scratch:
            frame.append(np.ones_like(value) if out else np.zeros_like(value))
            if a == "d":
                shadows.append(frame[-1])
    made(*frame)
    return shadows, made


OUT = np.array([np.nan])
