"""Pieces of memory and masks of them."""

from __future__ import annotations

from analysed import facts_of

from irgrad.engine.analyses.memory.objects import (
    alignment,
    bits_of,
    has_pointer,
    holds_nothing,
    is_never_written,
    is_tape,
    keeps_its_pointers,
    pointer_places,
    reads_bits_of_address,
    said_alignment,
)
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.text.reader import read
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
        "global @wide": 16, "global @plain": 4}  # fmt: skip


SORTS = """
@text = constant [6 x i8] c"hello\\00"
@words = constant [2 x i8] [i8 1, i8 2]
@numbers = constant [2 x double] [double 1.0, double 2.0]
@irgrad.f.r.shadow.constant.table = internal global [1 x ptr] [ptr @words]
@f.shadow.constant.table = internal global [1 x ptr] [ptr @words]
@stderr = external global ptr
@mine = global ptr null
declare ptr @malloc(i64)
declare ptr @irgrad.tape.alloc(ptr, i64)
define void @f(ptr noalias %x) {
entry:
  %h = call ptr @malloc(i64 8)
  %t = call ptr @irgrad.tape.alloc(ptr null, i64 8)
  store ptr @text, ptr %x
  store ptr @numbers, ptr %x
  store ptr @irgrad.f.r.shadow.constant.table, ptr %x
  store ptr @f.shadow.constant.table, ptr %x
  store ptr @stderr, ptr %x
  store ptr @mine, ptr %x
  store ptr @f, ptr %x
  ret void
}
"""


def test_what_can_be_where() -> None:
    """Whatever addresses seem to lead where the analysis takes all memory for one."""
    objects = facts_of(SORTS, "f", {0}).pointers.objects
    names = {o.index: str(o).split()[1] if " " in str(o) else str(o) for o in objects}
    assert {names[o.index] for o in objects if holds_nothing(o)} == {"@text", "@f"}
    assert {names[o.index] for o in objects if is_tape(o)} == {"%t"}
    fixed = {"@text", "@words", "@numbers", "@stderr", "@f"}
    assert {names[o.index] for o in objects if is_never_written(o)} == fixed
    assert {names[o.index] for o in objects if keeps_its_pointers(o)} == {*fixed, "@irgrad.f.r.shadow.constant.table"}


READ_AS_FLOATS = """
@g = global i32 0
declare ptr @malloc(i64)
define void @f(ptr noalias %x) {
entry:
  %a = alloca [3 x i32]
  %h = call ptr @malloc(i64 16)
  %inner = getelementptr i8, ptr %h, i64 8
  %l = load ptr, ptr %x
  %i0 = ptrtoint ptr %a to i64
  %i1 = ptrtoint ptr %inner to i64
  %i2 = ptrtoint ptr @g to i64
  %i3 = ptrtoint ptr %l to i64
  %i4 = ptrtoint ptr %x to i64
  %i5 = add i64 %i0, 1
  %f0 = bitcast i64 %i0 to double
  %f1 = bitcast i64 %i1 to double
  %f2 = bitcast i64 %i2 to double
  %f3 = bitcast i64 %i3 to double
  %f4 = bitcast i64 %i4 to double
  %f5 = bitcast i64 %i5 to double
  ret void
}
"""


def test_bits_of_addresses() -> None:
    """Of what is made here alone: a pointer that comes from elsewhere may be the bits of a float."""
    points = facts_of(READ_AS_FLOATS, "f", {0}).pointers
    casts = [i for i in points.root.instructions() if i.opcode == "bitcast"]
    assert [reads_bits_of_address(cast, points) for cast in casts] == [True, True, True, False, False, False]


def test_alignments_of_arguments() -> None:
    text = "define void @f(ptr %x, ptr %y) {\n  call void @g(ptr nonnull align 16 %x, ptr %y)\n  ret void\n}\n"
    module = read(text + "declare void @g(ptr, ptr)\n", roots=["f"])
    call = next(i for i in module.functions["f"].instructions() if i.is_call)
    assert [said_alignment(call, arg) for arg in call.args] == [16, 1]
