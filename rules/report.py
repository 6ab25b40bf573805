"""What rules there are and which one applies: `show`, `which`, `audit`, and the lines to paste for a missing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irgrad.rules.blas import rules_of
from irgrad.rules.definitions.definition import Key, Rule
from irgrad.rules.definitions.dispatch import Table, matches
from irgrad.rules.definitions.types import (
    AnyWidth,
    Batched,
    Const,
    Forward,
    Integer,
    Kind,
    Mode,
    Ptr,
    Reverse,
    mode_type,
)
from irgrad.rules.effects import facts
from irgrad.rules.keys import key_of
from irgrad.rules.layers import Snapshot, current
from irgrad.rules.lookup import find, spellings

__all__ = ["Text", "Which", "audit", "differences", "nearest", "one_at_a_time", "show", "template", "which"]


class Text(str):
    """A text that a session shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Which:
    """The rule for a call.

    how: "rule"; "lane by lane" (a batch: the rule for one member, for each); "builtin" (the tables of irgrad); "body"
         (opted out); "nothing"
    """

    how: str
    rule: Rule | None = None
    text: str = ""

    def __str__(self) -> str:
        if self.rule is None:
            return self.text or self.how
        return f"{self.rule.signature}  {self.rule.form}, layer {self.rule.layer}, at {self.rule.place}" + (
            f" ({self.how})" if self.how != "rule" else ""
        )

    __repr__ = __str__


def which(key: Any, *types: Kind, mode: str = "reverse", ret: Kind | None = None, width: int = 1) -> Which:
    """The rule that a call with these types of arguments gets here and now. Raises AmbiguousRuleError.

    A data batch (`Batched[...]`) that no rule is for is taken off: the rule for one member then holds for each of them.
    """
    declared = key_of(key).key
    head = (mode_type(mode, width), Const if ret is None else ret)
    if any(issubclass(kind, Batched) for kind in types):
        rule = _resolve(current(), declared, (*head, *types))
        if rule is not None:
            return Which("rule", rule)
    rule = _resolve(current(), declared, (*head, *map(_single, types)))
    if rule is not None:
        if rule.form == "opt_out":
            return Which("body", rule)
        return Which("lane by lane" if any(issubclass(kind, Batched) for kind in types) else "rule", rule)
    return _builtin(declared)


def one_at_a_time(tables: Sequence[Table]) -> bool:
    """Whether a rule of a symbol takes one tangent or cotangent at a time, and none for all lanes stands beside it."""
    forms = ("calls", "foreign", "host", "stop")
    every = [rule for table in tables for rule in table.rules if rule.form in forms and not rule.batched]
    wide = [rule for rule in every if rule.lanes]
    return any(not _covered(rule, wide) for rule in every)


def _covered(rule: Rule, wide: Sequence[Rule]) -> bool:
    """Whether rules for all lanes fit, at every width, where this one does."""
    if rule.mode.parameters == (1,):
        return True
    base = rule.mode.origin if rule.mode.parameters else rule.mode
    modes = [Forward, Reverse] if base is Mode else [base]
    return all(any(matches(other, (mode[AnyWidth], *rule.types[1:])) for other in wide) for mode in modes)


def _resolve(snapshot: Snapshot, key: Key, types: tuple[Kind, ...]) -> Rule | None:
    keys = snapshot.keys(key.name, key.scope) if key.kind == "function" else (key,)
    for table in snapshot.tables(keys, key.name):
        rule = table.resolve(types)
        if rule is not None:
            return rule
    return None


def _single(kind: Kind) -> Kind:
    """An argument without its data batch."""
    inner = kind.parameters[0] if issubclass(kind, Batched) and kind.parameters else kind
    assert isinstance(inner, Kind)
    return inner


def _builtin(key: Key) -> Which:
    match = find(key.name)
    if match is not None:
        names = ", ".join(spellings(match.row.key)[:6])
        parts = "; ".join(", ".join(map(str, row)) for row in match.row.partials)
        return Which("builtin", None, f"`{match.row.key}` of the tables: partials {parts or 'none'} ({names}, ...)")
    blas = rules_of(key.name)
    if blas:
        modes = " and ".join(str(rule.mode).lower() for rule in blas)
        return Which("builtin", None, f"`{key.name}` of BLAS or LAPACK: {modes}, at {blas[0].place}")
    known = facts(key.name)
    if known is not None:
        state = ", no derivative flows through it" if known.inactive else ""
        return Which("builtin", None, f"`{key.name}` is a known function of the C library: {known.kind}{state}")
    return Which("nothing", None, f"no rule for `{key}`")


