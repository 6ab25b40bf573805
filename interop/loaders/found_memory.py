"""What finds the memory behind a program's variables, linked into programs whose derivatives ask for it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from irgrad.engine.analyses.memory.objects import FOUND
from irgrad.engine.runtime.persistent_memory import BESIDE, SHADOW
from irgrad.interop.loaders.compiler import Options, compile_source
from irgrad.interop.loaders.library_parts import with_parts

__all__ = ["complete"]

_SOURCE = Path(__file__).with_name("found_memory.c")
_FLAGS = ("-std=gnu11", "-w", "-g0", "-O2", "-Xclang", "-disable-llvm-passes")
_PREFIX = "irgrad_found_"
_TELLS = f"{_PREFIX}by_"
_ASKED = FOUND, BESIDE, SHADOW, f"{_PREFIX}nothing"
"""What may be left of a derivative that asked: also shadows alone, where LLVM has dropped who looks for them."""
_LATER = {"tape_free_later": "irgrad.tape.free_later"}
_DEFINED = re.compile(rf"^define [^@\n]*@({_PREFIX}\w+)\(|^@({_PREFIX}\w+) = ", re.M)
_OURS = re.compile(r"@irgrad_(kept|tape)_")


def complete(text: str) -> str:
    """The program whose allocations tell of themselves, with the functions that derivatives ask about them; unchanged
    where none asks."""
    if not re.search(rf"^declare [^\n]*@(?:{'|'.join(_ASKED)})\(", text, re.M):
        return text
    own = set(re.findall(r'^define [^@\n]*@"?([\w$.]+)"?\(', text, re.M))
    names = {name.removeprefix(_TELLS): name for name in _known() if name.startswith(_TELLS)}
    told = {_LATER.get(name, name): tells for name, tells in names.items() if name not in own}
    text = re.sub(rf"@({'|'.join(map(re.escape, told))})(?=[(,) \n])", lambda found: f"@{told[found[1]]}", text)
    return with_parts(text, lambda name: str(_SOURCE) if name in _known() else None, lambda source: _runtime())


@cache
def _runtime() -> str:
    return _OURS.sub(r"@irgrad.\1.", compile_source(_SOURCE, "c", Options(flags=_FLAGS)).text)


@cache
def _known() -> frozenset[str]:
    return frozenset(found[1] or found[2] for found in _DEFINED.finditer(_runtime()))
