"""What the IR of a Python function depends on, as a key of the disk cache: with it a later process needs no Numba.

Numba compiles the values of globals, of closures and of defaults into the code, so all of them are part of the key, and
those of the functions that are called. Where something is met whose value nothing here knows (a module of the user, an
object), there is no key, and Numba compiles in each process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["key_of"]

_KNOWN = frozenset("numpy math cmath operator numba builtins".split())
_LARGEST = 1 << 20
_OF_NUMPY = ("ufunc", "_ArrayFunctionDispatcher")
_PLAIN = (int, float, complex, str, bytes, type(None), type(...))


class _Unknown(Exception):
    """A value that a key cannot hold."""


def key_of(function: Any, parameters: str) -> str | None:
    """The key of a function for parameters of these types; None where there is none."""
    from importlib.metadata import PackageNotFoundError, version

    from irgrad.engine.codegen.cache import fingerprint

    try:
        known = [version(name) for name in ("numba", "llvmlite", "numpy")]
        settings = sorted(row for row in os.environ.items() if row[0].startswith("NUMBA_"))
        return fingerprint("numba-ir-2", *known, repr(settings), parameters, *_facts(function, set()))
    except (_Unknown, PackageNotFoundError):
        return None


def _facts(value: Any, seen: set[int]) -> Iterator[str]:
    """What a value is, in words."""
    inner = getattr(value, "py_func", None)
    if isinstance(inner, FunctionType):
        yield repr(sorted(getattr(value, "targetoptions", {}).items(), key=str))
        value = inner
    if id(value) in seen:  # it calls itself
        return
    if isinstance(value, FunctionType):
        seen |= {id(value)}
        yield from _of_function(value, seen)
    elif isinstance(value, _PLAIN):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, (tuple, frozenset)):
        yield f"{type(value).__name__} {len(value)}"
        for row in value if isinstance(value, tuple) else sorted(value, key=repr):
            yield from _facts(row, seen)
    elif isinstance(value, ModuleType):
        yield _of_library(value.__name__)
    elif isinstance(value, (type, BuiltinFunctionType)) or type(value).__name__ in _OF_NUMPY:
        module = getattr(value, "__module__", None) or "numpy"
        yield f"{_of_library(module)} {getattr(value, '__qualname__', getattr(value, '__name__', ''))}"
    elif type(value).__module__.partition(".")[0] == "numba":
        yield f"{type(value).__name__} {value}"
    else:
        yield from _of_array(value)


def _of_function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    names: set[str] = set()
    yield from _of_code(function.__code__, names)
    yield from _facts(function.__defaults__ or (), seen)
    for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars, strict=True):
        yield name
        try:
            yield from _facts(cell.cell_contents, seen)
        except ValueError:  # not bound yet
            raise _Unknown from None
    for name in sorted(names & set(function.__globals__)):
        yield f"global {name}"
        yield from _facts(function.__globals__[name], seen)


def _of_code(code: CodeType, names: set[str]) -> Iterator[str]:
    names |= set(code.co_names)
    yield f"{code.co_name} {code.co_filename} {code.co_firstlineno} {code.co_code.hex()} {code.co_linetable.hex()}"
    yield code.co_exceptiontable.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags))
    for row in code.co_consts:
        if isinstance(row, CodeType):
            yield from _of_code(row, names)
        else:
            yield from _facts(row, set())


def _of_array(value: Any) -> Iterator[str]:
    import numpy as np

    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.hasobject or value.nbytes > _LARGEST:
        raise _Unknown
    yield f"{value.dtype.str} {value.shape} {np.asarray(value).tobytes().hex()}"


def _of_library(name: str) -> str:
    if name.partition(".")[0] not in _KNOWN:
        raise _Unknown
    return name
