"""Subscripts of unsigned numbers shorter than an address, in a version of their loop in which they do not wrap.

    p[i * s + j] of `unsigned` numbers:  zext (i * s + j modulo 2**32)   ->   zext i * zext s + zext j

What C says of unsigned numbers is that they wrap, so that the subscripts of a loop are no linear forms of its counters,
however small they are. Before the loop, bounds of all that a subscript is computed from are known: of counters by where
they begin and what ends their loop, of everything else by what it is computed from. Where none of these bounds leaves
the numbers that there are, nothing wraps, and the subscript is computed in 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value
from irgrad.engine.ir.opcodes import POLYNOMIAL, RESIZES
from irgrad.engine.normalise.loop_parts import Version

__all__ = ["whole_subscripts"]

_MOST = 64  # operations behind the subscripts of a loop
_TRUE = ConstInt(ty.I1, 1)

Bounds = tuple[Value, Value]
"""The least and the greatest number that a value is, in 64 bits."""


def whole_subscripts(loop: Loop, forms: Induction) -> Version | None:
    """The version of a loop in which subscripts do not wrap that may do so, None where there is none, or one of them is
    computed in another way."""
    found = _Subscripts(loop)
    if not any(isinstance(i.type, ty.FloatType) and i.opcode == "load" for b in loop.blocks for i in b.instructions):
        return None
    for block in loop.blocks:
        for instr in block.instructions:
            if instr.opcode == "zext" and instr.type is ty.I64 and instr in forms.form(instr).terms:
                found.take(instr)
    return Version(list(found.outside), found.write) if found.subscripts else None


@dataclass(slots=True)
class _Counter:
    """A counter of a loop: what it starts from and follows it, and the limit, less a number, that it never passes."""

    phi: Instruction
    start: Value
    next: Instruction
    limit: Value
    less: int


@dataclass(slots=True)
class _Subscripts:
    """The subscripts of a loop, and what they are computed from."""

    loop: Loop
    subscripts: dict[Instruction, None] = field(default_factory=dict)
    outside: dict[Value, None] = field(default_factory=dict)
    counters: dict[Value, _Counter | None] = field(default_factory=dict)
    bounds: dict[Value, Bounds] = field(default_factory=dict)
    wide: dict[Value, Value] = field(default_factory=dict)
    holds: Value = _TRUE

    def take(self, subscript: Instruction) -> None:
        """Take a subscript among them where bounds of it are known."""
        seen: dict[Value, None] = {}
        if self._known(subscript.operands[0], seen) and any(_may_wrap(v, self.loop) for v in seen):
            self.subscripts[subscript] = None
            self.outside.update(dict.fromkeys(v for v in seen if not self._inside(v)))

    def _inside(self, value: Value) -> bool:
        return isinstance(value, Instruction) and self.loop.contains(value.block)

    def _known(self, value: Value, seen: dict[Value, None]) -> bool:
        """Whether bounds of a value can be told; `seen` has what is asked for that."""
        work = [value]
        while work:
            item = work.pop()
            if isinstance(item, ConstInt) or item in seen:
                continue
            seen[item] = None
            if not isinstance(item.type, ty.IntType) or item.type.bits > 64 or len(seen) > _MOST:
                return False
            if not self._inside(item):
                continue
            assert isinstance(item, Instruction)
            if item.opcode == "phi":
                counter = self._counter(item)
                if counter is None:
                    return False
                work += [counter.start, counter.limit]
            elif _plain(item):
                work += item.operands
            else:
                return False
        return True

    def _counter(self, phi: Instruction) -> _Counter | None:
        if phi not in self.counters:
            self.counters[phi] = _counter_of(phi, self.loop)
        return self.counters[phi]

    # -- before the loop -----------------------------------------------------------------------------------------------

    def write(self, at: Builder) -> tuple[Value, dict[Value, Value]]:
        """The question whether nothing wraps, and the subscripts in 64 bits."""
        for subscript in self.subscripts:
            self._bounds(subscript.operands[0], at)
        known: dict[Value, Value] = {s: self._wide(s.operands[0], at) for s in self.subscripts}
        return self.holds, known

    def _bounds(self, value: Value, at: Builder) -> Bounds:
        """The bounds of a value; `holds` has the question whether they are in its type, where it may wrap."""
        found: Bounds
        if value in self.bounds:
            return self.bounds[value]
        if isinstance(value, ConstInt):
            found = (ConstInt(ty.I64, _unsigned(value)), ConstInt(ty.I64, _unsigned(value)))
            return found
        assert isinstance(value.type, ty.IntType)
        if not self._inside(value):
            number = value if value.type is ty.I64 else at.cast("zext", value, ty.I64)
            found = self.bounds[value] = (number, number)
            if value.type.bits > 32:
                self._ask(at, found, 32)
            return found
        assert isinstance(value, Instruction)
        if value.opcode == "phi":
            counter = self._counter(value)
            assert counter is not None
            low, most = self._bounds(counter.start, at)
            limit = at.sub(self._bounds(counter.limit, at)[1], ConstInt(ty.I64, counter.less), ())
            found = (low, at.select(at.icmp("sgt", limit, most), limit, most))
        else:
            found = self._computed(value, at)
        self.bounds[value] = found
        self._ask(at, found, min(value.type.bits, 32))
        return found

    def _computed(self, value: Instruction, at: Builder) -> Bounds:
        if value.opcode in RESIZES or value.opcode == "freeze":
            return self._bounds(value.operands[0], at)
        op, (x, y) = _operation(value)
        (low, high), (least, most) = self._bounds(x, at), self._bounds(y, at)
        if op == "sub":
            return at.sub(low, most, ()), at.sub(high, least, ())
        return at.binary(op, low, least), at.binary(op, high, most)

    def _ask(self, at: Builder, bounds: Bounds, bits: int) -> None:
        """Bounds are numbers of so many bits: what is computed of such does not wrap in 64."""
        top = ConstInt(ty.I64, (1 << bits) - 1)
        inside = at.binary("and", at.icmp("ule", bounds[0], top), at.icmp("ule", bounds[1], top))
        self.holds = inside if self.holds is _TRUE else at.binary("and", self.holds, inside)

    # -- in the loop ---------------------------------------------------------------------------------------------------

    def _wide(self, value: Value, at: Builder) -> Value:
        """The value in 64 bits, computed where it is."""
        if isinstance(value, ConstInt):
            return ConstInt(ty.I64, _unsigned(value))
        if value in self.wide:
            return self.wide[value]
        if not self._inside(value):
            self.wide[value] = value if value.type is ty.I64 else at.cast("zext", value, ty.I64)
            return self.wide[value]
        assert isinstance(value, Instruction) and value.block is not None
        if value.opcode in RESIZES or value.opcode == "freeze":
            return self._wide(value.operands[0], at)
        if value.opcode == "phi":
            return self._wide_counter(value, at)
        op, (x, y) = _operation(value)
        made = Instruction(op, ty.I64, [self._wide(x, at), self._wide(y, at)], flags=("nuw", "nsw"),
                           metadata=dict(value.metadata))  # fmt: skip
        _behind(value, made)
        self.wide[value] = made
        return made

    def _wide_counter(self, phi: Instruction, at: Builder) -> Value:
        counter = self._counter(phi)
        assert counter is not None
        made = Instruction("phi", ty.I64, [], blocks=list(phi.blocks))
        self.wide[phi] = made
        for value in phi.operands:
            made.operands.append(self._wide(value, at))
        _behind(phi, made)
        return made


def _behind(value: Instruction, made: Instruction) -> None:
    block = value.block
    assert block is not None
    made.block = block
    block.instructions.insert(block.instructions.index(value) + 1, made)


def _unsigned(value: ConstInt) -> int:
    assert isinstance(value.type, ty.IntType)
    return value.value & ((1 << value.type.bits) - 1)


def _operation(value: Instruction) -> tuple[str, tuple[Value, Value]]:
    """The operation over the integers: what is added of the upper half of the numbers is subtracted."""
    x, y = value.operands
    if value.opcode == "add" and isinstance(y, ConstInt) and y.value < 0:
        return "sub", (x, ConstInt(y.type, -y.value))
    return "add" if value.opcode == "or" else value.opcode, (x, y)


def _plain(value: Instruction) -> bool:
    """Whether bounds of the result follow from those of the operands."""
    if value.opcode in POLYNOMIAL:
        return (value.opcode != "or" or "disjoint" in value.flags) and (
            value.opcode != "shl" or (isinstance(value.operands[1], ConstInt) and 0 <= value.operands[1].value < 32))
    return value.opcode in ("zext", "freeze") or (value.opcode == "trunc" and "nuw" in value.flags)


def _may_wrap(value: Value, loop: Loop) -> bool:
    inside = isinstance(value, Instruction) and loop.contains(value.block)
    return inside and value.opcode in POLYNOMIAL and not {"nuw", "disjoint"} & set(value.flags)  # type: ignore[attr-defined]


def _counter_of(phi: Instruction, outer: Loop) -> _Counter | None:
    """A counter that rises by a constant, without wrapping, until the end of its loop compares it."""
    loop = _loop_of(phi, outer)
    if loop is None or loop.header is not phi.block or len(phi.operands) != 2 or loop.latch not in phi.blocks:
        return None
    assert loop.latch is not None
    at = phi.blocks.index(loop.latch)
    start, following = phi.operands[1 - at], phi.operands[at]
    if not isinstance(following, Instruction) or following.opcode != "add" or "nuw" not in following.flags:
        return None
    step = following.operands[1]
    if following.operands[0] is not phi or not isinstance(step, ConstInt) or step.value <= 0:
        return None
    last = loop.latch.terminator
    if loop.exiting != [loop.latch] or last.opcode != "br" or len(last.blocks) != 2:
        return None
    found = _limit(last, phi, following, loop.header)
    if found is None or (isinstance(found[0], Instruction) and loop.contains(found[0].block)):
        return None
    return _Counter(phi, start, following, *found)


def _limit(last: Instruction, phi: Instruction, following: Instruction, header: Block) -> tuple[Value, int] | None:
    """What a counter never passes: a value, less a number."""
    condition = last.operands[0]
    if not isinstance(condition, Instruction) or condition.opcode != "icmp":
        return None
    x, y = condition.operands
    pred = condition.pred or ""
    if y in (phi, following):
        x, y = y, x
        pred = _TURNED.get(pred, pred)
    if x not in (phi, following):
        return None
    if last.blocks[0] is not header:
        pred = _OTHER.get(pred, "")
    less = {"ne": 1, "ult": 1, "ule": 0}.get(pred)
    if less is None:
        return None
    step = following.operands[1]
    assert isinstance(step, ConstInt)
    return y, less if x is following else 0 if pred == "ne" else less - step.value  # compared before the last step


_TURNED: dict[str, str] = {"ugt": "ult", "uge": "ule", "ult": "ugt", "ule": "uge"}
_OTHER: dict[str, str] = {"eq": "ne", "ne": "eq", "uge": "ult", "ugt": "ule", "ult": "uge", "ule": "ugt"}


def _loop_of(phi: Instruction, outer: Loop) -> Loop | None:
    pending: list[Loop] = [outer]
    while pending:
        loop = pending.pop()
        if loop.header is phi.block:
            return loop
        pending += loop.children
    return None

