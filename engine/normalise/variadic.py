"""Functions with variable arguments become functions of one more pointer, to memory in which those arguments lie.

By the System V ABI for x86-64 (section 3.5.7) a `va_list` counts the registers that are used up, and what does not fit
into registers lies in memory, one argument behind the other. So a list that says that all registers are used up finds
every argument there:

    f(2, x, y)                                 area = {x, y} ; f(2, &area)
    double f(int n, ...) { va_start(l); ...    double f(int n, void *area) { l = {48, 176, area, null}; ...

What `va_arg` reads is then memory like any other, and LLVM may inline the function. One whose address is taken stays as
it is, since who calls it through a pointer may pass registers, and has a copy: a call through a pointer asks which of
these functions it leads to, and calls the copy.

    p(2, x, y)      ->      p == f ? copy of f (2, x, y)  :  p == g ? copy of g (2, x, y)  :  p(2, x, y)

The last of these calls is one of nothing where analysis shows that no other function is behind the pointer
(`drop_other_targets`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Argument,
    Block,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.normalise.desugar import BYVAL
from irgrad.engine.parallel.copies import copied_function

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.facts import Facts

__all__ = ["drop_other_targets", "fixed_arguments"]

_USED_UP = (48, 176)  # bytes of the integer registers, and of these and the vector registers
_LIST_BYTES = 24
_INSTRUCTION = re.compile(r"^ .*= va_arg ptr ", re.M)  # LLVM holds that it reads the list, and no memory behind it
_ALIGN = re.compile(r"\balign (\d+)")
_INDIRECT = re.compile(r"\.\.\.\) %")  # a call through a pointer
_OTHER = "irgrad.other."  # a function that calls what the functions in its name are not


def fixed_arguments(text: str) -> str:
    """The module's text with such functions rewritten, and all calls of them. For x86-64 outside of Windows only."""
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import materialise, read

    module = read(text, [])
    if not module.triple.startswith("x86_64") or "windows" in module.triple or _INSTRUCTION.search(text):
        return text
    lists = {fn for fn in module.functions.values() if fn.lazy and fn.ftype.vararg and "@llvm.va_start" in fn.lazy}
    symbols = {fn: re.compile(re.escape(f"@{quoted_name(fn.name or '')}") + r"(?![\w.$-])") for fn in lists}
    for fn in list(module.functions.values()):
        body = fn.lazy or ""
        if "@llvm.va_" in body or _INDIRECT.search(body) or any(symbol.search(body) for symbol in symbols.values()):
            materialise(fn, module)
    calls: dict[Function, int] = dict.fromkeys(lists, 1)  # and its definition
    for instr in _instructions(module):
        ours = instr.call is not None and instr.call.tail != "musttail"
        if ours and isinstance(instr.callee, Function) and instr.callee in lists:
            calls[instr.callee] += 1
    chosen = {fn for fn in lists if len(symbols[fn].findall(text)) == calls[fn]}
    chosen |= _ask_which(module, [fn for fn in lists if fn not in chosen])
    if not chosen:
        return text
    areas = {fn: _signed(fn) for fn in chosen}
    for fn in [fn for fn in module.functions.values() if fn.blocks]:
        _rewrite(module, fn, areas)
    return to_text(module)


def drop_other_targets(facts: Facts) -> bool:
    """Calls through pointers that lead to no function but those that were asked for are calls of nothing. True where
    there are any."""
    changed = False
    for fn in facts.pointers.functions:
        asked = (fn.name or "").removeprefix(_OTHER).split(",")
        call = next((i for i in fn.instructions() if i.is_call), None) if len(asked) > 1 else None
        targets = facts.pointers.callees(call) if call is not None else None
        if call is not None and targets is not None and {target.name for target in targets} <= set(asked[1:]):
            end = call.block.terminator if call.block is not None else None
            assert end is not None and call.block is not None
            end.operands = [ConstUndef(value.type) for value in end.operands]
            call.block.instructions = [end]
            changed = True
    return changed


