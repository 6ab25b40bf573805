"""Integers that a later loop will compute, computed in front of an earlier one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irgrad.engine.analyses.control.dominators import PostDominators
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution import trips
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import Expr
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, Constant, ConstInt, Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, SPECULATABLE, having
from irgrad.engine.ir.rewrite import copied

__all__ = ["Earlier", "Numbers", "never_written"]

PURE = SPECULATABLE & (having("subscript") | CHOICES | {"icmp"})


def never_written(base: Value) -> bool:
    """Whether an address is of an argument to whose memory nothing writes, as its attributes say."""
    words = base.attrs.split() if isinstance(base, Argument) else ()
    return "noalias" in words and "readonly" in words


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number that each iteration of a loop computes, or a place outside of loops: `symbol + shift`, modulo a power of
    two.

    conditions: branches that lead there, outermost first, and which way; it runs where all go that way
    count:      how often the loop then comes back to its beginning
    """

    loop: Loop | None
    symbol: Value
    shift: int
    bits: int
    conditions: tuple[tuple[Value, bool], ...]
    count: Expr


class Earlier:
    """What can be computed at the end of a block, though it stands elsewhere: from arguments that nothing writes, and
    from what is there already. constant: whether nothing writes to the memory behind an address"""

    def __init__(
        self, induction: Induction, after: PostDominators, here: Block,
        constant: Callable[[Value], bool] = never_written,
    ) -> None:  # fmt: skip
        self.induction, self.after, self.here, self.constant = induction, after, here, constant
        self.dom = induction.loops.dom

    def numbers(self, where: Loop | Block, symbol: Value, shift: int, bits: int) -> Numbers | None:
        """The numbers of an outermost loop, or the one of a block outside of loops; None where they cannot be known
        here."""
        loop, block = (None, where) if isinstance(where, Block) else (where, where.header)
        conditions = self._conditions(block)
        trip = self.induction.trip_count(loop) if loop is not None else trips.TripCount(trips.const(0))
        if conditions is None or trip is None or not trip.certain or not self.known(trip.expr):
            return None
        found = Numbers(loop, symbol, shift, bits, conditions, trip.expr)
        fine = all(self._computed(c, None) for c, _ in conditions) and self._computed(symbol, loop, block)
        return found if fine else None

    def known(self, expr: Expr) -> bool:
        """Whether an expression can be computed, also where its loop never runs."""
        if expr[0] == "value":
            return self._computed(expr[1], None)
        if expr[0].startswith("udiv") and expr[2][0] != "const":
            return False
        return all(self.known(e) for e in expr[1:] if isinstance(e, tuple))

    def _conditions(self, block: Block) -> tuple[tuple[Value, bool], ...] | None:
        """Under which a block runs whenever this one does; None where that cannot be said."""
        found: list[tuple[Value, bool]] = []
        while not (self.after.dominates(block, self.here) or self.dom.dominates(block, self.here)):
            above = self.dom.idom(block)
            if above is None:
                return None
            if not self.after.dominates(block, above):
                last = above.terminator
                ways = [self.dom.dominates(s, block) and self.induction.cfg.preds(s) == [above] for s in last.blocks]
                if last.opcode != "br" or len(ways) != 2 or ways.count(True) != 1:
                    return None
                found.append((last.operands[0], ways[0]))
            block = above
        return tuple(reversed(found))

    def _computed(self, value: Value, loop: Loop | None, runs: Block | None = None) -> bool:
        """Whether a value can be computed here: one of a given iteration of the loop, or one from outside of loops.
        runs: a block of which it is known whether it runs"""
        pending, seen = [value], set()
        while pending:
            item = pending.pop()
            if item in seen or self._there(item):
                continue
            seen.add(item)
            if not isinstance(item, Instruction):
                return False
            if loop is not None and item.opcode == "phi" and item.block is loop.header:
                form = self.induction.form(item)
                if item.type is not ty.I64 and not item.type.is_int:
                    return False
                parts = trips.from_form(form.at_start(loop)), trips.from_form(form.stride(loop))
                if any(p is None or not self.known(p) for p in parts):
                    return False
            elif item.opcode in PURE or self._constant(item, loop, runs):
                pending.extend(item.operands)
            else:
                return False
        return True

    def _there(self, value: Value) -> bool:
        if isinstance(value, Instruction):
            return value.block is not None and self.dom.dominates(value.block, self.here)
        return isinstance(value, Constant | Argument)

    def _constant(self, load: Instruction, loop: Loop | None, runs: Block | None) -> bool:
        """Whether a load, which each iteration of the loop runs, or whatever leads to the block, reads what nothing
        writes."""
        if load.opcode != "load" or load.volatile or load.ordering or load.block is None:
            return False
        base, _ = self.induction.address(load.operands[0])
        end = loop.latch if loop is not None and loop.contains(load.block) else runs
        return self.constant(base) and end is not None and self.dom.dominates(load.block, end)

    # -- as code -------------------------------------------------------------------------------------------------------

    def emit(self, b: Builder, expr: Expr) -> Value:
        """An expression that is known."""
        return trips.TripCount(self._moved(b, expr)).emit(b)

    def _moved(self, b: Builder, expr: Expr) -> Expr:
        if expr[0] == "value":
            return ("value", self.compute(b, expr[1], None, None))
        return (expr[0], *(self._moved(b, e) if isinstance(e, tuple) else e for e in expr[1:]))

    def holds(self, b: Builder, numbers: Numbers) -> Value:
        """Whether the loop runs."""
        result: Value = ConstInt(ty.I1, 1)
        for condition, way in numbers.conditions:
            value = self.compute(b, condition, None, None)
            if not way:
                value = b.binary("xor", value, ConstInt(ty.I1, 1))
            result = b.select(result, value, ConstInt(ty.I1, 0))
        return result

    def number(self, b: Builder, numbers: Numbers, iteration: Value) -> Value:
        """The number of an iteration, as an i64."""
        value = self.compute(b, numbers.symbol, numbers.loop, iteration)
        moved = b.add(b.to_i64(value, signed=True), ConstInt(ty.I64, numbers.shift), ())
        fixed = b.insert(Instruction("freeze", ty.I64, [moved]))  # perhaps nothing is read at it: then it may be poison
        return b.binary("and", fixed, ConstInt(ty.I64, (1 << numbers.bits) - 1)) if numbers.bits < 64 else fixed

    def compute(self, b: Builder, value: Value, loop: Loop | None, iteration: Value | None) -> Value:
        """A value again, at the builder's place."""
        table: dict[Value, Value] = {}
        pending = [value]
        while pending:
            item = pending[-1]
            if item in table or self._there(item):
                pending.pop()
                continue
            assert isinstance(item, Instruction)
            if item.opcode == "phi":
                assert loop is not None and iteration is not None
                table[item] = self._counter(b, item, loop, iteration)
                continue
            missing = [o for o in item.operands if o not in table and not self._there(o)]
            if missing:
                pending.extend(missing)
                continue
            table[item] = b.insert(copied(item, [table.get(o, o) for o in item.operands]))
        return table.get(value, value)

    def _counter(self, b: Builder, phi: Instruction, loop: Loop, iteration: Value) -> Value:
        form = self.induction.form(phi)
        start, stride = trips.from_form(form.at_start(loop)), trips.from_form(form.stride(loop))
        assert start is not None and stride is not None
        value = b.add(b.mul(iteration, self.emit(b, stride), ()), self.emit(b, start), ())
        return b.cast("trunc", value, phi.type)
