"""What a later loop reads little of is computed when it is wanted, on a team as well.

    for (v = 0; v < vertices; v++) posed[v] = ...         wanted[] = 0 ; for (i ...) wanted[nearest[i]] = 1
    for (i = 0; i < n; i++) e[i] = y[i] - posed[nearest[i]]   for (v ...) if (wanted[v]) posed[v] = ...

Wide derivatives ask so themselves (`schedule/demand.py`), where both loops are in one function. Chunks of loops are
functions: so it is settled before there are any, in the function itself. A chunk then has the question in it.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.model import Argument, Function, Module, Value
from irgrad.engine.schedule.demand import filled_on_demand
from irgrad.engine.threads.work import work_inside

__all__ = ["settle_demand"]

_WORTH = 512
"""Operations of an iteration that are worth a question: it costs some twenty where it is mispredicted, and the tape or
the mark is read once more in the reverse sweep."""


def settle_demand(module: Module, fn: Function) -> int:
    """Have loops of a function compute what is read later only, where iterations are much work; how many do."""
    if len(get(Loops, fn).top) < 2 or not any(_worth(fn, loop) for loop in get(Loops, fn).top):
        return 0
    pointers, written = Pointers(module, fn), 0
    for instr in (i for f in pointers.functions for i in f.instructions()):
        written |= pointers.instr_writes(instr)

    def constant(base: Value) -> bool:
        objects = pointers.expand(pointers.of(base)) if isinstance(base, Argument) else 0
        return isinstance(base, Argument) and "noalias" in base.attrs.split() and not objects & written

    return filled_on_demand(module, fn, _worth, constant)


def _worth(fn: Function, loop: Loop) -> bool:
    return work_inside(fn, loop) >= _WORTH
