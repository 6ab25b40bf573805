"""Derivatives of calls that a rule with `ctx` gives, as functions of the same shape as those of callees with a body.

    forward     {T, T'} f.fwd(args, tangents)                    the call, then what the body emits
    augmented   {T, tape} f.aug(args, arena)                     the call, and a record of what the body wants kept
    reverse     {adjoints} f.rev(args, shadows, t^, tape)        what the body emits

The body runs once, to write the reverse function; what it asked for is then saved by the augmented one. Counts of what
is saved are computed from the arguments: their instructions are copied from the one function to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irgrad.engine.analyses.effects import facts_of
from irgrad.engine.analyses.rulebook import Site
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    CASTS,
    INT_BINARY,
    Argument,
    Constant,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.transforms.apart import Apart
from irgrad.engine.transforms.context import Context
from irgrad.engine.transforms.rule_arguments import make_argument, make_result
from irgrad.engine.transforms.rule_batches import mark, taped
from irgrad.engine.transforms.rule_lanes import Held, each_lane
from irgrad.engine.transforms.symbols import Code, Scalar, ir_type, size_of
from irgrad.engine.transforms.unit import pair
from irgrad.rules.errors import RuleError
from irgrad.rules.types import Active, Duplicated, DuplicatedNoNeed

if TYPE_CHECKING:
    from irgrad.engine.transforms.unit import Unit

__all__ = ["Pair", "Shape", "Writer", "forward_of", "reverse_of", "shape_of"]

_PURE = INT_BINARY | CASTS | frozenset(("icmp", "select", "freeze"))


@dataclass(frozen=True, slots=True)
class Shape:
    """Which arguments have an adjoint (numbers) or a shadow (pointers), and whether the result is active."""

    adjoint: tuple[bool, ...]
    shadow: tuple[bool, ...]
    active: bool


@dataclass(slots=True)
class Pair:
    """The two functions of a call in reverse mode; `used`: arguments of the call that the reverse one reads."""

    shape: Shape
    augmented: Function
    reverse: Function
    used: frozenset[int]
    shadows: frozenset[int]
    tape: bool
    takes_shadows: bool  # the augmented one


def shape_of(site: Site) -> Shape:
    """The shape of the derived functions of a call."""
    rest = site.types[2:]
    adjoint = tuple(issubclass(t, Active) for t in rest)
    return Shape(adjoint, tuple(issubclass(t, Duplicated) for t in rest), issubclass(site.types[1], Active))


@dataclass(slots=True)
class _Request:
    """Something to be kept for the reverse function: a value of the call, or a copy of memory."""

    kind: str  # "value": by reference; "result"; "before", "after": memory; "nothing": a tape of batches
    position: int
    type: ty.Type
    bytes: Value | None
    slot: int


class Writer:
    """Writes one derived function by running the body of a rule."""

    def __init__(self, unit: Unit, site: Site, clobbered: Callable[[int, str], bool], mode: str) -> None:
        self.unit = unit
        self.site = site
        self.mode = mode
        self.width = unit.width
        self.lanes = site.rule.lanes  # the body gets all tangents or cotangents at once, see rule_lanes.py
        self.shape = shape_of(site)
        self.clobbered = clobbered
        assert site.call.call is not None
        self.fn_type = site.call.call.fn_type
        self.params = [a.type for a in site.call.args]
        self.requests: list[_Request] = []
        self.values: dict[int, Value] = {}  # argument of the call -> argument of the function that is written
        self.shadows: dict[int, Value] = {}
        self.arguments: list[Any] = []
        self.code: Code
        self._result: Any = None
        self._cotangent: Value | None = None
        self._tape: Value | None = None
        self.held: dict[int, Held] = {}  # derivatives of numbers by lanes, where the body runs lane after lane
        self.held_result: Held | None = None
        self.lane: Scalar | None = None  # the lane of which the body is written, where it is one of many
        self.value_slot: Value | None = None  # the value of a call that the body makes itself in each lane
        self.replaced: Value | None = None  # what makes the call in place of the engine
        facts = facts_of(unit.module, site.callee)
        self.writes = None if facts is None else facts.writes
        self.needs_primal = not self.writes or any(
            not issubclass(site.types[2 + i], DuplicatedNoNeed) for i in self.writes if i < len(site.types) - 2
        )

    # -- what the context asks -----------------------------------------------------------------------------------------

    def overwritten(self, position: int, when: str) -> bool:
        """Whether memory may have changed since `when`."""
        own = when == "before" and (self.writes is None or bool(self.writes))
        if self.mode == "forward":
            return own and self._may_write(position)
        return self.clobbered(position, when)

    def _may_write(self, position: int) -> bool:
        if self.writes is None:
            return True
        pointers, args = self.unit.pointers, self.site.call.args
        return any(pointers.may_alias(args[position], args[i]) for i in self.writes)

    def contents(self, position: int, when: str, count: Any, element: ty.Type | None) -> Value:
        """A pointer to what an argument's memory held before or after the call."""
        direct = self.values[position]
        if not self.overwritten(position, when):
            return direct
        if element is None:
            raise RuleError(f"the elements behind `{self.name(position)}` are not known", where=self.site.rule.place,
                            fix='extern("name", "void(f64* p, ...)")')  # fmt: skip
        code = self.code
        number = code.cast(code.number(count), ty.I64)
        size = code.b.mul(number, ConstInt(ty.I64, size_of(element)))
        if self.mode == "forward":
            return self._copy_before(direct, size)
        return self._kept(_Request(when, position, ty.PTR, size, 0))

    def _copy_before(self, source: Value, size: Value) -> Value:
        """Forward: a copy made before the call, freed at the end."""
        code = self.code
        b = code.before
        length = clone(size, {a: a for a in code.fn.args}, b, set(code.before.block.instructions), self.site)
        malloc = self.unit.declare("malloc", ty.function(ty.PTR, (ty.I64,)), "", "noalias")
        pointer = b.call(malloc, [length])
        self.copy_memory(b, pointer, source, length)
        code.scopes[0].append(pointer)
        return pointer

    def _kept(self, request: _Request) -> Value:
        for known in self.requests:
            if (known.kind, known.position) == (request.kind, request.position) and _same(known.bytes, request.bytes):
                return self._load_slot(known)
        request.slot = len(self.requests)
        self.requests.append(request)
        return self._load_slot(request)

    def _load_slot(self, request: _Request) -> Value:
        assert self._tape is not None
        b = self.code.before
        return b.load(request.type, b.gep(ty.I8, self._tape, 8 * request.slot), align=8)

    def copy_memory(self, b: Builder, target: Value, source: Value, size: Value) -> None:
        """memcpy."""
        ftype = ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
        b.call(self.unit.declare("llvm.memcpy.p0.p0.i64", ftype), [target, source, size, ConstInt(ty.I1, 0)])

    def plain_call(self) -> Any:
        """What the call of the function itself says besides callee and arguments."""
        return _plain_call(self.site)

    def foreign_tape(self) -> Value:
        """The tape of an augmented function in C."""
        return self._kept(_Request("tape", -1, ty.PTR, None, 0))

    def result(self) -> Any:
        """The result of the call as the body sees it."""
        if self._result is None:
            if self.fn_type.ret is ty.VOID:
                raise RuleError(f"`{self.site.callee.name}` returns nothing", where=self.site.rule.place,
                                fix="the arrays that it writes: out.result, out.d")  # fmt: skip
            value = self._kept(_Request("result", -1, self.fn_type.ret, None, 0))
            self._result = make_result(self, value)
        return self._result

    def adjoint(self, position: int) -> Value:
        """Reverse: the adjoint of a number, in all lanes."""
        held = self.held.get(position)
        made: Value = held.value if held is not None else self.arguments[position].adjoint
        return made

    def tangent(self) -> Value:
        """Forward: the tangent of the result, in all lanes."""
        if self.held_result is not None:
            return self.held_result.value
        made: Value = self._result.held.value if self.lanes else self._result.d.v
        return made

    def name(self, position: int) -> str:
        """The name of an argument, for messages and extents."""
        names = self.site.rule.names
        if position < len(names):
            return names[position]
        prototype = self.site.prototype
        return prototype.params[position].name if prototype is not None else f"a{position}"

    def named(self, name: str) -> Scalar:
        """The number that an extent means by a name."""
        prototype = self.site.prototype
        position = prototype.position(name) if prototype is not None else None
        if position is None:
            raise RuleError(f"an extent names `{name}`", where=self.site.rule.place, which=str(prototype),
                            because="there is no such parameter",
                            fix="an integer parameter of the function")  # fmt: skip
        return self._scalar(position)

    def _scalar(self, position: int) -> Scalar:
        for made in self.arguments[position : position + 1]:
            if isinstance(made, Scalar):
                return made
        prototype = self.site.prototype
        if prototype is not None and prototype.params[position].kind == "reference":
            return Scalar(self.code, self.referenced(position, ir_type(prototype.params[position].dtype)))
        literal = self.site.call.args[position]
        return Scalar(self.code, literal if isinstance(literal, ConstInt) else self.values[position])

    def referenced(self, position: int, type_: ty.Type) -> Value:
        """The value of a scalar passed by reference, when the function was called."""
        if self.mode == "forward":
            key = ("reference", position)
            found = self._loads.get(key)
            if found is None:
                found = self._loads[key] = self.code.before.load(type_, self.values[position])
            return found
        return self._kept(_Request("value", position, type_, None, 0))

    # -- running the body ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the body, for all lanes or in a loop over them."""
        self._loads: dict[Any, Value] = {}
        one = self.width == 1 or self.lanes or (self.site.rule.form == "stop" and not isinstance(self.width, Apart))
        if one:
            self._run()
        else:
            each_lane(self, self._run)

    def _run(self) -> None:
        """Bind the arguments and run the body."""
        rule, prototype = self.site.rule, self.site.prototype
        for i, type_ in enumerate(self.params):
            param = prototype.params[i] if prototype is not None else None
            self.arguments.append(make_argument(self, i, type_, param))
        if rule.form == "calls":
            assert rule.body is not None
            options = {"y": self.result()} if rule.takes_result else {}
            rule.body(Context(self), *self.arguments, **options)
        elif rule.form == "host":
            from irgrad.engine.transforms.hosted import run_host

            run_host(self)
        else:
            from irgrad.engine.transforms.fixed import run_fixed

            run_fixed(self)
        if self.mode == "reverse":
            self._clear_outputs()

    def _clear_outputs(self) -> None:
        prototype = self.site.prototype
        for i, argument in enumerate(self.arguments):
            if prototype is not None and prototype.params[i].intent == "out" and i in self.shadows:
                if prototype.params[i].kind == "array":
                    Context(self).zero(argument.shadow, argument.shadow.size)
                elif prototype.params[i].kind == "reference":
                    argument.clear()


