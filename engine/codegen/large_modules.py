"""Functions of a large module stay functions of their own where their only caller would become very long.

LLVM inlines what has one caller whatever its length, since nothing is copied by that. So a library becomes one function
of tens of thousands of instructions; passes that look at a whole function for each of its loops (loop vectorisation,
register allocation) take time that grows with the square of that, and so they do in its derivative.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from irgrad.engine.ir.text.outline import function_bodies

__all__ = ["LARGE", "MOST", "apart", "is_large", "keep_apart"]

LARGE = 50_000
"""Lines of a module from which on LLVM is kept from making it larger. What is inlined and unrolled at -O3 grows the
derivative of a library of 3,000 lines by two thirds, and with it the time of all that follows; its loops are short and
called from many places, so that nothing is gained (measured: 104 us a gradient with it, 100 without). Machine code
for this process is made at -O1 then, a fifth faster (139.5 us a gradient, 140.0 at -O3)."""

MOST = 2_000
"""Lines that a function has with all that only it calls, before some of that stays out of line."""

_MENTION = re.compile(r'@(?:"([^"\n]*)"|([-\w$.]+))')


def is_large(text: str) -> bool:
    """Whether a module is `LARGE`."""
    return text.count("\n") > LARGE


def keep_apart(module: Any, text: str) -> None:
    """Mark the functions of a large module (LLVM's own and its text) that are not to be inlined."""
    names = apart(function_bodies(text), text, MOST) if is_large(text) else frozenset()
    for function in module.functions if names else ():
        if function.name in names and b"alwaysinline" not in b" ".join(function.attributes).split():
            function.add_function_attribute("noinline")


def apart(bodies: Mapping[str, str], text: str, most: int) -> frozenset[str]:
    """The functions that stay out of line, so that none becomes longer than `most` lines by what it alone calls: of
    that the longest, from the leaves of the call graph up.

    bodies: the lines of each function; text: the module, where a function with one caller is named twice
    """
    mentions = Counter(a or b for a, b in _MENTION.findall(text))
    called = {name: [one for a, b in _MENTION.findall(body) if mentions[one := a or b] == 2 and one in bodies]
              for name, body in bodies.items()}  # fmt: skip
    inside = {one for parts in called.values() for one in parts}
    lines: dict[str, int] = {}
    kept = set[str]()
    work = [(name, False) for name in bodies if name not in inside]
    while work:
        name, counted = work.pop()
        if not counted:
            work += [(name, True), *((one, False) for one in called[name])]
            continue
        parts = sorted(called[name], key=lines.__getitem__)
        length = bodies[name].count("\n") + sum(lines[one] for one in parts)
        while parts and length > most:
            longest = parts.pop()
            length -= lines[longest]
            kept.add(longest)
        lines[name] = length
    return frozenset(kept)
