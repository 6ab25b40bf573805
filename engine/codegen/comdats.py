"""Functions and variables that are an object's own belong to no group of sections that objects share.

A linker keeps one of the groups (comdats) of a name, the first that it meets, and drops those of other objects. What
was an inline function of C++ and is internal now still carries the group of its name: where the linker keeps ours, the
function that others look for in it is gone (a call then leads to the begin of the library), and where it drops ours,
so is the code that we need. LLVM's own pass that makes functions internal takes them out of their groups as well.
"""

from __future__ import annotations

import re

__all__ = ["without_own_comdats"]

_GROUP = r"comdat(?:\(\$(?:\"[^\"\n]*\"|[-\w$.]+)\))?"
_REST = r'(?:, (?:align \d+|partition "[^"\n]*"|![-\w.$]+ !\d+))*(?: #\d+)?(?:, ![-\w.$]+ !\d+)*'
_FUNCTION = r"^(define {own}[^\n]*\)[^\n]*?) {group}(?= [^\n]*\{{$)"
_VARIABLE = r'^(@(?:"[^"\n]*"|[-\w$.]+) = {own}[^\n]*), {group}(?={rest}$)'
_OWN, _ALL = r"(?:internal|private) ", r"(?!declare|external |extern_weak )"


def _patterns(own: str) -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(pattern.format(own=own, group=_GROUP, rest=_REST), re.M) for pattern in (_FUNCTION, _VARIABLE)
    )


_OF_OWN, _OF_ALL = _patterns(_OWN), _patterns(_ALL)


def without_own_comdats(text: str, *, every: bool = False) -> str:
    """The module without groups for what is internal or private; the same string where there are none. every: for
    whatever it defines, because all of it is about to become internal"""
    if " comdat" not in text:
        return text
    for pattern in _OF_ALL if every else _OF_OWN:
        text = pattern.sub(r"\1", text)
    return text
