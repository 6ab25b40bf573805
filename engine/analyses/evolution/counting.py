"""Trip counts: solves a loop's exit conditions for the first iteration in which they let go.

Let a(k) be the left side of the comparison in iteration k, b(k) the right one, and let the loop go on while
`a(k) pred b(k)`. The exiting block dominates every latch, so it runs in each iteration and the back edge is taken
exactly min{k : not a(k) pred b(k)} times. Both sides are forms, a(k) = a + k*s modulo 2**bits. The cases, with the wrap
each of them allows:

    ne            first k with k*s = b - a modulo 2**bits, solved by the inverse of the odd part of s: no flags needed
                  (that there is one follows for pointers that stay in their object and have no other way out)
    <, s = 1      counts up to b one by one, meets it before any wrap: no flags needed when b is invariant
                  (likewise >, s = -1)
    < and <=      over the integers, ceil((b - a) / s): needs that the reading compared does not wrap in the loop
                  (`exact` for signed, `rising` for unsigned; a wrap would be poison and branching on it undefined)

An exit that is decided outside of the loop is taken in the first iteration or never, and one behind which the function
does not return ends no count: the others have to be certain then.

Quotients and differences are taken in unsigned 64-bit arithmetic as max(b, a) - a, which cannot overflow.
"""

from __future__ import annotations

from typing import Protocol

from irgrad.engine.analyses.control.decisions import decisions
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.affine import Affine, constant_value, width
from irgrad.engine.analyses.evolution.trips import Expr, TripCount, const, evaluate, from_form, make, signed
from irgrad.engine.ir.model import Block, ConstUndef, Instruction, Value
from irgrad.engine.ir.predicates import INVERSE, SWAPPED
from irgrad.rules.effects import facts


class LinearForms(Protocol):
    """The linear forms of a function's integers over its loop counters (see `Induction`)."""

    loops: Loops

    def form(self, value: Value, scope: Loop | None = None) -> Affine: ...
    def bounds(self, form: Affine) -> tuple[float, float]: ...


def solve(induction: LinearForms, loop: Loop) -> tuple[TripCount | None, TripCount | None]:
    """(the count, an upper bound of it) of the back edges taken; None for what is not known."""
    dom = induction.loops.dom
    exact = True
    bounds: list[TripCount] = []
    sudden: list[Expr] = []
    for block in loop.exiting:
        if _never_returns(induction.loops, loop, block):
            continue
        at_once = _at_once(induction.loops, loop, block)
        if at_once is not None:
            sudden.append(at_once)
            continue
        steady = induction.loops.of(block) is loop and all(dom.dominates(block, latch) for latch in loop.latches)
        found, all_solved = _exit_counts(induction, loop, block) if steady else ([], False)
        exact = exact and all_solved
        bounds.extend(found)
    if len(bounds) > 1 or len(loop.exiting) > 1 or not exact:
        # With another way out, a count that relies on this exit being taken says nothing.
        certain = [count for count in bounds if count.certain]
        exact = exact and len(certain) == len(bounds)
        bounds = certain
    if not bounds:
        return None, None
    expr = bounds[0].expr
    for more in (*(other.expr for other in bounds[1:]), *sudden):
        expr = make("umin", expr, more)
    most = TripCount(expr, all(count.certain for count in bounds))
    return (most if exact else None), most


def _never_returns(loops: Loops, loop: Loop, block: Block) -> bool:
    """An exit behind which the function does not return (it throws, aborts, or a check failed): nothing in reverse runs
    for iterations that ended there."""
    work = [succ for succ in loops.cfg.succs(block) if not loop.contains(succ)]
    seen = set(work)
    while work:
        item = work.pop()
        if item.terminator.opcode == "ret" or loop.contains(item):
            return False
        fresh = [succ for succ in loops.cfg.succs(item) if succ not in seen]
        seen.update(fresh)
        work += fresh
    return True


