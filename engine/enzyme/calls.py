"""The calls `__enzyme_autodiff(f, ...)` of a program, read: which function, and what is said about each argument.

What is read are the calls that become calls of a derivative; `plain.py` has those that do not. In a call stand, in this
order: the function; for each of its parameters the value and, where the parameter is dup, the shadow (with
enzyme_width W of them, or one and a stride); in the second half of split mode the result's cotangent and the tape.
Annotations stand in front of what they speak about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.layout.lanes import MOST
from irgrad.engine.enzyme.names import (
    ACTIVITIES,
    BATCH,
    DERIVATIVES,
    PLAIN,
    PREFIX,
    SPLIT,
    SWITCHES,
    VALUED,
    annotation,
    family,
)
from irgrad.engine.enzyme.results import Found, Result, result_of, room_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import (
    Argument,
    ConstInt,
    ConstZero,
    Function,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.printer import instruction_to_text
from irgrad.engine.ir.text.entities import restrict
from irgrad.rules.errors import IRGradError, Unsupported

__all__ = ["PREFIX", "DerivativeCall", "Parameter", "Reader", "family", "find", "parse", "refuse_packed_halves", "used"]

_HALVES = re.compile(r"\b(?:half|bfloat)\b")
_POINTER = 8  # bytes of the tape that a program sees


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the differentiated function: its activity, and the call's arguments that carry its value and
    its shadows or tangents.

    `stride`: the argument that says how many bytes lie between the shadows, of which only the first is given; `byref`:
    the value is given by its address; `kept`: nobody writes its memory between the halves of split mode.
    """

    activity: str
    value: int
    shadows: tuple[int, ...] = ()
    stride: int = -1
    byref: bool = False
    kept: bool = False


@dataclass(slots=True)
class _Said:
    """What the annotations in front of an argument say."""

    activity: str = ""
    stride: int = -1
    byref: bool = False
    kept: bool = False


@dataclass(slots=True)
class DerivativeCall:
    """One call: `function` differentiated in `mode` (see names.py); `sret`: the call's argument for its result."""

    instr: Instruction
    function: Function
    mode: str
    where: str
    result: Result
    parameters: list[Parameter] = field(default_factory=list)
    switches: set[str] = field(default_factory=set)
    sret: int = -1
    room: int = 0  # bytes behind it
    width: int = 1
    seed: tuple[int, ...] = ()  # the arguments with the result's cotangents, one for each register, lane by lane
    found: Found = field(default_factory=Found)  # the numbers in the result; known when the function was analysed
    tape: int = -1  # the argument with the tape, or with its address
    tape_in_memory: bool = False
    untaped: bool = False  # the tape is NULL: memory holds what it held when the function ran
    through: int = -1  # the argument with the function, where `function` is only one of several
    scratch: tuple[int, ...] = ()  # constant parameters whose own memory is their shadow, under runtime activity
    number: int = 0  # of the derivative, by which a tape is known
    thrower: str = ""  # throws what left the function; empty when nothing does

    def throw(self, thrower: str) -> None:
        """Name the function that throws what left the function; "" where nothing did."""
        self.thrower = thrower

    def made(self, scratch: tuple[int, ...], thrower: str, found: Found, number: int) -> None:
        """What is known of the call once its derivative is there."""
        self.scratch, self.thrower, self.found, self.number = scratch, thrower, found, number

    @property
    def forward(self) -> bool:
        """Tangents are computed."""
        return self.mode in ("forward", "tangent")

    @property
    def split(self) -> bool:
        """It is one half of a derivative."""
        return self.mode in SPLIT

    @property
    def derivation(self) -> str:
        """The mode of the derivative that is made for it: both halves are made at once."""
        return {"sweep": "augment", "record": "tangent"}.get(self.mode, self.mode)


def is_float(type_: ty.Type) -> bool:
    """A number of floating point, or a vector of them (two floats of a struct in one register)."""
    return isinstance(type_.scalar, ty.FloatType) and not isinstance(type_, ty.StructType | ty.ArrayType)


def argument_name(formal: Argument, function: Function) -> str:
    """A parameter in messages."""
    return f"parameter {formal.index + 1}{f' `{formal.name}`' if formal.name else ''} of `{function.name}`"


