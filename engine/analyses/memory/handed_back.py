"""Functions whose result leads to where some of their parameters lead, and nowhere else.

An iterator that is advanced, the end of a text that was written, `std::max` of references: what such a function returns
in one call is known from the arguments of that call, whatever it is called with elsewhere.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.objects import COPIES, resolve
from irgrad.engine.ir.model import Argument, ConstAggregate, ConstInt, ConstUndef, Function, Instruction, Value, is_zero
from irgrad.engine.ir.opcodes import CALLS
from irgrad.engine.ir.types import may_hold_pointer

_MOST = 256  # values behind a result


class HandedBack:
    """`parameters(fn)`: the numbers of those from which the result of a function is computed; None where it may lead
    elsewhere."""

    def __init__(self) -> None:
        self._known: dict[Function, tuple[int, ...] | None] = {}

    def parameters(self, fn: Function) -> tuple[int, ...] | None:
        """Looked at once for each function; one that calls itself is not known."""
        if fn not in self._known:
            self._known[fn] = None
            results = [block.terminator.operands for block in fn.blocks if block.terminator.opcode == "ret"]
            self._known[fn] = self._behind([value for operands in results for value in operands])
        return self._known[fn]

    def _behind(self, work: list[Value]) -> tuple[int, ...] | None:
        found: set[int] = set()
        seen = set(work)
        while work:
            value = work.pop()
            origins = self._origins(value)
            if origins is None or len(seen) > _MOST:
                return None
            if isinstance(value, Argument) and may_hold_pointer(value.type):
                found.add(value.index)
            fresh = [v for v in origins if v not in seen]
            seen.update(fresh)
            work += fresh
        return tuple(sorted(found))

    def _origins(self, value: Value) -> list[Value] | None:
        """The values whose pointers a value may carry; None for what is made here."""
        if isinstance(value, Argument | ConstInt | ConstUndef) or not may_hold_pointer(value.type) or is_zero(value):
            return []
        if isinstance(value, ConstAggregate):
            return list(value.elems)
        if not isinstance(value, Instruction):
            return None
        op = value.opcode
        if op == "getelementptr":
            return value.operands[:1] if not is_zero(value.operands[0]) else None
        if op == "inttoptr":  # an integer that carries no address leads anywhere
            return None
        if op in COPIES or op in ("select", "sub"):
            return value.operands[1:] if op == "select" else list(value.operands)
        callee = resolve(value.callee) if op in CALLS else None
        if isinstance(callee, Function) and callee.blocks:
            handed = self.parameters(callee)
            return None if handed is None else [value.args[i] for i in handed]
        return None
