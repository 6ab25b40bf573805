"""Layers of rules, and snapshots of them: what a derivative that is being made sees.

A layer holds rules by key. From the inside out: `with rules.layer()` blocks of this context, the user's definitions,
packs (the last one imported first), and the builtin tables below (`irgrad.rules.blas`; those of the engine are rows).
The first layer with a match wins; inside a layer plum picks the most specific rule. A snapshot never changes, so a
derivative that is compiled later still sees the rules of its making.
"""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irgrad.rules.definitions.definition import Key, Rule
    from irgrad.rules.definitions.dispatch import Table
    from irgrad.rules.definitions.prototype import Prototype
    from irgrad.rules.definitions.types import Kind

__all__ = ["InForce", "Layer", "Snapshot", "current", "layer", "pack", "token", "using", "writable"]

_CLOCK = itertools.count(1)


@dataclass(eq=False)
class Layer:
    """Rules, aliases and prototypes that are defined together. `stamp` grows with every change of any layer."""

    name: str
    rules: dict[Key, tuple[Rule, ...]] = field(default_factory=dict)
    patterns: tuple[tuple[str, Rule], ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    prototypes: dict[Key, Prototype] = field(default_factory=dict)
    stamp: int = 0
    _frozen: Frozen | None = None

    def add(self, rule: Rule) -> None:
        """Define a rule; one with the same key and types is replaced."""
        before = self.rules.get(rule.key, ())
        self.rules[rule.key] = (*(r for r in before if r.types != rule.types or r.open != rule.open), rule)
        self._changed()

    def add_pattern(self, pattern: str, rule: Rule) -> None:
        """Define a rule for every symbol that matches."""
        self.patterns = (*(p for p in self.patterns if p[0] != pattern), (pattern, rule))
        self._changed()

    def remove(self, rule: Rule) -> None:
        """Take a rule back."""
        left = tuple(r for r in self.rules.get(rule.key, ()) if r is not rule)
        self.rules[rule.key] = left
        if not left:
            del self.rules[rule.key]
        self._changed()

    def alias(self, name: str, target: str) -> None:
        """`name` is another spelling of `target`."""
        self.aliases[name] = target
        self._changed()

    def declare(self, key: Key, prototype: Prototype) -> None:
        """State the prototype of a function."""
        self.prototypes[key] = prototype
        self._changed()

    def clear(self) -> None:
        """Forget everything in this layer."""
        self.rules, self.patterns, self.aliases, self.prototypes = {}, (), {}, {}
        self._changed()

    def _changed(self) -> None:
        self.stamp = next(_CLOCK)
        self._frozen = None

    def freeze(self) -> Frozen:
        """The layer as it is now."""
        if self._frozen is None:
            self._frozen = Frozen(self.name, dict(self.rules), self.patterns, dict(self.aliases), dict(self.prototypes))
        return self._frozen


class Frozen:
    """A layer at one moment, with its dispatch tables made on first use."""

    def __init__(
        self, name: str, rules: dict[Key, tuple[Rule, ...]], patterns: tuple[tuple[str, Rule], ...],
        aliases: dict[str, str], prototypes: dict[Key, Prototype],
    ) -> None:  # fmt: skip
        self.name = name
        self.rules = rules
        self.patterns = patterns
        self.aliases = aliases
        self.prototypes = prototypes
        self._tables: dict[Key, Table] = {}

    @property
    def empty(self) -> bool:
        return not (self.rules or self.patterns or self.aliases or self.prototypes)

    def tables(self, keys: Sequence[Key], symbol: str) -> Iterator[Table]:
        """The tables that speak about a symbol: of its keys, the narrower first, then of patterns."""
        from irgrad.rules.definitions.dispatch import Table  # slow to import: not where no rule is ever asked for

        for key in keys:
            if key in self.rules:
                if key not in self._tables:
                    self._tables[key] = Table(str(key), self.rules[key])
                yield self._tables[key]
        for pattern, rule in self.patterns:
            if fnmatch.fnmatchcase(symbol, pattern):
                yield Table(pattern, (rule,))


class Snapshot:
    """The layers that are in force at one moment, innermost first."""

    def __init__(self, layers: Iterable[Frozen]) -> None:
        self.stamp = next(_CLOCK)
        self.layers = tuple(layer for layer in layers if not layer.empty)
        self._found: dict[tuple[str, str], list[Table]] = {}

    def keys(self, symbol: str, scope: str = "") -> tuple[Key, ...]:
        """The keys under which rules for a symbol may stand, the narrower first."""
        from irgrad.rules.definitions.definition import Key
        from irgrad.rules.keys import canonical

        name = symbol
        for frozen in self.layers:
            name = frozen.aliases.get(name, name)
        name = canonical(name)
        narrow = (Key("function", symbol, scope),) if scope else ()
        return (*narrow, Key("function", name))

    def tables(self, keys: Sequence[Key], symbol: str) -> Iterator[Table]:
        """All tables for a symbol, in the order in which they are asked."""
        for frozen in self.layers:
            yield from frozen.tables(keys, symbol)

    def find(self, symbol: str, scope: str = "") -> list[Table]:
        """The tables that speak about a symbol, the builtin one last; empty for nearly every symbol."""
        found = self._found.get((symbol, scope))
        if found is None:
            found = list(self.tables(self.keys(symbol, scope), symbol)) if self.layers else []
            found += builtin(symbol)
            self._found[symbol, scope] = found
        return found

    def resolve(self, symbol: str, types: tuple[Kind, ...], scope: str = "") -> Rule | None:
        """The rule for a call with these types (mode, result, arguments), None when no rule fits.

        Raises AmbiguousRuleError.
        """
        for table in self.find(symbol, scope):
            rule = table.resolve(types)
            if rule is not None:
                return rule
        return None

    def prototype(self, symbol: str, scope: str = "") -> Prototype | None:
        """The prototype that was stated for a symbol."""
        for key in self.keys(symbol, scope) if self.layers else ():
            for frozen in self.layers:
                if key in frozen.prototypes:
                    return frozen.prototypes[key]
        from irgrad.rules.blas import spelled

        spelling = spelled(symbol)
        return spelling.prototype if spelling is not None else None

    def digest(self, symbols: Iterable[str], scope: str = "") -> str:
        """What the rules say about some symbols: "" when they say nothing."""
        digest = hashlib.sha256()
        found = False
        for symbol in sorted(symbols):
            if not self.layers and not self.find(symbol, scope):
                continue
            said = [rule.digest for table in self.find(symbol, scope) for rule in table.rules]
            prototype = self.prototype(symbol, scope)
            if said or prototype is not None:
                found = True
                digest.update(f"{symbol} {' '.join(said)} {prototype};".encode())
        for frozen in self.layers:
            for key in frozen.rules:
                if key.kind != "function":
                    found = True
                    digest.update(f"{key} {' '.join(r.digest for r in frozen.rules[key])};".encode())
        return digest.hexdigest() if found else ""


@cache
def builtin(symbol: str) -> tuple[Table, ...]:
    """The table of the builtin pack (BLAS, LAPACK) that speaks about a symbol; it is below all layers."""
    from irgrad.rules.blas import rules_of

    rules = rules_of(symbol)
    if not rules:
        return ()
    from irgrad.rules.definitions.dispatch import Table  # slow to import

    return (Table(symbol, rules, builtin=True),)


@dataclass(frozen=True)
class InForce:
    """A snapshot as far as it speaks about some functions: equal where it says the same about them."""

    digest: str
    snapshot: Snapshot = field(compare=False)


_USER = Layer("user")
_PACKS: list[Layer] = []
_STACK: ContextVar[tuple[Layer, ...]] = ContextVar("irgrad_rule_layers", default=())
_TARGET: ContextVar[Layer | None] = ContextVar("irgrad_rule_pack", default=None)
_FIXED: ContextVar[Snapshot | None] = ContextVar("irgrad_rule_snapshot", default=None)
_SNAPSHOTS: dict[tuple[tuple[int, int], ...], Snapshot] = {}
_EMPTY = Snapshot(())


def active() -> tuple[Layer, ...]:
    """The layers in force here and now, innermost first."""
    return (*reversed(_STACK.get()), _USER, *reversed(_PACKS))


def writable() -> Layer:
    """The layer that definitions go to."""
    target = _TARGET.get()
    if target is not None:
        return target
    stack = _STACK.get()
    return stack[-1] if stack else _USER


def token() -> tuple[tuple[int, int], ...]:
    """A value that changes whenever the rules in force do; equal tokens mean equal rules."""
    fixed = _FIXED.get()
    if fixed is not None:
        return ((fixed.stamp, -1),)
    if not _PACKS and not _STACK.get():
        return ((id(_USER), _USER.stamp),) if _USER.stamp else ()
    return tuple((id(layer), layer.stamp) for layer in active() if layer.stamp)


def current() -> Snapshot:
    """The rules in force here and now."""
    fixed = _FIXED.get()
    if fixed is not None:
        return fixed
    now = token()
    if not now:
        return _EMPTY
    found = _SNAPSHOTS.get(now)
    if found is None:
        if len(_SNAPSHOTS) > 64:
            _SNAPSHOTS.clear()
        found = _SNAPSHOTS[now] = Snapshot(layer.freeze() for layer in active())
    return found


@contextmanager
def using(rules: InForce | None) -> Iterator[None]:
    """The rules of a snapshot (None: none of the user's), whatever is in force now: for code that is made later."""
    mark = _FIXED.set(rules.snapshot if rules is not None else _EMPTY)
    try:
        yield
    finally:
        _FIXED.reset(mark)


@contextmanager
def layer(name: str = "layer") -> Iterator[Layer]:
    """Definitions inside of the block end with it: `with rules.layer() as mine: ...`. Other threads do not see them."""
    mine = Layer(name, stamp=next(_CLOCK))
    mark = _STACK.set((*_STACK.get(), mine))
    try:
        yield mine
    finally:
        _STACK.reset(mark)


@contextmanager
def pack(name: str) -> Iterator[Layer]:
    """Definitions in the block make a layer below the user's: `with rules.pack("blas"): ...` in a module to import.

    A pack of the same name is replaced.
    """
    made = Layer(name, stamp=next(_CLOCK))
    mark = _TARGET.set(made)
    try:
        yield made
    finally:
        _TARGET.reset(mark)
    _PACKS[:] = [p for p in _PACKS if p.name != name]
    _PACKS.append(made)