def _ask_which(module: Module, taken: list[Function]) -> set[Function]:
    """Calls of `taken` functions become calls of their copies, which are returned, and calls through pointers those of
    functions that ask which of them it is."""
    copies: dict[Function, Function] = {}
    for caller in [fn for fn in module.functions.values() if fn.blocks and not (fn.name or "").startswith(_OTHER)]:
        for instr in list(caller.instructions()):
            info = instr.call
            if info is None or not info.fn_type.vararg or info.tail == "musttail":
                continue
            direct = resolve(instr.callee)
            candidates = [fn for fn in taken if fn is direct or (fn.ftype is info.fn_type and _indirect(instr))]
            for fn in candidates:
                if fn not in copies:
                    copies[fn] = copied_function(module, fn, _free(module, f"irgrad.copy.{fn.name}"))
                    copies[fn].head = "internal"
            if isinstance(direct, Function):
                instr.operands[-1] = copies.get(direct, instr.callee)
            elif candidates:
                asking = _asking(module, instr, {fn: copies[fn] for fn in candidates})
                instr.operands = [instr.callee, *instr.args, asking]
                info.fn_type, info.arg_attrs, info.tail = asking.ftype, [], ""
    return set(copies.values())


def _indirect(call: Instruction) -> bool:
    """Whether a call through a pointer may become another one: its arguments are values."""
    info = call.call
    assert info is not None
    plain = call.opcode == "call" and not info.bundles and not info.cc
    return plain and not isinstance(resolve(call.callee), Function) and not BYVAL.search(" ".join(info.arg_attrs))


def _asking(module: Module, call: Instruction, copies: dict[Function, Function]) -> Function:
    """The function that calls the copy of what a pointer leads to."""
    types, info = [ty.PTR, *(arg.type for arg in call.args)], call.call
    assert info is not None
    ftype = ty.function(info.fn_type.ret, tuple(types))
    asking = Function(_free(module, "irgrad.asking"), ftype)
    other = Function(",".join([f"{_OTHER}{len(module.functions)}", *(str(fn.name) for fn in copies)]), ftype)
    asking.head = other.head = "internal"
    asking.tail, other.tail = "alwaysinline", "noinline"
    for fn in (asking, other):
        module.functions[fn.name or ""] = fn
    at = Builder(_block(asking))
    for fn, copy in copies.items():
        then, on = _block(asking), _block(asking)
        at.cond_br(at.icmp("eq", asking.args[0], fn), then, on)
        _call_and_return(Builder(then), copy, asking.args[1:], info.fn_type)
        at = Builder(on)
    _call_and_return(at, other, asking.args, other.ftype)
    _call_and_return(Builder(_block(other)), other.args[0], other.args[1:], info.fn_type)
    return asking


def _free(module: Module, name: str) -> str:
    return next(f"{name}.{n}" for n in range(len(module.functions) + 1) if f"{name}.{n}" not in module.functions)


def _block(fn: Function) -> Block:
    block = Block(f"b{len(fn.blocks)}")
    block.function = fn
    fn.blocks.append(block)
    return block


def _call_and_return(b: Builder, callee: Value, args: Sequence[Value], ftype: ty.FunctionType) -> None:
    made = b.call(callee, args, ftype)
    b.ret() if ftype.ret is ty.VOID else b.ret(made)


def _instructions(module: Module) -> Iterator[Instruction]:
    for fn in module.functions.values():
        yield from fn.instructions()


def _signed(fn: Function) -> Argument:
    """The function gets its new parameter."""
    fn.ftype = ty.function(fn.ftype.ret, (*fn.ftype.params, ty.PTR))
    area = Argument(ty.PTR, None, len(fn.args))
    area.function = fn
    fn.args.append(area)
    return area


