"""Source lines of instructions, from debug metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from irgrad.engine.ir.model import Function, Instruction, Module

_FIELD = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|![0-9]+|-?\d+)')
_MAX_SCOPES = 64


def _fields(module: Module, node: str) -> tuple[str, dict[str, str]]:
    """(kind, fields) of a specialised metadata node such as `!DILocation(line: 3, ...)`."""
    return _parsed(module.metadata.get(node, node if node.startswith("!DI") else ""))


@lru_cache(1 << 14)
def _parsed(text: str) -> tuple[str, dict[str, str]]:
    """The kind and the fields of a node, which many instructions share and many questions are about."""
    kind = text.removeprefix("distinct ").removeprefix("!").partition("(")[0]
    return kind, dict(_FIELD.findall(text))


def _file_of(module: Module, scope: str) -> str:
    for _ in range(_MAX_SCOPES):
        kind, fields = _fields(module, scope)
        if kind == "DIFile":
            return fields.get("filename", '""')[1:-1]
        following = fields.get("file") or fields.get("scope")
        if following is None:
            return ""
        scope = following
    return ""


def locate(module: Module, instr: Instruction) -> str:
    """`file:line:column` of an instruction; empty when there is no debug information for it.

    Code inlined from elsewhere is shown with the place it was inlined into: `a.h:3:5 (inlined at b.c:10:3)`."""
    node = instr.metadata.get("dbg")
    if node is None:
        return ""
    text = place_text(module, node)
    _, fields = _fields(module, node)
    outer = fields.get("inlinedAt")
    for _ in range(_MAX_SCOPES):
        if outer is None:
            break
        at = outer
        _, fields = _fields(module, at)
        outer = fields.get("inlinedAt")
        if outer is None:
            text += f" (inlined at {place_text(module, at)})"
    return text


def functions_at(module: Module, instr: Instruction) -> Iterator[tuple[str, str]]:
    """(name, file) of the functions of the source that an instruction is of: that which has it, then those that this
    one was inlined into."""
    node = instr.metadata.get("dbg")
    for _ in range(_MAX_SCOPES):
        if node is None:
            return
        _, fields = _fields(module, node)
        scope: str | None = fields.get("scope")
        for _ in range(_MAX_SCOPES):
            kind, around = _fields(module, scope or "")
            if kind == "DISubprogram" and scope is not None:
                yield around.get("name", '""')[1:-1], _file_of(module, scope)
            scope = around.get("scope") if kind != "DISubprogram" else None
            if scope is None:
                break
        node = fields.get("inlinedAt")


def place_text(module: Module, node: str) -> str:
    """`file:line:column` of a `!DILocation`; empty for another node."""
    kind, fields = _fields(module, node)
    if kind != "DILocation":
        return ""
    name = _file_of(module, fields.get("scope", ""))
    line, column = fields.get("line", "0"), fields.get("column", "0")
    return f"{name or '?'}:{line}:{column}"


def function_location(module: Module, fn: Function) -> str:
    """`file:line` of a function's definition; empty without debug information."""
    node = fn.metadata.get("dbg")
    if node is None:
        return ""
    kind, fields = _fields(module, node)
    if kind != "DISubprogram":
        return ""
    return f"{_file_of(module, node) or '?'}:{fields.get('line', '0')}"
