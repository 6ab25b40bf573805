"""`ctx` and the arguments that bodies of rules with `ctx` get. docs/rules.md is the interface."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.custom_rules import views
from irgrad.engine.differentiate.custom_rules.foreign import Foreign
from irgrad.engine.differentiate.custom_rules.symbols import Pointer, Scalar, Variable, ir_type, select, size_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstData, ConstInt, ConstZero, GlobalVariable, Value, const_float
from irgrad.rules.definitions.prototype import Prototype, parse

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Writer

_SMALL = 512  # bytes of a temporary of literal size that lies on the stack


__all__ = ["Context"]


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
        source.read()
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
