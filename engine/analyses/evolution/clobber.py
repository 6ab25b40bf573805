"""May a loaded value be read again in the reverse sweep? Only if nothing that can run after the load writes its memory.

"After" means on any path, later iterations of every loop around included: the question is asked across iterations,
which is what in-place updates like x[i] = x[i-1] * x[i+1] need. Two accesses to one object are apart when their
addresses are known to differ whatever the iteration: offsets from one base with a common stride and disjoint
residues (fields of structs, lanes of small arrays). Where they meet, but in no run of the store after the load's, the
memory stays as well (`overwrites.py`: finished rows of a factorisation).
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from irgrad.engine.analyses.evolution.overwrites import Overwrites
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction, Value
from irgrad.engine.ir.opcodes import ACCESSES, having

if TYPE_CHECKING:
    from collections.abc import Iterator

    from irgrad.engine.analyses.control.cfg import Cfg
    from irgrad.engine.analyses.evolution.affine import Affine
    from irgrad.engine.analyses.evolution.induction import Induction
    from irgrad.engine.analyses.memory.points_to import Pointers

MANY = 256  # stores looked at one by one; beyond that the objects decide
_WRITES = ACCESSES & having("writes")


class Clobber:
    """Answers for one function. `outside`: objects that may be written between primal and reverse sweep by somebody
    else."""

    def __init__(self, cfg: Cfg, pointers: Pointers, induction: Induction, outside: int) -> None:
        self.cfg = cfg
        self.pointers = pointers
        self.induction = induction
        self.overwrites = Overwrites(induction)
        self.outside = outside
        self.writers: dict[Block, list[tuple[int, Instruction, int]]] = {}
        self.block_masks: dict[Block, int] = {}
        self.answers: dict[Instruction, bool] = {}
        self.positions: dict[Instruction, int] = {}
        for block in cfg.rpo:
            found = []
            total = 0
            for i, instr in enumerate(block.instructions):
                self.positions[instr] = i
                if instr.opcode in _WRITES or (instr.is_call and not _frees(pointers, instr)):
                    mask = pointers.instr_writes(instr)
                    if mask:
                        found.append((i, instr, mask))
                        total |= mask
            self.writers[block] = found
            self.block_masks[block] = total
        self.later = self._later()

    def _later(self) -> dict[Block, int]:
        """Objects written in blocks that can run after the end of each block."""
        later = dict.fromkeys(self.cfg.rpo, 0)
        changed = True
        while changed:
            changed = False
            for block in self.cfg.postorder:
                mask = later[block]
                for succ in self.cfg.succs(block):
                    mask |= later[succ] | self.block_masks[succ]
                if mask != later[block]:
                    later[block] = mask
                    changed = True
        return later

    def clobbered(self, load: Instruction) -> bool:
        """Whether the memory that `load` reads may change before the reverse sweep ends."""
        if load not in self.answers:
            self.answers[load] = self._clobbered(load)
        return self.answers[load]

    def _clobbered(self, load: Instruction) -> bool:
        objects = self.pointers.of(load.operands[0])
        if load.volatile or load.ordering or not objects or objects & self.outside:
            return True
        block = load.block
        assert block is not None
        here = self.positions[load]
        suspects = [(i, w) for i, w, mask in self.writers[block] if i > here and mask & objects]
        if self.later[block] & objects:
            for other in self.cfg.rpo:
                if self.block_masks[other] & objects and self.cfg.reaches(block, other):
                    suspects += [(i, w) for i, w, mask in self.writers[other] if mask & objects]
                if len(suspects) > MANY:
                    return True
        return any(not (self.apart(load, w) or self.stays(load, w)) for _, w in suspects)

    def stays(self, load: Instruction, writer: Instruction) -> bool:
        """Whether no run of the writer after a run of the load writes what that has read."""
        if writer.opcode != "store" or writer.volatile or writer.ordering:
            return False
        return self.overwrites.never(load, writer)

    def call_clobbered(self, call: Instruction, pointer: Value, *, itself: bool) -> bool:
        """Whether memory that a call is given may change between the call and the end of the reverse sweep.

        itself: also by the call.
        """
        objects = self.pointers.expand(self.pointers.of(pointer))
        return not objects or self.changed_after(call, objects, itself=itself)

    def changed_after(self, call: Instruction, objects: int, *, itself: bool) -> bool:
        """Whether one of some objects may change between a call and the end of the reverse sweep."""
        block = call.block
        assert block is not None
        if objects & self.outside:
            return True
        return any(self._changes(writer, objects) for writer, mask in self._after(call, itself) if mask & objects)

    def changing(self, call: Instruction, objects: int) -> Instruction | None:
        """The first instruction that may change them, for messages; None where it is not in this function."""
        found = self._after(call, itself=False)
        return next((writer for writer, mask in found if mask & objects and self._changes(writer, objects)), None)

    def _after(self, call: Instruction, itself: bool) -> Iterator[tuple[Instruction, int]]:
        """What may run after a call and write something, with the objects that it may write."""
        block = call.block
        assert block is not None
        first = self.positions[call] + (not itself)
        yield from ((writer, mask) for i, writer, mask in self.writers[block] if i >= first)
        if self.later[block]:
            for other in self.cfg.rpo:
                if self.block_masks[other] and self.cfg.reaches(block, other):
                    yield from ((writer, mask) for _, writer, mask in self.writers[other])

    def _changes(self, writer: Instruction, objects: int) -> bool:
        """Whether a writer changes some of these objects, by the body of the function that it calls where a rule hides
        that."""
        rules, callee = self.pointers.module.rules, resolve(writer.callee) if writer.is_call else None
        through = rules.written_through(callee) if rules is not None and isinstance(callee, Function) else None
        if through is None:
            return True
        expand, of = self.pointers.expand, self.pointers.of
        return any(expand(of(writer.args[i])) & objects for i in through)

    def apart(self, load: Instruction, writer: Instruction) -> bool:
        """Whether the two can never touch the same bytes, in whatever iterations they run."""
        if writer.opcode == "store":
            pointer, size = writer.operands[1], ty.store_size(writer.operands[0].type)
        elif writer.opcode == "atomicrmw":
            pointer, size = writer.operands[0], ty.store_size(writer.type)
        else:
            return False
        return self.disjoint(load.operands[0], ty.store_size(load.type), pointer, size)

    def disjoint(self, a: Value, a_size: int, b: Value, b_size: int) -> bool:
        """Offsets from the same base, compared modulo the common stride of all their varying parts."""
        first, second = self.induction.address(a), self.induction.address(b)
        if first is None or second is None or first[0] is not second[0] or not self._fixed(first[0]):
            return False
        left, right = first[1], second[1]
        stride = gcd(_stride(left), _stride(right))
        delta = right.const - left.const
        if stride == 0:
            return delta >= a_size or -delta >= b_size
        delta %= stride
        return delta >= a_size and stride - delta >= b_size

    def _fixed(self, base: Value) -> bool:
        """Whether a base address is computed once per call of the function."""
        if not isinstance(base, Instruction):
            return True
        return base.block is not None and self.induction.loops.of(base.block) is None


def _frees(pointers: Pointers, call: Instruction) -> bool:
    """A release of memory: the primal sweep postpones it."""
    effect = pointers.effect(call)
    return effect is not None and effect.frees is not None and effect.moves is None


def _stride(form: Affine) -> int:
    result = 0
    for coefficient in form.terms.values():
        result = gcd(result, coefficient)
    return result
