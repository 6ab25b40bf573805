"""Prints the model as LLVM's textual IR. Deterministic: the text depends on the module alone.

Names: every local value keeps its name. Numbers (`%7`, from values that had no name in the text read) are kept as long
as they rise in the order of the text, as LLVM wants; a number that does not, and a value without any name, get a name
that is free (`%v7`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.floats import float_text
from irgrad.engine.ir.model import (
    CallInfo,
    ConstAggregate,
    ConstData,
    ConstExpr,
    ConstFloat,
    ConstInt,
    ConstText,
    ConstUndef,
    ConstZero,
    Function,
    GlobalAlias,
    GlobalVariable,
    InlineAsm,
    Instruction,
    MetadataValue,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import CASTS
from irgrad.engine.ir.quoting import escape, quoted_name
from irgrad.engine.ir.types import Type

_LONGEST_NAME = 250  # LLVM reads local names of up to 1024 bytes; a block may be named after two others
_LOCAL = re.compile(r'%(?:"[^"]*"|[-\w$.]+)', re.ASCII)


def to_text(module: Module) -> str:
    """The module as text that LLVM 22 reads."""
    out: list[str] = []
    if module.source_filename:
        out.append(f'source_filename = "{escape(module.source_filename.encode("utf-8", "surrogateescape"))}"')
    if module.datalayout:
        out.append(f'target datalayout = "{module.datalayout}"')
    if module.triple:
        out.append(f'target triple = "{module.triple}"')
    out += [f'module asm "{line}"' for line in module.module_asm]
    out += [f"{name} = type {type_.body}" for name, type_ in module.types.items()]
    out += [f"{name} = {body}" for name, body in module.comdats.items()]
    out += map(global_to_text, module.globals.values())
    out += map(alias_to_text, module.aliases.values())
    out += map(function_to_text, module.functions.values())
    out += [f"attributes {name} = {body}" for name, body in module.attribute_groups.items()]
    out += [f"{name} = {body}" for name, body in module.metadata.items()]
    out += module.use_list_orders
    return "\n".join(out) + "\n"


def global_to_text(variable: GlobalVariable) -> str:
    """A global variable with its initialiser."""
    kind = "constant" if variable.constant else "global"
    init = "" if variable.init is None else f" {constant_text(variable.init)}"
    head = f"{variable.head} " if variable.head else "" if variable.init is not None else "external "
    return f"@{quoted_name(variable.name or '')} = {head}{kind} {variable.value_type}{init}{variable.tail}"


def alias_to_text(alias: GlobalAlias) -> str:
    """An alias or ifunc."""
    head, _, tail = alias.head.partition("\n")
    head = f"{head} " if head else ""
    target = f"{alias.target.type} {constant_text(alias.target)}"
    return f"@{quoted_name(alias.name or '')} = {head}{alias.kind} {alias.value_type}, {target}{tail}"


def function_to_text(function: Function) -> str:
    """A function with its body, or its declaration."""
    names = Names(function)
    declared = function.is_declaration
    params = []
    for arg in function.args:
        text = f"{arg.type} {arg.attrs}" if arg.attrs else str(arg.type)
        params.append(text if declared else f"{text} {names.local(arg)}")
    if function.ftype.vararg:
        params.append("...")
    metadata = "".join(f" !{kind} {node}" for kind, node in function.metadata.items())
    parts = [
        "declare" + metadata if declared else "define",
        function.head,
        function.ret_attrs,
        f"{function.ftype.ret} @{quoted_name(function.name or '')}({', '.join(params)})",
        function.tail,
    ]
    head = " ".join(filter(None, parts))
    if declared:
        return head
    if function.lazy is not None:
        return f"{head}{metadata} {{{function.lazy}}}"
    out = [f"{head}{metadata} {{"]
    for block in function.blocks:
        out.append(f"{names.local(block)[1:]}:")
        for instr in block.instructions:
            for record in instr.debug_records:
                out.append(f"    {names.rename(record)}")
            out.append(f"  {names.instruction(instr)}")
    out.append("}")
    return "\n".join(out)


def instruction_to_text(instr: Instruction) -> str:
    """One instruction, with the names it has in the text of its function (for messages)."""
    function = instr.block.function if instr.block is not None else None
    return Names(function).instruction(instr)


def value_to_text(value: Value, function: Function | None = None) -> str:
    """A value as an operand with its type: `double %x`, `i64 4`."""
    return f"{value.type} {Names(function).ref(value)}"


class Names:
    """The names of the local values of one function, and the printing of what uses them."""

    __slots__ = ("_count", "_last", "_renamed", "_taken", "_texts")

    def __init__(self, function: Function | None) -> None:
        self._texts: dict[int, str] = {}
        self._taken: set[str] = set()
        self._renamed: dict[str, str] = {}
        self._last = -1
        self._count = 0
        if function is None or function.lazy is not None:
            return
        ordered: list[Value] = list(function.args)
        for block in function.blocks:
            ordered.append(block)
            ordered += [i for i in block.instructions if i.type is not ty.VOID]
        self._taken.update(v.name for v in ordered if v.name is not None)
        seen: set[str] = set()
        for value in ordered:
            self._texts[id(value)] = self._choose(value.name, seen)

    def _choose(self, name: str | None, seen: set[str]) -> str:
        if name is not None and name not in seen and len(name) <= _LONGEST_NAME:
            if not (name.isdecimal() and name.isascii()):
                seen.add(name)
                return "%" + quoted_name(name)
            if str(int(name)) == name and int(name) > self._last:
                seen.add(name)
                self._last = int(name)
                return "%" + name
        stem = "v" if name is None or name[:1].isdecimal() else f"{name[:_LONGEST_NAME]}."
        while True:
            fresh = f"{stem}{self._count}"
            self._count += 1
            if fresh not in self._taken:
                break
        self._taken.add(fresh)
        text = "%" + quoted_name(fresh)
        if name is not None and name not in seen:
            seen.add(name)
            self._renamed["%" + name] = text
        return text

    def rename(self, text: str) -> str:
        """Text that mentions local values (debug records, bundles), with the names that were changed."""
        if not self._renamed or "%" not in text:
            return text
        return _LOCAL.sub(lambda m: self._renamed.get(m[0], m[0]), text)

    def knows(self, text: str) -> bool:
        """Whether all local values that a text mentions are still there: passes do not look into bundles."""
        return not self._texts or all(m[0][1:].strip('"') in self._taken for m in _LOCAL.finditer(text))

    def local(self, value: Value) -> str:
        """`%name` of an argument, block or instruction."""
        found = self._texts.get(id(value))
        if found is not None:
            return found
        name = value.name if value.name is not None else f"unnamed.{len(self._texts)}"
        self._texts[id(value)] = text = "%" + (name if name.isdecimal() else quoted_name(name))
        return text

    def ref(self, value: Value) -> str:
        """A value as an operand, without its type."""
        found = self._texts.get(id(value))
        if found is not None:
            return found
        printer = _CONSTANTS.get(type(value))
        if printer is not None:
            return printer(value)
        if isinstance(value, MetadataValue):
            return value.text if value.value is None else f"{value.value.type} {self.ref(value.value)}"
        return self.local(value)

    def typed(self, value: Value) -> str:
        """A value with its type."""
        return f"{value.type.text} {self.ref(value)}"

    def instruction(self, instr: Instruction) -> str:
        """One instruction on one line (a switch too)."""
        printer = _INSTRUCTIONS.get(instr.opcode, _plain)
        text = printer(self, instr)
        if instr.type is not ty.VOID:
            text = f"{self.local(instr)} = {text}"
        for kind, node in instr.metadata.items():
            text += f", !{kind} {node}"
        return text


# -- constants -----------------------------------------------------------------------------------------------------


def constant_text(value: Value) -> str:
    """A constant without its type."""
    return _CONSTANTS[type(value)](value)


def _typed_constant(value: Value) -> str:
    return f"{value.type.text} {constant_text(value)}"


def _int(value: ConstInt) -> str:
    if value.type is ty.I1:
        return "true" if value.value else "false"
    return str(value.value)


def _zero(value: ConstZero) -> str:
    kind = value.type
    if isinstance(kind, ty.PtrType):
        return "null"
    if isinstance(kind, ty.IntType):
        return "false" if kind.bits == 1 else "0"
    if isinstance(kind, ty.FloatType):
        return float_text(kind, 0)
    return "none" if kind is ty.TOKEN else "zeroinitializer"


def _aggregate(value: ConstAggregate) -> str:
    kind = value.type
    if isinstance(kind, ty.VectorType):
        if len(value.elems) > 1 and all(e is value.elems[0] for e in value.elems):
            return f"splat ({_typed_constant(value.elems[0])})"
        return f"<{', '.join(map(_typed_constant, value.elems))}>"
    inner = ", ".join(map(_typed_constant, value.elems))
    if isinstance(kind, ty.ArrayType):
        return f"[{inner}]"
    text = f"{{ {inner} }}" if inner else "{}"
    return f"<{text}>" if isinstance(kind, ty.StructType) and kind.packed else text


def _expression(value: ConstExpr) -> str:
    flags = "".join(f"{flag} " for flag in value.flags)
    operands = ", ".join(map(_typed_constant, value.operands))
    if value.opcode in CASTS:
        operands += f" to {value.type}"
    elif value.opcode == "getelementptr":
        operands = f"{value.elem}, {operands}"
    return f"{value.opcode} {flags}({operands})"


def _symbol(value: Value) -> str:
    return "@" + quoted_name(value.name or "")


_CONSTANTS: dict[type, Callable[..., str]] = {
    ConstInt: _int,
    ConstFloat: lambda v: float_text(v.type, v.bits),
    ConstZero: _zero,
    ConstUndef: lambda v: "poison" if v.poison else "undef",
    ConstAggregate: _aggregate,
    ConstData: lambda v: f'c"{escape(v.data)}"',
    ConstExpr: _expression,
    ConstText: lambda v: v.text,
    InlineAsm: lambda v: v.text,
    GlobalVariable: _symbol,
    GlobalAlias: _symbol,
    Function: _symbol,
}

# -- instructions --------------------------------------------------------------------------------------------------


def _flags(instr: Instruction) -> str:
    return " ".join(instr.flags) + " " if instr.flags else ""


def _align(instr: Instruction) -> str:
    return f", align {instr.align}" if instr.align else ""


def _same_type(names: Names, instr: Instruction) -> str:
    """Operands of one type, written once: arithmetic, comparisons."""
    pred = f"{instr.pred} " if instr.pred else ""
    operands = ", ".join(map(names.ref, instr.operands))
    return f"{instr.opcode} {_flags(instr)}{pred}{instr.operands[0].type.text} {operands}"


def _cast(names: Names, instr: Instruction) -> str:
    return f"{instr.opcode} {_flags(instr)}{names.typed(instr.operands[0])} to {instr.type.text}"


def _plain(names: Names, instr: Instruction) -> str:
    """Every operand with its type: select, extractelement, resume, ..."""
    operands = ", ".join(map(names.typed, instr.operands))
    return f"{instr.opcode} {_flags(instr)}{operands}".rstrip()


def _phi(names: Names, instr: Instruction) -> str:
    incoming = ", ".join(
        f"[ {names.ref(v)}, {names.local(b)} ]" for v, b in zip(instr.operands, instr.blocks, strict=True)
    )
    return f"phi {_flags(instr)}{instr.type.text} {incoming}"


def _memory_words(instr: Instruction) -> str:
    return f"{instr.opcode}{' atomic' if instr.ordering else ''}{' volatile' if instr.volatile else ''}"


def _load(names: Names, instr: Instruction) -> str:
    ordering = f" {instr.ordering}" if instr.ordering else ""
    return f"{_memory_words(instr)} {instr.type.text}, {names.typed(instr.operands[0])}{ordering}{_align(instr)}"


def _store(names: Names, instr: Instruction) -> str:
    ordering = f" {instr.ordering}" if instr.ordering else ""
    value, pointer = instr.operands
    return f"{_memory_words(instr)} {names.typed(value)}, {names.typed(pointer)}{ordering}{_align(instr)}"


def _atomic(names: Names, instr: Instruction) -> str:
    """cmpxchg, atomicrmw, fence."""
    volatile = "volatile " if instr.volatile else ""
    pred = f"{instr.pred} " if instr.pred else ""
    operands = ", ".join(map(names.typed, instr.operands))
    text = f"{instr.opcode} {_flags(instr)}{volatile}{pred}{operands}".rstrip()
    return f"{text} {instr.ordering}{_align(instr)}"


def _alloca(names: Names, instr: Instruction) -> str:
    count = instr.operands[0]
    text = f"alloca {_flags(instr)}{instr.elem}"
    if not (isinstance(count, ConstInt) and count.value == 1 and count.type is ty.I32):
        text += f", {names.typed(count)}"
    space = f", addrspace({instr.type.space})" if isinstance(instr.type, ty.PtrType) and instr.type.space else ""
    return f"{text}{_align(instr)}{space}"


def _gep(names: Names, instr: Instruction) -> str:
    return f"getelementptr {_flags(instr)}{instr.elem}, {', '.join(map(names.typed, instr.operands))}"


def _indexed(names: Names, instr: Instruction) -> str:
    return f"{_plain(names, instr)}, {', '.join(map(str, instr.indices))}"


def _call(names: Names, instr: Instruction) -> str:
    info = instr.call
    assert isinstance(info, CallInfo)
    args = []
    for i, arg in enumerate(instr.operands[:-1]):
        attrs = info.arg_attrs[i] if i < len(info.arg_attrs) else ""
        args.append(f"{arg.type.text} {attrs} {names.ref(arg)}" if attrs else names.typed(arg))
    shown: Type = info.fn_type if info.fn_type.vararg else info.fn_type.ret
    words = [info.tail, instr.opcode, " ".join(instr.flags), info.cc, info.ret_attrs, shown.text]
    text = " ".join(filter(None, words))
    text += f" {names.ref(instr.operands[-1])}({', '.join(args)})"
    if info.fn_attrs:
        text += f" {info.fn_attrs}"
    if info.bundles and names.knows(info.bundles):
        text += f" {names.rename(info.bundles)}"
    if instr.opcode == "invoke":
        text += f" to label {names.local(instr.blocks[0])} unwind label {names.local(instr.blocks[1])}"
    elif instr.opcode == "callbr":
        indirect = ", ".join(f"label {names.local(b)}" for b in instr.blocks[1:])
        text += f" to label {names.local(instr.blocks[0])} [{indirect}]"
    return text


def _br(names: Names, instr: Instruction) -> str:
    parts = [names.typed(v) for v in instr.operands] + [f"label {names.local(b)}" for b in instr.blocks]
    return f"br {', '.join(parts)}"


def _switch(names: Names, instr: Instruction) -> str:
    cases = " ".join(
        f"{names.typed(v)}, label {names.local(b)}" for v, b in zip(instr.operands[1:], instr.blocks[1:], strict=True)
    )
    return f"switch {names.typed(instr.operands[0])}, label {names.local(instr.blocks[0])} [ {cases} ]"


def _indirectbr(names: Names, instr: Instruction) -> str:
    labels = ", ".join(f"label {names.local(b)}" for b in instr.blocks)
    return f"indirectbr {names.typed(instr.operands[0])}, [{labels}]"


def _ret(names: Names, instr: Instruction) -> str:
    return f"ret {names.typed(instr.operands[0])}" if instr.operands else "ret void"


def _va_arg(names: Names, instr: Instruction) -> str:
    return f"va_arg {names.typed(instr.operands[0])}, {instr.type.text}"


def _landingpad(names: Names, instr: Instruction) -> str:
    return f"landingpad {instr.type.text} {instr.clauses}"


def _funclet(names: Names, instr: Instruction) -> str:
    return f"{instr.opcode} {names.rename(instr.clauses)}"


_INSTRUCTIONS: dict[str, Callable[[Names, Instruction], str]] = {
    **dict.fromkeys("add sub mul udiv sdiv urem srem shl lshr ashr and or xor".split(), _same_type),
    **dict.fromkeys("fadd fsub fmul fdiv frem fneg freeze icmp fcmp".split(), _same_type),
    **dict.fromkeys(CASTS, _cast),
    **dict.fromkeys(("call", "invoke", "callbr"), _call),
    **dict.fromkeys(("cmpxchg", "atomicrmw", "fence"), _atomic),
    **dict.fromkeys(("extractvalue", "insertvalue"), _indexed),
    **dict.fromkeys("catchswitch catchpad cleanuppad catchret cleanupret".split(), _funclet),
    "phi": _phi,
    "load": _load,
    "store": _store,
    "alloca": _alloca,
    "getelementptr": _gep,
    "br": _br,
    "switch": _switch,
    "indirectbr": _indirectbr,
    "ret": _ret,
    "va_arg": _va_arg,
    "landingpad": _landingpad,
}
