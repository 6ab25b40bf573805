"""Subscripts in `int` are computed in 64 bits, while the compiler's promise that they do not overflow is there.

    %m = mul nsw i32 %i, %d                   %a = sext i32 %i to i64
    %s = add nsw i32 %m, %j           ->      ...
    %x = sext i32 %s to i64                   %m = mul nsw i64 %a, %b
                                              %x = add nsw i64 %m, %c

An operation marked `nsw` that would overflow is poison, and so is its extension; where it does not overflow, the
extension of the result is the result on the extensions, which does not overflow either. LLVM's scalar passes drop the
mark when they move such operations, and what is left has no linear form over the loops' counters: so this runs first.
Loops keep their counters of 32 bits here; LLVM widens those itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["widen_indices"]

_NAME = r'%(?:"[^"\n]*"|[-\w$.]+)'
_EXTENSION = re.compile(rf"^(?P<lead> *{_NAME} = )sext i(?P<bits>\d+) (?P<value>{_NAME}) to i64(?P<rest>[^\n]*)$", re.M)
_OPERATION = re.compile(
    rf"^ *(?P<name>{_NAME}) = (?P<op>add|sub|mul|shl) (?:nuw )?nsw i(?P<bits>\d+) (?P<a>{_NAME}|-?\d+), "
    rf"(?P<b>{_NAME}|-?\d+)(?:, [^\n]*)?$", re.M
)  # fmt: skip
_BODY = re.compile(r"^define [^\n]*\n(.*?)^\}", re.M | re.S)
_PREFIX = "%irgrad.wide."
_MOST = 24  # operations that one extension is moved through: what operands share is written again


@dataclass(slots=True)
class _Extension:
    """The lines that one extension becomes."""

    operations: dict[str, re.Match[str]]
    start: int
    rest: str
    lines: list[str] = field(default_factory=list)

    def operand(self, name: str, bits: str) -> str:
        """The extension of an operand: of a constant the same constant, else a value of its own."""
        if not name.startswith("%"):
            return name
        new = f"{_PREFIX}{self.start + len(self.lines)}"
        found = self.operations.get(name)
        if found is None or found["bits"] != bits or len(self.lines) >= _MOST:
            self.lines.append(f"  {new} = sext i{bits} {name} to i64{self.rest}")
            return new
        word = self.operation(found)
        new = f"{_PREFIX}{self.start + len(self.lines)}"
        self.lines.append(f"  {new} = {word}")
        return new

    def operation(self, found: re.Match[str]) -> str:
        """An operation on extended operands."""
        a = self.operand(found["a"], found["bits"])
        b = self.operand(found["b"], found["bits"])
        return f"{found['op']} nsw i64 {a}, {b}{self.rest}"


def widen_indices(text: str) -> str:
    """Extensions to 64 bits move from results of `nsw` operations to their operands. The module's text in and out."""
    if " sext i" not in text or " nsw i" not in text:
        return text
    count = 0

    def body(match: re.Match[str]) -> str:
        nonlocal count
        whole = match[0]
        if " sext i" not in whole or " nsw i" not in whole:
            return whole
        operations = {found["name"]: found for found in _OPERATION.finditer(whole)}

        def moved(found: re.Match[str]) -> str:
            nonlocal count
            operation = operations.get(found["value"])
            if operation is None or operation["bits"] != found["bits"]:
                return found[0]
            made = _Extension(operations, count, found["rest"])
            word = made.operation(operation)
            count += len(made.lines)
            return "\n".join([*made.lines, f"{found['lead']}{word}"])

        return _EXTENSION.sub(moved, whole)

    return _BODY.sub(body, text)
