"""Where the source says that a pointer lies: by which members of structures it is read and written (`!tbaa`).

A pointer that is read from a member of a structure was stored to that member: through the structure, through one that
holds it, through one that it holds, or without such a name (A. Diwan, K. S. McKinley, J. E. B. Moss, "Type-Based Alias
Analysis", PLDI 1998; LLVM's struct paths). Two structures that have nothing to do with one another meet at the same
offset, since programs cast between such that begin alike. What a program casts otherwise is seen by the offsets of its
accesses, and is then told apart no more (`punned`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from irgrad.engine.analyses.memory.byte_kinds import INT
from irgrad.engine.analyses.memory.objects import PointsTo
from irgrad.engine.analyses.memory.strided_sets import Offsets, touches
from irgrad.engine.analyses.memory.tbaa import Tbaa, is_reserved
from irgrad.engine.analyses.memory.text_copies import of_string
from irgrad.engine.ir.model import Instruction, Module

if TYPE_CHECKING:
    from irgrad.engine.analyses.memory.value_ranges import Ranges

__all__ = ["INTEGER", "IN_STRING", "UNNAMED", "AccessPath", "AccessPaths", "Member", "unnamed"]

_WORD = 8
Steps = tuple[tuple[str, int], ...]


class Member:
    """`steps`: (structure, offset in it), from the outermost to the innermost; `root`: of which language's types. One
    for each, compared by identity."""

    __slots__ = ("root", "steps")

    def __init__(self, steps: Steps, root: str) -> None:
        self.steps = steps
        self.root = root


class AccessPath:
    """`pointee`: the type that the pointer leads to, "" for `void *` and where types are not asked; `member`: where it
    lies, None for one that is no member. One for each, compared by identity."""

    __slots__ = ("believed", "member", "pointee")

    def __init__(self, pointee: str, member: Member | None, *, believed: bool = False) -> None:
        self.pointee = pointee
        self.member = member
        self.believed = believed or is_reserved(pointee)
        """Only the code of the standard library reads such pointers, and it reads them as what they are."""


UNNAMED = AccessPath("", None)
"""Of an access that may touch any pointer."""

INTEGER = AccessPath("an integer", None)
"""Of what the source stores as an integer: no pointer that it names is read there."""
IN_STRING = AccessPath("word of a string", None, believed=True)
"""Of what a string's own code moves without a type (`text_copies.of_string`)."""


def unnamed(_: Instruction) -> AccessPath:
    """The path of all accesses where types are not believed."""
    return UNNAMED


_SOMEWHERE = Member((), "")
"""Of what was copied with the memory around it: any member, or none."""


class _Learnt:
    """What holds for all solutions of a module, whatever passes make of it: one object for each member and path, and
    which of them offsets showed at one place (`punned`), so that no later solution has to be made twice for that."""

    def __init__(self) -> None:
        self.members: dict[tuple[Steps, str], Member] = {}
        self.paths: dict[tuple[str, Member | None], AccessPath] = {("", None): UNNAMED, ("", _SOMEWHERE): UNNAMED}
        self.one_place: dict[tuple[object, object], bool] = {}


_LEARNT: WeakKeyDictionary[Module, _Learnt] = WeakKeyDictionary()


