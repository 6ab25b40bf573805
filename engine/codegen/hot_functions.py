"""Which functions of a large module are worth all of LLVM's passes: those that run most often.

How often is estimated, as compilers do without a profile: a block runs `TRIPS` times for each loop around it, a
function as often as its hottest call; a call through a pointer may be one of each function whose address is taken. So
much of a module as a limit says is *hot*, in the order of how often a function's hottest block runs, and the rest is
*cold*: it gets few passes and quick machine code. LLVM's work then grows by little with a library's length, and inner
loops keep what they had.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irgrad.engine.analyses.control.cfg import strongly_connected
from irgrad.engine.codegen.large_modules import is_large
from irgrad.engine.ir.text.flow import blocks_of, loops_of
from irgrad.engine.ir.text.outline import every_call_of, function_bodies
from irgrad.engine.support.limits import limit
from irgrad.engine.support.lines import lines_of

__all__ = ["TRIPS", "cold_functions", "frequencies", "optimised_lines"]

TRIPS = 10
"""Runs of a loop, where nothing is known of them."""

_MENTION = re.compile(r'@(?:"([^"\n]*)"|([-\w$.]+))')
_CALL = re.compile(r"\b(?:call|invoke) ")
_POINTER = re.compile(r"\b(?:call|invoke) [^@\n]* %(?:\"[^\"\n]*\"|[-\w$.]+)\(")
_ANY = ""  # what a call through a pointer enters


@dataclass(slots=True)
class _Runs:
    """A function, for each time that it is entered: how often its hottest block runs, and its hottest calls; whose
    address it takes."""

    inner: int = 1
    calls: dict[str, int] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)


def cold_functions(text: str, roots: Sequence[str] = ()) -> frozenset[str]:
    """The functions of a module for which few passes will do, where more than `IRGRAD_MAX_OPTIMISED` lines of it are in
    bodies; else none. roots: what is entered from outside. Raises IRGradError for a limit that is none."""
    bodies, left = function_bodies(text), limit("OPTIMISED")
    lines = {name: body.count("\n") for name, body in bodies.items()}
    if sum(lines.values()) <= left:
        return frozenset()
    often = frequencies(text, bodies, roots)
    cold = set[str]()
    for name in sorted(bodies, key=lambda name: -often[name]):  # stable: of two the earlier
        if lines[name] <= left:
            left -= lines[name]
        else:
            cold.add(name)
    return frozenset(cold)


def optimised_lines(text: str) -> tuple[int, int] | None:
    """The lines of a large module, and for how many of them all passes run; None where they do so for all."""
    lines, most = text.count("\n"), int(min(limit("OPTIMISED"), sys.maxsize))
    return (lines, most) if is_large(text) and lines > most else None


def frequencies(text: str, bodies: Mapping[str, str], roots: Sequence[str] = ()) -> dict[str, int]:
    """How often the hottest block of each function runs; 0 of one that nothing enters. roots: by default the functions
    that no other one calls."""
    found = {name: _runs(body, bodies) for name, body in bodies.items()}
    outside = {a or b for line in lines_of(text, "@") for a, b in _MENTION.findall(line)[1:]}
    taken = outside.union(*(runs.taken for runs in found.values())) & bodies.keys()
    found[_ANY] = _Runs(calls=dict.fromkeys(sorted(taken), 1))
    called = {name for caller, runs in found.items() for name in runs.calls if name != caller}
    entered = dict.fromkeys(found, 0) | dict.fromkeys(roots or bodies.keys() - called, 1)
    for group in _callers_first(found):
        together = max(entered[name] for name in group)
        for name in group:
            entered[name] = together  # how often they enter one another is not known
        for name in group:
            for one, times in found[name].calls.items():
                if one not in group:
                    entered[one] = max(entered[one], together * times)
    return {name: entered[name] * found[name].inner for name in bodies}


def _callers_first(found: Mapping[str, _Runs]) -> list[set[str]]:
    """The functions, those that call one another together, each group behind those that call it."""
    names = list(found)
    number = {name: at for at, name in enumerate(names)}
    groups = strongly_connected([[number[one] for one in runs.calls] for runs in found.values()])
    return [{names[at] for at in group} for group in reversed(groups)]


def _runs(body: str, bodies: Mapping[str, str]) -> _Runs:
    blocks, runs = blocks_of(body), _Runs()
    depth = dict.fromkeys(blocks, 0)
    for inside in loops_of(blocks).values():
        for label in inside:
            depth[label] += 1
    for label, lines in blocks.items():
        times = TRIPS ** depth[label]
        runs.inner = max(runs.inner, times)
        for line in lines:
            if "@" not in line and not _CALL.search(line):
                continue
            direct = every_call_of(line)[:1]
            mentioned = [a or b for a, b in _MENTION.findall(line)]
            runs.taken.update(mentioned if not direct else _without(mentioned, direct[0]))
            entered = _ANY if not direct and _POINTER.search(line) else direct[0] if direct else None
            if entered is not None and (entered == _ANY or entered in bodies):
                runs.calls[entered] = max(times, runs.calls.get(entered, 0))
    return runs


def _without(names: list[str], one: str) -> list[str]:
    """The names but for the first that is this one."""
    rest = list(names)
    rest.remove(one)
    return rest
