"""Two pieces of IR around each call of the notation, as text.

The *root* is the differentiated function in normal form, every argument by pointer. Pointers of a C program may
overlap, so unlike those of a kernel they are marked so. The *thunk* has the prototype of the call and takes its place:
it puts numbers and their adjoints on the stack, seeds the result's cotangent with 1, calls the derivative, and returns
what the call returns.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.memory.objects import BY_VALUE, NUMBER, OPEN, OVERLAPS, RESTRICT
from irgrad.engine.differentiate.forward.replay import TANGENT
from irgrad.engine.differentiate.split import REVERSE
from irgrad.engine.enzyme.calls import DerivativeCall, Parameter, argument_name, used
from irgrad.engine.enzyme.float_memory import formals_of
from irgrad.engine.enzyme.results import ones
from irgrad.engine.enzyme.returned import Declared, Move, Part, Returned, arrange
from irgrad.engine.enzyme.structs import Given, offsets, spread
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Function
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.ir.types import Type
from irgrad.rules.errors import IRGradError, Unsupported

__all__ = ["Thunk", "active", "declarations", "derivatives", "loose", "passing", "root_text", "rounding", "strong"]

def active(call: DerivativeCall) -> list[str]:
    """What `derive` is told about each argument of the root, its result's slot included."""
    kinds = ["const" if p.activity == "const" else "dup" for p in call.parameters]
    if call.result.kind is not None:
        kinds.append("dup" if shadowed(call) else "const")
    return [*kinds, *["const"] * ((call.through >= 0) + bool(call.thrower))]


def shadowed(call: DerivativeCall) -> bool:
    """Whether the result's slot has a shadow. What integers carry is known when the function has been analysed."""
    result = call.result
    both = call.split  # both halves are of one derivative
    return result.active or result.pointer or (result.packed and (both or "const_return" not in call.switches))


def root_text(call: DerivativeCall, name: str) -> str:
    """The function in normal form. A function that is given as a constant argument is called directly."""
    params, loads, args = [], [], []
    actual = call.instr.args
    leaves = "" if call.mode == "reverse" else f" {OPEN}"  # the adjoints of fresh memory are zero after the call
    for position, (formal, said) in enumerate(zip(formals_of(call), call.parameters, strict=True)):
        i, type_ = formal.index, formal.type
        if isinstance(type_, ty.PtrType):
            given_memory = f"noalias {NUMBER}" if position in call.apart else OVERLAPS  # no pointers come in there
            given_memory += f" {RESTRICT}" if "noalias" in formal.attrs.split() else ""
            given_memory += "".join(f" {word}" for word in formal.attrs.split() if word.startswith("dereferenceable("))
            params.append(f"ptr {given_memory}{leaves} %a{i}")
            given = actual[said.value.first]
            known = f"@{quoted_name(given.name or '')}" if isinstance(given, Function) else f"%a{i}"
            args.append(f"ptr {passing(formal.attrs)}{known}")
        else:
            added = said.activity == "dup" and not call.forward  # the gradient, to memory of the program
            given_memory = "noalias" + f" {BY_VALUE}" * (said.activity == "const" and type_.is_int)
            params.append(f"ptr {OVERLAPS if added else given_memory} %a{i}")
            loads.append(f"  %v{i} = load {type_}, ptr %a{i}, align {1 if added else ty.align_of(type_)}")
            args.append(f"{type_} {passing(formal.attrs)}%v{i}")
    ret, result = call.function.ftype.ret, call.result
    if result.memory:
        args.insert(0, f"ptr {_sret(call.function)}%ret")
    called = f"@{quoted_name(call.function.name or '')}" if call.through < 0 else "%which"
    target = f"{called}({', '.join(args)})"
    lines = [*loads]
    if result.kind is not None:
        params.append(f"ptr noalias{leaves} %ret")
    if call.through >= 0:
        params.append("ptr %which")
    if ret is ty.VOID:
        lines.append(f"  call {_prototype(call.function)} {target}")
    else:
        lines.append(f"  %r = call {_prototype(call.function)} {target}")
        lines += _stored(ret)
    body = "\n".join(lines)
    return f"define void @{quoted_name(name)}({', '.join(params)}) {{\n{body}\n  ret void\n}}\n"


