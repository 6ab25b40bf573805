"""Derivatives that a program registers for its own functions: calls of them, in the conventions of the notation.

For `R f(A *x, T a, int n)` the functions that a program registers are

    {P, R} f_augmented(A *x, A *x_d, T a, int n)                    P is the tape; only P where f returns nothing
    T      f_reverse(A *x, A *x_d, T a, int n, R y_d, P tape)       returns the gradients of numbers, in order
    {R, R} f_forward(A *x, A *x_d, T a, T a_d, int n)               value and tangent, or the tangent alone
    {R, R} f_split(A *x, A *x_d, T a, T a_d, int n, P tape)         the same, behind the augmented function

Each takes the place of the call. Structs are returned as C returns them: in registers by eight bytes, or through a
hidden pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.analyses.memory.call_effects import effect_of
from irgrad.engine.differentiate.custom_rules.memory_snapshot import as_left, check_variables
from irgrad.engine.differentiate.custom_rules.symbols import Code, Scalar
from irgrad.engine.differentiate.layout.separate_shadows import lane
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import CallInfo, ConstZero, Function, Instruction, Value
from irgrad.engine.ir.text.reader import materialise
from irgrad.rules.definitions.types import Duplicated
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Writer
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["CFunction", "call_augmented_lanes", "run_registered", "writes_nothing"]

_BY_REFERENCE = "byval("


@dataclass(frozen=True, slots=True)
class CFunction:
    """A function of the program as its callers see it.

    attrs: of each parameter, those that say how it is passed; result: what a hidden first pointer returns (None: there
    is none); used: whether the body uses each parameter; byref: parameters that point to what the differentiated
    function takes by value; reads: the variables of the program that it reads
    """

    name: str
    ftype: ty.FunctionType
    attrs: tuple[str, ...]
    result: ty.Type | None
    used: tuple[bool, ...]
    byref: frozenset[int] = frozenset()
    reads: frozenset[str] = frozenset()

    @property
    def hidden(self) -> int:
        """1 with a hidden first pointer, else 0."""
        return int(self.result is not None)

    @property
    def returns(self) -> ty.Type:
        """The type of what it returns, wherever that goes."""
        return self.result if self.result is not None else self.ftype.ret


@dataclass(frozen=True, slots=True)
class _Frame:
    """Arguments of the call, and the shadows that there are, in the function that is being written."""

    values: Sequence[Value]
    shadows: dict[int, Value]


def run_registered(writer: Writer) -> None:
    """Write the forward or reverse function of a call whose derivative is registered."""
    if issubclass(writer.site.types[1], Duplicated):
        raise RuleError(f"`{writer.site.callee.name}` returns a pointer to active memory", where=writer.site.rule.place,
                        because="what a registered derivative returns has no place for the shadow of a pointer",
                        fix="hand the memory to the function as an argument")  # fmt: skip
    frame = _Frame([writer.values[i] for i in range(len(writer.params))], writer.shadows)
    (_forward if writer.mode == "forward" else _reverse)(writer, frame)


def _reverse(writer: Writer, frame: _Frame) -> None:
    code, ret = writer.code, writer.fn_type.ret
    call = _Call(writer, code, "reverse", frame)
    check_variables(writer, call.fn.name, call.fn.reads)
    if ret.is_fp or ret.is_aggregate:
        call.take("y_d", writer._cotangent if writer._cotangent is not None else zero(ret))
    tape = writer.foreign_tape()
    if writer.lane is not None:  # of each lane one, see call_augmented_lanes
        tape = code.b.load(ty.PTR, code.b.gep(ty.PTR, tape, writer.lane.v))
    call.take_tape(tape)
    returned = call.made()
    positions = [i for i, type_ in enumerate(writer.params) if type_.is_fp]
    if not positions:
        return
    values = returned.parts([writer.params[i] for i in positions], "the gradients of its numbers")
    for i, value in zip(positions, values, strict=True):
        if writer.shape.adjoint[i]:
            code.b.store(value, writer.arguments[i]._adjoint.slot)


def _forward(writer: Writer, frame: _Frame) -> None:
    code, ret = writer.code, writer.fn_type.ret
    split = "split" in writer.site.rule.options
    call = _Call(writer, code, "split" if split else "forward", frame)
    value: Value | None = None
    if split:
        value, tape = _augmented(writer, code, frame, lambda size: code.stack(ty.array(-(-size // 8), ty.I64)))
        call.take_tape(tape)
    returned = call.made()
    if ret is ty.VOID:
        writer.replace_call(returned.call)
        return
    if returned.fits([ret, ret]):
        value, tangent = returned.parts([ret, ret], "value and tangent")
    elif ret.is_fp or ret.is_aggregate:
        (tangent,) = returned.parts([ret], "value and tangent")
    else:  # an integer or a pointer: the value alone
        (value,) = returned.parts([ret], "the value")
        tangent = zero(ret)
    if value is None:
        value = code.b.insert(
            Instruction("call", ret, [*frame.values, writer.site.callee], call=writer.plain_call())
        )
    writer.replace_call(value)
    if writer.shape.active:
        writer.result().tangent = Scalar(code, tangent)


def call_augmented_lanes(
    writer: Writer, code: Code, values: Sequence[Value], alloc: Callable[[int], Value]
) -> tuple[Value | None, Value]:
    """Call the augmented function once for each lane; the primal result, and the tape or an array of the lanes'."""
    if writer.width == 1:
        return call_augmented(writer, code, values, alloc)
    from irgrad.engine.differentiate.custom_rules.writer import own_arguments

    b, width, own = code.before, int(writer.width), own_arguments(writer)
    tapes = alloc(8 * width)
    primal: Value | None = None
    for j in range(width):
        given = [v if is_own else lane(b, ty.PTR, v, j, width) for v, is_own in zip(values, own, strict=True)]
        primal, tape = call_augmented(writer, code, given, alloc)
        b.store(tape, b.gep(ty.I8, tapes, 8 * j))
    return primal, tapes