class Reader:
    """Goes through the arguments of one call of the notation."""

    def __init__(self, module: Module, caller: Function, instr: Instruction) -> None:
        line = locate(module, instr)
        self.module = module
        self.caller = caller
        self.where = f"@{caller.name}{f' ({line})' if line else ''}"
        self.instr = instr
        self.args: Sequence[Value] = instr.args
        self.family = family(instr.callee_name) or ""
        self.at = 0
        self.end = len(self.args)
        self.through = -1  # the argument that says which of several functions is differentiated
        self.shadow_at = -1  # with enzyme_interleave: where the next shadow stands

    def refuse(self, what: str, because: str, fix: str) -> IRGradError:
        """The error for this call."""
        return Unsupported(what, where=self.where, which=instruction_to_text(self.instr).strip(), because=because,
                           fix=fix)

    def function(self) -> Function:
        """The differentiated function, which is the first argument."""
        function = resolve(self.args[self.at]) if self.at < self.end else None
        chosen = _one_of(function)
        if chosen:
            function, self.through = chosen[0], self.at
            other = next((fn for fn in chosen if fn.ftype is not function.ftype), None)
            if other is not None:
                raise self.refuse("functions of different types are differentiated in one call",
                                  f"`{function.name}` is a `{function.ftype}`, `{other.name}` a `{other.ftype}`",
                                  "make one call for each")
        if not isinstance(function, Function):
            raise self.refuse("the differentiated function is not known when compiling",
                              "the first argument of the call is not the name of a function",
                              "give the function itself: __enzyme_autodiff((void *)f, ...)")
        if function.is_declaration:
            raise self.refuse(f"`{function.name}` has no body", "it is only declared in this program",
                              f"add the file that defines it: irgrad run main.c {function.name}.c"
                              "   or   compile all files with -flto")
        self.at += 1
        return function

    def take(self, what: str) -> int:
        """The number of the next argument."""
        if self.at >= self.end:
            raise self.refuse("too few arguments", f"{what} is missing",
                              "pass each parameter's value, and its shadow behind it unless it is enzyme_const")
        if annotation(self.args[self.at]):
            raise self.refuse(f"enzyme_{annotation(self.args[self.at])} stands where an argument is wanted",
                              f"{what} is missing", "pass each parameter's value, and its shadow behind it")
        self.at += 1
        return self.at - 1

    def take_shadow(self, what: str) -> int:
        """The number of the next shadow's argument."""
        if self.shadow_at < 0:
            return self.take(what)
        if self.shadow_at >= len(self.args):
            raise self.refuse("too few arguments", f"{what} is missing",
                              "behind enzyme_interleave stand the shadows of all parameters that are not enzyme_const")
        self.shadow_at += 1
        return self.shadow_at - 1

    def constant(self, what: str) -> int:
        """The next argument, a number that is known when compiling."""
        value = self.args[self.take(what)]
        if not isinstance(value, ConstInt):
            raise self.refuse(f"{what} is not known when compiling", f"it is a `{value.type}` that is computed",
                              "write a number")
        return value.value


