"""In which iteration of a counted loop a condition changes.

A comparison of a counter with something invariant holds in the first iterations and then no longer, or the other way
round, or in one iteration alone; a condition that is invariant itself holds in all of them or in none.
"""

from __future__ import annotations

from dataclasses import dataclass

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.affine import Affine
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import Expr, TripCount, from_form, make
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Instruction, Value

__all__ = ["Change", "Number", "at_end", "change_of", "opened"]

_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


@dataclass(slots=True)
class Number:
    """The number of an iteration, as it is computed before the loop. kind: "order" (iterations until start + step * k
    reaches the bound, or passes it where it is `closed`), "equal" (the one in which it is the bound), "all" (all of
    them where a value holds, else none)."""

    kind: str
    start: Expr = ("const", 0)
    bound: Expr = ("const", 0)
    step: int = 1
    closed: bool = False
    unsigned: bool = False
    value: Value | None = None


@dataclass(slots=True)
class Change:
    """Where a condition changes: it is `first` in the iterations before number `at`, then the other; a `point`: it is
    `first` except in iteration number `at`, if there is one (an `at` behind the last means that there is none)."""

    condition: Instruction
    at: Number
    first: bool
    point: bool = False


def change_of(condition: Instruction, loop: Loop, forms: Induction) -> Change | None:
    """Where a condition changes in a loop that runs; None where that is not known before it."""
    if not loop.contains(condition.block):
        return Change(condition, Number("all", value=condition), first=True)
    if not all(isinstance(o.type, ty.IntType) for o in condition.operands):
        return None
    left, right = (forms.form(o, loop) for o in condition.operands)
    pred = condition.pred
    steps = [_step(form, loop) for form in (left, right)]
    if None in steps or (steps[0] == 0) == (steps[1] == 0):
        return None
    if steps[0] == 0:
        left, right = right, left
        pred = pred if pred in ("eq", "ne") else pred[0] + _SWAPPED[pred[1:]]
    step = steps[0] or steps[1]
    start, bound = from_form(left.at_start(loop)), from_form(right)
    if start is None or bound is None or not step:
        return None
    start, bound = opened(start, forms), opened(bound, forms)
    if pred in ("eq", "ne"):
        if not left.exact or not right.exact or abs(step) > 8:
            return None
        return Change(condition, Number("equal", start, bound, step), pred == "ne", point=True)
    unsigned = pred[0] == "u" and "samesign" not in condition.flags
    if unsigned and not (left.exact and right.exact and _never_negative(left, forms) and _never_negative(right, forms)):
        if not left.rising:
            return None
        bits = left.bits
        start, bound = make("zext", start, bits), make("zext", bound, bits)
    elif not left.exact or not right.exact:
        return None
    relation = pred[1:]
    first = (relation in ("lt", "le")) == (step > 0)
    relation = relation if first else _NEGATED[relation]
    return Change(condition, Number("order", start, bound, step, relation in ("le", "ge"), unsigned), first)


def opened(expr: Expr, forms: Induction) -> Expr:
    """A number over what its values are computed from, where that is sums of numbers outside of loops."""
    if expr[0] == "value":
        form = forms.form(expr[1])
        found = from_form(form) if form.exact and not any(v.type.is_ptr for v in form.values()) else None
        return expr if found is None else found
    return (expr[0], *(opened(e, forms) if isinstance(e, tuple) else e for e in expr[1:]))


def _inside(value: Value, loop: Loop) -> bool:
    return isinstance(value, Instruction) and loop.contains(value.block)


def _step(form: Affine, loop: Loop) -> int | None:
    """What a form grows by in each iteration; None where that is no constant, or where something else changes it."""
    if any(other is not loop for other in form.loops()) or any(_inside(v, loop) for v in form.values()):
        return None
    stride = form.stride(loop)
    return stride.const if stride.is_const else None


def _never_negative(form: Affine, forms: Induction) -> bool:
    return forms.bounds(form)[0] >= 0


def at_end(number: Number, trip: TripCount) -> bool | None:
    """Whether the iteration in which a condition is another is the first one (True) or the last one (False), be it a
    point or all that is on this side of a change of order; None where neither is known."""
    up, one = number.step > 0, ("const", 1)
    gap = make("sub", *((number.bound, number.start) if up else (number.start, number.bound)))
    if number.kind == "equal":
        if gap == ("const", 0) or _same(number.bound, number.start):
            return True
        return False if _same(gap, make("mul", trip.expr, ("const", abs(number.step)))) else None
    if number.kind != "order" or abs(number.step) != 1:
        return None
    before = make("add", gap, one) if number.closed else gap
    return True if _same(before, one) else False if _same(before, trip.expr) else None


def _same(one: Expr, other: Expr) -> bool:
    """Whether two numbers are the same whatever their values are, as far as sums tell."""
    return _sums(make("sub", one, other)) == {}


def _sums(expr: Expr, factor: int = 1) -> dict[Expr, int]:
    """A number as multiples of what it is made of, modulo 2**64; none for zero."""
    op = expr[0]
    if op == "const":
        rows = [(("const", 1), expr[1])]
    elif op in ("add", "sub"):
        rows = [*_sums(expr[1]).items(), *((key, -n if op == "sub" else n) for key, n in _sums(expr[2]).items())]
    elif op == "mul" and expr[2][0] == "const":
        rows = [(key, n * expr[2][1]) for key, n in _sums(expr[1]).items()]
    else:
        rows = [(expr, 1)]
    found: dict[Expr, int] = {}
    for key, n in rows:
        found[key] = (found.get(key, 0) + n * factor) % (1 << 64)
    return {key: n for key, n in found.items() if n}
