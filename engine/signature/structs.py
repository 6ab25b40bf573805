"""Structs behind pointers: `struct` in a signature, as in C, with the element types of signatures.

    struct body { f64[3] pos; f64 mass; i32 kind; };
    f64(body[n] bodies, i64 n)                          double energy(const struct body *bodies, long n)

A signature may begin with any number of declarations; the fields of a struct are numbers, arrays of constant extents,
or structs declared before, laid out as C lays them out. A parameter `body[n] bodies` is an array of structs,
`body[] b` a pointer to one; `out` and `inout` as ever.

The function is wrapped in IR: the wrapper takes one array per field (`bodies_pos` of shape [n,3], `bodies_mass`, ...),
brings them together, calls the function, and takes them apart. So every field is an argument of its own to whatever
differentiates, batches or traces the kernel, and integer fields have no derivative; the wrapper is differentiated with
the function, and where the number of structs is constant LLVM removes it. Calls take and return the fields of a struct
as a dict of arrays, or as NumPy's structured arrays of the struct's dtype (`Struct.numpy`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irgrad.engine.signature.dtypes import DTYPES, DType
from irgrad.engine.signature.extents import ConstExtent, Extent
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.parser import Parser
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import SignatureError

__all__ = ["Field", "Leaf", "Struct", "StructSignature", "has_structs", "parse_structs"]

_DECLARED = re.compile(r"\s*struct\s+([A-Za-z_]\w*)\s*\{([^{}]*)\}\s*;?")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct: its type (an element type or a struct), its extents, and where it begins, in bytes."""

    name: str
    type: DType | Struct
    shape: tuple[int, ...]
    offset: int

    @property
    def count(self) -> int:
        """Elements."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field, or field of a field, that is no struct: its path, element type, extents, byte offset.

    strides: bytes from one element to the next along each extent
    """

    path: tuple[str, ...]
    dtype: DType
    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct as C lays it out: every field at a multiple of its alignment, the size a multiple of the largest."""

    name: str
    fields: tuple[Field, ...]
    size: int
    align: int

    def leaves(self) -> Iterator[Leaf]:
        """All fields that are no structs, in order; the extents of arrays of structs come first."""
        for f in self.fields:
            if isinstance(f.type, DType):
                yield Leaf((f.name,), f.type, f.shape, f.offset, _strides(f.shape, f.type.size))
                continue
            for leaf in f.type.leaves():
                yield Leaf((f.name, *leaf.path), leaf.dtype, (*f.shape, *leaf.shape), f.offset + leaf.offset,
                           (*_strides(f.shape, f.type.size), *leaf.strides))  # fmt: skip

    @property
    def numpy(self) -> Any:
        """The NumPy dtype with the same fields and layout."""
        import numpy as np

        formats = [(f.type.numpy, f.shape) if f.shape else f.type.numpy for f in self.fields]
        return np.dtype({"names": [f.name for f in self.fields], "formats": formats,
                         "offsets": [f.offset for f in self.fields], "itemsize": self.size}, align=True)  # fmt: skip

    def template(self, prefix: str) -> dict[str, Any]:
        """The fields as a tree whose leaves are names of flat parameters."""
        return {f.name: f"{prefix}_{f.name}" if isinstance(f.type, DType) else f.type.template(f"{prefix}_{f.name}")
                for f in self.fields}  # fmt: skip

    def __str__(self) -> str:
        return f"struct {self.name} {{ {' '.join(map(_declaration, self.fields))} }};"


def _declaration(f: Field) -> str:
    kind = f.type if isinstance(f.type, DType) else f.type.name
    return f"{kind}[{','.join(map(str, f.shape))}] {f.name};" if f.shape else f"{kind} {f.name};"


def _strides(shape: Sequence[int], size: int) -> tuple[int, ...]:
    out: list[int] = []
    for extent in reversed(shape):
        out.insert(0, size)
        size *= extent
    return tuple(out)


@dataclass(frozen=True, slots=True)
class StructSignature:
    """A signature with structs. `structs` are those declared; `parameters` those of the C function, where a struct's
    have their struct in `of`; `flat` is the signature of the wrapper, one parameter per field."""

    structs: tuple[Struct, ...]
    c: Signature
    of: Mapping[str, Struct]
    flat: Signature

    def __str__(self) -> str:
        return " ".join([*map(str, self.structs), str(self.c)])


def has_structs(text: Any) -> bool:
    """Whether a signature's text declares structs."""
    return isinstance(text, str) and _DECLARED.match(text) is not None


