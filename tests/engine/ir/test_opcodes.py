"""The table lists every opcode once, and agrees with the sets that the model has."""

from __future__ import annotations

from irgrad.engine.ir.instructions import PARSERS
from irgrad.engine.ir.model import CASTS, FLOAT_BINARY, INT_BINARY, TERMINATORS
from irgrad.engine.ir.opcodes import _TABLE, OPCODES, traits
from irgrad.engine.ir.reader import read

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


def test_the_table_agrees_with_the_model() -> None:
    assert {n for n, r in OPCODES.items() if r.is_terminator} == TERMINATORS
    assert {n for n, r in OPCODES.items() if r.kind == "cast"} == CASTS
    assert {n for n, r in OPCODES.items() if r.kind == "binary"} == INT_BINARY | FLOAT_BINARY
    assert set(OPCODES) <= set(PARSERS)


def test_traits_of_instructions() -> None:
    text = "define void @f(ptr %p) {\n  %x = load double, ptr %p\n  store double %x, ptr %p\n  ret void\n}\n"
    load, store, ret = map(traits, read(text).functions["f"].instructions())
    assert (load.may_read, load.may_write) == (True, False)
    assert (store.may_read, store.may_write) == (False, True)
    assert ret.is_terminator
    assert all(r.has_side_effects for r in OPCODES.values() if r.may_write)