def show(key: Any = None) -> Text:
    """Every rule of a key, layer by layer, with its place; without a key, every rule that there is."""
    snapshot = current()
    lines: list[str] = []
    wanted = None if key is None else key_of(key).key
    for frozen in snapshot.layers:
        for owner, rules in frozen.rules.items():
            if wanted is None or owner.name in (wanted.name, *(k.name for k in snapshot.keys(wanted.name))):
                lines += [f"{frozen.name:<10} {r.signature}  {r.form}, at {r.place}" for r in rules]
        for pattern, rule in frozen.patterns:
            if wanted is None:
                lines.append(f"{frozen.name:<10} {pattern}  {rule.form}, at {rule.place}")
        for owner, prototype in frozen.prototypes.items():
            if wanted is not None and owner.name == wanted.name:
                lines.append(f"{frozen.name:<10} {owner.name}: {prototype}")
    if wanted is not None:
        below = _builtin(wanted)
        lines.append(f"{'builtin':<10} {below}" if below.how == "builtin" else "" if lines else below.text)
    return Text("\n".join(line for line in lines if line) or "no rules but the tables of irgrad")


def audit() -> Text:
    """What is probably not meant: rules that can never apply, and ties that no rule settles."""
    found: list[str] = []
    snapshot = current()
    for depth, frozen in enumerate(snapshot.layers):
        for key, rules in frozen.rules.items():
            found += _ties(rules)
            for rule in rules:
                above = (r for upper in snapshot.layers[:depth] for r in upper.rules.get(key, ()))
                covering = [r for r in above if _covers(r, rule)]
                if covering:
                    found.append(f"{rule.signature} at {rule.place} never applies: {covering[0].place} stands above it")
            if key.scope == "" and key.kind == "function" and (match := find(key.name)) is not None:
                found.append(f"{key} at {rules[0].place} takes the place of the tables' rule for `{match.row.key}`")
    return Text("\n".join(found) or "nothing to remark")


def _covers(a: Rule, b: Rule) -> bool:
    return matches(a, b.types)


def _ties(rules: Sequence[Rule]) -> list[str]:
    found = []
    for number, a in enumerate(rules):
        for b in rules[:number]:
            if len(a.types) != len(b.types) or a.open or b.open:
                continue
            comparable = all(issubclass(x, y) or issubclass(y, x) for x, y in zip(a.types, b.types, strict=True))
            if not comparable or _covers(a, b) or _covers(b, a):
                continue
            meet = tuple(x if issubclass(x, y) else y for x, y in zip(a.types, b.types, strict=True))
            if not any(r.types == meet for r in rules):
                wanted = ", ".join(map(str, meet[2:]))
                both = f"{a.signature} at {a.place} and {b.signature} at {b.place}"
                found.append(f"{both} tie: define ({wanted}) as well")
    return found


# -- what to say about a missing rule ----------------------------------------------------------------------------------


def differences(rule: Rule, types: tuple[Kind, ...]) -> list[str]:
    """Where a rule does not fit the types of a call."""
    found = []
    labels = ["mode", "result", *rule.names]
    if len(types) < len(rule.types) or (len(types) > len(rule.types) and not rule.open):
        return [f"it is for {len(rule.types) - 2} arguments, the call has {len(types) - 2}"]
    for i, (got, wanted) in enumerate(zip(types, rule.types, strict=False)):
        if not issubclass(got, wanted):
            label = labels[i] if i < len(labels) else f"argument {i - 2}"
            found.append(f"{label} is {got}, the rule wants {wanted}")
    return found


def nearest(rules: Sequence[Rule], types: tuple[Kind, ...]) -> tuple[Rule, list[str]] | None:
    """The rule with the fewest differences."""
    scored = [(rule, differences(rule, types)) for rule in rules if rule.form not in ("opt_out", "inactive")]
    return min(scored, key=lambda pair: len(pair[1])) if scored else None


def template(name: str, types: Sequence[Kind], names: Sequence[str] = ()) -> str:
    """The lines to paste for a function without rule: partials for numbers, a body with `ctx` for pointers."""
    arguments = [names[i] if i < len(names) and names[i] else f"a{i}" for i in range(len(types))]
    elements = [next(iter(t.parameters), None) for t in types]
    if not any(isinstance(e, Kind) and issubclass(e, Ptr) for e in elements):
        floats = ["..." for e in elements if not (isinstance(e, Kind) and issubclass(e, Integer))]
        partials = ", ".join(floats) or "..."
        return f'@rule("{name}")\ndef _({", ".join(arguments)}): return {partials}    # d result / d each float'
    head = f'@rule("{name}", mode="reverse")\ndef _(ctx, {", ".join(arguments)})'
    return f"{head}: ...    # add to {arguments[0]}.d, ... (docs/rules.md)"

