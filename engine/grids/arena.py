"""The tape of a thread where its size is not known beforehand: an arena over a slab of the launch."""

from __future__ import annotations

__all__ = ["ARENA", "CARVE", "TAPE"]

TAPE = frozenset(f"irgrad.tape.{word}" for word in ("alloc", "finish", "at"))
"""What a program asks of its arena, on a device."""
ARENA = """
define internal ptr @irgrad.tape.alloc(ptr %t, i64 %bytes) alwaysinline nounwind {
entry:
  %top = load ptr, ptr %t, align 8
  %endp = getelementptr i8, ptr %t, i64 8
  %end = load ptr, ptr %endp, align 8
  %first = ptrtoint ptr %top to i64
  %last = ptrtoint ptr %end to i64
  %room = sub i64 %last, %first
  %more = add i64 %bytes, 15
  %rounded = and i64 %more, -16
  %over = icmp ugt i64 %rounded, %room
  br i1 %over, label %full, label %some
full:
  call void @llvm.trap()
  unreachable
some:
  %next = getelementptr i8, ptr %top, i64 %rounded
  store ptr %next, ptr %t, align 8
  ret ptr %top
}
define internal void @irgrad.tape.finish(ptr %t) alwaysinline nounwind {
  ret void
}
define internal void @irgrad.tape.at(ptr %t, i64 %count, ptr %where) alwaysinline nounwind {
  ret void
}
declare void @llvm.trap()
"""
"""The tape of a thread: { top, end } in memory of its own, over a slab that is the launch's. Where the slab is full the
kernel traps: a launch fails, and gives no wrong number."""
CARVE = """
define internal ptr @irgrad.tape.carve(ptr %t, i64 %bytes) alwaysinline nounwind {
  %top = load ptr, ptr %t, align 8
  %more = add i64 %bytes, 15
  %rounded = and i64 %more, -16
  %next = getelementptr i8, ptr %top, i64 %rounded
  store ptr %next, ptr %t, align 8
  ret ptr %top
}
"""
"""The same out of a tape that is an array of the caller, which is as large as was computed before."""
