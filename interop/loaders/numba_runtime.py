"""Functions that Numba leaves to its own libraries, linked into a module from `numba_runtime.c`; and calls of functions
that stand in the module, which Numba makes through variables (recursion)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from irgrad.interop.loaders.compiler import Options, compile_source
from irgrad.interop.loaders.library_parts import declared, with_parts

__all__ = ["complete"]

_SOURCE = Path(__file__).with_name("numba_runtime.c")
_FLAGS = ("-std=gnu11", "-w", "-g0", "-O2", "-Xclang", "-disable-llvm-passes", "-ffp-contract=off", "-fno-math-errno")
_DEFINED = re.compile(r"^define [^@\n]*@((?:NRT|numba)_\w+)\(", re.M)
_OPEN = re.compile(r'^(  %[\w.]+ = )load ptr, ptr @"?\.numba\.unresolved\$(_\w+)"?(?:, align \d+)?$', re.M)


def complete(text: str) -> str:
    """The module with the functions of Numba's libraries that it calls, and with its recursive calls as calls by name.

    Raises IRSyntaxError or IRInvalid when LLVM refuses `text`.
    """
    own = set(re.findall(r"^define [^@\n]*@(\w+)\(", text, re.M))
    text = _OPEN.sub(lambda row: f"{row[1]}bitcast ptr @{row[2]} to ptr" if row[2] in own else row[0], text)
    if not re.search(r"^declare [^@\n]*@(?:NRT|numba)_", text, re.M) or _known().isdisjoint(declared(text)):
        return text
    known = _known()
    return with_parts(text, lambda name: str(_SOURCE) if name in known else None, lambda source: _runtime())


def _runtime() -> str:
    return compile_source(_SOURCE, "c", Options(flags=_FLAGS)).text


@cache
def _known() -> frozenset[str]:
    return frozenset(_DEFINED.findall(_runtime()))