def _at_once(loops: Loops, loop: Loop, block: Block) -> Expr | None:
    """The count of an exit that conditions from outside of the loop decide: it is taken in the first iteration, or
    never (all bits set). None for other exits."""
    last = block.terminator
    outside = [not loop.contains(target) for target in last.blocks]
    if last.opcode != "br" or sum(outside) != 1:
        return None
    ways = decisions(loops, loop, block)
    if ways is None or not all(_from_outside(c, loop) for c in (last.operands[0], *(way.condition for way in ways))):
        return None
    stays = _truth(last.operands[0], holds=outside[1])
    for way in ways:
        stays = make("umax", stays, _truth(way.condition, holds=not way.holds))
    return stays


def _from_outside(cond: Value, loop: Loop) -> bool:
    return not isinstance(cond, ConstUndef) and not (isinstance(cond, Instruction) and loop.contains(cond.block))


def _truth(cond: Value, *, holds: bool) -> Expr:
    """All bits set where the condition holds (or where it does not), else none."""
    known = constant_value(cond)
    yes: Expr = ("value", cond) if known is None else const(known)
    return yes if holds else make("sub", const(-1), yes)


def _exit_counts(induction: LinearForms, loop: Loop, block: Block) -> tuple[list[TripCount], bool]:
    """Counts of the conditions of which each lets the loop go at this exit; whether these are all there are."""
    branch = block.terminator
    if branch.opcode != "br" or len(branch.blocks) != 2:
        return [], False
    inside = [loop.contains(target) for target in branch.blocks]
    if inside[0] == inside[1]:
        return [], False
    counts: list[TripCount] = []
    complete = True
    work: list[tuple[Value, bool]] = [(branch.operands[0], inside[0])]
    while work:
        cond, goes_on = work.pop()
        if not isinstance(cond, Instruction) or not loop.contains(cond.block):
            complete = False
            continue
        ops = cond.operands
        if cond.opcode == "xor" and constant_value(ops[1]) == -1:
            work.append((ops[0], not goes_on))
        elif cond.opcode == ("and" if goes_on else "or"):
            work.extend((op, goes_on) for op in ops)
        elif cond.opcode == "select" and constant_value(ops[2 if goes_on else 1]) == (0 if goes_on else -1):
            work.append((ops[0], goes_on))
            work.append((ops[1 if goes_on else 2], goes_on))
        else:
            count = _comparison(induction, loop, cond, goes_on) if cond.opcode == "icmp" else None
            if count is None:
                complete = False
            else:
                counts.append(count)
    return counts, complete


class _Side:
    """One side of the comparison: its form, its value before the loop, and what it grows by."""

    __slots__ = ("form", "start", "stride", "value")

    def __init__(self, induction: LinearForms, loop: Loop, value: Value) -> None:
        self.value = value
        self.form = induction.form(value, loop)
        self.stride = self.form.stride(loop)
        self.start = from_form(self.form.at_start(loop))

    @property
    def varies(self) -> bool:
        return bool(self.stride.const or self.stride.terms)

    def usable(self, loop: Loop) -> bool:
        """Are all its symbols numbers that exist before the loop?"""
        return self.start is not None and not any(
            isinstance(v, ConstUndef) or (isinstance(v, Instruction) and loop.contains(v.block))
            for v in self.form.values()
        )

    def steady(self, induction: LinearForms, is_signed: bool) -> bool:
        """Does the reading compared move by exactly the stride, over the integers?"""
        if not self.varies:
            return True
        if is_signed:
            return self.form.exact
        return self.form.rising or (self.form.exact and induction.bounds(self.form)[0] >= 0)

    def reading(self, bits: int, is_signed: bool) -> Expr:
        """The signed or unsigned reading before the loop, as 64 bits."""
        assert self.start is not None
        if is_signed and self.form.exact:
            return self.start
        return make("sext" if is_signed else "zext", self.start, bits)


def _comparison(induction: LinearForms, loop: Loop, cond: Instruction, goes_on: bool) -> TripCount | None:
    """The count of iterations in which an icmp says to go on, before the first in which it does not."""
    bits = width(cond.operands[0])
    if bits is None or bits > 64:
        return None
    pred = cond.pred if goes_on else INVERSE[cond.pred]
    a, b = (_Side(induction, loop, value) for value in cond.operands)
    if not a.varies:
        a, b, pred = b, a, SWAPPED[pred]
    if not a.varies or not a.usable(loop) or not b.usable(loop):
        return None
    step = a.stride.plus(b.stride, -1)
    if pred in ("eq", "ne"):
        return _equality(pred, loop, a, b, step, bits)
    return _order(induction, pred, a, b, step, bits)


