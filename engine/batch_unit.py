"""Compiled blocks of a program: which strategy runs its samples, the machine code, and the driver that all share."""

from __future__ import annotations

import ctypes
import json
import re
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

from irgrad.engine.batch_blocks import BLOCK, LANES, loop_text, scalars_text
from irgrad.engine.batch_driver import WORK, driver_text
from irgrad.engine.programs import Program, source_digest

__all__ = ["Strategy", "Unit", "strategy_of", "unit_of", "work"]

_WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_DRAIN = "irgrad_tape_drain"
_GLOBAL = re.compile(r"^@(?P<name>\"[^\"]+\"|[\w.$-]+) = (?P<head>[^\n]*?\bglobal) ", re.M)
_OWN = ("llvm.", "irgrad.tape.", "irgrad_tape_")
_LOCK = threading.RLock()


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a block of samples runs.

    name:   "scalars" or "loop" (see `batch_blocks`)
    why:    the reason, for people
    serial: why samples must not run on several threads, "" when they may
    """

    name: str
    why: str
    serial: str = ""

    @property
    def lanes(self) -> int:
        """Samples of a block; 0 where the number is free."""
        return LANES if self.name == "scalars" else 0


class Unit:
    """Machine code of a block function; it lives as long as this object."""

    __slots__ = ("__weakref__", "address", "compiled", "program", "strategy")

    def __init__(self, program: Program, strategy: Strategy, uses: tuple[str, ...]) -> None:
        from irgrad.engine.codegen.jit import compile_module

        self.program = program
        self.strategy = strategy
        text, name = block_ir(program, strategy, uses), BLOCK
        entries = [name, _DRAIN] if f"@{_DRAIN}()" in text else [name]
        self.compiled: Any = compile_module(text, entries, strict_fp=program.source.options.strict_fp)
        self.address = int(self.compiled.address(name))


def block_ir(program: Program, strategy: Strategy, uses: tuple[str, ...]) -> str:
    """The IR of a unit: the program and its block function."""
    if strategy.name == "scalars":
        return program.ir + scalars_text(program.stage.name, program.slots, uses)
    return program.ir + loop_text(program.stage.name, len(program.slots))


def unit_of(program: Program, strategy: Strategy, uses: tuple[str, ...], units: dict[Any, Unit]) -> Unit:
    """The unit of a program for these uses of its slots, made once for a dictionary of units."""
    key = (program, strategy.name, uses if strategy.name != "loop" else ())
    unit = units.get(key)
    if unit is None:
        with _LOCK:
            unit = units.get(key)
            if unit is None:
                unit = units[key] = Unit(program, strategy, uses)
    return unit


def strategy_of(program: Program) -> Strategy:
    """The strategy for a program; what was found is kept on disk."""
    from irgrad.engine.codegen.cache import default_cache, fingerprint

    store, key = default_cache(), fingerprint("batch-strategy", program.key, source_digest())
    stored = store.get("strategy", key)
    if stored is not None:
        return Strategy(*json.loads(stored))
    made = _choose(program)
    store.put("strategy", key, json.dumps([made.name, made.why, made.serial]).encode())
    return made


def _choose(program: Program) -> Strategy:
    serial = _serial(program.stage.text)
    arrays = [slot.name for slot in program.slots if slot.parameter.shape]
    if arrays:
        return Strategy("loop", f"`{arrays[0]}` is an array", serial)
    reason = _not_straight(program)
    if reason:
        return Strategy("loop", reason, serial)
    return Strategy("scalars", "all arguments are scalars and nothing loops", serial)


def _serial(text: str) -> str:
    """Why calls must not run at the same time: the function writes, or may write, memory that they share."""
    for found in _GLOBAL.finditer(text):
        name, head = found["name"], found["head"].split()
        if name.startswith(_OWN) or any(word.startswith("thread_local") for word in head):
            continue
        if "external" in head and _only_loaded(text, name):
            continue
        return f"it uses the global variable `{name}`, which is not constant"
    return ""


def _only_loaded(text: str, name: str) -> bool:
    """Whether a global of another module is read and nothing else."""
    uses = re.finditer(rf"^(?P<line>[^@\n][^\n]*)@{re.escape(name)}(?![\w.$-])", text, re.M)
    return all(" load " in use["line"] for use in uses)


def _not_straight(program: Program) -> str:
    """Why the program is more than straight-line code with branches, "" when it is not."""
    from irgrad.engine.analyses.cfg import Cfg
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.ir.reader import read
    from irgrad.rules.effects import facts

    name = program.stage.name
    text = program.stage.text
    function = read(prepare(text, [name]) if program.parent is not None else text, roots=[name]).functions[name]
    cfg = Cfg(function)
    if any(cfg.index[succ] <= cfg.index[block] for block in cfg.rpo for succ in block.successors):
        return "it loops"
    for instr in function.instructions():
        callee = instr.callee_name if instr.is_call else ""
        if callee is None:
            return "it calls through a pointer"
        known = facts(callee) if callee and not callee.startswith("llvm.") else None
        if callee and not callee.startswith("llvm.") and (known is None or known.kind != "pure"):
            return f"it calls `{callee}`"
    return ""


@cache
def _driver() -> tuple[Any, Any]:
    from irgrad.engine.codegen.jit import compile_module

    compiled = compile_module(driver_text(), [WORK])
    return compiled, _WORK(compiled.address(WORK))


def work() -> Any:
    """The driver as a ctypes function of (control, meta, bases, worker, limit); it runs without the GIL."""
    return _driver()[1]
