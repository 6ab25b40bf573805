"""Subscripts that may wrap, and remainders in them, in a version of their loop in which they are linear.

    p[i * s + j] of `unsigned` numbers:  zext (i * s + j modulo 2**32)   ->   zext i * zext s + zext j
    p[(i + n - 1) % n] of numbers of any kind, i + n - 1 < 2 * n:        ->   i + n - 1 < n ? i + n - 1 : i + n - 1 - n

What C says of unsigned numbers is that they wrap, so that the subscripts of a loop are no linear forms of its counters,
however small they are. Of `int` numbers LLVM no longer knows that they do not, where it has summed them in another
order. Before the loop, bounds of all that a subscript is computed from are known: of counters by where they begin and
what ends their loop, of everything else by what it is computed from. Where none of these bounds leaves the numbers from
0 to 2**31, nothing wraps, and the subscript is computed in 64 bits. A remainder of less than twice the divisor, as
neighbours on a periodic grid have it, is a choice then, which `split_ranges.py` takes out of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value
from irgrad.engine.ir.opcodes import MORE_THAN_SUMS, POLYNOMIAL, RESIZES
from irgrad.engine.normalise.loop_parts import Version

__all__ = ["whole_subscripts"]

_MOST = 64  # operations behind the subscripts of a loop
_TRUE = ConstInt(ty.I1, 1)
_BITS = 31  # of what is not negative in `int`, `unsigned` and wider numbers
_SAME = RESIZES | {"freeze", "and"}
_REMAINDERS = frozenset(("urem", "srem"))

Bounds = tuple[Value, Value]
"""The least and the greatest number that a value is, in 64 bits."""


def whole_subscripts(loop: Loop, forms: Induction) -> Version | None:
    """The version of a loop in which subscripts do not wrap that may do so; None where there is none.

    Where none has a remainder, they are extended without a sign, of sums and products alone: of others, versions win
    nothing."""
    found = _Subscripts(loop, forms)
    if not any(isinstance(i.type, ty.FloatType) and i.opcode == "load" for b in loop.blocks for i in b.instructions):
        return None
    for block in loop.blocks:
        for instr in block.instructions:
            if _whole(instr) and any(found.inside(v) for v in forms.form(instr).values()):
                found.take(instr)
    if not any(_remainders(seen, loop) for seen in found.subscripts.values()):
        found.subscripts = {s: seen for s, seen in found.subscripts.items() if not _of_more(s, seen, loop)}
    return Version(found.outside(), found.write) if found.subscripts else None


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
    forms: Induction
    subscripts: dict[Instruction, dict[Value, None]] = field(default_factory=dict)
    counters: dict[Value, _Counter | None] = field(default_factory=dict)
    bounds: dict[Value, Bounds] = field(default_factory=dict)
    wide: dict[Value, Value] = field(default_factory=dict)
    holds: Value = _TRUE

    def take(self, subscript: Instruction) -> None:
        """Take a subscript among them where bounds of it are known."""
        seen: dict[Value, None] = {}
        number = _number(subscript)
        if self._known(number, seen) and any(_may_wrap(v, self.loop) for v in seen) and self._divisible(seen):
            self.subscripts[subscript] = seen

    def outside(self) -> list[Value]:
        """What the subscripts are computed from that the loop does not compute."""
        return list({v: None for seen in self.subscripts.values() for v in seen if not self.inside(v)})

    def _divisible(self, seen: dict[Value, None]) -> bool:
        """Whether remainders are by what else is in the subscript or its counters, so that bounds may tell of them: by
        a constant, where all that is a constant."""
        for by in (row.operands[1] for row in _remainders(seen, self.loop)):
            own = self.forms.form(by).values()
            rest = {s for v in seen if v is not by and not self.inside(v) for s in self.forms.form(v).values()}
            limits = {s for c in self.counters.values() if c is not None for s in self.forms.form(c.limit).values()}
            told = rest | limits
            if not told.intersection(own) if own else told:
                return False
        return True

    def _divides(self, by: Value) -> bool:
        return by.value > 0 if isinstance(by, ConstInt) else not self.inside(by)

    def inside(self, value: Value) -> bool:
        """Whether the loop computes a value."""
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
            if not self.inside(item):
                continue
            assert isinstance(item, Instruction)
            if item.opcode == "phi":
                counter = self._counter(item)
                if counter is None:
                    return False
                work += [counter.start, counter.limit]
            elif _chooses(item):
                work += item.operands[1:]
            elif _plain(item) or (item.opcode in _REMAINDERS and self._divides(item.operands[1])):
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
            self._bounds(_number(subscript), at)
        known: dict[Value, Value] = {s: self._wide(_number(s), at) for s in self.subscripts}
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
        if not self.inside(value):
            number = value if value.type is ty.I64 else at.cast("zext", value, ty.I64)
            found = self.bounds[value] = (number, number)
            if value.type.bits > _BITS:
                self._ask(at, found, _BITS)
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
        self._ask(at, found, min(value.type.bits, _BITS))
        return found

    def _computed(self, value: Instruction, at: Builder) -> Bounds:
        if value.opcode in _SAME:
            return self._bounds(value.operands[0], at)
        if value.opcode == "select":
            (low, high), (least, most) = (self._bounds(v, at) for v in value.operands[1:])
            return _chosen(at, "ult", low, least), _chosen(at, "ugt", high, most)
        op, (x, y) = _operation(value)
        (low, high), (least, most) = self._bounds(x, at), self._bounds(y, at)
        if op in _REMAINDERS:
            less = at.icmp("ult", high, at.binary("shl", least, ConstInt(ty.I64, 1)))
            self.holds = less if self.holds is _TRUE else at.binary("and", self.holds, less)
            return ConstInt(ty.I64, 0), at.sub(most, ConstInt(ty.I64, 1), ())
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
        if not self.inside(value):
            self.wide[value] = value if value.type is ty.I64 else self._outside(value, at)
            return self.wide[value]
        assert isinstance(value, Instruction) and value.block is not None
        if value.opcode in _SAME:
            return self._wide(value.operands[0], at)
        if value.opcode == "phi":
            return self._wide_counter(value, at)
        if value.opcode == "select":
            self.wide[value] = made = Instruction("select", ty.I64, [value.operands[0], *(
                self._wide(v, at) for v in value.operands[1:])], metadata=dict(value.metadata))  # fmt: skip
            _behind(value, made)
            return made
        op, (x, y) = _operation(value)
        if op in _REMAINDERS:
            self.wide[value] = made = self._remainder(value, self._wide(x, at), self._wide(y, at))
            return made
        made = Instruction(op, ty.I64, [self._wide(x, at), self._wide(y, at)], flags=("nuw", "nsw"),
                           metadata=dict(value.metadata))  # fmt: skip
        if _whole_already(value) and made.operands == value.operands:
            self.wide[value] = value
            return value
        _behind(value, made)
        self.wide[value] = made
        return made

    def _outside(self, value: Value, at: Builder) -> Value:
        """A number from before the loop; that it is not negative is among what was asked."""
        assert isinstance(value.type, ty.IntType)
        flags = ("nneg",) if value.type.bits > _BITS else ()
        return at.insert(Instruction("zext", ty.I64, [value], flags=flags))

    def _remainder(self, value: Instruction, x: Value, by: Value) -> Instruction:
        """A remainder of less than twice the divisor."""
        less = Instruction("icmp", ty.I1, [x, by], pred="slt", metadata=dict(value.metadata))
        rest = Instruction("sub", ty.I64, [x, by], flags=("nsw",), metadata=dict(value.metadata))
        made = Instruction("select", ty.I64, [less, x, rest], metadata=dict(value.metadata))
        for row in (made, rest, less):
            _behind(value, row)
        return made

    def _wide_counter(self, phi: Instruction, at: Builder) -> Value:
        counter = self._counter(phi)
        assert counter is not None
        if _whole_already(counter.next):
            self.wide[phi] = phi
            return phi
        made = Instruction("phi", ty.I64, [], blocks=list(phi.blocks))
        self.wide[phi] = made
        for value in phi.operands:
            made.operands.append(self._wide(value, at))
        _behind(phi, made)
        return made


def _whole(value: Instruction) -> bool:
    """Whether a value is a subscript of 64 bits that may be made of shorter numbers."""
    if value.type is not ty.I64:
        return False
    if value.opcode in RESIZES:
        return value.opcode == "zext" or _bits(value.operands[0]) > _BITS
    return value.opcode in _REMAINDERS or _masks(value)


def _remainders(seen: dict[Value, None], loop: Loop) -> list[Instruction]:
    return [v for v in seen if isinstance(v, Instruction) and v.opcode in _REMAINDERS and loop.contains(v.block)]


def _of_more(subscript: Instruction, seen: dict[Value, None], loop: Loop) -> bool:
    """Whether a subscript is more than an extension, without a sign, of sums and products."""
    rows = [v for v in seen if isinstance(v, Instruction) and loop.contains(v.block)]
    cut = any(v.opcode in MORE_THAN_SUMS or (v.opcode == "trunc" and "nuw" not in v.flags) for v in rows)
    return cut or subscript.opcode != "zext"


def _number(subscript: Instruction) -> Value:
    """What is computed in 64 bits for a subscript."""
    return subscript.operands[0] if subscript.opcode in RESIZES else subscript


def _masks(value: Instruction) -> bool:
    """Whether a value is the lower part of a number, of at least 31 bits."""
    by = value.operands[1] if value.opcode == "and" else None
    return isinstance(by, ConstInt) and by.value >= (1 << _BITS) - 1 and by.value & (by.value + 1) == 0


def _whole_already(value: Instruction) -> bool:
    """Whether a sum or product is of 64 bits and does not wrap, whatever the bounds."""
    return value.type is ty.I64 and {"nuw", "nsw"} <= set(value.flags)


def _chooses(value: Instruction) -> bool:
    """Whether a value is one of two by a comparison of numbers, as a loop that is cut knows it."""
    condition = value.operands[0] if value.opcode == "select" else None
    return isinstance(condition, Instruction) and condition.opcode == "icmp"


def _chosen(at: Builder, pred: str, x: Value, y: Value) -> Value:
    return x if x is y else at.select(at.icmp(pred, x, y), x, y)


def _bits(value: Value) -> int:
    assert isinstance(value.type, ty.IntType)
    return value.type.bits


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
    if value.opcode in ("trunc", "sext"):
        return min(_bits(value), _bits(value.operands[0])) > _BITS or (value.opcode == "trunc" and "nuw" in value.flags)
    return value.opcode in ("zext", "freeze") or _masks(value)


def _may_wrap(value: Value, loop: Loop) -> bool:
    inside = isinstance(value, Instruction) and loop.contains(value.block)
    if not inside or value.opcode not in POLYNOMIAL | _REMAINDERS | {"and"}:  # type: ignore[attr-defined]
        return False
    return not {"nuw", "disjoint"} & set(value.flags)  # type: ignore[attr-defined]


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

