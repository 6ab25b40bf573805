"""Loops whose reverse sweep can run with their primal sweep: the cotangents of what leaves them are known before them.

    for i in 0..n:  s += g(x, i)          what leaves the loop is a sum, so that every iteration's part has the same
    *out = a * s + b                      cotangent: a times that of *out, which is known before the loop

No iteration then waits for the end of the program: one at a time runs forward and backward at once, and its tape is
used again for the next one. This is the "fused" schedule. What it takes:

    sums        of active values, iterations hand on sums alone, to which nothing but more is added
    linear      behind the loop these go, by additions and by factors that are known before it, into memory that
                nothing else reaches behind the loop, and that the loop does not touch: its shadow is what it was
    private     active memory that the loop writes is each iteration's own, and nothing behind the loop reads it
    unchanged   active memory that the loop reads is not written behind it: its adjoint gets terms earlier than others,
                and no store may take them for the adjoint of what it wrote
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators, PostDominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.control.never_returning import live_exits
from irgrad.engine.analyses.memory.modref import instr_reads, instr_writes
from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Block, Instruction, Value, const_float
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.rewrite import copied
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.reductions import ADDITIVE, reduction_of
from irgrad.engine.normalise.repeatable import Repeatable, marks_lifetime
from irgrad.engine.normalise.run_again import called_by
from irgrad.rules.effects import facts

__all__ = ["Activity", "Sums", "Unknown", "in_precision", "known_cotangents"]

_MOST_FACTORS = 64
"""Factors of one value behind the loop, as a sum of products: a bound of the work, since sums of sums double them."""
_STOPS = having("stops_derivatives") | having("redirectable")
_MOVES = having("pure") - having("may_trap") - having("leads_block")


Factors: TypeAlias = tuple[tuple[str, Value | None], ...]
"""`fmul` or `fdiv` by values, `fneg`, one after the other."""


class Unknown(Exception):
    """Why cotangents are not known before a loop, in words."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Which values are active, and which objects hold active floats."""

    value: Callable[[Value], bool]
    object: Callable[[Object], bool]


@dataclass(frozen=True, slots=True)
class Path:
    """A way of a sum into memory. store: what puts it there; base: the argument behind which that is."""

    store: Instruction
    base: Argument
    factors: Factors = ()

    def emit(self, b: Builder, memo: dict[Value, Value]) -> tuple[Value, Value, Value]:
        """The base, the address, and what the cotangent of that memory is multiplied by, at the end of a block before
        the loop."""
        kind = self.store.operands[0].type
        total: Value = const_float(kind, 1.0)
        for operation, value in self.factors:
            if value is None:
                total = b.fneg(total)
            else:
                total = b.binary(operation, total, in_precision(b, _again(b, value, memo), kind), ())
        return self.base, _again(b, self.store.operands[1], memo), total


def in_precision(b: Builder, value: Value, kind: ty.Type) -> Value:
    """A float, or a vector of them, as one of another precision."""
    if value.type is kind:
        return value
    return b.cast("fpext" if ty.size_of(value.type) < ty.size_of(kind) else "fptrunc", value, kind)


