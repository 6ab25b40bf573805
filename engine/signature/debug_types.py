"""What a source calls the types of a function's parameters, from the full debug information of its IR.

Only drafts of signatures ask for it: kernels are compiled with line tables alone.

    const int *q             i32[n] q             struct s *p        struct s { f64 a; i32 b; };  s[] p
    double (*m)[3]           f64[n,3] m           void *, T **, unions, bit fields      nothing that a signature has
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from irgrad.engine.signature.dtypes import DTYPES
from irgrad.engine.signature.structs import parse_structs
from irgrad.rules.errors import SignatureError

__all__ = ["Described", "described_parameters"]

_NODE = re.compile(r"^(!\d+) = (?:distinct )?(.*)$", re.M)
_FIELD = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|[^,()]+)')
_LETTERS = {"DW_ATE_float": "f", "DW_ATE_signed": "i", "DW_ATE_signed_char": "i", "DW_ATE_unsigned": "u",
            "DW_ATE_unsigned_char": "u", "DW_ATE_UTF": "u", "DW_ATE_complex_float": "f"}  # fmt: skip
_HANDED_ON = frozenset(("DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_typedef",
                        "DW_TAG_atomic_type", "DW_TAG_enumeration_type"))  # fmt: skip
_RECORDS = ("DW_TAG_structure_type", "DW_TAG_class_type")
_POINTERS = ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")


@dataclass(frozen=True, slots=True)
class Described:
    """A parameter: the name of its element type or struct, "?" for one that no signature has; the extents behind the
    first; whether it is behind a pointer, which may be to one struct only; whether it is `const` there."""

    element: str
    extents: tuple[int, ...] = ()
    pointer: bool = False
    one: bool = False
    constant: bool = False


class _Unknown(Exception):
    """A type that no signature has."""


def described_parameters(text: str, name: str) -> tuple[list[Described], list[str]] | None:
    """The parameters of the function defined as `@name` (quoted where it must be), and declarations of their structs;
    None where the text has no types of them."""
    line = re.search(rf"^define\b[^\n]*?@{re.escape(name)}\([^\n]*!dbg (!\d+)", text, re.M)
    if line is None:
        return None
    types = _Types(dict(_NODE.findall(text)))
    listed = types.listed(types.fields(types.fields(line[1]).get("type", "")).get("types", ""))
    return ([types.parameter(ref) for ref in listed[1:]], list(types.structs.values())) if listed else None


class _Types:
    """Reads nodes of debug information. `structs` are the declarations that were needed, those they name first."""

    def __init__(self, nodes: dict[str, str]) -> None:
        self.nodes = nodes
        self.structs: dict[str, str] = {}

    def fields(self, ref: str) -> dict[str, str]:
        """The fields of a node, empty for none."""
        return {key: value.strip('"') for key, value in _FIELD.findall(self.nodes.get(ref, ""))}

    def listed(self, ref: str) -> list[str]:
        """What a list of nodes names."""
        body = self.nodes.get(ref, "")
        return [part.strip() for part in body[2:-1].split(",") if part.strip()] if body.startswith("!{") else []

    def parameter(self, ref: str) -> Described:
        """What a parameter is, "?" included."""
        before = dict(self.structs)
        try:
            fields, _, _ = self._bare(ref)
            if fields.get("tag") not in _POINTERS:
                return Described(*self._element(ref))
            base = fields.get("baseType", "")
            target, constant, _ = self._bare(base)
            one = target.get("tag") in _RECORDS or fields["tag"] != "DW_TAG_pointer_type"
            return Described(*self._element(base), pointer=True, one=one, constant=constant)
        except _Unknown:
            self.structs = before
            return Described("?")

    def _bare(self, ref: str) -> tuple[dict[str, str], bool, str]:
        """A type without qualifiers and names of its own: its fields, whether it was `const`, its last name."""
        constant, name = False, ""
        for _ in range(len(self.nodes)):
            fields = self.fields(ref)
            if fields.get("tag") not in _HANDED_ON:
                return fields, constant, fields.get("name") or name
            constant |= fields["tag"] == "DW_TAG_const_type"
            name, ref = fields.get("name") or name, fields.get("baseType", "")
        raise _Unknown

    def _element(self, ref: str) -> tuple[str, tuple[int, ...]]:
        """The name of an element type or a struct, and extents."""
        fields, _, name = self._bare(ref)
        tag, encoding, bits = fields.get("tag", ""), fields.get("encoding", ""), int(fields.get("size", "0"))
        if tag == "DW_TAG_array_type":
            element, inner = self._element(fields.get("baseType", ""))
            counts = [self.fields(row).get("count", "") for row in self.listed(fields.get("elements", ""))]
            if not all(count.isdecimal() for count in counts):
                raise _Unknown
            return element, (*map(int, counts), *inner)
        if tag in _RECORDS:
            return self._struct(fields, re.sub(r"\W", "_", name)), ()
        if encoding == "DW_ATE_boolean" and bits == 8:
            return "bool", ()
        pair = encoding == "DW_ATE_complex_float"
        found = f"{'b' if name == '__bf16' else ''}{_LETTERS.get(encoding, '?')}{bits // 2 if pair else bits}"
        if found not in DTYPES:
            raise _Unknown
        return found, (2,) if pair else ()

    def _struct(self, fields: dict[str, str], name: str) -> str:
        """The name of a struct that a signature can declare; it is declared."""
        if name in self.structs:
            return name
        rows = []
        for ref in self.listed(fields.get("elements", "")):
            member = self.fields(ref)
            if member.get("tag") == "DW_TAG_member" and "BitField" not in member.get("flags", ""):
                element, extents = self._element(member.get("baseType", ""))
                shape = f"[{','.join(map(str, extents))}]" if extents else ""
                rows.append(f"{element}{shape} {member.get('name', '')};")
            elif not self.nodes.get(ref, "").startswith(("!DISubprogram", "!DITemplate")):
                raise _Unknown  # a base, a static member
        text = f"struct {name} {{ {' '.join(rows)} }};"
        try:
            whole = parse_structs(" ".join([*self.structs.values(), text, f"void({name}[] p)"]))
        except SignatureError:
            raise _Unknown from None
        if 8 * whole.structs[-1].size != int(fields.get("size", "0")):
            raise _Unknown  # packed, or aligned otherwise
        self.structs[name] = text
        return name
