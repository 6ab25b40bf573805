"""Types that the front end wrote down: `!tbaa` on accesses and `!tbaa.struct` on copies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from irgrad.engine.analyses.memory.byte_kinds import INT, PTR, WORD, Kind, Mark
from irgrad.engine.analyses.memory.objects import function_of, has_pointer
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import CHOICES


class _Pointers(Mark):
    """Pointers to one type or to some."""

    __slots__ = ()


class _Reserved(_Pointers):
    """Those that only the standard library's own code reads and writes."""

    __slots__ = ()


TYPE_TAG = "irgrad.type"
"""`!tbaa` where the source may break C's rules of aliasing: LLVM and points-to sets conclude nothing from it."""
AS_FLOAT = "irgrad.word"
"""On loads of integers that were loads of doubles, before these were found to be pointers perhaps."""
NO_POINTER = "irgrad.no_pointer"
"""On loads of doubles where pointers may lie as well, but none has been seen to lie for certain."""
_NAMED = _Pointers("pointer to a named type")
STRING_WORD = Mark("word of a string")
"""What a string's own code moves without a type (`text_copies.of_string`)."""
_NAMES: dict[str, Kind] = {
    "double": ty.F64, "float": ty.F32, "long double": ty.F80, "_Float16": ty.HALF, "__fp16": ty.HALF, "half": ty.HALF,
    "__bf16": ty.BFLOAT, "any pointer": PTR, "vtable pointer": PTR,
    "int": INT, "long": INT, "short": INT, "long long": INT, "bool": INT, "_Bool": INT, "__int128": INT, "char8_t": INT,
    "wchar_t": INT, "char16_t": INT, "char32_t": INT, WORD.text: WORD,
}  # fmt: skip
_DEEPEST = 64  # structures in one another
_MOST_COPIES = 64  # values that what is stored is one of
_ITEM = re.compile(r'!"(?:[^"\\]|\\.)*"|![0-9]+|i64 -?\d+|null')
# a structure of namespace std (or one in it) with a name that no program may use: __tree_end_node, _Rb_tree_node_base
_RESERVED = re.compile(r"p\d+ _ZTSN?St(?:3__\d|8__detail)?(?!3__\d)\d+_[A-Z_]")
_RESERVED_NAME = re.compile(r'%?"?(?:class|struct)\.std::(?:__\d+::|__cxx\d+::|__detail::)?(?!__\d+::)_[A-Z_]')

MEMBERS = "irgrad members"
"""How the root of types begins that no source gives: members of structures that a language's own code reads and writes,
as nobody else does."""


