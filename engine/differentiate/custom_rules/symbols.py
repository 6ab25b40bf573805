"""What bodies of rules compute with: numbers, pointers and arrays that exist when the kernel runs.

Operators and NumPy's functions on them append instructions to the function that is being written (`Code`). Where all
operands are literals the result is one, and comparisons of literals are plain bools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.primitives.emit import Emitter
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstFloat, ConstInt, Function, Instruction, Value, bits_to_float, const_float
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.tracing import Condition, Traced, innermost_line

__all__ = ["Code", "Pointer", "Scalar", "Variable", "ir_type", "size_of", "undecided"]

_IR = {"f16": ty.HALF, "f32": ty.F32, "f64": ty.F64}


def ir_type(dtype: Any) -> ty.Type:
    """The LLVM type of an element: a class of `irgrad.rules.definitions.types`, its name, or a NumPy dtype."""
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    name = {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32", "float": "f64", "int": "i64"}.get(
        name, name
    )
    if name in _IR:
        return _IR[name]
    if name.startswith("i") and name[1:].isdigit():
        return ty.int_(int(name[1:]))
    if name in ("ptr", "Ptr"):
        return ty.PTR
    raise RuleError(f"`{name}` is no element of memory", which=innermost_line(), fix="f64, f32, i64, i32, ...")


def size_of(type_: ty.Type) -> int:
    """Bytes of an element."""
    return ty.size_of(type_)


def undecided() -> RuleError:
    """The error for a Python decision on a value of the kernel."""
    return RuleError("a rule decides with `if` on a traced value", which=innermost_line(),
                     because="the body runs once, when the derivative is made: the value is not known then",
                     fix="with ctx.when(condition): ...   or   ctx.where(condition, a, b)")  # fmt: skip


class Code:
    """A function that is being written: blocks that precede the body (`before`), and the insertion point in it."""

    def __init__(self, unit: Any, fn: Function) -> None:
        self.unit = unit
        self.fn = fn
        self.before = Builder(self.block("start"))
        self.b = Builder(self.block("body"))
        self.scopes: list[list[Value]] = [[]]

    def block(self, name: str) -> Block:
        """A new block at the end of the function."""
        block = Block(f"{name}.{len(self.fn.blocks)}")
        block.function = self.fn
        self.fn.blocks.append(block)
        return block

    def stack(self, type_: ty.Type) -> Instruction:
        """A stack variable, made where the function starts."""
        return Builder(self.fn.blocks[0], at=0).alloca(type_, align=ty.align_of(type_))

    def allocate(self, b: Builder, count: Value, element: ty.Type) -> Value:
        """Heap memory for elements; freed where the scope ends."""
        malloc = self.unit.declare("malloc", ty.function(ty.PTR, (ty.I64,)), "", "noalias")
        return b.call(malloc, [b.mul(b.to_i64(count), ConstInt(ty.I64, size_of(element)))])

    def close_scope(self) -> None:
        """Free what was allocated since the scope was opened."""
        free = self.unit.declare("free", ty.function(ty.VOID, (ty.PTR,)))
        for pointer in reversed(self.scopes.pop()):
            self.b.call(free, [pointer])

    # -- numbers -----------------------------------------------------------------------------------------------------

    def number(self, value: Any, like: ty.Type | None = None) -> Scalar:
        """A Python number as a literal, of the type `like` where that fits."""
        if isinstance(value, Scalar):
            return value
        if isinstance(value, Variable):
            return value.value
        if isinstance(value, bool):
            return Scalar(self, ConstInt(ty.I1, int(value)))
        if hasattr(value, "dtype") and hasattr(value, "item"):
            value = value.item()
        if isinstance(value, int):
            if like is not None and like.is_fp:
                return Scalar(self, const_float(like, float(value)))
            return Scalar(self, ConstInt(like if isinstance(like, ty.IntType) and like.bits > 1 else ty.I64, value))
        if isinstance(value, float):
            return Scalar(self, const_float(like if like is not None and like.is_fp else ty.F64, value))
        raise RuleError(f"a {type(value).__name__} is no number of a rule", which=innermost_line(),
                        fix="numbers, arguments of the rule, and what is computed from them")  # fmt: skip

    def cast(self, scalar: Scalar, type_: ty.Type) -> Value:
        """A number as another type of number."""
        value, b = scalar.v, self.b
        if value.type is type_:
            return value
        if isinstance(value, ConstInt):
            return const_float(type_, float(value.value)) if type_.is_fp else ConstInt(type_, value.value)
        if isinstance(value, ConstFloat) and type_.is_fp:
            return const_float(type_, bits_to_float(value.type, value.bits))
        source, target = value.type, type_
        if isinstance(source, ty.IntType) and isinstance(target, ty.IntType):
            wider = "zext" if source.bits == 1 else "sext"
            return b.cast("trunc" if source.bits > target.bits else wider, value, target)
        if isinstance(source, ty.IntType):
            return b.cast("uitofp" if source.bits == 1 else "sitofp", value, target)
        if target.is_fp and source.is_fp:
            return b.cast("fptrunc" if size_of(source) > size_of(target) else "fpext", value, target)
        return b.cast("fptosi", value, target)

    def common(self, values: Sequence[Any]) -> tuple[list[Value], ty.Type]:
        """Numbers brought to one type: floats before integers, wide before narrow, literals last."""
        typed = [v.v.type for v in values if isinstance(v, Scalar) and not v.known] or [
            v.v.type for v in values if isinstance(v, Scalar)
        ]
        floats = [t for t in typed if t.is_fp]
        if not floats and any(isinstance(v, float) for v in values):
            floats = [ty.F64]
        type_ = max(floats or typed or [ty.I64], key=size_of)
        if isinstance(type_, ty.IntType) and type_.bits == 1:
            type_ = ty.I64
        return [self.cast(self.number(v, type_), type_) for v in values], type_


_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv", "mod": "frem"}
_INT = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "sdiv", "mod": "srem"}
_PREDICATES = {"lt": ("olt", "slt"), "le": ("ole", "sle"), "gt": ("ogt", "sgt"), "ge": ("oge", "sge"),
               "eq": ("oeq", "eq"), "ne": ("une", "ne")}  # fmt: skip


class Scalar:
    """A number, or a condition (an i1)."""

    __slots__ = ("code", "v")
    __hash__ = None  # type: ignore[assignment]
    if TYPE_CHECKING:

        def __add__(self, other: Any) -> Any: ...

        def __radd__(self, other: Any) -> Any: ...

        def __sub__(self, other: Any) -> Any: ...

        def __rsub__(self, other: Any) -> Any: ...

        def __mul__(self, other: Any) -> Any: ...

        def __rmul__(self, other: Any) -> Any: ...

        def __truediv__(self, other: Any) -> Any: ...

        def __rtruediv__(self, other: Any) -> Any: ...

        def __floordiv__(self, other: Any) -> Any: ...

        def __rfloordiv__(self, other: Any) -> Any: ...

        def __mod__(self, other: Any) -> Any: ...

        def __rmod__(self, other: Any) -> Any: ...

        def __lt__(self, other: Any) -> Any: ...

        def __le__(self, other: Any) -> Any: ...

        def __gt__(self, other: Any) -> Any: ...

        def __ge__(self, other: Any) -> Any: ...

    def __init__(self, code: Code, v: Value) -> None:
        self.code = code
        self.v = v

    @property
    def known(self) -> bool:
        """A literal at this call."""
        return isinstance(self.v, ConstInt | ConstFloat)

    @property
    def dtype(self) -> str:
        """`f64`, `i32`, ..."""
        return next((k for k, v in _IR.items() if v is self.v.type), str(self.v.type))

    @property
    def active(self) -> bool:
        """Whether it has an adjoint or tangent (arguments may)."""
        return False

    def number(self) -> Any:
        """The literal as a Python number."""
        if isinstance(self.v, ConstInt):
            return bool(self.v.value) if self.v.type is ty.I1 else self.v.value
        assert isinstance(self.v, ConstFloat)
        return bits_to_float(self.v.type, self.v.bits)

    def astype(self, dtype: Any) -> Scalar:
        """The number as another type."""
        return Scalar(self.code, self.code.cast(self, ir_type(dtype)))

    def __bool__(self) -> bool:
        if self.known:
            return bool(self.number())
        raise undecided()

    def __index__(self) -> int:
        if isinstance(self.v, ConstInt):
            return self.v.value
        raise RuleError("a rule asks for the number behind a traced value", which=innermost_line(),
                        because="the body runs once, when the derivative is made: the value is not known then",
                        fix="with ctx.for_range(n) as i: ...   or NumPy's functions")  # fmt: skip

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.number()) if self.known else float(self.__index__())

    def __neg__(self) -> Any:
        if self.v.type.is_fp:
            return Scalar(self.code, self.code.b.fneg(self.v))
        return arithmetic(self.code, "sub", 0, self)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Any:
        import numpy as np

        return np.absolute(self) if self.v.type.is_fp else select(self.code, self < 0, -self, self)

    def __invert__(self) -> Any:
        if self.known:
            return not self.number()
        return Scalar(self.code, self.code.b.binary("xor", self.v, ConstInt(ty.I1, 1)))

    def __and__(self, other: Any) -> Any:
        return _logic(self.code, "and", self, other)

    def __or__(self, other: Any) -> Any:
        return _logic(self.code, "or", self, other)

    __rand__, __ror__ = __and__, __or__

    def __pow__(self, other: Any) -> Any:
        import numpy as np

        if isinstance(other, int) and 0 < other <= 4:
            result: Any = self
            for _ in range(other - 1):
                result = result * self
            return result
        power: Any = np.power
        return power(self, other)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from irgrad.rules.expressions.tracing import _apply

        name = ufunc.__name__
        direct = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv",
                  "floor_divide": "floordiv", "remainder": "mod"}.get(name)  # fmt: skip
        compared = {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq",
                    "not_equal": "ne"}.get(name)  # fmt: skip
        if any(isinstance(value, _Lifted) for value in inputs):
            return NotImplemented
        if method == "__call__" and not options and direct:
            return arithmetic(self.code, direct, *inputs)
        if method == "__call__" and not options and compared:
            return comparison(self.code, compared, *inputs)
        if method == "__call__" and name in ("logical_and", "logical_or", "bitwise_and", "bitwise_or"):
            return _logic(self.code, "and" if name.endswith("and") else "or", *inputs)
        if method == "__call__" and name in ("logical_not", "invert"):
            return ~inputs[0]
        return _expression(self.code, inputs, lambda *traced: _apply(ufunc, method, traced, options))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ == "where" and len(args) == 3:
            if any(isinstance(value, _Lifted) for value in args):
                return NotImplemented
            return select(self.code, *args)
        from irgrad.rules.expressions.tracing import _array_function

        return _expression(self.code, args, lambda *traced: _array_function(function, traced, kwargs))

    def __repr__(self) -> str:
        return f"<{self.dtype} {self.number()}>" if self.known else f"<{self.dtype} of the kernel>"


class _Lifted:
    """Base of arrays: what numbers leave to them."""


def arithmetic(code: Code, name: str, a: Any, b: Any) -> Any:
    """One operation on two numbers."""
    (x, y), type_ = code.common([a, b])
    if name == "truediv" and not type_.is_fp:
        x, y = code.cast(Scalar(code, x), ty.F64), code.cast(Scalar(code, y), ty.F64)
        type_ = ty.F64
    if type_.is_fp:
        if name == "floordiv":
            raise RuleError("`//` is for integers", which=innermost_line(), fix="np.floor(a / b)")
        code.b.flags = code.unit.flags
        value = code.b.binary(_FLOAT[name], x, y)
        code.b.flags = ()
        return Scalar(code, value)
    if name in ("floordiv", "mod") and isinstance(x, ConstInt) and isinstance(y, ConstInt) and y.value:
        quotient = x.value // y.value if name == "floordiv" else x.value % y.value
        return Scalar(code, ConstInt(type_, quotient))
    simple = {"add": code.b.add, "sub": code.b.sub, "mul": code.b.mul}.get(name)
    return Scalar(code, simple(x, y) if simple is not None else code.b.binary(_INT[name], x, y))


def comparison(code: Code, name: str, a: Any, b: Any) -> Any:
    """A condition, or a plain bool where both sides are literals."""
    first, second = code.number(a), code.number(b)
    if first.known and second.known:
        import operator

        return bool(getattr(operator, name)(first.number(), second.number()))
    (x, y), type_ = code.common([a, b])
    on_floats, on_integers = _PREDICATES[name]
    return Scalar(code, code.b.fcmp(on_floats, x, y) if type_.is_fp else code.b.icmp(on_integers, x, y))


def _logic(code: Code, name: str, a: Any, b: Any) -> Any:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, bool) or (isinstance(one, Scalar) and one.known):
            holds = bool(one)
            return (other if holds else False) if name == "and" else (True if holds else other)
    return Scalar(code, code.b.binary(name, a.v, b.v))


def select(code: Code, condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`."""
    if isinstance(condition, bool) or (isinstance(condition, Scalar) and condition.known):
        return a if condition else b
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return Pointer(code, code.b.select(condition.v, a.v, b.v), a.element)
    (x, y), _ = code.common([a, b])
    return Scalar(code, code.b.select(condition.v, x, y))


