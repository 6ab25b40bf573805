"""What the derivative of a loop in segments calls (see `differentiate/reverse/segments.py`), in LLVM IR."""

from __future__ import annotations

__all__ = ["PREFIX", "SEGMENTS"]

PREFIX = "irgrad.segments."
SEGMENTS = {
    # Units to run before the next state is saved, of `units` up to the end, where `free` more states may be kept: with
    # s = free + 1 of them and t runs of each unit, C(s + t, s) units can be reversed.
    f"{PREFIX}ahead": """
define internal i64 @irgrad.segments.ahead(i64 %units, i64 %free) nounwind {
entry:
  %none = icmp eq i64 %free, 0
  br i1 %none, label %all, label %some
all:
  ret i64 %units
some:
  %less = sub i64 %units, 1
  %each = icmp uge i64 %free, %less
  br i1 %each, label %one, label %count
one:
  ret i64 1
count:
  %s = add i64 %free, 1
  br label %loop
loop:
  %t = phi i64 [ 1, %count ], [ %next, %loop ]
  %before = phi i64 [ 1, %count ], [ %reach, %loop ]
  %sum = add i64 %s, %t
  %product = mul i64 %before, %sum
  %reach = udiv i64 %product, %t
  %next = add i64 %t, 1
  %enough = icmp uge i64 %reach, %units
  br i1 %enough, label %out, label %loop
out:
  ret i64 %before
}
""",
    # States that are no whole number of units from the start go to the spare ones. State: { the last one, place, ... }
    f"{PREFIX}thin": """
define internal void @irgrad.segments.thin(ptr %top, i64 %unit, ptr %spare, ptr %free) nounwind {
entry:
  br label %look
look:
  %link = phi ptr [ %top, %entry ], [ %node, %stay ], [ %link, %go ]
  %node = load ptr, ptr %link, align 8
  %done = icmp eq ptr %node, null
  br i1 %done, label %out, label %one
one:
  %placep = getelementptr i8, ptr %node, i64 8
  %place = load i64, ptr %placep, align 8
  %rest = urem i64 %place, %unit
  %whole = icmp eq i64 %rest, 0
  br i1 %whole, label %stay, label %go
stay:
  br label %look
go:
  %before = load ptr, ptr %node, align 8
  store ptr %before, ptr %link, align 8
  %other = load ptr, ptr %spare, align 8
  store ptr %other, ptr %node, align 8
  store ptr %node, ptr %spare, align 8
  %count = load i64, ptr %free, align 8
  %more = add i64 %count, 1
  store i64 %more, ptr %free, align 8
  br label %look
out:
  ret void
}
""",
}
"""The functions by their names."""
