"""Every opcode of LLVM 22 in one table: what a pass may ask about it, and what differentiation does with it.

A row: differentiation is `supported` (has partials or a transform of its own), `structural` (control flow,
comparison, integer work: moved or copied, carries no derivative of its own) or `refused` (an error names it where it
is active). `kind` is the family, as in LLVM's language reference; `traits` are words of `TRAITS`, whose sentences say
what each means.

A pass asks for the opcodes of a trait, `having("moves_bits")`, or for the row of an instruction, `instr.traits`. It
lists no opcodes of its own: a new opcode is one row here.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal, NamedTuple

from irgrad.rules.expressions.costs import OPERATIONS

Treatment = Literal["supported", "structural", "refused"]

TRAITS: Final[dict[str, str]] = {
    # effects
    "reads": "may read memory",
    "writes": "may write memory",
    "updates": "reads a place in memory and writes it, in one step",
    "synchronises": "orders the accesses of threads, or is one that other threads see whole",
    "may_trap": "stops the program for some operands",
    "has_effects": "does something besides making its result: may not be dropped, doubled or moved at will",
    "pure": "the result depends on the operands alone, and nothing else happens (unless it traps)",
    # control flow
    "terminator": "ends a block",
    "redirectable": "a terminator whose targets a pass may replace by other blocks",
    "leads_block": "stands before the other instructions of its block",
    "calls": "runs a function",
    "unwinds": "belongs to the unwinding of exceptions",
    # arithmetic
    "commutes": "its two operands may change places",
    "integer_binary": "an integer of two integers",
    "integer_arithmetic": "takes its integers for numbers: sums, products, quotients",
    "bitwise": "each bit of the result is made of the bits of the operands in the same place",
    "shift": "moves the bits of its first operand by as many places as the second says",
    "float_binary": "a float of two floats",
    "float_arithmetic": "a float of floats, with a row in the rule tables",
    "shrinks": "a number that is not negative stays so (for `sdiv`: divided by such a one)",
    "subscript": "arithmetic of subscripts and addresses",
    "affine": "the analysis of induction variables reads it as a sum of multiples of its operands, for some operands",
    "displaces": "of an address and a number it makes an address near by: sums, and masks that align",
    "about_numbers": "an integer that it takes or makes is a number: no address, no bits of a float",
    "number_to_number": "as `about_numbers`, for the result and for every operand",
    # casts
    "cast": "one value in another type",
    "resizes": "an integer with more or fewer bits above the ones it keeps",
    "pointer_cast": "between pointers and integers, or between address spaces",
    "same_number": "one operand, and the same number (or address) in the result, in another type or cut to its width",
    # movement
    "chooses": "the result is one of its operands, whole",
    "moves_bits": "the result is made of the bits of its operands, whole or in part: nothing is computed",
    "moves_words": "whole words of 8 bytes pass through it, or through memory by it",
    "places_bytes": "bytes of its operands stand unchanged in the result, at places that its constants say",
    "takes_part": "the result is a run of the bits of its first operand, which is one number",
    "combines_bits": "puts integers together from bits of others: shifts, masks, sums of parts that do not overlap",
    "same_memory": "a pointer that it makes points into the memory that a pointer operand points into",
    "carries_pointers": "the result may hold the pointers that any of its operands holds, as a pointer or as bits",
    "shadow_alike": "the shadow of its result is the same operation on the shadows of its operands",
    "lanewise": "each lane of the result depends on that lane of the operands alone",
    "zero_lanewise": "a lane of the result is zero where that lane of its float operands is",
    "stops_derivatives": "no derivative flows from an operand to the result: a comparison, a conversion, an address",
}
"""Each trait, and what it says of an opcode."""


class Opcode(NamedTuple):
    """One row.

    operands  how many values it takes (-1: varies)
    cost      of computing it again, in units of one addition
    address   the operand that is the address which it accesses, -1 where there is none
    """

    name: str
    kind: str
    operands: int
    treatment: Treatment
    traits: frozenset[str] = frozenset()
    cost: int = 1
    address: int = -1

    def has(self, trait: str) -> bool:
        """Whether the opcode has a trait. Raises KeyError for a word that is no trait."""
        return self.name in having(trait)


def _rows(
    kind: str, names: str, operands: int, treatment: Treatment, traits: str = "", *, cost: int = 1, address: int = -1
) -> list[Opcode]:
    words = frozenset(traits.split())
    return [Opcode(name, kind, operands, treatment, words, cost, address) for name in names.split()]


_INTEGER = "pure integer_binary lanewise subscript"
_NUMBER = f"{_INTEGER} integer_arithmetic about_numbers number_to_number"
_QUOTIENT = f"{_NUMBER} may_trap has_effects shrinks"  # traps on zero
_MASK = f"{_INTEGER} commutes bitwise combines_bits displaces carries_pointers places_bytes"
_FLOATS = "pure float_binary float_arithmetic lanewise zero_lanewise"
_CAST = "pure cast lanewise"
_POINTER = f"{_CAST} pointer_cast same_number carries_pointers stops_derivatives"
_RESIZE = f"{_CAST} resizes subscript same_number moves_bits combines_bits carries_pointers affine"
_PART = "pure moves_bits carries_pointers shadow_alike"
_CALL = "calls reads writes has_effects"
_UPDATE = "reads writes updates synchronises has_effects"
_UNWIND = "unwinds has_effects stops_derivatives"

_TABLE: Final = [
    *_rows("unary", "fneg", 1, "supported", "pure float_arithmetic lanewise zero_lanewise"),
    *_rows("binary", "fadd fmul", 2, "supported", f"{_FLOATS} commutes"),
    *_rows("binary", "fsub", 2, "supported", _FLOATS),
    *_rows("binary", "fdiv", 2, "supported", _FLOATS, cost=OPERATIONS["fdiv"]),
    *_rows("binary", "frem", 2, "supported", _FLOATS, cost=OPERATIONS["frem"]),
    *_rows("binary", "add", 2, "structural",
           f"{_NUMBER} commutes combines_bits displaces carries_pointers affine"),
    *_rows("binary", "sub", 2, "structural", f"{_NUMBER} combines_bits displaces affine"),
    *_rows("binary", "mul", 2, "structural", f"{_NUMBER} commutes affine"),
    *_rows("binary", "and", 2, "structural", _MASK),
    *_rows("binary", "or xor", 2, "structural", f"{_MASK} affine"),
    *_rows("binary", "shl", 2, "structural", f"{_INTEGER} shift combines_bits places_bytes affine"),
    *_rows("binary", "lshr", 2, "structural", f"{_INTEGER} shift combines_bits places_bytes takes_part shrinks"),
    *_rows("binary", "ashr", 2, "structural", f"{_INTEGER} shift combines_bits shrinks"),
    *_rows("binary", "udiv sdiv urem srem", 2, "structural", _QUOTIENT, cost=6),
    *_rows("cast", "fptrunc fpext", 1, "supported", f"{_CAST} zero_lanewise"),
    *_rows("cast", "bitcast", 1, "supported",
           "pure cast same_number moves_bits moves_words same_memory carries_pointers shadow_alike places_bytes "
           "takes_part"),
    *_rows("cast", "uitofp sitofp", 1, "structural", f"{_CAST} about_numbers number_to_number stops_derivatives"),
    *_rows("cast", "fptoui fptosi", 1, "structural", f"{_CAST} about_numbers stops_derivatives"),
    *_rows("cast", "trunc", 1, "structural", f"{_RESIZE} places_bytes takes_part"),
    *_rows("cast", "zext", 1, "structural", f"{_RESIZE} places_bytes"),
    *_rows("cast", "sext", 1, "structural", f"{_RESIZE} about_numbers"),
    *_rows("cast", "ptrtoint", 1, "structural", f"{_POINTER} moves_words shadow_alike affine"),
    *_rows("cast", "ptrtoaddr", 1, "structural", _POINTER),
    *_rows("cast", "inttoptr", 1, "structural", f"{_POINTER} shadow_alike"),
    *_rows("cast", "addrspacecast", 1, "structural", f"{_POINTER} same_memory shadow_alike"),
    *_rows("compare", "icmp", 2, "structural", "pure lanewise about_numbers stops_derivatives"),
    *_rows("compare", "fcmp", 2, "structural", "pure lanewise stops_derivatives"),
    *_rows("other", "select", 3, "supported",
           "pure chooses moves_bits moves_words same_memory shadow_alike lanewise"),
    *_rows("other", "phi", -1, "supported", "chooses moves_bits moves_words same_memory carries_pointers leads_block"),
    *_rows("other", "freeze", 1, "supported",
           "pure chooses same_number moves_bits moves_words same_memory carries_pointers shadow_alike lanewise"),
    *_rows("memory", "alloca", 1, "supported", "leads_block stops_derivatives"),
    *_rows("memory", "load", 1, "supported", "reads moves_words", address=0),
    *_rows("memory", "store", 2, "supported", "writes has_effects moves_words", address=1),
    *_rows("memory", "getelementptr", -1, "structural",
           "pure about_numbers subscript same_memory affine shadow_alike lanewise stops_derivatives"),
    *_rows("memory", "fence", 0, "structural", "reads writes synchronises has_effects stops_derivatives"),
    *_rows("memory", "atomicrmw", 2, "supported", _UPDATE, address=0),
    *_rows("memory", "cmpxchg", 3, "refused", _UPDATE, address=0),
    *_rows("vector", "extractelement", 2, "supported", f"{_PART} places_bytes"),
    *_rows("vector", "insertelement shufflevector", 3, "supported", f"{_PART} places_bytes zero_lanewise"),
    *_rows("aggregate", "extractvalue", 1, "supported", _PART),
    *_rows("aggregate", "insertvalue", 2, "supported", _PART),
    *_rows("call", "call", -1, "supported", f"{_CALL} moves_words"),
    *_rows("call", "va_arg", 1, "refused", "reads writes updates has_effects stops_derivatives"),
    *_rows("terminator", "ret", -1, "structural", "terminator"),
    *_rows("terminator", "br switch", -1, "structural", "terminator redirectable stops_derivatives"),
    *_rows("terminator", "unreachable", -1, "structural", "terminator stops_derivatives"),
    *_rows("terminator", "indirectbr", 1, "refused", "terminator has_effects stops_derivatives"),
    *_rows("terminator", "resume", 1, "refused", f"{_UNWIND} terminator"),
    *_rows("terminator", "invoke", -1, "refused", f"{_CALL} terminator redirectable unwinds moves_words"),
    *_rows("terminator", "callbr", -1, "refused", f"{_CALL} terminator"),
    *_rows("terminator", "catchswitch catchret cleanupret", -1, "refused", f"{_UNWIND} terminator"),
    *_rows("exception", "landingpad catchpad cleanuppad", -1, "refused", f"{_UNWIND} leads_block"),
]  # fmt: skip

OPCODES: Final[dict[str, Opcode]] = {row.name: row for row in _TABLE}
"""Opcode name -> row."""


@cache
def having(trait: str) -> frozenset[str]:
    """The opcodes with a trait. Raises KeyError for a word that is no trait."""
    if trait not in TRAITS:
        raise KeyError(trait)
    return frozenset(row.name for row in _TABLE if trait in row.traits)


def of_kind(*kinds: str) -> frozenset[str]:
    """The opcodes of some families (`vector`, `aggregate`, ...)."""
    return frozenset(row.name for row in _TABLE if row.kind in kinds)


CASTS: Final = having("cast")
INT_BINARY: Final = having("integer_binary")
FLOAT_BINARY: Final = having("float_binary")
TERMINATORS: Final = having("terminator")
CALLS: Final = having("calls")
PURE: Final = having("pure")
TRAPS: Final = having("may_trap")
SPECULATABLE: Final = PURE - TRAPS
"""May run where the program would not have run them: for other samples, before a branch, once more."""
CHOICES: Final = having("chooses")
RESIZES: Final = having("resizes")
SHIFTS: Final = having("shift")
BITWISE: Final = having("bitwise")
ACCESSES: Final = frozenset(row.name for row in _TABLE if row.address >= 0)
"""Access memory at an address that is one of the operands."""
PARITY: Final = RESIZES | {"add", "sub", "xor", "mul"}
"""Their lowest bit follows from the lowest bits of what they take."""
POLYNOMIAL: Final = frozenset(("add", "sub", "mul", "shl", "or"))
"""Integers of which bounds follow from those of the operands (`or` of disjoint bits, `shl` by a constant)."""
LANES_OUT: Final = frozenset(("extractelement", "shufflevector", "freeze"))
"""They hand bits of a vector on as they are."""
COMPARED_OR_ROUNDED: Final = frozenset(("fcmp", "fptrunc", "fpext"))
"""Of a float: its comparison, and its casts to other formats."""
POINTER_SOURCES: Final = frozenset(("load", "select", "getelementptr"))
"""What a pointer comes from inside of a loop."""
COUNTS: Final = INT_BINARY | RESIZES | frozenset(("phi", "select"))
"""What makes counts of counts."""
COUNTED: Final = frozenset(("icmp", "getelementptr", "sitofp", "uitofp", "br", "switch"))
"""What takes a count as a number."""
PASSES_ON: Final = frozenset(("ptrtoint", "phi", "select", "insertvalue", "ret"))
"""They hand an operand on to where it is not followed."""
UNSIGNED: Final = frozenset(("zext", "lshr", "udiv"))
"""Their results are numbers without a sign."""
INVERTIBLE: Final = frozenset(("add", "sub", "xor"))
"""Either operand follows from the result and the other one."""
MORE_THAN_SUMS: Final = frozenset(("select", "and", "sext"))
"""A subscript that they are a part of is more than sums and products."""
LEADS_ON: Final = CHOICES | frozenset(("getelementptr", "icmp", "bitcast", "br", "switch"))
"""Of a pointer: they hand it on, compare it or go where that says, and read nothing behind it."""