def parse_structs(text: str) -> StructSignature:
    """Read a signature with structs. Raises SignatureError with a caret under the place where it makes no sense."""
    structs: dict[str, Struct] = {}
    at = 0
    while match := _DECLARED.match(text, at):
        name = match[1]
        if name in structs or name in DTYPES:
            raise _error(text, match.start(1), f"`{name}` is declared twice", "give every struct a name of its own")
        parser = _FieldParser(text, structs, match.start(2), match.end(2))
        structs[name] = parser.struct(name, match.start(1))
        at = match.end()
    parser = _FieldParser(text, structs, at, len(text))
    returns, parameters, returns_status = parser.signature()
    of = {p.name: structs[p.dtype.name] for p in parameters if p.dtype.kind == "s"}
    c = Signature(tuple(parameters), returns, text, returns_status)
    flat: list[Parameter] = []
    for p in parameters:
        flat += _flattened(p, of[p.name]) if p.name in of else [p]
    names = [p.name for p in flat]
    for p in flat:
        if names.count(p.name) > 1:
            raise SignatureError(f"`{p.name}` names two parameters", where=text,
                                 because="fields are called as parameter and field with `_` between",
                                 fix="give one of them another name")
    return StructSignature(tuple(structs.values()), c, of, Signature(tuple(flat), returns, text, returns_status))


def _flattened(p: Parameter, struct: Struct) -> list[Parameter]:
    front: tuple[Extent, ...] = p.shape or ()
    return [Parameter("_".join((p.name, *leaf.path)), leaf.dtype, (*front, *map(ConstExtent, leaf.shape)), p.intent)
            for leaf in struct.leaves()]  # fmt: skip


def _error(text: str, start: int, what: str, fix: str, because: str = "") -> SignatureError:
    line = text.replace("\n", " ")
    return SignatureError(f"{what} in a signature", where=f"{line}\n{' ' * start}^", because=because, fix=fix)


class _FieldParser(Parser):
    """The parser of signatures over a part of a text, with structs as element types."""

    __slots__ = ("structs",)

    def __init__(self, text: str, structs: Mapping[str, Struct], start: int, end: int) -> None:
        self.structs = structs
        part = text[start:end]
        if end < len(text):  # the fields of a struct
            part = part.replace(";", ",")
        super().__init__(" " * start + part)  # positions are those of the whole text
        self.text = text

    def dtype(self, wanted: str) -> DType:
        kind, word, start = self.peek()
        if word == "struct":
            self.take()
            kind, word, start = self.peek()
        if kind == "word" and word in self.structs:
            self.take()
            return DType(word, "V", "ptr", self.structs[word].size, "s")
        if kind == "word" and word not in DTYPES and self.structs:
            names = ", ".join(f"`{name}`" for name in self.structs)
            raise self.error(f"`{word}` is no element type", start, f"one of {' '.join(DTYPES)}, or {names}")
        return super().dtype(wanted)

    def parameter(self, before: list[Parameter]) -> Parameter:
        start = self.peek()[2]
        p = super().parameter(before)
        if p.dtype.kind == "s" and p.shape is None:
            raise self.error(f"`{p.name}` is a struct by value", start, f"`{p.dtype}[] {p.name}` is a pointer to one",
                             because="how structs are passed by value differs from platform to platform")
        return p

    def struct(self, name: str, start: int) -> Struct:
        """The fields up to the end of the text."""
        rows: list[Parameter] = []
        while self.peek()[0] != "end":
            at = self.peek()[2]
            dtype = self.dtype("a field such as `f64[3] pos`")
            if self.peek()[1] == "*":
                raise self.error("a pointer in a struct", self.peek()[2], "pass what it points to as a parameter",
                                 because="fields are numbers, arrays of constant extents and structs")
            shape = self.shape() if self.peek()[1] == "[" else None
            kind, word, where = self.take()
            if kind != "word":
                raise self.error("expected the name of a field", where, f"`{dtype} name;`")
            if self.peek()[1] == "[":
                raise self.error(f"the shape stands after the name `{word}`", self.peek()[2],
                                 f"`{dtype}[...] {word};`")
            if any(row.name == word for row in rows):
                raise self.error(f"`{word}` names two fields", where, "give every field a name of its own")
            for extent in shape or ():
                if not isinstance(extent, ConstExtent):
                    raise self.error(f"extent `{extent}` of a field is no number", at, "fields have constant extents",
                                     because="C knows the size of a struct when it compiles")
            rows.append(Parameter(word, dtype, shape))
            if self.peek()[1] == ",":
                self.take()
        if not rows:
            raise _error(self.text, start, f"struct `{name}` has no fields", f"struct {name} {{ f64 x; }};")
        return self._laid_out(name, rows)

    def _laid_out(self, name: str, rows: Sequence[Parameter]) -> Struct:
        at, largest = 0, 1
        fields: list[Field] = []
        for p in rows:
            inner = self.structs.get(p.dtype.name) if p.dtype.kind == "s" else None
            align = inner.align if inner is not None else p.dtype.size
            size = inner.size if inner is not None else p.dtype.size
            at = -(-at // align) * align
            field = Field(p.name, inner or p.dtype, p.extents({}), at)
            fields.append(field)
            at += field.count * size
            largest = max(largest, align)
        return Struct(name, tuple(fields), -(-at // largest) * largest, largest)