def _stored(ret: Type) -> list[str]:
    """The store of the result `%r`; of a struct part by part, so that each integer in it is a value of its own."""
    if not isinstance(ret, ty.StructType):
        return [f"  store {ret} %r, ptr %ret, align {ty.align_of(ret)}"]
    lines = []
    for i, (part, at) in enumerate(zip(ret.fields or (), ty.field_offsets(ret), strict=False)):
        lines += [f"  %r{i} = extractvalue {ret} %r, {i}",
                  f"  %r{i}.at = getelementptr i8, ptr %ret, i64 {at}",
                  f"  store {part} %r{i}, ptr %r{i}.at, align {1 if ret.packed else ty.align_of(part)}"]  # fmt: skip
    return lines


def _prototype(function: Function) -> str:
    return str(function.ftype) if function.ftype.vararg else str(function.ftype.ret)


def _sret(function: Function) -> str:
    return f"sret({function.args[0].attrs.split('sret(', 1)[1].split(')', 1)[0]}) "


def passing(attrs: str) -> str:
    """Those attributes of a parameter that say how it is passed."""
    words = attrs.replace(", ", ",").split()
    kept = [word for word in words if word in ("signext", "zeroext") or word.startswith("byval(")]
    aligned = [f"align {words[i + 1]}" for i, word in enumerate(words[:-1]) if word == "align" and kept]
    return "".join(f"{word} " for word in (*kept, *aligned))


