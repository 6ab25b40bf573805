"""Loops whose primal sweep runs the reverse sweep as well, one iteration at a time: they become functions as other
loops in segments do (see `segments.py`), without states. `known_cotangents.py` says which loops these are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.model import Block, Function, Module
from irgrad.engine.normalise.known_cotangents import Activity, Sums, Unknown, known_cotangents
from irgrad.engine.normalise.repeatable import Bytes, Repeatable
from irgrad.engine.normalise.segments import EVERY, Choice, Outlined, Segments, begins_at, no_loop
from irgrad.rules.errors import Unsupported

__all__ = ["fused_loops", "not_fused", "outline_fused"]


def fused_loops(
    module: Module, pointers: Pointers, choices: Mapping[str, Choice], bytes_of: Sequence[Bytes | None],
    active: Activity, *, nests: bool = False,
) -> dict[Block, Sums]:  # fmt: skip
    """The outermost loops of the root at the places of `choices`, or all (`EVERY`), that have this schedule: the sums
    of each, by its header. nests: only of those with loops in them. Raises Unsupported for a place that names the
    schedule for a loop without it, with the reason and the line."""
    root, found = pointers.root, dict[Block, Sums]()
    met: set[str] = set()
    for loop in get(Loops, root).top:
        wanted = next((w for w in choices if w != EVERY and begins_at(module, loop, w)), EVERY)
        if wanted not in choices or not (choices[wanted].fused or wanted == EVERY):
            continue
        met.add(wanted)
        if nests and not loop.children:
            continue
        again = Repeatable(pointers, root, loop, bytes_of)
        try:
            sums = known_cotangents(again, active)
            if refusal := Outlined(module, again, Choice(fused=True), sums).refusal:
                raise Unknown(refusal)
        except Unknown as reason:
            if choices[wanted].fused:
                raise not_fused(pointers, wanted, str(reason)) from None
            continue
        found[loop.header] = sums
    for wanted, choice in choices.items():
        if choice.fused and wanted not in met:
            inner = any(begins_at(module, loop, wanted) for fn in pointers.functions for loop in get(Loops, fn).all)
            raise not_fused(pointers, wanted, "it is in another loop or function") if inner else (
                no_loop(module, pointers, wanted))
    return found


def not_fused(pointers: Pointers, wanted: str, because: str) -> Unsupported:
    """The error for a place that names the schedule."""
    return Unsupported(
        f"the loop at {wanted} has no fused schedule", where=f"@{(pointers.root.name or '').removesuffix('.normal')}",
        because=because, fix='leave it out of `checkpoint`, or choose states, as "recompute" does',
    )  # fmt: skip


def outline_fused(
    module: Module, root: Function, loops: Mapping[Block, Sums], bytes_of: Sequence[Bytes | None]
) -> dict[Function, Segments]:
    """Outline these loops of the root; the functions `f.segments`, with what their derivatives need to know."""
    found: dict[Function, Segments] = {}
    for header, sums in loops.items():
        pointers = points_to(module, root)  # of the module as it is
        loop = next(loop for loop in get(Loops, root).top if loop.header is header)
        again = Repeatable(pointers, root, loop, bytes_of)
        made = Outlined(module, again, Choice(fused=True), sums).move(len(found))
        found[made.loop] = made
    return found
