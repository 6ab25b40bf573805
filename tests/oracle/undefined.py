"""Values that are not defined: poison, undef, and integers of which only some bytes are defined.

    POISON                    the result of an operation that broke a promise (nsw, nnan, inbounds, a lane out of range)
    UNDEF                     memory that was never written, `undef`
    Undefined([UNDEF, 0, 7])  an integer with bytes of both kinds

Vectors and aggregates are tuples, so each lane and each field has one of its own. An operator on such a value raises
`Used`. Operations whose result is undefined where an operand is turn that into a result (`meet`); everything else
(branches, addresses, sizes) lets it through, and the interpreter reports it as `UndefinedUse`. So defined values, which
are nearly all of them, pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from irgrad.engine.ir import types as ty


class Fault(Exception):
    """The program did something undefined, trapped, or ran past the step limit."""


class UndefinedUse(Fault):
    """A poison or undef value reached a place that must have a defined one."""


class Used(Exception):
    """An operator met an undefined value."""


class Misused(Exception):
    """An operation met an undefined value that no result can stand for; the text says as what."""


class Undefined:
    """A scalar that is not defined. `items`: its bytes, where some of them are."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any] | None = None) -> None:
        self.items = items

    def __repr__(self) -> str:
        return "poison" if self is POISON else "undef" if self.items is None else "partly undef"

    def _used(self, *_: Any) -> NoReturn:
        raise Used

    @property
    def real(self) -> NoReturn:
        """Numbers have a real part."""
        raise Used

    __hash__ = _used  # type: ignore[assignment]
    __bool__ = __int__ = __index__ = __float__ = __neg__ = __abs__ = __invert__ = __iter__ = __len__ = _used
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _used  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _used
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _used
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _used
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _used


POISON = Undefined()
UNDEF = Undefined()
ODD = 12345.678
"""What `freeze` makes of an undefined float: no result of a test looks like it."""
_ODD_BYTE = 0x5B


def meet(*values: Any) -> Undefined:
    """The result of an operation on these scalars, some of which are undefined: poison wins."""
    return POISON if any(v is POISON for v in values) else UNDEF


def undefined_in(value: Any) -> Undefined | None:
    """The first undefined scalar of a value, lanes and fields included."""
    if type(value) is tuple:
        return next((found for found in map(undefined_in, value) if found is not None), None)
    return value if type(value) is Undefined else None


def filled(t: ty.Type, value: Any) -> Any:
    """The value of type `t` all of whose scalars are `value`."""
    if isinstance(t, ty.VectorType | ty.ArrayType):
        return (filled(t.elem, value),) * t.count
    if isinstance(t, ty.StructType):
        return tuple(filled(f, value) for f in t.fields or ())
    return value


def frozen(t: ty.Type, value: Any, domain: Any) -> Any:
    """What `freeze` makes of a value: a defined one, whose undefined scalars are arbitrary and easy to recognise."""
    if isinstance(t, ty.VectorType | ty.ArrayType):
        return tuple(frozen(t.elem, v, domain) for v in value)
    if isinstance(t, ty.StructType):
        return tuple(frozen(f, v, domain) for f, v in zip(t.fields or (), value, strict=True))
    if type(value) is not Undefined:
        return value
    if isinstance(t, ty.FloatType):
        rounder = domain.rounder(t)
        return domain.lift(ODD) if rounder is None else rounder(domain.lift(ODD))
    width = t.bits if isinstance(t, ty.IntType) else 64
    items = value.items or [UNDEF] * ((width + 7) // 8)
    raw = bytes(b if type(b) is int else _ODD_BYTE for b in items)
    return int.from_bytes(raw, "little") & ((1 << width) - 1)


def guarded(f: Callable[..., Any], lost: Callable[..., Any] = meet) -> Callable[..., Any]:
    """`f` with the result `lost(operands)` where an operand is undefined."""

    def run(*values: Any) -> Any:
        try:
            return f(*values)
        except Used:
            return lost(*values)

    return run