class Thunk:
    """Builds the text of one thunk."""

    def __init__(self, call: DerivativeCall, caller: Function) -> None:
        self.call = call
        self.caller = caller
        self.lines: list[str] = []
        self.slots: list[str] = []  # the derivative's arguments

    def text(self, name: str, derivative: str) -> str:
        """The definition of the function that takes the place of the call."""
        gradients = self.arguments()
        returned = self.results(gradients)
        self.which()
        self.in_flight()
        self.lines.append(f"  call void @{quoted_name(derivative)}({', '.join(self.slots)})")
        self.throw()
        self.give_back(returned)
        return self.define(name)

    def which(self) -> None:
        """Adds the function, where the program chooses it."""
        if self.call.through >= 0:
            self.slots.append(f"ptr %a{self.call.through}")

    def in_flight(self) -> None:
        """Adds the place for an exception that leaves the function, the last parameter, and its shadows where what is
        thrown has a derivative."""
        if self.call.thrower:
            place = ty.array(2, ty.PTR)
            self.slots.append(f"ptr {self.slot('in.flight', place, 'zeroinitializer')}")
            if any(i >= len(self.call.parameters) for i in self.call.scratch):
                self.lanes([self.slot(f"in.flight.{i}", place, "zeroinitializer") for i in range(self.call.width)])

    def throw(self) -> None:
        """Throws the exception that left the function."""
        if self.call.thrower:
            self.lines += [
                "  %thing = load ptr, ptr %in.flight, align 8",
                "  %flies = icmp ne ptr %thing, null",
                "  br i1 %flies, label %throw, label %back",
                "throw:",
                f"  call void @{self.call.thrower}(ptr %thing)",
                "  unreachable",
                "back:",
            ]

    def define(self, name: str) -> str:
        """What was written, as a function with the call's prototype."""
        call = self.call
        info = call.instr.call
        assert info is not None
        params = []
        for i, arg in enumerate(call.instr.args):
            attrs = info.arg_attrs[i] if i < len(info.arg_attrs) else ""
            params.append(f"{arg.type} {f'{attrs} ' if i == call.sret else passing(attrs)}%a{i}")
        stack = [line for line in self.lines if " = alloca " in line]  # before any branch: once for each call
        body = "\n".join([*stack, *(line for line in self.lines if " = alloca " not in line)])
        return f"define {call.instr.type} @{quoted_name(name)}({', '.join(params)}) alwaysinline {{\n{body}\n}}\n"

    def refuse(self, what: str, because: str, fix: str) -> IRGradError:
        """The error for this call."""
        return Unsupported(what, where=self.call.where, because=because, fix=fix)

    # -- what goes in ------------------------------------------------------------------------------------------------

    def arguments(self) -> list[Returned]:
        """Adds the slots of the parameters; the gradients that the call returns, in order."""
        call, start = self.call, 0
        structs: dict[int, list[list[Part]]] = {}  # by the first parameter of each: its registers, lane by lane
        closed: set[int] = set()
        for i, (formal, said) in enumerate(zip(formals_of(call), call.parameters, strict=True)):
            start = start if said.at else i
            shadows = self._argument(i, formal, said)
            if said.activity != "out":
                continue
            numbers = call.found.given[i]
            if numbers is None:
                closed.add(start)
            lanes = structs.setdefault(start, [[] for _ in shadows])
            for lane, shadow in zip(lanes, shadows, strict=True):
                lane.append(Part(said.held or formal.type, shadow, said.at, numbers or ()))
        for i in closed:
            if call.parameters[i].places:
                raise self.refuse(f"{argument_name(formals_of(call)[i], call.function)} cannot receive a gradient",
                                  "an integer in this struct may carry numbers, and it is not known which",
                                  "pass the struct by pointer, or enzyme_const before it")
        return [
            Returned(tuple(lane), loose=said.part and said.held is None, alone=said.part and i not in closed,
                     only=said.places)
            for i, lanes in structs.items() for said in [call.parameters[i]] for lane in lanes
        ]  # fmt: skip

    def _argument(self, position: int, formal: Argument, said: Parameter) -> list[str]:
        """Adds the slots of one parameter; where its shadows are."""
        type_, number, lanes = formal.type, formal.index, self.call.width
        if said.held is not None:
            value = self.place(said.value, said.held)
        else:
            value = self.value(said.value, type_)
            value = value if isinstance(type_, ty.PtrType) else self.slot(f"s{number}", type_, value)
        self.slots.append(f"ptr {value}")
        if said.activity == "const":
            if isinstance(type_, ty.PtrType) and position in self.call.scratch:  # nothing there has a derivative
                self.lanes([value] * lanes)
            return []
        kind = said.held or type_
        if not said.shadows:
            shadows = [self.slot(f"d{number}.{lane}", kind, nought(kind)) for lane in range(lanes)]
        elif said.held is None and isinstance(type_, ty.PtrType) and not said.shadows[0].memory:
            shadows = self._strided(said, [self.value(shadow, type_) for shadow in said.shadows])
        elif said.held is not None or said.shadows[0].memory:
            shadows = self._strided(said, [self.place(shadow, kind) for shadow in said.shadows])
            if said.held is None and (self.call.forward or said.activity == "out"):
                shadows = [self.slot(f"d{number}.{lane}", kind, self._load(kind, place))
                           for lane, place in enumerate(shadows)]  # fmt: skip
        else:
            shadows = [self.slot(f"d{number}.{lane}", kind, self.value(shadow, kind))
                       for lane, shadow in enumerate(said.shadows)]  # fmt: skip
        self.lanes(shadows)
        return shadows

    def _strided(self, said: Parameter, shadows: list[str]) -> list[str]:
        """The shadow of each lane."""
        if said.stride < 0:
            return shadows
        step = self.value(Given((said.stride,)), ty.I64)
        rows = [shadows[0]]
        for lane in range(1, self.call.width):
            number = len(self.lines)
            self.lines += [f"  %k{number} = mul i64 {step}, {lane}",
                           f"  %w{number} = getelementptr i8, ptr {shadows[0]}, i64 %k{number}"]  # fmt: skip
            rows.append(f"%w{number}")
        return rows

    def lanes(self, shadows: list[str]) -> None:
        """Adds a shadow to the derivative's arguments: a pointer, or with several lanes an array of them."""
        if len(shadows) == 1:
            self.slots.append(f"ptr {shadows[0]}")
            return
        type_, whole = f"[{len(shadows)} x ptr]", "poison"
        for lane, shadow in enumerate(shadows):
            name = f"%l{len(self.lines)}"
            self.lines.append(f"  {name} = insertvalue {type_} {whole}, ptr {shadow}, {lane}")
            whole = name
        self.slots.append(f"{type_} {whole}")

    def place(self, given: Given, kind: Type) -> str:
        """Memory that holds an argument of the call."""
        if given.memory:
            have = self.call.instr.args[given.first].type
            if not isinstance(have, ty.PtrType):
                raise self.refuse(f"argument {given.first + 1} is a `{have}`", "enzyme_byref stands before it",
                                  "pass the address of the value")
            return self._beside(f"%a{given.first}", given.at)
        kinds = [self.call.instr.args[number].type for number in given.args]
        place = f"%p{given.first}.{len(self.lines)}"
        self.lines.append(f"  {place} = alloca [{max(spread(kinds), ty.size_of(kind))} x i8], align 16")
        for number, have, at in zip(given.args, kinds, offsets(kinds), strict=True):
            self.lines.append(f"  store {have} %a{number}, ptr {self._beside(place, at)}, align 1")
        return place

    def _beside(self, place: str, at: int) -> str:
        if not at:
            return place
        name = f"%b{len(self.lines)}"
        self.lines.append(f"  {name} = getelementptr i8, ptr {place}, i64 {at}")
        return name

    def _load(self, kind: Type, place: str) -> str:
        name = f"%l{len(self.lines)}"
        self.lines.append(f"  {name} = load {kind}, ptr {place}, align 1")
        return name

    def value(self, given: Given, type_: Type) -> str:
        """An argument of the call, as the parameter's type: numbers behind `...` come promoted."""
        number = given.first
        have = self.call.instr.args[number].type
        if given.memory:
            return self._load(type_, self.place(given, type_))
        if have is type_:
            return f"%a{number}"
        name = f"%c{number}.{len(self.lines)}"
        if isinstance(have, ty.FloatType) and isinstance(type_, ty.FloatType):
            op = "fptrunc" if ty.store_size(have) > ty.store_size(type_) else "fpext"
        elif given.bits and spread([have]) == spread([type_]):  # part of a struct, in another kind of register
            return self._load(type_, self.place(given, type_))
        elif isinstance(have, ty.IntType) and isinstance(type_, ty.IntType):
            op = "trunc" if have.bits > type_.bits else "sext"
        else:
            raise self.refuse(f"argument {number + 1} is a `{have}`",
                              f"`{self.call.function.name}` takes a `{type_}` there", "convert it in the call")
        self.lines.append(f"  {name} = {op} {have} %a{number} to {type_}")
        return name

    def seeds(self, kind: Type) -> list[str]:
        """The result's cotangents, which the call gives; empty where it does not."""
        size = max(len(self.call.result.registers), 1)
        given = self.call.seed
        return [self._seed(kind, given[at : at + size]) for at in range(0, len(given), size)]

    def _seed(self, kind: Type, given: Sequence[Given]) -> str:
        if not isinstance(kind, ty.StructType) or self.call.result.memory:
            return self.value(given[0], kind)
        whole = "poison"
        for i, (part, type_) in enumerate(zip(given, kind.fields or (), strict=True)):
            value, name = self.value(part, type_), f"%k{len(self.lines)}"
            self.lines.append(f"  {name} = insertvalue {kind} {whole}, {type_} {value}, {i}")
            whole = name
        return whole

    def slot(self, name: str, type_: Type, start: str) -> str:
        """Memory on the stack that holds a value."""
        align = ty.align_of(type_)
        self.lines.append(f"  %{name} = alloca {type_}, align {align}")
        self.lines.append(f"  store {type_} {start}, ptr %{name}, align {align}")
        return f"%{name}"

    # -- what comes out ----------------------------------------------------------------------------------------------

    def results(self, gradients: list[Returned]) -> list[Returned]:
        """Adds the slots of the result; the values that the call returns, in order."""
        kind, switches, forward = self.call.result.kind, self.call.switches, self.call.forward
        if kind is None:
            if "primal_return" in switches:
                raise self.refuse("enzyme_primal_return has no value to return",
                                  f"`{self.call.function.name}` returns `{self.call.function.ftype.ret}`",
                                  "leave it out, or differentiate a function that returns a number")  # fmt: skip
            return gradients
        primal, shadows = self.result_slots(kind, seeded=not forward and "const_return" not in switches)
        shown = [self.result(primal)] if "primal_return" in switches else []
        tangents = [self.result(shadow) for shadow in shadows]
        if not forward or "const_return" in switches or not self._given_back():
            tangents = []
        return [*shown, *tangents, *gradients]

    def result_slots(self, kind: Type, *, seeded: bool, seeds: Sequence[str] = ()) -> tuple[str, list[str]]:
        """The result's slot and those of its tangents or cotangents, which `seeded` ones start from 1."""
        primal = self.slot("r", kind, nought(kind))
        self.slots.append(f"ptr {primal}")
        if not shadowed(self.call):
            return primal, []
        starts = seeds or [nought(kind)] * self.call.width
        shadows = [self.slot(f"dr.{lane}", kind, start) for lane, start in enumerate(starts)]
        if seeded and not seeds:
            self._check_numbers()
        for shadow in shadows if seeded and not seeds else ():
            for offset, part in self.call.found.numbers:
                at = f"{shadow}.at{offset}"
                self.lines += [f"  {at} = getelementptr i8, ptr {shadow}, i64 {offset}",
                               f"  store {part} {ones(part)}, ptr {at}, align {ty.align_of(part)}"]  # fmt: skip
        self.lanes(shadows)
        return primal, shadows

    def _given_back(self) -> bool:
        """Whether the result has a tangent that the call returns."""
        found = self.call.found
        return bool(found.numbers) or found.problem is not None or self.call.result.pointer

    def _check_numbers(self) -> None:
        """A cotangent of ones can be made, and goes somewhere."""
        call = self.call
        if call.found.problem is not None:
            problem = call.found.problem
            where = f"{problem.where}, " if problem.where else ""
            raise Unsupported(problem.what, where=f"{where}differentiated by {call.where}", which=problem.which,
                              because=problem.because, fix=problem.fix)
        if not (call.found.numbers or call.result.pointer or any(p.shadows for p in call.parameters)):
            raise self.refuse("there is nothing to differentiate", f"`{call.function.name}` returns an integer that "
                              "carries no numbers, and no parameter has a shadow",
                              "return numbers, or store them through a pointer that is enzyme_dup")

    def result(self, slot: str) -> Returned:
        """The result, or what has its type, which is in this memory, as a value to return."""
        kind, numbers = self.call.result.kind, self.call.found.numbers
        assert kind is not None
        kinds = self.call.result.registers or (kind,)
        parts = []
        for part, at in zip(kinds, offsets(kinds), strict=True):
            own = tuple((to - at, number) for to, number in numbers if 0 <= to - at < ty.size_of(part))
            parts.append(Part(part, slot, at, own, at))
        return Returned(tuple(parts), loose=not self.call.result.memory)

    def give_back(self, values: list[Returned], *, more: bool = False) -> None:
        """Ends the thunk with these values; `more`: the declared result may have room for others."""
        call, ret = self.call, self.call.instr.type
        if call.sret >= 0:
            moves = arrange(values, Declared(call.stored, memory=True, more=more))
            room = f"a struct of {ty.size_of(call.stored)} bytes" if call.stored is not None else "a struct"
            self._check(moves is not None, room, values)
            self._move(moves or [], f"%a{call.sret}")
            self.lines.append("  ret void")
            return
        wanted = any(not value.nothing for value in values)
        if ret is ty.VOID:
            written = any(said.shadows for said in call.parameters)  # the rest is dropped, as the program says
            self._check(more or call.forward or not wanted or written, "nothing", values)
            self.lines.append("  ret void")
            return
        moves = arrange(values, Declared(ret, memory=False, more=more))
        self._check(moves is not None or not used(self.caller, call.instr), f"a `{ret}`", values)
        if not moves:
            self.lines.append(f"  ret {ret} {nought(ret)}")
            return
        extent = max(ty.size_of(ret), *(at + ty.size_of(kind) for at, kind, _, _ in moves))
        self.lines.append(f"  %out = alloca [{extent} x i8], align 16")
        self._move(moves, "%out")
        self.lines += [f"  %whole = load {ret}, ptr %out, align 16", f"  ret {ret} %whole"]

    def _move(self, moves: Sequence[Move], where: str) -> None:
        for to, type_, slot, back in moves:
            value = self._load(type_, self._beside(slot, back))
            place = self._beside(where, to)
            self.lines.append(f"  store {type_} {value}, ptr {place}, align 1")

    def _check(self, fits: bool, result: str, values: list[Returned]) -> None:
        if fits:
            return
        found = ", ".join(f"`{value}`" for value in values) or "nothing"
        raise self.refuse(f"the result of the call is {result}",
                          f"the derivative of `{self.call.function.name}` returns {found}",
                          "declare the call with a result of that type: one number, or a struct of them in order")


