"""Comparisons of floats for equality: where they are equal, the derivative is that of the special case alone.

`if (x == 2.0) return 4.0;` has derivative 0 at 2. That is right of the program as it is written, and seldom meant.
Tests for NaN and infinity, and comparisons of converted integers, are none.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from math import isfinite

import numpy as np

from irgrad.engine.codegen import symbols
from irgrad.engine.codegen.cache import fingerprint
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import (
    Constant,
    ConstFloat,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.run import Run

__all__ = ["equality_tests", "special_cases"]

_MOST = 4096
_TINY = {"f64": 2.0**-26, "f32": 2.0**-12, "f16": 2.0**-5, "bf16": 2.0**-4}
"""How far beside is, relative to an element and to the largest."""
_COUNTS = "irgrad.equal"
_counts = np.zeros(_MOST, np.int64)
_lock = threading.Lock()


def equality_tests(module: Module) -> dict[tuple[str, str], list[Instruction]]:
    """The comparisons of floats for equality, by function and by `file.c:12:7`."""
    found: dict[tuple[str, str], list[Instruction]] = {}
    for fn in module.functions.values():
        for instr in fn.instructions():
            if instr.opcode == "fcmp" and instr.pred[1:] in ("eq", "ne") and _may_meet(*instr.operands):
                where = locate(module, instr)
                if where:
                    found.setdefault((fn.name or "?", where), []).append(instr)
    return found


def _may_meet(first: Value, second: Value) -> bool:
    """Whether two floats differ almost everywhere, and may be equal."""
    loaded = [v.operands[0] for v in (first, second) if isinstance(v, Instruction) and v.opcode == "load"]
    if first is second or (len(loaded) == 2 and loaded[0] is loaded[1]):
        return False
    if any(isinstance(v, ConstFloat) and not isfinite(v.value) for v in (first, second)):
        return False
    return not all(map(_whole, (first, second)))


def _whole(value: Value) -> bool:
    """A constant, or an integer as a float."""
    return isinstance(value, Constant) or (isinstance(value, Instruction) and value.opcode in ("sitofp", "uitofp"))


def special_cases(kernel: Kernel, bound: Bound, positions: tuple[int, ...], seed: int = 0) -> tuple[str, ...]:
    """`file.c:12:7 in @f` of the comparisons that find equal values at these arguments, and fewer of them at arguments
    that differ in the last digits: equal is what depends on the arguments there.

    The primal runs twice, with a counter at each comparison.
    """
    module = read(kernel.source.text, roots=[kernel.name])
    tests = {key: [i for i in rows if not i.type.is_vector] for key, rows in equality_tests(module).items()}
    names = [key for key, rows in tests.items() if rows][:_MOST]
    if not names:
        return ()
    _count(module, {instr: number for number, key in enumerate(names) for instr in tests[key]})
    text = to_text(module)
    program = Program(replace(kernel.source, text=text, digest=fingerprint(text)))
    rng = np.random.default_rng(seed)
    beside = list(bound.buffers)
    for i in positions:
        start = bound.buffers[i]
        if start is not None:
            wide = start.astype(np.float64)
            scale = np.abs(wide) + (np.max(np.abs(wide), initial=0.0) or 1.0)
            tiny = _TINY[kernel.signature.parameters[i].dtype.name] * scale
            beside[i] = np.asarray(wide + rng.uniform(0.5, 1.0, wide.shape) * tiny, start.dtype)
    with _lock:
        here, there = (_counted(program, buffers, bound) for buffers in (bound.buffers, beside))
    return tuple(f"{where} in @{name}" for (name, where), a, b in zip(names, here, there, strict=False) if a > b)


def _counted(program: Program, buffers: list[np.ndarray | None], bound: Bound) -> list[int]:
    symbols.define(_COUNTS, _counts.ctypes.data)
    _counts[:] = 0
    copied = Bound([None if b is None else b.copy() for b in buffers], bound.sizes)
    Run(program, copied, {})({})
    return [int(n) for n in _counts]


def _count(module: Module, numbers: dict[Instruction, int]) -> None:
    """Adds one to the counter of a comparison each time it finds equal values."""
    counts = GlobalVariable(_COUNTS, ty.array(_MOST, ty.I64), None, False, "external")
    module.globals[_COUNTS] = counts
    blocks = {instr.block for instr in numbers}
    for block in blocks:
        assert block is not None
        old, block.instructions = block.instructions, []
        b = Builder(block)
        for instr in old:
            block.instructions.append(instr)
            if instr in numbers:
                equal = b.cast("zext", b.fcmp("oeq", *instr.operands), ty.I64)
                place = b.gep(ty.I64, counts, numbers[instr])
                b.store(b.add(b.load(ty.I64, place, 8), equal, ()), place, 8)
