"""The outline of a module's text: which symbols it defines and declares, its attributes, opcodes and metadata.

Stages hand each other text; what one of them must know of it before it reads it, it asks here. Nothing is looked for
as a mere substring: a name in a string constant or in another name is not a symbol.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache

from irgrad.engine.support.lines import line_spans, lines_of

__all__ = ["Outline", "calls_itself", "calls_of", "every_call_of", "function_bodies", "outline"]

_FUNCTION = re.compile(r'[^@\n]*@(?:"([^"\n]*)"|([-\w$.]+))\(')
_VARIABLE = re.compile(r'@(?:"([^"\n]*)"|([-\w$.]+)) =')
_HEADS = ("define ", "declare ", "attributes ")
_ATTRIBUTE = re.compile(r'"([^"\n]*)"(?:="[^"\n]*")?')
_OPCODE = re.compile(r"^\s+(?:%[^=\n]+ = )?(?:(?:tail|musttail|notail) )?([a-z_]+)", re.M)
_METADATA = re.compile(r"^!([A-Za-z_.][\w.$-]*) =", re.M)


_CALLED = re.compile(r'(?:call|invoke) [^@\n]*@(?:"([^"\n]*)"|([-\w$.]+))\(')


def function_bodies(text: str) -> dict[str, str]:
    """The lines between the braces of each function that has a body."""
    bodies: dict[str, str] = {}
    for begin, end in line_spans(text, "define "):
        head, close = _FUNCTION.match(text, begin, end), text.find("\n}", end)
        if head is not None and text[end - 1] == "{" and close >= 0:
            bodies[head[1] or head[2]] = text[end + 1 : close + 1]
    return bodies


def calls_of(body: str) -> set[str]:
    """Names of the functions that some lines call."""
    return set(every_call_of(body))


def every_call_of(body: str) -> list[str]:
    """The same, a name for each call."""
    return [a or b for a, b in _CALLED.findall(body)]


def calls_itself(calls: Mapping[str, Iterable[str]], name: str) -> bool:
    """Whether a function may be entered again before it has returned. calls: which functions each one calls"""
    seen, work = set[str](), list(calls.get(name, ()))
    while work:
        called = work.pop()
        if called == name:
            return True
        if called not in seen:
            seen.add(called)
            work += calls.get(called, ())
    return False


class Outline:
    """What a module's text holds, each found when it is asked for first."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _functions(self) -> dict[str, bool]:
        found: dict[str, bool] = {}
        for word in ("define ", "declare "):
            for row in filter(None, map(_FUNCTION.match, lines_of(self._text, word))):
                found.setdefault(row[1] or row[2], word == "define ")
        return found

    @cached_property
    def defined(self) -> frozenset[str]:
        """Names of the functions that have a body."""
        return frozenset(name for name, body in self._functions.items() if body)

    @cached_property
    def declared(self) -> frozenset[str]:
        """Names of the functions that have none."""
        return frozenset(name for name, body in self._functions.items() if not body)

    @property
    def functions(self) -> frozenset[str]:
        """Names of all functions."""
        return self.defined | self.declared

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of global variables and aliases."""
        return frozenset(row[1] or row[2] for row in map(_VARIABLE.match, lines_of(self._text, "@")) if row)

    @cached_property
    def attributes(self) -> frozenset[str]:
        """Attributes of functions that are strings; of one with a value, its key."""
        heads = (head for word in _HEADS for head in lines_of(self._text, word))
        return frozenset(key for head in heads for key in _ATTRIBUTE.findall(head))

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """Opcodes of the instructions."""
        return frozenset(_OPCODE.findall(self._text))

    @cached_property
    def metadata(self) -> frozenset[str]:
        """Names of the module's named metadata."""
        return frozenset(_METADATA.findall(self._text))

    def has_prefix(self, *prefixes: str) -> bool:
        """Whether a function's name begins with one of these."""
        return any(name.startswith(prefixes) for name in self._functions)


@lru_cache(maxsize=4)
def outline(text: str) -> Outline:
    """The outline of a module's text; of the last few, the same one."""
    return Outline(text)
