"""Dispatch inside one layer: the most specific rule of a key for the types of a call.

plum decides. It is imported when a key has several rules and the first call to it is met, and asked once per
combination of types; what it raises is translated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irgrad.rules.definitions.types import Activity, AnyWidth, Argument, Kind, Known
from irgrad.rules.errors import AmbiguousRuleError

if TYPE_CHECKING:
    from irgrad.rules.definitions.definition import Rule

__all__ = ["COUNTS", "Table", "matches"]

COUNTS = {"plum": 0}
"""How often plum was asked, for tests."""


class Table:
    """The rules of one key in one layer."""

    __slots__ = ("_answers", "_function", "builtin", "name", "rules", "wants_literals")

    def __init__(self, name: str, rules: Sequence[Rule], builtin: bool = False) -> None:
        """builtin: a body in the module comes before these rules."""
        self.builtin = builtin
        self.name = name
        self.rules = tuple(rules)
        self.wants_literals = any(_mentions_known(t) for rule in rules for t in rule.types)
        self._answers: dict[tuple[Kind, ...], Rule | None] = {}
        self._function: Any = None

    def resolve(self, types: tuple[Kind, ...]) -> Rule | None:
        """The rule for (mode, result, *arguments), None when none fits. Raises AmbiguousRuleError.

        A rule for all lanes of a derivative takes a single one where there is no other.
        """
        if types not in self._answers:
            found = self._resolve(types)
            if found is None and types[0].parameters == (1,):
                found = self._resolve((types[0].origin[AnyWidth], *types[1:]))
            self._answers[types] = found
        return self._answers[types]

    def _resolve(self, types: tuple[Kind, ...]) -> Rule | None:
        if self.builtin:  # they never overlap
            return next((rule for rule in self.rules if matches(rule, types)), None)
        if len(self.rules) == 1:
            return self.rules[0] if matches(self.rules[0], types) else None
        import plum

        if self._function is None:
            self._function = _function(self.name, self.rules)
        COUNTS["plum"] += 1
        try:
            found = self._function.invoke(*types)()
        except plum.AmbiguousLookupError:
            raise self._ambiguous(types) from None
        except plum.NotFoundLookupError:
            return None
        return found  # type: ignore[no-any-return]

    def _ambiguous(self, types: tuple[Kind, ...]) -> AmbiguousRuleError:
        fitting = [rule for rule in self.rules if matches(rule, types)]
        best = [r for r in fitting if not any(o is not r and _below(o, r) and not _below(r, o) for o in fitting)]
        wanted = ", ".join(map(str, _meet(best[0], best[1])))
        listed = "\n".join(f"{rule.signature}  at {rule.place}" for rule in best)
        return AmbiguousRuleError(
            f"{len(best)} rules match a call of `{self.name}` equally well", where=listed,
            because=f"none of them is more specific for ({', '.join(map(str, types[2:]))})",
            fix=f'@rule("{self.name}", {wanted})',
        )  # fmt: skip


def matches(rule: Rule, types: tuple[Kind, ...]) -> bool:
    """Whether a rule fits the types of a call."""
    wanted = rule.types
    if len(types) < len(wanted) or (len(types) > len(wanted) and not rule.open):
        return False
    rest = [Activity] * (len(types) - len(wanted))
    return all(issubclass(t, w) for t, w in zip(types, [*wanted, *rest], strict=True))


def _mentions_known(kind: Kind) -> bool:
    if issubclass(kind, Known):
        return True
    inner: tuple[Any, ...] = getattr(kind, "parameters", ())
    return any(isinstance(p, Kind) and _mentions_known(p) for p in inner)


def _function(name: str, rules: Sequence[Rule]) -> Any:
    import plum

    def unused(*_: Any) -> None:
        """Names the function."""

    unused.__name__ = name
    function = plum.Function(unused)
    for rule in rules:
        varargs: dict[str, Any] = {"varargs": Activity} if rule.open else {}
        function.register(_Chosen(rule), signature=plum.Signature(*rule.types, **varargs), precedence=None)
    return function


class _Chosen:
    """A method that returns its rule: plum is asked which one, never to run it."""

    __annotations__: dict[str, Any] = {}
    __module__ = __name__
    __doc__ = ""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.__name__ = self.__qualname__ = str(rule.key)

    def __call__(self):  # type: ignore[no-untyped-def]  # plum converts to annotated results
        return self.rule


def _below(a: Rule, b: Rule) -> bool:
    """Whether everything that `a` matches, `b` matches too."""
    if len(a.types) < len(b.types) or (len(a.types) > len(b.types) and not b.open):
        return False
    rest = [Activity] * (len(a.types) - len(b.types))
    return all(issubclass(x, y) for x, y in zip(a.types, [*b.types, *rest], strict=True))


def _meet(a: Rule, b: Rule) -> list[Kind]:
    """The narrower type at each argument: a signature that settles a tie."""
    size = max(len(a.types), len(b.types))
    first = [*a.types, *[Activity] * (size - len(a.types))]
    second = [*b.types, *[Activity] * (size - len(b.types))]
    return [x if issubclass(x, y) else y for x, y in zip(first, second, strict=True)][2:]


__all__ += ["Argument"]
