"""Integers and pointers that a loop hands on by steps that have an inverse: the reverse sweep undoes them.

    primal    k++ where x[i] > 0 ; state = state * a + c        reverse    k-- where x[i] > 0 ; state = (state - c) / a

in place of an array of what they were in each iteration. What the last iteration began with is saved, once for each run
of the loop, and each iteration of the reverse loop undoes one step. A step is made of sums, differences and exclusive
ors with what can be had again, steps of a pointer, products with odd constants, rotations, exclusive ors with a shifted
value of its own, and choices among these by a condition, as long as undoing it costs no more than a number on the tape.
Several numbers may change places (the words of a random state): they are solved for one after the other. Integers wrap
around, so all this is exact; sums of floats have no exact inverse.

Source of the method: reversible loops, as in "Evaluating Derivatives" (Griewank and Walther 2008), chapter 12.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.layout.shadow_memory import PRIMAL, ShadowMemory
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, Constant, ConstInt, Instruction, Value
from irgrad.engine.ir.opcodes import INVERTIBLE, PURE, SPECULATABLE

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

__all__ = ["Reversal", "reversals_of"]

MOST = 24
"""Instructions of one step, and as many that its operands are computed again from."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One operation: `before` is the step whose result it takes, None where that is the number itself. bytes: of an
    element, where a pointer steps by `other` of them."""

    op: str
    other: Value
    before: _Step | _Choice | None
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of two chains by a condition."""

    condition: Value
    true: _Step | _Choice | None
    false: _Step | _Choice | None


_Chain = _Step | _Choice | None


@dataclass(frozen=True, slots=True)
class Reversal:
    """How a header phi follows from the next value of a phi (of itself, or of one that it hands its value to)."""

    phi: Instruction
    after: Instruction
    chain: _Chain

    def operands(self) -> list[Value]:
        """What undoing a step reads, of the iteration that it goes back to."""
        found: list[Value] = []
        work = [self.chain]
        while work:
            chain = work.pop()
            if isinstance(chain, _Step):
                found.append(chain.other)
                work.append(chain.before)
            elif chain is not None:
                found.append(chain.condition)
                work += [chain.true, chain.false]
        return [value for value in found if not isinstance(value, Constant)]

    def cost(self) -> int:
        """Units of undoing a step, one after the other."""
        return _cost(self.chain)

    def undo(self, b: Builder, value: Value, recall: Callable[[Value], Value], memory: ShadowMemory = PRIMAL) -> Value:
        """What the phi was, from the next value of `after`; a pointer in the memory of the primal or of shadows."""
        return _undo(b, self.chain, value, recall, memory)


def _undo(b: Builder, chain: _Chain, value: Value, recall: Callable[[Value], Value], memory: ShadowMemory) -> Value:
    while isinstance(chain, _Step):
        other = recall(chain.other)
        if chain.bytes:
            far = b.mul(b.to_i64(other), ConstInt(ty.I64, -chain.bytes), ())
            value = memory.advanced(b, value, far)
        else:
            value = _UNDO[chain.op](b, value, other)
        chain = chain.before
    if chain is None:
        return value
    sides = [_undo(b, side, value, recall, memory) for side in (chain.true, chain.false)]
    return b.select(recall(chain.condition), *sides)


def _cost(chain: _Chain) -> int:
    units = 0
    while isinstance(chain, _Step):
        units += _units(chain)
        chain = chain.before
    return units if chain is None else units + 2 + _cost(chain.true) + _cost(chain.false)


