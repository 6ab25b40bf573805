"""Compiled blocks of a program: which strategy runs its samples, the machine code, and the driver that all share."""

from __future__ import annotations

import ctypes
import json
import threading
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.batches.blocks import BLOCK, BYTES, LANES, lanes_text, loop_text, scalars_text
from irgrad.engine.batches.threads import cores
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.kernel.host import refuse_hosted
from irgrad.engine.kernel.pages import free_memory
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.serialised_calls import shared_state
from irgrad.engine.runtime.arena import DRAIN, LIMIT, PEAK_TEXT, TRIM
from irgrad.engine.runtime.batch_driver import WORK, driver_text
from irgrad.engine.widen.refusals import OTHERWISE
from irgrad.rules.errors import IRGradError, TapeMemoryError, Unsupported

__all__ = ["Strategy", "Unit", "block_ir", "strategy_of", "unit_of", "varying", "work"]

_WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_INLINED = 1 << 20  # characters of a module whose functions are not inlined: they might multiply
_TWICE = 1 << 18  # characters of a derivative that is not made a second time, as that of a widened function
_LEFT = ("control flow is the same for all samples: loops run until the last sample has left, long sides of branches "
         "if one takes them")
_MASKED = "the function is widened before it is differentiated: loops run until the last sample has left"
_PRIVATE = "use local variables or arguments in place of the variable, and `const` where nothing writes it"
_LOCK = threading.RLock()


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a block of samples runs.

    name:   "scalars", "lanes" or "loop" (see `blocks`)
    why:    the reason, for people
    serial: why samples must not run on several threads, "" when they may
    lanes:  samples of a block; 0 where the number is free
    at:     the source line that keeps samples from running as lanes, "" where it is not known
    change: what to write in its place, "" where nothing helps or has to
    packed: for "lanes" the widened function: its name, a line break, the module, compressed
    """

    name: str
    why: str
    serial: str = ""
    lanes: int = 0
    packed: bytes = field(default=b"", repr=False, compare=False)
    at: str = ""
    change: str = ""

    def to_bytes(self) -> bytes:
        """For the disk cache."""
        head = json.dumps([self.name, self.why, self.serial, self.lanes, self.at, self.change])
        return head.encode() + b"\n" + self.packed

    @staticmethod
    def from_bytes(data: bytes) -> Strategy:
        """What `to_bytes` made."""
        head, _, packed = data.partition(b"\n")
        name, why, serial, lanes, at, change = json.loads(head)
        return Strategy(name, why, serial, lanes, packed, at, change)


class Unit:
    """Machine code of a block function; it lives as long as this object.

    limit: bytes of tape that a sample may have: where nothing else is said, half of the free memory is shared by as
    many samples as there are cores; 0: as many as there are
    """

    __slots__ = ("__weakref__", "_longer", "address", "compiled", "limit", "program", "strategy", "tables", "turn")

    def __init__(self, program: Program, strategy: Strategy, uses: tuple[str, ...]) -> None:
        from irgrad.engine.codegen.jit import compile_module
        from irgrad.engine.codegen.target import CPUS

        options = program.source.options
        self.program = program
        self.strategy = strategy
        self.tables: dict[Any, Any] = {}  # plans by shapes (see `plan`)
        self.turn = threading.Lock() if strategy.serial else nullcontext()
        text, name = block_ir(program, strategy, uses), BLOCK
        if options.threads:
            from irgrad.engine.codegen import team

            team.provide()
        entries = [name, *(row for row in (DRAIN, TRIM, LIMIT) if row in outline(text).functions)]
        self.compiled: Any = compile_module(text, entries, strict_fp=options.strict_fp, target=CPUS[options.cpu])
        self.address = int(self.compiled.address(name))
        self.limit = 0
        self._longer: Program | None = None
        if options.bounded and self.compiled.has(LIMIT):
            self.limit = (free_memory() or 0) // (2 * cores())
            self.compiled.function(LIMIT, None, ctypes.c_int64)(self.limit or -1)

    def keeping_states(self, error: TapeMemoryError) -> Program:
        """The program for samples whose tape passes the limit. Raises the error where it is another one. Warns."""
        from irgrad.engine.kernel.checkpoints import keeping_states

        longer: Program = keeping_states(self.program, self.limit, error, cores(), self._longer,
                                          max(self.strategy.lanes, 1))
        self._longer = longer
        return longer


def block_ir(program: Program, strategy: Strategy, uses: tuple[str, ...]) -> str:
    """The IR of a unit: the program and its block function."""
    from irgrad.engine.pipeline.derivatives import link_runtime
    from irgrad.engine.runtime.exceptions import catching, is_caught
    from irgrad.engine.runtime.helpers import uses_tape

    refuse_hosted(program.stage.text, repr(program), "a batch")
    if strategy.name == "lanes":
        name, _, text = zlib.decompress(strategy.packed).decode("utf-8", "surrogateescape").partition("\n")
        text = link_runtime(catching(text))
        text += PEAK_TEXT if "irgrad_tape_peak" in outline(text).variables else ""
        return text + lanes_text(name, len(program.slots), tape=uses_tape(text), unwinds=is_caught(text))
    text = program.ir
    tape, unwinds = uses_tape(text), is_caught(text)
    if strategy.name == "scalars":
        return text + scalars_text(program.stage.name, program.slots, uses, tape=tape, unwinds=unwinds)
    return text + loop_text(program.stage.name, len(program.slots), tape=tape, unwinds=unwinds)


def unit_of(program: Program, strategy: Strategy, uses: tuple[str, ...], units: dict[Any, Unit]) -> Unit:
    """The unit of a program for these uses of its slots, made once for a dictionary of units."""
    relevant = uses if strategy.name == "scalars" else varying(uses) if strategy.name == "lanes" else ()
    key = (program, strategy.name, strategy.lanes, relevant)
    unit = units.get(key)
    if unit is None:
        with _LOCK:
            unit = units.get(key)
            if unit is None:
                unit = units[key] = Unit(program, strategy, uses)
    return unit


def varying(uses: Sequence[str]) -> tuple[int, ...]:
    """The slots whose memory is different for each sample: all that are written, and inputs with a value per sample."""
    return tuple(i for i, use in enumerate(uses) if use != "in one")


def strategy_of(program: Program, uses: Sequence[str], width: int | str = "auto") -> Strategy:
    """The strategy for a program whose slots are used so; what was found is kept on disk.

    width: "auto"; 1 for one sample after the other; or the number of lanes. Raises Unsupported if those are impossible.
    """
    from irgrad.engine.codegen.cache import default_cache, fingerprint

    store, key = default_cache(), fingerprint("strategy", program.key, f"{varying(uses)} {width}")
    stored = store.get("strategy", key)
    if stored is not None:
        return Strategy.from_bytes(stored)
    made = _choose(program, uses, width)
    store.put("strategy", key, made.to_bytes())
    return made


def _choose(program: Program, uses: Sequence[str], width: int | str) -> Strategy:
    serial = shared_state(program.stage.text)
    if width == 1:
        return Strategy("loop", "width=1", serial)
    if serial and width == "auto":  # what one sample leaves there the next may see: one after the other, each once
        return Strategy("loop", serial, serial, change=_PRIVATE)
    if serial:
        raise Unsupported("samples cannot be vector lanes", where=f"`{program.source.signature}`", because=serial,
                          fix='width="auto" runs them one after the other')
    arrays = any(slot.parameter.shape or slot.lanes for slot in program.slots)
    if width == "auto" and not arrays and not _not_straight(program):
        return Strategy("scalars", "all arguments are scalars and nothing loops", serial, LANES)
    try:
        return _widened(program, uses, serial, width)
    except Unsupported as error:
        made = _widened_first(program, uses, serial, width)
        if isinstance(made, Strategy):
            return made
        if width != "auto":
            error.because += f"; {made}" if made else ""
            raise
        more = f"; {made}" if made and error.because not in made else ""
        change = error.fix.removesuffix(OTHERWISE).removesuffix("; ")
        return Strategy("loop", _reason(error) + more, serial, at=error.where, change=change)


def _reason(error: IRGradError) -> str:
    said = error.because or error.what
    return f"{said}: {error.which.strip()}" if error.which and not error.where else said


def _widened_first(program: Program, uses: Sequence[str], serial: str, width: int | str) -> Strategy | str:
    """A derivative of the widened function; where there is none the reason, "" for a function that is no derivative."""
    from irgrad.engine.batches.widen_first import widened_first

    if program.parent is None:
        return ""
    if program.source.options.checkpoint:
        return "its loops keep states, as `checkpoint` or `tape_memory` says"
    if len(program.stage.text) > _TWICE:
        return "it is too large to be made a second time, from the widened function"
    largest = max((s.dtype.size for s in program.slots if s.differentiable), default=8)
    lanes = width if isinstance(width, int) else BYTES // largest
    try:
        name, text = widened_first(program, uses, lanes, paying=width == "auto")
    except IRGradError as error:
        return f"widened before it is differentiated: {_reason(error)}{f' ({error.where})' if error.where else ''}"
    return Strategy("lanes", _MASKED, serial, lanes, _packed(name, text))


def _packed(name: str, text: str) -> bytes:
    return zlib.compress(f"{name}\n{text}".encode("utf-8", "surrogateescape"), 1)


def _widened(program: Program, uses: Sequence[str], serial: str, width: int | str) -> Strategy:
    from irgrad.engine.codegen.prepare import inlined, prepare
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.runtime.helpers import uses_tape
    from irgrad.engine.widen.widening import widen

    name, text = program.stage.name, program.stage.text
    marked = _marked(text)
    text = prepare(text, [name], marked.__contains__ if marked else None) if program.parent is not None else text
    sizes = [slot.dtype.size for slot in program.slots]
    largest = max((s.dtype.size for s in program.slots if s.differentiable), default=8)
    bytes_ = BYTES if uses_tape(text) else 2 * BYTES
    lanes = width if isinstance(width, int) else bytes_ // largest
    module = read(text, roots=[name])
    try:
        made = widen(module, name, varying(uses), sizes, lanes, paying=width == "auto")
    except Unsupported as error:
        if "is called" not in error.because or len(text) > _INLINED:
            raise
        module = read(prepare(inlined(text, name), [name]), roots=[name])
        made = widen(module, name, varying(uses), sizes, lanes, paying=width == "auto")
    wide = to_text(module)
    loops = f"llvm.vector.reduce.or.v{lanes}i1" in outline(wide).functions
    why = _LEFT if loops else "control flow is the same for all samples"
    return Strategy("lanes", why, serial, lanes, _packed(made, wide))


def _marked(text: str) -> set[str]:
    """Functions that have one for all samples, and those (see `custom_rules.rule_batches`): they stay out of line."""
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.widen.twins import MARK, twins

    if MARK not in outline(text).attributes:
        return set()

    found = twins(read(text))
    return {*found, *(name.removeprefix("+") for twin in found.values() for name in twin.choices.values())}


def _not_straight(program: Program) -> str:
    """Why the program is more than straight-line code with branches, "" when it is not."""
    from irgrad.engine.analyses.control.cfg import Cfg
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.ir.text.reader import read
    from irgrad.rules.effects import facts

    name = program.stage.name
    text = program.stage.text
    function = read(prepare(text, [name]) if program.parent is not None else text, roots=[name]).functions[name]
    cfg = get(Cfg, function)
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
