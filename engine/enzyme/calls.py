"""The calls `__enzyme_autodiff(f, ...)` of a program, read: which function, and what is said about each argument.

What is read are the calls that become calls of a derivative; `plain.py` has those that do not. In a call stand, in this
order: the function; for each of its parameters the value and, where the parameter is dup, the shadow (with
enzyme_width W of them, or one and a stride); in the second half of split mode the result's cotangent and the tape.
Annotations stand in front of what they speak about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.layout.lanes import MOST
from irgrad.engine.differentiate.layout.leaves import has_pointer
from irgrad.engine.enzyme.names import (
    ACTIVITIES,
    BATCH,
    DERIVATIVES,
    PLAIN,
    PREFIX,
    ROUNDING,
    SPLIT,
    SWITCHES,
    VALUED,
    annotation,
    family,
)
from irgrad.engine.enzyme.results import Found, Result, result_of
from irgrad.engine.enzyme.structs import (
    Given,
    begins_with_pointer,
    bytes_of,
    held,
    is_part,
    offsets,
    pointee,
    spread,
    together,
)
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
from irgrad.rules.errors import IRGradError, Unsupported

__all__ = ["PREFIX", "DerivativeCall", "Parameter", "Reader", "family", "find", "parse", "used"]

_IN_REGISTERS = 16  # bytes of the largest struct that is passed so
_POINTER = 8  # bytes of the tape that a program sees


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the differentiated function: its activity, and where the call has its value and its shadows or
    tangents.

    `stride`: the argument that says how many bytes lie between the shadows, of which only the first is given; `kept`:
    nobody writes its memory between the halves of split mode; `held`: the struct that it holds in memory of its own;
    `part`: it is a register of a struct, whose bytes from `at` on it has, or such a struct; `places`: pointers are in
    that struct.
    """

    activity: str
    value: Given
    shadows: tuple[Given, ...] = ()
    stride: int = -1
    kept: bool = False
    held: ty.Type | None = None
    part: bool = False
    at: int = 0
    places: bool = False


@dataclass(slots=True)
class _Said:
    """What the annotations in front of an argument say."""

    activity: str = ""
    stride: int = -1
    byref: int = 0  # bytes at the address that is given
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
    stored: ty.Type | None = None  # what is behind it
    width: int = 1
    seed: tuple[Given, ...] = ()  # the arguments with the result's cotangents, one for each register, lane by lane
    found: Found = field(default_factory=Found)  # the numbers in the result; known when the function was analysed
    tape: int = -1  # the argument with the tape, or with its address
    tape_in_memory: bool = False
    untaped: bool = False  # the tape is NULL: memory holds what it held when the function ran
    through: int = -1  # the argument with the function, where `function` is only one of several
    scratch: tuple[int, ...] = ()  # constant parameters whose own memory is their shadow, under runtime activity
    number: int = 0  # of the derivative, by which a tape is known
    thrower: str = ""  # throws what left the function; empty when nothing does
    apart: frozenset[int] = frozenset()  # parameters that lead to memory of their own, see apart.py
    elements: tuple[str, ...] = ()  # floats that its arguments lead to, see float_memory.py

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
    name = (formal.name or "").partition(".coerce")[0]
    return f"parameter {formal.index + 1}{f' `{name}`' if name else ''} of `{function.name}`"


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
        assert instr.call is not None
        self.attrs = [*instr.call.arg_attrs, *[""] * (self.end - len(instr.call.arg_attrs))]

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

    def size_at(self, number: int) -> int:
        """The bytes of a struct that the call has in memory of its own; 0 for any other argument."""
        kind = pointee(self.module, self.attrs[number], "byval") if number < len(self.args) else None
        return ty.size_of(kind) if kind is not None else 0

    def given(
        self, what: str, kinds: Sequence[ty.Type], whole: ty.Type | None, *, byref: bool = False, shadow: bool = False,
        part: bool = True,
    ) -> list[Given]:
        """Where each register of the next value is, or the one struct in memory (`whole`). `shadow`: it is a shadow,
        which may be given by its address."""
        take = self.take_shadow if shadow else self.take
        first = take(what)
        size, have = self.size_at(first), self.args[first].type
        wanted = ty.size_of(whole) if whole is not None else bytes_of(kinds)
        if size and not (size == wanted if whole is not None else wanted <= size <= spread(kinds)):
            raise self.refuse(f"argument {first + 1} is a struct of {size} bytes", f"{what} has {wanted}",
                              "pass a value of the parameter's own type")
        pointer = isinstance(have, ty.PtrType) and not size
        by_address = pointer and shadow and part and not isinstance(kinds[0], ty.PtrType)
        if whole is not None:
            by_address = pointer and not (wanted <= _IN_REGISTERS and begins_with_pointer(whole))
        if size or byref or by_address:
            return [Given((first,), True, at, part) for at in (offsets(kinds) if whole is None else [0])]
        found = [first]
        if whole is None:
            found += [take(what) for _ in kinds[1:]]
            return [Given((number,), bits=part) for number in found]
        while spread([self.args[number].type for number in found]) < wanted:
            found.append(take(what))
        return [Given(tuple(found), bits=True)]

    def constant(self, what: str) -> int:
        """The next argument, a number that is known when compiling."""
        value = self.args[self.take(what)]
        if not isinstance(value, ConstInt):
            raise self.refuse(f"{what} is not known when compiling", f"it is a `{value.type}` that is computed",
                              "write a number")
        return value.value


