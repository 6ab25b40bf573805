"""What is known about a function before its reverse derivative is written.

Control flow, loops and their trip counts, what may be overwritten, which values have an adjoint or a shadow. The plan
of the tape is made from it, and emission follows the plan.
"""

from __future__ import annotations

from functools import cached_property

from irgrad.engine.analyses.activity.structural_zeros import StructuralZeros
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.clobber import Clobber
from irgrad.engine.analyses.evolution.guards import known_room
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import TripCount
from irgrad.engine.analyses.memory.call_effects import effect_of
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.copying import STRUCTURAL
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Constant, ConstInt, Function, GlobalVariable, Instruction, Value
from irgrad.engine.ir.opcodes import CHOICES, POINTER_SOURCES, having
from irgrad.engine.ir.types import may_hold_pointer
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.iterations import ITERATION
from irgrad.rules import effects

SHADOWED = having("combines_bits") | STRUCTURAL | CHOICES | {"load", "alloca"}


class ReverseFacts:
    """The facts about one function. `split`: its two sweeps are functions of their own."""

    def __init__(self, unit: Unit, fn: Function, abi: Abi, *, split: bool) -> None:
        self.unit = unit
        self.fn = fn
        self.abi = abi
        self.split = split
        self.cfg = get(Cfg, fn)
        self.loops = get(Loops, fn)
        self.dom = self.loops.dom
        self.induction = Induction(fn, self.cfg, self.loops)
        taped = fn is unit.root or ITERATION in (fn.name or "")
        self.caller_tape = split and taped and unit.outputs is not None  # see taped.py
        outside = beyond(unit) if self.caller_tape else unit.every_write | unit.between if split else unit.outside_root
        self.clobber = Clobber(self.cfg, unit.pointers, self.induction, outside)
        self.exit = next((b for b in self.cfg.rpo if b.terminator.opcode == "ret"), None)
        self.one_block = _used_in_one_block(fn)
        self.zeros = StructuralZeros(self.cfg, unit.activity)
        self._active: dict[Value, bool] = {}
        self.silent = {loop for loop in self.loops.all if loop.preheader is not None and self._silent(loop)}
        self.live = self._live() - {block for loop in self.silent for block in loop.blocks}
        self.carried = self._carried()
        self._branches: dict[Block, tuple[Value, int] | None] = {}
        self._recurrences: dict[Instruction, tuple[Value, Value] | None] = {}
        self._tops: dict[Loop, Loop | None] = {}

    def _live(self) -> set[Block]:
        """Blocks from which the exit can be reached."""
        found: set[Block] = set()
        work = [self.exit] if self.exit is not None else []
        while work:
            block = work.pop()
            if block not in found:
                found.add(block)
                work += self.cfg.preds(block)
        return found

    def _silent(self, loop: Loop) -> bool:
        """Whether the reverse of a loop does nothing: it makes numbers without a derivative, and writes nothing. Not
        said of loops along linked memory: the second derivative of a list that is sorted (libc++) takes its size for a
        float where they are passed by."""
        rows = (instr for block in loop.blocks for instr in block.instructions)
        return not any(self.active(i) or i.opcode == "alloca" or _acts(i) or _follows_links(i) for i in rows)

    def _carried(self) -> set[Value]:
        """What an iteration hands on to the next one: its adjoint is read before the loop's header has added to it."""
        found: set[Value] = set()
        for loop in self.loops.all if self.exit is not None else ():
            for phi in loop.header.phis:
                found.update(v for v, b in zip(phi.operands, phi.blocks, strict=True) if loop.contains(b))
        return found

    @cached_property
    def users(self) -> dict[Value, list[Instruction]]:
        """The instructions that use a value."""
        return uses_of(self.cfg.rpo)

    # -- values ----------------------------------------------------------------------------------------------

    def active(self, value: Value) -> bool:
        """Whether a value has an adjoint."""
        found = self._active.get(value)
        if found is None:
            found = self._active[value] = not isinstance(value, Constant) and self.unit.differentiable(value)
        return found

    def shadowed(self, value: Value) -> bool:
        """Whether the primal sweep has to compute a shadow of a value."""
        return may_hold_pointer(value.type) and self.unit.activity.pointer(value)

    def has_shadow(self, value: Instruction) -> bool:
        """Whether the primal sweep makes a shadow of a value; else it is null."""
        if not self.shadowed(value):
            return False
        if not value.is_call:
            return value.opcode in SHADOWED
        callee = resolve(value.callee)
        if isinstance(callee, Function) and callee.is_declaration:
            effect = effect_of(self.unit.module, value, callee)
            if effect.allocates or effect.frees is not None or effect.copy is not None or effect.fill is not None:
                return effect.allocates
        if not self.unit.activity.call(value) or not self.unit.call_targets(value):
            return False
        return self.unit.call_abi(value).ret_shadow

    @cached_property
    def own_memory(self) -> list[Instruction]:
        """Memory of the function's own that has a shadow."""
        return [i for b in self.cfg.rpo for i in b.instructions if self.shadowed(i) and self._makes_memory(i)]

    def _makes_memory(self, instr: Instruction) -> bool:
        if not instr.is_call:
            return instr.opcode == "alloca"
        callee = resolve(instr.callee)
        declared = isinstance(callee, Function) and callee.is_declaration
        return declared and bool(effect_of(self.unit.module, instr, callee).allocates)  # type: ignore[arg-type]

    def level(self, value: Instruction) -> Loop | None:
        """Innermost loop around a definition."""
        assert value.block is not None
        return self.loops.of(value.block)

    def direct(self, value: Instruction) -> bool:
        """Whether the copy of `value` dominates the reverse sweep (combined derivative, straight-line code)."""
        if self.split or value.block is None or self.exit is None:
            return False
        return self.loops.of(value.block) is None and self.dom.dominates(value.block, self.exit)

    def recurrence(self, phi: Instruction) -> tuple[Value, Value] | None:
        """(start, step) of an induction variable in a loop header."""
        if phi.block is None or not (phi.type.is_int or phi.type.is_ptr):
            return None
        loop = self.loops.of(phi.block)
        if loop is None or loop.header is not phi.block:
            return None
        if phi not in self._recurrences:
            self._recurrences[phi] = self._recurrence(phi)
        return self._recurrences[phi]

    def _recurrence(self, phi: Instruction) -> tuple[Value, Value] | None:
        found = self.induction.recurrence(phi)
        if found is None:
            return None
        start, step = found
        kind = ty.I64 if phi.type.is_ptr else phi.type
        if not step.terms:
            return start, ConstInt(kind, step.const)
        if len(step.terms) == 1 and step.const == 0:
            symbol, coefficient = next(iter(step.terms.items()))
            if coefficient == 1 and isinstance(symbol, Value) and symbol.type is kind:
                return start, symbol
        return None

    def alternates(self, phi: Instruction) -> bool:
        """Whether a float only changes its sign from iteration to iteration of a counted loop."""
        loop = self.loops.of(phi.block) if phi.block is not None and phi.type.is_fp else None
        if loop is None or loop.header is not phi.block or loop.latch is None or loop.preheader is None:
            return False
        later = phi.operands[phi.blocks.index(loop.latch)]
        return isinstance(later, Instruction) and later.opcode == "fneg" and later.operands[0] is phi

    def entering(self, phi: Instruction) -> Value:
        """Value with which a header phi enters its loop."""
        assert phi.block is not None
        loop = self.loops.of(phi.block)
        assert loop is not None
        return next(v for v, b in zip(phi.operands, phi.blocks, strict=True) if not loop.contains(b))

    # -- loops -----------------------------------------------------------------------------------------------

    def trip(self, loop: Loop) -> TripCount | None:
        """The trip count expression (back edges taken) of a loop with a single way out."""
        return self.induction.trip_count(loop)

    def constant_trip(self, loop: Loop) -> int | None:
        """The trip count when it is a literal."""
        count = self.trip(loop)
        return count.const if count is not None else None

    def top(self, loop: Loop) -> Loop | None:
        """Outermost loop at whose entry the trip counts of the whole nest down to `loop` are known; None: uncounted."""
        if loop not in self._tops:
            best: Loop | None = None
            chain: list[Loop] = []
            here: Loop | None = loop
            while here is not None and self.trip(here) is not None and here.preheader is not None:
                chain.append(here)
                if all(self._countable(link, here) for link in chain):
                    best = here
                here = here.parent
            self._tops[loop] = best
        return self._tops[loop]

    def _countable(self, loop: Loop, top: Loop) -> bool:
        count = self.trip(loop)
        if count is None or any(isinstance(u, Instruction) and top.contains(u.block) for u in count.uses):
            return False
        return known_room(self.cfg, self.dom, top, loop, count)

    def chain(self, loop: Loop) -> list[Loop]:
        """Loops from the top of the flat nest down to `loop`."""
        top = self.top(loop)
        assert top is not None
        chain = [loop]
        while chain[-1] is not top:
            parent = chain[-1].parent
            assert parent is not None
            chain.append(parent)
        return chain[::-1]

    # -- merges ----------------------------------------------------------------------------------------------

    def branch_of(self, block: Block, preds: list[Block]) -> tuple[Value, int] | None:
        """(condition, index of the predecessor on its true side) when one branch above decides where control came
        from."""
        if block not in self._branches:
            self._branches[block] = self._branch_of(block, preds)
        return self._branches[block]

    def _branch_of(self, block: Block, preds: list[Block]) -> tuple[Value, int] | None:
        above = self.dom.idom(block)
        if len(preds) != 2 or above is None:
            return None
        last = above.terminator
        loop = self.loops.of(above)
        if last.opcode != "br" or not last.operands or (loop is not None and not loop.contains(block)):
            return None
        if last.blocks[0] is last.blocks[1]:
            return None
        sides = [self._side(above, last.blocks, p, block) for p in preds]
        if sorted(sides, key=str) != [0, 1]:
            return None
        return last.operands[0], sides.index(0)

    def _side(self, above: Block, targets: list[Block], pred: Block, block: Block) -> int | None:
        if pred is above:
            return targets.index(block)
        for i, target in enumerate(targets):
            if self.cfg.preds(target) == [above] and self.dom.dominates(target, pred):
                return i
        return None

    def left_by(self, block: Block, pred: Block) -> tuple[list[Loop], Block]:
        """Loops that control leaves on the way from `pred` to `block`, innermost first, without those whose reverse
        does nothing; and the block before such a loop, else `pred`."""
        left: list[Loop] = []
        loop = self.loops.of(pred)
        while loop is not None and not loop.contains(block):
            left.append(loop)
            if loop in self.silent and loop.preheader is not None:
                left, pred = [], loop.preheader
            loop = loop.parent
        return left, pred

    def one_way(self, block: Block, preds: list[Block]) -> bool:
        """Whether all ways back from a block are the same."""
        first = self.left_by(block, preds[0])
        return all(self.left_by(block, pred) == first for pred in preds[1:])