def _same(a: Value | None, b: Value | None) -> bool:
    if a is b:
        return True
    if isinstance(a, ConstInt) and isinstance(b, ConstInt):
        return a.value == b.value
    if isinstance(a, Instruction) and isinstance(b, Instruction) and a.opcode == b.opcode and a.opcode in _PURE:
        return a.type is b.type and a.pred == b.pred and all(map(_same, a.operands, b.operands))
    return False


def clone(value: Value, known: dict[Value, Value], b: Builder, there: set[Instruction], site: Site) -> Value:
    """A computation on arguments, written again at another place. Raises RuleError for one on anything else."""
    if value in known:
        return known[value]
    if isinstance(value, Constant) or value in there:
        return value
    if not isinstance(value, Instruction) or value.opcode not in _PURE:
        raise RuleError(
            "a count of saved elements depends on what the body computes",
            where=site.rule.place,
            because="it is needed before the body runs",
            fix="count from the arguments of the function",
        )
    operands = [clone(o, known, b, there, site) for o in value.operands]
    new = b.insert(Instruction(value.opcode, value.type, operands, flags=value.flags, pred=value.pred))
    known[value] = new
    return new


# -- forward -----------------------------------------------------------------------------------------------------------


def forward_of(unit: Unit, site: Site) -> tuple[Function, Shape]:
    """The forward derivative of a call."""
    shape = shape_of(site)
    params: list[ty.Type] = []
    writer = Writer(unit, site, lambda *_: True, "forward")
    for i, type_ in enumerate(writer.params):
        params += [type_, unit.wide(type_)] if shape.adjoint[i] or shape.shadow[i] else [type_]
    ret = writer.fn_type.ret
    both = pair(ret, unit.width)
    fn = unit.new_function(f"fwd.{site.callee.name}", ty.function(both if shape.active else ret, tuple(params)))
    code = writer.code = Code(unit, fn)
    new = iter(fn.args)
    for i in range(len(writer.params)):
        writer.values[i] = next(new)
        if shape.adjoint[i] or shape.shadow[i]:
            writer.shadows[i] = next(new)
    primal = Instruction("call", ret, [*writer.values.values(), site.callee], call=_plain_call(site))
    if ret is not ty.VOID:
        writer._result = make_result(writer, primal)
    writer.run()
    if writer.replaced is None:
        code.before.insert(primal)
    code.before.br(_body(code))
    code.close_scope()
    if ret is ty.VOID:
        code.b.ret()
    elif shape.active:
        code.b.ret(code.b.aggregate(both, [writer.replaced or primal, writer.tangent()]))
    else:
        code.b.ret(writer.replaced or primal)
    mark(unit, site, shape, fn)
    return fn, shape


