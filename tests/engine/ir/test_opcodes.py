"""The table lists every opcode once, and its traits agree with each other."""

from __future__ import annotations

import pytest

from irgrad.engine.ir.opcodes import (
    _TABLE,
    ACCESSES,
    CASTS,
    FLOAT_BINARY,
    INT_BINARY,
    OPCODES,
    PURE,
    TERMINATORS,
    TRAITS,
    having,
    of_kind,
)
from irgrad.engine.ir.text.instructions import PARSERS
from irgrad.engine.ir.text.reader import read

# LLVM 22, include/llvm/IR/Instruction.def, without the internal UserOp1 and UserOp2.
ALL = """ret br switch indirectbr invoke resume unreachable cleanupret catchret catchswitch callbr fneg add fadd sub
fsub mul fmul udiv
sdiv fdiv urem srem frem shl lshr ashr and or xor alloca load store getelementptr fence cmpxchg atomicrmw trunc zext
sext fptoui fptosi
uitofp sitofp fptrunc fpext ptrtoint ptrtoaddr inttoptr bitcast addrspacecast cleanuppad catchpad icmp fcmp phi call
select va_arg
extractelement insertelement shufflevector extractvalue insertvalue landingpad freeze""".split()


def test_every_opcode_is_listed_once() -> None:
    assert set(OPCODES) == set(ALL)
    assert len(_TABLE) == len(OPCODES)
    assert {row.treatment for row in _TABLE} == {"supported", "structural", "refused"}


def test_traits_are_explained_and_borne() -> None:
    assert set().union(*(row.traits for row in _TABLE)) == set(TRAITS)
    assert {n for n, r in OPCODES.items() if r.has("terminator")} == TERMINATORS
    assert of_kind("cast") == CASTS
    assert of_kind("binary") == INT_BINARY | FLOAT_BINARY
    assert set(OPCODES) <= set(PARSERS)
    with pytest.raises(KeyError):
        having("no such trait")
    with pytest.raises(KeyError):
        OPCODES["add"].has("no such trait")


def test_traits_that_follow_from_others() -> None:
    assert having("writes") <= having("has_effects")
    assert having("updates") <= having("reads") & having("writes")
    assert not PURE & (having("reads") | having("writes") | having("terminator"))
    assert having("cast") | having("lanewise") | having("shadow_alike") | having("combines_bits") <= PURE
    assert having("may_trap") | having("integer_arithmetic") | having("bitwise") | having("shift") <= INT_BINARY
    assert having("number_to_number") <= having("about_numbers")
    assert having("unwinds") & having("terminator") <= of_kind("terminator")
    assert all(0 <= row.address < row.operands for row in _TABLE if row.name in ACCESSES)


def test_the_row_of_an_instruction() -> None:
    text = "define void @f(ptr %p) {\n  %x = load double, ptr %p\n  store double %x, ptr %p\n  ret void\n}\n"
    load, store, ret = (instr.traits for instr in read(text).functions["f"].instructions())
    assert (load.has("reads"), load.has("writes"), load.address) == (True, False, 0)
    assert (store.has("reads"), store.has("writes"), store.address) == (False, True, 1)
    assert ret.has("terminator")