def _expression(code: Code, inputs: Sequence[Any], build: Any) -> Any:
    """A function of floats, written as an expression of the rule tables."""
    from irgrad.rules.expressions.expr import Arg, emit

    scalars = [v.value if isinstance(v, Variable) else v for v in inputs]
    values, type_ = code.common(scalars)
    if not type_.is_fp:
        type_ = ty.F64
        values = [code.cast(Scalar(code, v), type_) for v in values]
    made = build(*(Traced(Arg(i)) for i in range(len(values))))
    emitter: Any = Emitter(code.unit, code.b, type_)
    if isinstance(made, Condition):
        return Scalar(code, _condition(code, made, emitter, values))
    return Scalar(code, emit(made.expr, emitter, values))


def _condition(code: Code, condition: Any, emitter: Any, values: Sequence[Value]) -> Value:
    from irgrad.rules.expressions.expr import emit

    if condition.kind == "is":
        result: Value = emit(condition.parts[0], emitter, values)
        return result
    parts = [_condition(code, part, emitter, values) for part in condition.parts]
    if condition.kind == "not":
        return code.b.binary("xor", parts[0], ConstInt(ty.I1, 1))
    return code.b.binary(condition.kind, parts[0], parts[1])


def _operators() -> None:
    def define(name: str, swapped: bool) -> Any:
        def operator(self: Any, other: Any) -> Any:
            if isinstance(other, _Lifted) or not _is_number(other):
                return NotImplemented
            return arithmetic(self.code, name, other, self) if swapped else arithmetic(self.code, name, self, other)

        return operator

    def compare(name: str) -> Any:
        def operator(self: Any, other: Any) -> Any:
            if isinstance(other, _Lifted) or not _is_number(other):
                return NotImplemented
            return comparison(self.code, name, self, other)

        return operator

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
        setattr(Scalar, f"__{name}__", define(name, False))
        setattr(Scalar, f"__r{name}__", define(name, True))
    for name in _PREDICATES:
        setattr(Scalar, f"__{name}__", compare(name))


