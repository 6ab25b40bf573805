"""Does a store write, later, the bytes that a load reads?

Both stand in loops, so the question is asked of iterations: of all runs of the store after a run of the load. These
are, for each loop around both, those in a later iteration of it (and the same iterations of the loops around it), and
those in the same iterations of all such loops, where the store can be reached from the load. In each of these cases the
difference of the two addresses is a polynomial over counters and sizes (`affine.py`); what bounds the counters, that is
their loops' counts, which may hold outer counters (triangles), and comparisons on the way, says whether it can be small
(`inequalities.py`). So an in-place factorisation overwrites no element of its finished rows, and a triangular solution
none of what it has found.

Addresses are computed modulo 2**64. The difference is that of integers where both are exact, or where nothing in it can
get so large: counters of loops that end, times small numbers; and counter times size, where some access goes through
memory by at least that much in every iteration of the loop, so that it would have left it.
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.affine import Affine, Scaled, Symbol
from irgrad.engine.analyses.evolution.ceilings import Ceilings, positive, whole
from irgrad.engine.analyses.evolution.guards import parts
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.inequalities import Polynomial, System, added, constant, multiplied, variable
from irgrad.engine.analyses.evolution.trips import signed
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Instruction, Value
from irgrad.engine.ir.opcodes import TRAPS
from irgrad.engine.ir.predicates import INVERSE

__all__ = ["Overwrites", "ordered"]

_STEP = 1 << 16  # bytes: times a counter it stays far below 2**64
_MANY = 1000  # pairs that are compared in a function
_SIDES = 2  # differences whose sign is tried both ways

_Variable = tuple[object, str]
"""A counter or a value, and of whom: the load, the store, both (where they are in the same iteration), or how many
iterations the store is later."""


class Overwrites:
    """Answers for one function. A snapshot, like the analyses that it is built on."""

    def __init__(self, induction: Induction) -> None:
        self.induction, self.loops, self.cfg = induction, induction.loops, induction.cfg
        self._left = _MANY
        self.ceilings = Ceilings(induction)
        self._small: dict[tuple[Loop, Value], bool] = {}

    def never(self, load: Instruction, store: Instruction) -> bool:
        """Whether no run of the store after a run of the load writes what that has read; False where it is not known.
        The base of both addresses has to be the same in the whole call, else the answer is False."""
        (base, read), (other, written) = (self.induction.address(i.operands[-1]) for i in (load, store))
        if base is not other or load.block is None or store.block is None or not self._fixed(base):
            return False
        around = [loop for loop in self.loops.all if loop.contains(load.block) or loop.contains(store.block)]
        if self._left <= 0 or self.loops.irreducible or not all(self.whole(f, around) for f in (read, written)):
            return False
        self._left -= 1
        sizes = _bytes(load), _bytes(store)
        return all(case.apart(read, written, *sizes) for case in self._cases(load, store, read, written))

    def apart_within(self, one: Instruction, other: Instruction, loop: Loop) -> bool:
        """Whether two accesses, loads or stores, one of them in a loop and the other there or before it, never meet: in
        whatever iterations of that loop, those of the loops around it being the same. False where it is not known."""
        (base, first), (rest, second) = (self.induction.address(i.operands[-1]) for i in (one, other))
        if base is not rest or (isinstance(base, Instruction) and loop.contains(base.block)):
            return False
        around = [each for each in self.loops.all if each.contains(one.block) or each.contains(other.block)]
        if self._left <= 0 or self.loops.irreducible or not all(self.whole(f, around) for f in (first, second)):
            return False
        self._left -= 1
        same = [] if loop.parent is None else list(loop.parent.ancestors())[::-1]
        return _Case(self, one, other, (first, second), same, None).apart(first, second, _bytes(one), _bytes(other))

    def rows_apart(self, one: Instruction, other: Instruction, loop: Loop, *, whole: bool = False) -> bool:
        """Whether two accesses in a loop never meet in two of its iterations, those of the loops around it being the
        same, whichever comes first. False where it is not known. whole: their addresses are known not to wrap."""
        (base, first), (rest, second) = (self.induction.address(i.operands[-1]) for i in (one, other))
        if base is not rest or (isinstance(base, Instruction) and loop.contains(base.block)):
            return False
        around = [each for each in self.loops.all if each.contains(one.block) or each.contains(other.block)]
        whole = whole or all(self.whole(form, around) for form in (first, second))
        if self._left <= 0 or self.loops.irreducible or not whole:
            return False
        self._left -= 1
        common = list(loop.ancestors())[::-1]
        ways = [(one, other, first, second), (other, one, second, first)][: 1 if one is other else 2]
        return all(_Case(self, a, b, (f, g), common, loop).apart(f, g, _bytes(a), _bytes(b)) for a, b, f, g in ways)

    def no_less(self, high: Affine, low: Affine, instr: Instruction, block: Block) -> bool:
        """Whether one exact form is no less than another one whenever control leaves a block in which both are known;
        False where that is not known. instr: one that stands on every way there, and whose loops are the block's."""
        inner = self.loops.of(block)
        if self._left <= 0 or self.loops.irreducible or inner is not self.loops.of(instr.block or block):
            return False
        self._left -= 1
        case = _Case(self, instr, instr, (high, low), [] if inner is None else list(inner.ancestors())[::-1], None)
        return case.no_less(high, low)

    def _fixed(self, base: Value) -> bool:
        return not isinstance(base, Instruction) or (base.block is not None and self.loops.of(base.block) is None)

    def _cases(self, load: Instruction, store: Instruction, read: Affine, written: Affine) -> Iterable[_Case]:
        assert load.block is not None and store.block is not None
        inner = self.loops.of(load.block)
        common = [] if inner is None else [loop for loop in inner.ancestors() if loop.contains(store.block)][::-1]
        for loop in common:
            yield _Case(self, load, store, (read, written), common, loop)
        if self._follows(load, store, common[-1] if common else None):
            yield _Case(self, load, store, (read, written), common, None)

    def _follows(self, load: Instruction, store: Instruction, loop: Loop | None) -> bool:
        """Whether the store can run after the load in one iteration of the loop."""
        start, end = load.block, store.block
        assert start is not None and end is not None
        if start is end:
            order = start.instructions
            if order.index(store) > order.index(load):
                return True
        seen: set[Block] = set()
        work = [start]
        while work:
            for block in self.cfg.succs(work.pop()):
                if block in seen or (loop is not None and (block is loop.header or not loop.contains(block))):
                    continue
                if block is end:
                    return True
                seen.add(block)
                work.append(block)
        return False

    # -- numbers that stay small ---------------------------------------------------------------------------------------

    def whole(self, form: Affine, around: list[Loop]) -> bool:
        """Whether a form holds over the integers, apart from a base, where these loops run."""
        return form.exact or all(self._stays_small(symbol, signed(c), around) for symbol, c in form.terms.items())

    def _stays_small(self, symbol: Symbol, factor: int, around: list[Loop]) -> bool:
        if isinstance(symbol, Scaled):
            return self._counted(symbol.value, around) and self._walked(symbol.loop, symbol.value, abs(factor))
        return abs(factor) <= _STEP and (isinstance(symbol, Loop) or self._counted(symbol, around))

    def _counted(self, value: Value, around: list[Loop]) -> bool:
        """Whether one of the loops runs as often, or a small part of it, but for a constant and counters."""
        forms = [form for loop in around if (form := self.ceilings.count(loop, multiple=True))]
        return any(form.terms.get(value) == 1 and all(isinstance(s, Loop) or s is value for s in form.terms)
                   for form in forms)  # fmt: skip

    def _walked(self, loop: Loop, value: Value, factor: int) -> bool:
        """Whether some access moves by a multiple of the value, no less than `factor`, in each iteration."""
        key = (loop, value)
        if key not in self._small:
            self._small[key] = any(self._walks(access, loop, value) for block in loop.blocks
                                   for access in block.instructions if access.opcode in ("load", "store"))  # fmt: skip
        return factor <= _STEP and self._small[key]

    def _walks(self, access: Instruction, loop: Loop, value: Value) -> bool:
        base, form = self.induction.address(access.operands[-1])
        if isinstance(base, Instruction) and loop.contains(base.block):
            return False
        if not any(isinstance(s, Scaled) and s.loop is loop and s.value is value for s in form.terms):
            return False
        stride = form.stride(loop)
        own = signed(stride.terms.get(value, 0))
        if len(stride.terms) != 1 or not 0 < own <= 256 or not 0 <= signed(stride.const) <= _STEP:
            return False
        return access.block is not None and self._runs(access.block, loop)

    def _runs(self, block: Block, loop: Loop) -> bool:
        """Whether a block runs in every iteration of a loop, apart from some at the beginning, the same number in
        every run of the loop."""
        inner = self.loops.of(block)
        while inner is not None:
            if all(self.loops.dom.dominates(block, latch) for latch in inner.latches):
                if inner is loop:
                    return True
                block, inner = inner.header, inner.parent
                continue
            above = self.loops.dom.idom(block)
            before = [p for p in self.cfg.preds(block) if not self.loops.dom.dominates(block, p)]
            if above is None or before != [above] or above.terminator.opcode != "br":
                return False
            end = above.terminator
            for condition in end.operands:
                asked = parts(condition, end.blocks[0] is block)
                if not all(self._late(v, o, loop) or self._holds(v, o, above) for v, o in asked):
                    return False
            block, inner = above, self.loops.of(above)
        return False

    def _holds(self, value: Value, outcome: bool, block: Block) -> bool:
        """Whether a condition has an outcome wherever a block comes to it."""
        loop = self.loops.of(block)
        if loop is None or not isinstance(value, Instruction) or value.opcode != "icmp":
            return False
        return self.ceilings.holds(value, outcome, loop)

    def _late(self, value: Value, outcome: bool, loop: Loop) -> bool:
        """Whether a condition is a comparison that has an outcome in all iterations but the first or the last."""
        if not isinstance(value, Instruction) or value.opcode != "icmp":
            return False
        if not all(isinstance(operand.type, ty.IntType) for operand in value.operands):
            return False
        left, right = map(self.induction.form, value.operands)
        order, up = ordered(value.pred or "", outcome), right.plus(left, -1)
        if order == "ne" and all(form.exact or form.bits == 64 for form in (left, right)):
            last = self._last(up, loop)
            first = up.terms.keys() == {loop} and not up.const
            return first or (last is not None and last.is_const and not last.const)
        signs = (value.pred or "")[0] == "s" or positive(left if order[0] == "l" else right)
        if order not in ("lt", "le", "gt", "ge") or not (signs and whole(left) and whole(right)):
            return False
        room = (up if order[0] == "l" else up.times(-1)).moved(-(order[1] == "t"))  # holds where this is not negative
        last, step = self._last(room, loop), signed(room.coefficient(loop))
        return last is not None and last.is_const and step < 0 <= signed(last.const) - step

    def _last(self, form: Affine, loop: Loop) -> Affine | None:
        """A form in the last iteration of a loop; None where its counter is not in it, or it is no form there."""
        count, step = self.ceilings.count(loop), signed(form.coefficient(loop))
        if count is None or not step or any(isinstance(s, Scaled) for s in form.terms):
            return None
        return form.at_start(loop).plus(count, step)


