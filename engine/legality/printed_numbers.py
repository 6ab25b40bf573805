"""Numbers that are printed into memory, and read from that text again.

    snprintf(text, sizeof text, "%.17g", x * x);
    y = strtod(text, NULL);

No derivative goes through text: printing is no part of what is differentiated, and what is read has none. A number that
reaches a result so would lose its derivative without a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.shared.refuse import refuse

if TYPE_CHECKING:
    from irgrad.engine.analyses.memory.call_effects import Effect
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.engine.ir.model import Instruction

__all__ = ["refuse_printed"]

_Text = list[tuple["Instruction", "Effect"]]


def refuse_printed(unit: Unit) -> None:
    """Raise Unsupported for the first number that is read from text to which active ones were printed."""
    calls = _calls(unit)
    reading = [(call, effect) for call, effect in calls if call.type.is_fp and unit.activity.useful(call)]
    printed = _printed(unit, calls) if reading else 0
    for call, effect in reading if printed else ():
        if _memory(unit, call, effect.reads) & printed:
            raise refuse(
                unit, call, "a number is read from text to which active numbers are printed",
                because="no derivative goes through text",
                fix="hand on the number itself beside its text, or print and read outside of what is differentiated",
            )  # fmt: skip


def _calls(unit: Unit) -> _Text:
    """Calls that no derivative flows through."""
    found = []
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            effect = unit.pointers.effect(instr) if instr.is_call else None
            if effect is not None and effect.inactive and not effect.nothing:
                found.append((instr, effect))
    return found


def _printed(unit: Unit, calls: _Text) -> int:
    """The memory to which active numbers are printed, and to which that text is copied."""
    found = 0
    for call, effect in calls:
        if any(arg.type.is_fp and unit.activity.varied(arg) for arg in call.args):
            found |= _memory(unit, call, effect.writes or ())
    while found:
        more = found
        for call, effect in calls:
            if effect.writes and _memory(unit, call, effect.reads) & more:
                more |= _memory(unit, call, effect.writes)
        if more == found:
            break
        found = more
    return found


def _memory(unit: Unit, call: Instruction, numbers: Iterable[int] | None) -> int:
    """What some arguments of a call lead to, as far as it is known; None: all of them."""
    args = call.args if numbers is None else [call.args[n] for n in numbers if n < len(call.args)]
    mask = 0
    for arg in args:
        mask |= unit.pointers.of(arg)
    return mask & ~1