def _is_number(value: Any) -> bool:
    return isinstance(value, Scalar | Variable | int | float) or (
        hasattr(value, "item") and getattr(value, "ndim", 1) == 0
    )


_operators()


class Variable:
    """A number that changes: `s.value`, `s.value = v`, `s.value += v`."""

    __slots__ = ("_type", "code", "slot")

    def __init__(self, code: Code, start: Scalar) -> None:
        self.code = code
        self._type = start.v.type
        self.slot = code.stack(start.v.type)
        code.b.store(start.v, self.slot)

    @property
    def value(self) -> Scalar:
        """What it holds now."""
        return Scalar(self.code, self.code.b.load(self._type, self.slot))

    @value.setter
    def value(self, new: Any) -> None:
        self.code.b.store(self.code.cast(self.code.number(new, self._type), self._type), self.slot)


def nothing() -> None:
    """Memory that is there."""


class Pointer:
    """An address of elements: `p + n`, `p[i]`, `p[i] = v`, `p[i] += v`."""

    def __init__(self, code: Code, v: Value, element: ty.Type | None) -> None:
        self.code = code
        self.v = v
        self.element = element
        self.read: Callable[[], None] = nothing  # called where the memory is read; raises where it is no longer there

    def at(self, v: Value, element: ty.Type | None) -> Pointer:
        """Another address in the same memory."""
        pointer = Pointer(self.code, v, element)
        pointer.read = self.read
        return pointer

    def _typed(self) -> ty.Type:
        if self.element is None:
            raise RuleError("the elements behind a pointer are not known", which=innermost_line(),
                            because="neither a prototype nor the program tells",
                            fix='p.astype(f64), or extern("name", "void(f64* p, ...)")')  # fmt: skip
        return self.element

    def astype(self, dtype: Any) -> Pointer:
        """The same address, other elements."""
        return self.at(self.v, ir_type(dtype))

    def __add__(self, count: Any) -> Pointer:
        index = self.code.cast(self.code.number(count), ty.I64)
        return self.at(self.code.b.gep(self._typed(), self.v, index), self.element)

    def __sub__(self, count: Any) -> Pointer:
        return Pointer.__add__(self, 0 - self.code.number(count))

    def _at(self, index: Any) -> Value:
        return Pointer.__add__(self, index).v

    def __getitem__(self, index: Any) -> Scalar:
        self.read()
        type_ = self._typed()
        return Scalar(self.code, self.code.b.load(type_, self._at(index), ty.align_of(type_)))

    def __setitem__(self, index: Any, value: Any) -> None:
        type_ = self._typed()
        stored = self.code.cast(self.code.number(value, type_), type_)
        self.code.b.store(stored, self._at(index), ty.align_of(type_))

    def __bool__(self) -> bool:
        raise undecided()

    def is_null(self) -> Scalar:
        """Whether it is the null pointer."""
        from irgrad.engine.ir.model import ConstZero

        return Scalar(self.code, self.code.b.icmp("eq", self.v, ConstZero(ty.PTR)))
