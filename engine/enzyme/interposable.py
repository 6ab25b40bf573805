"""Functions whose body need not be what runs: another definition may take their place when the program is linked.

Weak functions, and with -fsemantic-interposition all visible functions of a shared library. A derivative made of the
body at hand would belong to a function that nobody calls. (Functions of C++ headers may be there many times too, but
are the same everywhere by the one definition rule.)
"""

from __future__ import annotations

import re
from collections.abc import Collection

from irgrad.engine.enzyme.calls import DerivativeCall
from irgrad.engine.ir.quoting import bare_name
from irgrad.rules.effects import facts
from irgrad.rules.errors import Unsupported

__all__ = ["interposable", "refuse_interposable", "replaceable"]

_DEFINED = re.compile(r'^define (?P<words>[^@\n(]*)(?P<name>@(?:"[^"\n]*"|[-\w$.]+))\(', re.M)
_FLAG = re.compile(r'^![0-9]+ = !\{i32 \d+, !"SemanticInterposition", i32 1\}', re.M)
_WEAK = frozenset(("weak", "linkonce", "common"))
_FIXED = frozenset(("internal", "private", "dso_local", "hidden", "protected", "available_externally"))


def replaceable(words: Collection[str]) -> bool:
    """Whether what is defined with these words may be replaced wherever it stands."""
    return not _WEAK.isdisjoint(words)


def interposable(text: str) -> frozenset[str]:
    """Names of the functions of a module that may be replaced."""
    every = _FLAG.search(text) is not None
    if not every and " weak " not in text and " linkonce " not in text:
        return frozenset()
    found = set()
    for defined in _DEFINED.finditer(text):
        words = defined["words"].split()
        name = bare_name(defined["name"])
        if (replaceable(words) or (every and _FIXED.isdisjoint(words))) and facts(name) is None:
            found.add(name)
    return frozenset(found)


def refuse_interposable(call: DerivativeCall, reached: Collection[str], open_: Collection[str]) -> None:
    """Raise Unsupported when a derivative would be made of a body that another definition may replace."""
    names = sorted(name for name in open_ if name in reached)
    if names:
        which = ", ".join(f"`{name}`" for name in names[:4])
        raise Unsupported(
            f"`{call.function.name}` reaches {which}, which another definition may replace", where=call.where,
            because="the function is weak, or of a shared library with -fsemantic-interposition: the derivative would "
            "be that of this body, whatever body runs",
            fix="compile and link in one command, or with -flto in both; or drop the attribute or the option",
        )
