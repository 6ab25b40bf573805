"""Sizes of tapes as programs over integer arguments, against Python's own integers."""

from __future__ import annotations

from textwrap import dedent

import pytest

from irgrad.engine.differentiate.tape.tape_size import Room, RoomWriter
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block
from irgrad.engine.ir.text.reader import read

TEXT = """
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @f(i64)
define void @sizes(ptr %n, ptr %k, ptr %x) {
  %a = load i64, ptr %n
  %b = load i32, ptr %k
  %wide = sext i32 %b to i64
  %twice = mul nsw i64 %a, 2
  %most = call i64 @llvm.umax.i64(i64 %twice, i64 %wide)
  %less = sub i64 %a, 1
  %count = add nuw nsw i64 %less, 1
  %bytes = mul nuw nsw i64 %count, 8
  %down = sub i32 %b, 3
  %from32 = zext i32 %down to i64
  %some = icmp sgt i64 %a, 0
  %either = select i1 %some, i64 %bytes, i64 %from32
  %third = udiv i64 %a, 3
  %half = ashr i64 %wide, 1
  %mod = srem i64 %wide, 5
  %data = load i64, ptr %x
  %unknown = add i64 %a, %data
  %called = call i64 @f(i64 %a)
  ret void
}
"""
FUNCTION = read(TEXT, roots=["sizes"]).functions["sizes"]
VALUES = {instr.name: instr for instr in FUNCTION.instructions() if instr.name}
ARGUMENTS = {FUNCTION.args[0]: 0, FUNCTION.args[1]: 4}


def _size(name: str, condition: str = "", outcome: bool = True, fixed: int = 0, **scalars: int) -> int | None:
    writer = RoomWriter(ARGUMENTS)
    assert writer.add(VALUES[name], [(VALUES[condition], outcome)] if condition else [])
    room = Room.from_text(writer.room(fixed).to_text())
    assert room == Room.from_text(room.to_text())
    return room.bytes({{"n": 0, "k": 4}[key]: value for key, value in scalars.items()})


def _up(size: int) -> int:
    return -(-size // 64) * 64


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000])
def test_arrays_are_as_long_as_their_loop(n: int) -> None:
    assert _size("bytes", n=n) == _up(8 * n)
    assert _size("twice", n=n, fixed=20) == _up(32 + -(-2 * n // 16) * 16)


def test_operations() -> None:
    assert _size("most", n=100, k=-1) == 0, "as large as -1 without sign: no array is"
    assert _size("most", n=100, k=300) == _up(300)
    assert _size("third", n=1000) == _up(333)
    assert _size("half", k=1001) == _up(500)
    assert _size("mod", k=-7) == 0, "the remainder is -2"
    assert _size("mod", k=9) == _up(4)
    assert _size("either", n=10, k=0) == _up(80)
    assert _size("either", n=0, k=67) == _up(64)


def test_what_is_not_reached_takes_no_room() -> None:
    assert _size("bytes", "some", n=5) == 64
    assert _size("bytes", "some", False, n=5) == 0
    assert _size("bytes", n=-1) == 0, "it wraps, so it does not run"
    assert _size("from32", n=1, k=-(1 << 31) + 2, fixed=8) == _up(16 + (1 << 31) - 1)
    assert _size("wide", "some", n=0, fixed=8) == 64, "an array that is ruled out may depend on what is missing"


def test_what_is_missing() -> None:
    assert _size("bytes") is None
    assert _size("either", n=10) is None
    writer = RoomWriter(ARGUMENTS)
    assert not writer.add(VALUES["unknown"], [])
    assert not writer.add(VALUES["called"], [])
    assert writer.room(0).bytes({}) == 0


def test_the_same_as_code() -> None:
    """A size that is written as instructions is the size that it was cut out of."""
    text = """
    declare i64 @llvm.umin.i64(i64, i64)
    define void @chunk(i64 %c, i64 %last, i32 %m) {
      %whole = add nuw nsw i64 %last, 1
      %length = lshr i64 %whole, 4
      %more = and i64 %whole, 15
      %longer = icmp ult i64 %c, %more
      %one = zext i1 %longer to i64
      %count = add nuw nsw i64 %length, %one
      %wide = sext i32 %m to i64
      %row = mul nuw nsw i64 %count, %wide
      %bytes = shl nuw nsw i64 %row, 3
      %some = icmp sgt i32 %m, 2
      %least = call i64 @llvm.umin.i64(i64 %bytes, i64 4000)
      %third = udiv i64 %bytes, 3
      ret void
    }
    """
    fn = read(dedent(text), roots=["chunk"]).functions["chunk"]
    values = {instr.name: instr for instr in fn.instructions() if instr.name}
    arguments = {arg: n for n, arg in enumerate(fn.args)}
    writer = RoomWriter({}, arguments)
    assert writer.add(values["bytes"], []) and writer.add(values["least"], [(values["some"], False)])
    room = writer.room(20)
    assert room.cheap and room.decides(0, 0, 15) == (0, 15) and room.decides(1, 0, 15) == range(16)
    assert room.decides(3, 0, 15) == (0,)
    b = Builder(Block())
    again = RoomWriter({}, arguments)
    assert again.add(room.emit(b, dict(enumerate(fn.args)), {}), [])
    for c, last, m in [(0, 99, 3), (15, 99, 3), (3, 98, 2), (4, 98, 2), (0, 0, 1), (7, 3, 5), (0, 63, 0)]:
        scalars = {0: c, 1: last, 2: m}
        assert again.room(0).bytes(scalars) == room.bytes(scalars)
    nodes = len(again.nodes)
    assert again.node(room.emit(b, dict(enumerate(fn.args)), {})) is not None
    assert len(again.nodes) == nodes, "what is the same is one node"
    trap = RoomWriter({}, arguments)
    assert trap.add(values["third"], []) and not trap.room(0).cheap
