"""The parallel regions of OpenMP in the IR that clang writes.

A region is a function of its own, `void f(ptr thread, ptr bound, ...)`, and its place in the source a call
`__kmpc_fork_call(place, count, f, ...)`, which runs it once on each thread of a team. A team of one thread is a legal
execution, and an ordinary call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ENTER", "LEAVE", "Fork", "counts_regions", "forks", "has_forks", "lines_on_one_thread", "on_one_thread"]

ENTER, LEAVE = "irgrad_omp_enter", "irgrad_omp_leave"
"""Functions of the runtime that count nested regions."""

_ZERO = "irgrad.omp.zero"
_SYMBOL = r'@(?:"[^"\n]+"|[-\w$.]+)'
_FORK = re.compile(
    r"^(?P<before> +(?:tail )?)call void \(ptr, i32, ptr, \.\.\.\) @__kmpc_fork_(?P<kind>call|teams)"
    rf"\(ptr [^@\n]*{_SYMBOL}, i32 (?:noundef )?\d+, ptr (?:noundef |nonnull )*(?P<region>{_SYMBOL})"
    r"(?P<captured>(?:, [^\n]*?)?)\)(?P<after>(?: #\d+)?(?:, ![^\n]*)?)$",
    re.M,
)
_NESTED = re.compile(r"^declare [^@\n]*@omp_get_(?:level|ancestor_thread_num|team_size)\(", re.M)
_SERIALISED = re.compile(r"^( +)(?:tail )?call void @__kmpc_(end_)?serialized_parallel\([^\n]*$", re.M)


@dataclass(frozen=True, slots=True)
class Fork:
    """A place at which a team is asked to run a region.

    region:   the symbol of the region's function, with its `@`
    captured: the arguments behind the two that say which thread it is, as text: addresses of shared variables, values
    teams:    it is a league of teams (`#pragma omp teams`), each of one thread
    start, end: where the call stands in the text
    """

    region: str
    captured: str
    teams: bool
    start: int
    end: int


def has_forks(text: str) -> bool:
    """Whether a module has parallel regions."""
    return "@__kmpc_fork_" in text


def counts_regions(text: str) -> bool:
    """Whether a program asks how many regions are around it."""
    return _NESTED.search(text) is not None


def forks(text: str) -> Iterator[Fork]:
    """The places at which regions run, in the order of the text."""
    for found in _FORK.finditer(text):
        captured = found["captured"].removeprefix(", ")
        yield Fork(found["region"], captured, found["kind"] == "teams", found.start(), found.end())


def on_one_thread(text: str) -> str:
    """The module in which each region is called once, by the thread that comes to it."""
    if not has_forks(text):
        return text
    counted = counts_regions(text)

    def call(found: re.Match[str]) -> str:
        zero = f"ptr @{_ZERO}"
        made = (f"{found['before']}call void {found['region']}({zero}, {zero}{found['captured']})"
                f"{found['after']}")  # fmt: skip
        if counted and found["kind"] == "call":
            made = f"  call void @{ENTER}(){_location(found)}\n{made}\n  call void @{LEAVE}(){_location(found)}"
        return made

    made = _FORK.sub(call, text)
    if counted:
        made = _SERIALISED.sub(
            lambda found: f"{found[0]}\n  call void @{LEAVE if found[2] else ENTER}()"
            + (place[0] if (place := re.search(r", !dbg !\d+", found[0])) else ""), made)  # fmt: skip
        known = re.findall(rf"^(?:define|declare) [^@\n]*@({ENTER}|{LEAVE})\(", made, re.M)
        made += "".join(f"\ndeclare void @{name}()\n" for name in (ENTER, LEAVE) if name not in known)
    zero = f"@{_ZERO} = internal unnamed_addr constant i32 0, align 4\n"
    return made if f"\n@{_ZERO} =" in made else f"{made}\n{zero}"  # of objects that are linked, one has it


def lines_on_one_thread(text: str) -> list[int]:
    """The source lines with regions that one thread runs, for itself or for those of a team, in order; 0 for those
    without a location."""
    found = dict.fromkeys(re.findall(rf"call void ({_SYMBOL})\(ptr @{re.escape(_ZERO)}, ptr @{re.escape(_ZERO)}", text))
    found.update(dict.fromkeys(re.findall(rf"call void ({_SYMBOL})\.team\(i32 ", text)))
    lines = set()
    for region in found:
        head = re.search(rf"^define [^\n@]*{re.escape(region)}\([^\n]*!dbg (!\d+)", text, re.M)
        place = head and re.search(rf"^{head[1]} = (?:distinct )?!DISubprogram\([^\n]*?\bline: (\d+)", text, re.M)
        lines.add(int(place[1]) if place else 0)
    return sorted(lines)


def _location(found: re.Match[str]) -> str:
    place = re.search(r", !dbg !\d+", found["after"])
    return place[0] if place else ""