def writes_nothing(unit: Unit, fn: Function, seen: set[Function] | None = None) -> bool:
    """Whether a function of the program can be run again and again: it stores to its own stack only."""
    seen = set() if seen is None else seen
    if fn in seen:
        return True
    seen.add(fn)
    assert unit.rules is not None
    hidden = fn in unit.rules.hidden
    if hidden:
        fn.blocks, fn.lazy = unit.rules.hidden[fn]
    if fn.lazy is not None:
        materialise(fn, unit.module)
    try:
        return bool(fn.blocks) and all(_harmless(unit, instr, seen) for instr in fn.instructions())
    finally:
        if hidden:
            unit.rules.hidden[fn] = (fn.blocks, fn.lazy)
            fn.blocks, fn.lazy = [], None


def _harmless(unit: Unit, instr: Instruction, seen: set[Function]) -> bool:
    if instr.opcode == "store":
        place = instr.operands[1]
        while isinstance(place, Instruction) and place.opcode in ("getelementptr", "bitcast"):
            place = place.operands[0]
        return isinstance(place, Instruction) and place.opcode == "alloca"
    if not instr.is_call:
        return not instr.traits.has("writes")
    callee = instr.callee
    if not isinstance(callee, Function):
        return False
    if not callee.is_declaration or callee in unit.rules.hidden:  # type: ignore[union-attr]
        return writes_nothing(unit, callee, seen)
    nothing = effect_of(unit.module, instr, callee).nothing
    return nothing or (callee.name or "").startswith(("llvm.lifetime.", "llvm.dbg."))


def call_augmented(
    writer: Writer, code: Code, values: Sequence[Value], alloc: Callable[[int], Value]
) -> tuple[Value | None, Value]:
    """Call the augmented function; its primal result, and the tape: the pointer itself, or the address of a copy.

    values: the arguments of the call, the shadow of each Duplicated one behind it; alloc: memory for a copy.
    """
    own, shadows = [], {}
    rest = iter(values)
    for i, shadowed in enumerate(writer.shape.shadow):
        own.append(next(rest))
        if shadowed:
            shadows[i] = next(rest)
    return _augmented(writer, code, _Frame(own, shadows), alloc)


def _augmented(
    writer: Writer, code: Code, frame: _Frame, alloc: Callable[[int], Value]
) -> tuple[Value | None, Value]:
    ret, b = writer.fn_type.ret, _place(writer, code, "augmented")
    call = _Call(writer, code, "augmented", frame)
    returned = call.made()
    tape, offset = _tape_of(writer)
    value: Value | None = None
    if offset is not None:
        value = returned.load(ret, offset)
    if tape is None:
        return value, ConstZero(ty.PTR)
    if tape is ty.PTR:
        return value, returned.load(tape, 0)
    place = alloc(ty.size_of(tape))
    b.store(returned.load(tape, 0), place, align=1)
    return value, place


def _tape_of(writer: Writer) -> tuple[ty.Type | None, int | None]:
    """The type of the tape, and where the primal result stands behind it (None: the function has none)."""
    fn, ret = _function(writer, "augmented"), writer.fn_type.ret
    type_ = fn.returns
    if ret is ty.VOID:
        return (None if type_ is ty.VOID else type_), None
    if type_ is ret:
        return None, 0
    fields = type_.fields if isinstance(type_, ty.StructType) else None
    if fields is not None and len(fields) >= 2:
        offset = ty.field_offsets(type_)[1]  # type: ignore[arg-type]
        if ty.size_of(ret) <= ty.size_of(type_) - offset and (fields[1] is ret or fn.hidden or ret.is_aggregate):
            return fields[0], offset
    raise RuleError(f"the augmented function `{fn.name}` returns something else", where=writer.site.rule.place,
                    which=_prototype(fn),
                    because=f"`{writer.site.callee.name}` returns `{ret}`: a struct of the tape and that is wanted",
                    fix=f"struct {{ void *tape; {_C.get(str(ret), str(ret))} value; }} {fn.name}(...);")  # fmt: skip


