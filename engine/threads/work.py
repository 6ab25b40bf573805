"""How much work a loop is, and in how many chunks it is worth running.

A chunk costs what it takes to hand it to a thread, a tape of its own, and copies of the arrays that its reverse sweep
adds to. So a loop has sixteen chunks where each of them has work for that (`Costs.chunk`, and `Costs.copied` for each
element of the arrays that all iterations read), and eight, four, two or one where there is less of it: how often loops
run, and how large arrays are, is known before the loop, when it runs. The number of threads does not matter, so that
results have the same bits on any number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.control.promises import SILENT
from irgrad.engine.analyses.evolution.ahead import Ahead
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import Expr, const, make
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Module, Value, is_zero
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.engine.normalise.iterations import CHUNKS
from irgrad.engine.threads.thread_memory import Covered
from irgrad.rules.effects import facts
from irgrad.rules.expressions.costs import LIBRARY_CALL

__all__ = ["MOST", "Size", "Worth", "count_pieces", "fixed_work", "some_pay", "take_pieces", "work_inside", "work_of"]

MOST = CHUNKS.bit_length() - 1
"""The logarithm of the most chunks."""
_PIECES = "irgrad.chunk.pieces"
_ELSEWHERE = 200  # operations of a function of the program whose body is not here
_LEAST = ("llvm.smin.", "llvm.umin.")
_FAR = 1 << 31  # operations: more than any number of chunks wants
_LARGE = 1 << 32  # bytes of an array: more are as many
_OFTEN = 16  # times that a loop runs of which nothing is known
Size: TypeAlias = Callable[[Instruction], Value]
"""Writes the bytes of an array before an instruction."""


@dataclass(frozen=True, slots=True)
class Worth:
    """Operations of a loop, of which the source does not say that threads share it, that are worth a chunk, and 8 bytes
    of its copy of an array; see `Costs`."""

    chunk: int = 0
    copied: int = 0


def work_of(fn: Function, seen: frozenset[Function] = frozenset()) -> int:
    """About how many operations a function has: those of a loop in it count as sixteen each."""
    if fn in seen:
        return 0
    loops = get(Loops, fn)
    inner = seen | {fn}
    depths = {block: loop.depth if (loop := loops.of(block)) is not None else 0 for block in fn.blocks}
    return sum(_OFTEN ** max(0, depths[block] - (not seen)) * _of_block(block, inner) for block in fn.blocks)


def _of_block(block: Block, seen: frozenset[Function]) -> int:
    total = 0
    for instr in block.instructions:
        callee, name = (instr.callee, instr.callee_name or "") if instr.is_call else (None, "")
        if isinstance(callee, Function) and callee.blocks:
            total += work_of(callee, seen)
        elif instr.is_call and not name.startswith(SILENT):
            total += LIBRARY_CALL if name.startswith("llvm.") or facts(name) is not None else _ELSEWHERE
        else:
            total += not instr.is_call
    return total


def fixed_work(fn: Function, loop: Loop) -> int | None:
    """The operations of a loop; None where that is not known when it is compiled."""
    loops, count = get(Loops, fn), Induction(fn).trip_count(loop)
    inner = [fixed_work(fn, child) for child in loop.children]
    if count is None or count.const is None or None in inner:
        return None
    own = sum(_of_block(block, frozenset((fn,))) for block in loop.blocks if loops.of(block) is loop)
    return (count.const + 1) * (own + sum(work or 0 for work in inner))


def work_inside(fn: Function, loop: Loop) -> int:
    """About how many operations an iteration of a loop has, where loops in it run sixteen times."""
    loops, seen = get(Loops, fn), frozenset((fn,))
    return sum(_OFTEN ** (loops.depth(block) - loop.depth) * _of_block(block, seen) for block in loop.blocks)


class _Work:
    """Writes how much work loops in a loop are, or it itself, in front of it: numbers of operations, up to `_FAR`.
    Integers alone, for the size of a tape follows from how many chunks there are."""

    def __init__(self, module: Module, fn: Function, outer: Loop) -> None:
        assert outer.preheader is not None
        self.module, self.fn, self.ahead = module, fn, Ahead(fn, outer)
        self.at = Builder(outer.preheader, len(outer.preheader.instructions) - 1)
        self.writer = self.ahead.writer(self.at)

    def known(self, loop: Loop) -> bool:
        """Whether it is known how often a loop runs each time."""
        count = Induction(self.fn).trip_count(loop)
        return count is not None and self.ahead.known(count.expr) is not None

    def of(self, loop: Loop) -> Value:
        """The work of a loop; one inside of which nothing is known runs sixteen times."""
        loops, seen = get(Loops, self.fn), frozenset((self.fn,))
        own = sum(_of_block(block, seen) for block in loop.blocks if loops.of(block) is loop)
        total: Value = _number(min(own, _FAR))
        for inner in loop.children:
            total = self.at.add(total, self.of(inner), ())
        return self._least(self.at.mul(self._least(total), self._times(loop), ()))

    def wanted(self, worth: Worth, sizes: Iterable[Value]) -> Value:
        """The operations that are worth a chunk with copies of arrays of so many bytes."""
        elements: Value = _number(0)
        for size in sizes:
            elements = self.at.add(elements, self.at.binary("lshr", self._least(size, _LARGE), _number(3)), ())
        most = declare(self.module, "llvm.umax.i64", ty.I64, (ty.I64, ty.I64))
        copied = self.at.mul(elements, _number(worth.copied), ())
        return _number(worth.chunk) if is_zero(copied) else self.at.call(most, [copied, _number(worth.chunk)])

    def enough(self, whole: Value, wanted: Value, more: int) -> Value:
        """Whether some operations are worth two to this power chunks."""
        return self.at.icmp("uge", whole, self._least(self.at.mul(wanted, _number(1 << more), ())))

    def _least(self, value: Value, most: int = _FAR) -> Value:
        if isinstance(value, ConstInt):
            return _number(min(value.value, most))
        least = declare(self.module, "llvm.umin.i64", ty.I64, (ty.I64, ty.I64))
        return self.at.call(least, [value, _number(most)])

    def _times(self, loop: Loop) -> Value:
        count = Induction(self.fn).trip_count(loop)
        known = None if count is None else self._most(count.expr)
        if known is None or known[0] == "const":
            return _number(_OFTEN if known is None else min(known[1] + 1, _FAR))
        often = self.at.add(self.writer.number(known), _number(1), ())
        most = declare(self.module, "llvm.smax.i64", ty.I64, (ty.I64, ty.I64))
        return self._least(self.at.call(most, [often, _number(0)]))

    def _most(self, expr: Expr) -> Expr | None:
        """A count, or at least how far it may go, in numbers that are known before the outer loop."""
        known = self.ahead.known(expr)
        if known is not None:
            return known
        if expr[0] == "value":
            instr: Instruction = expr[1]
            ends = self.ahead.ends(self.ahead.induction.form(instr))
            if not isinstance(ends, str):
                return make("add", ends[1][1], const(ends[1][0]))
            least = instr.args if (instr.callee_name or "").startswith(_LEAST) else []
            return self._either(("value", v) for v in (instr.operands[1:] if instr.opcode == "select" else least))
        if expr[0] == "umin":
            return self._either(expr[1:])
        if expr[0] in ("add", "sub", "smax", "umax") and expr[2][0] == "const":
            most = self._most(expr[1])
            return None if most is None else make(expr[0], most, expr[2])
        return None

    def _either(self, rows: Iterable[Expr]) -> Expr | None:
        return next((most for row in rows if (most := self._most(row)) is not None), None)


def count_pieces(
    module: Module, fn: Function, loop: Loop, worth: Worth, copied: Iterable[Size], covers: Iterable[Covered]
) -> None:  # fmt: skip
    """Have a loop with one preheader know the logarithm of how many chunks it is worth, by a mark in it. copied: bytes
    of arrays of which a chunk has copies; covers: what each iteration has to write if there is to be more than one"""
    before, one = loop.preheader, ConstInt(ty.I64, 0)
    assert before is not None
    sizes = [size(before.terminator) for size in copied]
    work = _Work(module, fn, loop)
    at, whole, wanted, found = work.at, work.of(loop), work.wanted(worth, sizes), cast(Value, one)
    for more in range(1, MOST + 1):
        found = at.add(found, at.cast("zext", work.enough(whole, wanted, more), ty.I64), ("nuw", "nsw"))
    for cover, size in covers:
        length = size(before.terminator)
        at = Builder(before, len(before.instructions) - 1)
        found = at.select(cover.emit(at, length), found, one)
    mark = declare(module, _PIECES, ty.I64, (ty.I64,))
    Builder(loop.header, len(loop.header.phis)).call(mark, [found])


def some_pay(
    module: Module, fn: Function, outer: Loop, inner: Sequence[tuple[Loop, Sequence[Size]]], worth: Worth
) -> Value | None:  # fmt: skip
    """In front of a loop, whether one of those in it is worth two chunks each time; None where none is that is known
    to be as long there. inner: with the bytes, written there, of arrays of which a chunk has copies"""
    assert outer.preheader is not None
    sizes = [[size(outer.preheader.terminator) for size in copied] for _, copied in inner]
    work = _Work(module, fn, outer)
    found: Value = ConstInt(ty.I1, 0)
    for loop, known in [(loop, known) for (loop, _), known in zip(inner, sizes, strict=True) if work.known(loop)]:
        pays = work.enough(work.of(loop), work.wanted(worth, known), 1)
        found = pays if isinstance(found, ConstInt) else work.at.binary("or", found, pays)
    return None if isinstance(found, ConstInt) else found


def take_pieces(module: Module, fn: Function) -> Value | None:
    """What the mark in a function says; the mark goes."""
    marks = [i for i in fn.instructions() if i.is_call and i.callee_name == _PIECES]
    for mark in marks:
        assert mark.block is not None
        mark.block.instructions.remove(mark)
        replace_uses(fn, {mark: mark.args[0]})
    module.functions.pop(_PIECES, None)
    return marks[0].args[0] if marks else None


def _number(value: int) -> ConstInt:
    return ConstInt(ty.I64, value)
