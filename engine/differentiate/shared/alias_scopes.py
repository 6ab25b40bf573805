"""What LLVM is told about the memory of a derivative: which accesses never meet.

A sweep reads the primal's memory while it writes shadows and the tape. Where addresses are loaded from memory, or are
those of a program that promises nothing about them, LLVM could not keep a load in front of a loop that adds to a
shadow, and its vector loops would compare all pairs of addresses first. The points-to sets know more: each object of
the primal has an alias scope, its shadow another one, each array of the tape one. An access says which of them it may
go to, and that it is apart from the others.

Each function has scopes of its own, and declares them where it begins: a copy of it that is inlined has others, in each
iteration of a loop around it, so that one derivative may read what another one wrote. A pointer to inactive memory is
its own shadow, so an access to pointers of shadow memory may go to the primal's. Under run-time activity every access
to shadows may, and nothing is said.

Iterations that run on many threads have scopes as well, of which nothing is left when they are differentiated again or
go to a device (see `normalise/iteration_scopes.py`).
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.memory.objects import bits_of
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Function, Instruction, MetadataValue
from irgrad.engine.ir.types import Type
from irgrad.engine.normalise.iteration_scopes import DECLARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["declare_scopes", "primal_scope", "shadow_scope", "tape_scope"]

MOST = 24
"""Objects of a function that have scopes of their own, those that its loops go to most; the others share one."""
_OTHERS = -1


def primal_scope(unit: Unit, instr: Instruction) -> dict[str, str]:
    """The metadata of a copy of an access to the primal's memory."""
    scopes = _scopes(unit, instr)
    return {} if scopes is None else scopes.access(_mask(unit, instr), primal=True, shadow=False)


def shadow_scope(unit: Unit, instr: Instruction, type_: Type) -> dict[str, str]:
    """The metadata of an access to the shadow of memory that `instr` accesses, for a value of this type."""
    scopes = _scopes(unit, instr)
    return {} if scopes is None else scopes.access(_mask(unit, instr), primal=not type_.is_fp, shadow=True)


def tape_scope(unit: Unit, fn: Function, array: object) -> dict[str, str]:
    """The metadata of an access to an array of the tape of a function."""
    return {} if unit.runtime_activity else unit.get(_Functions).of(fn).tape(array)


def declare_scopes(unit: Unit) -> None:
    """Declare the scopes of the functions' accesses where the functions begin."""
    lists = unit.get(_Functions).lists
    for fn in list(unit.module.functions.values()) if lists else ():
        used = dict.fromkeys(instr.metadata.get("alias.scope", "") for instr in fn.instructions())
        scopes = dict.fromkeys(scope for name in used for scope in lists.get(name, ()))
        if not scopes:
            continue
        callee = unit.declare(DECLARE, ty.function(ty.VOID, (ty.METADATA,)))
        first = next(i for i, instr in enumerate(fn.blocks[0].instructions) if instr.opcode != "alloca")
        b = Builder(fn.blocks[0], at=first)
        for scope in scopes:
            b.call(callee, [MetadataValue(scope)])


def _scopes(unit: Unit, instr: Instruction) -> _Scopes | None:
    if instr.opcode not in ("load", "store") or unit.runtime_activity or instr.block is None:
        return None
    fn = instr.block.function
    return None if fn is None else unit.get(_Functions).of(fn)


def _mask(unit: Unit, instr: Instruction) -> int:
    return unit.pointers.expand(unit.pointers.of(instr.operands[0 if instr.opcode == "load" else 1]))


class _Functions:
    """The scopes of the functions of one derivation."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.lists: dict[str, tuple[str, ...]] = {}  # a list of scopes -> for each of them, a list with that one only
        self._of: dict[Function, _Scopes] = {}
        self._names = count(1 + max((int(n[1:]) for n in unit.module.metadata if n[1:].isdigit()), default=-1))

    def of(self, fn: Function) -> _Scopes:
        """Those of one function of the primal."""
        if fn not in self._of:
            self._of[fn] = _Scopes(self, fn)
        return self._of[fn]

    def name(self) -> str:
        """A name of metadata that the module does not have."""
        return next(name for i in self._names if (name := f"!{i}") not in self.unit.module.metadata)


class _Scopes:
    """The scopes of what one function of the primal accesses."""

    def __init__(self, functions: _Functions, fn: Function) -> None:
        self.functions = functions
        self.metadata = functions.unit.module.metadata
        self._singles: dict[str, str] = {}
        loops = get(Loops, fn)
        runs: Counter[int] = Counter()
        for block in loops.cfg.rpo:
            for instr in block.instructions:
                if instr.opcode in ("load", "store"):
                    for bit in bits_of(_mask(functions.unit, instr)):
                        runs[bit] += 16 ** min(loops.depth(block), 8)
        self.own = frozenset(bit for bit, _ in runs.most_common(MOST))
        self.domain = functions.name()
        self.metadata[self.domain] = f"distinct !{{{self.domain}}}"
        kinds = [*sorted(self.own), _OTHERS]
        self.primal = {kind: self._scope() for kind in kinds}
        self.shadow = {kind: self._scope() for kind in kinds}
        self.tapes: dict[object, str] = {}
        self._known: dict[object, dict[str, str]] = {}

    def access(self, mask: int, *, primal: bool, shadow: bool) -> dict[str, str]:
        """The metadata of an access to objects, to their shadows, or to one of the two."""
        if not mask:
            return {}
        kinds = frozenset(bit if bit in self.own else _OTHERS for bit in bits_of(mask))
        key = (kinds, primal, shadow)
        if key not in self._known:
            here = [scope for kind, scope in self.primal.items() if primal and kind in kinds]
            here += [scope for kind, scope in self.shadow.items() if shadow and kind in kinds]
            apart = [scope for scope in (*self.primal.values(), *self.shadow.values()) if scope not in here]
            self._known[key] = {"alias.scope": self._list(here), "noalias": self._list(apart)}
        return self._known[key]

    def tape(self, array: object) -> dict[str, str]:
        """The metadata of an access to an array of the tape: apart from all of the program's, and from the arrays
        before."""
        key = ("tape", array)
        if key not in self._known:
            apart = [*self.primal.values(), *self.shadow.values(), *self.tapes.values()]
            own = self.tapes[array] = self._scope()
            self._known[key] = {"alias.scope": self._list([own]), "noalias": self._list(apart)}
        return self._known[key]

    def _scope(self) -> str:
        name = self.functions.name()
        self.metadata[name] = f"distinct !{{{name}, {self.domain}}}"
        return name

    def _list(self, scopes: Sequence[str]) -> str:
        for scope in scopes:
            if scope not in self._singles:
                self._singles[scope] = self.functions.name()
                self.metadata[self._singles[scope]] = f"!{{{scope}}}"
        if len(scopes) == 1:
            name = self._singles[scopes[0]]
        else:
            name = self.functions.name()
            self.metadata[name] = f"!{{{', '.join(scopes)}}}"
        self.functions.lists[name] = tuple(self._singles[scope] for scope in scopes)
        return name
