"""How far the accesses of a function reach, and when its blocks run, asked in front of it.

Of accesses in loops: the least and the greatest address in all iterations, or in the first or last ones of some. Of a
block: a condition over what is known before the call, under which it is sure to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators, PostDominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution import trips
from irgrad.engine.analyses.evolution.affine import Affine, Symbol
from irgrad.engine.analyses.evolution.guards import parts
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.regions import Regions
from irgrad.engine.analyses.evolution.trips import Expr, TripCount
from irgrad.engine.enzyme.early_values import EarlyValues, UnknownError
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.ir.predicates import INVERSE

__all__ = ["Reach"]

_WAYS = 4  # branches behind each other, of which several lead to a block


class Reach:
    """Which bytes accesses touch, as numbers that are known where a function begins."""

    def __init__(self, fn: Function, induction: Induction, loops: Loops) -> None:
        self.fn = fn
        self.induction = induction
        self.loops = loops
        self.dom, self.after = get(Dominators, fn), PostDominators(get(Cfg, fn))
        self.regions: dict[Loop, Regions] = {}

    def around(self, block: Block | None) -> list[Loop]:
        """The loops around a block, the outermost one first."""
        loop = next((top for top in self.loops.top if top.contains(block)), None)
        found: list[Loop] = []
        while loop is not None:
            found.append(loop)
            loop = next((inner for inner in loop.children if inner.contains(block)), None)
        return found

    def varies(self, load: Instruction) -> bool:
        """Whether an innermost loop reads another pointer in each iteration."""
        loops = self.around(load.block)
        return bool(loops) and not loops[-1].children and loops[-1] in self._form(load).loops()

    def first(self, block: Block, index: Sequence[tuple[Value, int]]) -> tuple[Builder | None, Value]:
        """The part of a row's number that no counter changes, and what computes it before the loops around a block;
        none where it is zero, or not known there."""
        total, loops = trips.const(0), self.around(block)
        before = loops[0].preheader if loops else None
        for part, _ in index if before is not None else ():
            form = self.induction.form(part)
            values: dict[Symbol, int] = {v: c for v, c in form.terms.items() if isinstance(v, Value)}
            regions = self.regions.setdefault(loops[0], Regions(self.fn, loops[0]))
            if not (form.exact or form.bits == 64) or not all(regions.before(v) for v in form.values()):
                return None, ConstInt(ty.I64, 0)
            total = trips.make("add", total, trips.from_form(Affine(64, 0, values)) or trips.const(0))
        if before is None or total == trips.const(0):
            return None, ConstInt(ty.I64, 0)
        b = Builder(before, len(before.instructions) - 1)
        return b, TripCount(total).emit(b)

    def _form(self, access: Instruction) -> Affine:
        return self.induction.address(access.operands[-1])[1]

    def ends(
        self, form: Affine, loops: Sequence[Loop], fixed: Mapping[Loop, bool]
    ) -> tuple[tuple[int, Expr], tuple[int, Expr]]:
        """The least and the greatest value of a form. Raises UnknownError."""
        if not loops or not form.loops():
            known = trips.from_form(Affine(64, 0, form.terms))
            if known is None:
                raise UnknownError
            return (form.const, known), (form.const, known)
        top = loops[0]
        if top not in self.regions:
            self.regions[top] = Regions(self.fn, top)
        found = self.regions[top].ends(form, fixed)
        if isinstance(found, str):
            raise UnknownError
        return found

    def runs(
        self, early: EarlyValues, block: Block, loops: Sequence[Loop], fixed: Mapping[Loop, bool]
    ) -> Value | None:
        """What has to hold for a block to run in these iterations, computed early; None where it always does. Raises
        UnknownError. Of several ways to a block those that are known count."""
        return self._ways(early, block, self.fn.entry, loops, fixed, _WAYS)

    def _ways(
        self, early: EarlyValues, block: Block, start: Block, loops: Sequence[Loop], fixed: Mapping[Loop, bool],
        most: int,
    ) -> Value | None:  # fmt: skip
        found: Value | None = None
        while block is not start:
            above = self.dom.idom(block)
            if above is None or most == 0:
                raise UnknownError
            if not self.after.dominates(block, above):
                preds = [p for p in self.after.cfg.preds(block) if not self.dom.dominates(block, p)]
                ways = list[Any]()
                for pred in dict.fromkeys(preds):
                    try:
                        before = self._ways(early, self._entered(pred, block), above, loops, fixed, most - 1)
                        ways.append(self._both(early, before, self._edge(early, pred, block, loops, fixed)))
                    except UnknownError:
                        continue
                if not ways:
                    raise UnknownError
                if None not in ways:
                    found = self._both(early, found, reduce(partial(early.b.binary, "or"), ways))
            block = above
        return found

    def _entered(self, pred: Block, block: Block) -> Block:
        """The block itself, or the head of the loops that end there and nowhere else. Raises UnknownError."""
        for loop in self.around(pred):
            if not loop.contains(block):
                if any(end is not pred for end in loop.exiting):
                    raise UnknownError
                return loop.header
        return pred

    def _edge(
        self, early: EarlyValues, pred: Block, block: Block, loops: Sequence[Loop], fixed: Mapping[Loop, bool]
    ) -> Value | None:
        """What has to hold for a block to be followed by another one."""
        end, found = pred.terminator, None
        if end.opcode != "br":
            raise UnknownError
        if len(set(end.blocks)) == 1 or self._entered(pred, block) is not pred:
            return None
        for value, outcome in parts(end.operands[0], end.blocks[0] is block):
            asked, *sides = self._condition(value, outcome, loops, fixed)
            left, right = (TripCount(early.expr(side)).emit(early.b) for side in sides)
            found = self._both(early, found, early.b.icmp(asked, left, right))
        return found

    @staticmethod
    def _both(early: EarlyValues, one: Value | None, two: Value | None) -> Any:
        if one is None or two is None:
            return one or two
        return early.b.binary("and", one, two)

    def _condition(
        self, value: Value, outcome: bool, loops: Sequence[Loop], fixed: Mapping[Loop, bool]
    ) -> tuple[str, Expr, Expr]:
        if not isinstance(value, Instruction) or value.opcode != "icmp" or value.pred not in INVERSE:
            raise UnknownError
        left, right = (self._side(operand, loops, fixed) for operand in value.operands)
        return value.pred if outcome else INVERSE[value.pred], left, right

    def _side(self, operand: Value, loops: Sequence[Loop], fixed: Mapping[Loop, bool]) -> Expr:
        """A number or an address that is compared: forms are right modulo 2**64."""
        if not (operand.type.is_ptr or (isinstance(operand.type, ty.IntType) and operand.type.bits <= 64)):
            raise UnknownError
        form = self.induction.form(operand)
        if not form.loops():
            return ("value", operand)
        if not (form.exact or form.bits == 64) or not set(form.loops()) <= set(fixed):
            raise UnknownError
        (const, rest), _ = self.ends(form, loops, fixed)
        return trips.make("add", rest, trips.const(const))
