"""What the source promises of loops: that their iterations may run in any order and at once.

What is found without a promise is `evolution/dependence.py`, which takes promises for granted. A promise is `#pragma
omp simd`, `#pragma clang loop vectorize(assume_safety)`, which
LLVM keeps as access groups, and `#pragma omp for`, which a node of ours tells (`grids/worksharing.py`). A loop is
promised independent where every instruction in it that may touch memory belongs to a group that the loop's metadata
names (`llvm.loop.parallel_accesses`, LLVM's language reference), or where it has that node. Atomic operations stay with
one thread in either case: derivatives take them apart.
"""

from __future__ import annotations

import re

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir.model import Function, Instruction, Module
from irgrad.engine.ir.opcodes import having
from irgrad.engine.parallel.sections import without_fences
from irgrad.rules.effects import facts

__all__ = [
    "OF_ALL", "OF_ALL_CALL", "SECTIONS", "SHARED_MEMORY", "SILENT", "WORKSHARING", "has_atomic", "has_sections",
    "has_thread_memory", "is_of_all", "is_worksharing", "not_promised", "promised_accesses", "without_sections",
    "worksharing_loops",
]  # fmt: skip

WORKSHARING = "irgrad.loop.worksharing"
"""Of the metadata of a loop whose iterations OpenMP gives to the threads of a team."""

SHARED_MEMORY = "irgrad.loop.shared_memory"
"""Of such a loop whose threads have no memory of their own that goes from one iteration to the next."""

SECTIONS = "irgrad.loop.sections"
"""Of such a loop in which threads may wait for each other: in sections (see `parallel/sections.py`)."""

OF_ALL, OF_ALL_CALL = "irgrad.shared", '"irgrad-shared"'
"""Metadata of what reserves memory outside of all regions: memory of all threads. Of calls also an attribute of their
result, since LLVM drops metadata from calls that it moves."""

_NODE = re.compile(r"!\d+")
_PROMISE = '!{!"llvm.loop.parallel_accesses"'
SILENT = ("llvm.lifetime.", "llvm.dbg.", "llvm.assume", "llvm.experimental.noalias.scope.decl")
"""Beginnings of the names of intrinsics that do nothing when they run."""
_TOUCHES = having("reads") | having("writes")


def not_promised(module: Module, loop: Loop) -> str:
    """Why nobody promises that the iterations of a loop are independent, "" where somebody does."""
    promised, shared = _promised(module, loop)
    if any(has_atomic(instr) for block in loop.blocks for instr in block.instructions):
        return "it has atomic operations"
    if shared:
        return ""
    if not promised:
        return "nothing says that its iterations are independent"
    accesses = {instr for block in loop.blocks for instr in block.instructions if _touches(instr)}
    if accesses - promised_accesses(module, loop):
        return "an access in it is not among those that the source promises to be independent"
    return ""


def promised_accesses(module: Module, loop: Loop) -> set[Instruction]:
    """Accesses that meet none of each other in another iteration, by the source's word."""
    promised = _promised(module, loop)[0]
    rows = (instr for block in loop.blocks for instr in block.instructions) if promised else ()
    return {i for i in rows if _groups(module, i.metadata.get("llvm.access.group", "")) & promised}


def is_worksharing(module: Module, loop: Loop) -> bool:
    """Whether OpenMP gives the iterations of a loop to the threads of a team."""
    return _promised(module, loop)[1]


def is_of_all(instr: Instruction) -> bool:
    """Whether what an instruction reserves is memory of all threads."""
    return OF_ALL in instr.metadata or (instr.call is not None and OF_ALL_CALL in instr.call.ret_attrs)


def has_thread_memory(module: Module, loop: Loop) -> bool:
    """Whether threads may have memory of their own that goes from one iteration of a worksharing loop to the next."""
    return not any(f'"{SHARED_MEMORY}"' in text for text in _said(module, loop))


def worksharing_loops(text: str) -> list[str]:
    """The nodes of the worksharing loops of a module's text."""
    words = [row[1] for row in re.finditer(rf'^(!\d+) = !\{{!"{WORKSHARING}"\}}', text, re.M)]
    rows = re.findall(r"^(!\d+) = distinct !\{([^}\n]*)\}", text, re.M)
    return [loop for loop, nodes in rows if not set(_NODE.findall(nodes)).isdisjoint(words)]


def without_sections(text: str) -> str:
    """The module of what one thread runs: without the fences, and with loops that have some as any others."""
    node = re.search(rf'^(!\d+) = !\{{!"{SECTIONS}"\}}', text, re.M)
    words = re.findall(rf'^(!\d+) = !\{{!"(?:{SECTIONS}|{WORKSHARING}|{SHARED_MEMORY})"\}}', text, re.M)

    def row(found: re.Match[str]) -> str:
        nodes = found[2].split(", ")
        return f"{found[1]}{{{', '.join(n for n in nodes if node is None or node[1] not in nodes or n not in words)}}}"

    text = without_fences(text)
    return re.sub(r"^(!\d+ = distinct !)\{(!\d+(?:, !\d+)+)\}", row, text, flags=re.M) if node else text


def has_sections(module: Module, loop: Loop) -> bool:
    """Whether a worksharing loop has sections that one thread at a time runs."""
    return any(f'"{SECTIONS}"' in text for text in _said(module, loop))


def has_atomic(instr: Instruction) -> bool:
    """Whether an instruction, or what it calls, is atomic."""
    return _atomic(instr, set())


def _atomic(instr: Instruction, seen: set[Function]) -> bool:
    if instr.ordering or instr.opcode == "fence":
        return True
    callee = instr.callee if instr.is_call else None
    if not isinstance(callee, Function) or callee in seen:
        return False
    seen.add(callee)
    return any(_atomic(inner, seen) for inner in callee.instructions())


def _said(module: Module, loop: Loop) -> list[str]:
    """What the loop's metadata says."""
    latch = loop.latch
    node = "" if latch is None else latch.terminator.metadata.get("llvm.loop", "")
    return [module.metadata.get(name, "") for name in _NODE.findall(module.metadata.get(node, ""))]


def _promised(module: Module, loop: Loop) -> tuple[set[str], bool]:
    """The groups of accesses that the loop's metadata names, and whether it is a worksharing loop."""
    said = _said(module, loop)
    groups = {name for text in said if text.startswith(_PROMISE) for name in _NODE.findall(text)}
    return groups, any(f'"{WORKSHARING}"' in text for text in said)


def _groups(module: Module, node: str) -> set[str]:
    """The groups of an access: one (a node without operands), or a list of such."""
    listed = _NODE.findall(module.metadata.get(node, ""))
    return set(listed) if listed else {node} - {""}


def _touches(instr: Instruction) -> bool:
    if not instr.is_call:
        return instr.opcode in _TOUCHES
    name = instr.callee_name or ""
    known = facts(name) if name else None
    return not name.startswith(SILENT) and not (known is not None and known.kind == "pure" and not known.writes)
