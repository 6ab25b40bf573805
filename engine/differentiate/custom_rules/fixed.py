"""Rules without a body in Python: derivatives written in C, and results that count as constant.

For `T f(A *x, T a)` with x Duplicated and a Active, the functions in C are

    T    f_augmented(A *x, A *x_d, T a, void **tape)
    void f_reverse(A *x, A *x_d, T a, T *a_d, T y_d, void *tape)     without `tape` where there is no augmented function
    T    f_forward(A *x, A *x_d, T a, T a_d, T *y_d)

With `width=` they take all lanes of a derivative: `x_d[i * lanes + j]` is that of x[i] in lane j; `a_d`, `y_d` are
pointers to the lanes of a number; the last argument of each is `long lanes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.bodies import uses, variables
from irgrad.engine.differentiate.custom_rules.held import Held
from irgrad.engine.differentiate.custom_rules.memory_snapshot import as_left, check_variables
from irgrad.engine.differentiate.custom_rules.symbols import Code, Scalar
from irgrad.engine.differentiate.layout.leaves import zero_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.c_prototype import c_prototype
from irgrad.engine.ir.model import ConstInt, ConstZero, Function, Instruction, Value
from irgrad.rules.definitions.types import Const
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Writer

__all__ = ["foreign_augmented", "foreign_function", "run_fixed"]



def run_fixed(writer: Writer) -> None:
    """Write a forward or reverse function for a rule without a body."""
    form = writer.site.rule.form
    if form == "stop":
        _stop(writer)
    elif form == "registered":
        from irgrad.engine.differentiate.custom_rules.registered import run_registered

        run_registered(writer)
    elif form == "foreign":
        (_forward if writer.mode == "forward" else _reverse)(writer)
    else:
        raise RuleError(f"a rule of the form `{form}` cannot be called", where=writer.site.rule.place)


def _stop(writer: Writer) -> None:
    """What the function writes is constant: its shadow is cleared."""
    from irgrad.engine.differentiate.custom_rules.context import Context
    from irgrad.engine.differentiate.custom_rules.views import View

    context = Context(writer)
    for i, argument in enumerate(writer.arguments):
        shadow = getattr(argument, "shadow", None)
        if shadow is None or not (writer.writes is None or i in writer.writes):
            continue
        if not isinstance(shadow, View):
            what = f"`{writer.site.callee.name}` may write memory of unknown extent"
            raise RuleError(what, where=writer.site.rule.place,
                            which=f"argument `{writer.name(i)}`",
                            because="the shadow of what it writes has to be cleared",
                            fix=f'extern("{writer.site.callee.name}", "void(inout f64[n] x, i64 n)")')  # fmt: skip
        context.zero(shadow, shadow.size * writer.unit.memory.scale)


@dataclass(slots=True)
class _Parameter:
    """A parameter of a function in C. spare: of an argument that has no derivative at this call; functions that are
    written for calls where it has one get zeros, and what they write there is dropped. own: the argument of the call
    that it is."""

    name: str
    type: ty.Type
    value: Callable[[], Value]
    spare: bool = False
    own: int | None = None


def _reverse(writer: Writer) -> None:
    code, shape, ret = writer.code, writer.shape, writer.fn_type.ret
    found: list[_Parameter] = []
    for i, type_ in enumerate(writer.params):
        found.append(_own(writer, i))
        if shape.shadow[i]:
            found.append(_Parameter(f"{writer.name(i)}_d", ty.PTR, partial(writer.shadows.__getitem__, i)))
        elif isinstance(type_, ty.FloatType):
            place = writer.arguments[i].place if shape.adjoint[i] else None
            value = partial(_memory, writer, type_, place)
            found.append(_Parameter(f"{writer.name(i)}_d", ty.PTR, value, spare=not shape.adjoint[i]))
        else:
            found += _spare_shadow(writer, i)
    if isinstance(ret, ty.FloatType):
        given = writer._cotangent or zero_of(writer.unit.wide(ret) if writer.lanes else ret)
        held = partial(_memory, writer, ret, None, given)
        found.append(_Parameter("y_d", ty.PTR if writer.lanes else ret, held if writer.lanes else lambda: given,
                                spare=not shape.active))  # fmt: skip
    if "augmented" in writer.site.rule.options:
        found.append(_Parameter("tape", ty.PTR, writer.foreign_tape))
    found += _lanes(writer)
    fn, values = _function(writer, "reverse", ty.VOID, found)
    code.b.call(fn, values, fn.ftype)


def _forward(writer: Writer) -> None:
    """The function in C makes the call as well."""
    code, shape, ret = writer.code, writer.shape, writer.fn_type.ret
    found: list[_Parameter] = []
    for i, type_ in enumerate(writer.params):
        found.append(_own(writer, i))
        name, number = f"{writer.name(i)}_d", isinstance(type_, ty.FloatType)
        if number and writer.lanes:
            place = writer.arguments[i].place if shape.adjoint[i] else None
            found.append(_Parameter(name, ty.PTR, partial(_memory, writer, type_, place), spare=place is None))
        elif i in writer.shadows or number:
            given = writer.shadows.get(i, zero_of(type_))
            found.append(_Parameter(name, type_, partial(_same, given), spare=i not in writer.shadows))
        else:
            found += _spare_shadow(writer, i)
    slot: Value | None = None
    if isinstance(ret, ty.FloatType):
        slot = writer.result().held.slot if writer.lanes and shape.active else code.stack(ret) if shape.active else None
        found.append(_Parameter("y_d", ty.PTR, partial(_memory, writer, ret, slot), spare=not shape.active))
    found += _lanes(writer)
    fn, values = _function(writer, "forward", ret, found)
    writer.replace_call(code.b.call(fn, values, fn.ftype))
    if slot is not None and not writer.lanes:
        writer.result().tangent = Scalar(code, code.b.load(ret, slot))


def _spare_shadow(writer: Writer, i: int) -> list[_Parameter]:
    """The shadow of an array that has none, where its extent is known and the rule does not say that it never has."""
    from irgrad.engine.differentiate.custom_rules.arguments import ArrayArgument, Reference
    from irgrad.engine.differentiate.custom_rules.context import Context

    argument = writer.arguments[i]
    size = argument.size if isinstance(argument, ArrayArgument) else 1
    element = argument.element if isinstance(argument, ArrayArgument) else None
    if isinstance(argument, Reference):
        element = argument.v.type
    if not isinstance(element, ty.FloatType) or _never(writer, i):
        return []
    lanes = int(writer.width) if writer.lanes else 1
    name = {"double": "f64", "float": "f32", "half": "f16"}.get(str(element), "")
    made = partial(Context(writer).temporary, size * lanes, name, zero=True)
    return [_Parameter(f"{writer.name(i)}_d", ty.PTR, lambda: made().v, spare=True)] if name else []


def _never(writer: Writer, i: int) -> bool:
    """Whether the rule is for calls where an argument has no derivative."""
    declared = writer.site.rule.types[2:]
    return i < len(declared) and issubclass(declared[i], Const)


def _own(writer: Writer, i: int) -> _Parameter:
    return _Parameter(writer.name(i), writer.params[i], partial(_same, writer.values[i]), own=i)


def _lanes(writer: Writer) -> list[_Parameter]:
    count = ConstInt(ty.I64, int(writer.width))
    return [_Parameter("lanes", ty.I64, partial(_same, count))] if writer.lanes else []


def _same(value: Value) -> Value:
    return value


def _memory(writer: Writer, type_: ty.Type, place: Value | None, start: Value | None = None) -> Value:
    """Memory for the derivatives of a number: that which it has, or new one."""
    width = writer.width if writer.lanes else 1
    return place if place is not None else Held(writer.code, type_, width, start).slot


def _function(writer: Writer, role: str, ret: ty.Type, found: list[_Parameter]) -> tuple[Function, list[Value]]:
    """The function in C and what it gets: with parameters that have no derivative here if the module has it so."""
    name = writer.site.rule.options[role]
    there = writer.unit.module.functions.get(name)
    if there is None or there.ftype.params != tuple(p.type for p in found):
        found = [p for p in found if not p.spare]
    ftype = ty.function(ret, tuple(p.type for p in found))
    fn = foreign_function(writer, role, ftype, [p.name for p in found])
    if role == "reverse":
        check_variables(writer, name, variables(writer.unit.module, fn)[0])
    return fn, [_read(writer, fn, at, p) if role == "reverse" else p.value() for at, p in enumerate(found)]


def _read(writer: Writer, fn: Function, at: int, parameter: _Parameter) -> Value:
    """What a reverse function gets for a parameter: without a tape, memory as the call left it."""
    i, rule = parameter.own, writer.site.rule
    waits = fn.name != rule.options["reverse"]  # its body is there when the derivative is made again
    if i is None or not parameter.type.is_ptr or "augmented" in rule.options or waits:
        return parameter.value()
    if not uses(writer.unit.module, fn, at):
        return parameter.value()
    name = writer.site.callee.name
    fix = (f'extern("{name}", "{_with_extents(writer)}"): of arrays of known extent a copy is kept\n'
           f'or foreign("{name}", augmented="{name}_augmented", reverse=...), which keeps it on its tape')  # fmt: skip
    return as_left(writer, i, fn.name or "", fix)


def _with_extents(writer: Writer) -> str:
    """A prototype as it may be: every pointer an array of as many elements as the first integer says."""
    names = {"float": "f32", "double": "f64", "void": "void"}
    count = next((writer.name(i) for i, type_ in enumerate(writer.params) if type_.is_int), "8")
    spelled = [f"f64[{count}]" if type_.is_ptr else names.get(str(type_), str(type_)) for type_ in writer.params]
    params = ", ".join(f"{type_} {writer.name(i)}" for i, type_ in enumerate(spelled))
    return f"{names.get(str(writer.fn_type.ret), str(writer.fn_type.ret))}({params})"


def foreign_augmented(writer: Writer, code: Code, values: Sequence[Value], made: dict[int, Value]) -> Instruction:
    """Call the augmented function in C; its tape is one more thing to keep."""
    found: list[_Parameter] = []
    given, null = iter(values), ConstZero(ty.PTR)
    for i, type_ in enumerate(writer.params):
        found.append(_Parameter(writer.name(i), type_, partial(_same, next(given))))
        if writer.shape.shadow[i]:
            found.append(_Parameter(f"{writer.name(i)}_d", ty.PTR, partial(_same, next(given))))
        elif type_.is_ptr and not _never(writer, i):
            found.append(_Parameter(f"{writer.name(i)}_d", ty.PTR, partial(_same, null), spare=True))
    place = code.stack(ty.PTR)
    found += [_Parameter("tape", ty.PTR, partial(_same, place)), *_lanes(writer)]
    fn, arguments = _function(writer, "augmented", writer.fn_type.ret, found)
    call = code.before.call(fn, arguments, fn.ftype)
    for request in writer.requests:
        if request.kind == "tape":
            made[request.slot] = code.before.load(ty.PTR, place)
    return call


def foreign_function(writer: Writer, role: str, ftype: ty.FunctionType, names: list[str]) -> Function:
    """The function of a rule in C, declared. Raises RuleError, printing the prototype, where the module has another."""
    unit, rule = writer.unit, writer.site.rule
    name = rule.options[role]
    if unit.rules is not None and name in unit.rules.symbols:
        unit.rules.wanted.add(name)
    found = unit.module.functions.get(name)
    if found is None:
        # A function of the program that was dropped: the derivative is made again with it, its type is not known now.
        later = unit.rules is not None and name in unit.rules.symbols - unit.rules.kept
        declared: Function = unit.declare(f"{name}.{len(unit.module.functions)}" if later else name, ftype)
        return declared
    if found.ftype.ret is ftype.ret and found.ftype.params == ftype.params:
        return found
    raise RuleError(f"the {role} function `{name}` has another prototype", where=rule.place,
                    which=c_prototype(name, found.ftype, [a.name or "" for a in found.args]),
                    because=f"for ({', '.join(map(str, writer.site.types[2:]))}) the arguments are others",
                    fix=c_prototype(name, ftype, names))  # fmt: skip
