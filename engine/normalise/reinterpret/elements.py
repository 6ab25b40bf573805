"""Elements of vectors of integers and pointers, as values of their own.

What a loop vectoriser writes for `a[4 * i].x` is a vector of pointers, moved on by a vector of integers, of which each
access takes one element. Analyses of memory follow scalars: which iteration touches what is known of an element's own
induction variable, not of a vector. So an element that is taken out is computed on its own, from where the vector
comes from; what nothing uses then LLVM drops.
"""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import (
    ConstAggregate,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.rewrite import replace_uses

__all__ = ["separate_elements"]

_Key = tuple[Value, int]
_LANEWISE = having("lanewise")


def separate_elements(fn: Function) -> bool:
    """Elements of vectors of integers and pointers become values of their own. Returns whether anything changed."""
    viewed = _view_elements(fn)
    elements = _Elements(fn)
    replaced: dict[Value, Value] = {}
    for instr in [instr for instr in fn.instructions() if instr.opcode == "extractelement"]:
        vector, where = instr.operands
        if not instr.type.is_float and isinstance(where, ConstInt) and _traceable(vector, where.value):
            replaced[instr] = elements.of(vector, where.value)
    if replaced:
        replace_uses(fn, replaced)
        for gone in replaced:
            assert isinstance(gone, Instruction) and gone.block is not None
            gone.block.instructions.remove(gone)
    return bool(replaced) or viewed


def _view_elements(fn: Function) -> bool:
    """A float out of the bits of a vector of words is its own word's bits: what the others hold need not be floats."""
    replaced: dict[Value, Value] = {}
    for block in fn.blocks:
        old, block.instructions = block.instructions, []
        b = Builder(block)
        for instr in old:
            view = instr.operands[0] if instr.opcode == "extractelement" else None
            if not isinstance(view, Instruction) or view.opcode != "bitcast" or not _same_lanes(view):
                block.instructions.append(instr)
                continue
            b.metadata = {"dbg": instr.metadata["dbg"]} if "dbg" in instr.metadata else {}
            word = Instruction("extractelement", view.operands[0].type.scalar, [view.operands[0], instr.operands[1]])
            replaced[instr] = b.cast("bitcast", b.insert(word), instr.type)
    if replaced:
        replace_uses(fn, replaced)
        used = {operand for instr in fn.instructions() for operand in instr.operands}
        views = {pick.operands[0] for pick in replaced if isinstance(pick, Instruction)} - used
        for block in fn.blocks:
            block.instructions = [instr for instr in block.instructions if instr not in views]
    return bool(replaced)


def _same_lanes(view: Instruction) -> bool:
    """Whether a vector of integers is seen as one of as many floats."""
    source, to = view.operands[0].type, view.type
    pair = isinstance(source, ty.VectorType) and isinstance(to, ty.VectorType) and source.count == to.count
    return pair and source.scalar.is_int and to.scalar.is_fp


def _traceable(vector: Value, i: int) -> bool:
    """Whether an element can be had without taking it out of this vector."""
    if not 0 <= i < _count(vector):
        return False
    if not isinstance(vector, Instruction):
        return isinstance(vector, ConstZero | ConstUndef | ConstAggregate)
    if vector.opcode == "insertelement":
        return isinstance(vector.operands[2], ConstInt)
    if vector.opcode == "shufflevector":
        return isinstance(vector.operands[2], ConstZero | ConstAggregate)
    if vector.opcode == "phi":
        return True
    return vector.opcode in _LANEWISE and not any(operand.type.is_fp for operand in vector.operands)


def _count(vector: Value) -> int:
    assert isinstance(vector.type, ty.VectorType)
    return vector.type.count


class _Elements:
    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.known: dict[_Key, Value] = {}

    def of(self, vector: Value, i: int) -> Value:
        """Element `i` of a vector, as an instruction of its own where it is none yet."""
        stack, phis = [(vector, i)], []
        begun: set[_Key] = set()
        while stack:
            key = stack[-1]
            if key in self.known:
                stack.pop()
                continue
            if isinstance(key[0], Instruction) and key[0].opcode == "phi":
                self.known[key] = self._phi(key[0])
                phis.append(key)
                stack += _needed(*key)
                continue
            missing = [need for need in _needed(*key) if need not in self.known and need not in begun]
            begun.add(key)
            if missing:
                stack += missing
                continue
            self.known[key] = self._made(*key)
            stack.pop()
        for key in phis:
            phi = self.known[key]
            assert isinstance(phi, Instruction)
            phi.operands = [self.known[need] for need in _needed(*key)]
        return self.known[vector, i]

    def _phi(self, vector: Instruction) -> Instruction:
        phi = Instruction("phi", vector.type.scalar, [vector] * len(vector.blocks), blocks=vector.blocks)
        self._put(phi, vector)
        return phi

    def _made(self, vector: Value, i: int) -> Value:
        """The element, once those that it is made of are known."""
        assert isinstance(vector.type, ty.VectorType)
        if isinstance(vector, ConstZero):
            return zero(vector.type.elem)
        if isinstance(vector, ConstUndef):
            return ConstUndef(vector.type.elem, vector.poison)
        if isinstance(vector, ConstAggregate):
            return vector.elems[i]
        needs = _needed(vector, i)
        if not isinstance(vector, Instruction) or not _traceable(vector, i) or any(n not in self.known for n in needs):
            new = Instruction("extractelement", vector.type.elem, [vector, ConstInt(ty.I64, i)])
            self._put(new, vector)
            return new
        if vector.opcode == "insertelement" and not needs:
            return vector.operands[1]
        if vector.opcode in ("insertelement", "shufflevector"):
            return self.known[needs[0]] if needs else ConstUndef(vector.type.elem, poison=True)
        operands = [self.known[o, i] if isinstance(o.type, ty.VectorType) else o for o in vector.operands]
        new = Instruction(vector.opcode, vector.type.elem, operands, flags=vector.flags, pred=vector.pred,
                          elem=vector.elem, metadata=dict(vector.metadata))  # fmt: skip
        self._put(new, vector)
        return new

    def _put(self, new: Instruction, vector: Value) -> None:
        """Behind the vector, or first in the function; phis stay first."""
        block, at = self.fn.entry, 0
        if isinstance(vector, Instruction):
            assert vector.block is not None
            block = vector.block
            at = block.instructions.index(vector) + 1
        while new.opcode != "phi" and block.instructions[at].opcode == "phi":
            at += 1
        new.block = block
        block.instructions.insert(at, new)


def _needed(vector: Value, i: int) -> list[_Key]:
    """The elements that an element of a traceable vector is made of."""
    if not isinstance(vector, Instruction) or not _traceable(vector, i):
        return []
    first, *others = vector.operands
    if vector.opcode == "insertelement":
        where = others[1]
        return [] if isinstance(where, ConstInt) and where.value == i else [(first, i)]
    if vector.opcode == "shufflevector":
        which = others[1].elems[i] if isinstance(others[1], ConstAggregate) else ConstInt(ty.I32, 0)
        if not isinstance(which, ConstInt):
            return []
        return [(first, which.value)] if which.value < _count(first) else [(others[0], which.value - _count(first))]
    return [(operand, i) for operand in vector.operands if isinstance(operand.type, ty.VectorType)]
