"""Floats in the caller's memory that a function moves and never accesses, where it accesses others of the structure.

    typedef struct { int cell; double charge; } particle;          sorted by p[i].cell, with memcpy

The tag of an access to a member names the structure, and where in it the floats lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irgrad.engine.analyses.memory.byte_kinds import ACCESS, kind_size
from irgrad.engine.analyses.memory.objects import bits_of
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.strided_sets import Offsets
from irgrad.engine.analyses.memory.tbaa import Tbaa
from irgrad.engine.analyses.types.copied_evidence import Copy
from irgrad.engine.analyses.types.records import Records

__all__ = ["see_beside"]


def see_beside(
    pointers: Pointers, tbaa: Tbaa, records: Records, copies: Iterable[Copy],
    tagged: Mapping[int, Mapping[tuple[Offsets, int], set[str]]],
) -> None:  # fmt: skip
    """tagged: by object, the tags of the accesses to (places, bytes). What is known of a place otherwise stays."""
    moved = set[int]()
    for copy in copies:
        for end in (copy.target, copy.source):
            moved |= set(bits_of(pointers.of(end)))
    for bit in sorted(moved & tagged.keys()):
        if pointers.objects[bit].kind not in ("argument", "pointee"):
            continue
        record = records.of(bit)
        for (places, _), tags in tagged[bit].items():
            for at, kind in (row for tag in sorted(tags) if tag for row in tbaa.floats_beside(tag)):
                where, size = places.shift(at), kind_size(kind)
                if where.start >= 0 and not record.near(where, size):
                    record.add(where, kind, size, ACCESS)
