"""Pieces of memory and masks of them."""

from __future__ import annotations

from analysed import facts_of

from irgrad.engine.analyses.objects import bits_of, has_pointer, may_hold_pointer
from irgrad.engine.ir import types as ty


def test_masks_and_types() -> None:
    assert list(bits_of(0b101001)) == [0, 3, 5]
    assert may_hold_pointer(ty.I64) and not may_hold_pointer(ty.I32) and not may_hold_pointer(ty.F64)
    assert has_pointer(ty.struct((ty.I32, ty.array(2, ty.PTR)))) and not has_pointer(ty.I64)


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