def _units(step: _Step) -> int:
    if step.op.startswith("mix"):
        assert isinstance(step.other, ConstInt) and isinstance(step.other.type, ty.IntType)
        return 2 * (-(-step.other.type.bits // step.other.value) - 1).bit_length()
    return {"mul": 3, "fshl": 3, "fshr": 3}.get(step.op, 1)


def _divided(b: Builder, value: Value, factor: Value) -> Value:
    assert isinstance(factor, ConstInt) and isinstance(value.type, ty.IntType)
    modulus = 1 << value.type.bits
    return b.mul(value, ConstInt(value.type, pow(factor.value % modulus, -1, modulus)), ())


def _rotated(b: Builder, value: Value, count: Value, right: bool) -> Value:
    assert isinstance(count, ConstInt) and isinstance(value.type, ty.IntType)
    bits = value.type.bits
    up = (-count.value if right else count.value) % bits
    if not up:
        return value
    low = b.binary("lshr", value, ConstInt(value.type, bits - up))
    return b.binary("or", b.binary("shl", value, ConstInt(value.type, up)), low)


def _unmixed(b: Builder, value: Value, count: Value, shift: str) -> Value:
    """x of x ^ (x << k), the same of right shifts: the shifted value again and again, twice as far each time."""
    assert isinstance(count, ConstInt) and isinstance(value.type, ty.IntType)
    far, bits = count.value, value.type.bits
    while far < bits:
        value = b.binary("xor", value, b.binary(shift, value, ConstInt(value.type, far)))
        far *= 2
    return value


_UNDO: Mapping[str, Callable[[Builder, Value, Value], Value]] = {
    "add": lambda b, value, other: b.sub(value, other, ()),
    "sub": lambda b, value, other: b.add(value, other, ()),
    "from": lambda b, value, other: b.sub(other, value, ()),  # other - x
    "xor": lambda b, value, other: b.binary("xor", value, other),
    "mul": _divided,
    "fshl": lambda b, value, other: _rotated(b, value, other, right=True),
    "fshr": lambda b, value, other: _rotated(b, value, other, right=False),
    "mix shl": lambda b, value, other: _unmixed(b, value, other, "shl"),
    "mix lshr": lambda b, value, other: _unmixed(b, value, other, "lshr"),
}


# -- which -------------------------------------------------------------------------------------------------------------


def reversals_of(facts: ReverseFacts, loop: Loop) -> dict[Instruction, Reversal]:
    """The header phis of a loop that the reverse sweep steps back, in the order in which it must."""
    latch = loop.latch
    if latch is None or loop.preheader is None:
        return {}
    numbers = [p for p in loop.header.phis if p.type.is_int and p.type is not ty.I1]
    pointers = [p for p in loop.header.phis if p.type.is_ptr and not facts.caller_tape]  # which keeps no addresses
    phis = [p for p in (*numbers, *pointers) if facts.recurrence(p) is None]
    solver = _Solver(facts, loop, latch, phis)
    return solver.solve() if phis else {}


class _Solver:
    """The next values of a loop's numbers as equations for what they were."""

    def __init__(self, facts: ReverseFacts, loop: Loop, latch: Block, phis: list[Instruction]) -> None:
        self.facts = facts
        self.loop = loop
        self.latch = latch
        self.limit = facts.unit.request.costs.tape  # units of what keeping a number costs
        self.next = {phi: phi.operands[phi.blocks.index(latch)] for phi in phis}
        self.solved: dict[Instruction, Reversal] = {}

    def solve(self) -> dict[Instruction, Reversal]:
        """One number after the other; a number that is found by another one stays only where that one does."""
        left = dict(self.next)
        grown = True
        while grown:
            grown = False
            for after, value in list(left.items()):
                found = self._follow(value, MOST)
                if found is not None and found[0] not in self.solved and _cost(found[1]) <= self.limit:
                    self.solved[found[0]] = Reversal(found[0], after, found[1])
                    del left[after]
                    grown = True
        if any(item.after not in self.solved for item in self.solved.values()):
            known = [p for p in self.next if p in self.solved and self.solved[p].after in self.solved]
            return _Solver(self.facts, self.loop, self.latch, known).solve() if known else {}
        return self.solved

    def _follow(self, value: Value, room: int) -> tuple[Instruction, _Chain] | None:
        """The one unsolved phi that a value is made from, and how."""
        if room == 0 or not isinstance(value, Instruction) or not self.loop.contains(value.block):
            return None
        if value in self.next:
            return None if value in self.solved else (value, None)
        if self.facts.level(value) is not self.loop:
            return None
        if value.opcode == "phi":
            return self._merge(value, room)
        if value.opcode == "select":
            condition, true, false = value.operands
            return self._choice(condition, true, false, room)
        if value.opcode == "freeze":
            return self._follow(value.operands[0], room - 1)
        step = self._step(value)
        if step is None:
            return None
        before = self._follow(step[1], room - 1)
        size = ty.size_of(value.elem) if value.opcode == "getelementptr" else 0  # type: ignore[arg-type]
        return None if before is None else (before[0], _Step(step[0], step[2], before[1], size))

    def _step(self, value: Instruction) -> tuple[str, Value, Value] | None:
        """(operation, the operand that is followed, the other one)."""
        op, operands = value.opcode, value.args if value.is_call else value.operands
        if op == "call":
            name = (value.callee_name or "").split(".")
            turned = len(name) > 1 and name[0] == "llvm" and name[1] in ("fshl", "fshr")
            if turned and operands[0] is operands[1] and isinstance(operands[2], ConstInt):
                return name[1], operands[0], operands[2]
            return None
        if op == "xor" and (mixed := _mixed(*operands) or _mixed(*operands[::-1])) is not None:
            return mixed
        if op == "mul":
            factor = operands[1]
            return ("mul", operands[0], factor) if isinstance(factor, ConstInt) and factor.value % 2 else None
        if op == "getelementptr" and len(operands) == 2 and ty.size_of(value.elem):  # type: ignore[arg-type]
            base, distance = operands
            return (op, base, distance) if distance.type.is_int and self._known(distance) else None
        if op not in INVERTIBLE:
            return None
        first, second = operands
        if self._known(second):
            return op, first, second
        return ("from" if op == "sub" else op, second, first) if self._known(first) else None

    def _merge(self, phi: Instruction, room: int) -> tuple[Instruction, _Chain] | None:
        """A choice of two ways through the loop's body."""
        assert phi.block is not None
        preds = self.facts.cfg.preds(phi.block)
        branch = self.facts.branch_of(phi.block, preds) if len(preds) == 2 else None
        if branch is None:
            return None
        values = {block: value for value, block in zip(phi.operands, phi.blocks, strict=True)}
        true = preds[branch[1]]
        false = preds[1 - branch[1]]
        return self._choice(branch[0], values[true], values[false], room)

    def _choice(self, condition: Value, true: Value, false: Value, room: int) -> tuple[Instruction, _Chain] | None:
        if not self._known(condition):
            return None
        one, other = (self._follow(side, room // 2) for side in (true, false))
        if one is None or other is None or one[0] is not other[0]:
            return None
        return one[0], _Choice(condition, one[1], other[1])

    def _known(self, value: Value) -> bool:
        """Whether a value of the iteration that is gone back to can be had when unsolved numbers are not known yet:
        operations on what is outside of the loop, on numbers of iterations, and loads that run in each iteration of
        memory that is as it was."""
        seen: set[Value] = set()
        work = [value]
        while work:
            here = work.pop()
            if here in seen or isinstance(here, Constant | Argument):
                continue
            seen.add(here)
            if not isinstance(here, Instruction) or here.block is None or len(seen) > MOST:
                return False
            if not self.loop.contains(here.block) or here in self.solved:
                continue
            if self.facts.level(here) is not self.loop:
                return False
            if here.opcode == "phi":
                if self.facts.recurrence(here) is None:
                    return False
            elif not self._again(here):
                return False
            else:
                work += here.operands
        return True

    def _again(self, instr: Instruction) -> bool:
        always = self.facts.dom.dominates(instr.block, self.latch)  # type: ignore[arg-type]
        if instr.opcode == "load":
            return always and not self.facts.clobber.clobbered(instr)
        return instr.opcode in SPECULATABLE or (always and instr.opcode in PURE)


def _mixed(value: Value, shifted: Value) -> tuple[str, Value, Value] | None:
    """x ^ (x << k) or x ^ (x >> k) by a constant."""
    if (
        not isinstance(shifted, Instruction)
        or shifted.opcode not in ("shl", "lshr")
        or shifted.operands[0] is not value
    ):
        return None
    count = shifted.operands[1]
    return (f"mix {shifted.opcode}", value, count) if isinstance(count, ConstInt) and count.value > 0 else None


def hangs_on(value: Value, numbers: Collection[Instruction], loop: Loop) -> bool:
    """Whether a value of a loop is computed from one of these numbers."""
    seen: set[Value] = set()
    work = [value]
    while work:
        here = work.pop()
        if here in numbers:
            return True
        if here not in seen and isinstance(here, Instruction) and loop.contains(here.block):
            seen.add(here)
            work += here.operands
    return False