def _equality(pred: str, loop: Loop, a: _Side, b: _Side, step: Affine, bits: int) -> TripCount | None:
    assert a.start is not None and b.start is not None
    s = signed(step.const, bits)
    if step.terms or s == 0:
        return None
    distance = make("sub", b.start, a.start) if s > 0 else make("sub", a.start, b.start)
    distance = make("zext", distance, bits)
    if pred == "eq":  # equal in iteration 0 at most: the step is not 0 modulo 2**bits
        return TripCount(make("sub", const(1), make("umin", const(1), distance)))
    s = abs(s)
    twos = (s & -s).bit_length() - 1
    if twos and distance[0] == "const" and distance[1] & ((1 << twos) - 1):
        return None  # never equal
    inverse = pow(s >> twos, -1, 1 << bits)
    count = make("mul", make("lshr", distance, twos), const(inverse))
    count = make("zext", count, bits - twos) if inverse != 1 else count
    return TripCount(count, certain=twos == 0 or distance[0] == "const" or _stays(loop, a, b))


def _stays(loop: Loop, a: _Side, b: _Side) -> bool:
    """Whether a pointer that misses the other one leaves its object, which no program may do (`inbounds`), as the loop
    has no other end: no other exit, and no call that may not return."""
    if not (a.value.type.is_ptr and a.form.exact and not b.varies) or len(loop.exiting) > 1:
        return False
    calls = [i.callee_name or "" for block in loop.blocks for i in block.instructions if i.is_call]
    known = [(name.startswith("llvm."), facts(name)) for name in calls]
    return all(own or (said is not None and said.kind == "pure" and not said.noreturn) for own, said in known)


def _order(induction: LinearForms, pred: str, a: _Side, b: _Side, step: Affine, bits: int) -> TripCount | None:
    is_signed, up, or_equal = pred[0] == "s", pred[1] == "l", pred[2] == "e"
    if is_signed and a.value.type.is_ptr:
        return None
    steady = a.steady(induction, is_signed) and b.steady(induction, is_signed)
    one_by_one = not step.terms and step.const == (1 if up else -1) and not b.varies
    bound = b.reading(bits, is_signed)
    if not steady and not (one_by_one and (not or_equal or _has_room(bound, bits, is_signed, up))):
        return None
    size = _step_size(step, up)
    if size is None:
        return None
    start = a.reading(bits, is_signed)
    highest = "smax" if is_signed else "umax"
    # Iterations that satisfy the strict comparison cover [low, high); `top` is high where that is above low.
    low, top = (start, make(highest, bound, start)) if up else (bound, make(highest, start, bound))
    distance = make("sub", top, low)
    certain = not step.terms
    if not or_equal:
        return TripCount(make("udiv_ceil", distance, size), certain)
    # One more where the bound is met exactly: distance / size + 1, but 0 where the first comparison fails already.
    fails = make("umin", const(1), make("sub", top, bound if up else start))
    return TripCount(make("add", make("udiv", distance, size), make("sub", const(1), fails)), certain)


def _step_size(step: Affine, up: bool) -> Expr | None:
    """Distance per iteration towards the bound, at least 1; None where it is known to point away or is not simple."""
    if not step.terms:
        size = step.const if up else -step.const
        return const(size) if 0 < size < 1 << 63 else None
    if step.const or len(step.terms) != 1 or abs(next(iter(step.terms.values()))) != 1:
        return None
    expr = from_form(step if up else step.times(-1))
    # A step of 0 or against the bound: no iteration, or no end; either way the divisor must not be 0.
    return None if expr is None else make("umax", expr, const(1))


def _has_room(bound: Expr, bits: int, is_signed: bool, up: bool) -> bool:
    """Is there a number behind the bound, so that counting one by one gets past it?"""
    if bound[0] != "const":
        return False
    number = evaluate(bound, lambda _: 0)
    if is_signed:
        number = signed(number)
        return number != (1 << (bits - 1)) - 1 if up else number != -(1 << (bits - 1))
    return number != (1 << bits) - 1 if up else number != 0
