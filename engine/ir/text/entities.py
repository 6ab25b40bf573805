"""Cuts the text of a module into its top-level entities, and out of it what some functions need.

A module of many functions is read, validated and optimised once per kernel: `restrict` keeps that proportional to the
kernel's own code, not to the module's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NoReturn

from irgrad.engine.ir.quoting import bare_name
from irgrad.engine.ir.text.lexer import syntax_error
from irgrad.engine.support.lines import lines_of

_SYMBOL = re.compile(r'@(?:"[^"]*"|[-\w$.]+)', re.ASCII)
_NUMBER = re.compile(r"!\d+", re.ASCII)
_NAME = re.compile(r'@(?:"[^"]*"|[-\w$.]+)|!\d+', re.ASCII)
_FUNCTION = re.compile(r'[^\n]*?(@(?:"[^"\n]*"|[-\w$.]+))\(', re.ASCII)
_OPEN = frozenset("{[(,=< \t\r")  # a line that may go on ends with one of these
_BODY_END = re.compile(r"^\}[^\n]*$", re.MULTILINE)


class Entity:
    """A piece of the text: its first character, where it starts, and for a function where its body stands."""

    __slots__ = ("body", "end", "first", "line", "start")

    def __init__(self, first: str, start: int, end: int, line: int, body: tuple[int, int] | None = None) -> None:
        self.first = first
        self.start = start
        self.end = end
        self.line = line
        self.body = body


def cut(text: str) -> list[Entity]:
    """The entities in order, comments left out. Raises IRSyntaxError for a function without an end."""
    entities: list[Entity] = []
    position, line, size = 0, 1, len(text)
    while position < size:
        end = text.find("\n", position)
        if end < 0:
            end = size
        start = position
        while start < end and text[start] in " \t\r":
            start += 1
        first = text[start] if start < end else ";"
        entity = Entity(first, start, end, line)
        if first == "d":
            _find_body(text, entity)
        elif text[end - 1] in _OPEN and (first in "@%!" or text.startswith("attributes", start)):
            _extend(text, entity)
        if first not in ";\r":
            entities.append(entity)
        line += 1 if entity.end == end else text.count("\n", position, entity.end) + 1
        position = entity.end + 1
    return entities


def reachable(text: str, entities: dict[str, Entity], roots: Iterable[str]) -> set[str]:
    """Symbols that some chain of references from the roots reaches (names in the text, so never too few)."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        entity = entities.get(stack.pop())
        if entity is None:
            continue
        for name in map(bare_name, set(_SYMBOL.findall(text, entity.start, entity.end))):
            if name not in seen:
                seen.add(name)
                stack.append(name)
    return seen


def restrict(text: str, roots: Sequence[str]) -> str:
    """The module without the functions, variables, aliases and metadata that the roots do not reach.

    What LLVM itself reads (`@llvm.global_ctors`, `@llvm.used`, named metadata) stays, with all that it names. Orders
    of uses go: they count uses of the whole module.
    """
    unnamed, named, always = _index(text)
    stack = [*(f"@{root}" for root in roots), *always]
    seen = set(stack)
    while stack:
        entity = named.get(stack.pop())
        if entity is None:
            continue
        for name in map(_key, set(_NAME.findall(text, entity.start, entity.end))):
            if name not in seen:
                seen.add(name)
                stack.append(name)
    kept = sorted([*unnamed, *(named[name] for name in seen & named.keys())], key=lambda entity: entity.start)
    return "\n".join(text[entity.start : entity.end] for entity in kept) + "\n"


def joined(text: str, more: str) -> str:
    """The two as one module: of what the first has, declarations in the second are left out, and repeated ones."""
    heads = (_FUNCTION.match(line) for word in ("declare ", "define ") for line in lines_of(text, word))
    known, lines = {found[1] for found in heads if found}, []
    for line in more.splitlines():
        found = _FUNCTION.match(line) if line.startswith("declare ") else None
        if found is None or found[1] not in known:
            lines.append(line)
        if found is not None:
            known.add(found[1])
    return "\n".join([text.rstrip("\n"), *lines, ""])


@lru_cache(maxsize=1)  # kernels of one library come one after the other
def _index(text: str) -> tuple[list[Entity], dict[str, Entity], list[str]]:
    """The entities without a name, the others by name, and the names that every function needs."""
    unnamed: list[Entity] = []
    named: dict[str, Entity] = {}
    always: list[str] = []
    find = {"d": _SYMBOL.search, "@": _SYMBOL.match, "!": _NUMBER.match}
    for entity in cut(text):
        if text.startswith("uselistorder", entity.start):
            continue
        match = find[entity.first](text, entity.start, entity.end) if entity.first in find else None
        if match is None:
            unnamed.append(entity)
        else:
            named[_key(match[0])] = entity
        if match is None or (match[0].startswith("@llvm.") and entity.first == "@"):
            always += map(_key, _NAME.findall(text, entity.start, entity.end))
    return unnamed, named, always


def _key(token: str) -> str:
    return f"@{bare_name(token)}" if token[:1] == "@" else token


def _extend(text: str, entity: Entity) -> None:
    """An entity whose brackets stay open at the end of its line goes on over the next lines."""
    end = entity.end
    last = text[entity.start : end].rstrip()[-1:]
    while last in ("{", "[", "(", ",", "=", "<") and end < len(text):
        following = text.find("\n", end + 1)
        end = following if following >= 0 else len(text)
        chunk = text[entity.start : end]
        if chunk.count("{") == chunk.count("}") and chunk.count("[") == chunk.count("]"):
            break
    entity.end = end


def _find_body(text: str, entity: Entity) -> None:
    """A function ends where its body does."""
    start, end = entity.start, entity.end
    if not text.startswith("define", start):
        if not text.startswith("declare", start):
            _bad(text, entity, "a top-level entity")
        return
    head = text[start:end].partition(";")[0].rstrip()
    if head.endswith("}") and head.count("{") >= 1 and not head.endswith("{}"):
        entity.body = (_body_opening(text, start, start + len(head)), start + len(head) - 1)
        return
    match = _BODY_END.search(text, end)
    if match is None:
        _bad(text, entity, "`}` on a line of its own at the end of the function")
    opening = end if head.endswith("{") else _body_opening(text, start, match.start())
    entity.end, entity.body = match.end(), (opening, match.start())


def _body_opening(text: str, start: int, end: int) -> int:
    """Position behind the brace that opens the body: the first one outside the parameter list and strings."""
    depth = 0
    for match in re.finditer(r'"[^"]*"|;[^\n]*|[(){}]', text[start:end]):
        token = match[0]
        if token in ("(", ")"):
            depth += 1 if token == "(" else -1
        elif token == "{" and depth == 0 and ")" in text[start : start + match.start()]:
            return start + match.end()
    return end


def _bad(text: str, entity: Entity, expected: str) -> NoReturn:
    syntax_error(text[entity.start : entity.end], 0, expected, entity.line)
