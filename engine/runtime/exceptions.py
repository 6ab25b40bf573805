"""Exceptions that end a call, in LLVM IR (`exceptions.ll`, `caught.ll`): those that nothing in a kernel catches.

    irgrad.tape.throws(type, thing, offset, destructor, release, where)   what a kernel throws in place of an exception
    irgrad.tape.throws_format(type, where, format, ...)                   with a text that is put together
    irgrad.tape.throwing(thing, where)                                    an exception of the C++ runtime comes
    irgrad.tape.ends(header)                                              one comes where nothing may be thrown
    irgrad.tape.caught(guard, header, whether a std::exception)           one has left the function under a guard
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from irgrad.engine.ir.text.entities import joined
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.support.lines import change_lines

__all__ = ["CAUGHT", "ENDS", "FORMAT", "NOTE", "TEXT_ITSELF", "THROWS", "WITHOUT_TEXT", "catching", "is_caught",
           "link_exceptions", "unpromised"]  # fmt: skip

THROWS, FORMAT = "irgrad.tape.throws", "irgrad.tape.throws_format"
NOTE, ENDS, CAUGHT = "irgrad.tape.throwing", "irgrad.tape.ends", "irgrad.tape.caught"
WITHOUT_TEXT, TEXT_ITSELF = -1, -2
"""In place of the offset of the std::exception in the object."""
_NAMES = (THROWS, FORMAT, NOTE, ENDS, CAUGHT)
_DECLARED = re.compile(rf"declare [^\n]*@(?:{'|'.join(map(re.escape, _NAMES))})\(")
_PROMISED = re.compile(r"^(define [^\n]*\)[^\n]*?) nounwind\b", re.M)
_OWN_DECLARED = re.compile(r"^declare [^\n]*@irgrad\.tape\.exception\([^\n]*\n", re.M)
_NATIVE = re.compile(r"__cxa_(?:re)?throw|_Zn[wa]|_ZSt17rethrow_exception|_Z\w*St")
_STANDARD = "@_ZTISt9exception = external constant ptr\n"
_CATCHING = f"""declare i32 @__gxx_personality_v0(...)
declare i32 @llvm.eh.typeid.for.p0(ptr)
declare void @{CAUGHT}(ptr, ptr, i1)
"""


@cache
def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def unpromised(text: str) -> str:
    """The module, in which no derivative promises not to unwind where exceptions of the C++ runtime may leave it: it
    throws them, or calls functions of the C++ library, which may."""
    return _PROMISED.sub(r"\1", text) if any(map(_NATIVE.match, outline(text).declared)) else text


def catching(text: str) -> str:
    """The same, with what guards need that catch such exceptions."""
    found = outline(text)
    if not any(map(_NATIVE.match, found.declared)) and f"@{CAUGHT}(" not in text and ENDS not in found.declared:
        return text
    known = "_ZTISt9exception" in found.variables
    return joined(unpromised(text), ("" if known else _STANDARD) + _CATCHING)


def is_caught(text: str) -> bool:
    """Whether guards catch exceptions of the C++ runtime."""
    return CAUGHT in outline(text).functions


def link_exceptions(text: str) -> str:
    """The module with the definitions in place of their declarations; unchanged when it uses none."""
    names = outline(text).functions
    if not any(name in names for name in _NAMES) or THROWS in outline(text).defined:
        return text
    more = _file("exceptions.ll")
    if not names.isdisjoint((NOTE, ENDS, CAUGHT)):
        text = catching(text)
        more = joined(more, _OWN_DECLARED.sub("", _file("caught.ll")))
    return joined(change_lines(text, "declare ", lambda line: "" if _DECLARED.match(line) else line), more)