class Tbaa:
    """Reads type-based alias metadata of one module, node by node, once."""

    def __init__(self, module: Module) -> None:
        self._metadata = module.metadata
        self._kinds: dict[str, Kind | None] = {}
        self._structs: dict[str, tuple[tuple[int, int, Kind | None], ...]] = {}
        self._reserved: dict[str, _Reserved] = {}

    def _items(self, node: str) -> list[str]:
        return _ITEM.findall(self._metadata.get(node, ""))

    def kind(self, node: str) -> Kind | None:
        """The kind of the scalar that an access with this tag touches; None for char, unions and unknown names."""
        if node not in self._kinds:
            self._kinds[node] = self._read(node)
        return self._kinds[node]

    def is_vtable(self, node: str) -> bool:
        """The access reads or writes the pointer to an object's table of virtual functions."""
        return self._name(node) == "vtable pointer"

    def is_truth(self, node: str) -> bool:
        """The access reads or writes a truth value, one byte that is 0 or 1."""
        return self._name(node) in ("bool", "_Bool")

    def is_member(self, node: str) -> bool:
        """The tag is of `MEMBERS`: no program can use such memory as something else."""
        items = self._items(node)
        if items and not items[0].startswith('!"'):
            items = self._items(items[1])
        while len(items) >= 2:
            items = self._items(items[1])
        return bool(items) and items[0].startswith(f'!"{MEMBERS}')

    def of_member(self, node: str) -> bool:
        """The access goes to a member of a structure, by a tag (structure, member, offset)."""
        items = self._items(node)
        return len(items) >= 3 and not items[0].startswith('!"') and items[0] != items[1]

    def member_path(self, node: str) -> tuple[tuple[tuple[str, int], ...], str]:
        """The members by which an access goes, (structure, offset in it) from the outermost on, and the root of the
        types; no members for one that names none, and for one of characters or unions."""
        base, access, *rest = [*self._items(node), "", ""]
        if not self.of_member(node) or self.kind(node) is not PTR:
            return (), ""
        steps, offset = [], int(rest[0].split()[1])
        while base != access:
            steps.append((base, offset))
            _, *members = self._items(base)
            places = [(int(at.split()[1]), member) for member, at in zip(members[::2], members[1::2], strict=False)]
            inside = [(at, member) for at, member in places if at <= offset]
            if not inside or len(steps) > _DEEPEST:
                return (), ""
            at, base = inside[-1]
            offset -= at
        while len(items := self._items(access)) >= 2:
            access = items[1]
        return tuple(steps), items[0] if items else ""

    def _name(self, node: str) -> str:
        items = self._items(node)
        if len(items) >= 3 and not items[0].startswith('!"'):
            items = self._items(items[1])  # access tag: base type, access type, offset
        return items[0][2:-1] if items and items[0].startswith('!"') else ""

    def pointee(self, node: str) -> str:
        """What the accessed pointers lead to, as the source says; "" for `void *` and for what is no pointer."""
        name = self._name(node)
        return name if name == "vtable pointer" or re.match(r"p\d+ ", name) else ""

    def pointer_kind(self, node: str) -> Kind:
        """Of the pointers that an access moves: one for each type of the standard library's own, one for all other
        types, `PTR` for those to anything."""
        name = self.pointee(node)
        if is_reserved(name):
            return self._reserved.setdefault(name, _Reserved(name))
        return _NAMED if name else PTR

    def floats_behind(self, node: str) -> ty.FloatType | None:
        """The type of the floats that the accessed pointers lead to, as the source says (`double *`)."""
        kind = _NAMES.get(self.pointee(node).removeprefix("p1 "))
        return kind if isinstance(kind, ty.FloatType) else None

    def floats_beside(self, tag: str) -> list[tuple[int, ty.FloatType]]:
        """The floats of the structure that an access to a member touches: (distance from that member, type)."""
        if not self.of_member(tag):
            return []
        base, _, offset, *_ = self._items(tag)
        return [(at - int(offset.split()[1]), kind) for at, kind in self._floats(base)]

    def _floats(self, node: str, at: int = 0) -> Iterator[tuple[int, ty.FloatType]]:
        name, *rest = self._items(node)
        kind = _NAMES.get(name[2:-1])
        if isinstance(kind, ty.FloatType):
            yield at, kind
        elif kind is None:  # a structure; characters are what their root is
            for member, where in zip(rest[::2], rest[1::2], strict=False):
                yield from self._floats(member, at + int(where.split()[1]))

    def _read(self, node: str) -> Kind | None:
        name = self._name(node)
        if name in _NAMES:
            return _NAMES[name]
        return PTR if re.match(r"p\d+ ", name) else None

    def fields(self, node: str) -> tuple[tuple[int, int, Kind | None], ...]:
        """(offset, size, kind) of what a copy with this `!tbaa.struct` moves."""
        if node not in self._structs:
            items = self._items(node)
            found = []
            for at, size, tag in zip(items[::3], items[1::3], items[2::3], strict=False):
                found.append((int(at.split()[1]), int(size.split()[1]), self.kind(tag)))
            self._structs[node] = tuple(found)
        return self._structs[node]


def is_reserved(pointee: str) -> bool:
    """Whether only the code of the standard library reads and writes such pointers, and always as what they are."""
    return bool(_RESERVED.match(pointee))


