"""Exceptions that leave a differentiated function and that its caller catches.

The derivative itself never unwinds: an exception that leaves the root is a return with the exception in a place that
the thunk passes (`unwinding.py`), so the reverse sweep runs over the path that was taken and tapes end as always.
Then the thunk throws the exception again. It stands in memory of the C++ runtime, so its object does not move.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from irgrad.engine.enzyme.calls import DerivativeCall
from irgrad.engine.enzyme.names import SPLIT
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstZero, Function, GlobalVariable, Module, Value
from irgrad.engine.ir.quoting import bare_name, quoted_name
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.ir.text.entities import Entity, cut, reachable
from irgrad.engine.normalise.exceptions.handlers import TYPE
from irgrad.rules.effects import EXCEPTION_HEADER
from irgrad.rules.errors import IRGradError, Unsupported

__all__ = ["EndsProgram", "Thrown", "as_written", "ends", "may_leave", "named", "thrower_text", "without_limits"]

Thrown = tuple[tuple[str, str], ...]
"""The symbols of each type of exception and of its destructor, empty where it has none."""
_CATCHES = re.compile(r"(?:call|invoke) [^@\n]*@__cxa_begin_catch\(")
_DEFINED = re.compile(r'define [^@\n]*(@"[^"]*"|@[-\w$.]+)\(')
_SYMBOL = re.compile(r'@(?:"[^"]*"|[-\w$.]+)', re.ASCII)
_MANGLED = re.compile(r"(?<=[@`])_Z\w+")
_LIBRARY = re.compile(r"_Z+N?[KVRO]*(?:St|9__gnu_cxx)")
_TOO_LONG = re.compile(r"_ZN?St(?:3__1)?\d+__throw_(?:length_error|overflow_error|bad_array_new_length|bad_alloc)")
_THROWS = re.compile(r"(?:call|invoke) void @(?:__cxa_throw|_ZSt17rethrow_exception\w+)\(")


class EndsProgram(RuntimeWarning):
    """An exception that leaves a differentiated function ends the program, though somebody may want to catch it."""


def ends(call: DerivativeCall, error: IRGradError, root: str) -> EndsProgram:
    """The warning for a function that could not be differentiated with its exceptions; `root`: what calls it."""
    function = as_written(call.function.name or "")
    reason = f"{error.what}{f' in {error.where}' if error.where else ''}".replace(f"@{root}", f"@{function}")
    message = (f"{call.where}: an exception that leaves `{function}` ends the program and reaches no `catch`, "
               f"because of {reason}")  # fmt: skip
    return EndsProgram(_MANGLED.sub(lambda found: as_written(found[0]), message))


def as_written(symbol: str) -> str:
    """The name of a function of C++ in its source, without its types; other symbols as they are."""
    rest = symbol.removeprefix("_Z")
    nested = rest.startswith("N")
    if rest == symbol or not (nested or rest.lstrip("L")[:1].isdigit()):
        return symbol
    rest = re.sub(r"^N[KVRO]*(St)?", "", rest) if nested else rest.lstrip("L")
    parts = []
    while match := re.match(r"L?(\d+)", rest):
        end = match.end() + int(match[1])
        parts.append(rest[match.end() : end])
        rest = rest[end:]
        if not nested:
            break
    parts = [part for part in parts if not part.startswith(("_GLOBAL__N", "__1"))]
    return "::".join(parts) or symbol


def may_leave(program: str, text: str, call: DerivativeCall, caller: str, *, whole: bool = True) -> bool:
    """Whether the functions in `text` throw and some part of the program catches, or what it is linked with may
    (`whole`: there is no other part). Split mode has no place for it. A library's own `catch` counts where it reaches
    `caller`, in which the derivative is called: std::async does, a stream does not."""
    if call.mode in SPLIT or not any(True for _ in _throwing(text)):
        return False
    if not whole:
        return True
    catchers = {name for name in _within(program, _CATCHES) if name != "__clang_call_terminate"}
    library = {name for name in catchers if _LIBRARY.match(name)}
    if catchers - library or not library:
        return bool(catchers)
    entities = _functions(program)
    return any(caller in reachable(program, entities, [name]) for name in library)


def _throwing(text: str) -> Iterator[str]:
    """The functions that throw, but for those of a container that grows without bound: they end the program, as the
    tape does where memory runs out."""
    return (name for name in _within(text, _THROWS) if not _TOO_LONG.match(name))


def without_limits(text: str) -> str:
    """The functions without exceptions of containers that grow without bound, where no function catches any."""
    if _CATCHES.search(text):
        return text
    names = {name for name in _within(text, _THROWS) if _TOO_LONG.match(name)}
    for name, entity in _functions(text).items() if names else ():
        if name in names:
            whole = text[entity.start : entity.end]
            head = whole[: whole.index("\n")]
            text = text.replace(whole, f"{head}\n  call void @_ZSt9terminatev()\n  unreachable\n}}\n", 1)
    if names and not re.search(r"^(?:define|declare) [^@\n]*@_ZSt9terminatev\(", text, re.M):
        text += "\ndeclare void @_ZSt9terminatev() noreturn nounwind\n"
    return text


def _functions(text: str) -> dict[str, Entity]:
    """What is defined or declared, by name."""
    return {bare_name(found[0]): entity for entity in cut(text) if entity.first == "d"
            and (found := _SYMBOL.search(text, entity.start, entity.end))}  # fmt: skip


def _within(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The functions in which something stands."""
    for found in pattern.finditer(text):
        head = _DEFINED.match(text, text.rfind("\ndefine ", 0, found.start()) + 1)
        yield bare_name(head[1]) if head else ""


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
            f"  %header = getelementptr i8, ptr %thing, i64 -{EXCEPTION_HEADER}\n"
            f"  %type = getelementptr i8, ptr %thing, i64 {TYPE}\n"
            "  %number = load i64, ptr %type, align 8\n"
            f"  store [{EXCEPTION_HEADER} x i8] zeroinitializer, ptr %header, align 8\n"
            f"  switch i64 %number, label %none [ {' '.join(cases)} ]\n"
            f"none:\n  unreachable\n{''.join(throws)}}}\n")  # fmt: skip
