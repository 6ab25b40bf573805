"""`ctx` and the arguments that bodies of rules with `ctx` get. docs/rules.md is the interface."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstData, ConstInt, ConstZero, GlobalVariable, Value, const_float
from irgrad.engine.transforms import views
from irgrad.engine.transforms.foreign import Foreign
from irgrad.engine.transforms.rule_lanes import lane_view
from irgrad.engine.transforms.symbols import Code, Pointer, Scalar, Variable, ir_type, select, size_of
from irgrad.rules.errors import RuleError
from irgrad.rules.prototype import Prototype, parse
from irgrad.rules.tracing import innermost_line

if TYPE_CHECKING:
    from irgrad.engine.transforms.custom import Writer

_SMALL = 512  # bytes of a temporary of literal size that lies on the stack

__all__ = ["Adjoint", "ArrayArgument", "Context", "Nothing", "Number", "PointerArgument", "Reference", "Result"]


class Number(Scalar):
    """A number argument (or the result): `x.d`, `x.active`."""

    __slots__ = ("_active", "_adjoint", "_mode", "_name", "_tangent")

    def __init__(self, code: Code, v: Value, name: str, mode: str, active: bool) -> None:
        super().__init__(code, v)
        self._name = name
        self._mode = mode
        self._active = active
        self._adjoint: Variable | None = None
        self._tangent: Scalar | None = None
        if active and mode == "reverse":
            self._adjoint = Variable(code, code.number(0.0, v.type))

    @property
    def active(self) -> bool:
        return self._active

    @property
    def place(self) -> Value:
        """Reverse: the memory of its adjoint."""
        assert self._adjoint is not None
        return self._adjoint.slot

    @property
    def adjoint(self) -> Value:
        """Reverse: its adjoint as accumulated so far."""
        assert self._adjoint is not None
        return self._adjoint.value.v

    @property
    def d(self) -> Any:
        """Its adjoint, to add to (reverse), or its tangent (forward)."""
        if self._mode == "reverse":
            return Adjoint(self._adjoint)
        return self._tangent if self._tangent is not None else self.code.number(0.0, self.v.type)

    @d.setter
    def d(self, value: Any) -> None:
        if not (self._mode == "reverse" and isinstance(value, Adjoint)):
            raise RuleError(f"the derivative of `{self._name}` is assigned", which=innermost_line(),
                            because="reverse bodies accumulate; tangents of arguments are given",
                            fix=f"{self._name}.d += value")  # fmt: skip


class Adjoint:
    """The adjoint of a number argument: it can be added to. One without variable belongs to a Const argument."""

    def __init__(self, variable: Variable | None) -> None:
        self.variable = variable

    def __iadd__(self, value: Any) -> Adjoint:
        if isinstance(value, views.Lazy):
            raise RuleError(
                "an array is added to the adjoint of a number", which=innermost_line(), fix="x.d += np.sum(...)"
            )
        if self.variable is not None:
            self.variable.value = self.variable.value + value
        return self

    def __isub__(self, value: Any) -> Adjoint:
        return self.__iadd__(-value)


class Result(Scalar):
    """The result of the function: its value, and `d`, its cotangent (reverse) or the tangent to be set (forward)."""

    __slots__ = ("_d", "_mode", "tangent")

    def __init__(self, code: Code, v: Value, d: Value | None, mode: str) -> None:
        super().__init__(code, v)
        self._mode = mode
        self._d = d
        self.tangent: Scalar | None = None

    @property
    def active(self) -> bool:
        return self._mode == "forward" or self._d is not None

    @property
    def d(self) -> Scalar:
        """The cotangent (reverse); the tangent as set so far (forward)."""
        if self._mode == "reverse":
            return Scalar(self.code, self._d) if self._d is not None else self.code.number(0.0, self.v.type)
        return self.tangent if self.tangent is not None else self.code.number(0.0, self.v.type)

    @d.setter
    def d(self, value: Any) -> None:
        if self._mode == "reverse":
            raise RuleError("the cotangent of the result is assigned", which=innermost_line(),
                            because="a reverse body reads it", fix="x.d += ctx.result.d * ...")  # fmt: skip
        self.tangent = Scalar(self.code, self.code.cast(self.code.number(value, self.v.type), self.v.type))


class _Handed:
    """What pointer and array arguments share: the shadow, and the contents before and after the call."""

    writer: Writer
    position: int
    name: str
    shadow: Any

    @property
    def active(self) -> bool:
        return self.shadow is not None

    @property
    def d(self) -> Any:
        """The shadow."""
        if self.shadow is None:
            return self._no_shadow()
        return self.shadow

    @d.setter
    def d(self, value: Any) -> None:
        if value is self.shadow or isinstance(value, Nothing):
            return
        if self.writer.mode == "reverse" and not (isinstance(value, int | float) and value == 0):
            raise RuleError(f"the shadow of `{self.name}` is assigned", which=innermost_line(),
                            because="reverse bodies accumulate, and clear what the call overwrote",
                            fix=f"{self.name}.d += value   or   {self.name}.d = 0.0")  # fmt: skip
        if self.shadow is not None:
            if not isinstance(self.shadow, views.View):
                raise RuleError(
                    f"the shadow of `{self.name}` is assigned as a whole",
                    which=innermost_line(),
                    because="its extent is not known",
                    fix=f"{self.name}.d[i] = value, ctx.zero({self.name}.d, count), or a prototype with extents",
                )
            self.shadow.assign(value)

    def _no_shadow(self) -> Any:
        raise NotImplementedError

    def _contents(self, when: str, count: Any) -> Value:
        return self.writer.contents(self.position, when, count, self.element)  # type: ignore[attr-defined]


class Nothing:
    """Where derivatives of Const arguments go."""

    def __iadd__(self, value: Any) -> Nothing:
        return self

    __isub__ = __iadd__

    def __setitem__(self, index: Any, value: Any) -> None:
        pass

    def __getitem__(self, index: Any) -> Nothing:
        return self


class PointerArgument(_Handed, Pointer):
    """A pointer argument of unknown extent."""

    def __init__(
        self, writer: Writer, position: int, name: str, v: Value, shadow: Value | None, element: ty.Type | None
    ) -> None:
        Pointer.__init__(self, writer.code, v, element)
        self.writer, self.position, self.name = writer, position, name
        self.shadow = None if shadow is None else Pointer(writer.code, shadow, element)

    def _no_shadow(self) -> Any:
        raise RuleError(f"`{self.name}` is Const here, it has no shadow", which=innermost_line(),
                        because="this call does not differentiate it", fix=f"if {self.name}.active: ...")  # fmt: skip

    def saved(self, count: Any) -> Pointer:
        """The contents when the function was called: `count` elements."""
        return Pointer(self.code, self._contents("before", count), self.element)

    def result(self, count: Any) -> Pointer:
        """The contents when the function had returned: `count` elements."""
        return Pointer(self.code, self._contents("after", count), self.element)


class ArrayArgument(_Handed, views.View):
    """A pointer argument whose prototype gives extents."""

    def __init__(
        self,
        writer: Writer,
        position: int,
        name: str,
        v: Value,
        shadow: Value | None,
        element: ty.Type,
        shape: Sequence[Scalar],
    ) -> None:
        views.View.__init__(self, writer.code, v, element, shape)
        self.writer, self.position, self.name = writer, position, name
        self.shadow = None if shadow is None else _shadow_array(writer, shadow, element, shape)

    def _no_shadow(self) -> Any:
        return _ZeroArray(self.code, self.element)

    @property
    def saved(self) -> views.View:
        """The contents when the function was called."""
        return views.View(self.code, self._contents("before", self.size), self.element, self.shape)

    @property
    def result(self) -> views.View:
        """The contents when the function had returned."""
        return views.View(self.code, self._contents("after", self.size), self.element, self.shape)


def _shadow_array(writer: Writer, shadow: Value, element: ty.Type, shape: Sequence[Scalar]) -> views.View:
    if writer.lanes:
        return lane_view(writer.code, shadow, element, shape, writer.width)
    return views.View(writer.code, shadow, element, shape)


class _ZeroArray(Nothing, views.Lazy):
    """The shadow of a Const array: zeros to read, nothing to write."""

    def __init__(self, code: Code, element: ty.Type | None) -> None:
        self.zero = code.number(0.0, element) if element is not None and element.is_fp else code.number(0)
        views.Lazy.__init__(self, code, lambda: self.zero, [])

    def __getitem__(self, index: Any) -> Any:
        return self if index is Ellipsis else self.zero


class Reference(Number):
    """A scalar passed by reference: its value when the function was called; `ref` is the pointer."""

    __slots__ = ("ref", "shadow")

    def __init__(self, code: Code, v: Value, name: str, mode: str, ref: Value, shadow: Value | None) -> None:
        Scalar.__init__(self, code, v)
        self._name, self._mode, self._active = name, mode, shadow is not None
        self._adjoint = self._tangent = None
        self.ref = Pointer(code, ref, v.type)
        self.shadow = None if shadow is None else Pointer(code, shadow, v.type)

    def clear(self) -> None:
        """Set the shadow to zero."""
        if isinstance(self.shadow, views.View):
            self.shadow.assign(0.0)
        elif self.shadow is not None:
            self.shadow[0] = 0.0

    @property
    def d(self) -> Any:
        """The shadow's element: `x.d += value` (reverse), its value (forward)."""
        if isinstance(self.shadow, views.View):
            return self.shadow
        if self.shadow is None:
            return Adjoint(None) if self._mode == "reverse" else self.code.number(0.0, self.v.type)
        return _Element(self.shadow) if self._mode == "reverse" else self.shadow[0]

    @d.setter
    def d(self, value: Any) -> None:
        if isinstance(value, Adjoint | _Element) or (value is self.shadow and value is not None):
            return
        if isinstance(self.shadow, views.View):
            self.shadow.assign(value)
        elif self.shadow is not None:
            self.shadow[0] = value