def _again(b: Builder, value: Value, memo: dict[Value, Value]) -> Value:
    """A value that is computed behind the loop, computed before it; memo: those that were."""
    if value not in memo:
        return value
    if memo[value] is value:
        assert isinstance(value, Instruction)
        memo[value] = b.insert(copied(value, [_again(b, operand, memo) for operand in value.operands]))
    return memo[value]


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a loop, by the phis at its head: the phis behind it that take what they become, each with its ways
    into memory. moved: what stands behind the loop and is computed before it for them."""

    leaving: Mapping[Instruction, Mapping[Instruction, Sequence[Path]]]
    moved: frozenset[Instruction] = frozenset()

    def leave_as_they_go_on(self, loop: Loop) -> bool:
        """Whether what is taken of each sum behind the loop is what an iteration hands on."""
        latch = loop.latches[0]
        return all(value is phi.operands[phi.blocks.index(latch)] for phi, taken in self.leaving.items()
                   for taker in taken for value, block in zip(taker.operands, taker.blocks, strict=True)
                   if loop.contains(block))  # fmt: skip


def known_cotangents(again: Repeatable, active: Activity) -> Sums:
    """The sums of a loop whose cotangents are known before it. Raises Unknown, with the reason, for another loop."""
    loop = _Loop(again, active)
    return Sums(loop.sums(), frozenset(loop.moved))


class _Loop:
    def __init__(self, again: Repeatable, active: Activity) -> None:
        self.again, self.active = again, active
        self.fn, self.loop, self.pointers = again.fn, again.loop, again.pointers
        self.loops, self.dominators = get(Loops, self.fn), get(Dominators, self.fn)
        self.post = get(PostDominators, self.fn)
        self.moved: set[Instruction] = set()
        self.exits = live_exits(self.fn, self.loop)

    def sums(self) -> dict[Instruction, dict[Instruction, list[Path]]]:
        if self.again.refusal:
            raise Unknown(self.again.refusal)
        called = self.fn is not self.pointers.root or self.fn in called_by(self.pointers, self.fn.instructions())
        if called or self.loop.depth > 1 or len(self.exits) != 1:
            raise Unknown("it is in another loop, in a function that others call, or ends in several places")
        found: dict[Instruction, dict[Instruction, list[Path]]] = {}
        for phi in filter(self.active.value, self.loop.header.phis):
            leaving = self._leaving(self.loop, phi)
            if leaving is None:
                raise Unknown(f"an iteration hands on `{phi.name or '?'}` ({self._at(phi)}), which is no sum")
            found[phi] = {exit_phi: self._follow(exit_phi) for exit_phi in leaving}
        for phi in filter(self.active.value, self.exits[0].phis):
            if not any(phi in rows for rows in found.values()):
                raise Unknown(f"`{phi.name or '?'}`, which leaves it, is no sum of its iterations")
        stores = [path.store for rows in found.values() for row in rows.values() for path in row]
        self._memory(list(dict.fromkeys(stores)))
        return found

    def _leaving(self, loop: Loop, phi: Instruction) -> list[Instruction] | None:
        """The phis behind a loop that take a sum, None where it is none."""
        latch, uses = loop.latch, uses_of(loop.blocks)
        exits = [each for block in live_exits(self.fn, loop) for each in block.phis]
        if latch is None or not phi.type.is_float:
            return None
        after = phi.operands[phi.blocks.index(latch)]
        outside = [v for each in exits for v, b in zip(each.operands, each.blocks, strict=True) if loop.contains(b)]
        web = _web(phi, uses)
        made = reduction_of(phi, after, uses, [v for v in outside if v not in web], any_order=False)
        if made is None or made.operation != "fadd":
            return None
        found = [each for each in exits if any(v in web for v in each.operands)]
        return found if all(v in web for each in found for v in each.operands) else None

    # -- behind the loop -----------------------------------------------------------------------------------------------

    def _follow(self, leaving: Instruction) -> list[Path]:
        """The ways of a value that leaves the loop into memory.

        Of each value behind the loop: what it is by that one, a sum of products of factors. Where ways meet these have
        to be the same whichever was taken."""
        parts: dict[Value, list[Factors]] = {leaving: [()]}
        found: list[Path] = []
        joined: list[Instruction] = []
        for block in get(Cfg, self.fn).rpo:
            for instr in block.instructions if block in self._after else ():
                if instr is leaving or parts.keys().isdisjoint(instr.operands):
                    continue
                if instr.opcode in ("phi", "select"):
                    joined.append(instr)
                    parts[instr] = next(parts[v] for v in instr.operands if v in parts)
                elif instr.opcode == "store" and instr.operands[1] not in parts:
                    found += self._stored(instr, parts[instr.operands[0]])
                elif instr.opcode not in _STOPS:
                    parts[instr] = self._linear(instr, parts)
                if sum(map(len, parts.get(instr, ()))) > _MOST_FACTORS:
                    raise Unknown("what leaves it goes too many ways")
        for instr in joined:
            rows = instr.operands[1:]
            if instr.opcode == "phi":
                rows = [v for v, b in zip(instr.operands, instr.blocks, strict=True) if b in self._after]
            if any(_order(parts.get(v, [])) != _order(parts[instr]) for v in rows):
                raise self._not_linear(instr)
        return found

    def _linear(self, instr: Instruction, parts: Mapping[Value, list[Factors]]) -> list[Factors]:
        """What an instruction is by the value that leaves the loop."""
        name = (instr.callee_name or "").rpartition(".")[0] if instr.is_call else instr.opcode
        found: list[Factors] = []
        for place, operand in enumerate(instr.operands):
            if operand not in parts:
                continue
            other = instr.operands[1 - place] if place < 2 <= len(instr.operands) else None
            if name in ("fpext", "fptrunc"):
                factor: Factors = ()
            elif instr.type is not operand.type:
                raise self._not_linear(instr)
            elif place in ADDITIVE.get(name, ()):
                factor = ()
            elif name == "fneg" or (name == "fsub" and place == 1):
                factor = (("fneg", None),)
            elif other is not None and other not in parts and self._before(other) and (
                name in ("fmul", "llvm.fmuladd", "llvm.fma") or (name == "fdiv" and place == 0)):  # fmt: skip
                factor = (("fdiv" if name == "fdiv" else "fmul", other),)
            else:
                raise self._not_linear(instr)
            found += [(*row, *factor) for row in parts[operand]]
        return found

    def _stored(self, store: Instruction, parts: Sequence[Factors]) -> list[Path]:
        """The end of a way."""
        assert store.block is not None
        base = address = store.operands[1]
        while isinstance(base, Instruction) and base.opcode == "getelementptr":
            base = base.operands[0]
        plain = isinstance(base, Argument) and not store.volatile and not store.ordering
        if not plain or not self._once(store.block) or not self._before(address):
            raise self._not_linear(store)
        assert isinstance(base, Argument)
        return [Path(store, base, factors) for factors in parts]

    def _once(self, block: Block) -> bool:
        """Whether a block runs once behind the loop, whatever happens."""
        return self.loops.of(block) is None and self.post.dominates(block, self.exits[0])

    def _before(self, value: Value) -> bool:
        """Whether a value is known before the loop, or may be computed there in place of behind it."""
        if not isinstance(value, Instruction) or value in self.moved:
            return True
        assert value.block is not None and self.loop.preheader is not None
        if self.dominators.dominates(value.block, self.loop.preheader):
            return True
        alike = value.opcode in _MOVES
        if value.opcode == "load":
            alike = self._once(value.block) and self._unchanged(value)
        if value.is_call and not value.ordering:
            known = facts(value.callee_name or "")
            alike = known is not None and known.kind == "pure" and not value.type.is_ptr
        if not alike or not all(map(self._before, value.operands)):
            return False
        self.moved.add(value)
        return True

    def _unchanged(self, load: Instruction) -> bool:
        """Whether neither the loop nor what is behind it writes what is loaded there."""
        read = instr_reads(self.pointers, load)
        rows = [*self.again.body, *self._behind]
        return not load.volatile and not any(instr_writes(self.pointers, instr) & read for instr in rows)

    def _not_linear(self, user: Instruction) -> Unknown:
        return Unknown(f"the cotangent of what leaves it is not known before it ({self._at(user)})")

    @cached_property
    def _after(self) -> set[Block]:
        return {block for block in (instr.block for instr in self.again.again.behind()) if block is not None}

    @cached_property
    def _behind(self) -> list[Instruction]:
        return [instr for instr in self.again.again.behind() if not marks_lifetime(instr)]

    # -- memory --------------------------------------------------------------------------------------------------------

    def _memory(self, stores: Sequence[Instruction]) -> None:
        """What the loop and what is behind it do to memory."""
        again, pointers = self.again, self.pointers
        for one, other in combinations(stores, 2):
            rows = [(store.operands[1], ty.store_size(store.operands[0].type)) for store in (one, other)]
            if again.again.may_meet(*rows[0], *rows[1]):
                raise Unknown(f"what leaves it may go into the same memory twice ({self._at(one)}, {self._at(other)})")
        ends = inside = 0
        for store in stores:
            ends |= pointers.expand(pointers.of(store.operands[1]))
        for instr in again.body:
            if (instr_reads(pointers, instr) | instr_writes(pointers, instr)) & ends or ends & 1:
                raise Unknown(f"it reaches the memory into which its sums go ({self._at(instr)})")
        for memory in again.saved:
            obj = memory.object
            if obj is None:
                raise Unknown("the bytes are not known of memory that it writes, or that is written behind it")
            if self.active.object(obj):
                if memory.cover is None or obj.kind == "argument":
                    raise Unknown(f"{obj} is no memory of an iteration alone, or is written behind it")
                inside |= 1 << obj.index
        if again.rows:
            raise Unknown("it writes memory behind addresses in tables, or reads some that something behind it writes")
        for instr in self._behind:
            effect = pointers.effect(instr) if instr.is_call else None
            freed = effect is not None and effect.frees is not None
            touched = 0 if freed else instr_reads(pointers, instr) & inside
            if instr not in stores:
                touched |= (instr_reads(pointers, instr) | instr_writes(pointers, instr)) & ends
            if touched:
                raise Unknown(f"memory that it writes is reached behind it ({self._at(instr)})")

    def _at(self, instr: Instruction) -> str:
        return locate(self.pointers.module, instr) or f"`{instr.opcode}`"


def _web(phi: Instruction, uses: dict[Value, list[Instruction]]) -> set[Value]:
    """A sum of a loop with all that it becomes on the way to the next iteration, given that it is one."""
    found: set[Value] = {phi}
    work: list[Value] = [phi]
    while work:
        for user in uses.get(work.pop(), ()):
            if user not in found and user.type is phi.type:
                found.add(user)
                work.append(user)
    return found


def _order(parts: Sequence[Factors]) -> list[str]:
    """The same for the same products, in whatever order they are added."""
    return sorted(str([(operation, id(value)) for operation, value in row]) for row in parts)