class _Case:
    """Runs of a store after a run of a load: in a later iteration of one of the loops that are common (`later`) and the
    same iterations of those around that; where `later` is None, in the same iterations of all of these loops."""

    def __init__(
        self, owner: Overwrites, load: Instruction, store: Instruction, forms: tuple[Affine, Affine],
        common: list[Loop], later: Loop | None,
    ) -> None:  # fmt: skip
        self.owner = owner
        self.later = later
        self.same = common if later is None else common[: common.index(later)]
        self.around = [loop for loop in owner.loops.all if any(loop.contains(i.block) for i in (load, store))]
        around = [self._around(instr, form) for instr, form in zip((load, store), forms, strict=True)]
        self.order: dict[_Variable, int] = {}
        self._number(around)
        facts = [f for side, loops in zip("rw", around, strict=True) for loop in loops for f in self._facts(loop, side)]
        if later is not None:
            facts.append(added(variable(self._of((later, "later"))), constant(-1)))
        self.facts = [fact for n, fact in enumerate(facts) if fact not in facts[:n]]
        self.instrs = (load, store)
        self.sides: list[Polynomial] = []  # what comparisons say is not zero

    def apart(self, read: Affine, written: Affine, read_size: int, written_size: int) -> bool:
        """Whether the store writes behind what the load reads, or before it, in all of these runs; where they go
        through rows of their own, in those with an earlier row and in the others."""
        difference = added(self._polynomial(written, "w"), self._polynomial(read, "r"), -1)
        behind, before = added(difference, constant(-read_size)), added(constant(-written_size), difference, -1)

        def known(*facts: Polynomial) -> bool:
            system = System([*self.facts, *facts])
            return system.never_negative(behind) or system.never_negative(before)

        def decided(*facts: Polynomial) -> bool:
            rows = _rows(difference)
            return known(*facts) or any(known(*facts, a) and known(*facts, added(constant(-1), a, -1)) for a in rows)

        if decided():
            return True
        self.sides.clear()
        guards = [fact for side, instr in zip("rw", self.instrs, strict=True) for fact in self._guards(instr, side)]
        if guards and decided(*guards):
            return True
        ways = ((added(side, constant(-1)), added(constant(-1), side, -1)) for side in self.sides[:_SIDES])
        return any(decided(*guards, more) and decided(*guards, less) for more, less in ways)

    def no_less(self, high: Affine, low: Affine) -> bool:
        """Whether one form is no less than another one in all of these runs, of one instruction."""
        gap = added(self._polynomial(high, "r"), self._polynomial(low, "r"), -1)
        return System([*self.facts, *self._guards(self.instrs[0], "r")]).never_negative(gap)

    def _guards(self, instr: Instruction, side: str) -> Iterable[Polynomial]:
        """What the comparisons that an instruction runs behind, in the same iterations, say of counters."""
        owner, block = self.owner, instr.block
        system = System(self.facts)
        while block is not None and (above := owner.loops.dom.idom(block)) is not None:
            outer, end = owner.loops.of(above), above.terminator
            before = [p for p in owner.cfg.preds(block) if not owner.loops.dom.dominates(block, p)]
            same = outer is None or outer.contains(instr.block)
            if same and before == [above] and end.opcode == "br" and len(set(end.blocks)) > 1:
                for value, outcome in parts(end.operands[0], end.blocks[0] is block):
                    if isinstance(value, Instruction) and value.opcode == "icmp":
                        yield from self._compared(value, outcome, side, system)
            block = above

    def _compared(self, value: Instruction, outcome: bool, side: str, system: System) -> Iterable[Polynomial]:
        if not all(isinstance(operand.type, ty.IntType) for operand in value.operands):
            return
        forms = [self.owner.induction.form(operand) for operand in value.operands]
        if not all(form.exact or (form.bits == 64 and self.owner.whole(form, self.around)) for form in forms):
            return
        left, right = (self._polynomial(form, side) for form in forms)
        pred = value.pred or ""
        if pred[0] == "u" and not (system.never_negative(left) and system.never_negative(right)):
            return
        up = added(right, left, -1)  # right - left
        order = ordered(pred, outcome)
        if order == "ne":  # with what is known, more or less
            order = "lt" if system.never_negative(up) else "gt" if system.never_negative(added({}, up, -1)) else ""
            if not order:
                self.sides.append(up)
        if order in ("lt", "le", "eq"):
            yield added(up, constant(-1 if order == "lt" else 0))
        if order in ("gt", "ge", "eq"):
            yield added(constant(-1 if order == "gt" else 0), up, -1)

    def _around(self, instr: Instruction, form: Affine) -> list[Loop]:
        """The loops whose counters matter: those around, and those around of which the address is one of the last."""
        assert instr.block is not None
        inner = self.owner.loops.of(instr.block)
        found = dict.fromkeys([] if inner is None else inner.ancestors())
        for loop in form.loops():
            found.update(dict.fromkeys(loop.ancestors()))
        return sorted(found, key=lambda loop: -loop.depth)

    def _number(self, around: list[list[Loop]]) -> None:
        """Variables in the order in which they go: counters of inner loops first, sizes last."""
        every = sorted({loop for loops in around for loop in loops}, key=lambda loop: -loop.depth)
        for loop in every:
            for side, loops in zip("rw", around, strict=True):
                if loop in loops:
                    if loop is self.later and side == "w":
                        self._of((loop, "later"))
                    else:
                        self._of(self._counter(loop, side))

    def _of(self, key: _Variable) -> int:
        return self.order.setdefault(key, len(self.order))

    def _counter(self, loop: Loop, side: str) -> _Variable:
        return (loop, "both" if loop in self.same else "r" if loop is self.later else side)

    def _facts(self, loop: Loop, side: str) -> Iterable[Polynomial]:
        count = self._iteration(loop, side)
        yield variable(self._of(self._counter(loop, side)))
        for ceiling in self.owner.ceilings.of(loop):
            yield added(self._polynomial(ceiling.form, side), count, -ceiling.factor)

    def _iteration(self, loop: Loop, side: str) -> Polynomial:
        count = variable(self._of(self._counter(loop, side)))
        return added(count, variable(self._of((loop, "later")))) if loop is self.later and side == "w" else count

    def _polynomial(self, form: Affine, side: str) -> Polynomial:
        total = constant(signed(form.const))
        for symbol, factor in form.terms.items():
            if isinstance(symbol, Scaled):
                part = multiplied(self._iteration(symbol.loop, side), self._value(symbol.value, side))
            elif isinstance(symbol, Loop):
                part = self._iteration(symbol, side)
            else:
                part = self._value(symbol, side)
            total = added(total, part, signed(factor))
        return total

    def _value(self, value: Value, side: str) -> Polynomial:
        """A value that is the same for both where no loop in which they are apart computes it; a product as one, and a
        rest as what it is the rest of, less the divisor times the quotient."""
        divides = isinstance(value, Instruction) and value.opcode in TRAPS
        if isinstance(value, Instruction) and (divides or (value.opcode == "mul" and "nsw" in value.flags)):
            left, right = map(self.owner.induction.form, value.operands)
            if left.exact and right.exact and (value.opcode[0] != "u" or positive(left)):
                one, other = self._polynomial(left, side), self._polynomial(right, side)
                if not divides:
                    return multiplied(one, other)
                key = value.opcode[0], frozenset(one.items()), frozenset(other.items())
                quotient = variable(self._of((key, "quotient")))
                return quotient if value.opcode[1:] == "div" else added(one, multiplied(quotient, other), -1)
        own = self.owner.loops.of(value.block) if isinstance(value, Instruction) and value.block is not None else None
        shared = own is None or own in self.same
        return variable(self._of((value, "both" if shared else side)))


def ordered(pred: str, outcome: bool) -> str:
    """The order of two numbers that the outcome of their comparison says."""
    pred = pred if outcome else INVERSE[pred]
    return pred[1:] if pred[0] in "us" else pred


def _bytes(access: Instruction) -> int:
    return ty.store_size(access.type if access.opcode == "load" else access.operands[0].type)


def _rows(difference: Polynomial) -> Iterable[Polynomial]:
    """Differences of two counters that are multiplied with the same."""
    for left, factor in difference.items():
        for right, other in difference.items():
            if left and right and factor == -other > 0 and left[1:] == right[1:] and left[0] != right[0]:
                yield added(variable(left[0]), variable(right[0]), -1)