def _plain_call(site: Site) -> Any:
    from irgrad.engine.transforms.sweep import clean_call

    return clean_call(site.call.call)


def _body(code: Code) -> Any:
    return code.fn.blocks[1]


# -- reverse -----------------------------------------------------------------------------------------------------------


def reverse_of(unit: Unit, site: Site, clobbered: Callable[[int, str], bool]) -> Pair:
    """The augmented and the reverse function of a call."""
    shape = shape_of(site)
    writer = Writer(unit, site, clobbered, "reverse")
    params: list[ty.Type] = []
    results: list[ty.Type] = []
    for i, type_ in enumerate(writer.params):
        params += [type_, unit.wide(type_)] if shape.shadow[i] else [type_]
        results += [unit.wide(type_)] if shape.adjoint[i] else []
    ret = writer.fn_type.ret
    whole = ty.struct(tuple(results))
    params += [unit.wide(ret)] if shape.active else []
    fn = unit.new_function(f"rev.{site.callee.name}", ty.function(whole if results else ty.VOID, (*params, ty.PTR)))
    code = writer.code = Code(unit, fn)
    new = iter(fn.args)
    for i in range(len(writer.params)):
        writer.values[i] = next(new)
        if shape.shadow[i]:
            writer.shadows[i] = next(new)
    writer._cotangent = next(new) if shape.active else None
    writer._tape = next(new)
    writer.run()
    code.before.br(_body(code))
    code.close_scope()
    if results:
        adjoints = [writer.adjoint(i) for i, active in enumerate(shape.adjoint) if active]
        code.b.ret(code.b.aggregate(whole, adjoints))
    else:
        code.b.ret()
    copies = any(request.kind != "result" for request in writer.requests)
    if not writer.requests and taped(unit, site):
        writer.requests.append(_Request("nothing", -1, ty.PTR, None, 0))
    augmented = _augmented(writer) if writer.requests else None
    together = mark(unit, site, shape, fn, augmented or site.callee, copies=copies)
    read = {o for instr in fn.instructions() for o in instr.operands if isinstance(o, Argument)}
    used = frozenset(i for i, v in writer.values.items() if together or v in read)
    shadows = frozenset(i for i, v in writer.shadows.items() if together or v in read)
    return Pair(shape, augmented if augmented is not None else site.callee, fn, used, shadows, augmented is not None,
                "augmented" in site.rule.options)  # fmt: skip