class _Element:
    """One element of shadow memory, to be added to or read."""

    def __init__(self, shadow: Pointer) -> None:
        self.shadow = shadow

    @property
    def value(self) -> Scalar:
        return self.shadow[0]

    def __iadd__(self, value: Any) -> _Element:
        self.shadow[0] = self.shadow[0] + value
        return self


# -- ctx ---------------------------------------------------------------------------------------------------------------


class Context:
    """`ctx`: where a body of a rule says what the derivative does."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._code = writer.code
        self.mode: str = writer.mode
        self.width: int = writer.width
        self.null = Pointer(writer.code, ConstZero(ty.PTR), None)

    @property
    def result(self) -> Any:
        """The result of the function."""
        return self._writer.result()

    @property
    def needs_primal(self) -> bool:
        """Whether what the function itself computes is used."""
        return self._writer.needs_primal

    def overwritten(self, argument: Any) -> bool:
        """Whether the memory of an argument may be written between the call and its reverse (the call included)."""
        return self._writer.overwritten(argument.position, "before")

    def foreign(self, symbol: Any, prototype: str | Prototype | None = None) -> Foreign:
        """A compiled function to call. Raises RuleError when its types are not known or are others."""
        return Foreign(self._writer, symbol, parse(prototype) if isinstance(prototype, str) else prototype)

    def for_range(self, start: Any, stop: Any = None, step: Any = 1) -> AbstractContextManager[Scalar]:
        """`with ctx.for_range(stop) as i:`; also (start, stop) and (start, stop, step)."""
        first, last = (0, start) if stop is None else (start, stop)
        return views.for_range(self._code, first, last, step)

    def when(self, condition: Any) -> AbstractContextManager[None]:
        """`with ctx.when(condition):` runs where the condition holds."""
        return views.when(self._code, condition)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """`a` where the condition holds, else `b`: numbers or pointers."""
        return select(self._code, condition, a, b)

    def variable(self, value: Any) -> Variable:
        """A number that changes."""
        return Variable(self._code, self._code.number(value))

    def constant(self, value: float, dtype: Any) -> Scalar:
        """A literal of a type."""
        type_ = ir_type(dtype)
        return Scalar(self._code, const_float(type_, value) if type_.is_fp else ConstInt(type_, int(value)))

    def temporary(self, count: Any, dtype: Any = "f64", zero: bool = False) -> Pointer:
        """Memory for `count` elements until the body (or the loop around) ends."""
        element = ir_type(dtype)
        number = self._code.number(count)
        if isinstance(number.v, ConstInt) and 0 < number.v.value * size_of(element) <= _SMALL:
            pointer = Pointer(self._code, self._code.stack(ty.array(number.v.value, element)), element)
        else:
            pointer = Pointer(self._code, self._code.allocate(self._code.b, number.v, element), element)
            self._code.scopes[-1].append(pointer.v)
        if zero:
            self.zero(pointer, number)
        return pointer

    def temporary_like(self, array: views.View, zero: bool = False) -> views.View:
        """An array of the shape and type of another, until the body ends."""
        memory = self.temporary(array.size, _Named(array.element), zero)
        return views.View(self._code, memory.v, array.element, array.shape, array.lanes)

    def text(self, text: str) -> Pointer:
        """A constant C string, such as the flags that Fortran takes: `ctx.text("T")`."""
        data = text.encode() + b"\0"
        module = self._code.unit.module
        name = f"irgrad.text.{data.hex()}"
        if name not in module.globals:
            type_ = ty.array(len(data), ty.I8)
            module.globals[name] = GlobalVariable(name, type_, ConstData(type_, data), True, "internal", ", align 1")
        return Pointer(self._code, module.globals[name], ty.I8)

    def copy(self, target: Pointer, source: Pointer, count: Any) -> None:
        """Copy `count` elements between memory that does not overlap."""
        self._writer.copy_memory(self._code.b, target.v, source.v, self._bytes(target, count))

    def zero(self, pointer: Pointer, count: Any) -> None:
        """Set `count` elements to zero."""
        ftype = ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
        fn = self._code.unit.declare("llvm.memset.p0.i64", ftype)
        self._code.b.call(fn, [pointer.v, ConstInt(ty.I8, 0), self._bytes(pointer, count), ConstInt(ty.I1, 0)])

    def _bytes(self, pointer: Pointer, count: Any) -> Value:
        number = self._code.cast(self._code.number(count), ty.I64)
        return self._code.b.mul(number, ConstInt(ty.I64, size_of(pointer._typed())))


class _Named:
    """An element type that is an LLVM type already."""

    def __init__(self, type_: ty.Type | None) -> None:
        names = {"double": "f64", "float": "f32", "half": "f16"}
        self.__name__ = names.get(str(type_), str(type_))
