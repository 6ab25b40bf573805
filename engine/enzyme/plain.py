"""Calls of the notation that need no derivative: batches, parts of a program that are constant, sizes and hints.

Each is replaced by a function of its own, as calls of derivatives are. Two families keep their bodies from whoever
differentiates the program: `irgrad.inactive.*`, which derivatives call and learn nothing of, and `irgrad.iter.*`, a
number that each differentiation makes larger.
"""

from __future__ import annotations

import re

from irgrad.engine.enzyme.calls import DerivativeCall, Parameter, Reader, argument_name
from irgrad.engine.enzyme.names import ACTIVITIES, annotation
from irgrad.engine.enzyme.results import result_of
from irgrad.engine.enzyme.returned import Returned
from irgrad.engine.enzyme.structs import Given, held, is_part, together
from irgrad.engine.enzyme.thunks import Thunk, nought, passing
from irgrad.engine.enzyme.todense import ADDRESS, todense_text
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import CallInfo, Function, Instruction, Module
from irgrad.engine.ir.quoting import quoted_name

__all__ = ["HIDDEN", "lower_plain", "one_more"]

HIDDEN = ("irgrad.inactive.", "irgrad.iter.")
"""Functions of which a derivative only sees the declaration."""
TAPE_BYTES = 8
_ITER = re.compile(r"@irgrad\.iter\.(i\d+)\(")
_ITER_DECLARED = re.compile(r"^declare [^\n]*@irgrad\.iter\.i\d+\([^\n]*\n", re.M)


def lower_plain(module: Module, caller: Function, instr: Instruction, number: int) -> str:
    """Point one such call to the function that takes its place; that function's text."""
    reader = _Plain(module, caller, instr)
    name, text = reader.replaced(number)
    info = instr.call
    assert info is not None
    ftype = ty.function(instr.type, tuple(arg.type for arg in instr.args))
    instr.operands[-1] = Function(name, ftype)
    instr.call = CallInfo(ftype, ret_attrs="", arg_attrs=info.arg_attrs)
    return text


def one_more(text: str) -> str:
    """The program as it is differentiated: each `__enzyme_iter(n, k)` is k larger than outside."""
    for kind in sorted(set(_ITER.findall(text))):
        name, more = f"@irgrad.iter.{kind}", f"@irgrad.iter.more.{kind}"
        text = _ITER_DECLARED.sub("", text).replace(f"{name}(", f"{more}(")
        text += f"""
declare {kind} {name}({kind}, {kind})
define internal {kind} {more}({kind} %n, {kind} %k) alwaysinline {{
  %sum = add {kind} %n, %k
  %again = call {kind} {name}({kind} %sum, {kind} %k)
  ret {kind} %again
}}
"""
    return text


