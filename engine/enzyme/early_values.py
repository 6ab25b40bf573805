"""Values of a function, computed where another one with the same arguments begins: what is asked before a call.

Only what gives the same there: arithmetic of constants, arguments and numbers that the call is given by value.
"""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.evolution.affine import constant_value
from irgrad.engine.analyses.evolution.trips import Expr
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Constant, Instruction, Value
from irgrad.engine.ir.opcodes import SPECULATABLE, TRAPS
from irgrad.engine.ir.rewrite import copied
from irgrad.rules.effects import facts

__all__ = ["EarlyValues", "UnknownError"]


class UnknownError(Exception):
    """It is not known before a function runs what it touches."""


class EarlyValues:
    """Computes values of one function at the place of a builder in another one, which has its arguments as `args`.

    numbers: the arguments that lead to numbers of the call's, which nobody writes
    """

    def __init__(self, b: Builder, args: Sequence[Value], numbers: frozenset[int]) -> None:
        self.b = b
        self.args = args
        self.numbers = numbers
        self.known: dict[Value, Value] = {}

    def learn(self, values: Sequence[Value], known: Value) -> None:
        """Say what values are."""
        self.known.update(dict.fromkeys(values, known))

    def go_on(self, b: Builder) -> None:
        """Compute the next values at another place, which is reached through the one before only."""
        self.b = b

    def expr(self, expr: Expr) -> Expr:
        """The same over what is computed here. Raises UnknownError."""
        if expr[0] == "value":
            return ("value", self.value(expr[1]))
        return (expr[0], *(self.expr(e) if isinstance(e, tuple) else e for e in expr[1:]))

    def value(self, value: Value) -> Value:
        """A value, computed here."""
        if isinstance(value, Constant):
            return value
        if isinstance(value, Argument):
            return self.args[value.index]
        if value not in self.known:
            if not isinstance(value, Instruction) or not self._early(value):
                raise UnknownError
            same = copied(value, [self.value(v) for v in value.operands])
            same.metadata, same.flags = {}, ()  # what was promised of a value is said where it is used
            self.known[value] = self.b.insert(same)
        return self.known[value]

    def _early(self, instr: Instruction) -> bool:
        """Whether an instruction gives the same at the beginning of the function: of numbers, and without effects."""
        if instr.opcode == "load":  # a number of the call's: an argument by value is written by nobody
            place = instr.operands[0]
            return isinstance(place, Argument) and place.index in self.numbers
        if instr.opcode in TRAPS:
            return constant_value(instr.operands[1]) not in (None, 0, -1)
        pure = instr.opcode in SPECULATABLE and instr.opcode != "phi"
        known = facts(instr.callee_name or "") if instr.opcode == "call" else None
        return pure or (known is not None and known.kind == "pure" and not known.writes
                        and not any(a.type.is_ptr for a in instr.args))  # fmt: skip

