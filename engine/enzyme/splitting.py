"""Thunks of split mode: `__enzyme_augmentfwd` runs the function and returns a tape, `__enzyme_reverse` consumes it, or
`__enzyme_fwdsplit`.

The tape that a program sees is a pointer to a record {arena, tape of the derivative, number of the derivative}. The
number is compared when the tape is consumed: a tape of another function would be read as something that it is not.
"""

from __future__ import annotations

import re
from zlib import crc32

from irgrad.engine.enzyme.calls import DerivativeCall
from irgrad.engine.enzyme.returned import Part, Returned
from irgrad.engine.enzyme.thunks import Thunk, active, second
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.ir.types import Type
from irgrad.rules.errors import Unsupported

__all__ = ["kept", "number_of", "thunk_text"]

_RUNTIME = """declare noalias ptr @irgrad.tape.acquire()
declare noalias ptr @irgrad.tape.alloc(ptr, i64)
declare void @irgrad.tape.finish(ptr)
declare void @abort()
declare i64 @write(i32, ptr, i64)
"""
_PLACES = re.compile(r"(?:, )?!\w+ !\d+|^(?:source_filename|!|attributes|target ).*\n", re.M)
_MESSAGE = "irgrad: this tape belongs to another function, or to a call with other annotations"


class _Augment(Thunk):
    """The first half: {tape, value, shadow of the value}."""

    def text(self, name: str, derivative: str) -> str:
        call, lines = self.call, self.lines
        self.arguments()
        kind = call.result.kind
        values: list[Returned] = []
        if kind is not None:
            primal, shadows = self.result_slots(kind, seeded=False)
            if not call.switches & {"noret"}:
                values.append(self.result(primal))
                if call.result.pointer and "const_return" not in call.switches:
                    values += map(self.result, shadows)
        self.which()
        lines += [
            "  %arena = call ptr @irgrad.tape.acquire()",
            f"  %both = call {{ ptr }} @{quoted_name(derivative)}({', '.join([*self.slots, 'ptr %arena'])})",
            "  %inner = extractvalue { ptr } %both, 0",
            "  %tape = call ptr @irgrad.tape.alloc(ptr %arena, i64 24)",
            "  store ptr %arena, ptr %tape, align 8",
            "  %inner.at = getelementptr i8, ptr %tape, i64 8",
            "  store ptr %inner, ptr %inner.at, align 8",
            "  %number.at = getelementptr i8, ptr %tape, i64 16",
            f"  store i64 {call.number}, ptr %number.at, align 8",
        ]
        if call.tape >= 0:
            lines.append(f"  store ptr %tape, ptr %a{call.tape}, align 1")
        else:
            shown = Returned((Part(ty.PTR, self.slot("tape.slot", ty.PTR, "%tape")),))
            values = [*values, shown] if self._tape_last(values) else [shown, *values]
        self.give_back(values, more=True)
        return self.define(name)

    def _tape_last(self, values: list[Returned]) -> bool:
        """Whether the program declares the value in front of the tape."""
        fields, kind = _fields(self.call), self.call.result.kind
        return len(values) == 1 == len(fields) - 1 and fields[1] is ty.PTR and fields[0] is kind is not ty.PTR


