"""Digests of Python functions: equal for equal code, so that a rule that changed never meets code made from the old
one.

A digest covers the bytecode, its constants, names and defaults, what the closure holds, and the functions and
numbers that the body refers to by global names, recursively. What has no stable digest (an open file, an arbitrary
object) counts by identity within this process, and its rule is not found again by another process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import types
from collections.abc import Callable
from typing import Any

__all__ = ["digest_of", "referred"]

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))
_DEPTH = 6


def digest_of(function: Callable[..., Any]) -> str:
    """A hex digest of what the function computes."""
    digest = hashlib.sha256()
    _feed(digest, function, 0, set())
    return digest.hexdigest()


def _feed(digest: Any, value: Any, depth: int, seen: set[int]) -> None:
    if isinstance(value, _PLAIN):
        digest.update(f"{type(value).__name__}:{value!r};".encode("utf-8", "surrogatepass"))
    elif isinstance(value, tuple | list | frozenset):
        digest.update(f"{type(value).__name__}{len(value)}(".encode())
        for item in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            _feed(digest, item, depth, seen)
    elif isinstance(value, dict):
        for key in value:
            _feed(digest, key, depth, seen)
            _feed(digest, value[key], depth, seen)
    elif isinstance(value, types.CodeType):
        _feed_code(digest, value, depth, seen)
    elif isinstance(value, types.FunctionType):
        _feed_function(digest, value, depth, seen)
    elif isinstance(value, types.ModuleType):
        digest.update(f"module {value.__name__} {getattr(value, '__version__', '')};".encode())
    elif isinstance(value, type) or (
        callable(value) and hasattr(value, "__qualname__") and not hasattr(value, "__self__")
    ):
        digest.update(f"{value.__module__}.{getattr(value, '__qualname__', value)};".encode())
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
        array: Any = value
        digest.update(f"array {array.dtype} {getattr(array, 'shape', ())};".encode() + array.tobytes())
    elif type(value).__module__.partition(".")[0] in ("numpy", "irgrad"):
        content = getattr(value, "content_digest", "")  # what a Kernel prints does not tell its code
        digest.update(f"{type(value).__name__} {value!r} {content};".encode())
    else:
        digest.update(f"object {id(value)} of {os.getpid()};".encode())


def _feed_code(digest: Any, code: types.CodeType, depth: int, seen: set[int]) -> None:
    digest.update(code.co_code)
    counts = (code.co_names, code.co_varnames, code.co_argcount, code.co_kwonlyargcount, code.co_flags)
    _feed(digest, counts, depth, seen)
    _feed(digest, code.co_consts, depth, seen)


def _feed_function(digest: Any, function: types.FunctionType, depth: int, seen: set[int]) -> None:
    if id(function) in seen or depth > _DEPTH:
        digest.update(function.__qualname__.encode())
        return
    seen.add(id(function))
    home = (function.__module__ or "").partition(".")[0]
    if depth and home in ("numpy", "jax", "scipy"):
        digest.update(f"{function.__module__}.{function.__qualname__};".encode())
        return
    code = function.__code__
    _feed_code(digest, code, depth, seen)
    _feed(digest, function.__defaults__, depth, seen)
    _feed(digest, function.__kwdefaults__ or {}, depth, seen)
    for cell in function.__closure__ or ():
        try:
            _feed(digest, cell.cell_contents, depth + 1, seen)
        except ValueError:
            digest.update(b"empty;")
    for name in _global_names(code):
        if name in function.__globals__:
            digest.update(name.encode())
            _feed(digest, function.__globals__[name], depth + 1, seen)


def referred(function: Callable[..., Any]) -> list[Any]:
    """What a function refers to: the globals that it names, and what its closure holds."""
    if not isinstance(function, types.FunctionType):
        return []
    found = [function.__globals__[n] for n in _global_names(function.__code__) if n in function.__globals__]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):
            found.append(cell.cell_contents)
    return found


def _global_names(code: types.CodeType) -> list[str]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _global_names(constant)
    return sorted(set(names))
