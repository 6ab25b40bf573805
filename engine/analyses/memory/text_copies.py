"""Copies of characters in a string of C++, whose length is not known.

A short string lies within its object, from the second byte on, where a long one has its address; the end of the copy is
known to the program alone. What lies whole beside the text, as any member does, is not a part of it: the address of a
long string, numbers behind a string in a struct. What was put there as text may be (a program that keeps the bytes of
floats in a string), and is found where no member would lie, or in text that begins where its memory does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from irgrad.engine.analyses.memory.byte_kinds import Kind
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.locations import functions_at
from irgrad.engine.ir.model import ConstInt, Instruction, Module
from irgrad.engine.ir.types import Type

__all__ = ["beside_text", "copies_text", "hashes_text", "of_string", "only_beside"]

_NAMES = ("copy", "move", "assign")
_TRAITS = ("/__string/char_traits.h", "/bits/char_traits.h")
_STRINGS = ("/include/string", "/v1/string", "/bits/basic_string.h", "/bits/basic_string.tcc")
_COMPILED = re.compile(r"(?:^|\.)(?:_ZNK?(?:St3__1|St7__cxx11)12basic_stringI|_Z(?:NSt3__1|St)plIc)")
"""Members and sums of strings, and what derivatives are made of them: code that was compiled without lines."""
_HASHES = ("__do_string_hash", "__loadword")
_HASHED = ("/__string/char_traits.h", "/__functional/hash.h")
_WORD = 8


def copies_text(module: Module, call: Instruction, length: int) -> bool:
    """Whether a call copies characters as a string of the standard library does. length: which argument says how
    many."""
    if isinstance(call.args[length], ConstInt):
        return False
    fn = call.block.function if call.block is not None else None
    if fn is not None and _COMPILED.search(fn.name or ""):
        return True
    functions = list(functions_at(module, call))
    traits = any(name in _NAMES and file.endswith(_TRAITS) for name, file in functions)
    return traits or (bool(functions) and functions[0][1].endswith(_STRINGS))


def hashes_text(module: Module, load: Instruction) -> bool:
    """Whether a load takes a word of characters for a hash of the standard library, which leads nowhere whatever lies
    there."""
    if load.type not in (ty.I32, ty.I64):
        return False
    name, file = next(functions_at(module, load), ("", ""))
    return name.startswith(_HASHES) and file.endswith(_HASHED)


def of_string(module: Module, access: Instruction) -> bool:
    """Whether a load or store is of a word of a string: its size, its address, one of three that are copied. No pointer
    that a node of a container holds is there."""
    moved = access.type if access.opcode == "load" else access.operands[0].type
    return moved in (ty.I64, ty.PTR) and next(functions_at(module, access), ("", ""))[1].endswith(_STRINGS)


def beside_text(start: Offsets, where: Offsets, length: int) -> bool:
    """Whether what lies somewhere, so many bytes of it, is a member of the object that a text begins in."""
    return not _multiple(start, length) and _multiple(where, length)


def only_beside(start: Offsets, evidence: Iterable[tuple[Offsets, Kind, int, int]]) -> bool:
    """Whether all that is known of an object lies beside the text that begins in it."""
    if _multiple(start, _WORD):
        return False
    return all(_multiple(where, length) for where, kind, length, _ in evidence if isinstance(kind, Type))


def _multiple(places: Offsets, length: int) -> bool:
    return places.start % length == 0 and all(stride % length == 0 for stride, _ in places.terms)