class _Sweep(Thunk):
    """The second half: gradients, as `__enzyme_autodiff` returns them."""

    def text(self, name: str, derivative: str) -> str:
        call = self.call
        gradients = self.arguments()
        kind = call.result.kind
        if kind is not None:
            self.result_slots(kind, seeded="const_return" not in call.switches, seeds=self.seeds(kind))
        self.which()
        self._consume(derivative)
        self.give_back(gradients)
        return self.define(name)

    def _consume(self, derivative: str) -> None:
        """Calls the second half, with the tape that the call is given."""
        call, lines = self.call, self.lines
        target = quoted_name(derivative + second(call))
        if call.untaped:
            lines.append(f"  call void @{target}({', '.join([*self.slots, 'ptr null'])})")
            return
        if call.instr.args[call.tape].type is not ty.PTR:
            raise self.refuse(f"the tape is a `{call.instr.args[call.tape].type}`",
                              "what __enzyme_augmentfwd returns first is a pointer", "void *tape")
        tape = f"%a{call.tape}"
        if call.tape_in_memory:
            lines.append(f"  %tape = load ptr, ptr {tape}, align 1")
            tape = "%tape"
        lines += [
            f"  %none = icmp eq ptr {tape}, null",
            "  br i1 %none, label %stop, label %look",
            "look:",
            f"  %number.at = getelementptr i8, ptr {tape}, i64 16",
            "  %number = load i64, ptr %number.at, align 8",
            f"  %own = icmp eq i64 %number, {call.number}",
            "  br i1 %own, label %go, label %stop",
            "stop:",
            f"  %told = call i64 @write(i32 2, ptr @irgrad.tape.other, i64 {len(_MESSAGE) + 1})",
            "  call void @abort()",
            "  unreachable",
            "go:",
            f"  %inner.at = getelementptr i8, ptr {tape}, i64 8",
            "  %inner = load ptr, ptr %inner.at, align 8",
            f"  call void @{target}({', '.join([*self.slots, 'ptr %inner'])})",
        ]
        if "nofree" not in call.switches:
            lines += [f"  %arena = load ptr, ptr {tape}, align 8", "  call void @irgrad.tape.finish(ptr %arena)"]


class _Tangent(_Sweep):
    """The second half of forward mode: tangents, as `__enzyme_fwddiff` returns them."""

    def text(self, name: str, derivative: str) -> str:
        if "primal_return" in self.call.switches:
            raise self.refuse("enzyme_primal_return stands in __enzyme_fwdsplit",
                              "it computes tangents only; __enzyme_augmentfwd returned the value", "leave it out")
        returned = self.results(self.arguments())
        self.which()
        self._consume(derivative)
        self.give_back(returned)
        return self.define(name)


def _fields(call: DerivativeCall) -> tuple[Type, ...]:
    """The fields of the declared result."""
    ret = call.instr.type
    return ret.fields or () if isinstance(ret, ty.StructType) else ()


def number_of(call: DerivativeCall, prepared: str, root: str) -> int:
    """The number of a derivative. It follows from the function and what is said about it, so that the halves may stand
    in different files, and a tape of another function is found out there too."""
    text = _PLACES.sub("", prepared).replace(root, "root")
    said = (call.derivation, active(call), kept(call), call.width, sorted(call.switches & {"strong_zero"}))
    return crc32(f"{said}{text}".encode())


def kept(call: DerivativeCall) -> tuple[int, ...]:
    """The root's arguments of which nobody writes the memory between the two halves. Numbers are passed again."""
    if not call.split:
        return ()
    if call.untaped:
        return tuple(range(len(call.parameters)))
    return tuple(i for i, said in enumerate(call.parameters) if said.kept)


def thunk_text(call: DerivativeCall, caller: Function, name: str, derivative: str) -> str:
    """What takes the place of a call. Raises Unsupported where the call's result does not fit."""
    if not call.split:
        return Thunk(call, caller).text(name, derivative)
    kind = {"sweep": _Sweep, "tangent": _Tangent}.get(call.mode, _Augment)
    if call.derivation == "tangent" and call.result.pointer:
        raise Unsupported(f"`{call.function.name}` returns a pointer, and its tangents are computed apart",
                          where=call.where, because="the shadow of the pointer is known when the second half runs only",
                          fix="__enzyme_fwddiff, which computes values and tangents together")  # fmt: skip
    thunk = kind(call, caller)
    size = len(_MESSAGE) + 1
    message = f'@irgrad.tape.other = private unnamed_addr constant [{size} x i8] c"{_MESSAGE}\\0A"\n'
    return _RUNTIME + message + thunk.text(name, derivative)
