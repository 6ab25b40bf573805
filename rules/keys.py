"""Keys: what a rule is for. A symbol, a function inside one module, an opcode, a construct.

All spellings of a function of the tables are one key (`sin`, `sinf`, `llvm.sin.f64`, ...); other symbols are their
own key. A key with a `scope` (the digest of a module's text) holds in that module only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irgrad.rules.definitions.definition import Key
from irgrad.rules.definitions.prototype import Prototype, of_kernel
from irgrad.rules.errors import RuleError

__all__ = ["Declared", "canonical", "key_of", "opcode"]


@dataclass(frozen=True, slots=True)
class Declared:
    """A key together with the prototype of the function."""

    key: Key
    prototype: Prototype | None


def canonical(symbol: str) -> str:
    """The name that all spellings of a function share."""
    from irgrad.rules.lookup import find  # the tables: not needed to make a kernel

    match = find(symbol)
    return symbol if match is None or match.packed else match.row.key


def opcode(name: str) -> Key:
    """The key of an LLVM opcode on floats: fadd, fsub, fmul, fdiv, frem, fneg."""
    return Key("opcode", name)


def key_of(what: Any) -> Declared:
    """The key that a user's object stands for. Raises RuleError."""
    if isinstance(what, Declared):
        return what
    if isinstance(what, Key):
        return Declared(what, None)
    if isinstance(what, str):
        return Declared(Key("function", canonical(what)), None)
    made = getattr(what, "__irgrad_key__", None)
    if made is not None:
        declared = made()
        assert isinstance(declared, Declared)
        return declared
    source, signature = getattr(what, "source", None), getattr(what, "signature", None)
    if source is not None and signature is not None:
        return Declared(Key("function", source.name, source.digest), of_kernel(signature))
    if type(what).__module__ == "ctypes" or hasattr(what, "argtypes"):
        return Declared(Key("function", canonical(what.__name__)), _of_ctypes(what))
    raise RuleError(
        f"a {type(what).__name__} is no key of a rule",
        which=repr(what),
        because="a symbol, a Kernel, a function of a library, a ctypes function or extern(...) is wanted",
        fix='@rule("name")',
    )


def _of_ctypes(function: Any) -> Prototype | None:
    """The prototype that argtypes and restype give; None when argtypes are not set."""
    import ctypes

    from irgrad.rules.definitions.prototype import Param

    if function.argtypes is None:
        return None
    sizes = {ctypes.c_double: "f64", ctypes.c_float: "f32", ctypes.c_bool: "i1"}

    def scalar(kind: Any) -> str | None:
        if kind in sizes:
            return sizes[kind]
        code = getattr(kind, "_type_", None)
        return f"i{8 * ctypes.sizeof(kind)}" if isinstance(code, str) and code in "bBhHiIlLqQ" else None

    params = []
    for kind in function.argtypes:
        name = scalar(kind)
        if name is not None:
            params.append(Param("", name))
            continue
        target = getattr(kind, "_type_", None)
        element = scalar(target) if not isinstance(target, str) else None
        params.append(Param("", element or "ptr", "pointer", (), "inout"))
    returns = "void" if function.restype is None else scalar(function.restype) or "ptr"
    return Prototype(returns, tuple(params))
