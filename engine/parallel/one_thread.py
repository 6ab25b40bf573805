"""Loops of OpenMP that one thread runs, as `grids/worksharing.py` marks them in a module's text, and why."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["ALONE", "ATOMIC", "CRITICAL", "PLACE", "UPDATES", "loops_on_one_thread", "tasks"]

ALONE = "irgrad.one_thread"
"""The metadata, of a call that sets a loop's bounds, that has the reason."""
PLACE = "irgrad.loop_place"
"""The metadata, of the same call, that has the place of the loop: that of `#pragma omp for` is a line above."""
CRITICAL, ATOMIC, UPDATES = "it has a critical section", "it has atomic operations", "it has atomic updates"
"""Reasons that do not count where what is updated so is put together from parts (see `threads/own_updates.py`); a loop
with atomic updates is marked all the same."""


def loops_on_one_thread(text: str, shared: Collection[str] = ()) -> list[str]:
    """The worksharing loops of a module that were not marked: rows as `f.c:3:1: it has a critical section`. shared:
    places of others, of the loops or of what is said of them."""
    rows = re.findall(rf"^ [^\n]*@\w+\([^\n]*?(?:!dbg (!\d+))?, !{re.escape(ALONE)} (!\d+)"
                      rf"(?:, !{re.escape(PLACE)} (!\d+))?", text, re.M)  # fmt: skip
    found: dict[str, None] = {}
    for pragma, node, loop in dict.fromkeys(rows):
        if _place(text, loop) in shared:
            continue
        why = re.search(rf'^{node} = !\{{!"([^"\n]*)"\}}', text, re.M)
        found[f"{_place(text, pragma) or 'a loop'}: {why[1] if why else '?'}"] = None
    return list(found)


def tasks(text: str) -> list[str]:
    """Where a module makes tasks, in order: `f.c:3:1`."""
    nodes = re.findall(r"^ [^\n]*@__kmpc_omp_task_alloc\([^\n]*!dbg (!\d+)", text, re.M)
    return [place for place in dict.fromkeys(_place(text, node) for node in nodes) if place]


def _place(text: str, node: str) -> str:
    """`file:line:column` of a location."""
    word = r"(?:distinct )?!DILocation\(line: (\d+), column: (\d+), scope: (!\d+)"
    row = node and re.search(rf"^{node} = {word}", text, re.M)
    if not row:
        return ""
    scope = row[3]
    for _ in range(20):
        inner = re.search(rf"^{scope} = (?:distinct )?!DI(\w+)\(([^\n]*)", text, re.M)
        if inner is None:
            break
        if inner[1] == "File":
            name = re.search(r'filename: "([^"]*)"', inner[2])
            return f"{name[1] if name else '?'}:{row[1]}:{row[2]}"
        outer = re.search(r"\bfile: (!\d+)", inner[2]) or re.search(r"\bscope: (!\d+)", inner[2])
        if outer is None:
            break
        scope = outer[1]
    return f"?:{row[1]}:{row[2]}"