def strong(call: DerivativeCall) -> bool:
    """Whether zero times anything is to be zero."""
    return "strong_zero" in call.switches


def loose(call: DerivativeCall) -> bool:
    """Whether a shadow may be the value's own memory."""
    return "runtime_activity" in call.switches


def rounding(call: DerivativeCall) -> bool:
    """Whether rounding errors are estimated."""
    return "rounding" in call.switches


def derivatives(call: DerivativeCall, derivative: str) -> list[str]:
    """The functions that one derivation makes for a call."""
    return [derivative, derivative + second(call)] if call.split else [derivative]


def second(call: DerivativeCall) -> str:
    """The ending of the name of a second half."""
    return TANGENT if call.derivation == "tangent" else REVERSE


def declarations(call: DerivativeCall, derivative: str) -> str:
    """Their declarations."""
    slots = []
    shadow = "ptr" if call.width == 1 else f"[{call.width} x ptr]"
    for i, kind in enumerate(active(call)):
        slots += ["ptr", shadow] if kind == "dup" or i in call.scratch else ["ptr"]
    if not call.split:
        thrower = f"declare void @{call.thrower}(ptr)\n" if call.thrower else ""
        return f"declare void @{derivative}({', '.join(slots)})\n{thrower}"
    tail = ", ".join([*slots, "ptr"])
    return f"declare {{ ptr }} @{derivative}({tail})\ndeclare void @{derivative}{second(call)}({tail})\n"


def nought(type_: Type) -> str:
    """A zero."""
    return "zeroinitializer" if not isinstance(type_, ty.PtrType) else "null"
