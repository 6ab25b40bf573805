"""What bodies of rules write into: one derived function, and what it keeps of the call for later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irgrad.engine.analyses.memory.call_effects import facts_of
from irgrad.engine.differentiate.custom_rules.held import Held
from irgrad.engine.differentiate.custom_rules.symbols import Code, Scalar, ir_type, size_of
from irgrad.engine.differentiate.shared.copying import clean_call
from irgrad.engine.differentiate.shared.rule_sites import Site
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Constant,
    ConstInt,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import PURE
from irgrad.engine.ir.rewrite import copied
from irgrad.rules.definitions.types import Active, Duplicated, DuplicatedNoNeed
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit


__all__ = ["Kept", "Shape", "Writer", "clone", "own_arguments", "plain_call_of", "shape_of"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Which arguments have an adjoint (numbers) or a shadow (pointers), and whether the result is active."""

    adjoint: tuple[bool, ...]
    shadow: tuple[bool, ...]
    active: bool


def shape_of(site: Site) -> Shape:
    """The shape of the derived functions of a call."""
    rest = site.types[2:]
    adjoint = tuple(issubclass(t, Active) for t in rest)
    return Shape(adjoint, tuple(issubclass(t, Duplicated) for t in rest), issubclass(site.types[1], Active))


@dataclass(slots=True)
class Kept:
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
        self.requests: list[Kept] = []
        self._loads: dict[Any, Value] = {}
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

    # -- what writes it in parts ---------------------------------------------------------------------------------------

    def replace_call(self, value: Value | None) -> None:
        """The body makes the call in place of the engine, with this result; in a loop over lanes it is kept in memory
        that the last lane leaves."""
        self.replaced = value
        if self.lane is not None and value is not None and value.type is self.fn_type.ret is not ty.VOID:
            self.value_slot = self.code.stack(value.type)
            self.code.b.store(value, self.value_slot)

    def begin_lane(self, lane: Scalar, shadows: Mapping[int, Value], cotangent: Value | None) -> None:
        """The body that follows is of one lane: with shadows, and a cotangent, of its own."""
        self.lane = lane
        self.shadows = {**self.shadows, **shadows}
        self._cotangent = cotangent

    def end_lanes(self, shadows: dict[int, Value], held: dict[int, Held], result: Held | None) -> None:
        """All lanes are written: the shadows are those of all lanes again."""
        if self.value_slot is not None:
            self.replaced = self.code.b.load(self.fn_type.ret, self.value_slot)
        self.shadows = shadows
        self.held, self.held_result = held, result

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
        return self._kept(Kept(when, position, ty.PTR, size, 0))

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

    def _kept(self, request: Kept) -> Value:
        for known in self.requests:
            if (known.kind, known.position) == (request.kind, request.position) and _same(known.bytes, request.bytes):
                return self._load_slot(known)
        request.slot = len(self.requests)
        self.requests.append(request)
        return self._load_slot(request)

    def _load_slot(self, request: Kept) -> Value:
        assert self._tape is not None
        b = self.code.before
        return b.load(request.type, b.gep(ty.I8, self._tape, 8 * request.slot), align=8)

    def copy_memory(self, b: Builder, target: Value, source: Value, size: Value) -> None:
        """memcpy."""
        ftype = ty.function(ty.VOID, (ty.PTR, ty.PTR, ty.I64, ty.I1))
        b.call(self.unit.declare("llvm.memcpy.p0.p0.i64", ftype), [target, source, size, ConstInt(ty.I1, 0)])

    def plain_call(self) -> Any:
        """What the call of the function itself says besides callee and arguments."""
        return plain_call_of(self.site)

    def foreign_tape(self) -> Value:
        """The tape of an augmented function in C."""
        return self._kept(Kept("tape", -1, ty.PTR, None, 0))

    def result(self) -> Any:
        """The result of the call as the body sees it."""
        if self._result is None:
            if self.fn_type.ret is ty.VOID:
                raise RuleError(f"`{self.site.callee.name}` returns nothing", where=self.site.rule.place,
                                fix="the arrays that it writes: out.result, out.d")  # fmt: skip
            value = self._kept(Kept("result", -1, self.fn_type.ret, None, 0))
            self._result = self.seen(value)
        return self._result

    def seen(self, value: Value) -> Any:
        """The result of the call as bodies see it."""
        raise NotImplementedError

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
        return self._kept(Kept("value", position, type_, None, 0))


def _same(a: Value | None, b: Value | None) -> bool:
    if a is b:
        return True
    if isinstance(a, ConstInt) and isinstance(b, ConstInt):
        return a.value == b.value
    if isinstance(a, Instruction) and isinstance(b, Instruction) and a.opcode == b.opcode and a.opcode in PURE:
        alike = (a.type, a.pred, a.elem, a.indices) == (b.type, b.pred, b.elem, b.indices)
        return alike and len(a.operands) == len(b.operands) and all(map(_same, a.operands, b.operands))
    return False


def clone(value: Value, known: dict[Value, Value], b: Builder, there: set[Instruction], site: Site) -> Value:
    """A computation on arguments, written again at another place. Raises RuleError for one on anything else."""
    if value in known:
        return known[value]
    if isinstance(value, Constant) or value in there:
        return value
    if not isinstance(value, Instruction) or value.opcode not in PURE:
        raise RuleError(
            "a count of saved elements depends on what the body computes",
            where=site.rule.place,
            because="it is needed before the body runs",
            fix="count from the arguments of the function",
        )
    operands = [clone(o, known, b, there, site) for o in value.operands]
    new = b.insert(copied(value, operands))
    known[value] = new
    return new


def plain_call_of(site: Site) -> Any:
    return clean_call(site.call.call)


def own_arguments(writer: Writer) -> list[bool]:
    """Which parameters are the call's own, where each shadow follows its argument."""
    return [own for i in range(len(writer.params)) for own in (True, *([False] if writer.shape.shadow[i] else []))]