def _rewrite(module: Module, fn: Function, areas: dict[Function, Argument]) -> None:
    """The lists that are begun in the function, and the calls that it makes."""
    for block in list(fn.blocks):
        old, block.instructions = block.instructions, []
        b = Builder(block)
        for instr in old:
            b.metadata = {"dbg": instr.metadata["dbg"]} if "dbg" in instr.metadata else {}
            name = (instr.callee_name or "") if instr.is_call else ""
            if name.startswith("llvm.va_start") and fn in areas:
                _begin(b, instr.args[0], areas[fn])
            elif name.startswith("llvm.va_copy"):
                _copy(module, b, *instr.args)
            elif not name.startswith("llvm.va_end"):
                if instr.is_call and isinstance(instr.callee, Function) and instr.callee in areas:
                    _pass(module, fn, b, instr, instr.callee)
                block.instructions.append(instr)


def _begin(b: Builder, where: Value, area: Value) -> None:
    for at, value in zip((0, 4), _USED_UP, strict=True):
        b.store(ConstInt(ty.I32, value), b.gep(ty.I8, where, at), 4)
    b.store(area, b.gep(ty.I8, where, 8), 8)
    b.store(ConstZero(ty.PTR), b.gep(ty.I8, where, 16), 8)


def _copy(module: Module, b: Builder, target: Value, source: Value) -> None:
    copy = declare(module, "llvm.memcpy.p0.p0.i64", ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
    b.call(copy, [target, source, ConstInt(ty.I64, _LIST_BYTES), ConstInt(ty.I1, 0)])


def _pass(module: Module, caller: Function, b: Builder, call: Instruction, callee: Function) -> None:
    """The call passes its further arguments in memory of the caller."""
    info, fixed = call.call, len(callee.args) - 1
    assert info is not None
    further, attrs = call.args[fixed:], [*info.arg_attrs[fixed:], *[""] * len(call.args)]
    fields: list[tuple[int, ty.Type, Value, bool]] = []
    end = 0
    for value, said in zip(further, attrs, strict=False):
        type_, align, by_value = _passed(module, value, said)
        start = -(-end // align) * align
        fields.append((start, type_, value, by_value))
        end = start + -(-ty.size_of(type_) // 8) * 8
    area: Value = ConstZero(ty.PTR)
    if fields:
        area = Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=_struct(fields, end), align=32)
        area.block = caller.entry
        at_top = b.block.instructions if b.block is caller.entry else caller.entry.instructions
        at_top.insert(0, area)
    for start, type_, value, by_value in fields:
        if by_value:
            copy = declare(module, "llvm.memcpy.p0.p0.i64", ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
            size = ConstInt(ty.I64, ty.size_of(type_))
            b.call(copy, [b.gep(ty.I8, area, start), value, size, ConstInt(ty.I1, 0)])
        else:
            b.store(value, b.gep(ty.I8, area, start), 8)
    call.operands = [*call.args[:fixed], area, callee]
    info.fn_type, info.arg_attrs, info.tail = callee.ftype, [*info.arg_attrs[:fixed], ""], ""


def _passed(module: Module, value: Value, said: str) -> tuple[ty.Type, int, bool]:
    """(type, alignment, whether the argument is the memory behind a pointer)."""
    from irgrad.engine.ir.text.cursor import Cursor

    if found := BYVAL.search(said):
        type_ = Cursor(module, found[1]).type_()
        aligned = _ALIGN.search(said)
        return type_, max(8, int(aligned[1]) if aligned else 0), True
    size = ty.size_of(value.type)
    return value.type, size if size in (16, 32, 64) else 8, False


def _struct(fields: list[tuple[int, ty.Type, Value, bool]], size: int) -> ty.StructType:
    """The type of the memory: fields and what is between them."""
    parts: list[ty.Type] = []
    end = 0
    for start, type_, _, _ in fields:
        parts += [ty.array(start - end, ty.I8)] if start > end else []
        parts.append(type_)
        end = start + ty.size_of(type_)
    parts += [ty.array(size - end, ty.I8)] if size > end else []
    return ty.struct(tuple(parts), packed=True)
