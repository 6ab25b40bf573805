"""How much a loop on threads may take for copies, and what is said where one thread runs it (`copies.ll`).

That follows from sizes, which are known when the loop runs. So it is said then, on stderr, by programs and kernels.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstData, ConstInt, GlobalVariable, Module, Value
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.support.lines import change_lines

__all__ = ["OWN_MEMORY", "link_copies", "most_bytes", "tell", "told_text"]

_MOST, _TOLD = "irgrad.copies.most", "irgrad.copies.told"
_DECLARED = re.compile(r"declare [^\n]*@irgrad\.copies\.\w+\(")
OWN_MEMORY = "takes more bytes than IRGRAD_MAX_COPIES allows (1 GiB by default), or there is no memory for it"


@cache
def _text() -> str:
    return Path(__file__).with_name("copies.ll").read_text(encoding="utf-8")


def link_copies(text: str) -> str:
    """The module with the definitions in place of their declarations; unchanged when it uses none."""
    without = change_lines(text, "declare ", lambda line: "" if _DECLARED.match(line) else line)
    return joined(without, _text()) if without is not text else text


def most_bytes(module: Module, at: Builder) -> Value:
    """How many bytes the copies of a loop may take; a call, which has no derivative."""
    return at.call(declare(module, _MOST, ty.I64, (), "nounwind willreturn"), [])


def tell(module: Module, at: Builder, place: str, why: str) -> None:
    """Say that one thread runs a loop, where this is reached."""
    data = told_text(place, why)
    name = next(f"{_TOLD}.{n}" for n in range(len(module.globals) + 1) if f"{_TOLD}.{n}" not in module.globals)
    kind = ty.array(len(data), ty.I8)
    text = module.globals[name] = GlobalVariable(name, kind, ConstData(kind, data), True, "internal", ", align 1")
    told = declare(module, _TOLD, ty.VOID, (ty.PTR, ty.I64), "nounwind willreturn")
    at.call(told, [text, ConstInt(ty.I64, len(data))])


def told_text(place: str, why: str) -> bytes:
    """What is said of a loop."""
    return f"irgrad: warning: one thread runs {place.partition(' (inlined at')[0]}: {why}\n".encode()
