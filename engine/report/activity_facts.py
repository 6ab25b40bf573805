"""Which values are active, and why; what becomes of the arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.report.facts import ActiveValue, ArgumentFacts

if TYPE_CHECKING:
    from irgrad.engine.report.derivation import Derivation
    from irgrad.engine.report.words import Words

__all__ = ["active_values", "argument_facts"]


def argument_facts(derivation: Derivation) -> tuple[ArgumentFacts, ...]:
    """The arguments and outputs of the kernel."""
    asked = derivation.question
    scratch = derivation.unit.activity.scratch
    found = []
    for number, slot in enumerate(asked.kernel.primal.slots):
        if number in asked.active:
            role = "differentiated" if slot.name in asked.wrt and slot.role != "out" else "output"
        else:
            role = "scratch" if number in scratch else "constant"
        found.append(ArgumentFacts(slot.name, role, number in asked.active and slot.role != "in"))
    return tuple(found)


def active_values(derivation: Derivation, words: Words) -> tuple[ActiveValue, ...]:
    """The instructions whose values have a tangent or an adjoint, by function, in the order of the source's lines."""
    activity = derivation.unit.activity
    found = []
    for planned in derivation.functions:
        name = words.function(planned.fn)
        rows = []
        for instr in planned.fn.instructions():
            if not derivation.unit.differentiable(instr):
                continue
            origin, target = activity.chains(instr)
            rows.append(ActiveValue(
                instr.name or "", words.opcode(instr), str(instr.type), name,
                words.value_place(instr, planned.facts.level(instr)),
                tuple(map(words.step, origin)), tuple(map(words.step, target)),
            ))  # fmt: skip
        found += sorted(rows, key=lambda row: (row.place.file, row.place.line, row.place.column))
    return tuple(found)
