"""The calls `__enzyme_autodiff(f, ...)` of a program, read: which function, and what is said about each argument.

The names are recognised inside the callee's name, so that one program may declare several prototypes and C++ may mangle
them. What an argument is for is said by a global in front of it (`enzyme_const, n`), of which only the name matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from irgrad.engine.analyses.locations import locate
from irgrad.engine.analyses.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    ConstExpr,
    Function,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.printer import instruction_to_text
from irgrad.rules.errors import IRGradError, Unsupported

__all__ = ["PREFIX", "DerivativeCall", "Parameter", "family", "find", "parse"]

PREFIX = "__enzyme_"
_MODES = {"__enzyme_autodiff": "reverse", "__enzyme_fwddiff": "forward"}
_ACTIVITIES = {"const", "dup", "dupnoneed", "out"}
_SWITCHES = {"primal_return", "noret", "const_return"}
_CASTS = frozenset({"sext", "zext", "trunc", "bitcast", "inttoptr", "ptrtoint", "freeze", "addrspacecast"})
_KNOWN = "enzyme_const enzyme_dup enzyme_dupnoneed enzyme_out enzyme_primal_return enzyme_noret enzyme_const_return"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the differentiated function: its activity, and the call's arguments that carry its value and
    its shadow or tangent (-1: none)."""

    activity: str
    value: int
    shadow: int = -1


@dataclass(slots=True)
class DerivativeCall:
    """One call: `function` differentiated in `mode` ("forward" or "reverse"); `result`: the call's sret argument."""

    instr: Instruction
    function: Function
    mode: str
    where: str
    parameters: list[Parameter] = field(default_factory=list)
    switches: set[str] = field(default_factory=set)
    result: int = -1


def family(name: str | None) -> str | None:
    """The name of the notation that a callee's name contains: `__enzyme_autodiff` in `_Z17__enzyme_autodiffPvz`."""
    at = name.find(PREFIX) if name else -1
    if at < 0 or name is None:
        return None
    return next((known for known in _MODES if name.startswith(known, at)), name[at:])


def annotation(value: Value) -> str:
    """`dup` for the global `enzyme_dup`, its value or address, through casts; "" for an ordinary argument."""
    while True:
        opcode = value.opcode if isinstance(value, Instruction | ConstExpr) else ""
        if isinstance(value, Instruction | ConstExpr) and (opcode in _CASTS or opcode == "load"):
            value = value.operands[0]
        else:
            break
    if not isinstance(value, GlobalVariable) or not value.name:
        return ""
    at = value.name.find("enzyme_")
    mangled = value.name.startswith("_Z")
    if at < 0 or (at > 0 and not mangled):
        return ""
    name = value.name[at:]
    if mangled and at > 0:  # a C++ static or inline variable: the length stands before the name
        digits = ""
        while at > len(digits) and value.name[at - 1 - len(digits)].isdigit():
            digits = value.name[at - 1 - len(digits)] + digits
        name = name[: int(digits)] if digits else name
    return name.removeprefix("enzyme_")


def _is_float(type_: ty.Type) -> bool:
    return isinstance(type_, ty.FloatType)


