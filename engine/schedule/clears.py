"""Shadows of stack arrays in wide derivatives: only the part that loops reach is cleared.

    double t[256]; for (i = 0; i < n; i++) t[i] = ...    memset(t', 0, W 2048)  ->  memset(t', 0, min(W 8 n, W 2048))

An array that is large enough for every case is mostly used at its beginning, but its shadow starts from zero all over,
W times as much memory as the array itself: of a small network's derivative that was a sixth (measured). So where all
loads from a shadow are at offsets that are linear in counters of counted loops, their ends are computed at the end of
the entry block, and no more than the largest of them is cleared.

Without this, `benchmarks.batch mlp` (vjp) takes 1.01, 1.03, 1.06 and 1.13 of the time with 2, 4, 8 and 16 cotangents.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution import trips
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import Expr, TripCount
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.uses import Uses, uses_of

__all__ = ["shorten_clears"]

LEAST = 2048  # bytes; what is smaller is cleared in no time
MOST = 6  # different ends of one array: each costs a few instructions


def shorten_clears(module: Module) -> int:
    """Shorten what is cleared of stack memory in all functions; the number of arrays."""
    return sum(_shorten(fn) for fn in module.functions.values() if fn.blocks)


def _shorten(fn: Function) -> int:
    entry = fn.entry
    clears = [i for i in entry.instructions if _clears_array(i)]
    if not clears:
        return 0
    uses = uses_of(fn.blocks)
    cfg = get(Cfg, fn)
    induction = Induction(fn, cfg, get(Loops, fn))
    changed = 0
    for clear in clears:
        ends = _ends(clear, uses, induction, entry)
        if ends:
            _replace(entry, clear, ends)
            changed += 1
    return changed


def _clears_array(instr: Instruction) -> bool:
    """Whether all of a stack array is set to zero, once."""
    if not instr.is_call or instr.callee_name != "llvm.memset.p0.i64":
        return False
    array, byte, size, volatile = instr.args
    return (
        isinstance(array, Instruction) and array.opcode == "alloca"
        and all(isinstance(v, ConstInt) and v.value == 0 for v in (byte, volatile))
        and isinstance(size, ConstInt) and size.value >= LEAST
    )  # fmt: skip


def _ends(clear: Instruction, uses: Uses, induction: Induction, entry: Block) -> list[Expr] | None:
    """Where loads from the array end, in bytes (what is only written need not be clear); None where one is unknown or
    something comes before the end of the entry."""
    found: dict[Expr, int] = {}  # the largest constant behind each sum of what is known at run time
    array = clear.args[0]
    pending = [array]
    while pending:
        pointer = pending.pop()
        for user in uses.get(pointer, ()):
            if user is clear or _writes(user, pointer):
                if user is not clear and user.block is entry:
                    return None
            elif user.opcode == "getelementptr" and user.operands[0] is pointer and user.type.is_ptr:
                pending.append(user)
            else:
                reads = user.opcode == "load" and user.block is not entry
                end = _end(array, user, induction, entry) if reads else None
                if end is None:
                    return None
                found[end[0]] = max(end[1], found.get(end[0], 0))
    if len(found) > MOST:
        return None
    return [trips.make("add", e, trips.const(c)) for e, c in found.items()] or [trips.const(0)]


def _writes(user: Instruction, pointer: Value) -> bool:
    """Whether an instruction only writes through the pointer."""
    if user.opcode == "store":
        return user.operands[0] is not pointer
    return user.is_call and user.callee_name == "llvm.memset.p0.i64" and user.args[0] is pointer


def _end(array: Value, load: Instruction, induction: Induction, entry: Block) -> tuple[Expr, int] | None:
    """The largest end of a load, as an expression of what is known at the end of the entry block, and a constant.

    All modulo 2^64. A load that is executed lies inside of the array, and what is found lies behind it by less than
    2^63: a step of its counters at most, and no loop runs 2^50 times.
    """
    base, offset = induction.address(load.operands[0])
    if base is not array:
        return None
    end = trips.const(0)
    for symbol, coefficient in offset.terms.items():
        if isinstance(symbol, Loop):
            if coefficient < 0:
                continue  # largest at its start, where the counter is 0
            count = induction.trip_count(symbol)
            reached = None if count is None or not count.certain else _settled(count.expr, induction, entry)
        else:
            reached = _settled(("value", symbol), induction, entry) if isinstance(symbol, Value) else None
        if reached is None:
            return None
        end = trips.make("add", end, trips.make("mul", reached, trips.const(coefficient)))
    return end, offset.const + ty.store_size(load.type)


def _settled(expr: Expr, induction: Induction, entry: Block) -> Expr | None:
    """The expression over what is known at the end of the entry block."""
    if expr[0] == "value":
        if _known(expr[1], entry):
            return expr
        form = induction.form(expr[1])
        known = form.bits == 64 and all(isinstance(s, Value) and _known(s, entry) for s in form.terms)
        return trips.from_form(form) if known else None
    if expr[0].startswith("udiv") and expr[2][0] != "const":
        return None  # by what is zero only where the loop does not run
    parts = [_settled(e, induction, entry) if isinstance(e, tuple) else e for e in expr[1:]]
    return None if None in parts else (expr[0], *parts)


def _known(value: Value, entry: Block) -> bool:
    return isinstance(value, Argument) or (isinstance(value, Instruction) and value.block is entry)


def _replace(entry: Block, clear: Instruction, ends: list[Expr]) -> None:
    """Clear up to the largest end, at the end of the entry block."""
    whole = clear.args[2]
    entry.instructions.remove(clear)
    b = Builder(entry, at=len(entry.instructions) - 1)
    size: Value = whole
    largest: Value | None = None
    for end in ends:
        # computed from numbers of loops that may never run: then they may be poison
        here = b.insert(Instruction("freeze", ty.I64, [TripCount(end).emit(b)]))
        largest = here if largest is None else b.select(b.icmp("ugt", here, largest), here, largest)
    if largest is not None:
        size = b.select(b.icmp("ult", largest, whole), largest, whole)
    clear.operands[2] = size
    b.insert(clear)
