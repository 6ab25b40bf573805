"""Code of libraries that the analyses do not come to an end in: refused by name, before they begin.

Nodes of Rust's `BTreeMap` hold keys, values, lengths and addresses of other nodes at places that depend on run time in
each of them; what is known of such memory grows with the product of all of them.
"""

from __future__ import annotations

from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Instruction, Module
from irgrad.rules.errors import Unsupported

__all__ = ["refuse_libraries"]

_WITHOUT_END = {
    "alloc/src/collections/btree/": (
        "a BTreeMap or BTreeSet is not followed",
        "its nodes hold floats, lengths and addresses at places that only run time knows",
        "sort a Vec of pairs and search it, or index a Vec",
    ),
}
"""Folders of sources: what is said of code that comes from there."""


def refuse_libraries(module: Module) -> None:
    """Raise Unsupported where a module has code of such a library."""
    folders = [folder for folder in _WITHOUT_END if any(folder in text for text in module.metadata.values())]
    if not folders:
        return
    for fn in module.functions.values():
        for instr in fn.instructions():
            place = locate(module, instr) if "dbg" in instr.metadata else ""
            for folder in folders:
                if folder in place.partition(" ")[0]:
                    raise _refusal(folder, instr, place)


def _refusal(folder: str, instr: Instruction, place: str) -> Unsupported:
    what, because, fix = _WITHOUT_END[folder]
    fn = instr.block.function if instr.block is not None else None
    return Unsupported(what, where=f"@{fn.name if fn is not None else '?'} ({place})", because=because, fix=fix)
