"""The types on which rules dispatch: mode, activity, element, data batch. They are classes that are never instantiated.

    Activity[T]     Const[T], Active[T], Duplicated[T], and DuplicatedNoNeed[T], which is below Duplicated[T]
    T               f32 f64 c64 c128 < Float; i1 ... i64 < Integer; Array[T, ndim] < Ptr[T]; Struct[T]; Known[value]
    Batched[A, L]   an argument with a batch axis in layout L (SoA, AoS)
    Forward[W], Reverse[W]   below Mode; W is the derivative width, AnyWidth for every one above 1

`X[P]` is below `X[Q]` when P is below Q, and everything below the bare `X`. The order is real (`issubclass`), made
by one metaclass, and every class is `__faithful__`, so that plum caches its answers.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "DTYPES", "SCALARS", "Active", "Activity", "AnyWidth", "AoS", "Argument", "Array", "Batched", "Const", "Duplicated",
    "DuplicatedNoNeed", "Element", "Float", "Forward", "Integer", "Kind", "Known", "Layout", "Mode", "Ptr",
    "Reverse", "SoA", "Struct", "c64", "c128", "f16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "literal",
    "mode_type",
]  # fmt: skip

_MADE: dict[tuple[Any, ...], Kind] = {}


class Kind(type):
    """The metaclass: `X[a, b]` makes (or finds) the class with these parameters, `issubclass` compares covariantly."""

    __faithful__: ClassVar[bool] = True
    parameters: tuple[Any, ...]
    origin: Kind

    def __getitem__(cls, parameters: Any) -> Kind:
        listed = parameters if isinstance(parameters, tuple) else (parameters,)
        check: Any = getattr(cls, "__check__", None)
        checked = listed if check is None else check(listed)
        key = (cls, *((type(p), p) for p in checked))
        made = _MADE.get(key)
        if made is None:
            body = {"parameters": checked, "origin": cls, "__module__": cls.__module__}
            made = _MADE.setdefault(key, Kind(f"{cls.__name__}[{', '.join(map(_shown, checked))}]", (cls,), body))
        return made

    def __subclasscheck__(cls, other: type) -> bool:
        if cls is other:
            return True
        if not isinstance(other, Kind):
            return False
        wanted: tuple[Any, ...] = cls.__dict__.get("parameters", ())
        if not wanted:
            return cls in other.__mro__ or any(issubclass(up, cls) for up in getattr(other, "also", ()))
        origin = cls.origin
        for level in other.__mro__:
            got = level.__dict__.get("parameters", ()) if isinstance(level, Kind) else ()
            if got and issubclass(level.__dict__["origin"], origin) and origin.__below__(got, wanted):
                return True
        return any(issubclass(up, cls) for up in getattr(other, "also", ()))

    def __instancecheck__(cls, instance: object) -> bool:
        return False

    def __below__(cls, got: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
        """Whether parameters `got` are below `wanted`: position by position, missing ones allow anything."""
        if len(got) < len(wanted):
            return False
        return all(_below(g, w) for g, w in zip(got, wanted, strict=False))

    def __str__(cls) -> str:
        return cls.__name__


def _below(got: Any, wanted: Any) -> bool:
    if isinstance(got, Kind) and isinstance(wanted, Kind):
        return issubclass(got, wanted)
    if wanted is AnyWidth:
        return isinstance(got, int) and got > 1
    return bool(got == wanted)


def _shown(parameter: Any) -> str:
    return parameter.__name__ if isinstance(parameter, Kind) else repr(parameter)


class _Base(metaclass=Kind):
    __faithful__ = True
    parameters: tuple[Any, ...] = ()


# -- elements --------------------------------------------------------------------------------------------------------


class Element(_Base):
    """What an argument is made of."""


class Float(Element):
    """Real and complex floating-point numbers."""


class Integer(Element):
    """Integers."""


class f16(Float):  # noqa: N801
    """IEEE half precision."""


class f32(Float):  # noqa: N801
    """IEEE single precision."""


class f64(Float):  # noqa: N801
    """IEEE double precision."""


class c64(Float):  # noqa: N801
    """Two f32."""


class c128(Float):  # noqa: N801
    """Two f64."""


class i1(Integer):  # noqa: N801
    """One bit."""


class i8(Integer):  # noqa: N801
    """8 bits."""


class i16(Integer):  # noqa: N801
    """16 bits."""


class i32(Integer):  # noqa: N801
    """32 bits."""


class i64(Integer):  # noqa: N801
    """64 bits."""


class Ptr(Element):
    """`Ptr[T]`: a pointer to elements; bare: to anything."""


class Array(Ptr):
    """`Array[T, ndim]`: a pointer whose prototype gives extents; below `Ptr[T]`."""


class Struct(Element):
    """`Struct[T, ...]`: an aggregate by value, field by field."""


class Known(Element):
    """`Known[value]`: a literal at the call, such as a flag of BLAS."""


SCALARS: dict[str, Kind] = {t.__name__: t for t in (f16, f32, f64, c64, c128, i1, i8, i16, i32, i64)}
"""Elements by their names."""
DTYPES = SCALARS


def literal(value: int | float, dtype: Kind) -> Kind:
    """The element of an argument that is the literal `value` of type `dtype`: below both `Known[value]` and `dtype`."""
    key = (literal, type(value), value, dtype)
    made = _MADE.get(key)
    if made is None:
        body = {"parameters": (value, dtype), "origin": Known, "also": (dtype,), "__module__": __name__}
        made = _MADE.setdefault(key, Kind(f"Known[{value!r}]", (Known,), body))
    return made


# -- activities ------------------------------------------------------------------------------------------------------


class Argument(_Base):
    """Any argument, batched or not."""


class Activity(Argument):
    """What the derivative does with an argument."""

    @classmethod
    def __check__(cls, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(parameters) != 1 or not (isinstance(parameters[0], Kind) and issubclass(parameters[0], Element)):
            raise TypeError(f"{cls.__name__}[...] takes one element type (f64, Ptr[f64], ...), got {parameters}")
        return parameters


class Const(Activity):
    """Not differentiated."""


class Active(Activity):
    """A scalar with an adjoint (reverse) or a tangent (forward)."""


class Duplicated(Activity):
    """A pointer with a shadow."""


class DuplicatedNoNeed(Duplicated):
    """A pointer with a shadow, to memory whose contents after the call nobody reads."""


class Layout(_Base):
    """How a batch lies in memory."""


class SoA(Layout):
    """`[..., N]`: the batch axis is innermost, neighbours in memory belong to different samples."""


class AoS(Layout):
    """`[N, ...]`: the batch axis is outermost, one whole sample after the other."""


class Batched(Argument):
    """`Batched[A, Layout]`: an argument with a data batch; what is not batched stays unwrapped."""

    @classmethod
    def __check__(cls, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        activity, layout = parameters if len(parameters) == 2 else (parameters[0], None)
        ok = isinstance(activity, Kind) and issubclass(activity, Activity)
        if not ok or not (layout is None or (isinstance(layout, Kind) and issubclass(layout, Layout))):
            raise TypeError(f"Batched[...] takes an activity and a layout (SoA, AoS), got {parameters}")
        return parameters


class Mode(_Base):
    """Forward or reverse."""


class Forward(Mode):
    """`Forward[W]`."""


class Reverse(Mode):
    """`Reverse[W]`."""


class AnyWidth(_Base):
    """In place of a width: every one above 1."""


def mode_type(mode: str | None, width: int | str | None = None) -> Kind:
    """`Forward[W]`, `Reverse[W]` or `Mode` from their names; the width "any" is AnyWidth. Raises ValueError."""
    base: Kind
    if mode is None:
        base = Mode
    elif mode in ("forward", "reverse"):
        base = Forward if mode == "forward" else Reverse
    else:
        raise ValueError(f"mode is 'forward', 'reverse' or None, got {mode!r}")
    return base if width is None else base[AnyWidth if width == "any" else width]
