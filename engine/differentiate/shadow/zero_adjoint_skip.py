"""Reverse loops that have nothing to do: all that comes in is zero, as for the candidates that a minimum did not take.

The adjoint of a loop is linear in what enters at its exit. Where a `select`, a minimum or a maximum takes the result
of a loop, that is a true zero more often than not, and the reverse loop is jumped over.

The question is asked through a call of `irgrad.idle.*`, which becomes a comparison with zero when machine code is made:
a derivative of the derivative must not forget that the tangent of a zero need not be zero (forward mode asks about
both; reverse mode never jumps).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.differentiate.primitives.rows import pure_call
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, Instruction, Value
from irgrad.engine.runtime.zero_tests import PREFIX

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
    from irgrad.engine.differentiate.shared.unit import Unit

CHOOSING = ("llvm.minnum.", "llvm.maxnum.", "llvm.minimum.", "llvm.maximum.", "llvm.minimumnum.", "llvm.maximumnum.")
MANY = 64  # phis that a value is followed through


class Idle:
    """Answers for the loops of one function."""

    def __init__(self, facts: ReverseFacts) -> None:
        self.facts = facts

    def often(self, loop: Loop, phis: list[tuple[Instruction, Value]]) -> bool:
        """Whether nothing but the adjoints of these exit phis enters the reverse loop, and a choice decides about
        them."""
        if not phis or self.facts.unit.width > 1 or loop.preheader is None or len(loop.exits) != 1:
            return False
        if any(amount.type is not ty.F64 and amount.type is not ty.F32 for _, amount in phis):
            return False
        return self._chosen([phi for phi, _ in phis]) and not any(self._feeds(b, loop) for b in loop.blocks)

    def _chosen(self, phis: list[Instruction]) -> bool:
        """Whether a value goes, perhaps through phis, into a choice between values."""
        found: set[Instruction] = set()
        work = list(phis)
        while work and len(found) < MANY:
            value = work.pop()
            if value in found:
                continue
            found.add(value)
            for user in self.facts.users.get(value, ()):
                if user.opcode == "phi":
                    work.append(user)
                elif user.opcode == "select" or (user.opcode == "call" and _chooses(user)):
                    return True
        return False

    def _feeds(self, block: Block, loop: Loop) -> bool:
        """Whether the reverse of a block takes adjoints from elsewhere: memory, calls, uses behind the loop."""
        for instr in block.instructions:
            if instr.opcode in ("atomicrmw", "cmpxchg") or (instr.opcode == "call" and not pure_call(instr)):
                return True
            if instr.opcode == "store" and self.facts.unit.activity.pointer(instr.operands[1]):
                return True
            for user in self.facts.users.get(instr, ()):
                if not loop.contains(user.block) and not (user.opcode == "phi" and user.block is loop.exits[0]):
                    return True
        return False


def _chooses(call: Instruction) -> bool:
    return (call.callee_name or "").startswith(CHOOSING)


def ask(unit: Unit, b: Builder, amount: Value) -> Value:
    """Whether an adjoint is zero, and so are its derivatives."""
    name = f"{PREFIX}{amount.type}"
    fn = unit.declare(name, ty.function(ty.I1, (amount.type,)), "nounwind willreturn memory(none)")
    return b.call(fn, [amount])