class _Parser(Reader):
    """Reads one call that becomes a call of a derivative. `addressed`: behind structs of which nothing is said stand
    the addresses of their gradients."""

    addressed = False

    def parse(self) -> DerivativeCall:
        """The call, or an error that names its source line."""
        mode = DERIVATIVES.get(self.family)
        if mode is None:
            raise self.refuse(f"`{self.family}` is not supported",
                              f"supported are {', '.join((*DERIVATIVES, *PLAIN))}", "write the call with one of those")
        sret = 0 if "sret" in self.attrs[0] else -1
        self.at = sret + 1
        function = self.function()
        call = DerivativeCall(self.instr, function, mode, self.where, result_of(function, self.module), sret=sret,
                              stored=pointee(self.module, self.attrs[0], "sret"))
        call.through = self.through
        self._ahead(call)
        if self.family == ROUNDING:
            call.switches.add("rounding")
            if call.width > 1:
                raise self.refuse("several error estimates at once are not supported",
                                  "enzyme_width stands in the call", "make several calls")
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
            said = self._annotations(call)
            whole = held(self.module, formals[at])
            group = together(formals, at, said.byref or self.size_at(self.at)) if whole is None else [formals[at]]
            for formal in group:
                self._supported(formal, call.function)
            at += len(group)
            self._group(call, said, group, whole)

    def _supported(self, formal: Argument, function: Function) -> None:
        type_ = formal.type
        if not (is_float(type_) or isinstance(type_, ty.PtrType | ty.IntType)):
            raise self.refuse(f"{argument_name(formal, function)} cannot be differentiated in this notation",
                              f"it is a `{type_}`", "pass numbers by value and everything else by pointer")

    def _group(self, call: DerivativeCall, said: _Said, group: list[Argument], whole: ty.Type | None) -> None:
        kinds, name = [formal.type for formal in group], argument_name(group[0], call.function)
        part = whole is not None or len(group) > 1 or is_part(group[0]) or self.size_at(self.at) > 0
        places = part and any(map(has_pointer, kinds if whole is None else [whole]))
        activity = self._activity(call, said.activity, group[0], name, part=part, places=places)
        values = self.given(f"the value of {name}", kinds, whole, byref=said.byref > 0, part=part)
        shadows: list[list[Given]] = []
        if activity.startswith("dup"):
            shadows = [self.given(f"the shadow of {name}", kinds, whole, shadow=True, part=part)
                       for _ in range(1 if said.stride >= 0 else call.width)]  # fmt: skip
        by_address = all(row[0].memory and not self.size_at(row[0].first) for row in shadows)
        if part and shadows and not (call.forward or by_address or places):
            raise self.refuse(f"the gradient of {name} would be lost",
                              "the struct that receives it is passed by value, which is a copy",
                              "leave the shadow out: the gradient is returned   or   give its address")
        for i, formal in enumerate(group):
            own = tuple(row[i] for row in shadows)
            self._check_shadows(formal, name, own, said.stride, part=part)
            returned = part and own and not (call.forward or by_address) and (whole is not None or not kinds[i].is_ptr)
            call.parameters.append(Parameter(
                "out" if returned else activity, values[i], own, said.stride if own else -1, said.kept, whole, part,
                offsets(kinds)[i], places))  # fmt: skip

    def _check_shadows(self, formal: Argument, name: str, own: Sequence[Given], stride: int, *, part: bool) -> None:
        pointer = isinstance(formal.type, ty.PtrType)
        for shadow in own:
            if not part and isinstance(self.args[shadow.first].type, ty.PtrType) is not pointer:
                raise self.refuse(f"the shadow of {name} is a `{self.args[shadow.first].type}`",
                                  f"the parameter is a `{formal.type}`", "put the shadow right behind the value")
        if stride >= 0 and own and not own[0].memory and not (pointer and not part):
            raise self.refuse(f"{name} has a stride and is a `{formal.type}`", "enzyme_dupv is for pointers",
                              "enzyme_dup and one value for each lane")

    def _activity(
        self, call: DerivativeCall, said: str, formal: Argument, name: str, *, part: bool, places: bool
    ) -> str:
        number, integer = part or is_float(formal.type), isinstance(formal.type, ty.IntType) and not part
        wanted = "out" if number and not places and not call.forward else "dup"
        default = "const" if integer else "dup" if part and self.addressed else wanted
        activity = (said or default).removesuffix("v")
        if activity == "const":
            return activity
        if integer:
            raise self.refuse(f"{name} has no derivative", f"it is an integer, and enzyme_{activity} stands before it",
                              "enzyme_const")
        if not activity.startswith((wanted, "dup") if part else wanted):
            raise self.refuse(
                f"enzyme_{activity} does not fit {name}",
                f"in {'forward' if call.forward else 'reverse'} mode a "
                f"{'number' if number and not places else 'pointer'} is enzyme_{wanted} or enzyme_const",
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
                said.byref = self.constant("the number of bytes behind enzyme_byref")
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
        """The result's cotangent, which may be left out."""
        kinds, kind = call.result.registers, call.result.kind
        pointer = not kinds or isinstance(kinds[0], ty.PtrType)
        if self.at >= self.end - (pointer and call.tape < 0):
            return
        if isinstance(self.args[self.at].type, ty.PtrType) is not pointer and not self.size_at(self.at):
            return
        what = f"the cotangent of the result{f' of each of {call.width} lanes' if call.width > 1 else ''}"
        for _ in range(call.width):
            call.seed += tuple(self.given(what, kinds, None if kinds else kind, part=len(kinds) != 1))



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
    try:
        return _Parser(module, caller, instr).parse()
    except Unsupported:
        again = _Parser(module, caller, instr)
        again.addressed = True
        with suppress(Unsupported):
            return again.parse()
        raise
