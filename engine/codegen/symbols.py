"""Symbols: which ones an ELF object wants from outside, and where this process has them.

A call to a symbol that nothing provides would jump to address zero. So the undefined symbols of every object are
resolved before it is linked, one by one, and the first that nobody has is an error that names it.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

from irgrad.engine.codegen.elf import ObjectFile
from irgrad.rules.errors import LoadError

__all__ = [
    "MEET", "PYTHON", "define", "is_known", "lookup", "missing", "open_library", "resolve", "resolve_all",
    "undefined_symbols",
]  # fmt: skip

MEET = "irgrad_stop_meet"
"""A function of a unit with polls (`polls.py`): it takes the address of the flag, and that of a function, which is
called where the flag is set."""

# Opened when a symbol is not found otherwise: libm, complex arithmetic and wide integers, vector maths, C++.
_LIBRARIES = ("libm.so.6", "libgcc_s.so.1", "libmvec.so.1")
_CXX_LIBRARIES = ("libstdc++.so.6",)
_OWN: dict[str, int] = {}
PYTHON: set[str] = set()
"""Names of functions that are Python's: what they raise is kept until the code that calls them has returned."""
_BLAS = re.compile(r"cblas_[a-z0-9_]+|i?[sdcz][a-z0-9]+_(?:64_)?")


def undefined_symbols(image: bytes) -> tuple[str, ...]:
    """Names that a 64-bit little-endian ELF relocatable object leaves undefined (weak ones too), sorted.

    Raises ValueError when the image is no such object.
    """
    return ObjectFile(image).undefined


@cache
def open_library(name: str) -> bool:
    """Open a shared library for good, so that its symbols resolve; False when there is none."""
    try:
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)  # never closed
    except OSError:
        return False
    return True


def define(name: str, address: int, *, python: bool = False) -> None:
    """Give code that is linked from now on a symbol of this name. It must be there as long as the process. python: a
    function that keeps what it raises (`kernel/host.py`)."""
    _OWN[name] = address
    (PYTHON.add if python else PYTHON.discard)(name)


@cache
def _process() -> Any:
    return ctypes.CDLL(None)


def lookup(name: str) -> int:
    """The address of a symbol among what this process has open for all, 0 when nothing has it."""
    if name in _OWN:
        return _OWN[name]
    try:
        return int(ctypes.cast(_process()[name], ctypes.c_void_p).value or 0)
    except AttributeError:
        return 0


def resolve(name: str) -> int:
    """The address of a symbol in this process, 0 when nothing has it.

    BLAS and LAPACK are also found where a build renames them (the one in SciPy: `scipy_cblas_dgemm`).
    """
    return _resolve(name) or (_resolve(f"scipy_{name}") if _BLAS.fullmatch(name) else 0)


def _resolve(name: str) -> int:
    address = lookup(name)
    if address or not sys.platform.startswith("linux"):
        return address
    cxx = name.startswith(("_Z", "__cxa", "__gxx"))
    for library in (*_LIBRARIES, *(_CXX_LIBRARIES if cxx else ())):
        if open_library(library):
            address = lookup(name)
            if address:
                return address
    from irgrad.engine.codegen.llvm import binding  # last: importing LLVM is slow

    return int(binding().address_of_symbol(name) or 0)


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
