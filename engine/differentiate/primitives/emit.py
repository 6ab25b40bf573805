"""Turns the expressions of a rule row into instructions: the engine's reading of the table."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.intrinsics import PURE, type_suffix
from irgrad.engine.ir.model import ConstInt, ConstUndef, Value, const_float
from irgrad.engine.ir.types import Type
from irgrad.rules.lookup import float_intrinsics

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
LIBM_SUFFIX = {"float": "f", "double": "", "x86_fp80": "l"}


@cache
def _intrinsics() -> frozenset[str]:
    return frozenset(intrinsic for intrinsic, _ in float_intrinsics().values())


class Emitter:
    """An EmitContext (`irgrad.rules.expressions.expr`): makes instructions of one float type where a builder stands."""

    __slots__ = ("builder", "type", "unit")

    def __init__(self, unit: Unit, builder: Builder, type_: Type) -> None:
        self.unit = unit
        self.builder = builder
        self.type = type_

    def const(self, value: float) -> Value:
        """A literal of the row's type."""
        return const_float(self.type, value)

    def cmp(self, pred: str, a: Value, b: Value) -> Value:
        """Float comparison (ordered unless the predicate says otherwise); integers compare as signed."""
        if isinstance(a.type.scalar, ty.IntType):
            return self.builder.icmp({"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}.get(pred, pred), a, b)
        names = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
        return self.builder.fcmp(names.get(pred, pred), a, b)

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """Select."""
        return self.builder.select(condition, a, b)

    def op(self, name: str, *args: Value) -> Value:
        """An arithmetic operation or a maths function by the name the rule tables use."""
        b = self.builder
        if name in ARITHMETIC:
            return b.binary(ARITHMETIC[name], args[0], args[1])
        if name == "neg":
            return b.fneg(args[0])
        if name == "sitofp":
            return self._from_int(args[0])
        if name in ("iadd1", "isub1"):  # an integer argument's neighbours (powi, jn)
            return b.binary("add", args[0], ConstInt(args[0].type, 1 if name == "iadd1" else -1))
        if name == "scalbln":  # its exponent is a long: truncated by _with_int
            return self._with_int("ldexp", args[0], args[1])
        if name in ("ldexp", "powi"):
            return self._with_int(name, args[0], args[1])
        if name in ("jn", "yn"):
            return self._bessel(name, args[0], args[1])
        if name in _intrinsics():
            return self._intrinsic(name, args)
        if name.startswith("call:"):  # the function itself (linear rules)
            return b.call(self.unit.module.functions[name[5:]], args)
        return self._libm(name, args)

    def _from_int(self, value: Value) -> Value:
        if value.type.is_fp:
            return value
        if isinstance(self.type, ty.VectorType) and not value.type.is_vector:
            return self._splat(self.builder.cast("sitofp", value, self.type.elem))
        return self.builder.cast("sitofp", value, self.type)

    def _splat(self, value: Value) -> Value:
        assert isinstance(self.type, ty.VectorType)
        result: Value = ConstUndef(self.type, poison=True)
        for i in range(self.type.count):
            result = self.builder.insertelement(result, value, i)
        return result

    def _intrinsic(self, name: str, args: tuple[Value, ...]) -> Value:
        ftype = ty.function(self.type, tuple(a.type for a in args))
        fn = self.unit.declare(f"llvm.{name}.{type_suffix(self.type)}", ftype, PURE)
        return self.builder.call(fn, args, flags=self._flags())

    def _flags(self) -> tuple[str, ...]:
        """Of a function that the rules alone ask for: what it gives only flows into derivatives."""
        flags = self.builder.flags
        return (*flags, "afn") if flags and self.unit.request.approximate else flags

    def _with_int(self, name: str, x: Value, n: Value) -> Value:
        whole = n
        if whole.type.is_fp:
            whole = self.builder.cast("fptosi", n, ty.I32)
        elif isinstance(whole, ConstInt):
            whole = ConstInt(ty.I32, whole.value)
        elif whole.type is ty.I64:
            whole = self.builder.cast("trunc", whole, ty.I32)
        elif isinstance(whole.type, ty.IntType) and whole.type.bits < 32:
            whole = self.builder.cast("sext", whole, ty.I32)
        suffix = f"{type_suffix(self.type)}.{type_suffix(whole.type)}"
        fn = self.unit.declare(f"llvm.{name}.{suffix}", ty.function(self.type, (self.type, whole.type)), PURE)
        return self.builder.call(fn, [x, whole])

    def _bessel(self, name: str, n: Value, x: Value) -> Value:
        return self._scalarised(name, (n, x), (False, True))

    def _libm(self, name: str, args: tuple[Value, ...]) -> Value:
        return self._scalarised(name, args, tuple(a.type.is_fp for a in args))

    def _scalarised(self, name: str, args: tuple[Value, ...], floats: tuple[bool, ...]) -> Value:
        if not isinstance(self.type, ty.VectorType):
            return self._scalar_call(name, self.type, args, floats)
        result: Value = ConstUndef(self.type, poison=True)
        b = self.builder
        for i in range(self.type.count):
            lane = tuple(b.extractelement(a, i) if a.type.is_vector else a for a in args)
            result = b.insertelement(result, self._scalar_call(name, self.type.elem, lane, floats), i)
        return result

    def _scalar_call(self, name: str, type_: Type, args: tuple[Value, ...], floats: tuple[bool, ...]) -> Value:
        b = self.builder
        work = type_ if str(type_) in LIBM_SUFFIX else ty.F32 if type_.bits == 16 else ty.F64  # type: ignore[attr-defined]
        cast = "fpext" if work is not type_ and type_.bits < work.bits else "fptrunc"  # type: ignore[attr-defined]
        actual = [b.cast(cast, a, work) if f and a.type is not work else a for a, f in zip(args, floats, strict=True)]
        actual = [b.cast("trunc", a, ty.I32) if a.type is ty.I64 else a for a in actual]
        symbol = name if name.startswith("irgrad.") else name + LIBM_SUFFIX[str(work)]
        if name.startswith("irgrad."):
            symbol = f"{name}.{type_suffix(work)}"
        fn = self.unit.declare(symbol, ty.function(work, tuple(a.type for a in actual)), PURE)
        value: Value = b.call(fn, actual, flags=("afn",) if "afn" in self._flags() else ())
        return value if work is type_ else b.cast("fptrunc" if cast == "fpext" else "fpext", value, type_)
