"""Variables that may hold their own address: the heads of lists, objects that point to themselves.

    static node head;   head.next = &head;

LLVM's analysis of variables takes `store ptr @head, ptr @head` for a store to `head` alone, not for one of its address
(22.1), so that what is loaded from `head` and followed seems to lie elsewhere. Named in `llvm.compiler.used`, a
variable counts as one whose address is taken. Which stores the optimiser ends up with is not known beforehand: it is
done for each variable whose address is stored, chosen or passed to a function as it is.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from irgrad.engine.support.lines import lines_of

__all__ = ["hold_self_references"]

_NAME = r'@("[^"\n]+"|[-\w$.]+)'
_VARIABLE = re.compile(rf"{_NAME} = (?!external|appending)(?:[a-z_]+(?:\([^)\n]*\))? )*global ")
_AT = re.compile(_NAME)
_MOVES = re.compile(
    rf" +(?:store ptr {_NAME},"
    r"|(?:%[^\n=]+ = )?(?:(?:(?:tail|musttail|notail) )?call|invoke|phi ptr|select|ret ptr|insertvalue)\b"
    r"(?![^\n(]*@llvm\.)(?P<rest>[^\n]*))"
)  # fmt: skip
_HANDED = re.compile(rf"\bptr (?:\w+(?:\([^)\n]*\))? )*{_NAME}|[\[,] {_NAME}[\],]")
_USED = re.compile(r"^@llvm\.compiler\.used = appending global \[(\d+) x ptr\] \[(.*?)\](.*)$", re.M)


def hold_self_references(text: str) -> str:
    """The module with these variables in `llvm.compiler.used`. Idempotent."""
    variables = {found[1] for found in map(_VARIABLE.match, lines_of(text, "@")) if found}
    if not variables:
        return text
    moved: dict[str, None] = {}
    for line in filter(None, map(_MOVES.match, _lines_with(text, variables))):
        names = [line[1]] if line[1] else [a or b for a, b in _HANDED.findall(line["rest"])]
        moved.update(dict.fromkeys(name for name in names if name in variables))
    used = _USED.search(text) if "@llvm.compiler.used" in text else None
    listed = set(re.findall(_NAME, used[2])) if used else set()
    rows = [f"ptr @{name}" for name in moved if name not in listed]
    if not rows:
        return text
    rows = [used[2], *rows] if used else rows
    count = int(used[1]) + len(rows) - 1 if used else len(rows)
    new = f"@llvm.compiler.used = appending global [{count} x ptr] [{', '.join(rows)}]"
    if used:
        return f"{text[: used.start()]}{new}{used[3]}{text[used.end() :]}"
    return f'{text}\n{new}, section "llvm.metadata"\n'


def _lines_with(text: str, names: Container[str]) -> Iterator[str]:
    """The lines that name one of these, once each."""
    done = 0
    for found in _AT.finditer(text):
        if found[1] in names and found.start() >= done:
            done = text.find("\n", found.end())
            done = len(text) if done < 0 else done
            yield text[text.rfind("\n", 0, found.start()) + 1 : done]