class _Parser(Reader):
    """Reads one call that becomes a call of a derivative."""

    def parse(self) -> DerivativeCall:
        """The call, or an error that names its source line."""
        mode = DERIVATIVES.get(self.family)
        if mode is None:
            raise self.refuse(f"`{self.family}` is not supported",
                              f"supported are {', '.join((*DERIVATIVES, *PLAIN))}", "write the call with one of those")
        assert self.instr.call is not None
        attrs = self.instr.call.arg_attrs
        sret = 0 if attrs and "sret" in attrs[0] else -1
        self.at = sret + 1
        function = self.function()
        call = DerivativeCall(self.instr, function, mode, self.where, result_of(function, self.module), sret=sret,
                              room=room_of(attrs[0], self.module) if sret == 0 else 0)
        call.through = self.through
        self._ahead(call)
        self._parameters(call)
        self._behind(call)
        if all(p.activity == "const" for p in call.parameters):
            raise self.refuse("there is nothing to differentiate", f"all parameters of `{function.name}` are constant: "
                              "integers are, and what enzyme_const stands before" if call.parameters else
                              f"`{function.name}` has no parameters",
                              "leave out enzyme_const before what the derivative is wanted of")
        return call

    def _ahead(self, call: DerivativeCall) -> None:
        """What is said about the call as a whole, wherever it stands."""
        words = [annotation(arg) for arg in self.args]
        if words.count("width") > 1:
            raise self.refuse("enzyme_width stands twice", "a call has one number of lanes", "leave one of them out")
        if "width" in words:
            start, self.at = self.at, words.index("width") + 1
            call.width = self.constant("the number behind enzyme_width")
            self.at = start
            if not 1 <= call.width <= MOST:
                raise self.refuse(f"enzyme_width is {call.width}", f"it is a number from 1 to {MOST}",
                                  "make several calls")
        if "interleave" in words:
            self.end = words.index("interleave")
            self.shadow_at = self.end + 1
        call.switches |= set(words) & SWITCHES

    def _parameters(self, call: DerivativeCall) -> None:
        """All parameters; the registers of one struct stand next to each other, values first."""
        formals = [f for f in call.function.args if "sret" not in f.attrs]
        at = 0
        while at < len(formals):
            group = [formals[at], *(f for f in formals[at + 1:] if _of_one(formals[at], f))]
            for formal in group:
                self._supported(formal, call.function)
            at += len(group)
            self._group(call, group)

    def _supported(self, formal: Argument, function: Function) -> None:
        type_ = formal.type
        if not (is_float(type_) or isinstance(type_, ty.PtrType | ty.IntType)):
            raise self.refuse(f"{argument_name(formal, function)} cannot be differentiated in this notation",
                              f"it is a `{type_}`", "pass numbers by value and everything else by pointer")

    def _group(self, call: DerivativeCall, group: list[Argument]) -> None:
        said = self._annotations(call)
        names = [argument_name(formal, call.function) for formal in group]
        kinds = [self._activity(call, said.activity, formal, name)
                 for formal, name in zip(group, names, strict=True)]  # fmt: skip
        values = [self.take(f"the value of {name}") for name in names]
        with_shadow = any(kind.startswith("dup") for kind in kinds)
        shadows: list[tuple[int, ...]] = [() for _ in group]
        if with_shadow:
            lanes = 1 if said.stride >= 0 else call.width
            rows = [[self.take_shadow(f"the shadow of {name}") for name in names] for _ in range(lanes)]
            shadows = [tuple(row[i] for row in rows) for i in range(len(group))]
        for formal, name, kind, value, own in zip(group, names, kinds, values, shadows, strict=True):
            self._check_shadows(call, formal, name, own, said.stride)
            call.parameters.append(Parameter(kind, value, own, said.stride if own else -1, said.byref,
                                             said.kept))  # fmt: skip

    def _check_shadows(
        self, call: DerivativeCall, formal: Argument, name: str, own: Sequence[int], stride: int
    ) -> None:
        pointer = isinstance(formal.type, ty.PtrType)
        for shadow in own:
            if isinstance(self.args[shadow].type, ty.PtrType) is not pointer:
                raise self.refuse(f"the shadow of {name} is a `{self.args[shadow].type}`",
                                  f"the parameter is a `{formal.type}`", "put the shadow right behind the value")
            assert self.instr.call is not None
            attrs = self.instr.call.arg_attrs
            if pointer and not call.forward and shadow < len(attrs) and "byval" in attrs[shadow]:
                raise self.refuse(f"the gradient of {name} would be lost",
                                  "the struct that receives it is passed by value, which is a copy",
                                  "pass the struct by pointer")
        if stride >= 0 and own and not pointer:
            raise self.refuse(f"{name} has a stride and is a `{formal.type}`", "enzyme_dupv is for pointers",
                              "enzyme_dup and one value for each lane")

    def _activity(self, call: DerivativeCall, said: str, formal: Argument, name: str) -> str:
        type_, part = formal.type, ".coerce" in (formal.name or "")
        default = "const" if isinstance(type_, ty.IntType) else "dup"
        if is_float(type_) and not call.forward:
            default = "out"
        activity = (said or default).removesuffix("v")
        if isinstance(type_, ty.IntType) and type_.bits > 32 and part and said != "const" and not call.forward:
            raise self.refuse(f"{name} cannot receive a gradient",
                              "it is part of a struct that is passed by value, in a register for integers",
                              "pass the struct by pointer, or enzyme_const before it")
        if isinstance(type_, ty.IntType) and part and said != "const" and call.forward:
            return "dup"  # it may hold numbers
        if activity == "const":
            return activity
        if isinstance(type_, ty.IntType):
            if part:
                return "const"
            raise self.refuse(f"{name} has no derivative", f"it is an integer, and enzyme_{activity} stands before it",
                              "enzyme_const")
        wanted = "out" if is_float(type_) and not call.forward else "dup"
        if not activity.startswith(wanted):
            raise self.refuse(
                f"enzyme_{activity} does not fit {name}",
                f"in {'forward' if call.forward else 'reverse'} mode a {'number' if is_float(type_) else 'pointer'} is "
                f"enzyme_{wanted} or enzyme_const",
                f"enzyme_{wanted}")
        return activity

    def _annotations(self, call: DerivativeCall) -> _Said:
        """What is said about the next argument; what is said about the call on the way is noted."""
        said = _Said()
        while self.at < self.end and (word := annotation(self.args[self.at])):
            self.at += 1
            if word in ACTIVITIES:
                said.activity = word
                if word.endswith("v"):
                    said.stride = self.take(f"the stride behind enzyme_{word}")
            elif word == "not_overwritten":
                said.kept = True
            elif word == "byref":
                said.byref = self.constant("the number of bytes behind enzyme_byref") > 0
            elif word in VALUED:
                self._valued(call, word)
            elif word in SWITCHES:
                call.switches.add(word)
            else:
                self._unknown(word)
        return said

    def _unknown(self, word: str) -> None:
        if word in BATCH:
            raise self.refuse(f"`enzyme_{word}` does not belong to `{self.family}`",
                              "it is an annotation of __enzyme_batch", "leave it out")
        known = sorted(ACTIVITIES | SWITCHES | VALUED | {"interleave", "not_overwritten"})
        raise self.refuse(f"`enzyme_{word}` is not an annotation", f"known are {', '.join(known)}",
                          "correct its name, or leave it out")

    def _valued(self, call: DerivativeCall, word: str) -> None:
        if word == "width":
            self.at += 1
        elif word == "tape":
            call.tape, call.tape_in_memory = self.take("the address of the tape"), True
            if not isinstance(self.args[call.tape].type, ty.PtrType):
                raise self.refuse("enzyme_tape is not followed by an address",
                                  f"it is followed by a `{self.args[call.tape].type}`", "enzyme_tape, &tape")
        elif word == "allocated":
            size = self.args[self.take("the number of bytes behind enzyme_allocated")]
            if isinstance(size, ConstInt) and size.value < _POINTER:
                raise self.refuse("the memory for the tape is too small",
                                  f"enzyme_allocated says {size.value} bytes, and {_POINTER} are needed",
                                  "as many bytes as __enzyme_augmentsize returns")

    def _behind(self, call: DerivativeCall) -> None:
        """The cotangent of the result and the tape; nothing else is left."""
        self._annotations(call)
        numbers = call.result.active or call.result.packed
        if call.mode == "sweep" and numbers and "const_return" not in call.switches:
            self._seed(call)
        if call.mode in ("sweep", "tangent"):
            self._annotations(call)
            if call.tape < 0:
                call.tape = self.take("the tape that __enzyme_augmentfwd returned")
                call.untaped = call.mode == "tangent" and isinstance(self.args[call.tape], ConstZero)
            self._annotations(call)
        left = (len(self.args) - self.shadow_at if self.shadow_at >= 0 else 0) + self.end - self.at
        if left:
            raise self.refuse(f"too many arguments for `{call.function.name}`",
                              f"{left} {'is' if left == 1 else 'are'} left behind its "
                              f"{len(call.function.args)} parameters",
                              "a pointer takes its shadow with it, unless enzyme_const stands before it")


    def _seed(self, call: DerivativeCall) -> None:
        """The result's cotangent, which may be left out: as many arguments as the result has registers."""
        wanted = len(call.result.registers)
        pointer = isinstance(call.result.registers[0], ty.PtrType)
        if self.at >= self.end - (pointer and call.tape < 0):
            return
        if isinstance(self.args[self.at].type, ty.PtrType) is not pointer:
            return
        part = f" ({wanted} registers)" if wanted > 1 else ""
        lanes = f" of each of {call.width} lanes" if call.width > 1 else ""
        what = f"the cotangent of the result{lanes}{part}"
        call.seed = tuple(self.take(what) for _ in range(wanted * call.width))


