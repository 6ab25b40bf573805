"""Memory of a sample: what it asks of the tape, of the heap, or of the stack while it runs, comes from its arena."""

from __future__ import annotations

import re

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstExpr, ConstInt, Function, GlobalVariable, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.rules.effects import facts

__all__ = ["adopt_memory"]

_SAVE, _RESTORE = "llvm.stacksave", "llvm.stackrestore"
_PIECE = 16  # to which an arena's memory is aligned
_NOTES = ("irgrad.tape.need", "irgrad.tape.free_later", "irgrad.tape.finish_later", "irgrad.tape.release_later")
"""What matters where memory may be missing, or is given back: an arena is of one sample."""


def adopt_memory(module: Module, name: str) -> None:
    """Memory that the function `name` reserves is its arena's, its last argument: of allocators (which free nothing
    before the sample ends), arrays on the stack that are not reserved once, and shadows of tables."""
    fn = module.functions[name]
    restored = any(i.is_call and (i.callee_name or "").startswith(_RESTORE) for i in fn.instructions())
    replaced: dict[Value, Value] = {}
    for block in fn.blocks:
        row = block.instructions
        block.instructions = []
        for instr in row:
            made = _adopted(module, fn, block, instr, restored)
            if made is not None:
                replaced[instr] = made
            elif not _dropped(instr):
                block.instructions.append(instr)
    _shadows(module, fn, replaced)
    replace_uses(fn, replaced)


def _dropped(instr: Instruction) -> bool:
    if not instr.is_call or instr.callee_name is None:
        return False
    name, known = instr.callee_name, facts(instr.callee_name)
    if name.startswith((_SAVE, _RESTORE)) or name in _NOTES:
        return True
    return known is not None and known.kind == "deallocator" and not name.startswith("irgrad.")


def _adopted(module: Module, fn: Function, block: Block, instr: Instruction, restored: bool) -> Value | None:
    at = Builder(block)
    at.metadata = dict(instr.metadata)
    if instr.opcode == "alloca":
        count = instr.operands[0] if instr.operands else ConstInt(ty.I64, 1)
        if isinstance(count, ConstInt) and (block is fn.entry or restored):
            if block is fn.entry:
                return None
            first = Builder(fn.entry, 0)  # it is given back in each turn: the same memory will do
            return first.alloca(instr.elem or ty.I8, count, instr.align)
        size = at.mul(at.to_i64(count, signed=False), ConstInt(ty.I64, ty.size_of(instr.elem or ty.I8)), ())
        return _reserved(module, fn, at, size)
    if instr.is_call and instr.callee_name == "irgrad.tape.acquire":
        return fn.args[-1]
    known = facts(instr.callee_name) if instr.is_call and instr.callee_name else None
    if known is None or known.kind != "allocator" or (instr.callee_name or "").startswith("irgrad."):
        return None
    sizes = [at.to_i64(instr.operands[n], signed=False) for n in known.sizes]
    size = sizes[0]
    for more in sizes[1:]:
        size = at.mul(size, more, ())
    memory = _aligned(module, fn, at, size, instr)
    if known.zeroed:
        _clear(module, at, memory, size)
    return memory


def _reserved(module: Module, fn: Function, at: Builder, size: Value) -> Value:
    alloc = declare(module, "irgrad.tape.alloc", ty.PTR, (ty.PTR, ty.I64))
    return at.call(alloc, [fn.args[-1], size])


def _aligned(module: Module, fn: Function, at: Builder, size: Value, call: Instruction) -> Value:
    """Memory for a call of an allocator, with the alignment that it asks for: loads and stores rely on it."""
    name = call.callee_name or ""
    number = 0 if name in ("aligned_alloc", "memalign") else 1 if "align_val_t" in name else -1
    if number < 0:
        return _reserved(module, fn, at, size)
    return _rounded(module, fn, at, size, at.to_i64(call.operands[number], signed=False))


def _rounded(module: Module, fn: Function, at: Builder, size: Value, align: Value) -> Value:
    less = at.sub(align, ConstInt(ty.I64, 1), ())
    memory = _reserved(module, fn, at, at.add(size, less, ()))
    negative = at.sub(ConstInt(ty.I64, 0), at.cast("ptrtoint", memory, ty.I64), ())
    return at.gep(ty.I8, memory, at.binary("and", negative, less), flags=())


def _clear(module: Module, at: Builder, memory: Value, size: Value) -> None:
    clear = declare(module, "llvm.memset.p0.i64", ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
    at.call(clear, [memory, ConstInt(ty.I8, 0), size, ConstInt(ty.I1, 0)])


def _shadows(module: Module, fn: Function, replaced: dict[Value, Value]) -> None:
    """Shadows of tables start from zero and are of this sample."""
    used = {o for i in fn.instructions() for o in i.operands if isinstance(o, GlobalVariable)}
    others = (f for f in module.functions.values() if f is not fn)
    elsewhere = {o for f in others for i in f.instructions() for o in i.operands if isinstance(o, GlobalVariable)}
    inside = {o for i in fn.instructions() for e in i.operands if isinstance(e, ConstExpr) for o in e.operands}
    for name, variable in list(module.globals.items()):
        if variable in used - inside - elsewhere and not variable.constant and name.startswith("irgrad."):
            at = Builder(fn.entry, 0)
            size = ConstInt(ty.I64, ty.size_of(variable.value_type))
            align = re.search(r"\balign (\d+)", variable.tail)
            if align is not None and int(align[1]) > _PIECE:
                replaced[variable] = _rounded(module, fn, at, size, ConstInt(ty.I64, int(align[1])))
            else:
                replaced[variable] = _reserved(module, fn, at, size)
            _clear(module, at, replaced[variable], size)
            del module.globals[name]