def _place(writer: Writer, code: Code, role: str) -> Builder:
    """Where a call is written: the augmented function runs first, unless each lane has a run of its own."""
    each = writer.mode == "forward" and writer.lane is not None
    return code.before if role == "augmented" and not each else code.b


class _Call:
    """Puts the arguments of one registered function together, and calls it."""

    def __init__(self, writer: Writer, code: Code, role: str, frame: _Frame) -> None:
        self.writer = writer
        self.code = code
        self.b = _place(writer, code, role)
        self.role = role
        self.fn = _function(writer, role)
        self.args: list[Value] = []
        self.wanted: list[str] = []
        tangents = role in ("forward", "split")
        for group in writer.site.rule.options["groups"]:
            for i in group:
                self.take(writer.name(i), self._contents(i) if role == "reverse" else frame.values[i])
            for i in group:
                type_ = frame.values[i].type
                if type_.is_ptr:
                    self.take(f"{writer.name(i)}_d", self._shadow(i, frame.shadows.get(i), frame.values[i]))
                elif tangents and (type_.is_fp or len(group) > 1):
                    self.take(f"{writer.name(i)}_d", frame.shadows.get(i) or zero(type_))

    @property
    def _next(self) -> ty.Type | None:
        """The type of the next parameter."""
        number = self.fn.hidden + len(self.args)
        return self.fn.ftype.params[number] if number < len(self.fn.ftype.params) else None

    def _contents(self, i: int) -> Value:
        """An argument for the reverse function: memory as it was when the function returned, where its size is known (a
        loop's variable, a vector that a destructor empties); what else changes belongs on the tape, if there is one."""
        writer, number = self.writer, self.fn.hidden + len(self.args)
        used = number < len(self.fn.used) and self.fn.used[number]
        if not writer.params[i].is_ptr or not used:
            return writer.values[i]
        name = _function(writer, "augmented").name
        fix = f"{name} returns a tape that holds a copy: struct {{ void *tape; ... }} {name}(...)"
        return as_left(writer, i, self.fn.name, fix if _tape_of(writer)[0] is None else "")

    def _shadow(self, i: int, shadow: Value | None, value: Value) -> Value:
        """The shadow of a pointer. For a Const one: null if nobody looks, itself if it holds no floats."""
        if shadow is not None:
            return shadow
        number = self.fn.hidden + len(self.args)
        if number >= len(self.fn.used) or not self.fn.used[number]:
            return ConstZero(ty.PTR)
        kinds = [kind for _, kind in self.writer.unit.types.access(self.writer.site.call.args[i], 8)]
        if kinds and all(kind is INT for kind in kinds):
            return value
        raise RuleError(f"`{self.fn.name}` wants the shadow of argument {i + 1} of `{self.writer.site.callee.name}`",
                        where=self.writer.site.rule.place, which=_prototype(self.fn),
                        because="the argument is constant in this derivative, so that there is no shadow",
                        fix="enzyme_dup with a shadow in the call of the derivative")  # fmt: skip

    def take(self, name: str, value: Value) -> None:
        """The next argument; a struct goes in the pieces in which C passes it."""
        wanted = self._next
        self.wanted.append(f"{_C.get(str(value.type), str(value.type))} {name}".replace("* ", "*"))
        if wanted is None:
            raise self._wrong()
        if wanted is value.type:
            self.args.append(value)
        elif wanted.is_ptr and self._by_reference:
            slot = self.code.stack(value.type)
            self.b.store(value, slot)
            self.args.append(slot)
        elif value.type.is_aggregate:
            slot = self.code.stack(value.type)
            self.b.store(value, slot)
            self._pieces(slot, ty.size_of(value.type))
        else:
            raise self._wrong()

    @property
    def _by_reference(self) -> bool:
        number = self.fn.hidden + len(self.args)
        return _BY_REFERENCE in self.fn.attrs[number] or len(self.args) in self.fn.byref

    def _pieces(self, place: Value, size: int) -> None:
        """A struct in registers: eight bytes each."""
        at = 0
        while at < size:
            wanted = self._next
            if wanted is None or wanted is ty.VOID:
                raise self._wrong()
            self.args.append(self.b.load(wanted, self.b.gep(ty.I8, place, at), align=1))
            at += -(-ty.store_size(wanted) // 8) * 8

    def take_tape(self, kept: Value) -> None:
        """The tape, for a function that takes one."""
        type_, _ = _tape_of(self.writer)
        self.wanted.append(f"{_C.get(str(type_), str(type_))} tape" if type_ is not None else "")
        wanted = self._next
        if wanted is None:
            return
        if type_ is None:
            self.args.append(zero(wanted))
        elif type_ is ty.PTR:
            if wanted is not ty.PTR:
                raise self._wrong()
            self.args.append(kept)
        elif wanted is type_:
            self.args.append(self.b.load(type_, kept, align=1))
        elif wanted.is_ptr and self._by_reference:
            self.args.append(kept)
        elif type_.is_aggregate:
            self._pieces(kept, ty.size_of(type_))
        else:
            raise self._wrong()

    def made(self) -> _Returned:
        """The call, once all arguments are there."""
        fn, params = self.fn, self.fn.ftype.params
        if len(self.args) + fn.hidden != len(params):
            raise self._wrong()
        slot = self.code.stack(fn.result) if fn.result is not None else None
        callee = _declared(self.writer, fn)
        given = [*([slot] if slot is not None else []), *self.args]
        info = CallInfo(fn.ftype, arg_attrs=fn.attrs)
        call = self.b.insert(Instruction("call", fn.ftype.ret, [*given, callee], call=info))
        if slot is None and fn.returns is not ty.VOID:
            slot = self.code.stack(ty.array(-(-ty.size_of(fn.returns) // 8), ty.I64))
            self.b.store(call, slot, align=8)
        return _Returned(self, call, slot)

    def _wrong(self) -> RuleError:
        fn = self.fn
        wanted = ", ".join(word for word in self.wanted if word)
        return RuleError(f"the {self.role} function `{fn.name}` has another prototype",
                         where=self.writer.site.rule.place,
                         which=_prototype(fn),
                         because=f"behind each pointer of `{self.writer.site.callee.name}` its shadow is wanted"
                         + (", behind each number its tangent" if self.role in ("forward", "split") else ""),
                         fix=f"{fn.name}({wanted}{', ...' if len(self.args) < len(self.wanted) else ''})")  # fmt: skip


class _Returned:
    """What a registered function has returned, in memory."""

    def __init__(self, made: _Call, call: Instruction, place: Value | None) -> None:
        self.made = made
        self.call = call
        self.place = place
        self.type = made.fn.returns

    def load(self, type_: ty.Type, offset: int) -> Value:
        """A part."""
        assert self.place is not None
        b = self.made.b
        return b.load(type_, b.gep(ty.I8, self.place, offset), align=1)

    def fits(self, types: Sequence[ty.Type]) -> bool:
        """Whether it can be a struct of these; one number has to be just that."""
        if self.type is ty.VOID:
            return False
        if len(types) == 1 and (types[0] is self.type or not self.type.is_aggregate):
            return types[0] is self.type
        size = ty.size_of(ty.struct(tuple(types)))
        return -(-size // 8) == -(-ty.size_of(self.type) // 8) and size <= ty.size_of(self.type)

    def parts(self, types: Sequence[ty.Type], what: str) -> list[Value]:
        """Its fields. Raises RuleError where it returns something else."""
        if not self.fits(types):
            fn = self.made.fn
            names = ", ".join(_C.get(str(type_), str(type_)) for type_ in types)
            raise RuleError(f"the {self.made.role} function `{fn.name}` returns `{self.type}`",
                            where=self.made.writer.site.rule.place, which=_prototype(fn),
                            because=f"it has to return {what}: {names}",
                            fix="a struct of them in that order, or the number itself for one")  # fmt: skip
        offsets = ty.field_offsets(ty.struct(tuple(types)))
        return [self.load(type_, at) for type_, at in zip(types, offsets, strict=False)]


_C = {"double": "double", "float": "float", "i64": "long", "i32": "int", "i16": "short", "i8": "char", "ptr": "void *",
      "x86_fp80": "long double"}  # fmt: skip


def _prototype(fn: CFunction) -> str:
    from irgrad.engine.ir.c_prototype import c_prototype

    return c_prototype(fn.name, fn.ftype, [""] * len(fn.ftype.params))


def _function(writer: Writer, role: str) -> CFunction:
    found: CFunction = writer.site.rule.options[role]
    return found


def _declared(writer: Writer, fn: CFunction) -> Function:
    """The function in the module of the derivative: its body stays in the program."""
    declared = writer.unit.declare(fn.name, fn.ftype)
    for arg, attrs in zip(declared.args, fn.attrs, strict=True):
        arg.attrs = attrs
    return declared
