"""What becomes part of its callers before anything else is optimised: loops are then seen with all that they do."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from irgrad.engine.analyses.control.promises import worksharing_loops
from irgrad.engine.codegen.llvm import binding
from irgrad.engine.codegen.passes import Code, Settings
from irgrad.engine.ir.text.outline import calls_itself, calls_of, every_call_of, function_bodies
from irgrad.engine.parallel.one_thread import ALONE

__all__ = ["inline_handed_locals", "inline_never_returning", "inline_promises", "inline_small"]

_SMALL = 400  # lines
_SHORT, _MORE = 150, 1_000  # lines of a function that is handed variables, and of all that become part of others

_LOCAL = re.compile(r"^  (%\S+) = alloca ", re.M)
_PART = re.compile(r"^  (%\S+) = getelementptr [^\n]*?, ptr (%[^\s,]+),", re.M)
_CALL = re.compile(r'^[^\n]*\b(?:call|invoke) [^@\n]*@(?:"([^"\n]*)"|([-\w$.]+))(\([^\n]*)', re.M)
_VALUE = re.compile(r"%[-\w$.]+")


def inline_promises(code: Code, settings: Settings) -> None:
    """Functions with loops that the source promises independent, or that OpenMP gives to threads, become parts of their
    callers, with the runtime of OpenMP, as far as they do not call themselves: which memory an iteration has is seen
    where all of it is."""
    texts, bodies = function_bodies(code.text), {function.name: function for function in code.llvm.functions}
    marked = [rf"{re.escape(loop)}\b" for loop in worksharing_loops(code.text)]
    found = re.compile("|".join(["!llvm.access.group", *(f"!llvm.loop {loop}" for loop in marked)]))
    calls = {name: calls_of(text) & texts.keys() for name, text in texts.items()}
    wanted = {name for name, text in texts.items() if found.search(text) or (ALONE in text and "ordered" not in text)}
    while more := {name for name, called in calls.items() if called & wanted} - wanted:
        wanted |= more
    wanted |= {called for name in wanted for called in calls[name] if called.startswith("__kmpc_")}
    for name in wanted.difference(settings.roots):
        if not _apart(bodies[name], settings) and not calls_itself(calls, name):
            bodies[name].add_function_attribute("alwaysinline")


def inline_small(code: Code, settings: Settings) -> None:
    """Small functions become parts of their callers, with what they call themselves; what OpenMP has one thread run at
    a time stays."""
    texts, bodies = function_bodies(code.text), {function.name: function for function in code.llvm.functions}
    called = {name: [c for c in every_call_of(text) if c in texts] for name, text in texts.items()}
    calls = {name: set(names) for name, names in called.items()}
    lines: dict[str, int] = {}

    def length(name: str) -> int:
        """Lines of a function with what becomes part of it."""
        if name not in lines:
            lines[name] = texts[name].count("\n")  # (of what calls itself)
            lines[name] += sum(n for c in called[name] if (n := length(c)) <= _SMALL)
        return lines[name]

    for name in texts.keys() - set(settings.roots):
        apart = ALONE in texts[name] or name.startswith("__kmpc_")
        apart = apart or _apart(bodies[name], settings) or calls_itself(calls, name)
        if length(name) <= _SMALL and not apart:
            bodies[name].add_function_attribute("alwaysinline")


def inline_handed_locals(code: Code, settings: Settings) -> bool:
    """Short functions that are handed the address of a variable of their caller become parts of it, as far as that
    takes few lines: a container whose seldom way to grow is a function of its own is memory for its sake alone, and so
    are the pointers in it, each of which the reverse sweep would have to keep. Returns whether any do."""
    texts = function_bodies(code.text)
    handed = set[str]()
    for text in texts.values() if len(texts) > 1 else ():
        own = _own_places(text) if " alloca " in text else set[str]()
        for row in _CALL.finditer(text) if own else ():
            if not own.isdisjoint(_VALUE.findall(row[3])):
                handed.add(row[1] or row[2])
    wanted = sorted(handed.intersection(texts).difference(settings.roots), key=lambda name: len(texts[name]))
    if not wanted:
        return False
    bodies = {function.name: function for function in code.llvm.functions}
    calls = {name: every_call_of(text) for name, text in texts.items()}
    sites = Counter(name for called in calls.values() for name in called)
    left, found = _MORE, False
    for name in wanted:
        length = texts[name].count("\n")
        left -= length * sites[name]
        if length > _SHORT or left < 0:
            break
        if not _apart(bodies[name], settings) and not calls_itself(calls, name):
            bodies[name].add_function_attribute("alwaysinline")
            found = True
    return found


def _own_places(text: str) -> set[str]:
    """Names of the variables of a function on its stack, and of places in them."""
    found = set(_LOCAL.findall(text))
    for part, base in _PART.findall(text):
        if base in found:
            found.add(part)
    return found


def inline_never_returning(code: Code, settings: Settings) -> None:
    """Functions that never return, as those of the C++ library that only throw, become parts of their callers: where an
    exception is thrown is then told by the line that calls them."""
    bodies = function_bodies(code.text)
    calls = {name: calls_of(text) for name, text in bodies.items()}
    for function in code.llvm.functions:
        name, said = function.name, b" ".join(function.attributes).split()
        if name not in bodies or name in settings.roots or b"noreturn" not in said or calls_itself(calls, name):
            continue
        if not _apart(function, settings) and bodies[name].count("\n") <= _SMALL:
            function.add_function_attribute("alwaysinline")
    passes = binding().create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    options = binding().create_pipeline_tuning_options(speed_level=2)
    passes.run(code.llvm, binding().create_pass_builder(code.machine("", 2), options))


def _apart(function: Any, settings: Settings) -> bool:
    kept = settings.keep is not None and settings.keep(function.name)
    return kept or any(b"noinline" in attribute for attribute in function.attributes)
