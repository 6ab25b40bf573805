"""Worksharing loops of whole programs (`#pragma omp for`) as jobs of a team, in the program and in its derivatives.

What is differentiated has its loops in chunks before, and its derivative as jobs behind; the program's own functions
get both at once, when nothing is left to be differentiated. How many threads there are follows from OMP_NUM_THREADS,
else from the cores, when the program runs.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from irgrad.engine.analyses.control.promises import WORKSHARING, worksharing_loops
from irgrad.engine.analyses.memory.objects import OVERLAPS, RESTRICT
from irgrad.engine.codegen.llvm import binding
from irgrad.engine.codegen.passes import Code, Settings, llvm_pass, run_passes
from irgrad.engine.codegen.team import COPIES, RUN, pages_text, team_text
from irgrad.engine.ir.model import Function, GlobalVariable, Module
from irgrad.engine.ir.text.entities import restrict
from irgrad.engine.ir.text.outline import calls_of, function_bodies, outline
from irgrad.engine.threads.chunks import SharedLoops, share_loops, with_chunks
from irgrad.engine.threads.own_updates import with_own_updates
from irgrad.engine.threads.shadows import mark_shadows, mark_updates
from irgrad.engine.threads.teams import with_teams
from irgrad.rules.errors import OneThread

__all__ = [
    "chunked", "derivative_on_threads", "has_worksharing", "linked_team", "program_on_threads", "worksharing_functions",
]  # fmt: skip

_REGION = re.compile(r"\.omp_outlined(?:\b|_)")
_RUNTIME = ("__kmpc_", "irgrad_omp_", "omp_")
_OF_THREADS = re.compile(r"^@[^\n]* thread_local\b|@__kmpc_threadprivate", re.M)
_SPECIAL = re.compile(r"^@llvm\.(?:global_ctors|global_dtors|used|compiler\.used|global\.annotations) = [^\n]*\n", re.M)
_COMDAT = re.compile(r",? comdat(?:\([^)]*\))?")
_ALIAS = re.compile(r'^(?P<name>@(?:"[^"\n]+"|[-\w$.]+)) = (?:\w+ )*?alias (?P<type>[^@\n]*), ptr @[^\n]*$', re.M)
_PERSONALITY = re.compile(r" personality ptr @(?:\"[^\"\n]*\"|[-\w$.]+)")
_LINKAGE = frozenset(
    "private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external"
    .split()
)  # fmt: skip
_TAPE = {
    "_setjmp": "i32 @NAME(ptr) returns_twice", "irgrad.tape.enter": "void @NAME(ptr)",
    "irgrad.tape.leave": "void @NAME(ptr)", "irgrad.tape.failure": "ptr @NAME(ptr)",
}  # fmt: skip
"""What guards of jobs call."""
_OWN = re.compile(rf"^define ptr @{RUN}\(", re.M)


def has_worksharing(text: str) -> bool:
    """Whether a module has loops that OpenMP gives to the threads of a team."""
    return f'!"{WORKSHARING}"' in text


def chunked(text: str, root: str, keep: Callable[[str], bool] | None = None) -> str:
    """The module of a function that is to be differentiated, with its worksharing loops in chunks; as it is where there
    is none that can be."""
    from irgrad.engine.codegen.prepare import tidy

    if not has_worksharing(text) or _OF_THREADS.search(text):
        return text
    return with_chunks(with_own_updates(tidy(text, [root], keep), root), root, promised=True)


def derivative_on_threads(text: str, roots: Sequence[str], function: str) -> str:
    """The module of a derivative whose loops are in chunks, with these as jobs. function: what is differentiated."""
    if ".iteration." not in text:
        return text
    made = with_teams(mark_shadows(text, *roots), roots[0], (), automatic=True)
    for row in dict.fromkeys(made.others):
        warnings.warn(OneThread(f"a loop of a derivative of `{function}` runs on one thread: {row}"), stacklevel=2)
    missing = {name for name in _TAPE if f"@{name}(" in made.text} - set(outline(made.text).functions)
    return made.text + "".join(f"\ndeclare {_TAPE[name].replace('NAME', name)}" for name in sorted(missing)) + "\n"


def worksharing_functions(text: str) -> list[str]:
    """The functions of a program that call regions with worksharing loops, in the region itself or in what it calls."""
    if not has_worksharing(text) or _OF_THREADS.search(text):
        return []
    bodies = function_bodies(text)
    calls = {name: calls_of(body) & bodies.keys() for name, body in bodies.items()}
    regions = {name for name in _marked(text, bodies, calls) if _REGION.search(name)}
    return sorted(name for name, called in calls.items() if called & regions and not _REGION.search(name))


def _marked(text: str, bodies: dict[str, str], calls: dict[str, set[str]]) -> set[str]:
    """Functions with worksharing loops, and those that call them."""
    word = re.compile("|".join(rf"!llvm\.loop {loop}\b" for loop in worksharing_loops(text)))
    found = {name for name, body in bodies.items() if word.search(body)}
    while more := {name for name, called in calls.items() if called & found} - found:
        found |= more
    return found


def program_on_threads(text: str, names: Sequence[str]) -> str:
    """The program with the worksharing loops of its own functions as jobs. names: of these functions, as
    `worksharing_functions` found them before derivatives were made."""
    from irgrad.engine.codegen.prepare import tidy
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    bodies = function_bodies(text)
    names = [name for name in names if name in bodies]
    if not names:
        return text
    program = _Visible(_with_effects(text))
    calls = {name: calls_of(body) & bodies.keys() for name, body in bodies.items()}
    regions = {called for name in names for called in calls[name] if _REGION.search(called)}
    inner, work = set(regions), [*regions]
    while work:  # what regions call, with loops of its own, becomes part of them
        more = calls[work.pop()] & _marked(text, bodies, calls) - inner - {*names}
        inner |= more
        work += more
    tidied = tidy(program.only({*names, *inner}), names)
    for name in names:
        tidied = with_own_updates(tidied, name)
    module = read(tidied, roots=names)
    found = [_shared(module, module.functions[name]) for name in names]
    _tell(row for loops in found for row in loops.others)
    if not any(loops.shared for loops in found):
        return text
    mark_updates(module)
    made = with_teams(to_text(module), names[0], (), roots=names[1:], automatic=True)
    _tell(made.others)
    return program.with_functions(names, made.text)


def _with_effects(text: str) -> str:
    """The program with what its functions do to memory written on them: regions see declarations of most of them."""
    code = Code(text)
    run_passes(_EFFECTS, code, Settings(()))
    result = code.text
    code.close()
    return result


def _effects(code: Code, settings: Settings) -> None:
    """Functions say what they do to memory."""
    llvm = binding()
    passes = llvm.create_new_module_pass_manager()
    passes.add_post_order_function_attributes_pass()
    passes.run(code.llvm, llvm.create_pass_builder(code.machine("", 2), llvm.create_pipeline_tuning_options()))


_EFFECTS = (llvm_pass("function-effects", _effects),)


def _shared(module: Module, fn: Function) -> SharedLoops:
    """The worksharing loops of a function in chunks. Pointers of a program may overlap, unless the source says no."""
    attrs = [argument.attrs for argument in fn.args]
    for argument in fn.args if fn.blocks else ():
        if argument.type.is_ptr:
            argument.attrs += f" {RESTRICT if 'noalias' in argument.attrs.split() else OVERLAPS}"
    found = share_loops(module, fn, promised=True)
    for argument, before in zip(fn.args, attrs, strict=True):
        argument.attrs = before
    return found


def _tell(rows: Iterable[str]) -> None:
    for row in dict.fromkeys(rows):
        warnings.warn(OneThread(f"a loop of the program runs on one thread: {row}"), stacklevel=4)


class _Visible:
    """A program from which functions are taken, changed, and put back. Meanwhile what is static is visible."""

    def __init__(self, text: str) -> None:
        from irgrad.engine.ir.printer import to_text
        from irgrad.engine.ir.text.reader import read

        module = read(text, [])
        self.linkage: dict[str, str] = {}
        values: list[Function | GlobalVariable] = [*module.functions.values(), *module.globals.values()]
        for value in values:
            words = value.head.split()
            defined = value.init is not None if isinstance(value, GlobalVariable) else not value.is_declaration
            found = [word for word in words if word in _LINKAGE]
            if defined and not (value.name or "").startswith("llvm."):
                self.linkage[value.name or ""] = found[0] if found else "external"
                if {"internal", "private"} & set(words):
                    value.head = " ".join(word for word in words if word not in _LINKAGE)
        self.text = to_text(module)

    def only(self, names: Collection[str]) -> str:
        """The program with the bodies of some functions and of OpenMP's; everything else is declared."""
        text = _declared(self.text, lambda name: name not in names and not name.startswith(_RUNTIME), variables=True)
        return restrict(_ALIAS.sub(_alias_declared, text), sorted(names))

    def with_functions(self, names: Collection[str], part: str) -> str:
        """The program with the bodies that functions have in a module."""
        module = _together(_declared(self.text, names.__contains__, variables=False), part)
        for value in (*module.functions, *module.global_variables):
            if not value.is_declaration and not value.name.startswith("llvm."):
                linkage = self.linkage.get(value.name, "internal")
                value.linkage = {"linkonce": "linkonce_any", "weak": "weak_any"}.get(linkage, linkage)
        result = str(module)
        module.close()
        return result


