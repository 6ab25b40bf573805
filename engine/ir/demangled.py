"""Names of C++ as its source has them."""

from __future__ import annotations

import ctypes
from functools import cache

__all__ = ["demangled_type", "plain_name"]

_LIBRARIES = (None, "libstdc++.so.6", "libc++abi.so.1")


def demangled_type(descriptor: str) -> str:
    """The type of a type descriptor's symbol, `_ZTI...`; the rest of the symbol where no C++ library can tell."""
    name = descriptor.partition(".")[0].removeprefix("_ZTI")
    demangle = _demangler()
    if demangle is None:
        return name
    status = ctypes.c_int()
    text = demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    plain = ctypes.string_at(text).decode("utf-8", "replace")
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(text)
    return plain_name(plain)


def plain_name(name: str) -> str:
    """A name without the namespaces that hold a version of the C++ library."""
    return name.replace("std::__1::", "std::").replace("std::__cxx11::", "std::")


@cache
def _demangler() -> ctypes._NamedFuncPointer | None:
    for library in _LIBRARIES:
        try:
            found = ctypes.CDLL(library).__cxa_demangle
        except (OSError, AttributeError):
            continue
        found.restype = ctypes.c_void_p
        found.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return found
    return None
