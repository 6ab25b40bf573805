"""Integers that a loop computes anew in each iteration, always the same, computed before it.

Arithmetic of what is known before the loop; what a counter of an inner loop is when that ends; and of two such values
the one that a condition of this kind chooses. So a part of a loop that begins where the one before it has ended (peeled
iterations, loops that were cut in two) begins at a number that is known. What is computed where the loop would not
compute it may be poison: whoever uses it freezes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution import trips
from irgrad.engine.analyses.evolution.affine import Affine
from irgrad.engine.analyses.evolution.regions import Regions
from irgrad.engine.analyses.evolution.trips import Expr, TripCount
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Function, Instruction, Value
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.ir.rewrite import copied

__all__ = ["Ahead"]

_DEEPEST = 40  # values that one is made of, one behind the other


class Ahead(Regions):
    """Regions of accesses in a loop, over whatever can be computed before it; `writer` computes that."""

    def __init__(self, fn: Function, loop: Loop) -> None:
        super().__init__(fn, loop)
        self._known: dict[Value, bool] = {}
        self._deep = 0

    def writer(self, b: Builder) -> Writer:
        """Writes such values before the loop."""
        return Writer(self, b)

    def before(self, value: Value) -> bool:
        """Whether a value is known before the loop, or can be computed there."""
        if super().before(value):
            return True
        if not isinstance(value, Instruction) or not isinstance(value.type, ty.IntType) or self._deep > _DEEPEST:
            return False
        if value not in self._known:
            self._known[value] = False
            self._deep += 1
            self._known[value] = self._computed(value)
            self._deep -= 1
        return self._known[value]

    def there(self, value: Value) -> bool:
        """Whether a value is known before the loop as it is."""
        return super().before(value)

    def linear(self, form: Affine, nest: Sequence[Loop]) -> tuple[Expr, dict[Loop, Expr]] | None:
        """A form as a sum, modulo 2**64: what is known before the loop, and for each loop of a nest in it what an
        iteration adds. None where it is no such sum."""
        start, steps = trips.const(form.const), dict[Loop, Expr]()
        for symbol, whole in form.terms.items():
            factor = trips.const(whole)
            if isinstance(symbol, Value) and self.before(symbol):
                start = trips.make("add", start, trips.make("mul", ("value", symbol), factor))
                continue
            part: tuple[Expr, dict[Loop, Expr]] | None = None
            if isinstance(symbol, Value):
                part = self._product(symbol, nest)
            elif isinstance(symbol, Loop):
                part = trips.const(0), {symbol: trips.const(1)}
            elif self.before(symbol.value):
                part = trips.const(0), {symbol.loop: ("value", symbol.value)}
            if part is None or not all(loop in nest for loop in part[1]):
                return None
            start = trips.make("add", start, trips.make("mul", part[0], factor))
            for loop, step in part[1].items():
                steps[loop] = trips.make("add", steps.get(loop, trips.const(0)), trips.make("mul", step, factor))
        return start, steps

    def _product(self, value: Value, nest: Sequence[Loop]) -> tuple[Expr, dict[Loop, Expr]] | None:
        """Of a sum times what is known before."""
        if not isinstance(value, Instruction) or value.opcode != "mul" or value.type is not ty.I64:
            return None
        for known, other in (value.operands, value.operands[::-1]):
            if self.before(known):
                form = self.induction.form(other)
                found = self.linear(form, nest) if form.bits == 64 and not form.terms.keys() & {value, other} else None
                if found is not None:
                    times: Expr = ("value", known)
                    return trips.make("mul", found[0], times), {
                        loop: trips.make("mul", step, times) for loop, step in found[1].items()}  # fmt: skip
        return None

    def _computed(self, instr: Instruction) -> bool:
        if instr.opcode == "phi":
            rows = self.chosen(instr)
            return self.last(instr) is not None or (rows is not None and all(map(self.before, rows)))
        return instr.opcode in SPECULATABLE and all(map(self.before, instr.operands))

    def last(self, phi: Instruction) -> Expr | None:
        """What an inner loop hands on at its end, in numbers that are known before the outer one."""
        value = phi.operands[0]
        if len(phi.operands) != 1 or not isinstance(value, Instruction) or phi.type is not ty.I64:
            return None
        inner = self.induction.loops.of(value.block) if value.block is not None else None
        if inner is None or inner is self.loop or not self.loop.contains(inner.header) or not self.whole(inner):
            return None
        form, count = self.induction.form(value), self.induction.trip_count(inner)
        if inner.contains(phi.block) or phi.blocks != inner.latches or count is None or form.loops() != [inner]:
            return None
        often, step = self.known(count.expr), self.total(form.stride(inner), trips.const(0))
        start = self.total(form.at_start(inner), trips.const(0))
        if often is None or step is None or start is None:
            return None
        far = trips.make("mul", trips.make("add", step[1], trips.const(step[0])), often)
        return trips.make("add", trips.make("add", start[1], trips.const(start[0])), far)

    def chosen(self, phi: Instruction) -> tuple[Value, Value, Value] | None:
        """The condition of a phi of two ways, what it is where that holds, and where it does not."""
        block, dom = phi.block, self.dom
        if block is None or len(phi.operands) != 2 or block is self.loop.header or block in self._headers():
            return None
        above = dom.idom(block)
        if above is None or above.terminator.opcode != "br" or len(set(above.terminator.blocks)) != 2:
            return None
        ways: dict[bool, Value] = {}
        for value, source in zip(phi.operands, phi.blocks, strict=True):
            for number, after in enumerate(above.terminator.blocks):
                ways_in = [p for p in dom.cfg.preds(after) if not dom.dominates(after, p)]
                alone = ways_in == [above] and dom.dominates(after, source)
                if alone or (source is above and after is block):
                    ways[number == 0] = value
        return (above.terminator.operands[0], ways[True], ways[False]) if len(ways) == 2 else None

    def _headers(self) -> list[Block]:
        return [loop.header for loop in self.induction.loops.all]


class Writer:
    """Computes values at the end of a block before the loop."""

    def __init__(self, ahead: Ahead, b: Builder) -> None:
        self.ahead, self.b = ahead, b
        self._made: dict[Value, Value] = {}

    def number(self, expr: Expr) -> Value:
        """An expression, as a number that is not poison."""
        return self.frozen(TripCount(self._expr(expr)).emit(self.b))

    def frozen(self, value: Value) -> Value:
        """A value that is not poison."""
        return self.b.insert(Instruction("freeze", value.type, [value])) if isinstance(value, Instruction) else value

    def value(self, value: Value) -> Value:
        """A value that the loop computes, computed here."""
        if self.ahead.there(value):
            return value
        if value not in self._made:
            assert isinstance(value, Instruction)
            self._made[value] = self._value(value)
        return self._made[value]

    def _value(self, instr: Instruction) -> Value:
        if instr.opcode == "phi":
            last = self.ahead.last(instr)
            if last is not None:
                return TripCount(self._expr(last)).emit(self.b)
            rows = self.ahead.chosen(instr)
            assert rows is not None
            condition, yes, no = map(self.value, rows)
            return self.b.select(condition, yes, no)
        same = copied(instr, [self.value(v) for v in instr.operands])
        same.metadata = {}
        return self.b.insert(same)

    def _expr(self, expr: Expr) -> Expr:
        if expr[0] == "value":
            return ("value", self.value(expr[1]))
        return (expr[0], *(self._expr(e) if isinstance(e, tuple) else e for e in expr[1:]))
