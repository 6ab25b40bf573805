"""Values that every iteration of a loop puts something to: sums, products, extremes, counts and masks.

Such a value may be put together in parts: by the same operation, of what parts of the loop make of it alone. One of a
sum begins with the operation's neutral element; one of an extreme with what the loop begins with, which may be put
together with itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Block,
    ConstAggregate,
    Constant,
    ConstFloat,
    ConstInt,
    Function,
    Instruction,
    Value,
    const_float,
)
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.uses import Uses

__all__ = ["ADDITION", "ADDITIVE", "Reduction", "adds_to", "reduction_of"]

ADDITIVE = {"fadd": (0, 1), "fsub": (0,), "llvm.fmuladd": (2,), "llvm.fma": (2,)}
"""Where a sum so far may stand in what adds to it."""
_PLACES = {"fadd": (0, 1), "fsub": (0,), "fmul": (0, 1), "add": (0, 1), "sub": (0,), "mul": (0, 1),
           "and": (0, 1), "or": (0, 1), "xor": (0, 1), "llvm.fmuladd": (2,), "llvm.fma": (2,)}  # fmt: skip
"""Where a value so far may stand in what changes it."""
_SAME = {"fsub": "fadd", "llvm.fmuladd": "fadd", "llvm.fma": "fadd", "sub": "add"}
_NEUTRAL = {"fadd": -0.0, "fmul": 1.0, "add": 0, "mul": 1, "and": -1, "or": 0, "xor": 0}
_LARGEST = ("llvm.maxnum", "llvm.maximum", "llvm.maximumnum", "llvm.smax", "llvm.umax")
_SMALLEST = ("llvm.minnum", "llvm.minimum", "llvm.minimumnum", "llvm.smin", "llvm.umin")
_PURE = tuple(f"llvm.{name}" for name in "sin cos tan fabs f exp log sqrt max min pow smax smin umax umin".split())
"""Beginnings of the names of intrinsics that only compute."""
_WRITE = having("writes") | {"fence"}
_GREATER = ("gt", "ge")


@dataclass(frozen=True, slots=True)
class Reduction:
    """An operation that puts parts together.

    operation: of IR, the name of an intrinsic (`llvm.maxnum`), or "select", which takes one by a comparison
    predicate:  of the comparison; old_first: the value so far is its first operand; old_taken: it is taken where the
                comparison holds
    callee:     the intrinsic's declaration
    """

    operation: str
    predicate: str = ""
    old_first: bool = False
    old_taken: bool = False
    callee: Function | None = None

    @property
    def idempotent(self) -> bool:
        """Whether a part begins with what the loop begins with."""
        return self.operation not in _NEUTRAL

    def neutral(self, kind: ty.Type) -> Constant:
        """What a part begins with, put together with which any part is itself."""
        if isinstance(kind, ty.VectorType):
            return ConstAggregate(kind, [self.neutral(kind.elem)] * kind.count)
        if self.operation in _NEUTRAL:
            value = _NEUTRAL[self.operation]
            return const_float(kind, float(value)) if kind.is_float else ConstInt(kind, int(value))
        name = self.operation
        largest = name in _LARGEST or (
            name == "select" and (self.predicate[1:] in _GREATER) == (self.old_first == self.old_taken))  # fmt: skip
        if kind.is_float:
            return const_float(kind, float("-inf") if largest else float("inf"))
        assert isinstance(kind, ty.IntType)
        signed = self.predicate.startswith("s") or name in ("llvm.smax", "llvm.smin")
        most = (1 << (kind.bits - 1)) - 1 if signed else -1
        return ConstInt(kind, (-most - 1 if signed else 0) if largest else most)

    def put(self, at: Builder, old: Value, part: Value) -> Value:
        """What is so far with a part."""
        if self.operation == "select":
            pair = (old, part) if self.old_first else (part, old)
            compare = at.fcmp if old.type.is_fp else at.icmp
            holds = compare(self.predicate, *pair)
            return at.select(holds, old, part) if self.old_taken else at.select(holds, part, old)
        if self.callee is not None:
            return at.call(self.callee, [old, part])
        return at.binary(self.operation, old, part, ())


ADDITION = Reduction("fadd")


def reduction_of(
    phi: Instruction, after: Value, uses: Uses, outside: Iterable[Value], *, any_order: bool
) -> Reduction | None:
    """The operation by which iterations change a value, where they do nothing else with it; None for another use.

    phi: the value before an iteration; after: behind it; uses: in the loop; outside: values of the loop that are used
    behind it; any_order: the source lets iterations run in any order (also where numbers are missing)
    """
    found: set[Reduction] = set()
    seen: set[Value] = {phi}
    ways: list[Instruction] = []
    work: list[Value] = [phi]
    while work:
        value = work.pop()
        for user in uses.get(value, ()):
            if user is phi or user in seen:
                if user.opcode in _PLACES or user.is_call:
                    return None  # of an operation with itself
                continue
            if user.opcode == "br":
                return None
            step = _step(user, value, uses)
            if step is None:
                return None
            if step == "compares":
                continue
            if step == "passes":
                ways.append(user)
            else:
                assert isinstance(step, Reduction)
                found.add(step)
            seen.add(user)
            work.append(user)
    passed = (o for way in ways for o in way.operands[way.opcode == "select" :])
    if len(found) != 1 or after not in seen or any(o not in seen for o in passed):
        return None
    if any(o in seen and o is not after for o in outside):
        return None
    made = found.pop()
    numbers = made.operation != "select" or not phi.type.is_float or (
        not made.old_taken and made.predicate.startswith("o"))  # fmt: skip
    return made if any_order or numbers else None


def _step(user: Instruction, value: Value, uses: Uses) -> Reduction | str | None:
    """What an instruction does with a value: an operation, "passes" it on, "compares" it for an extreme."""
    places = [n for n, o in enumerate(user.operands) if o is value]
    if user.opcode == "phi":
        return _joined(user, value) or "passes"
    if user.opcode in ("fcmp", "icmp"):
        takers = [phi for t in uses.get(user, ()) for phi in (_join(t) if t.opcode == "br" else [t])]
        taken = takers and all(_extreme(t, value) or _joined(t, value) for t in takers)
        return "compares" if taken else None
    if user.opcode == "select":
        return _extreme(user, value) or ("passes" if 0 not in places else None)
    if user.is_call:
        whole = user.callee_name or ""
        name = whole.rpartition(".")[0]
        if name in _LARGEST or name in _SMALLEST:
            callee = user.callee
            assert isinstance(callee, Function)
            return Reduction(name, callee=callee) if len(places) == 1 else None
        return Reduction(_SAME[name]) if name in _SAME and [*places] == [*_PLACES[name]] else None
    allowed = _PLACES.get(user.opcode, ())
    if len(places) == 1 and places[0] in allowed and not isinstance(user.type, ty.VectorType):
        return Reduction(_SAME.get(user.opcode, user.opcode))
    return None


def _extreme(select: Instruction, value: Value) -> Reduction | None:
    """The smaller or larger one of a value and another one, as a choice by comparing them."""
    if select.opcode != "select":
        return None
    holds, first, second = select.operands
    return _chosen(holds, first, second, value)


def _joined(phi: Instruction, value: Value) -> Reduction | None:
    """The same where the other value is computed again on its way: `if (x[i] > m) m = x[i];`."""
    if phi.opcode != "phi" or len(phi.operands) != 2:
        return None
    for way, before in ((0, 1), (1, 0)):
        inner, outer = phi.blocks[way], phi.blocks[before]
        end = outer.terminator
        if phi.operands[before] is value and end.opcode == "br" and len(end.operands) == 1 and inner in end.blocks:
            kept, taken = phi.operands[before], phi.operands[way]
            first, second = (taken, kept) if end.blocks[0] is inner else (kept, taken)
            return _chosen(end.operands[0], first, second, value) if _only_chooses(inner, outer, phi.block) else None
    return None


def _only_chooses(inner: Block, outer: Block, after: Block | None) -> bool:
    """Whether a block between two others does nothing but computing values."""
    blocks = outer.function.blocks if outer.function is not None else []
    return inner.successors == [after] and [b for b in blocks if inner in b.successors] == [outer] and not any(
        map(_writes, inner.instructions))  # fmt: skip


def _join(branch: Instruction) -> list[Instruction]:
    """The values that a branch around a block chooses from."""
    for block in branch.blocks:
        for after in block.successors:
            if after in branch.blocks:
                return [phi for phi in after.phis if {*phi.blocks} == {branch.block, block}] or [branch]
    return [branch]


def _chosen(holds: Value, first: Value, second: Value, value: Value) -> Reduction | None:
    """Whether a value or another one is chosen by comparing the two."""
    if not isinstance(holds, Instruction) or holds.opcode not in ("fcmp", "icmp") or value not in (first, second):
        return None
    other = second if first is value else first
    compared = [o for o in holds.operands if o is not value]
    if len(compared) != 1 or other is value or not _same(compared[0], other, 8):
        return None
    if holds.pred[1:] not in ("gt", "ge", "lt", "le") or (holds.opcode == "fcmp" and holds.pred[0] not in "ou"):
        return None
    return Reduction("select", holds.pred, holds.operands[0] is value, first is value)


def _same(a: Value, b: Value, depth: int) -> bool:
    """Whether two values are the same computation on the same memory, which nothing writes to between the two."""
    if a is b:
        return True
    if isinstance(a, ConstInt) and isinstance(b, ConstInt):
        return a.value == b.value and a.type is b.type
    if isinstance(a, ConstFloat) and isinstance(b, ConstFloat):
        return a.bits == b.bits and a.type is b.type
    if not isinstance(a, Instruction) or not isinstance(b, Instruction) or depth == 0 or a.opcode == "phi":
        return False
    alike = (a.opcode, a.type, a.pred, a.elem, a.indices) == (b.opcode, b.type, b.pred, b.elem, b.indices)
    if not alike or len(a.operands) != len(b.operands) or a.volatile or a.ordering:
        return False
    if (a.is_call and not (a.callee_name or "").startswith("llvm.")) or (a.opcode == "load" and not _quiet(a, b)):
        return False
    return all(_same(x, y, depth - 1) for x, y in zip(a.operands, b.operands, strict=True))


def _quiet(first: Instruction, second: Instruction) -> bool:
    """Whether nothing is written between a load and another one, in its block or in one right behind that."""
    assert first.block is not None and second.block is not None
    rows, others = first.block.instructions, second.block.instructions
    if second.block is first.block:
        ends = sorted((rows.index(first), rows.index(second)))
        between = rows[ends[0] : ends[1]]
    elif second.block in first.block.successors:
        between = [*rows[rows.index(first) :], *others[: others.index(second)]]
    else:
        return False
    return not any(map(_writes, between))


def _writes(instr: Instruction) -> bool:
    """Whether an instruction may write to memory, or do anything else but computing a value."""
    if instr.is_call:
        return instr.opcode != "call" or not (instr.callee_name or "").startswith(_PURE)
    return instr.opcode in _WRITE or bool(instr.volatile or instr.ordering)


def adds_to(user: Instruction, value: Value) -> bool:
    """Whether an instruction hands a sum on, with something added to it or not."""
    if user.opcode == "phi":
        return True
    if user.opcode == "select":
        return user.operands[0] is not value
    name = user.callee_name or "" if user.is_call else user.opcode
    places = ADDITIVE.get(name.rpartition(".")[0] if user.is_call else name, ())
    return [n for n, o in enumerate(user.operands) if o is value] in [[n] for n in places]
