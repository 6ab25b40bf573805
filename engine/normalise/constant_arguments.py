"""Functions that are called with memory that is differentiated and with a constant become two functions.

    turn(rest, ...);      // a constant of the caller: no shadow
    turn(own, ...);       // memory that holds active floats

What a function reads behind a parameter is active if it is so in one of its calls: the constant would need a shadow,
which a program that says `enzyme_const` has none of, and for which others pass zeros. A copy for the calls with
constants tells the two apart, through as many functions as hand the address on; how much is copied: `own_memory`.
"""

from __future__ import annotations

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.analyses.memory.objects import function_of
from irgrad.engine.ir.model import Instruction
from irgrad.engine.normalise.own_memory import CALLS, CallGraph, room_in, size_of

__all__ = ["separate_constants"]


def separate_constants(facts: Facts) -> bool:
    """Give calls with constant arguments of the root, which need shadows for other calls' sake, functions of their own.
    True where there is one: then what its calls pass on is not known yet."""
    pointers = facts.pointers
    constants = 0
    for index in facts.activity.scratch:
        constants |= 1 << pointers.object_of[facts.root.args[index]].index
    if not constants:
        return False
    graph, known = CallGraph(facts.root), set(pointers.functions)
    room, changed = room_in(graph), False
    for fn in graph.order:
        sites, size = graph.sites[fn], size_of(fn)
        if not graph.may_copy(fn) or not 0 < len(sites) <= CALLS or any(function_of(s) not in known for s in sites):
            continue
        groups: dict[tuple[bool, ...], list[Instruction]] = {}
        for call in sites:
            key = tuple(a.type.is_ptr and bool(pointers.of(a) & constants) for a in call.args)
            groups.setdefault(key, []).append(call)
        stays = () if fn in graph.named else min(groups)
        for key, calls in groups.items():
            if any(key) and key != stays and size <= room:
                copy = graph.copied(facts.module, fn)
                for call in calls:
                    call.operands[-1] = copy
                room, changed = room - size, True
    return changed