def _follows_links(instr: Instruction) -> bool:
    return instr.type.is_ptr and instr.opcode in POINTER_SOURCES and instr.opcode != "getelementptr"


def _acts(instr: Instruction) -> bool:
    """Whether an instruction does something besides making its result."""
    if not instr.is_call:
        return instr.traits.has("writes")
    known = effects.facts(instr.callee_name) if instr.callee_name else None
    return known is None or known.kind != "pure" or bool(known.writes)


def beyond(unit: Unit) -> int:
    """Objects that the reverse sweep of a tape of the caller's must not read: what the function writes, memory of its
    own, and what others may have written in between."""
    mask = unit.every_write
    for obj in unit.pointers.objects:
        variable = isinstance(obj.site, GlobalVariable) and not obj.site.constant
        if variable or obj.kind in ("alloca", "heap", "pointee", "unknown"):
            mask |= 1 << obj.index
    return mask


def _used_in_one_block(fn: Function) -> set[Value]:
    """Instructions whose uses all stand in the block of their definition, phis apart."""
    outside: set[Value] = set()
    result: set[Value] = set()
    for block in fn.blocks:
        for instr in block.instructions:
            result.add(instr)
            for operand in instr.operands:
                if isinstance(operand, Instruction) and (operand.block is not block or instr.opcode == "phi"):
                    outside.add(operand)
            if instr.opcode == "phi":
                outside.add(instr)
    return result - outside


__all__ = ["ReverseFacts", "beyond"]
