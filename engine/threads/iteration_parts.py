"""What of an iteration threads may do at once, and what has to stay in the order of the iterations.

    v = heavy(x[i]);                        at once
    #pragma omp critical
    if (v > m[k[i]]) m[k[i]] = v;           in order: the accesses that meet those of other iterations, what is made of
                                            what they read, and what depends on that

What comes first for all iterations may do nothing that has to be behind the rest of its own iteration: an access that
may meet one of the second part, and comes after it, is of the second part. Accesses of other iterations do not meet
these: the source promises it of what is in no section, and of what is not promised the caller names every access.

The second part gets numbers of the first one through memory, one place for each iteration. Addresses, and what is
computed in loops of an iteration, are computed again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import PostDominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.control.promises import SILENT
from irgrad.engine.analyses.evolution.dependence import Access, Dependence
from irgrad.engine.analyses.memory.tbaa import Tbaa
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import PURE
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.parallel.sections import is_section_fence
from irgrad.engine.threads.array_updates import behind, said_apart
from irgrad.engine.threads.ownership import made_of
from irgrad.rules.effects import facts

__all__ = ["Parts", "between", "is_silent", "parts_of"]

_MOST = 300
"""Accesses of a loop that are compared with each other."""
_WORTH, _VALUE = 16, 4
"""Operations of the first part that pay for two loops, and for each number that goes through memory."""
_CALL, _INNER = 20, 16


@dataclass(slots=True)
class Parts:
    """ordered: what runs in the order of the iterations; again: what runs in both parts; kept: the numbers that go from
    the first to the second; memory: variables of an iteration that both use; refusal: why there are no two parts."""

    ordered: set[Instruction] = field(default_factory=set)
    again: set[Instruction] = field(default_factory=set)
    kept: dict[Instruction, None] = field(default_factory=dict)
    memory: list[Instruction] = field(default_factory=list)
    refusal: str = ""


def is_silent(instr: Instruction) -> bool:
    """Whether an instruction does nothing when it runs."""
    return is_section_fence(instr) or (instr.is_call and (instr.callee_name or "").startswith(SILENT))


def between(block: Block, join: Block | None, before: Collection[Block] = ()) -> list[Block]:
    """The blocks that a branch leads to before its ways meet. before: blocks that are not gone through."""
    found: dict[Block, None] = {}
    work = list(block.successors)
    while work:
        one = work.pop()
        if one is not join and one not in found and one not in before:
            found[one] = None
            work += one.successors
    return list(found)


def parts_of(
    module: Module, fn: Function, loop: Loop, dependence: Dependence, together: Collection[Instruction],
    own: Collection[Instruction],
) -> Parts:  # fmt: skip
    """The two parts of an iteration. together: accesses that may meet those of other iterations; own: the variables
    that only an iteration uses."""
    closure = _Closure(module, fn, loop, dependence, own)
    closure.parts.ordered |= {i for i in together if not is_silent(i)}
    closure.parts.refusal = closure.form() or closure.close() or closure.little()
    return closure.parts


class _Closure:
    """What has to be in the second part when some accesses are."""

    def __init__(
        self, module: Module, fn: Function, loop: Loop, dependence: Dependence, own: Collection[Instruction]
    ) -> None:
        self.loop, self.dependence, self.own = loop, dependence, own
        self.parts = Parts()
        self.loops = get(Loops, fn)
        self.after = get(PostDominators, fn)
        self.fn = fn
        self.uses: Uses = uses_of(fn.blocks)
        self.rows: dict[Instruction, Access] = {a.instr: _whole(dependence, a) for a in dependence.accesses(loop)}
        self.types = Tbaa(module)
        self.inside = [i for block in loop.blocks for i in block.instructions]
        self.later: dict[Block, set[Block]] = {}
        self.places: dict[Instruction, int] = {
            i: n for block in loop.blocks for n, i in enumerate(block.instructions)
        }
        self.met: dict[tuple[Instruction, Instruction], bool] = {}

    def form(self) -> str:
        """Why a loop has no parts: its blocks end in other ways than by branches."""
        if len(self.rows) > _MOST:
            return f"it has more than {_MOST} accesses, which are not compared"
        plain = all(block.terminator.opcode in ("br", "switch") for block in self.loop.blocks)
        fixed = not any(i.opcode == "alloca" for i in self.inside)
        return "" if plain and fixed else "an iteration may end in other ways, or reserves memory"

    def close(self) -> str:
        parts = self.parts
        size = -1
        while size != len(parts.ordered) + len(parts.again) + len(parts.kept):
            size = len(parts.ordered) + len(parts.again) + len(parts.kept)
            for step in (self._users, self._decided, self._met, self._needed, self._branches):
                if why := step():
                    return why
            parts.again -= parts.ordered
            parts.kept = {value: None for value in parts.kept if value not in parts.ordered}
        touched = [a for i, a in self.rows.items() if i in parts.ordered or i in parts.again]
        for variable in self.own:
            objects = self.dependence.pointers.of(variable)
            used = any(not a.objects or a.objects & objects for a in touched)
            used = used or any(made_of(o) is variable for i in parts.ordered | parts.again for o in i.operands)
            parts.memory += [variable] if used and variable.opcode == "alloca" else []
        return ""

    def little(self) -> str:
        """Why two loops are not worth it."""
        work = 0
        for block in self.loop.blocks:
            inner = self.loops.of(block)
            depth = inner.depth - self.loop.depth if inner is not None else 0
            for instr in block.instructions:
                if instr not in self.parts.ordered and not is_silent(instr):
                    work += (_CALL if instr.is_call else 1) * _INNER**depth
        if work < _WORTH + _VALUE * (len(self.parts.kept) + len(self.parts.memory)):
            return "but for what one thread does at a time, its iterations do too little"
        return ""

    # -- the steps ---------------------------------------------------------------------------------------------------

    def _users(self) -> str:
        """What uses a value of the second part."""
        work = list(self.parts.ordered)
        while work:
            for user in self.uses.get(work.pop(), ()):
                header = user.opcode == "phi" and user.block is self.loop.header
                if header or not self.loop.contains(user.block):
                    return "what one thread does at a time goes into a value of all iterations"
                if user not in self.parts.ordered and not user.traits.has("terminator") and not is_silent(user):
                    self.parts.ordered.add(user)
                    work.append(user)
        return ""

    def _decided(self) -> str:
        """What a branch decides by such a value."""
        for block in self.loop.blocks:
            asked = block.terminator.operands[:1] if len(block.successors) > 1 else []
            if not any(value in self.parts.ordered for value in asked):
                continue
            if block is self.loop.latch:
                return "what one thread does at a time decides how often it runs"
            join = self.after.ipdom(block)
            rows = [i for b in between(block, join) for i in b.instructions if not i.traits.has("terminator")]
            self.parts.ordered |= {i for i in (*rows, *(join.phis if join is not None else ())) if not is_silent(i)}
        return ""

    def _met(self) -> str:
        """What comes after an access of the second part, to what may be the same memory."""
        second = [a for i, a in self.rows.items() if i in self.parts.ordered or i in self.parts.again]
        for access in second:
            for other in self.rows.values():
                if other.instr not in self.parts.ordered and other is not access and self._conflict(access, other):
                    self.parts.ordered.add(other.instr)
        return ""

    def _conflict(self, first: Access, second: Access) -> bool:
        """Whether the second one may come after the first one in an iteration, and touch the same memory; or touches
        it in another iteration, against the source's word, by an index into the same array."""
        if not (first.writes or second.writes):
            return False
        bases = [made_of(a.pointer) for a in (first, second) if a.pointer is not None]
        same = len(bases) == 2 and bases[0] is bases[1] and bases[0] not in self.own
        if not self._after(first.instr, second.instr) and not (
                same and self.dependence.relation(self.loop, first, second).carried):  # fmt: skip
            return False
        pair = first.instr, second.instr
        if pair not in self.met:
            self.met[pair] = not self._apart(first, second)
        return self.met[pair]

    def _after(self, first: Instruction, second: Instruction) -> bool:
        assert first.block is not None and second.block is not None
        if first.block not in self.later:
            self.later[first.block] = behind(self.loop, first)
        same = first.block is second.block and self.places[second] > self.places[first]
        return same or second.block in self.later[first.block]

    def _apart(self, first: Access, second: Access) -> bool:
        if self.dependence.relation(self.loop, first, second).never:
            return True
        if first.pointer is None or second.pointer is None:
            return False
        kinds = [self.types.kind(tag) if (tag := a.instr.metadata.get("tbaa")) else None for a in (first, second)]
        return (None not in kinds and kinds[0] != kinds[1]) or said_apart(first.pointer, second.pointer)

    def _needed(self) -> str:
        """The values that the second part uses."""
        work = [*self.parts.ordered, *self.parts.again]
        while work:
            for value in work.pop().operands:
                if why := self._need(value, work):
                    return why
        return ""

    def _branches(self) -> str:
        """What decides whether something of the second part runs."""
        second = self.parts.ordered | self.parts.again
        work: list[Instruction] = []
        for block in self.loop.blocks:
            if len(block.successors) < 2 or block is self.loop.latch:
                continue
            join = self.after.ipdom(block)
            rows = [i for b in between(block, join, (self.loop.header,)) for i in b.instructions]
            decided = any(i in second for i in (*rows, *(join.phis if join is not None else ())))
            if decided and (why := self._need(block.terminator.operands[0], work)):
                return why
        return ""

    def _need(self, value: Value, work: list[Instruction]) -> str:
        parts = self.parts
        if not isinstance(value, Instruction) or not self.loop.contains(value.block) or value.block is None:
            return ""
        if value in parts.ordered or value in parts.again or value in parts.kept:
            return ""
        if value.opcode == "phi" and value.block is self.loop.header:
            return ""  # a counter
        plain = not isinstance(value.type, (ty.VectorType, ty.StructType, ty.ArrayType))
        if self._cheap(value, 0) or value.type.is_ptr or self.loops.of(value.block) is not self.loop or not plain:
            access = self.rows.get(value)
            if value.opcode not in PURE and value.opcode != "phi" and not (
                    value.opcode == "load" and not value.ordering and not value.volatile) and not (
                    value.is_call and access is None and _computes(value)):  # fmt: skip
                return "what one thread does at a time needs what a call or an update gives in a loop of the iteration"
            parts.again.add(value)
            work.append(value)
        else:
            parts.kept[value] = None
        return ""

    def _cheap(self, value: Value, depth: int) -> bool:
        """Whether it is less to compute a number again than to keep it."""
        if not isinstance(value, Instruction) or not self.loop.contains(value.block):
            return True
        if value.opcode == "phi":
            return value.block is self.loop.header and (value.type.is_int or value.type.is_ptr)
        return (depth < 4 and value.opcode in PURE and (value.type.is_int or value.type.is_ptr)
                and all(self._cheap(o, depth + 1) for o in value.operands))  # fmt: skip


def _whole(dependence: Dependence, access: Access) -> Access:
    """An access with its address also where it is atomic."""
    instr = access.instr
    if instr.opcode != "atomicrmw":
        return access
    pointers = dependence.pointers
    return Access(instr, True, instr.operands[0], ty.store_size(instr.type), pointers.expand(pointers.of(
        instr.operands[0])))  # fmt: skip


def _computes(call: Instruction) -> bool:
    name = call.callee_name or ""
    known = facts(name) if name else None
    return name.startswith("llvm.") or (known is not None and known.kind == "pure" and not known.writes)


