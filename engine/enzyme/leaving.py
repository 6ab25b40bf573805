"""Exceptions that leave a differentiated function and that its caller catches.

The derivative itself never unwinds: an exception that leaves the root is a return with the exception in a place that
the thunk passes (`unwinding.py`), so the reverse sweep runs over the path that was taken and tapes end as always.
Then the thunk throws the exception again. It stands in memory of the C++ runtime, so its object does not move.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from irgrad.engine.enzyme.calls import DerivativeCall
from irgrad.engine.enzyme.names import SPLIT
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstZero, Function, GlobalVariable, Module, Value
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.normalise.exceptions.handlers import HEADER
from irgrad.rules.errors import IRGradError, Unsupported

__all__ = ["EndsProgram", "Thrown", "ends", "may_leave", "named", "thrower_text"]

Thrown = tuple[tuple[str, str], ...]
"""The symbols of each type of exception and of its destructor, empty where it has none."""
_CATCHES = re.compile(r"(?:call|invoke) [^@\n]*@__cxa_begin_catch\(")
_TERMINATES = re.compile(r"^define [^@\n]*@__clang_call_terminate\(", re.M)
_THROWS = re.compile(r"(?:call|invoke) void @__cxa_throw\(")


class EndsProgram(RuntimeWarning):
    """An exception that leaves a differentiated function ends the program, though somebody may want to catch it."""


def ends(call: DerivativeCall, error: IRGradError, root: str) -> EndsProgram:
    """The warning for a function that could not be differentiated with its exceptions; `root`: what calls it."""
    function = call.function.name
    reason = f"{error.what}{f' in {error.where}' if error.where else ''}".replace(f"@{root}", f"@{function}")
    return EndsProgram(f"{call.where}: an exception that leaves `{function}` ends the program and reaches no `catch`, "
                       f"because of {reason}")  # fmt: skip


def may_leave(program: str, text: str, call: DerivativeCall, *, whole: bool = True) -> bool:
    """Whether the functions in `text` throw and some part of the program catches, or what it is linked with may
    (`whole`: there is no other part). Split mode has no place for it."""
    if call.mode in SPLIT or not _THROWS.search(text):
        return False
    return not whole or len(_CATCHES.findall(program)) > len(_TERMINATES.findall(program))


def named(types: Sequence[tuple[Value, Value]]) -> Thrown:
    """Their symbols. Raises Unsupported where a type is only known when the program runs."""
    found = []
    for info, destructor in types:
        if not isinstance(info, GlobalVariable) or not isinstance(destructor, Function | ConstZero):
            raise Unsupported("an exception of unknown type is thrown", because="its type is not a constant of the IR",
                              fix="throw an object of a class")
        found.append((info.name or "", destructor.name or "" if isinstance(destructor, Function) else ""))
    return tuple(found)


def thrower_text(module: Module, name: str, thrown: Thrown) -> str:
    """`name(exception)`: throws what the derivative left. What it needs is declared in `module`, the program."""
    declare(module, "__cxa_throw", ty.VOID, (ty.PTR, ty.PTR, ty.PTR))
    defined = {*module.functions, *module.globals, *module.aliases}
    cases, throws = [], []
    for number, (info, destructor) in enumerate(thrown):
        if info not in defined:
            module.globals[info] = GlobalVariable(info, ty.PTR, None, True, "external")
        if destructor and destructor not in defined:
            declare(module, destructor, ty.VOID, (ty.PTR,))
        end = f"@{quoted_name(destructor)}" if destructor else "null"
        cases.append(f"i64 {number}, label %type.{number}")
        throws.append(f"type.{number}:\n  call void @__cxa_throw(ptr %thing, ptr @{quoted_name(info)}, ptr {end})\n"
                      "  unreachable\n")  # fmt: skip
    return (f"define void @{name}(ptr %thing) noinline noreturn {{\n"
            f"  %header = getelementptr i8, ptr %thing, i64 -{HEADER}\n"
            "  %number = load i64, ptr %header, align 8\n"
            f"  store [{HEADER} x i8] zeroinitializer, ptr %header, align 8\n"
            f"  switch i64 %number, label %none [ {' '.join(cases)} ]\n"
            f"none:\n  unreachable\n{''.join(throws)}}}\n")  # fmt: skip
