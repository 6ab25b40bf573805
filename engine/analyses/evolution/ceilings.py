"""What the iteration of a loop never exceeds, as linear forms over sizes and the counters of loops around it.

A trip count is an expression (`trips.py`); what bounds it is simpler. The smaller of two numbers is bounded by each of
them, so that a block `for (i = b; i < min(b + 32, n); i++)` has no more than 32 iterations, and ends before n. The
greater of two numbers is the one that the comparisons in front of the loop say. A quotient bounds a multiple of the
iteration.

A count is a number that a machine counts to: what it is computed from modulo 2**64 is the same over the integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.affine import Affine, Symbol
from irgrad.engine.analyses.evolution.guards import comparisons, conditions_before
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import Expr, signed
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value
from irgrad.engine.ir.opcodes import UNSIGNED
from irgrad.engine.ir.predicates import INVERSE, SWAPPED

__all__ = ["Ceiling", "Ceilings", "positive", "whole"]

_MOST = 4  # forms of one count
_DIVISOR = 1 << 10  # a larger one makes a number that a machine counts to of a difference that has wrapped
_NATURAL = UNSIGNED | {"umin", "umax", "udiv_ceil"}  # numbers without sign


@dataclass(frozen=True, slots=True)
class Ceiling:
    """factor * iteration <= form, over the integers; factor: positive."""

    form: Affine
    factor: int = 1


@dataclass(frozen=True, slots=True)
class _Order:
    """high >= low + more, as signed or unsigned numbers."""

    high: Value
    low: Value
    more: int
    unsigned: bool


class Ceilings:
    """Answers for one function. A snapshot, like the analyses that it is built on."""

    def __init__(self, induction: Induction) -> None:
        self.induction = induction
        self._found: dict[Loop, list[Ceiling]] = {}
        self._orders: dict[Loop, list[_Order]] = {}

    def of(self, loop: Loop) -> list[Ceiling]:
        """The ceilings of a loop; none where nothing is known, or where it may not end as it is counted."""
        if loop not in self._found:
            count = self.induction.max_trip_count(loop)
            self._found[loop] = self._of(loop, count.expr)[:_MOST] if count is not None and count.certain else []
        return self._found[loop]

    def _of(self, loop: Loop, expr: Expr) -> list[Ceiling]:
        op = expr[0]
        if op == "const":
            return [Ceiling(Affine(64, signed(expr[1])))] if signed(expr[1]) >= 0 else []
        if op == "umin":
            return [found for part in expr[1:] for found in self._of(loop, part)]
        quotient, more = self._quotient(expr)
        if quotient is not None:
            by, up = signed(quotient[2][1]), quotient[0] == "udiv_ceil"
            most = by * more + (by - 1 if up else 0)  # by * ceil(a / by) <= a + by - 1
            distance = self._above(loop, quotient[1], by - 1) if up else quotient[1]
            return [Ceiling(form.moved(most), by) for form in self._forms(loop, distance)]
        return [Ceiling(form) for form in self._forms(loop, expr)]

    @staticmethod
    def _quotient(expr: Expr) -> tuple[Expr | None, int]:
        """The quotient by a small number that an expression is, but for a number that is added."""
        more = 0
        if expr[0] in ("add", "sub") and expr[2][0] == "const":
            more = signed(expr[2][1]) if expr[0] == "add" else -signed(expr[2][1])
            expr = expr[1]
        known = expr[0] in ("udiv", "udiv_ceil") and expr[2][0] == "const" and 0 < signed(expr[2][1]) <= _DIVISOR
        return (expr if known else None), more

    def _above(self, loop: Loop, expr: Expr, less: int) -> Expr:
        """max(a, b) - b as a - b where a >= b - less: what it is rounded up to is then no more than a - b + less."""
        if expr[0] == "sub" and expr[1][0] in ("smax", "umax") and expr[2] in expr[1][1:]:
            low = expr[2]
            high = expr[1][2] if expr[1][1] == low else expr[1][1]
            forms = self.form(high, loop), self.form(low, loop)
            if forms[0] and forms[1] and self._no_less(
                    loop, forms[0], forms[1].moved(-less), unsigned=expr[1][0] == "umax"):  # fmt: skip
                return ("sub", high, low)
        return expr

    def _forms(self, loop: Loop, expr: Expr) -> list[Affine]:
        """Forms that an expression never exceeds."""
        form = self.form(expr, loop)
        if form is None and expr[0] == "sub" and expr[2][0] in _NATURAL:
            form = self.form(expr[1], loop)
        found: list[Affine] = []
        work = [] if form is None else [form]
        while work and len(found) + len(work) <= _MOST:
            form = work.pop(0)
            least = next((s for s, c in form.terms.items() if signed(c) > 0 and self._lesser(s)), None)
            if least is None:
                found.append(form)
            else:
                by, rest = form.terms[least], {s: c for s, c in form.terms.items() if s is not least}
                without = Affine(form.bits, form.const, rest, form.exact)
                work += [without.plus(operand, signed(by)) for operand in self._lesser(least)]
        return found or ([] if form is None else [form])

    def _lesser(self, symbol: Symbol) -> list[Affine]:
        """Those of the numbers of which a symbol is the least that are known not to wrap; none where it is not one."""
        forms = {sign: [self.induction.form(o) for o in self._of_least(symbol, sign)] for sign in "su"}
        return [f for f in forms["s"] if whole(f)] + [f for f in forms["u"] if whole(f) and positive(f)]

    def form(self, expr: Expr, loop: Loop) -> Affine | None:
        """What an expression is where a loop is entered, as a form; None where it is none."""
        if expr[0] == "const":
            return Affine(64, signed(expr[1]))
        if expr[0] == "value":
            form = self.induction.form(expr[1])
            return form if form.exact or form.bits == 64 else None
        if expr[0] in ("add", "sub"):
            left, right = self.form(expr[1], loop), self.form(expr[2], loop)
            return None if left is None or right is None else left.plus(right, 1 if expr[0] == "add" else -1)
        if expr[0] == "zext":
            inner = self.form(expr[1], loop)
            return inner if inner is not None and inner.exact and positive(inner) else None
        if expr[0] in ("smax", "umax"):
            for a, b in ((expr[1], expr[2]), (expr[2], expr[1])):
                high, low = self.form(a, loop), self.form(b, loop)
                if high and low and self._no_less(loop, high, low, unsigned=expr[0] == "umax"):
                    return high
        return None

    def count(self, loop: Loop, *, multiple: bool = False) -> Affine | None:
        """The number of iterations behind the first as a form; None where that is none, or less is known. multiple: or
        what such a number is the quotient of"""
        count = self.induction.trip_count(loop)
        if count is None or not count.certain:
            return None
        quotient, _ = self._quotient(count.expr)
        if quotient is None or not multiple:
            return self.form(count.expr, loop)
        by, up = signed(quotient[2][1]), quotient[0] == "udiv_ceil"
        return self.form(self._above(loop, quotient[1], by - 1) if up else quotient[1], loop)

    def _of_least(self, symbol: Symbol | None, sign: str) -> list[Value]:
        """The numbers, signed or unsigned, of which a symbol is the least; none where it is not one."""
        if not isinstance(symbol, Instruction):
            return []
        if symbol.opcode == "select":
            asked, *chosen = symbol.operands
            pred = asked.pred or "" if isinstance(asked, Instruction) and asked.opcode == "icmp" else ""
            if pred[:1] != sign or not isinstance(asked, Instruction):
                return []
            compared = asked.operands if pred[1] == "l" else asked.operands[::-1]
            forms = [(self.induction.form(a), self.induction.form(b)) for a, b in zip(chosen, compared, strict=True)]
            return chosen if all(one.bits == other.bits and one.same(other) for one, other in forms) else []
        return symbol.args if symbol.is_call and (symbol.callee_name or "").startswith(f"llvm.{sign}min.i") else []

    # -- what is known in front of a loop ------------------------------------------------------------------------------

    def holds(self, compare: Instruction, outcome: bool, loop: Loop) -> bool:
        """Whether a comparison in a loop has an outcome in all iterations, by what is known in front of the loop and by
        what iterations go on with; False where that is not known."""
        orders = _orders(compare, outcome)
        if len(orders) != 1:
            return False
        above, below = self.induction.form(orders[0].high), self.induction.form(orders[0].low).moved(orders[0].more)
        return self._no_less(loop, above, below, unsigned=orders[0].unsigned, inside=True)

    def _no_less(self, loop: Loop, high: Affine, low: Affine, *, unsigned: bool, inside: bool = False) -> bool:
        """Whether one form is no less than another one wherever the loop is entered, or in each of its iterations."""
        if whole(high) and whole(low) and (not unsigned or positive(low)):
            gap = high.plus(low, -1)
            if gap.is_const and gap.const >= 0:
                return True
        orders = [*self._known(loop), *(self._kept(loop) if inside else ())]
        if any(self._implies(order, high, low) for order in orders if order.unsigned is unsigned):
            return True
        symbol = next(iter(high.terms)) if list(high.terms.values()) == [1] and not high.const else None
        least = [self.induction.form(o) for o in self._of_least(symbol, "u" if unsigned else "s")]
        return bool(least) and all(self._no_less(loop, f, low, unsigned=unsigned, inside=inside) for f in least)

    def _implies(self, order: _Order, high: Affine, low: Affine) -> bool:
        above, below = self.induction.form(order.high), self.induction.form(order.low).moved(order.more)
        if high.same(above) and low.same(below):  # nothing wraps between the two
            return high.bits == above.bits == 64 or (above.exact and below.exact)
        if order.unsigned or not all(map(whole, (high, low, above, below))):
            return False
        gap = high.plus(low, -1).plus(above, -1).plus(below)
        return gap.is_const and gap.const >= 0

    def _known(self, loop: Loop) -> list[_Order]:
        """What comparisons on every way into a loop say, and those with which the loops around it go on."""
        if loop not in self._orders:
            found = conditions_before(self.induction.cfg, self.induction.loops.dom, loop)
            self._orders[loop] = [order for compare, outcome in found for order in _orders(compare, outcome)]
            for outer in list(loop.ancestors())[1:]:
                self._orders[loop] += self._kept(outer)
        return self._orders[loop]

    def _kept(self, loop: Loop) -> Iterator[_Order]:
        """What the comparison at the end of an iteration says of the next one, where it holds for the first as well."""
        if len(loop.latches) != 1 or (end := loop.latches[0].terminator).opcode != "br" or len(end.operands) != 1:
            return
        after = {v: phi for phi in loop.header.phis for b, v in _given(phi) if loop.contains(b)}
        for compare, outcome in comparisons(end.operands[0], end.blocks[0] is loop.header):
            for order in _orders(compare, outcome):
                high, low = (after.get(v, v) for v in (order.high, order.low))
                kept = high if low is not order.low else low if high is not order.high else None
                if kept is None or not self.induction.invariant(kept, loop):
                    continue
                phi = low if kept is high else high
                first = [v for b, v in _given(phi) if not loop.contains(b)]
                forms = [self.induction.form(first[0] if v is phi else v) for v in (high, low)]
                if len(first) == 1 and self._no_less(
                    loop, forms[0], forms[1].moved(order.more), unsigned=order.unsigned
                ):
                    yield replace(order, high=high, low=low)


def _given(phi: Value) -> Iterator[tuple[Block, Value]]:
    assert isinstance(phi, Instruction)
    return zip(phi.blocks, phi.operands, strict=True)


def _orders(compare: Instruction, outcome: bool) -> list[_Order]:
    """What the outcome of a comparison says."""
    a, b = compare.operands
    pred = (compare.pred or "") if outcome else INVERSE.get(compare.pred or "", "")
    if pred[1:] in ("lt", "le"):
        a, b, pred = b, a, SWAPPED[pred]
    if pred in ("sgt", "sge", "ugt", "uge"):
        return [_Order(a, b, pred[2] == "t", pred[0] == "u")]
    if pred == "ne":  # of numbers without sign nought is the least
        return [_Order(x, y, 1, True) for x, y in ((a, b), (b, a)) if isinstance(y, ConstInt) and not y.value]
    return [_Order(a, b, 0, sign) for sign in (False, True)] if pred == "eq" else []


def whole(form: Affine) -> bool:
    """Whether a form holds over the integers: by what is known of it, or because counters of loops stay small."""
    small = all(isinstance(s, Loop) and abs(signed(c)) <= _DIVISOR for s, c in form.terms.items())
    return form.exact or (form.bits == 64 and small and abs(signed(form.const)) < 1 << 32)


def positive(form: Affine) -> bool:
    """Whether a form is never negative as it stands."""
    return signed(form.const) >= 0 and all(isinstance(s, Loop) and signed(c) >= 0 for s, c in form.terms.items())
