"""Trip counts as small expressions over SSA values, in unsigned 64-bit arithmetic that wraps.

expr ::= ("const", n) | ("value", v)                v: sign extended to 64 bits, a pointer as its address
       | ("add" | "sub" | "mul", a, b)              modulo 2**64
       | ("lshr", a, k)                             k a Python integer
       | ("zext" | "sext", a, bits)                 the low `bits` bits of a, extended to 64
       | ("udiv" | "udiv_ceil", a, b)               b is never 0
       | ("umax" | "umin" | "smax", a, b)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from irgrad.engine.analyses.evolution.affine import Affine
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Value

Expr: TypeAlias = tuple[Any, ...]

MASK: Final = (1 << 64) - 1


class TripCount:
    """How often a loop's back edge is taken each time the loop is entered (header runs: one more).

    expr      the count (top of the file)
    certain   False where the count relies on the loop ending through this exit at all: an endless loop (a step that is
              zero or points away from the bound at run time) left by other means, such as exit(), could run longer
    """

    __slots__ = ("certain", "expr")

    def __init__(self, expr: Expr, certain: bool = True) -> None:
        self.expr = expr
        self.certain = certain

    @property
    def const(self) -> int | None:
        """The count when it is a constant."""
        return int(self.expr[1]) if self.expr[0] == "const" else None

    @property
    def uses(self) -> list[Value]:
        """The SSA values that the expression reads, each once."""
        out: dict[Value, None] = {}
        stack = [self.expr]
        while stack:
            expr = stack.pop()
            if expr[0] == "value":
                out[expr[1]] = None
            elif expr[0] != "const":
                stack.extend(e for e in reversed(expr[1:]) if isinstance(e, tuple))
        return list(out)

    @property
    def divides(self) -> bool:
        """Whether the count is a quotient by what may be zero where the loop never runs."""
        return _divides(self.expr)

    def emit(self, builder: Builder) -> Value:
        """The count as an i64, computed at the builder's position, where all of `uses` must be available."""
        return _emit(builder, self.expr)

    def evaluate(self, values: Mapping[Value, int]) -> int:
        """The count for given numbers of the values in `uses` (signed or unsigned reading)."""
        return evaluate(self.expr, lambda v: _extend(values[v], v))

    def __str__(self) -> str:
        return show(self.expr) + ("" if self.certain else " (if it ends there)")

    __repr__ = __str__


def _divides(expr: Expr) -> bool:
    zero = expr[0].startswith("udiv") and expr[2][0] != "const"
    return zero or any(_divides(e) for e in expr[1:] if isinstance(e, tuple))


def const(n: int) -> Expr:
    """A constant."""
    return ("const", n & MASK)


def make(op: str, a: Expr, b: Expr | int) -> Expr:
    """An operation, folded when its arguments are constants or it changes nothing."""
    expr: Expr = (op, a, b)
    if a[0] == "const" and (isinstance(b, int) or b[0] == "const"):
        return const(evaluate(expr, _no_values))
    if isinstance(b, tuple):
        if op in ("add", "sub", "umax") and b == ("const", 0):
            return a
        if op in ("add", "umax") and a == ("const", 0):
            return b
        if op in ("mul", "udiv", "udiv_ceil") and b == ("const", 1):
            return a
        if op in ("umax", "umin", "smax") and a == b:
            return a
        if op == "sub" and a == b:
            return const(0)
    elif (op == "lshr" and b == 0) or (op in ("zext", "sext") and b >= 64):
        return a
    return expr


def from_form(form: Affine) -> Expr | None:
    """The low 64 bits of a form without loop counters; None where it has some."""
    positive: Expr = const(0)
    for symbol, coefficient in form.terms.items():
        if not isinstance(symbol, Value):
            return None
        if coefficient == -1:
            positive = make("sub", positive, ("value", symbol))
        else:
            positive = make("add", positive, make("mul", ("value", symbol), const(coefficient)))
    return make("add", positive, const(form.const))


def signed(n: int, bits: int = 64) -> int:
    """The signed reading of the low `bits` bits."""
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


def evaluate(expr: Expr, value: Callable[[Value], int]) -> int:
    """Number of an expression in [0, 2**64)."""
    op = expr[0]
    if op == "const":
        return int(expr[1])
    if op == "value":
        return value(expr[1]) & MASK
    a = evaluate(expr[1], value)
    if isinstance(expr[2], int):
        k = expr[2]
        return a >> k if op == "lshr" else signed(a, k) & MASK if op == "sext" else a & ((1 << k) - 1)
    b = evaluate(expr[2], value)
    match op:
        case "add":
            return (a + b) & MASK
        case "sub":
            return (a - b) & MASK
        case "mul":
            return a * b & MASK
        case "udiv":
            return a // b
        case "udiv_ceil":
            return -(-a // b)
        case "umax":
            return max(a, b)
        case "umin":
            return min(a, b)
        case "smax":
            return max(signed(a), signed(b)) & MASK
        case _:
            raise ValueError(f"unknown operation `{op}` in a trip count")


def _no_values(value: Value) -> int:
    raise ValueError(f"`{value.name}` is not a constant")


def _extend(number: int, value: Value) -> int:
    return signed(number, value.type.bits if isinstance(value.type, ty.IntType) else 64)


def _emit(builder: Builder, expr: Expr) -> Value:
    op = expr[0]
    if op == "const":
        return ConstInt(ty.I64, expr[1])
    if op == "value":
        value: Value = expr[1]
        return builder.cast("ptrtoint", value, ty.I64) if value.type.is_ptr else builder.to_i64(value, signed=True)
    a = _emit(builder, expr[1])
    if isinstance(expr[2], int):
        if op == "lshr":
            return builder.binary("lshr", a, ConstInt(ty.I64, expr[2]))
        return builder.cast(op, builder.cast("trunc", a, ty.int_(expr[2])), ty.I64)
    b = _emit(builder, expr[2])
    match op:
        case "add":
            return builder.add(a, b, flags=())
        case "sub":
            return builder.sub(a, b, flags=())
        case "mul":
            return builder.mul(a, b, flags=())
        case "udiv":
            return builder.binary("udiv", a, b)
        case "udiv_ceil":
            # (a - 1) / b + 1, and 0 for 0: does not overflow where (a + b - 1) / b would
            zero, one = ConstInt(ty.I64, 0), ConstInt(ty.I64, 1)
            up = builder.add(builder.binary("udiv", builder.binary("sub", a, one), b), one, flags=())
            return builder.select(builder.icmp("eq", a, zero), zero, up)
        case "umax" | "umin" | "smax":
            pred = {"umax": "ugt", "umin": "ult", "smax": "sgt"}[op]
            return builder.select(builder.icmp(pred, a, b), a, b)
        case _:
            raise ValueError(f"unknown operation `{op}` in a trip count")


_INFIX: Final = {"add": "+", "sub": "-", "mul": "*", "lshr": ">>", "udiv": "/"}


def show(expr: Expr) -> str:
    """An expression as text."""
    op = expr[0]
    if op == "const":
        return str(signed(expr[1]))
    if op == "value":
        return f"%{expr[1].name}" if expr[1].name is not None else f"%<{getattr(expr[1], 'opcode', 'value')}>"
    a, b = show(expr[1]), str(expr[2]) if isinstance(expr[2], int) else show(expr[2])
    return f"({a} {_INFIX[op]} {b})" if op in _INFIX else f"{op}({a}, {b})"
