"""Exceptions that `std::exception_ptr` keeps beyond their handlers.

An exception counts who holds it: its flight, until its last handler ends, and each pointer. What is thrown from a
pointer is another header with no object of its own, so that one exception may fly and be handled in several places
at a time: it copies the type and holds the exception, as the dependent exceptions of the C++ runtimes do. Everything
here is instructions on the two further words of the header (`handlers.py`): the count, and where the object is.

What comes from outside, or goes there, are exceptions of the C++ runtime: pointers in memory of the caller or in
variables are refused.

Method: libstdc++'s eh_ptr.cc and libc++'s exception_pointer_cxxabi.ipp (in C++'s terms, [propagation]).
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir.model import Argument, Function, GlobalVariable, Instruction, Module, Value
from irgrad.rules.errors import Unsupported

__all__ = ["ALONE", "COUNT", "DROP", "FREE", "HOLD", "INIT", "OBJECT", "OPERATIONS", "RETHROWS", "SIZE",
           "adopt_helpers", "askers", "check_places", "holds_exceptions", "operands"]  # fmt: skip

HOLD, DROP, FREE, ALONE = (f"irgrad.exception.{word}" for word in ("hold", "drop", "free", "alone"))
COUNT, OBJECT = -64, -56
"""Where the two words stand before the object."""
SIZE = 8
"""Bytes of what is thrown from a pointer, which nothing reads."""
INIT = "__cxa_init_primary_exception"
RETHROWS = frozenset(("_ZSt17rethrow_exceptionSt13exception_ptr",
                      "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE"))  # fmt: skip
_ASKS = "_ZSt17current_exceptionv"
_CLASSES = (("_ZNSt13exception_ptr", "S_"), ("_ZNSt15__exception_ptr13exception_ptr", "S0_"))  # of libc++, libstdc++
OPERATIONS = {
    _ASKS: "current", "__cxa_increment_exception_refcount": "hold", "__cxa_decrement_exception_refcount": "drop",
} | {
    f"{cls}{member.replace('S_', itself)}": operation for cls, itself in _CLASSES for operation, members in (
        ("release", ("D1Ev", "D2Ev", "10_M_releaseEv")), ("add", ("9_M_addrefEv",)),
        ("copy", ("C1ERKS_", "C2ERKS_")), ("assign", ("aSERKS_",)),
        ("own", ("31__from_native_exception_pointerEPv", "C1EPv", "C2EPv")),
    ) for member in members
}  # fmt: skip
"""The functions of the C++ libraries, and `irgrad.exception.<operation>` for each."""
_WITH_PLACE = frozenset(("current", "release", "assign", "drop"))

_TEXT = f"""
declare void @irgrad.exception.drop(ptr, ptr)
declare void @irgrad.exception.free(ptr)
define internal ptr @irgrad.exception.alone(ptr %thing) nounwind {{
  %where = getelementptr i8, ptr %thing, i64 {OBJECT}
  %object = load ptr, ptr %where, align 8
  %same = icmp eq ptr %object, %thing
  br i1 %same, label %out, label %apart
apart:
  call void @irgrad.exception.free(ptr %thing)
  br label %out
out:
  ret ptr %object
}}
define internal void @irgrad.exception.hold(ptr %object) nounwind {{
  %none = icmp eq ptr %object, null
  br i1 %none, label %out, label %some
some:
  %count = getelementptr i8, ptr %object, i64 {COUNT}
  %before = load i64, ptr %count, align 8
  %after = add nsw i64 %before, 1
  store i64 %after, ptr %count, align 8
  br label %out
out:
  ret void
}}
define internal void @irgrad.exception.own(ptr %to, ptr %object) nounwind {{
  call void @irgrad.exception.hold(ptr %object)
  store ptr %object, ptr %to, align 8
  ret void
}}
define internal void @irgrad.exception.add(ptr %from) nounwind {{
  %object = load ptr, ptr %from, align 8
  call void @irgrad.exception.hold(ptr %object)
  ret void
}}
define internal void @irgrad.exception.copy(ptr %to, ptr %from) nounwind {{
  %object = load ptr, ptr %from, align 8
  call void @irgrad.exception.hold(ptr %object)
  store ptr %object, ptr %to, align 8
  ret void
}}
define internal void @irgrad.exception.assign(ptr %to, ptr %from, ptr %place) {{
  %object = load ptr, ptr %from, align 8
  call void @irgrad.exception.hold(ptr %object)
  %old = load ptr, ptr %to, align 8
  store ptr %object, ptr %to, align 8
  call void @irgrad.exception.drop(ptr %old, ptr %place)
  ret void
}}
define internal void @irgrad.exception.release(ptr %from, ptr %place) {{
  %object = load ptr, ptr %from, align 8
  store ptr null, ptr %from, align 8
  call void @irgrad.exception.drop(ptr %object, ptr %place)
  ret void
}}
define internal void @irgrad.exception.current(ptr %to, ptr %place) nounwind {{
  %handled = getelementptr i8, ptr %place, i64 8
  %thing = load ptr, ptr %handled, align 8
  store ptr null, ptr %to, align 8
  %none = icmp eq ptr %thing, null
  br i1 %none, label %out, label %some
some:
  %where = getelementptr i8, ptr %thing, i64 {OBJECT}
  %object = load ptr, ptr %where, align 8
  call void @irgrad.exception.own(ptr %to, ptr %object)
  br label %out
out:
  ret void
}}
"""


def holds_exceptions(functions: Sequence[Function]) -> bool:
    """Whether any of the functions keeps an exception, or throws one that is kept."""
    return any(instr.is_call and (instr.callee_name in RETHROWS or instr.callee_name in OPERATIONS)
               for fn in functions for instr in fn.instructions())  # fmt: skip


def adopt_helpers(module: Module) -> None:
    """Define the operations in a module, all but `drop` and `free`, which `handlers.py` does."""
    from irgrad.engine.ir.text.reader import read  # cold code

    for name, fn in read(_TEXT).functions.items():
        module.functions.setdefault(name, fn)


def operands(operation: str, args: Sequence[Value], place: Value) -> list[Value]:
    """The arguments of an operation: what it drops may be destroyed, which may throw and catch."""
    return [*args, place] if operation in _WITH_PLACE else list(args)


def askers(functions: Sequence[Function]) -> set[Function]:
    """Functions that ask which exception is handled, and those that call them: they are told by their callers."""
    found: set[Function] = set()
    before = -1
    while before != len(found):
        before = len(found)
        for fn in functions:
            if fn not in found and any(_asks(instr, found) for instr in fn.instructions()):
                found.add(fn)
    return found


def _asks(instr: Instruction, found: set[Function]) -> bool:
    return instr.is_call and (instr.callee_name == _ASKS or resolve(instr.callee) in found)


def check_places(functions: Sequence[Function], root: Function) -> None:
    """Raise Unsupported where an exception is kept in memory of the caller, or in a variable of the program."""
    calls: dict[Function, list[Instruction]] = {}
    stores: dict[Value, list[Instruction]] = {}
    kept: list[tuple[Function, Value]] = []
    for fn in functions:
        for instr in fn.instructions():
            callee = resolve(instr.callee) if instr.is_call else None
            if isinstance(callee, Function):
                calls.setdefault(callee, []).append(instr)
                kept += [(fn, value) for value in instr.args[: _addresses(callee.name or "")]]
            elif instr.opcode == "store":
                stores.setdefault(resolve(instr.operands[1]), []).append(instr)
    places = {resolve(value) for _, value in kept}
    for address, rows in stores.items():  # what is moved is not handed to a function of the library
        moved = [row for row in rows if _loaded_from(row.operands[0]) in places]
        kept += [(row.block.function, address) for row in moved if row.block and row.block.function]
    for fn, value in kept:
        if (base := _outside(value, root, calls, stores)) is not None:
            where = "a variable" if isinstance(base, GlobalVariable) else "memory of the caller"
            raise Unsupported("an exception is kept beyond the call", where=f"@{fn.name}", which=f"`{base.name}`",
                              because=f"a `std::exception_ptr` is in {where}, where exceptions of other calls may be",
                              fix="keep the exception in a local variable, or what it says")  # fmt: skip


def _addresses(name: str) -> int:
    """How many of the first arguments are addresses of pointers to exceptions."""
    operation = "own" if name in RETHROWS else OPERATIONS.get(name, "drop")
    return {"drop": 0, "hold": 0, "copy": 2, "assign": 2}.get(operation, 1)


def _loaded_from(value: Value) -> Value | None:
    return resolve(value.operands[0]) if isinstance(value, Instruction) and value.opcode == "load" else None


def _outside(
    value: Value, root: Function, calls: dict[Function, list[Instruction]], stores: dict[Value, list[Instruction]]
) -> Value | None:
    """The variable, or the parameter of the root, by way of which an address or what stands there is found."""
    seen: set[Value] = set()
    work = [value]
    while work:
        value = resolve(work.pop())
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value, GlobalVariable) or (isinstance(value, Argument) and value.function is root):
            return value
        if isinstance(value, Argument):
            assert value.function is not None
            work += [call.args[value.index] for call in calls.get(value.function, ()) if value.index < len(call.args)]
        elif isinstance(value, Instruction) and value.opcode == "alloca":
            work += [row.operands[0] for row in stores.get(value, ())]
        elif isinstance(value, Instruction) and not value.is_call:
            first = {"select": 1}.get(value.opcode, 0)
            work += value.operands[first:] if value.opcode in ("phi", "select") else value.operands[:1]
    return None