def is_reserved_name(type_name: str) -> bool:
    """Whether a type of this name in LLVM's words (`class.std::__1::__tree_end_node`) is one of the standard library's
    own: no program may use such names."""
    return bool(_RESERVED_NAME.match(type_name))


def may_be_read_as(kind: Kind, stored_as: Kind) -> bool:
    """Whether an access of one kind may find what one of another kind stored."""
    kinds = (kind, stored_as)
    if STRING_WORD in kinds:
        return not any(isinstance(one, _Reserved) for one in kinds)
    return kind is stored_as or (PTR in kinds and any(isinstance(one, _Pointers) for one in kinds))


def type_tag(access: Instruction) -> str | None:
    """The node that says as what the source accesses memory."""
    return access.metadata.get("tbaa") or access.metadata.get(TYPE_TAG)


def word_node(module: Module) -> str:
    """The node for `TYPE_TAG` that says of an access that it moves a word which is a float or a pointer."""
    wanted, metadata = f'!{{!"{WORD}"}}', module.metadata
    for name, text in metadata.items():
        if text == wanted:
            return name
    name = next(name for i in count(len(metadata)) if (name := f"!{i}") not in metadata)
    metadata[name] = wanted
    return name


def floats_said(module: Module, addresses: Iterable[Value]) -> ty.FloatType | None:
    """The one type of floats that addresses lead to by the types of the source, where they are read from memory."""
    tbaa, found = Tbaa(module), set[ty.FloatType]()
    for address in addresses:
        start = address
        while isinstance(start, Instruction) and start.opcode == "getelementptr":
            start = start.operands[0]
        tag = type_tag(start) if isinstance(start, Instruction) and start.opcode == "load" else None
        kind = tbaa.floats_behind(tag) if tag else None
        found |= {kind} if kind is not None else set()
    return found.pop() if len(found) == 1 else None


class AccessTypes:
    """Which integers the source holds for numbers: under strict aliasing such an integer is a pointer only where one
    was stored as an integer."""

    def __init__(self, module: Module) -> None:
        self._tbaa = Tbaa(module)
        self._typed: dict[Function, bool] = {}

    def is_number(self, access: Instruction) -> bool:
        """A load or store of what the source calls an integer."""
        return self._kind(access) is INT

    def apart(self, load: Instruction, store: Instruction) -> bool:
        """The load reads what the source calls a pointer, and the store writes what it calls a float."""
        return self._kind(load) is PTR and isinstance(self._kind(store), ty.FloatType)

    def keeps_number(self, store: Instruction) -> bool:
        """The store may write a pointer where an integer is read. Without its type's name: unless it writes a pointer,
        in a function that names the types of others."""
        kind = self._kind(store)
        if kind is not None:
            return kind is INT
        value = store.operands[0]
        if isinstance(value, Instruction) and value.opcode == "load" and ty.store_size(value.type) > 8:
            return self._kind(value) is INT  # copied as memcpy does it: it stays what it was (`copied`)
        return not has_pointer(value.type) or not self._names(function_of(store))

    def copied(self, store: Instruction) -> list[Instruction]:
        """The loads whose bytes a store without a type's name writes as they were, as memcpy does: what was a number
        is one."""
        work, seen = [store.operands[0]] if self._kind(store) is None else [], set[Value]()
        while work and len(seen) < _MOST_COPIES:
            value = work.pop()
            if isinstance(value, Instruction) and value not in seen:
                seen.add(value)
                work += value.operands[value.opcode == "select" :] if value.opcode in CHOICES else ()
        return [v for v in seen if isinstance(v, Instruction) and v.opcode == "load" and self._kind(v) is None]

    def _kind(self, access: Instruction) -> Kind | None:
        tag = access.metadata.get("tbaa")
        return self._tbaa.kind(tag) if tag else None

    def _names(self, fn: Function) -> bool:
        if fn not in self._typed:
            self._typed[fn] = any("tbaa" in instr.metadata for instr in fn.instructions())
        return self._typed[fn]
