"""What LLVM is told about the two memories of a derivative: the primal's and that of shadows do not overlap.

A sweep reads the primal's memory while it writes shadows. Where the addresses are loaded from memory, or belong to a
program that promises nothing about them, LLVM could not keep a load in front of a loop that adds to a shadow, and its
vector loops would compare all pairs of addresses first. Accesses of the primal have an alias scope, those of shadows
say that they are apart from it. The inliner gives each copy of a function scopes of its own, so that one derivative may
read what another one wrote.

Only floats: a pointer to inactive memory is its own shadow. Under run-time activity shadows may be the primal's memory.
"""

from __future__ import annotations

from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.ir.types import Type

__all__ = ["primal_scope", "shadow_scope"]


def primal_scope(unit: Unit, instr: Instruction) -> dict[str, str]:
    """The metadata of a copy of an access to the primal's memory."""
    if instr.opcode not in ("load", "store") or unit.runtime_activity:
        return {}
    return {"alias.scope": unit.get(_scopes)}


def shadow_scope(unit: Unit, type_: Type) -> dict[str, str]:
    """The metadata of an access to the shadow of a value of this type."""
    return {"noalias": unit.get(_scopes)} if type_.is_fp and not unit.runtime_activity else {}


def _scopes(unit: Unit) -> str:
    """A list of one scope in a domain of its own."""
    module = unit.module
    first = _fresh(module)
    domain, scope, listed = (f"!{first + i}" for i in range(3))
    module.metadata[domain] = f"distinct !{{{domain}}}"
    module.metadata[scope] = f"distinct !{{{scope}, {domain}}}"
    module.metadata[listed] = f"!{{{scope}}}"
    return listed


def _fresh(module: Module) -> int:
    return 1 + max((int(name[1:]) for name in module.metadata if name[1:].isdigit()), default=-1)
