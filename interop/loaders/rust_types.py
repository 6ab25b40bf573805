"""What a source in Rust calls the types of a function, from the debug information of its IR: drafts of signatures, and
how structs are laid out (rustc orders fields as it likes, but for `#[repr(C)]`).

    &[f64]             f64[n] x             &mut [[f64; 3]]    inout f64[n,3] x         &P    P[] x
    &[f64; 3]          f64[3] x             usize              i64 x                    Option, Vec, closures      ?
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from irgrad.engine.signature.prototype import quoted
from irgrad.engine.signature.structs import Struct
from irgrad.rules.errors import SignatureError

__all__ = ["check_layout", "draft"]

_NODE = re.compile(r"^(!\d+) = (?:distinct )?(.*)$", re.M)
_FIELD = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|[^,()]+)')
_NUMBERS = {"f32": "f32", "f64": "f64", "bool": "bool", "usize": "i64", "isize": "i64"} | {
    f"{sign}{bits}": f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)
}
_REFERENCE = re.compile(r"(&mut |&|\*const |\*mut )(.+)")
_ARRAY = re.compile(r"\[(.+); (\d+)\]")
_SLICE = re.compile(r"\[(.+)\]")


class _Types:
    """Nodes of debug information."""

    def __init__(self, text: str) -> None:
        self.nodes = dict(_NODE.findall(text))

    def fields(self, ref: str) -> dict[str, str]:
        return {key: value.strip('"') for key, value in _FIELD.findall(self.nodes.get(ref, ""))}

    def listed(self, ref: str) -> list[str]:
        body = self.nodes.get(ref, "")
        return [part.strip() for part in body[2:-1].split(",") if part.strip()] if body.startswith("!{") else []

    def function(self, text: str, name: str) -> list[str] | None:
        """The names of the types of what a function returns and takes."""
        line = re.search(rf"^define\b[^\n]*?@{re.escape(quoted(name))}\([^\n]*!dbg (!\d+)", text, re.M)
        if line is None:
            return None
        types = self.listed(self.fields(self.fields(line[1]).get("type", "")).get("types", ""))
        return [self.name(ref) for ref in types] or ["()"]

    def name(self, ref: str) -> str:
        """The name of a type."""
        fields = self.fields(ref)
        return fields.get("name") or (self._array(ref) if fields.get("tag") == "DW_TAG_array_type" else "()")

    def parameters(self, text: str, name: str) -> dict[int, str]:
        """The names of a function's parameters by their places, from 1."""
        line = re.search(rf"^define\b[^\n]*?@{re.escape(quoted(name))}\([^\n]*!dbg (!\d+)", text, re.M)
        rows = (self.fields(ref) for ref, body in self.nodes.items() if body.startswith("!DILocalVariable("))
        return {int(row["arg"]): row["name"] for row in rows
                if line is not None and row.get("scope") == line[1] and "arg" in row and "name" in row}  # fmt: skip

    def struct(self, name: str) -> list[tuple[str, str, int]] | None:
        """The fields of a struct, in the order in which they lie: names, names of their types, byte offsets."""
        for ref, body in self.nodes.items():
            if body.startswith("!DICompositeType(tag: DW_TAG_structure_type") and f'name: "{name}"' in body:
                members = [self.fields(row) for row in self.listed(self.fields(ref).get("elements", ""))]
                rows = [(row.get("name", ""), self.name(row.get("baseType", "")), int(row.get("offset", "0")) // 8)
                        for row in members]  # fmt: skip
                return sorted(rows, key=lambda row: row[2])
        return None

    def _array(self, ref: str) -> str:
        """The name of an array's type, which has none in the debug information."""
        fields = self.fields(ref)
        counts = [self.fields(row).get("count", "") for row in self.listed(fields.get("elements", ""))]
        base = fields.get("baseType", "")
        inner = self.name(base)
        for count in reversed(counts):
            inner = f"[{inner}; {count}]"
        return inner


def draft(text: str, name: str) -> str | None:
    """A signature for a function of the module; None where the debug information does not tell."""
    types = _Types(text)
    known = types.function(text, name)
    if known is None:
        return None
    sizes, structs, rows = iter("nmkpqrs"), dict[str, str](), []
    returned = _NUMBERS.get(known[0], "void" if known[0] == "()" else "?")
    array = _element(types, known[0], structs)
    if returned == "?" and array is not None and array[1]:
        returned, rows = "void", [f"out {array[0]}[{','.join(array[1])}] result"]
    names = types.parameters(text, name)
    for n, kind in enumerate(known[1:], 1):
        rows.append(_parameter(types, re.sub(r"\W", "_", names.get(n, f"a{n}")), kind, structs, sizes))
    return " ".join([*structs.values(), f"{returned}({', '.join(rows)})"])


def _parameter(types: _Types, name: str, kind: str, structs: dict[str, str], sizes: Iterator[str]) -> str:
    found = _REFERENCE.fullmatch(kind)
    if found is None:
        return f"{_NUMBERS.get(kind, '?')} {name}"
    intent = "inout " if "mut" in found[1] else ""
    inside = found[2]
    slice_ = _SLICE.fullmatch(inside) if not _ARRAY.fullmatch(inside) else None
    element, extents = _element(types, slice_[1] if slice_ else inside, structs) or ("?", [])
    front = [next(sizes, "n")] if slice_ or found[1].startswith("*") else []
    return f"{intent}{element}[{','.join([*front, *extents])}] {name}"


def _element(types: _Types, kind: str, structs: dict[str, str]) -> tuple[str, list[str]] | None:
    """The element type and the extents of what a type holds; None for what no signature has."""
    array = _ARRAY.fullmatch(kind)
    if array is not None:
        inner = _element(types, array[1], structs)
        return None if inner is None else (inner[0], [array[2], *inner[1]])
    if kind in _NUMBERS:
        return _NUMBERS[kind], []
    name = kind.rpartition("::")[2]
    fields = types.struct(name) if re.fullmatch(r"\w+", name) else None
    if not fields:
        return None
    rows = []
    for word, of, _ in fields:
        inner = _element(types, of, structs)
        if inner is None or not re.fullmatch(r"[A-Za-z_]\w*", word):
            return None
        rows.append(f"{inner[0]}{'[' + ','.join(inner[1]) + ']' if inner[1] else ''} {word};")
    structs[name] = f"struct {name} {{ {' '.join(rows)} }};"
    return name, []


def check_layout(text: str, struct: Struct) -> None:
    """Raise SignatureError where a struct of a signature does not lie as the source's struct of that name does."""
    theirs = _Types(text).struct(struct.name)
    if theirs is None:
        raise SignatureError(f"there is no struct `{struct.name}` in the source", where=f"`{struct}`",
                             because="compilers may order fields as they like, so the layout is looked up by the name",
                             fix="call it as the source does, fields in the order of the draft that lib.kernel(name) "
                                 "gives")  # fmt: skip
    ours = [(field.name, field.offset) for field in struct.fields]
    if ours != [(name, at) for name, _, at in theirs]:
        shown = ", ".join(f"{name} at byte {at}" for name, _, at in theirs)
        raise SignatureError(f"`struct {struct.name}` lies otherwise in the source", where=f"`{struct}`",
                             because=f"the compiler has {shown}",
                             fix="the fields in this order   or   `#[repr(C)]` before the struct, and its order")
