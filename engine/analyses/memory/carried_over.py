"""Variables of which a call may read what an earlier call has left in them.

    static char *top;                      /* the next free byte of an arena */
    double f(...) { top = base; ... }      /* written before anything reads it: nothing of an earlier call is left */

Method: the places of variables that are certainly written, forwards through the blocks of a function, and through its
callees by two summaries: what they read of before (upward exposed), and what they have written when they return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.memory.modref import instr_reads
from irgrad.engine.analyses.memory.objects import PointsTo, bits_of, is_never_written
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, GlobalVariable, Instruction, Value

__all__ = ["carried_over"]

_Place = tuple[int, int, int]
"""(object, first byte, bytes); no bytes: anywhere in it."""


class _Summary:
    """Of a function: what it reads of before, and what it has written when it returns (None: it never does)."""

    def __init__(self, read: frozenset[_Place], written: frozenset[_Place] | None) -> None:
        self.read = read
        self.written = written


def carried_over(
    pointers: PointsTo, places: Callable[[Value], dict[int, Offsets]], *, overlaps: bool = True
) -> int:
    """The variables, as a mask of objects; `places`: where in which objects a pointer may point; `overlaps`: whether
    arguments that may be anything are also asked to lead into variables."""
    globals_ = (o for o in pointers.objects if isinstance(o.site, GlobalVariable))
    variables = sum(1 << o.index for o in globals_ if not is_never_written(o))
    walk = _Walk(pointers, places, variables, overlaps)
    found = 0
    for bit, _, _ in walk.summary(pointers.root).read if variables else ():
        found |= 1 << bit
    return found


class _Walk:
    def __init__(
        self, pointers: PointsTo, places: Callable[[Value], dict[int, Offsets]], variables: int, overlaps: bool
    ) -> None:
        self.pointers = pointers
        self.places = places
        self.variables = variables
        self.overlaps = overlaps
        self.known: dict[Function, _Summary] = {}

    def summary(self, root: Function) -> _Summary:
        """Callees before their callers; a function that is under way may read all that it ever reads."""
        stack = [(root, self._callees(root))]
        self.known[root] = self._any(root)
        while stack:
            fn, rest = stack[-1]
            callee = next((c for c in rest if c not in self.known), None)
            if callee is None:
                stack.pop()
                self.known[fn] = self._of(fn)
            else:
                self.known[callee] = self._any(callee)
                stack.append((callee, self._callees(callee)))
        return self.known[root]

    def _any(self, fn: Function) -> _Summary:
        return _Summary(self._anywhere(self.pointers.reads(fn)), frozenset())

    def _anywhere(self, mask: int) -> frozenset[_Place]:
        return frozenset((bit, 0, 0) for bit in bits_of(mask & self.variables))

    def _callees(self, fn: Function) -> Iterator[Function]:
        for instr in fn.instructions():
            for callee in (self.pointers.callees(instr) or ()) if instr.is_call else ():
                if callee.blocks and (self.pointers.reads(callee) | self.pointers.writes(callee)) & self.variables:
                    yield callee

    def _of(self, fn: Function) -> _Summary:
        cfg = Cfg(fn)
        exposed: set[_Place] = set()
        leaving: dict[tuple[Block, Block], frozenset[_Place]] = {}  # what is written along an edge
        returned: frozenset[_Place] | None = None
        work = list(cfg.rpo)
        while work:  # what is written only becomes less, so that this ends
            again = []
            for block in work:
                before = [leaving[p, block] for p in cfg.preds(block) if (p, block) in leaving]
                written = frozenset.intersection(*before) if before and block is not cfg.rpo[0] else frozenset[_Place]()
                unwound = written
                for instr in block.instructions:
                    unwound = written
                    read, wrote = self._instruction(instr)
                    exposed |= read - written
                    written |= wrote
                if block.terminator.opcode == "ret":
                    returned = written if returned is None else returned & written
                for successor in cfg.succs(block):
                    thrown = block.terminator.opcode == "invoke" and successor is block.terminator.blocks[1]
                    now = unwound if thrown else written
                    if leaving.get((block, successor)) != now:
                        leaving[block, successor] = now
                        again.append(successor)
            work = sorted(set(again), key=cfg.index.__getitem__)
        return _Summary(frozenset(exposed), returned)

    def _instruction(self, instr: Instruction) -> tuple[frozenset[_Place], frozenset[_Place]]:
        if instr.is_call:
            known = [self.known.get(callee) for callee in self.pointers.callees(instr) or ()]
            found = [summary for summary in known if summary is not None]
            if known == found and found and self.pointers.effect(instr) is None:
                written = [summary.written for summary in found if summary.written is not None]
                both = frozenset.intersection(*written) if written else frozenset[_Place]()
                return frozenset(place for summary in found for place in summary.read), both
            return self._anywhere(instr_reads(self.pointers, instr)), frozenset()
        if instr.opcode == "store":
            mask = self.pointers.of(instr.operands[1])  # what overlaps may be written too, this is for certain
            (bit, place), *others = self._touched(instr.operands[1], instr.operands[0].type, mask) or [(-1, None)]
            certain = place is not None and not others and self.variables >> bit & 1
            return frozenset(), frozenset([place]) if certain and place is not None else frozenset()
        mask = instr_reads(self.pointers, instr)
        if instr.opcode == "load" and not self.overlaps and not self.pointers.of(instr.operands[0]) & 1:
            mask = self.pointers.of(instr.operands[0])
        mask &= self.variables
        if not mask:
            return frozenset(), frozenset()
        touched = dict(self._touched(instr.operands[0], instr.type, mask)) if instr.opcode == "load" else {}
        return frozenset(touched.get(bit) or (bit, 0, 0) for bit in bits_of(mask)), frozenset()

    def _touched(self, pointer: Value, type_: ty.Type, mask: int) -> list[tuple[int, _Place | None]]:
        spots = self.places(pointer)
        return [
            (bit, (bit, spots[bit].start, ty.store_size(type_)) if bit in spots and spots[bit].exact else None)
            for bit in bits_of(mask)
        ]