def _alias_declared(found: re.Match[str]) -> str:
    """What an alias names, as a declaration."""
    result, opening, rest = found["type"].partition(" (")
    return f"declare {result} {found['name']}({rest}" if opening else f"{found['name']} = external global {result}"


def _declared(text: str, left: Callable[[str], bool], *, variables: bool) -> str:
    """A module with declarations of some functions; variables: and of all variables."""
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read(_SPECIAL.sub("", text) if variables else text, [])
    for fn in module.functions.values():
        if not fn.is_declaration and left(fn.name or ""):
            fn.blocks, fn.lazy, fn.head, fn.metadata = [], None, "", {}
            fn.tail = _PERSONALITY.sub("", _COMDAT.sub("", fn.tail))
    for var in module.globals.values() if variables else ():
        if not (var.name or "").startswith("llvm."):
            var.init = None
            var.head = " ".join(["external", *(word for word in var.head.split() if word not in _LINKAGE)])
            var.tail = _COMDAT.sub("", var.tail)
    return to_text(module)


def linked_team(text: str) -> str:
    """The program with the team that its jobs ask for; one for all objects of a program."""
    if f"@{RUN}(" not in text or _OWN.search(text):
        return text
    if "@irgrad_team_extent(" in text or f"@{COPIES}(" in text:
        text = str(_together(text, pages_text()))
    module = _together(text, _OWN.sub(f"define linkonce_odr hidden ptr @{RUN}(", team_text()))
    result = str(module)
    module.close()
    return result


def _together(text: str, more: str) -> Any:
    """Two modules linked."""
    from irgrad.engine.codegen.llvm import binding, parse

    context: Any = binding().create_context()
    module = parse(text, context)
    module.link_in(parse(more, context))
    return module
