"""The bytes that accesses of a loop touch, as numbers that are known before the loop.

An access touches base + offset, the offset a linear form (`affine.py`) over the counters of the loop and of loops in
it. Counters go from zero to their counts, so the least and the greatest offset are taken, counter by counter from the
inside out, at an end of each; for a step that is only known at run time, at both. What runs in every iteration, unless
a condition that is known before the loop fails, reaches both ends: they lie in one object, and so does all between
them. An access that also depends on other conditions is told only where one that does not reaches as far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators, PostDominators
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution import trips
from irgrad.engine.analyses.evolution.affine import Affine, Symbol
from irgrad.engine.analyses.evolution.guards import parts
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import Expr, TripCount
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Constant, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.rewrite import copied

__all__ = ["Guard", "Region", "Regions", "emit_union"]

Guard = tuple[Value, bool]
"""A condition that is known before a loop, and its outcome."""
_NONE: Mapping[Loop, bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Region:
    """From `low` to `high` bytes behind `base`, both as a sum of a constant and of what is known before the loop, where
    the loop runs more than `after` times and all guards have this outcome."""

    base: Value
    low: tuple[int, Expr]
    high: tuple[int, Expr]
    guards: frozenset[Guard] = frozenset()
    after: int = 0

    def covers(self, other: Region) -> bool:
        """Whether this region is touched, and is no smaller, wherever the other one may be."""
        same = self.base is other.base and self.low[1] == other.low[1] and self.high[1] == other.high[1]
        sure = self.guards <= other.guards and self.after <= other.after
        return same and sure and self.low[0] <= other.low[0] and self.high[0] >= other.high[0]


class Regions:
    """The regions of accesses in one loop. Answers are regions, or the reason in words why there are none."""

    def __init__(self, fn: Function, loop: Loop) -> None:
        self.loop = loop
        self.induction = Induction(fn)
        self.dom, self.after = get(Dominators, fn), PostDominators(get(Cfg, fn))
        self._sure: list[Region] | None = None

    def of(self, instr: Instruction, pointer: Value, size: Value) -> list[Region] | str:
        """Of an access of so many bytes; several where the pointers of the loop change places."""
        found = self._of(pointer, size)
        if isinstance(found, str):
            return found
        guards, sure = self.guards(instr)
        regions = [Region(r.base, r.low, r.high, guards, r.after) for r in found]
        if sure or all(any(other.covers(region) for other in self._certain()) for region in regions):
            return regions
        return "whether it runs depends on what the loop computes"

    def reach(self, pointer: Value, size: Value, *, either: bool = False) -> list[Region] | str:
        """Of an access that runs in some iterations: it touches nothing beyond. either: see `ends`."""
        return self._of(pointer, size, either=either)

    # -- how far -------------------------------------------------------------------------------------------------------

    def _of(self, pointer: Value, size: Value, *, either: bool = False) -> list[Region] | str:
        base, offset = self.induction.address(pointer)
        length = self.known(("value", size)) if not isinstance(size, ConstInt) else trips.const(size.value)
        bases = self.bases(base)
        if bases is None:
            return "its address is another one in each iteration"
        if length is None:
            return "its length is not known before the loop"
        ends = self.ends(offset, either=either)
        if isinstance(ends, str):
            return ends
        (low, rest), (high, more) = ends
        if length[0] == "const":
            high += length[1]
        else:
            more = trips.make("add", more, length)
        return [Region(b, (low, rest), (high, more), after=n) for n, b in enumerate(bases)]

    def bases(self, base: Value) -> list[Value] | None:
        """The values that a pointer has, one after the other: itself, or those that change places with each other."""
        if self.before(base):
            return [base]
        header, latch, entry = self.loop.header, self.loop.latch, self.loop.preheader
        found: list[Value] = []
        phi = base if entry is not None and latch is not None else None
        while isinstance(phi, Instruction) and phi.opcode == "phi" and phi.block is header and len(phi.operands) == 2:
            found.append(phi.operands[phi.blocks.index(entry)])  # type: ignore[arg-type]
            phi = phi.operands[phi.blocks.index(latch)]  # type: ignore[arg-type]
            if phi is base:
                return found
            if len(found) > len(header.phis):
                break
        return None

    def ends(
        self, form: Affine, fixed: Mapping[Loop, bool] = _NONE, *, either: bool = False
    ) -> tuple[tuple[int, Expr], tuple[int, Expr]] | str:
        """The least and the greatest value of a form. fixed: loops of which only the first iteration is meant (False),
        or only the last one (True); either: bounds will do where a row is as long as is known at run time, in triangles
        of rows."""
        low, high = (self._end(form, side, fixed, either) for side in (False, True))
        if isinstance(low, str) or isinstance(high, str):
            return low if isinstance(low, str) else high  # type: ignore[return-value]
        return low, high

    def _end(self, form: Affine, side: bool, fixed: Mapping[Loop, bool], either: bool) -> tuple[int, Expr] | str:
        """The greatest value of a form, or the least one."""
        more = trips.const(0)
        while inner := [loop for loop in form.loops() if self.loop.contains(loop)]:
            loop = max(inner, key=lambda each: each.depth)
            count = self.induction.trip_count(loop)
            if count is None or not count.certain:
                return "how often a loop runs is not known before it"
            step, form = form.stride(loop), form.at_start(loop)
            if fixed.get(loop) is False:
                continue
            if step.is_const:
                each = trips.signed(step.const)
                if each and (loop in fixed or (each > 0) == side):
                    found = self._times(count, each)
                    if found is None:
                        return "how often an inner loop runs is not known before it"
                    form, more = form.plus(found[0]), trips.make("add", more, found[1])
                continue
            reach = self._reach(step, count)
            if reach is None:
                product = self._growth(step, count) if either and loop not in fixed else None
                if product is None:
                    return "its subscript is not linear in what is known before the loop"
                first = self._end(form, side, fixed, either)
                last = self._end(form.plus(product[0]), side, fixed, either)
                return self._further(first, last, trips.make("add", more, product[1]), more, side)
            up = reach if loop in fixed else trips.make("smax", reach, trips.const(0))
            more = trips.make("add", more, up if side else reach if loop in fixed else trips.make("sub", reach, up))
        return self.total(form, more) or "its subscript depends on what the loop computes"

    def _further(
        self, first: tuple[int, Expr] | str, last: tuple[int, Expr] | str, more: Expr, less: Expr, side: bool
    ) -> tuple[int, Expr] | str:
        """The greater one of two ends, or the less one, with what is added to the last one and to the first one."""
        if isinstance(first, str) or isinstance(last, str):
            return first if isinstance(first, str) else last
        one = trips.make("add", trips.make("add", first[1], trips.const(first[0])), less)
        two = trips.make("add", trips.make("add", last[1], trips.const(last[0])), more)
        greater = trips.make("smax", one, two)
        return 0, greater if side else trips.make("sub", trips.make("add", one, two), greater)

    def _growth(self, step: Affine, count: TripCount) -> tuple[Affine, Expr] | None:
        """A count that depends on counters of loops around, times a step of known values: a form, and what is none."""
        times = self._form(count.expr)
        if times is None or not all(isinstance(v, Value) and self.before(v) for v in step.terms):
            return None
        form, more = times.times(trips.signed(step.const)), trips.const(0)
        for value, each in step.terms.items():
            assert isinstance(value, Value)
            terms: dict[Symbol, int] = {value: times.const} if times.const else {}
            for symbol, factor in times.terms.items():
                if isinstance(symbol, Loop):
                    terms[self.induction.scaled(symbol, value)] = factor
                elif isinstance(symbol, Value) and self.before(symbol):
                    both = trips.make("mul", ("value", symbol), ("value", value))
                    more = trips.make("add", more, trips.make("mul", both, trips.const(factor * each)))
                else:
                    return None
            form = form.plus(Affine(64, 0, terms), each)
        return form, more

    def _times(self, count: TripCount, step: int) -> tuple[Affine, Expr] | None:
        """A count times a step, as a form, and what is no form."""
        form = self._form(count.expr)
        if form is not None:
            return form.times(step), trips.const(0)
        known = self.known(count.expr)
        return None if known is None else (Affine(64, 0), trips.make("mul", known, trips.const(step)))

    def _form(self, expr: Expr) -> Affine | None:
        """A count as a form, with the counters of loops around."""
        if expr[0] == "const":
            return Affine(64, trips.signed(expr[1]))
        if expr[0] == "value":
            form = self.induction.form(expr[1])
            return form if form.bits == 64 or form.exact else None
        if expr[0] in ("add", "sub"):
            left, right = self._form(expr[1]), self._form(expr[2])
            return None if left is None or right is None else left.plus(right, 1 if expr[0] == "add" else -1)
        return None

    def _reach(self, step: Affine, count: TripCount) -> Expr | None:
        each, known = self.total(step, trips.const(0)), self.known(count.expr)
        if each is None or known is None:
            return None
        return trips.make("mul", trips.make("add", each[1], trips.const(each[0])), known)

    def total(self, form: Affine, more: Expr) -> tuple[int, Expr] | None:
        """A form of values that are known before the loop, in a fixed order, its constant apart."""
        if not all(isinstance(symbol, Value) and self.before(symbol) for symbol in form.terms):
            return None
        total = more
        for symbol, coefficient in form.terms.items():
            total = trips.make("add", total, trips.make("mul", ("value", symbol), trips.const(coefficient)))
        return trips.signed(form.const), total

    def known(self, expr: Expr) -> Expr | None:
        """The expression over what is known before the loop."""
        if expr[0] == "value":
            if self.before(expr[1]):
                return expr
            form = self.induction.form(expr[1])
            found = self.total(form, trips.const(0)) if form.bits == 64 or form.exact else None
            return None if found is None else trips.make("add", found[1], trips.const(found[0]))
        if expr[0].startswith("udiv") and expr[2][0] != "const":
            return None  # by what is zero only where the loop does not run
        rows = [self.known(e) if isinstance(e, tuple) else e for e in expr[1:]]
        return None if None in rows else (expr[0], *rows)

    def whole(self, inner: Loop) -> bool:
        """Whether a loop runs as often as is known when it is entered, and ends in no other way."""
        count = self.induction.trip_count(inner)
        return count is not None and count.certain and inner.exiting == inner.latches and len(inner.exits) == 1

    def before(self, value: Value) -> bool:
        """Whether a value is known before the loop."""
        if isinstance(value, Instruction):
            return value.block is not None and self.loop.preheader is not None and (
                self.dom.dominates(value.block, self.loop.preheader))  # fmt: skip
        return isinstance(value, Constant | Argument)

    # -- whether -------------------------------------------------------------------------------------------------------

    def guards(self, instr: Instruction) -> tuple[frozenset[Guard], bool]:
        """The conditions known before the loop on which an instruction runs, and whether it depends on no others."""
        found: set[Guard] = set()
        block, sure = instr.block, True
        assert block is not None
        while block is not self.loop.header:
            above = self.dom.idom(block)
            assert above is not None
            if not self.after.dominates(block, above):
                end, known = above.terminator, False
                if end.opcode == "br" and self.after.cfg.preds(block) == [above]:
                    rows = parts(end.operands[0], end.blocks[0] is block)
                    known = all(self.decided(value) for value, _ in rows)
                    found |= {row for row in rows if known}
                sure = sure and known
            block = above
        return frozenset(found), sure

    def decided(self, condition: Value) -> bool:
        """Whether a condition is known before the loop, or can be asked there."""
        asked = isinstance(condition, Instruction) and condition.opcode == "icmp"
        return self.before(condition) or (asked and all(map(self.before, condition.operands)))  # type: ignore[attr-defined]

    def _certain(self) -> Sequence[Region]:
        """The regions of what runs in every iteration, apart from conditions that are known before."""
        if self._sure is None:
            self._sure = []
            for instr in (i for block in self.loop.blocks for i in block.instructions):
                if instr.opcode not in ("load", "store"):
                    continue
                guards, sure = self.guards(instr)
                kind = instr.type if instr.opcode == "load" else instr.operands[0].type
                found = self._of(instr.operands[-1], ConstInt(ty.I64, ty.store_size(kind))) if sure else ""
                if not isinstance(found, str):
                    self._sure += [Region(r.base, r.low, r.high, guards, r.after) for r in found]
        return self._sure


def emit_union(b: Builder, iterations: Value | None, regions: Sequence[Region]) -> tuple[Value, Value]:
    """The address and the bytes of the least piece of memory that holds these regions, of one base.

    iterations: of the loop, which is only asked where pointers change places
    """
    zero = ConstInt(ty.I64, 0)
    low: Value = ConstInt(ty.I64, 2**63 - 1)
    high: Value = ConstInt(ty.I64, -(2**63))
    for region in dict.fromkeys(regions):
        runs: Value | None = None
        for condition, outcome in sorted(region.guards, key=lambda row: (row[0].name or "", row[1])):
            holds = condition
            if isinstance(condition, Instruction) and condition.opcode == "icmp":  # it may stand in the loop
                holds = b.insert(copied(condition, list(condition.operands)))
            holds = holds if outcome else b.binary("xor", holds, ConstInt(ty.I1, 1))
            runs = holds if runs is None else b.select(runs, holds, ConstInt(ty.I1, 0))
        if region.after:
            assert iterations is not None
            turned = b.icmp("ugt", iterations, ConstInt(ty.I64, region.after))
            runs = turned if runs is None else b.select(runs, turned, ConstInt(ty.I1, 0))
        for side, (const, rest) in enumerate((region.low, region.high)):
            end: Value = TripCount(trips.make("add", rest, trips.const(const))).emit(b)
            end = b.insert(Instruction("freeze", ty.I64, [end]))  # of loops that never run it may be poison
            best = high if side else low
            found = b.select(b.icmp("sgt" if side else "slt", end, best), end, best)
            found = found if runs is None else b.select(b.insert(Instruction("freeze", ty.I1, [runs])), found, best)
            low, high = (low, found) if side else (found, high)
    some = b.icmp("slt", low, high)
    address = b.gep(ty.I8, regions[0].base, b.select(some, low, zero))
    return address, b.select(some, b.sub(high, low, ()), zero)
