"""Whether an inner loop is entered, asked before the nest around it.

The iterations of an inner loop are counted at the entry of the nest, ahead of the branch that skips the loop when there
are none: for `for (unsigned j = a; j < b; j++)` the count b - a - 1 wraps around to as many as 2**32 - 1 iterations
where there are none. Only the skipping branch, evaluated at the entry as well, tells such a count from a true one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from irgrad.engine.analyses.evolution.trips import Expr, TripCount
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from irgrad.engine.analyses.control.cfg import Cfg
    from irgrad.engine.analyses.control.dominators import Dominators
    from irgrad.engine.analyses.control.loops import Loop

_ENDLESS = 1 << 40
"""So many iterations never end: a count of 64 bits that large has wrapped."""


def wraps_in_32_bits(count: TripCount) -> bool:
    """The count is a difference of 32-bit numbers without sign: 2**31 and more may be meant or be a wrapped one."""
    return _wraps(count.expr)


def _wraps(expr: Expr) -> bool:
    if expr[0] in ("const", "value"):
        return False
    if expr[0] == "zext" and expr[2] == 32:
        return True
    return any(_wraps(e) for e in expr[1:] if isinstance(e, tuple))


def conditions(cfg: Cfg, dom: Dominators, top: Loop, loop: Loop) -> list[tuple[Instruction, bool]] | None:
    """The comparisons on the way from an iteration of `top` into `loop` that can be made before `top`, each with the
    outcome that leads on; None when the way has branches and none of them can."""
    found: list[tuple[Instruction, bool]] = []
    unknown = False
    for value, outcome in _decisions(cfg, dom, loop, top.header):
        if _is_comparison(value) and all(_outside(top, o) for o in value.operands):
            found.append((value, outcome))
        else:
            unknown = True
    return None if unknown and not found else found


def conditions_before(cfg: Cfg, dom: Dominators, loop: Loop) -> list[tuple[Instruction, bool]]:
    """The comparisons on every way into a loop, each with the outcome that leads on. (Nothing makes their operands anew
    between them and the loop: what is before them on every way is not reached again without them.)"""
    return [(value, outcome) for value, outcome in _decisions(cfg, dom, loop) if _is_comparison(value)]


def comparisons(condition: Value, outcome: bool) -> list[tuple[Instruction, bool]]:
    """The comparisons that a condition with this outcome says something of, each with its own."""
    return [(value, each) for value, each in parts(condition, outcome) if _is_comparison(value)]


def _decisions(cfg: Cfg, dom: Dominators, loop: Loop, top: Block | None = None) -> Iterator[tuple[Value, bool]]:
    """What branches on every way into a loop ask, with the outcome that leads on, the last first, up to a block."""
    block = loop.header
    while block is not top and (above := dom.idom(block)) is not None:
        end, before = above.terminator, [pred for pred in cfg.preds(block) if not dom.dominates(block, pred)]
        if end.opcode == "br" and len(end.operands) == 1 and before == [above]:
            yield from parts(end.operands[0], end.blocks[0] is block)
        block = above


def _is_comparison(value: Value) -> TypeGuard[Instruction]:
    return isinstance(value, Instruction) and value.opcode == "icmp"


def parts(condition: Value, outcome: bool) -> list[tuple[Value, bool]]:
    """`a && b` that holds, or `a || b` that does not, as its parts."""
    if isinstance(condition, Instruction) and condition.type is ty.I1:
        op, rest = condition.opcode, condition.operands
        if op == ("and" if outcome else "or"):
            return [*parts(rest[0], outcome), *parts(rest[1], outcome)]
        if op == "select":
            other, fixed = (rest[1], rest[2]) if outcome else (rest[2], rest[1])
            if isinstance(fixed, ConstInt) and bool(fixed.value) is not outcome:
                return [*parts(rest[0], outcome), *parts(other, outcome)]
    return [(condition, outcome)]


def _outside(top: Loop, value: Value) -> bool:
    return not (isinstance(value, Instruction) and top.contains(value.block))


def extent(
    b: Builder, count: TripCount, iterations: Value, guards: Iterable[tuple[Instruction, bool]],
    value: Callable[[Value], Value],
) -> Value:  # fmt: skip
    """Iterations to make room for, at the entry of a nest: none where one of the inner loop's own guards fails.
    `value`: what an operand of a guard is in the function that is written."""
    zero = ConstInt(ty.I64, 0)
    if not wraps_in_32_bits(count):
        return b.select(b.icmp("ult", iterations, ConstInt(ty.I64, _ENDLESS)), iterations, zero)
    room = b.select(b.icmp("ult", iterations, ConstInt(ty.I64, (1 << 32) + 1)), iterations, zero)
    for compare, outcome in guards:
        left, right = (value(o) for o in compare.operands)
        holds = b.icmp(compare.pred or "eq", left, right)
        room = b.select(holds, room, zero) if outcome else b.select(holds, zero, room)
    return room


def known_room(cfg: Cfg, dom: Dominators, top: Loop, loop: Loop, count: TripCount) -> bool:
    """Whether `extent` can tell a true count from a wrapped one."""
    return loop is top or not wraps_in_32_bits(count) or conditions(cfg, dom, top, loop) is not None


__all__ = ["comparisons", "conditions", "conditions_before", "extent", "known_room", "parts", "wraps_in_32_bits"]