def _augmented(writer: Writer) -> Function:
    """The call, with copies of what the reverse function reads."""
    unit, site = writer.unit, writer.site
    ret = writer.fn_type.ret
    fields = [ret] if ret is not ty.VOID else []
    from irgrad.engine.transforms.fixed import foreign_augmented, own_arguments

    inner = "augmented" in site.rule.options
    params = list(writer.params)
    if inner:  # a function in C that gets the shadows as well
        has = writer.shape.shadow
        params = [t for i, t in enumerate(writer.params) for t in (t, *([unit.wide(t)] if has[i] else []))]
    params.append(ty.PTR)
    fn = unit.new_function(f"aug.{site.callee.name}", ty.function(ty.struct((*fields, ty.PTR)), tuple(params)))
    code = Code(unit, fn)
    b = code.before
    *every, arena = fn.args
    values = [v for v, own in zip(every, own_arguments(writer), strict=True) if own] if inner else every
    known: dict[Value, Value] = {writer.values[i]: v for i, v in enumerate(values)}
    alloc = unit.runtime("irgrad.tape.alloc")
    tape = b.call(alloc, [arena, ConstInt(ty.I64, 8 * len(writer.requests))])
    made: dict[int, Value] = {r.slot: ConstZero(ty.PTR) for r in writer.requests if r.kind == "nothing"}
    for request in writer.requests:
        if request.kind == "value":
            made[request.slot] = b.load(request.type, values[request.position])
    for instr in writer.code.fn.blocks[0].instructions:  # loads from the tape of what is loaded here
        slot = _slot_of(instr, writer)
        if slot is not None and slot in made:
            known[instr] = made[slot]
    primal: Value | None = None
    for when in ("before", "after"):
        for request in writer.requests:
            if request.kind == when:
                assert request.bytes is not None
                size = clone(request.bytes, known, b, set(), site)
                made[request.slot] = b.call(alloc, [arena, size])
                writer.copy_memory(b, made[request.slot], values[request.position], size)
        if when == "before":
            if site.rule.form == "registered":
                from irgrad.engine.transforms.registered import call_augmented_lanes

                room = lambda size: b.call(alloc, [arena, ConstInt(ty.I64, size)])  # noqa: E731
                primal, kept = call_augmented_lanes(writer, code, every, room)
                made |= {request.slot: kept for request in writer.requests if request.kind == "tape"}
            elif inner:
                primal = foreign_augmented(writer, code, every, made)
            else:
                primal = b.insert(Instruction("call", ret, [*values, site.callee], call=_plain_call(site)))
    for request in writer.requests:
        value = primal if request.kind == "result" else made[request.slot]
        assert value is not None
        b.store(value, b.gep(ty.I8, tape, 8 * request.slot), align=8)
    b.br(_body(code))
    parts: list[Value] = [primal] if fields and primal is not None else []
    code.b.ret(code.b.aggregate(fn.ftype.ret, [*parts, tape]))
    return fn


def _slot_of(instr: Instruction, writer: Writer) -> int | None:
    """The slot of the tape that an instruction of the reverse function loads."""
    if instr.opcode != "load":
        return None
    address = instr.operands[0]
    if address is writer._tape:
        return 0
    if isinstance(address, Instruction) and address.operands[0] is writer._tape:
        offset = address.operands[1]
        return offset.value // 8 if isinstance(offset, ConstInt) else None
    return None


__all__ += ["ConstUndef", "ConstZero"]
