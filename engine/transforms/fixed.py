"""Rules without a body in Python: derivatives written in C, and results that count as constant.

For `T f(A *x, T a)` with x Duplicated and a Active, the functions in C are

    T    f_augmented(A *x, A *x_d, T a, void **tape)
    void f_reverse(A *x, A *x_d, T a, T *a_d, T y_d, void *tape)     without `tape` where there is no augmented function
    T    f_forward(A *x, A *x_d, T a, T a_d, T *y_d)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Value
from irgrad.engine.transforms.symbols import Scalar
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.engine.transforms.custom import Writer

__all__ = ["c_prototype", "foreign_function", "run_fixed"]

_C = {"double": "double", "float": "float", "i64": "long", "i32": "int", "i16": "short", "i8": "char", "i1": "_Bool",
      "ptr": "void *", "void": "void"}  # fmt: skip


def run_fixed(writer: Writer) -> None:
    """Write a forward or reverse function for a rule without a body."""
    form = writer.site.rule.form
    if form == "stop":
        _stop(writer)
    elif form == "registered":
        from irgrad.engine.transforms.registered import run_registered

        run_registered(writer)
    elif form == "foreign":
        (_forward if writer.mode == "forward" else _reverse)(writer)
    else:
        raise RuleError(f"a rule of the form `{form}` cannot be called", where=writer.site.rule.place)


def _stop(writer: Writer) -> None:
    """What the function writes is constant: its shadow is cleared."""
    from irgrad.engine.transforms.context import Context
    from irgrad.engine.transforms.views import View

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
        context.zero(shadow, shadow.size)


def _reverse(writer: Writer) -> None:
    from irgrad.engine.transforms.context import Number

    code, shape = writer.code, writer.shape
    params: list[ty.Type] = []
    names: list[str] = []
    values: list[Value] = []
    for i, type_ in enumerate(writer.params):
        params, names, values = [*params, type_], [*names, writer.name(i)], [*values, writer.values[i]]
        if shape.shadow[i]:
            params, names, values = [*params, ty.PTR], [*names, f"{names[-1]}_d"], [*values, writer.shadows[i]]
        elif shape.adjoint[i]:
            argument = writer.arguments[i]
            assert isinstance(argument, Number) and argument._adjoint is not None
            params, names, values = [*params, ty.PTR], [*names, f"{names[-1]}_d"], [*values, argument._adjoint.slot]
    if shape.active:
        assert writer._cotangent is not None
        params, names, values = [*params, writer.fn_type.ret], [*names, "y_d"], [*values, writer._cotangent]
    if "augmented" in writer.site.rule.options:
        params, names, values = [*params, ty.PTR], [*names, "tape"], [*values, writer.foreign_tape()]
    fn = foreign_function(writer, "reverse", ty.function(ty.VOID, tuple(params)), names)
    code.b.call(fn, values, ty.function(ty.VOID, tuple(params)))


def _forward(writer: Writer) -> None:
    """The function in C makes the call as well."""
    code, shape, ret = writer.code, writer.shape, writer.fn_type.ret
    params: list[ty.Type] = []
    names: list[str] = []
    values: list[Value] = []
    for i, type_ in enumerate(writer.params):
        params, names, values = [*params, type_], [*names, writer.name(i)], [*values, writer.values[i]]
        if i in writer.shadows:
            params, names, values = [*params, type_], [*names, f"{names[-1]}_d"], [*values, writer.shadows[i]]
    slot = code.stack(ret) if shape.active else None
    if slot is not None:
        params, names, values = [*params, ty.PTR], [*names, "y_d"], [*values, slot]
    ftype = ty.function(ret, tuple(params))
    writer.replaced = code.b.call(foreign_function(writer, "forward", ftype, names), values, ftype)
    if slot is not None:
        writer.result().tangent = Scalar(code, code.b.load(ret, slot))


def foreign_function(writer: Writer, role: str, ftype: ty.FunctionType, names: list[str]) -> Function:
    """The function of a rule in C, declared. Raises RuleError, printing the prototype, where the module has another."""
    unit, rule = writer.unit, writer.site.rule
    name = rule.options[role]
    if unit.rules is not None and name in unit.rules.symbols:
        unit.rules.wanted.add(name)
    found = unit.module.functions.get(name)
    if found is None:
        declared: Function = unit.declare(name, ftype)
        return declared
    if found.ftype.ret is ftype.ret and found.ftype.params == ftype.params:
        return found
    raise RuleError(f"the {role} function `{name}` has another prototype", where=rule.place,
                    which=c_prototype(name, found.ftype, [a.name or "" for a in found.args]),
                    because=f"for ({', '.join(map(str, writer.site.types[2:]))}) the arguments are others",
                    fix=c_prototype(name, ftype, names))  # fmt: skip


def c_prototype(name: str, ftype: ty.FunctionType, names: list[str]) -> str:
    """A prototype in C."""
    parts = []
    for type_, parameter in zip(ftype.params, names, strict=True):
        spelled = _C.get(str(type_), str(type_))
        parts.append(f"{spelled}{'' if spelled.endswith('*') or not parameter else ' '}{parameter}")
    return f"{_C.get(str(ftype.ret), str(ftype.ret))} {name}({', '.join(parts)});"
