"""Whether a pointer lies in the block that an address leads to: `p` and `*m` of an iterator, which is a place `m` in a
table of blocks and a place `p` in the block that is entered there.

Followed from where `*m` is read back to where `p` was made from what was read at `m`: through phis, choices and the
arguments of all calls, as long as nothing can have been written to the table in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Block, Constant, ConstInt, Function, GlobalVariable, Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.analyses.memory.points_to import Pointers

__all__ = ["HeldPointers", "nowhere"]

Path = tuple[tuple[ty.Type | None, tuple[int, ...]], ...]
"""Steps of constant length: the type that is stepped over, and the indices."""
_MOST = 200
"""Claims that one proof makes at most."""


class HeldPointers:
    """root: the function that is called from outside. callers: the calls of each function. unmoved: the address that
    one was made from, within its allocation."""

    def __init__(
        self, pointers: Pointers, root: Function, callers: dict[Function, list[Instruction]],
        unmoved: Callable[[Value], Value],
    ) -> None:  # fmt: skip
        self._pointers = pointers
        self._root = root
        self._callers = callers
        self._unmoved = unmoved
        self._dominating: dict[Function, Dominators] = {}

    def shown(self, pointer: Value, read: Instruction) -> bool:
        """Whether a pointer that was made before lies in the allocation of the one that is read."""
        if read.opcode != "load" or not self._known(pointer, read):
            return False
        base, path = _place(read.operands[0])
        return self._held(pointer, base, path, read, set())

    def _held(
        self, pointer: Value, base: Value, path: Path, at: Instruction,
        claimed: set[tuple[Value, Value, Path]],
    ) -> bool:  # fmt: skip
        """Whether `pointer` lies in the allocation of the pointer that is held at `base` + `path` where `at` runs.
        `claimed`: what is being shown of phis and arguments. The ways into the block, and the calls, ran earlier, and
        count on it (coinduction)."""
        pointer = self._unmoved(pointer)
        if nowhere(pointer):
            return True
        if not self._known(pointer, at) or not self._known(base, at) or len(claimed) > _MOST:
            return False
        if isinstance(pointer, Instruction) and pointer.opcode == "load":
            found, there = _place(pointer.operands[0])
            if there == path and _alike(found, base):
                return self._kept(base, at, pointer)
        if isinstance(pointer, Instruction) and pointer.opcode == "select":
            return all(self._held(v, base, path, at, claimed) for v in pointer.operands[1:])
        claim = pointer, base, path
        if claim in claimed:
            return self._kept(base, at, self._latest(pointer, base))
        ways = self._ways(pointer, base)
        if not ways or not self._kept(base, at, self._latest(pointer, base)):
            return False
        claimed.add(claim)
        for value, origin, where in ways:
            beneath, further = _place(origin)
            if not self._held(value, beneath, (*further, *path), where, claimed):
                return False
        return True

    def _ways(self, pointer: Value, base: Value) -> list[tuple[Value, Value, Instruction]]:
        """What the two were before, and where: at the end of each way into the block of a phi, or at each call."""
        if isinstance(pointer, Argument) and isinstance(base, Argument):
            fn = pointer.function if pointer.function is base.function else None
            calls = self._callers.get(fn, []) if fn is not None and fn is not self._root else []
            if any(max(pointer.index, base.index) >= len(call.args) for call in calls):
                return []
            return [(call.args[pointer.index], call.args[base.index], call) for call in calls]
        chosen = self._latest(pointer, base)
        if not isinstance(chosen, Instruction) or chosen.opcode != "phi" or chosen.block is None:
            return []
        rows = [[dict(zip(v.blocks, v.operands, strict=True)).get(block, v)
                 if isinstance(v, Instruction) and v.opcode == "phi" and v.block is chosen.block else v
                 for v in (pointer, base)] for block in chosen.blocks]  # fmt: skip
        if any(isinstance(v, Instruction) and v.opcode != "phi" and v.block is chosen.block for v in (pointer, base)):
            return []
        return [(p, b, block.instructions[-1]) for (p, b), block in zip(rows, chosen.blocks, strict=True)]

    def _kept(self, base: Value, at: Instruction, since: Value) -> bool:
        """Whether nothing can have been written to what `base` leads to on any way from `since` to `at`: from an
        instruction, from the head of the block of a phi, from the entry for an argument."""
        table, begin = self._pointers.of(base), at.block
        if not table or begin is None or begin.function is None:
            return False
        cfg, seen = get(Cfg, begin.function), set[Block]()
        phi = isinstance(since, Instruction) and since.opcode == "phi"
        work = [(begin, begin.instructions.index(at))]
        while work:
            block, length = work.pop()
            for instr in reversed(block.instructions[:length]):
                if instr is since:
                    break
                if self._pointers.instr_writes(instr) & table:
                    return False
            else:
                following = [] if phi and block is since.block else cfg.preds(block)  # type: ignore[attr-defined]
                new = [b for b in following if b not in seen]
                seen.update(new)
                work += [(b, len(b.instructions)) for b in new]
        return True

    def _latest(self, first: Value, second: Value) -> Value:
        """The one of two values that is made later; an argument is made first."""
        if not isinstance(first, Instruction) or first.block is None or first.block.function is None:
            return second
        if not isinstance(second, Instruction):
            return first
        if first.block is second.block and "phi" in (first.opcode, second.opcode):
            return first if second.opcode == "phi" else second
        ahead = second.block is not None and self._dominators(first.block.function).dominates(first.block, second.block)
        if first.block is second.block:
            ahead = first.block.instructions.index(first) < first.block.instructions.index(second)
        return second if ahead else first

    def _known(self, value: Value, at: Instruction) -> bool:
        """Whether a value was made in each way to `at`, after which it is not made anew before `at` is."""
        if not isinstance(value, Instruction):
            return True
        fn = at.block.function if at.block is not None else None
        return fn is not None and self._dominators(fn).value_dominates(value, at)

    def _dominators(self, fn: Function) -> Dominators:
        """Those of a function, which stays as it is while there are questions about it."""
        found = self._dominating.get(fn)
        if found is None:
            found = self._dominating[fn] = get(Dominators, fn)
        return found


def _alike(first: Value, second: Value) -> bool:
    """Whether two addresses are computed from the same values alike."""
    if first is second:
        return True
    if isinstance(first, ConstInt) and isinstance(second, ConstInt):
        return first.value == second.value
    if not isinstance(first, Instruction) or not isinstance(second, Instruction):
        return False
    if first.opcode != "getelementptr" or second.opcode != "getelementptr" or first.elem is not second.elem:
        return False
    return len(first.operands) == len(second.operands) and all(map(_alike, first.operands, second.operands))


def nowhere(value: Value) -> bool:
    """Null, and what is not defined."""
    return isinstance(value, Constant) and not isinstance(value, GlobalVariable)


def _place(address: Value) -> tuple[Value, Path]:
    """What an address is a constant distance from, and the steps that lead there."""
    path: Path = ()
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        indices = tuple(o.value for o in address.operands[1:] if isinstance(o, ConstInt))
        if len(indices) < len(address.operands) - 1:
            break
        path = ((address.elem, indices), *path) if any(indices) else path
        address = address.operands[0]
    return address, path
