"""Prototypes of foreign functions, as rules state them: `void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)`.

    prototype ::= type "(" [parameter ("," parameter)*] ")"
    parameter ::= [intent] type ["*" | "&" | "[" extents "]"] [intent] [name]        intent ::= "in" | "out" | "inout"

`f64*` is a pointer of unknown extent, `i32&` a scalar passed by reference (as Fortran does), `f64[n,k]` an array in
C order. Extents are integer expressions of other parameters, with + - * // % and `a if t == 111 else b`. C's names
of types (double, float, int, long, ...) are understood.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from irgrad.rules.errors import SignatureError

__all__ = ["Param", "Prototype", "of_kernel", "parse"]

_C_NAMES: dict[str, str] = {
    pair.partition("=")[0]: pair.partition("=")[2]
    for pair in "double=f64 float=f32 int=i32 long=i64 long_long=i64 size_t=i64 char=i8 short=i16 bool=i1 int64_t=i64 "
    "int32_t=i32 u8=i8 u16=i16 u32=i32 u64=i64 unsigned=i32 unsigned_int=i32 unsigned_long=i64".split()
}
_TYPES = frozenset("void f16 bf16 f32 f64 c64 c128 i1 i8 i16 i32 i64 ptr".split())
_INTENTS = ("in", "out", "inout")
_EXAMPLE = "void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)"


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter. kind: "scalar" (by value), "pointer", "array", "reference"; dtype: "f64", "i32", ..., "ptr"."""

    name: str
    dtype: str
    kind: str = "scalar"
    extents: tuple[str, ...] = ()
    intent: str = "in"

    @property
    def by_value(self) -> bool:
        return self.kind == "scalar"

    @property
    def writes(self) -> bool:
        """May be written through."""
        return not self.by_value and self.intent != "in"

    @property
    def reads(self) -> bool:
        """May be read through."""
        return not self.by_value and self.intent != "out"

    def __str__(self) -> str:
        mark = {"pointer": "*", "reference": "&"}.get(self.kind, f"[{','.join(self.extents)}]" if self.extents else "")
        usual = "inout" if self.kind == "pointer" else "in"
        intent = "" if self.by_value or self.intent == usual else f"{self.intent} "
        return f"{intent}{self.dtype}{mark}{' ' + self.name if self.name else ''}"


@dataclass(frozen=True, slots=True)
class Prototype:
    """Return type ("void", "f64", ...) and parameters."""

    returns: str
    params: tuple[Param, ...]

    def __str__(self) -> str:
        return f"{self.returns}({', '.join(map(str, self.params))})"

    def position(self, name: str) -> int | None:
        """The position of a parameter."""
        return next((i for i, p in enumerate(self.params) if p.name == name), None)


def parse(text: str) -> Prototype:
    """Read a prototype. Raises SignatureError."""
    match = re.fullmatch(r"\s*([\w\s]+?)\s*\(\s*(.*?)\s*\)\s*", text, re.S)
    if match is None:
        raise SignatureError("this is no prototype", where=f"`{text}`", fix=f"it looks like   {_EXAMPLE}")
    returns = _type(match[1], text)
    inner = match[2]
    parts = [] if inner in ("", "void") else _split(inner)
    return Prototype(returns, tuple(_param(part, text) for part in parts))


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _type(word: str, text: str) -> str:
    name = " ".join(word.split())
    name = _C_NAMES.get(name.replace(" ", "_"), name)
    if name not in _TYPES:
        raise SignatureError(
            f"`{word.strip()}` is no type",
            where=f"`{text}`",
            because=f"the types are {', '.join(sorted(_TYPES))}",
            fix=f"it looks like   {_EXAMPLE}",
        )
    return name


_PARAM = re.compile(
    r"\s*(?:(?P<first>in|out|inout)\s+)?(?:const\s+)?(?P<type>\w+(?:\s+(?:int|long)\b)?)\s*(?:const\s*)?"
    r"(?P<mark>\*|&|\[(?P<extents>.*?)\])?\s*(?:(?P<then>in|out|inout)\b)?\s*(?P<name>[A-Za-z_]\w*)?\s*",
    re.S,
)


def _param(part: str, text: str) -> Param:
    match = _PARAM.fullmatch(part)
    if match is None:
        what = f"cannot read the parameter `{part.strip()}`"
        raise SignatureError(what, where=f"`{text}`", fix=f"it looks like   {_EXAMPLE}")
    dtype, mark = _type(match["type"], text), match["mark"]
    constant = re.search(r"\bconst\b", part) is not None
    intent = match["first"] or match["then"]
    if mark is None:
        kind = "pointer" if dtype == "ptr" else "scalar"
        return Param(match["name"] or "", dtype, kind, (), intent or ("inout" if kind == "pointer" else "in"))
    if mark == "*":
        return Param(match["name"] or "", dtype, "pointer", (), intent or ("in" if constant else "inout"))
    if mark == "&":
        return Param(match["name"] or "", dtype, "reference", (), intent or "in")
    extents = tuple(extent.strip() for extent in _split(match["extents"]) if extent.strip())
    for extent in extents:
        _check_extent(extent, text)
    return Param(match["name"] or "", dtype, "array", extents, intent or "in")


_NODES = tuple(
    getattr(ast, name)
    for name in "Expression BinOp UnaryOp Name Load Constant Add Sub Mult FloorDiv Div Mod USub IfExp Compare Eq "
    "NotEq Lt LtE Gt GtE".split()
)


def _check_extent(extent: str, text: str) -> None:
    try:
        tree = ast.parse(extent, mode="eval")
    except SyntaxError:
        tree = None
    if tree is None or not all(isinstance(node, _NODES) for node in ast.walk(tree)):
        raise SignatureError(
            f"`{extent}` is no extent",
            where=f"`{text}`",
            because="extents are integer expressions of the parameters",
            fix=f"it looks like   {_EXAMPLE}",
        )


def _own_name(name: str) -> str:
    return _C_NAMES.get(name, name)


def of_kernel(signature: Any) -> Prototype:
    """The prototype that a Kernel's signature states."""
    params = []
    for p in signature.parameters:
        dtype = _own_name(p.dtype.name)
        extents = tuple(str(extent).replace("/", "//") for extent in p.shape or ())
        params.append(Param(p.name, dtype, "array" if p.is_array else "scalar", extents, p.intent))
    returns = "void" if signature.returns is None else _own_name(signature.returns.name)
    return Prototype(returns, tuple(params))
