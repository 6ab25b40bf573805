"""The questions that a points-to solution answers."""

from __future__ import annotations

from analysed import facts_of, named

from irgrad.engine.ir.model import Instruction

PROGRAM = """
define void @f(ptr %x, ptr %out) {
  %cell = alloca ptr
  %other = alloca ptr
  store ptr %x, ptr %cell
  %p = load ptr, ptr %cell
  %v = load double, ptr %p
  store double %v, ptr %out
  ret void
}
"""


def test_what_memory_leads_to_and_who_shares_it() -> None:
    facts = facts_of(PROGRAM, "f", {0, 1})
    pointers, root = facts.pointers, facts.root
    cell, x = pointers.object_of[named(root, "cell")], pointers.object_of[root.args[0]]
    assert pointers.contents(cell) == 1 << x.index
    assert pointers.reachable(1 << cell.index) == 1 << cell.index | 1 << x.index
    assert pointers.may_alias(named(root, "p"), root.args[0])
    assert not pointers.may_alias(named(root, "cell"), named(root, "p"))
    assert not pointers.escaped(cell)
    assert pointers.names(1 << x.index) == f"{{{x}}}"


def test_values_that_were_made_since_lead_where_their_parts_lead() -> None:
    facts = facts_of(PROGRAM, "f", {0, 1})
    pointers, root = facts.pointers, facts.root
    p, x = named(root, "p"), root.args[0]
    assert isinstance(p, Instruction) and p.block is not None
    first = Instruction("phi", p.type, [p, x], blocks=[p.block, p.block])
    second = Instruction("freeze", p.type, [first])
    first.operands[1] = second  # a cycle
    assert pointers.of(second) == 0  # in no function
    for made in (second, first):
        made.block = p.block
        p.block.instructions.insert(0, made)
    assert pointers.of(second) == pointers.of(first) == pointers.of(p) == 1 << pointers.object_of[x].index