class _Plain(Reader):
    """Reads one call and writes what takes its place."""

    def replaced(self, number: int) -> tuple[str, str]:
        """Name and text of the function."""
        name = f"irgrad.call.{number}"
        match self.family:
            case "__enzyme_augmentsize":
                return name, self._size(name)
            case "__enzyme_batch":
                return name, _batch(self, name)
            case "__enzyme_call_inactive":
                return self._inactive(number)
            case "__enzyme_ignore_derivatives":
                return self._ignored(number)
            case "__enzyme_iter":
                return self._iter()
            case "__enzyme_todense":
                name = f"{ADDRESS}{number}"
                return name, todense_text(self, name)
            case "__enzyme_virtualreverse":
                return name, self._virtual(name)
            case _:
                return name, self._define(name, [], nought(self.instr.type))

    def _define(self, name: str, lines: list[str], result: str) -> str:
        ret = self.instr.type
        info = self.instr.call
        assert info is not None
        attrs = [info.arg_attrs[i] if i < len(info.arg_attrs) else "" for i in range(len(self.args))]
        params = ", ".join(f"{a.type} {passing(attrs[i])}%a{i}" for i, a in enumerate(self.args))
        body = "\n".join([*lines, "  ret void" if ret is ty.VOID else f"  ret {ret} {result}"])
        return f"define {ret} @{quoted_name(name)}({params}) alwaysinline {{\n{body}\n}}\n"

    def _size(self, name: str) -> str:
        self.function()
        words = [annotation(arg) for arg in self.args[1:]]
        if not isinstance(self.instr.type, ty.IntType):
            raise self.refuse(f"the result of the call is a `{self.instr.type}`", "the size of a tape is an integer",
                              "size_t __enzyme_augmentsize(void *, ...)")
        wrong = next((i for i, word in enumerate(words) if word not in ACTIVITIES), None)
        if wrong is not None:
            raise self.refuse(f"argument {wrong + 2} is not an activity",
                              "behind the function stands one annotation for each of its parameters",
                              "__enzyme_augmentsize(f, enzyme_dup, enzyme_const)")
        return self._define(name, [], str(TAPE_BYTES))

    def _inactive(self, number: int) -> tuple[str, str]:
        if not self.args or not isinstance(self.args[0].type, ty.PtrType):
            raise self.refuse("the called function is missing", "it is the first argument of the call",
                              "__enzyme_call_inactive((void *)f, ...)")
        name, ret = f"irgrad.inactive.{number}", self.instr.type
        info = self.instr.call
        assert info is not None
        attrs = [info.arg_attrs[i] if i < len(info.arg_attrs) else "" for i in range(len(self.args))]
        args = ", ".join(f"{a.type} {passing(attrs[i + 1])}%a{i + 1}" for i, a in enumerate(self.args[1:]))
        line = f"  {'' if ret is ty.VOID else '%r = '}call {ret} %a0({args})"
        return name, self._define(name, [line], "%r").replace(" alwaysinline", "")

    def _ignored(self, number: int) -> tuple[str, str]:
        given = self.args[0].type if len(self.args) == 1 else None
        if given is None or given is not self.instr.type or given.is_aggregate or given.is_ptr:
            raise self.refuse("this value cannot be taken out of the derivative",
                              f"__enzyme_ignore_derivatives gets {len(self.args)} arguments and returns a "
                              f"`{self.instr.type}`; it takes one number and returns it", "call it for each number")
        name = f"irgrad.inactive.{number}"
        return name, self._define(name, [], "%a0").replace(" alwaysinline", ' memory(none)')

    def _virtual(self, name: str) -> str:
        """What is called is said by the program's own pointer, never by its shadow: any address will do there."""
        if len(self.args) != 1 or self.args[0].type is not self.instr.type:
            raise self.refuse("__enzyme_virtualreverse takes a function and returns its shadow",
                              f"here it takes {len(self.args)} arguments and returns a `{self.instr.type}`",
                              "void *__enzyme_virtualreverse(void *)")
        return self._define(name, [], "%a0")

    def _iter(self) -> tuple[str, str]:
        kinds = [arg.type for arg in self.args]
        if len(kinds) != 2 or kinds[0] is not self.instr.type or kinds[1] is not kinds[0] or not kinds[0].is_int:
            raise self.refuse("__enzyme_iter takes two integers and returns one",
                              f"here it is `{self.instr.type}` of {', '.join(f'`{k}`' for k in kinds) or 'nothing'}",
                              "unsigned long __enzyme_iter(unsigned long, unsigned long)")
        name = f"irgrad.iter.{kinds[0]}"
        return name, self._define(name, [], "%a0").replace(f"define {kinds[0]}", f"define linkonce_odr {kinds[0]}")


