"""Symbols: which ones an ELF object wants from outside, and where this process has them.

A call to a symbol that nothing provides would jump to address zero. So the undefined symbols of every object are
resolved before it is linked, one by one, and the first that nobody has is an error that names it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from functools import cache

from irgrad.engine.codegen.llvm import binding
from irgrad.rules.errors import LoadError

__all__ = ["is_known", "missing", "resolve", "resolve_all", "undefined_symbols"]

# Opened when a symbol is not found otherwise: libm, complex arithmetic and wide integers, vector maths, C++.
_LIBRARIES = ("libm.so.6", "libgcc_s.so.1", "libmvec.so.1")
_CXX_LIBRARIES = ("libstdc++.so.6",)
_IMPLICIT = {"_GLOBAL_OFFSET_TABLE_"}


def undefined_symbols(image: bytes) -> tuple[str, ...]:
    """Names that a 64-bit little-endian ELF relocatable object leaves undefined (weak ones too), sorted.

    Raises ValueError when the image is no such object.
    """
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF object")
    (table,) = struct.unpack_from("<Q", image, 0x28)
    entry_size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + index * entry_size) for index in range(count)]
    names: set[str] = set()
    for section in sections:
        kind, offset, size, link = section[1], section[4], section[5], section[6]
        if kind != 2:  # SHT_SYMTAB
            continue
        strings = sections[link][4]
        for at in range(offset + 24, offset + size, 24):
            name, _, _, index = struct.unpack_from("<IBBH", image, at)
            if index == 0:  # SHN_UNDEF
                start = strings + name
                names.add(image[start : image.index(b"\0", start)].decode("utf-8", "replace"))
    return tuple(sorted(names - _IMPLICIT - {""}))


@cache
def _open(library: str) -> bool:
    try:
        binding().load_library_permanently(library)
    except RuntimeError:
        return False
    return True


def resolve(name: str) -> int:
    """The address of a symbol in this process, 0 when nothing has it."""
    llvm = binding()
    address = llvm.address_of_symbol(name)
    if address or not sys.platform.startswith("linux"):
        return int(address or 0)
    cxx = name.startswith(("_Z", "__cxa", "__gxx"))
    for library in (*_LIBRARIES, *(_CXX_LIBRARIES if cxx else ())):
        if _open(library):
            address = llvm.address_of_symbol(name)
            if address:
                return int(address)
    return 0


def is_known(name: str) -> bool:
    """Whether this process can provide the symbol (what the IR validator asks)."""
    return bool(resolve(name))


def missing(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that nothing in this process provides."""
    return tuple(name for name in names if not resolve(name))


def resolve_all(names: Iterable[str]) -> dict[str, int]:
    """Addresses of all the names. Raises LoadError naming those that nothing provides."""
    addresses = {name: resolve(name) for name in names}
    unknown = [name for name, address in addresses.items() if not address]
    if unknown:
        shown = ", ".join(f"`{name}`" for name in unknown[:5]) + (" ..." if len(unknown) > 5 else "")
        one = len(unknown) == 1
        raise LoadError(
            f"the symbol {shown} is not resolved" if one else f"the symbols {shown} are not resolved",
            because=f"no loaded module, and no shared library of this process, defines {'it' if one else 'them'}",
            fix='load([..., "the_file_that_defines_it.c"])   or   load(..., link=["lib.so"])',
        )
    return addresses