class _Parser:
    """Reads one call."""

    def __init__(self, module: Module, caller: Function, instr: Instruction) -> None:
        line = locate(module, instr)
        self.where = f"@{caller.name}{f' ({line})' if line else ''}"
        self.instr = instr
        self.family = family(instr.callee_name)
        self.at = 0

    def refuse(self, what: str, because: str, fix: str) -> IRGradError:
        return Unsupported(what, where=self.where, which=instruction_to_text(self.instr).strip(), because=because,
                           fix=fix)

    def parse(self) -> DerivativeCall:
        """The call, or an error that names its source line."""
        args = self.instr.args
        mode = _MODES.get(self.family or "")
        if mode is None:
            raise self.refuse(f"`{self.family}` is not supported", f"supported are {' and '.join(_MODES)}",
                              "write the call with one of those")
        assert self.instr.call is not None
        attrs = self.instr.call.arg_attrs
        result = 0 if attrs and "sret" in attrs[0] else -1
        self.at = result + 1
        function = resolve(args[self.at]) if self.at < len(args) else None
        if not isinstance(function, Function):
            raise self.refuse("the differentiated function is not known when compiling",
                              "the first argument of the call is not the name of a function",
                              "give the function itself: __enzyme_autodiff((void *)f, ...)")
        if function.is_declaration:
            raise self.refuse(f"`{function.name}` has no body", "it is only declared in this program",
                              f"add the file that defines it: irgrad run main.c {function.name}.c")
        self.at += 1
        call = DerivativeCall(self.instr, function, mode, self.where, result=result)
        self._parameters(call, args)
        return call

    def _parameters(self, call: DerivativeCall, args: Sequence[Value]) -> None:
        for formal in call.function.args:
            said = self._annotation(call, args)
            name = f"parameter {formal.index + 1}{f' `{formal.name}`' if formal.name else ''} of `{call.function.name}`"
            type_ = formal.type
            if "sret" in formal.attrs or not (_is_float(type_) or isinstance(type_, ty.PtrType | ty.IntType)):
                raise self.refuse(f"{name} cannot be differentiated in this notation",
                                  "it is a struct result" if "sret" in formal.attrs else f"it is a `{type_}`",
                                  "pass numbers by value and everything else by pointer")
            if formal.name and ".coerce" in formal.name and said not in ("", "const", "out"):
                raise self.refuse(f"{name} cannot have a shadow", "it is part of a struct that is passed by value",
                                  "pass the struct by pointer")
            activity = self._activity(call, said, type_, name)
            value = self._take(args, f"the value of {name}")
            shadow = self._take(args, f"the shadow of {name}") if activity.startswith("dup") else -1
            if shadow >= 0 and isinstance(args[shadow].type, ty.PtrType) is not isinstance(type_, ty.PtrType):
                raise self.refuse(f"the shadow of {name} is a `{args[shadow].type}`",
                                  f"the parameter is a `{type_}`", "put the shadow right behind the value")
            call.parameters.append(Parameter(activity, value, shadow))
        said = self._annotation(call, args)
        if said or self.at < len(args):
            raise self.refuse(f"too many arguments for `{call.function.name}`",
                              f"{len(args) - self.at} are left behind its {len(call.function.args)} parameters",
                              "a pointer takes its shadow with it, unless enzyme_const stands before it")

    def _activity(self, call: DerivativeCall, said: str, type_: ty.Type, name: str) -> str:
        default = "const" if isinstance(type_, ty.IntType) else "dup"
        if _is_float(type_) and call.mode == "reverse":
            default = "out"
        activity = said or default
        if activity == "const":
            return activity
        if isinstance(type_, ty.IntType):
            raise self.refuse(f"{name} has no derivative", f"it is an integer, and enzyme_{activity} stands before it",
                              "enzyme_const")
        wanted = "out" if _is_float(type_) and call.mode == "reverse" else "dup"
        if not activity.startswith(wanted):
            raise self.refuse(
                f"enzyme_{activity} does not fit {name}",
                f"in {call.mode} mode a {'number' if _is_float(type_) else 'pointer'} is enzyme_{wanted} or "
                "enzyme_const",
                f"enzyme_{wanted}")
        return activity

    def _take(self, args: Sequence[Value], what: str) -> int:
        if self.at >= len(args):
            raise self.refuse("too few arguments", f"{what} is missing",
                              "pass each parameter's value, and its shadow behind it unless it is enzyme_const")
        if annotation(args[self.at]):
            raise self.refuse(f"enzyme_{annotation(args[self.at])} stands where an argument is wanted",
                              f"{what} is missing", "pass each parameter's value, and its shadow behind it")
        self.at += 1
        return self.at - 1

    def _annotation(self, call: DerivativeCall, args: Sequence[Value]) -> str:
        """The activity said about the next argument; switches on the way are noted."""
        while self.at < len(args):
            said = annotation(args[self.at])
            if not said:
                return ""
            self.at += 1
            if said in _ACTIVITIES:
                return said
            if said not in _SWITCHES:
                raise self.refuse(f"`enzyme_{said}` is not supported", f"supported are {_KNOWN}", "leave it out")
            call.switches.add(said)
        return ""


def used(function: Function, instr: Instruction) -> bool:
    """Whether anything reads the result of an instruction."""
    return any(operand is instr for other in function.instructions() for operand in other.operands)


def find(function: Function) -> Iterator[Instruction]:
    """The calls of the notation in one function."""
    for instr in function.instructions():
        callee = resolve(instr.callee) if instr.is_call else None
        if isinstance(callee, Function) and callee.is_declaration and family(callee.name):
            yield instr


def parse(module: Module, caller: Function, instr: Instruction) -> DerivativeCall:
    """Read one call. Raises Unsupported, with the source line, for what is not supported."""
    return _Parser(module, caller, instr).parse()
