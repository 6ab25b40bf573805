"""Two pieces of IR around each call of the notation, as text.

The *root* is the differentiated function in normal form, every argument by pointer. Pointers of a C program may
overlap, so unlike those of a kernel they are marked so. The *thunk* has the prototype of the call and takes its place:
it puts numbers and their adjoints on the stack, seeds the result's cotangent with 1, calls the derivative, and returns
what the call returns.
"""

from __future__ import annotations

from irgrad.engine.analyses.objects import OVERLAPS
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.lexer import quoted_name
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.types import Type
from irgrad.engine.notation.calls import DerivativeCall, used
from irgrad.rules.errors import Unsupported

__all__ = ["active", "root_text", "thunk_text"]

_ONE = {"double": "1.0", "float": "1.0", "half": "0xH3C00", "bfloat": "0xR3F80",
        "x86_fp80": "0xK3FFF8000000000000000"}  # fmt: skip


def active(call: DerivativeCall) -> list[str]:
    """What `derive` is told about each argument of the root, its result's slot included."""
    kinds = ["const" if p.activity == "const" else "dup" for p in call.parameters]
    if _result(call) is not None:
        kinds.append("dup")
    return kinds


def _result(call: DerivativeCall) -> Type | None:
    """The type of the function's result where that is a number."""
    ret = call.function.ftype.ret
    return ret if isinstance(ret, ty.FloatType) else None


def root_text(call: DerivativeCall, name: str) -> str:
    """The function in normal form. A function that is given as a constant argument is called directly."""
    params, loads, args = [], [], []
    actual = call.instr.args
    for formal, said in zip(call.function.args, call.parameters, strict=True):
        i, type_ = formal.index, formal.type
        if isinstance(type_, ty.PtrType):
            params.append(f"ptr {OVERLAPS} %a{i}")
            given = actual[said.value]
            known = f"@{quoted_name(given.name or '')}" if isinstance(given, Function) else f"%a{i}"
            args.append(f"ptr {_passing(formal.attrs)}{known}")
        else:
            params.append(f"ptr noalias %a{i}")
            loads.append(f"  %v{i} = load {type_}, ptr %a{i}, align {ty.align_of(type_)}")
            args.append(f"{type_} {_passing(formal.attrs)}%v{i}")
    ret = call.function.ftype.ret
    target = f"@{quoted_name(call.function.name or '')}({', '.join(args)})"
    lines = [*loads]
    if _result(call) is not None:
        params.append("ptr noalias %ret")
        lines += [f"  %r = call {ret} {target}", f"  store {ret} %r, ptr %ret, align {ty.align_of(ret)}"]
    else:
        lines.append(f"  {'' if ret is ty.VOID else '%r = '}call {_prototype(call.function)} {target}")
    body = "\n".join(lines)
    return f"define void @{quoted_name(name)}({', '.join(params)}) {{\n{body}\n  ret void\n}}\n"


def _prototype(function: Function) -> str:
    return str(function.ftype) if function.ftype.vararg else str(function.ftype.ret)


def _passing(attrs: str) -> str:
    """Those attributes of a parameter that say how it is passed."""
    words = attrs.replace(", ", ",").split()
    kept = [word for word in words if word in ("signext", "zeroext") or word.startswith("byval(")]
    aligned = [f"align {words[i + 1]}" for i, word in enumerate(words[:-1]) if word == "align" and kept]
    return "".join(f"{word} " for word in (*kept, *aligned))


