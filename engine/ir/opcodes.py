"""Every opcode of LLVM 22 in one table: what a pass may ask about it, and what differentiation does with it.

A row: differentiation is `supported` (has partials or a transform of its own), `structural` (control flow,
comparison, integer
work: moved or copied, carries no derivative of its own) or `refused` (an error names it where it is active).
`kind` is the family, as in LLVM's language reference.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from irgrad.engine.ir.model import Instruction

Treatment = Literal["supported", "structural", "refused"]


class Opcode(NamedTuple):
    """One row. `operands` is how many values it takes (-1: varies)."""

    name: str
    kind: str
    operands: int
    treatment: Treatment
    may_read: bool = False
    may_write: bool = False
    is_terminator: bool = False
    is_commutative: bool = False
    has_side_effects: bool = False


def _rows(kind: str, names: str, operands: int, treatment: Treatment, **traits: bool) -> list[Opcode]:
    return [Opcode(name, kind, operands, treatment, **traits) for name in names.split()]


_TABLE: Final = [
    *_rows("unary", "fneg", 1, "supported"),
    *_rows("binary", "fadd fmul", 2, "supported", is_commutative=True),
    *_rows("binary", "fsub fdiv frem", 2, "supported"),
    *_rows("binary", "add mul and or xor", 2, "structural", is_commutative=True),
    *_rows("binary", "sub shl lshr ashr", 2, "structural"),
    *_rows("binary", "udiv sdiv urem srem", 2, "structural", has_side_effects=True),  # traps on zero
    *_rows("cast", "fptrunc fpext bitcast", 1, "supported"),
    *_rows("cast", "fptoui fptosi uitofp sitofp trunc zext sext", 1, "structural"),
    *_rows("cast", "ptrtoint ptrtoaddr inttoptr addrspacecast", 1, "structural"),
    *_rows("compare", "icmp fcmp", 2, "structural"),
    *_rows("other", "select", 3, "supported"),
    *_rows("other", "phi", -1, "supported"),
    *_rows("other", "freeze", 1, "supported"),
    *_rows("memory", "alloca", 1, "supported"),
    *_rows("memory", "load", 1, "supported", may_read=True),
    *_rows("memory", "store", 2, "supported", may_write=True, has_side_effects=True),
    *_rows("memory", "getelementptr", -1, "structural"),
    *_rows("memory", "fence", 0, "structural", may_read=True, may_write=True, has_side_effects=True),
    *_rows("memory", "atomicrmw", 2, "supported", may_read=True, may_write=True, has_side_effects=True),
    *_rows("memory", "cmpxchg", 3, "refused", may_read=True, may_write=True, has_side_effects=True),
    *_rows("vector", "extractelement", 2, "supported"),
    *_rows("vector", "insertelement shufflevector", 3, "supported"),
    *_rows("aggregate", "extractvalue", 1, "supported"),
    *_rows("aggregate", "insertvalue", 2, "supported"),
    *_rows("call", "call", -1, "supported", may_read=True, may_write=True, has_side_effects=True),
    *_rows("call", "va_arg", 1, "refused", may_read=True, may_write=True, has_side_effects=True),
    *_rows("terminator", "ret br switch unreachable", -1, "structural", is_terminator=True),
    *_rows("terminator", "indirectbr resume", 1, "refused", is_terminator=True, has_side_effects=True),
    *_rows(
        "terminator",
        "invoke callbr",
        -1,
        "refused",
        is_terminator=True,
        may_read=True,
        may_write=True,
        has_side_effects=True,
    ),
    *_rows("terminator", "catchswitch catchret cleanupret", -1, "refused", is_terminator=True, has_side_effects=True),
    *_rows("exception", "landingpad catchpad cleanuppad", -1, "refused", has_side_effects=True),
]

OPCODES: Final[dict[str, Opcode]] = {row.name: row for row in _TABLE}
"""Opcode name -> row."""


def traits(instr: Instruction) -> Opcode:
    """The row of an instruction's opcode. Raises KeyError for an opcode that LLVM does not have."""
    return OPCODES[instr.opcode]
