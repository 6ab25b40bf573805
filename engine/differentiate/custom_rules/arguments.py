"""The arguments of a call as bodies of rules see them: numbers, pointers and arrays with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.custom_rules import views
from irgrad.engine.differentiate.custom_rules.held import lane_view
from irgrad.engine.differentiate.custom_rules.symbols import Code, Pointer, Scalar, Variable
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Value
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.tracing import innermost_line

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Writer

_SMALL = 512  # bytes of a temporary of literal size that lies on the stack

__all__ = ["Adjoint", "ArrayArgument", "Nothing", "Number", "PointerArgument", "Reference", "Result"]


class Number(Scalar):
    """A number argument (or the result): `x.d`, `x.active`."""

    __slots__ = ("_active", "_adjoint", "_mode", "_name", "_tangent")

    def __init__(
        self, code: Code, v: Value, name: str, mode: str, active: bool, tangent: Scalar | None = None
    ) -> None:  # fmt: skip
        super().__init__(code, v)
        self._name = name
        self._mode = mode
        self._active = active
        self._adjoint: Variable | None = None
        self._tangent = tangent
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

    def _now(self) -> None:
        """The memory itself is read: in reverse, long after the call."""
        if self.writer.mode == "reverse" and self.writer.overwritten(self.position, "after"):
            raise RuleError(f"`{self.name}` is read in reverse, when it may hold something else",
                            where=self.writer.site.rule.place, which=innermost_line(),
                            because="the program may write over it behind the call",
                            fix=f"{self.name}.saved, what it held when the function was called, or "
                                f"{self.name}.result")  # fmt: skip

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
        self.read = self._now
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
        self.read = self._now
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

    def __init__(
        self, code: Code, v: Value, name: str, mode: str, ref: Value, shadow: Value | None,
        lanes: views.View | None = None,
    ) -> None:  # fmt: skip
        """lanes: the shadow's elements of all lanes, where the body gets them at once."""
        Scalar.__init__(self, code, v)
        self._name, self._mode, self._active = name, mode, shadow is not None
        self._adjoint = self._tangent = None
        self.ref = Pointer(code, ref, v.type)
        self.shadow = None if shadow is None else Pointer(code, shadow, v.type) if lanes is None else lanes

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