class _Batch(Thunk):
    """W calls of the function."""

    def text(self, name: str, derivative: str) -> str:
        call = self.call
        kind = call.result.kind
        values: list[Returned] = []
        for lane in range(call.width):
            args: list[str] = []
            if call.result.memory and kind is not None:
                args.append(f"ptr sret({kind}) {self.slot(f'r.{lane}', kind, nought(kind))}")
            for formal, said in zip(call.function.args[int(call.result.memory):], call.parameters, strict=True):
                args.append(f"{formal.type} {passing(formal.attrs)}{self._lane(said, formal.type, lane)}")
            target = f"{call.function.ftype.ret} @{quoted_name(derivative)}({', '.join(args)})"
            if kind is None or call.result.memory:
                self.lines.append(f"  call {target}")
            else:
                self.lines.append(f"  %v.{lane} = call {target}")
                self.slot(f"r.{lane}", kind, f"%v.{lane}")
            if kind is not None:
                values.append(self.result(f"%r.{lane}"))
        self.give_back(values)
        return self.define(name)

    def _lane(self, said: Parameter, type_: ty.Type, lane: int) -> str:
        if said.stride >= 0 and lane:
            step, number = self.value(Given((said.stride,)), ty.I64), len(self.lines)
            self.lines += [f"  %k{number} = mul i64 {step}, {lane}",
                           f"  %w{number} = getelementptr i8, ptr %a{said.value.first}, i64 %k{number}"]  # fmt: skip
            return f"%w{number}"
        given = said.shadows[lane] if said.shadows else said.value
        return self.value(given, type_) if said.held is None else self.place(given, said.held)


def _batch(reader: _Plain, name: str) -> str:
    info = reader.instr.call
    assert info is not None
    sret = 0 if info.arg_attrs and "sret" in info.arg_attrs[0] else -1
    reader.at = sret + 1
    function = reader.function()
    words = [annotation(arg) for arg in reader.args]
    if "width" not in words:
        raise reader.refuse("__enzyme_batch has no width", "the number of calls that it stands for is not said",
                            "__enzyme_batch(f, enzyme_width, 4, enzyme_vector, a, b, c, d)")
    start, reader.at = reader.at, words.index("width") + 1
    width = reader.constant("the number behind enzyme_width")
    reader.at = start
    result = result_of(function, reader.module)
    call = DerivativeCall(reader.instr, function, "forward", reader.where, result, sret=sret, width=width)
    formals, at = function.args[int(result.memory):], 0
    while at < len(formals):
        said, stride = _said(reader, width)
        whole, what = held(reader.module, formals[at]), argument_name(formals[at], function)
        group = together(formals, at, reader.size_at(reader.at)) if whole is None else [formals[at]]
        at += len(group)
        kinds, part = [formal.type for formal in group], len(group) > 1 or is_part(group[0])
        values = [reader.given(f"value {i + 1} of {what}", kinds, whole, part=part)
                  for i in range(width if said == "vector" else 1)]  # fmt: skip
        if said == "buffer" and (part or whole is not None or not isinstance(kinds[0], ty.PtrType)):
            raise reader.refuse(f"{what} is a `{whole or kinds[0]}`", "enzyme_buffer is for pointers", "enzyme_vector")
        for i in range(len(group)):
            own = tuple(row[i] for row in values)
            call.parameters.append(Parameter(said, own[0], own if said == "vector" else (), stride, held=whole))
    _said(reader, width)
    if reader.at < reader.end:
        raise reader.refuse(f"too many arguments for `{function.name}`", f"{reader.end - reader.at} left",
                            "enzyme_scalar before an argument that all calls share")
    return _Batch(call, reader.caller).text(name, function.name or "")


def _said(reader: _Plain, width: int) -> tuple[str, int]:
    """(scalar, vector or buffer, the argument with the buffer's stride)."""
    said, stride = "vector" if width > 1 else "scalar", -1
    while reader.at < reader.end and (word := annotation(reader.args[reader.at])):
        reader.at += 1
        if word == "width":
            reader.at += 1
        elif word in ("scalar", "vector"):
            said = word
        elif word == "buffer":
            said, stride = word, reader.take("the stride behind enzyme_buffer")
        else:
            raise reader.refuse(f"`enzyme_{word}` does not belong to __enzyme_batch",
                                "known are scalar, vector, buffer and width", "leave it out")
    return said, stride


