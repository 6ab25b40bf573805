"""Exceptions that nothing in a kernel catches end the call with an error (see `runtime/exceptions.py`).

Where a module catches none at all, each throw becomes the failure: a dead end as it was, so that loops stay what they
are and the derivative has no other paths. Where it catches some, `unwinding.py` has those that leave the root fail; the
function itself unwinds as the C++ runtime does, up to the guard of the call, and notes where it threw.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.demangled import demangled_type
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import ConstInt, ConstZero, Function, GlobalVariable, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare, text_constant
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.normalise.exceptions.typeinfo import base_offset, symbol, types_thrown
from irgrad.engine.runtime.exceptions import ENDS, FORMAT, NOTE, TEXT_ITSELF, THROWS, WITHOUT_TEXT
from irgrad.rules.errors import Unsupported

__all__ = ["fail", "fail_where_thrown", "place_of", "text_offset", "throws", "type_name"]

_THROW = "__cxa_throw"
_LIBRARY = re.compile(r"_ZSt(\d+)(__throw_\w+)")
_ABI = {"__cxa_throw_bad_array_new_length": "bad_array_new_length", "__cxa_bad_cast": "bad_cast",
        "__cxa_bad_typeid": "bad_typeid"}  # fmt: skip
_TERMINATES = "__clang_call_terminate"
_FORMATS = "PKcz"  # the parameters of one that puts a text together


def throws(text: str) -> bool:
    """Whether a module throws exceptions of C++."""
    return any(name == _THROW or _thrown_by(name) for name in outline(text).declared)


def fail_where_thrown(module: Module, *, catches: bool) -> None:
    """Exceptions that nothing catches as failures. catches: the module catches some"""
    for fn in list(module.functions.values()):
        for instr in [i for i in fn.instructions() if i.is_call]:
            (_note if catches else _fail_there)(module, instr)


def type_name(info: Value) -> str:
    """The type of a descriptor, as the source has it."""
    return demangled_type(symbol(info))


def text_offset(module: Module, info: Value) -> int:
    """Where in a thrown object its std::exception begins, or that it has none."""
    try:
        offset = base_offset(module, info, GlobalVariable("_ZTISt9exception", ty.PTR, None, True))
    except ValueError:
        return WITHOUT_TEXT
    return WITHOUT_TEXT if offset is None else offset


def place_of(module: Module, instr: Instruction) -> Value:
    """Where an exception is thrown."""
    where = locate(module, instr)
    return text_constant(module, where) if where else ConstZero(ty.PTR)


def fail(b: Builder, module: Module, *words: Value) -> None:
    """End the call: type, object, offset, destructor, what frees it, place."""
    parameters = (ty.PTR, ty.PTR, ty.I64, ty.PTR, ty.PTR, ty.PTR)
    b.call(declare(module, THROWS, ty.VOID, parameters, "noreturn cold"), words)


def _thrown_by(name: str) -> str:
    """The class that a function of the C++ library throws; "" for other functions."""
    found = _LIBRARY.match(name)
    word = found[2][: int(found[1])].removeprefix("__throw_").removesuffix("_fmt") if found else _ABI.get(name)
    return f"std::{word}" if word else ""


def _fail_there(module: Module, call: Instruction) -> None:
    """A call that throws becomes a failure."""
    callee = resolve(call.callee)
    name = str(callee.name) if isinstance(callee, Function) and callee.is_declaration else ""
    if name != _THROW and not _thrown_by(name):
        return
    assert call.block is not None
    b, none = Builder(call.block, call.block.instructions.index(call)), ConstZero(ty.PTR)
    b.metadata = {"dbg": call.metadata["dbg"]} if "dbg" in call.metadata else {}
    where = place_of(module, call)
    if name == _THROW:
        try:
            rows = list(_kinds(module, call))
        except Unsupported:
            return
        (type_, offset, _), *others = rows
        for other, another, info in others:
            this = b.icmp("eq", call.args[1], info)
            type_, offset = b.select(this, other, type_), b.select(this, another, offset)
        release = declare(module, "__cxa_free_exception", ty.VOID, (ty.PTR,), "nounwind")
        fail(b, module, type_, call.args[0], offset, call.args[2], release, where)
    else:
        type_ = text_constant(module, _thrown_by(name))
        texts = call.args[:1] if "PKc" in name else []
        if name.endswith(_FORMATS):
            given = ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.PTR), vararg=True)
            _format(b, module, call, given, [type_, where])
        else:
            offset = ConstInt(ty.I64, TEXT_ITSELF if texts else WITHOUT_TEXT)
            fail(b, module, type_, texts[0] if texts else none, offset, none, none, where)
    call.block.instructions.remove(call)


def _format(b: Builder, module: Module, call: Instruction, given: ty.FunctionType, head: list[Value]) -> None:
    if FORMAT not in module.functions:
        module.functions[FORMAT] = Function(FORMAT, given)
        module.functions[FORMAT].tail = "noreturn cold"
    made = b.call(module.functions[FORMAT], [*head, *call.args])
    assert isinstance(made, Instruction)


def _kinds(module: Module, call: Instruction) -> Iterator[tuple[Value, Value, Value]]:
    """(name, offset of the text, descriptor) of each type that a throw may have."""
    for info in dict.fromkeys(info for info, _ in types_thrown(call.args[1], call.args[2])):
        yield text_constant(module, type_name(info)), ConstInt(ty.I64, text_offset(module, info)), info


def _note(module: Module, call: Instruction) -> None:
    """Say where an exception is thrown that may leave the function; where none may, it ends the call too."""
    if call.callee_name == _TERMINATES:
        assert call.call is not None
        call.operands[-1], call.call.cc = declare(module, ENDS, ty.VOID, (ty.PTR,), "noreturn"), ""
    if call.callee_name == _THROW and call.block is not None:
        b = Builder(call.block, call.block.instructions.index(call))
        b.metadata = {"dbg": call.metadata["dbg"]} if "dbg" in call.metadata else {}
        note = declare(module, NOTE, ty.VOID, (ty.PTR, ty.PTR), "nounwind willreturn")
        b.call(note, [call.args[0], place_of(module, call)])
