"""Loops that copy byte by byte become a memcpy where the two places do not overlap.

What moves in bytes has no type: a loop that is unrolled, or whose bytes are forwarded, takes floats and addresses
apart. LLVM makes a memcpy of such a loop where it knows both objects. Here the question is asked when the program runs:
the loop stays for places that overlap, and goes where LLVM finds out that they do not. Before anything is unrolled.
"""

from __future__ import annotations

from dataclasses import dataclass

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.ir.uses import uses_of

__all__ = ["copy_at_once"]

_BYTE = ty.I8
_EXTENDED = having("resizes")
_LESS = {"ult": "uge", "slt": "sge"}
_MOST = 24  # instructions of such a loop


@dataclass(frozen=True, slots=True)
class _Counter:
    """A phi that grows by `step` in each iteration, what it is next, and where it starts."""

    phi: Instruction
    after: Instruction
    start: Value
    step: int


def copy_at_once(module: Module, fn: Function) -> int:
    """The number of loops that were changed."""
    return sum(_Loop(module, fn, block).change() for block in list(fn.blocks) if block in block.successors)


class _Loop:
    """A loop of one block."""

    def __init__(self, module: Module, fn: Function, block: Block) -> None:
        self.module, self.fn, self.block = module, fn, block
        self.before = [b for b in fn.blocks if b is not block and block in b.successors]
        self.counters = [c for phi in block.phis if (c := self._counter(phi)) is not None]

    def _counter(self, phi: Instruction) -> _Counter | None:
        given = dict(zip(phi.blocks, phi.operands, strict=True))
        after = given.pop(self.block, None)
        if len(given) != 1 or not isinstance(after, Instruction) or after.block is not self.block:
            return None
        first, *rest = after.operands
        step = rest[0] if len(rest) == 1 else None
        by_byte = after.opcode == "getelementptr" and after.elem is _BYTE
        if first is not phi or not isinstance(step, ConstInt) or not (by_byte or after.opcode == "add"):
            return None
        (start,), every = given.values(), (1 << 8 * ty.size_of(step.type)) - 1
        number = -1 if step.value & every == every else step.value
        return _Counter(phi, after, start, number) if number in (1, -1) else None

    def change(self) -> bool:
        """Put a memcpy beside the loop, if it is a copy."""
        body = self.block.instructions
        loads = [i for i in body if i.opcode == "load"]
        stores = [i for i in body if i.opcode == "store"]
        if len(self.before) != 1 or len(self.before[0].successors) != 1 or len(body) > _MOST:
            return False
        if len(loads) != 1 or len(stores) != 1 or stores[0].operands[0] is not loads[0] or loads[0].type is not _BYTE:
            return False
        if any(i.volatile or i.ordering for i in (*loads, *stores)) or any(i.is_call for i in body):
            return False
        own = self.before[0].instructions
        kept, b = list(own), Builder(self.before[0], len(own) - 1)
        count = self._count(b)
        to, source = self._place(stores[0].operands[1], b), self._place(loads[0].operands[0], b)
        if count is not None and to is not None and source is not None and self._versions(b, count, to, source):
            return True
        own[:] = kept
        return False

    def _outside(self, value: Value) -> bool:
        return not isinstance(value, Instruction) or value.block is not self.block

    def _place(self, value: Value, b: Builder) -> Value | None:
        """Where the first iteration goes, if each goes one byte further."""
        for counter in self.counters:
            if value is counter.phi and counter.step == 1:
                return counter.start
        if not isinstance(value, Instruction) or value.opcode != "getelementptr" or value.elem is not _BYTE:
            return None
        base, index = value.operands
        extended = ""
        if isinstance(index, Instruction) and index.opcode in _EXTENDED and index.block is self.block:
            extended, index = index.opcode, index.operands[0]
        found = next((c for c in self.counters if c.phi is index and c.step == 1), None)
        if found is None or not self._outside(base) or extended == "trunc":
            return None
        start = b.cast(extended, found.start, ty.I64) if extended else found.start
        return b.gep(_BYTE, base, start, flags=())

    def _count(self, b: Builder) -> Value | None:
        """How often the loop runs."""
        end = self.block.terminator
        test = end.operands[0] if end.opcode == "br" and end.operands else None
        if not isinstance(test, Instruction) or test.opcode != "icmp" or test.block is not self.block:
            return None
        stays = end.blocks[0] is self.block
        for counter in self.counters:
            late = test.operands[0] is counter.phi
            bound = test.operands[1]
            if not (late or test.operands[0] is counter.after) or not self._outside(bound):
                continue
            start: Value = counter.start
            if start.type.is_ptr:
                start, bound = b.cast("ptrtoint", start, ty.I64), b.cast("ptrtoint", bound, ty.I64)
            count: Value
            if test.pred == ("ne" if stays else "eq"):
                count = b.sub(bound, start, ()) if counter.step == 1 else b.sub(start, bound, ())
                count = b.add(count, ConstInt(count.type, 1), ()) if late else count
            elif stays and counter.step == 1 and test.pred in _LESS and not late:
                least = b.add(start, ConstInt(start.type, 1), ())
                count = b.sub(b.select(b.icmp(_LESS[test.pred], bound, least), bound, least), start, ())
            else:
                continue
            return count if count.type is ty.I64 else b.cast("zext", count, ty.I64)
        return None

    def _after(self, value: Value, count: Value, b: Builder) -> Value | None:
        """What a value is when the loop has ended."""
        if self._outside(value):
            return value
        counter = next((c for c in self.counters if value in (c.phi, c.after)), None)
        if counter is None or counter.step != 1:
            return None
        less = b.sub(count, ConstInt(ty.I64, 1), ()) if value is counter.phi else count
        if counter.start.type.is_ptr:
            return b.gep(_BYTE, counter.start, less, flags=())
        return b.add(counter.start, less if value.type is ty.I64 else b.cast("trunc", less, value.type), ())

    def _versions(self, b: Builder, count: Value, to: Value, source: Value) -> bool:
        out = next(block for block in self.block.successors if block is not self.block)
        users = uses_of(self.fn.blocks)
        if any(user.block is not self.block and not (user.opcode == "phi" and user.block is out)
               for instr in self.block.instructions for user in users.get(instr, [])):  # fmt: skip
            return False
        copy = Block(f"{self.block.name or 'bytes'}.at.once")
        ends = [(phi, self._after(phi.operands[phi.blocks.index(self.block)], count, b)) for phi in out.phis]
        if any(value is None for _, value in ends):
            return False
        apart = b.sub(b.cast("ptrtoint", to, ty.I64), b.cast("ptrtoint", source, ty.I64), ())
        back = b.sub(ConstInt(ty.I64, 0), apart, ())
        near = b.select(b.icmp("ult", apart, back), apart, back)
        test = b.icmp("uge", near, count)
        self.before[0].instructions.pop()
        Builder(self.before[0]).cond_br(test, copy, self.block)
        inside = Builder(copy)
        memcpy = declare(self.module, "llvm.memcpy.p0.p0.i64", ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
        inside.call(memcpy, [to, source, count, ConstInt(ty.I1, 0)])
        inside.br(out)
        for phi, value in ends:
            assert value is not None
            phi.operands.append(value)
            phi.blocks.append(copy)
        copy.function = self.fn
        self.fn.blocks.insert(self.fn.blocks.index(self.block), copy)
        self.fn.analyses = None
        return True
