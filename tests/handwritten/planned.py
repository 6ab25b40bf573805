"""Plans of the tapes of small C programs (or of IR text), made without their derivatives."""

from __future__ import annotations

from typing import Any

from handwritten.made import asked, module_of

from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
from irgrad.engine.differentiate.tape.recomputation import Recomputation
from irgrad.engine.differentiate.tape.tape_plan import TapePlan
from irgrad.engine.ir.model import Instruction
from irgrad.engine.pipeline.derivatives import checked
from irgrad.engine.schedule.cells import find_cells


def facts_of(source: str, active: str, *, callee: str | None = None, **options: Any) -> ReverseFacts:
    """The facts about `f`, differentiated in the arguments marked `d`, or about a function that it calls."""
    kinds = ["dup" if a == "d" else "const" for a in active]
    unit, abi = checked(module_of(source, "f"), asked("f", "reverse", kinds, **options))
    if callee is None:
        return ReverseFacts(unit, unit.root, abi, split=False)
    fn = unit.module.functions[callee]
    return ReverseFacts(unit, fn, unit.abis[fn], split=True)


def planned(source: str, active: str, **options: Any) -> TapePlan:
    """The plan of its tape; options as for `facts_of`."""
    return TapePlan(facts_of(source, active, **options))


def rules_of(facts: ReverseFacts) -> Recomputation:
    """What is computed again, before anything is chosen."""
    return Recomputation(facts, find_cells(facts), {})


def find(facts: ReverseFacts, opcode: str, index: int = 0) -> Instruction:
    """An instruction by its opcode, or by the beginning of the name of what it calls."""
    found = [i for b in facts.cfg.rpo for i in b.instructions
             if i.opcode == opcode or (i.is_call and (i.callee_name or "").startswith(opcode))]  # fmt: skip
    return found[index]
