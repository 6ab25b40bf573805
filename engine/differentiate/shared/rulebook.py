"""The user's rules as one derivation sees them: which functions are ruled, what they do to memory, which rule a call
gets.

Rules are looked up before anything is inlined: `prepare` keeps ruled functions out of line, and here their bodies are
hidden, so that every analysis sees a callee without body. A body is shown again where an active call turns out to have
no rule for its types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.bodies import written_through
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Block,
    Constant,
    Function,
    GlobalAlias,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.rules.definitions.types import (
    Batched,
    Kind,
)
from irgrad.rules.effects import CallFacts

if TYPE_CHECKING:
    from irgrad.rules.definitions.definition import Rule
    from irgrad.rules.definitions.dispatch import Table
    from irgrad.rules.definitions.prototype import Prototype
    from irgrad.rules.layers import Snapshot

__all__ = ["NAMES", "Rulebook"]

_GROUP = re.compile(r"#\d+")
NAMES = {"half": "f16", "float": "f32", "double": "f64"}
_GLOBAL = re.compile(r'@(?:"((?:[^"\\]|\\.)*)"|([-a-zA-Z$._0-9]+))')


class Rulebook:
    """The rules of a snapshot for the functions of one module."""

    def __init__(
        self, snapshot: Snapshot, scope: str, module: Module, symbols: frozenset[str] = frozenset(), mode: str = "",
        *, kept: frozenset[str] = frozenset(), inactive_globals: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        """symbols: functions that the program had before what it does not call was dropped; kept: those of them that
        were not dropped; inactive_globals: variables through which no derivative flows; mode: "" where open."""
        self.mode = mode
        self.symbols = symbols
        self.kept = kept
        self.wanted: set[str] = set()  # functions of the module that bodies of rules call
        self.snapshot = snapshot
        self.scope = scope
        self.module = module
        self.hidden: dict[Function, tuple[list[Block], str | None]] = {}
        self.shown: set[Function] = set()
        self.inactive_globals = inactive_globals
        self._tables: dict[str, list[Table]] = {}
        self._facts: dict[str, CallFacts | None] = {}
        self._written: dict[Function, frozenset[int] | None] = {}

    def want(self, name: str) -> None:
        """Note a function that the body of a rule calls, if the program has it."""
        self.wanted |= {name} & self.symbols

    def tables(self, name: str) -> list[Table]:
        """What the layers say about a symbol; empty for nearly every one."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = self._in_force(name)
        return found

    def _in_force(self, name: str) -> list[Table]:
        """The tables of a symbol; those of the builtin pack only for a function without body, of the types it is
        known to have."""
        found, fn = self.snapshot.find(name, self.scope), self.module.functions.get(name)
        if fn is None or not any(table.builtin for table in found):
            return found
        prototype = self.snapshot.prototype(name, self.scope)
        if fn.is_declaration and prototype is not None and _fits(prototype, fn):
            return found
        return [table for table in found if not table.builtin]

    def prototype(self, name: str) -> Prototype | None:
        """The prototype that was stated for a symbol."""
        return self.snapshot.prototype(name, self.scope)

    # -- bodies ------------------------------------------------------------------------------------------------------

    def hide(self) -> None:
        """Make declarations of the ruled functions that have bodies."""
        for fn in self.module.functions.values():
            if not fn.is_declaration and fn not in self.shown and fn.name and self.tables(fn.name):
                self.hidden[fn] = (fn.blocks, fn.lazy)
                fn.blocks, fn.lazy = [], None

    def show(self, fn: Function) -> None:
        """Give a function its body back, to be differentiated."""
        self.shown.add(fn)
        self._facts.pop(fn.name or "", None)
        fn.blocks, fn.lazy = self.hidden.pop(fn)
        if fn.lazy is not None:
            from irgrad.engine.ir.text.reader import materialise

            materialise(fn, self.module)

    def restore(self) -> None:
        """Give all bodies back: the derivative still calls the functions."""
        for fn, (blocks, lazy) in self.hidden.items():
            fn.blocks, fn.lazy = blocks, lazy
        for name in {*self.wanted, *(fn.name or "" for fn in self.hidden)}:
            found = self.module.functions.get(name)
            if found is None:  # it stays from the next try on
                continue
            found.tail = _GROUP.sub(lambda m: self._inlined(m[0]), found.tail)  # it was out of line only until now
        self.hidden.clear()

    def _inlined(self, group: str) -> str:
        """The attribute group without `noinline`."""
        groups = self.module.attribute_groups
        text = groups.get(group, "")
        if "noinline" not in text:
            return group
        changed = text.replace(" noinline", "")
        same = next((name for name, other in groups.items() if other == changed), None)
        if same is None:
            same = f"#{1 + max(int(name[1:]) for name in groups)}"
            groups[same] = changed if changed.strip("{} ") else '{ "irgrad" }'
        return same

    def globals_of(self, fn: Function) -> list[GlobalVariable]:
        """The variables that a hidden body mentions: memory that is reached without being handed over."""
        if fn not in self.hidden:
            return []
        blocks, lazy = self.hidden[fn]
        if lazy is not None:
            names = {a or b for a, b in _GLOBAL.findall(lazy)}
            return [g for n, g in self.module.globals.items() if n in names]
        found: dict[GlobalVariable, None] = {}
        for block in blocks:
            for instr in block.instructions:
                for operand in instr.operands:
                    _collect(operand, found)
        return list(found)

    # -- memory ------------------------------------------------------------------------------------------------------

    def written_through(self, fn: Function) -> frozenset[int] | None:
        """The parameters through which a function with a hidden body writes; None where that is not known."""
        if fn not in self._written:
            self._written[fn] = written_through(self.module, fn) if fn in self.hidden else None
        return self._written[fn]

    def facts(self, fn: Function) -> CallFacts | None:
        """What a ruled function does to memory; None where its attributes have to tell."""
        name = fn.name or ""
        if name not in self._facts:
            tables = self.tables(name) if fn not in self.shown else []
            self._facts[name] = self._facts_of(fn, tables) if tables else None
        return self._facts[name]

    def _facts_of(self, fn: Function, tables: list[Table]) -> CallFacts | None:
        rules = [rule for table in tables for rule in table.rules]
        first = rules[0]
        pointers = tuple(i for i, p in enumerate(fn.ftype.params) if p.is_ptr)
        if first.form == "allocator":
            sizes = tuple(first.options["sizes"])
            if first.options["frees"]:
                return CallFacts("deallocator", pointer=first.options.get("pointer", 0))
            kept = pointers if first.options.get("updates") else ()
            return CallFacts("allocator", reads=kept, writes=kept, sizes=sizes, zeroed=bool(first.options["zeroed"]))
        if all(rule.form == "inactive" for rule in rules):
            return CallFacts("inactive", reads=None, writes=pointers, inactive=True)
        if all(rule.form == "opt_out" for rule in rules):
            return None
        prototype = self.prototype(name := fn.name or "")
        if prototype is not None and len(prototype.params) == len(fn.ftype.params):
            if fn in self.hidden and self.globals_of(fn):  # the prototype says nothing about them
                return CallFacts("pure", reads=None, writes=None)
            reads = tuple(i for i, p in enumerate(prototype.params) if p.reads)
            writes = tuple(i for i, p in enumerate(prototype.params) if p.writes)
            return CallFacts("pure", reads=reads, writes=writes)
        if fn in self.hidden:
            return None
        if all(rule.form in ("partials", "linear") for rule in rules):
            from irgrad.rules.effects import facts

            return facts(name) or CallFacts("pure")
        return CallFacts("pure", reads=pointers, writes=pointers)

    def registered(self, fn: Function) -> bool:
        """The derivative of this function is one that the program has registered."""
        if fn in self.shown or not (tables := self.tables(fn.name or "")):
            return False
        return all(rule.form == "registered" for table in tables for rule in table.rules)

    def shadows_wanted(self, call: Instruction) -> tuple[Value, ...]:
        """Pointers whose shadow a registered derivative uses, active or not."""
        callee = resolve(call.callee)
        if not isinstance(callee, Function) or callee in self.shown or not (tables := self.tables(callee.name or "")):
            return ()
        found: dict[int, None] = {}
        for rule in (rule for table in tables for rule in table.rules if rule.form == "registered"):
            if self.mode in ("", rule.mode.__name__.lower()):
                found |= dict.fromkeys(rule.options["shadows"])
        return tuple(call.args[i] for i in found)

    def elements(self, call: Instruction) -> tuple[ty.Type | None, ...]:
        """The floats behind the pointers of a call, as prototypes and the types of rules state them."""
        callee = resolve(call.callee)
        if not isinstance(callee, Function) or not callee.name or not (tables := self.tables(callee.name)):
            return ()
        prototype = self.prototype(callee.name)
        found: list[ty.Type | None] = []
        for i, arg in enumerate(call.args):
            names: set[str] = set()
            if arg.type.is_ptr and prototype is not None and i < len(prototype.params):
                names = {prototype.params[i].dtype}
            elif arg.type.is_ptr:
                rules = (rule for table in tables for rule in table.rules)
                names = {n for rule in rules for n in (_stated_element(rule, i),) if n}
            kinds = [kind for kind, name in NAMES.items() if name in names]
            found.append(ty.float_(kinds[0]) if len(names) == len(kinds) == 1 else None)
        return tuple(found)

def _fits(prototype: Prototype, fn: Function) -> bool:
    """Whether a function has the parameters of a prototype (integers may be of another width)."""
    params = fn.ftype.params
    return len(params) == len(prototype.params) and all(
        type_.is_ptr if not p.by_value else type_.is_fp == p.dtype.startswith("f") and not type_.is_ptr
        for type_, p in zip(params, prototype.params, strict=True)
    )


def _collect(value: Value, found: dict[GlobalVariable, None]) -> None:
    if isinstance(value, GlobalVariable):
        found[value] = None
    elif isinstance(value, GlobalAlias):
        _collect(value.target, found)
    elif isinstance(value, Constant):
        for part in getattr(value, "operands", ()) or getattr(value, "elems", ()):
            _collect(part, found)


def _stated_element(rule: Rule, position: int) -> str:
    """The element that a rule's type names for a pointer argument."""
    if position + 2 >= len(rule.types):
        return ""
    kind = rule.types[position + 2]
    if issubclass(kind, Batched) and kind.parameters:
        kind = kind.parameters[0]
    element = next(iter(kind.parameters), None)
    inner = next(iter(getattr(element, "parameters", ())), None)
    return inner.__name__ if isinstance(inner, Kind) else ""