def _one_of(value: Value | None, depth: int = 4) -> list[Function]:
    """The functions among which the program chooses (`c ? f : g`); empty for anything else."""
    if not isinstance(value, Instruction) or value.opcode not in ("select", "phi") or not depth:
        return []
    found: list[Function] = []
    for operand in value.operands[1:] if value.opcode == "select" else value.operands:
        leaf = resolve(operand)
        more = [leaf] if isinstance(leaf, Function) else _one_of(leaf, depth - 1)
        if not more:
            return []
        found += more
    return found


def _of_one(first: Argument, other: Argument) -> bool:
    """Registers of one struct: the compiler calls them `p.coerce0`, `p.coerce1`."""
    name, _, number = (first.name or "").partition(".coerce")
    return number == "0" and (other.name or "").startswith(f"{name}.coerce")


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


def refuse_packed_halves(text: str, call: DerivativeCall) -> None:
    """Raise Unsupported where a struct passed by value in a register of 32 bits may hold numbers of 16, in a call that
    would return no gradient for them."""
    formals = [f for f in call.function.args if "sret" not in f.attrs]
    for formal, said in zip(formals, call.parameters, strict=False):
        type_, before = formal.type, call.instr.args[max(said.value - 1, 0)]
        packed = isinstance(type_, ty.IntType) and type_.bits <= 32 and ".coerce" in (formal.name or "")
        if not packed or call.forward or annotation(before) == "const":
            continue
        if _HALVES.search(restrict(text, [call.function.name or ""])):
            raise Unsupported(f"{argument_name(formal, call.function)} cannot receive a gradient", where=call.where,
                              which=instruction_to_text(call.instr).strip(),
                              because="it is a struct that is passed by value, in a register for integers, and may "
                                      "hold numbers of 16 bits",
                              fix="pass the struct by pointer, or enzyme_const before it")  # fmt: skip
