"""Linear forms of integers and addresses over loop counters and SSA values.

    form = const + sum(coefficient * symbol)
    symbol = a Loop (the number of its current iteration, from 0)
           | an SSA value (its signed reading; a pointer as a signed i64)
           | Scaled(loop, value), the product of the two

What a form promises about its value v of `bits` bits, wherever v is not poison:

    always      v = form modulo 2**bits
    exact       an integer: its signed reading IS the form, over the integers
                a pointer: its address is the base's address plus the rest of the form, over the integers
    rising      the unsigned reading of v grows by exactly coefficient * counter when only a loop counter changes:
                no unsigned wrap between iterations (about the counters only: what v is at counter 0 is its
                unsigned reading there)
"""

from __future__ import annotations

from typing import TypeAlias

from irgrad.engine.analyses.control.cfg import label
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, ConstZero, Function, GlobalVariable, Instruction, Value


class Scaled:
    """The product of a loop's counter and a value that is invariant in it. Interned by the analysis that makes them."""

    __slots__ = ("loop", "value")

    def __init__(self, loop: Loop, value: Value) -> None:
        self.loop = loop
        self.value = value


Symbol: TypeAlias = Loop | Value | Scaled


class Affine:
    """A linear form; immutable by convention. See the top of the file for `exact` and `rising`."""

    __slots__ = ("bits", "const", "exact", "rising", "terms")

    def __init__(
        self, bits: int, const: int, terms: dict[Symbol, int] | None = None, exact: bool = True, rising: bool = True
    ) -> None:
        self.bits = bits
        self.const = const
        self.terms: dict[Symbol, int] = {} if terms is None else terms
        self.exact = exact
        self.rising = rising

    def moved(self, by: int) -> Affine:
        """The form and a number, which change none of what is said of it."""
        return Affine(self.bits, self.const + by, self.terms, self.exact, self.rising)

    def said(self, exact: bool, rising: bool) -> Affine:
        """The same form, of which this is known."""
        return Affine(self.bits, self.const, self.terms, exact, rising)

    @property
    def is_const(self) -> bool:
        """No symbols."""
        return not self.terms

    def coefficient(self, symbol: Symbol) -> int:
        """Integer coefficient of a symbol (0 when absent)."""
        return self.terms.get(symbol, 0)

    def loops(self) -> list[Loop]:
        """Loops whose counters occur, also inside products."""
        out: dict[Loop, None] = {}
        for symbol in self.terms:
            if isinstance(symbol, Loop):
                out[symbol] = None
            elif isinstance(symbol, Scaled):
                out[symbol.loop] = None
        return list(out)

    def values(self) -> list[Value]:
        """SSA values that occur, also inside products."""
        out: dict[Value, None] = {}
        for symbol in self.terms:
            if isinstance(symbol, Value):
                out[symbol] = None
            elif isinstance(symbol, Scaled):
                out[symbol.value] = None
        return list(out)

    def stride(self, loop: Loop) -> Affine:
        """What the form grows by per iteration of `loop`: a form over SSA values."""
        terms: dict[Symbol, int] = {}
        for symbol, coefficient in self.terms.items():
            if isinstance(symbol, Scaled) and symbol.loop is loop:
                terms[symbol.value] = coefficient
        return Affine(self.bits, self.coefficient(loop), terms, self.exact, True)

    def at_start(self, loop: Loop) -> Affine:
        """The form in iteration 0 of `loop`."""
        gone = {s for s in self.terms if s is loop or (isinstance(s, Scaled) and s.loop is loop)}
        terms = {s: c for s, c in self.terms.items() if s not in gone}
        return Affine(self.bits, self.const, terms, self.exact, self.rising)

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """self + factor * other. Flags: exact when both are; rising is lost (the caller knows when it is not)."""
        terms = dict(self.terms)
        for symbol, coefficient in other.terms.items():
            total = terms.get(symbol, 0) + factor * coefficient
            if total:
                terms[symbol] = total
            else:
                terms.pop(symbol, None)
        return Affine(self.bits, self.const + factor * other.const, terms, self.exact and other.exact, False)

    def times(self, factor: int) -> Affine:
        """The form multiplied by an integer."""
        if factor == 0:
            return Affine(self.bits, 0)
        terms = {s: c * factor for s, c in self.terms.items()}
        return Affine(self.bits, self.const * factor, terms, self.exact, False)

    def flagged(self, exact: bool, rising: bool, bits: int | None = None) -> Affine:
        """The same form with other flags (and width)."""
        return Affine(self.bits if bits is None else bits, self.const, self.terms, exact, rising)

    def same(self, other: Affine) -> bool:
        """Do both denote the same number modulo 2**bits in the same iteration?"""
        difference = self.plus(other, -1)
        mask = (1 << min(self.bits, other.bits)) - 1
        return not difference.const & mask and all(not c & mask for c in difference.terms.values())

    def __str__(self) -> str:
        parts = [f"{c}*{_show(s)}" if c != 1 else _show(s) for s, c in self.terms.items()]
        if self.const or not parts:
            parts.append(str(self.const))
        text = " + ".join(parts).replace("+ -", "- ")
        return text if self.exact else f"{text} (mod 2^{self.bits})"

    __repr__ = __str__


def constant_value(value: Value) -> int | None:
    """The signed value of an integer constant (a null pointer is 0), else None."""
    if isinstance(value, ConstInt):
        # i1 true is kept as 1; as a signed number of one bit it is -1.
        return -value.value if value.type is ty.I1 else value.value
    if isinstance(value, ConstZero) and isinstance(value.type, ty.IntType | ty.PtrType):
        return 0
    return None


def width(value: Value) -> int | None:
    """Bits of an integer or a pointer; None for other types."""
    if isinstance(value.type, ty.IntType):
        return value.type.bits
    return 64 if isinstance(value.type, ty.PtrType) else None


def symbol_range(value: Value) -> tuple[float, float]:
    """Signed range of a symbol, from its type and what computes it."""
    bits = width(value) or 64
    if isinstance(value, Instruction):
        if value.opcode == "zext":
            inner = width(value.operands[0])
            if inner is not None:
                return 0, (1 << inner) - 1
        if value.opcode in ("and", "urem"):
            mask = constant_value(value.operands[1])
            if mask is not None and mask > 0:
                return 0, mask
        if value.opcode == "lshr":
            amount = constant_value(value.operands[1])
            if amount is not None and 0 < amount < bits:
                return 0, (1 << (bits - amount)) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _show(symbol: Symbol) -> str:
    if isinstance(symbol, Loop):
        return f"{{{label(symbol.header)}}}"
    if isinstance(symbol, Scaled):
        return f"{{{label(symbol.loop.header)}}}*{_show(symbol.value)}"
    sigil = "@" if isinstance(symbol, GlobalVariable | Function) else "%"
    return f"{sigil}{symbol.name}" if symbol.name is not None else f"{sigil}<{getattr(symbol, 'opcode', 'value')}>"
