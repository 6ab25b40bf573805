"""Sums of adjoints inside of integers: of one type of float, of unions, and of words that may be pointers."""

from __future__ import annotations

import pytest
from analysed import facts_of, named

from irgrad.engine.differentiate.shadow.bit_sums import add_bits, add_words
from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder

TEXT = """
define void @f(ptr noalias %x) {
  %a = load i64, ptr %x
  %v = load <2 x i64>, ptr %x
  ret void
}
"""


@pytest.mark.parametrize(("name", "lanes"), [("a", 1), ("v", 2)])
def test_words_stay_words(name: str, lanes: int) -> None:
    """A cast to a double would tell the next derivative that it is one."""
    facts = facts_of(TEXT, "f", {0})
    unit = Unit(facts.pointers.module, facts.root, facts, Request("f", "vjp", ("dup",)))
    block = facts.root.blocks[0]
    before = list(block.instructions)
    value = named(facts.root, name)
    total = add_words(unit, Builder(block), value, value)
    made = [instr for instr in block.instructions if instr not in before]
    assert total.type is value.type
    assert sum(instr.is_call for instr in made) == lanes
    assert not any(instr.opcode == "bitcast" for instr in made)


@pytest.mark.parametrize(("kinds", "opcode"), [((ty.F64,), "fadd"), ((ty.F32,), "fadd"), ((ty.F32, ty.F64), "select")])
def test_floats_are_added_as_floats(kinds: tuple[ty.Type, ...], opcode: str) -> None:
    facts = facts_of(TEXT, "f", {0})
    block, value = facts.root.blocks[0], named(facts.root, "a")
    before = list(block.instructions)
    total = add_bits(Builder(block), frozenset(kinds), value, value)
    made = [instr.opcode for instr in block.instructions if instr not in before]
    assert total.type is value.type
    assert opcode in made
    assert ("fadd" in made) == (len(kinds) == 1)
