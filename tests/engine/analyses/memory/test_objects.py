"""Pieces of memory and masks of them."""

from __future__ import annotations

from analysed import facts_of

from irgrad.engine.analyses.memory.objects import alignment, bits_of, has_pointer, pointer_places
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.types import may_hold_pointer


def test_masks_and_types() -> None:
    assert list(bits_of(0b101001)) == [0, 3, 5]
    assert may_hold_pointer(ty.I64) and not may_hold_pointer(ty.I32) and not may_hold_pointer(ty.F64)
    assert all(may_hold_pointer(ty.vector(n, t)) for n, t in ((16, ty.I8), (8, ty.I8), (4, ty.I32), (2, ty.I64)))
    assert not may_hold_pointer(ty.vector(4, ty.I8)) and not may_hold_pointer(ty.vector(8, ty.F64))
    assert has_pointer(ty.struct((ty.I32, ty.array(2, ty.PTR)))) and not has_pointer(ty.I64)


def test_places_of_pointers_in_wide_values() -> None:
    assert pointer_places(ty.PTR) == pointer_places(ty.I64) == (0,)
    assert pointer_places(ty.vector(2, ty.I64)) == pointer_places(ty.int_(128)) == (0, 8)
    assert pointer_places(ty.vector(16, ty.I8)) == pointer_places(ty.vector(4, ty.I32)) == (0, 8)
    assert pointer_places(ty.vector(4, ty.I8)) == ()
    assert pointer_places(ty.struct((ty.I32, ty.PTR, ty.array(2, ty.struct((ty.F64, ty.PTR)))))) == (8, 24, 40)
    assert pointer_places(ty.vector(4, ty.F64)) == pointer_places(ty.I32) == ()


TEXT = """
define void @f(ptr noalias %x) {
entry:
  %a = alloca [3 x double]
  store ptr %a, ptr %x
  ret void
}
"""


def test_sizes_and_names() -> None:
    objects = facts_of(TEXT, "f", {0}).pointers.objects
    assert [(str(o), o.size) for o in objects] == [("unknown", None), ("argument %x", None), ("alloca %a in @f", 24)]


ALIGNED = """
@wide = global i32 0, align 16
@plain = global i32 0
declare ptr @malloc(i64)
define void @f(ptr noalias %x) {
entry:
  %a = alloca [3 x i32]
  %b = alloca i8, align 4
  %h = call ptr @malloc(i64 8)
  store ptr @wide, ptr %x
  store ptr @plain, ptr %x
  ret void
}
"""


def test_alignments() -> None:
    objects = facts_of(ALIGNED, "f", {0}).pointers.objects
    assert {str(o): alignment(o) for o in objects} == {
        "unknown": 1, "argument %x": 1, "alloca %a in @f": 4, "alloca %b in @f": 4, "heap %h in @f": 8,
        "global @wide": 16, "global @plain": 1}  # fmt: skip