class _Thunk:
    """Builds the text of one thunk."""

    def __init__(self, call: DerivativeCall, caller: Function) -> None:
        self.call = call
        self.caller = caller
        self.lines: list[str] = []

    def text(self, name: str, derivative: str) -> str:
        call, info = self.call, self.call.instr.call
        assert info is not None
        params = []
        for i, arg in enumerate(call.instr.args):
            attrs = info.arg_attrs[i] if i < len(info.arg_attrs) else ""
            kept = f"{attrs} " if i == call.result else _passing(attrs)
            params.append(f"{arg.type} {kept}%a{i}")
        slots: list[str] = []
        gradients: list[tuple[Type, str]] = []
        for formal, said in zip(call.function.args, call.parameters, strict=True):
            type_ = formal.type
            if isinstance(type_, ty.PtrType):
                slots += [f"ptr {self._value(i, type_)}" for i in (said.value, said.shadow) if i >= 0]
                continue
            slots.append(f"ptr {self._slot(f's{formal.index}', type_, self._value(said.value, type_))}")
            if said.activity == "const":
                continue
            start = self._value(said.shadow, type_) if said.shadow >= 0 else _nought(type_)
            slots.append(f"ptr {self._slot(f'd{formal.index}', type_, start)}")
            if said.activity == "out":
                gradients.append((type_, f"%d{formal.index}"))
        returned = self._returned(slots, gradients)
        self.lines.append(f"  call void @{quoted_name(derivative)}({', '.join(slots)})")
        self._return(returned)
        ret = call.instr.type
        body = "\n".join(self.lines)
        return f"define {ret} @{quoted_name(name)}({', '.join(params)}) alwaysinline {{\n{body}\n}}\n"

    def _value(self, number: int, type_: Type) -> str:
        """An argument of the call, as the parameter's type: numbers behind `...` come promoted."""
        have = self.call.instr.args[number].type
        if have is type_:
            return f"%a{number}"
        if isinstance(have, ty.FloatType) and isinstance(type_, ty.FloatType):
            op = "fptrunc" if ty.store_size(have) > ty.store_size(type_) else "fpext"
        elif isinstance(have, ty.IntType) and isinstance(type_, ty.IntType):
            op = "trunc" if have.bits > type_.bits else "sext"
        else:
            raise Unsupported(f"argument {number + 1} is a `{have}`", where=self.call.where,
                              because=f"`{self.call.function.name}` takes a `{type_}` there",
                              fix="convert it in the call")  # fmt: skip
        name = f"%c{number}.{len(self.lines)}"
        self.lines.append(f"  {name} = {op} {have} %a{number} to {type_}")
        return name

    def _slot(self, name: str, type_: Type, start: str) -> str:
        align = ty.align_of(type_)
        self.lines.append(f"  %{name} = alloca {type_}, align {align}")
        self.lines.append(f"  store {type_} {start}, ptr %{name}, align {align}")
        return f"%{name}"

    def _returned(self, slots: list[str], gradients: list[tuple[Type, str]]) -> list[tuple[Type, str]]:
        """Adds the slots of the result; the values that the call returns, in order."""
        kind, switches = _result(self.call), self.call.switches
        forward = self.call.mode == "forward"
        if kind is None:
            if "primal_return" in switches:
                raise Unsupported("enzyme_primal_return has no value to return", where=self.call.where,
                                  because=f"`{self.call.function.name}` returns `{self.call.function.ftype.ret}`",
                                  fix="leave it out, or differentiate a function that returns a number")  # fmt: skip
            return gradients
        seed = "0.0" if forward or "const_return" in switches else _ONE.get(str(kind), "1.0")
        slots.append(f"ptr {self._slot('r', kind, _nought(kind))}")
        slots.append(f"ptr {self._slot('dr', kind, _nought(kind) if seed == '0.0' else seed)}")
        primal = [(kind, "%r")] if "primal_return" in switches else []
        tangent = [(kind, "%dr")] if forward and not switches & {"noret", "const_return"} else []
        return [*primal, *tangent, *gradients]

    def _return(self, values: list[tuple[Type, str]]) -> None:
        call = self.call
        ret = call.instr.type
        kind = ty.struct(tuple(type_ for type_, _ in values)) if len(values) != 1 else values[0][0]
        if call.result >= 0:
            info = call.instr.call
            assert info is not None
            self._check(bool(values), "a struct", values)
            self._gather(kind, values, f"%a{call.result}")
            self.lines.append("  ret void")
            return
        if ret is ty.VOID:
            self._check(call.mode == "forward" or not values, "nothing", values)
            self.lines.append("  ret void")
            return
        if not values and not used(self.caller, call.instr):
            self.lines.append(f"  ret {ret} {_nought(ret)}")
            return
        size = ty.size_of(kind) if values else 0
        fits = bool(values) and -(-size // 8) == -(-ty.size_of(ret) // 8) and (
            size == ty.size_of(ret) or not isinstance(ret, ty.FloatType))  # fmt: skip
        self._check(fits, f"a `{ret}`", values)
        room = ret if ty.size_of(ret) > size else kind
        self.lines.append(f"  %out = alloca {room}, align 16")
        self._gather(kind, values, "%out")
        self.lines += [f"  %whole = load {ret}, ptr %out, align 16", f"  ret {ret} %whole"]

    def _gather(self, kind: Type, values: list[tuple[Type, str]], where: str) -> None:
        offsets = ty.field_offsets(kind) if isinstance(kind, ty.StructType) else [0]
        for i, ((type_, slot), at) in enumerate(zip(values, offsets, strict=False)):
            align = ty.align_of(type_)
            self.lines += [
                f"  %g{i} = load {type_}, ptr {slot}, align {align}",
                f"  %p{i} = getelementptr i8, ptr {where}, i64 {at}",
                f"  store {type_} %g{i}, ptr %p{i}, align {align}",
            ]

    def _check(self, fits: bool, result: str, values: list[tuple[Type, str]]) -> None:
        if fits:
            return
        found = ", ".join(f"`{type_}`" for type_, _ in values) or "nothing"
        raise Unsupported(f"the result of the call is {result}", where=self.call.where,
                          because=f"the derivative of `{self.call.function.name}` returns {found}",
                          fix="declare the call with a result of that type: one number, or a struct of them in order")


def _nought(type_: Type) -> str:
    return "zeroinitializer" if not isinstance(type_, ty.PtrType) else "null"


def thunk_text(call: DerivativeCall, caller: Function, name: str, derivative: str) -> str:
    """What takes the place of the call. Raises Unsupported where the call's result does not fit."""
    return _Thunk(call, caller).text(name, derivative)