class AccessPaths:
    """The paths of one module, and which of them may be one place."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._tbaa = Tbaa(module)
        kept = _LEARNT.setdefault(module, _Learnt())
        self._members, self._paths, self._one_place = kept.members, kept.paths, kept.one_place
        self._of_tag: dict[str, AccessPath] = {}
        self._told = True

    def of(self, access: Instruction) -> AccessPath:
        """That of the pointers that a load or store moves."""
        tag = access.metadata.get("tbaa")
        if tag is None:
            return self.of_bits(access)
        if tag not in self._of_tag:
            steps, root = key = self._tbaa.member_path(tag)
            member = self._members.setdefault(key, Member(steps, root)) if steps else None
            number = self._tbaa.kind(tag) is INT
            self._of_tag[tag] = INTEGER if number else self._path(self._tbaa.pointee(tag), member)
        found = self._of_tag[tag]
        return self.of_bits(access) if found is UNNAMED else found

    def of_bits(self, access: Instruction) -> AccessPath:
        """That of the pointers in what a load takes for anything."""
        return IN_STRING if of_string(self._module, access) else UNNAMED

    def member_of(self, access: Instruction) -> AccessPath:
        """The same, whatever the pointers lead to."""
        found = self.of(access)
        return found if found in (IN_STRING, INTEGER) else self._path("", found.member)

    def copied(self, path: AccessPath) -> AccessPath:
        """That of a pointer that was copied with the memory around it."""
        return path if path is IN_STRING else self._path(path.pointee, _SOMEWHERE)

    def _path(self, pointee: str, member: Member | None) -> AccessPath:
        return self._paths.setdefault((pointee, member), AccessPath(pointee, member))

    def meet(self, a: AccessPath, b: AccessPath) -> bool:
        """Whether a pointer that is stored by one may be read by the other."""
        if IN_STRING in (a, b):
            return not (a if b is IN_STRING else b).believed
        return self.alike(a, b) and (a is b or self._at_one_place(a, b))

    @staticmethod
    def alike(a: AccessPath, b: AccessPath) -> bool:
        """Whether both lead to one type, or one to any."""
        return a.pointee == b.pointee or not a.pointee or not b.pointee

    def _at_one_place(self, a: AccessPath, b: AccessPath) -> bool:
        if not self._told or a is UNNAMED or b is UNNAMED:
            return True
        key = a.member or a, b.member or b
        found = self._one_place.get(key)
        return _at_one_place(a, b) if found is None else found

    def tell_members(self, told: bool) -> None:
        """Whether places are told apart at all."""
        self._told = told

    def punned(self, pointers: PointsTo, ranges: Ranges) -> bool:
        """Let paths meet that offsets show at one place of an object. True where there were any.

        Until a pointer is first read by another path than it was stored by, all that was found holds: so the offsets
        of that load and of that store are right, and touch where both are known."""
        stored: dict[int, dict[AccessPath, set[Offsets]]] = {}
        loaded: dict[int, dict[AccessPath, set[Offsets]]] = {}
        for access, path in self._accesses(pointers):
            table, address = (loaded, 0) if access.opcode == "load" else (stored, 1)
            for bit, places in ranges.places(access.operands[address]).items():
                if not places.below and (places.exact or not 0 < places.stride < 2 * _WORD):
                    table.setdefault(bit, {}).setdefault(path, set()).add(places)
        found = False
        for bit, rows in loaded.items():
            for (a, here), (b, there) in product(rows.items(), stored.get(bit, {}).items()):
                if not self._at_one_place(a, b) and any(touches(x, y, 1 - _WORD, _WORD) for x in here for y in there):
                    self._one_place[a.member or a, b.member or b] = self._one_place[b.member or b, a.member or a] = True
                    found = True
        return found

    def _accesses(self, pointers: PointsTo) -> Iterator[tuple[Instruction, AccessPath]]:
        for fn in pointers.functions:
            for instr in fn.instructions():
                if instr.opcode in ("load", "store"):
                    path = self.of(instr)
                    if path is not UNNAMED:
                        yield instr, path


def _at_one_place(a: AccessPath, b: AccessPath) -> bool:
    if a.member is None or b.member is None:  # a pointer to a type in an array is no `void *` of a structure
        return a.member is b.member or bool(a.pointee and b.pointee) or _SOMEWHERE in (a.member, b.member)
    if _SOMEWHERE in (a.member, b.member) or a.member.root != b.member.root:
        return True
    there = dict(b.member.steps)
    for structure, offset in a.member.steps:
        if structure in there:
            return offset == there[structure]
    return not {offset for _, offset in a.member.steps}.isdisjoint(there.values())
