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
    # Pieces of memory behind addresses in tables, for a list { count, bytes, { address, size }... }: each address that
    # lies at the table, and steps further; where a level follows, the address there is that of the next level's table,
    # so many bytes further. Nothing is read where it is not to be run, or there are no bytes.
    f"{PREFIX}note": """
define internal void @irgrad.segments.note(
    ptr %list, i64 %runs, ptr %table, i64 %c0, i64 %s0, i64 %f0, i64 %o0, i64 %c1, i64 %s1, i64 %f1, i64 %o1,
    i64 %c2, i64 %s2, i64 %low, i64 %high
) nounwind {
entry:
  %size = sub i64 %high, %low
  %some = icmp sgt i64 %size, 0
  %is = icmp ne i64 %runs, 0
  %go = and i1 %some, %is
  %n = load i64, ptr %list, align 8
  %follow.a = icmp ne i64 %f0, 0
  %follow.b = icmp ne i64 %f1, 0
  br i1 %go, label %a, label %out
a:
  %i = phi i64 [ 0, %entry ], [ %i.next, %a.next ]
  %n.a = phi i64 [ %n, %entry ], [ %n.next, %a.next ]
  %p.a = phi ptr [ %table, %entry ], [ %p.a.next, %a.next ]
  br i1 %follow.a, label %a.follow, label %a.on
a.follow:
  %at.a = load ptr, ptr %p.a, align 1
  %to.a = getelementptr i8, ptr %at.a, i64 %o0
  br label %a.on
a.on:
  %q.a = phi ptr [ %p.a, %a ], [ %to.a, %a.follow ]
  br label %b
b:
  %j = phi i64 [ 0, %a.on ], [ %j.next, %b.next ]
  %n.b = phi i64 [ %n.a, %a.on ], [ %n.next, %b.next ]
  %p.b = phi ptr [ %q.a, %a.on ], [ %p.b.next, %b.next ]
  br i1 %follow.b, label %b.follow, label %b.on
b.follow:
  %at.b = load ptr, ptr %p.b, align 1
  %to.b = getelementptr i8, ptr %at.b, i64 %o1
  br label %b.on
b.on:
  %q.b = phi ptr [ %p.b, %b ], [ %to.b, %b.follow ]
  br label %c
c:
  %k = phi i64 [ 0, %b.on ], [ %k.next, %c ]
  %n.c = phi i64 [ %n.b, %b.on ], [ %n.next, %c ]
  %p.c = phi ptr [ %q.b, %b.on ], [ %p.c.next, %c ]
  %row = load ptr, ptr %p.c, align 1
  %begin = getelementptr i8, ptr %row, i64 %low
  %n.next = add i64 %n.c, 1
  %at = getelementptr { ptr, i64 }, ptr %list, i64 %n.next
  store ptr %begin, ptr %at, align 8
  %length = getelementptr i8, ptr %at, i64 8
  store i64 %size, ptr %length, align 8
  %p.c.next = getelementptr i8, ptr %p.c, i64 %s2
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k, %c2
  br i1 %k.more, label %c, label %b.next
b.next:
  %p.b.next = getelementptr i8, ptr %p.b, i64 %s1
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j, %c1
  br i1 %j.more, label %b, label %a.next
a.next:
  %p.a.next = getelementptr i8, ptr %p.a, i64 %s0
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i, %c0
  br i1 %i.more, label %a, label %done
done:
  store i64 %n.next, ptr %list, align 8
  br label %out
out:
  ret void
}
""",
    # Sorts the pieces of a list by their addresses (comb sort), and joins those that meet; sums their bytes.
    f"{PREFIX}join": """
define internal void @irgrad.segments.join(ptr %list) nounwind {
entry:
  %n = load i64, ptr %list, align 8
  br label %round
round:
  %wide = phi i64 [ %n, %entry ], [ %gap, %end ]
  %ten = mul i64 %wide, 10
  %less = udiv i64 %ten, 13
  %none = icmp eq i64 %less, 0
  %gap = select i1 %none, i64 1, i64 %less
  br label %look
look:
  %i = phi i64 [ 1, %round ], [ %i.next, %next ]
  %moved = phi i1 [ false, %round ], [ %moved.now, %next ]
  %other = add i64 %i, %gap
  %there = icmp ule i64 %other, %n
  br i1 %there, label %compare, label %end
compare:
  %x = getelementptr { i64, i64 }, ptr %list, i64 %i
  %y = getelementptr { i64, i64 }, ptr %list, i64 %other
  %xp = load i64, ptr %x, align 8
  %yp = load i64, ptr %y, align 8
  %behind = icmp ugt i64 %xp, %yp
  br i1 %behind, label %swap, label %next
swap:
  %xs = getelementptr i8, ptr %x, i64 8
  %ys = getelementptr i8, ptr %y, i64 8
  %xn = load i64, ptr %xs, align 8
  %yn = load i64, ptr %ys, align 8
  store i64 %yp, ptr %x, align 8
  store i64 %xp, ptr %y, align 8
  store i64 %yn, ptr %xs, align 8
  store i64 %xn, ptr %ys, align 8
  br label %next
next:
  %moved.now = phi i1 [ %moved, %compare ], [ true, %swap ]
  %i.next = add i64 %i, 1
  br label %look
end:
  %far = icmp ugt i64 %gap, 1
  %again = or i1 %far, %moved
  br i1 %again, label %round, label %join
join:
  %k = phi i64 [ 1, %end ], [ %k.next, %joined ]
  %kept = phi i64 [ 0, %end ], [ %kept.now, %joined ]
  %last = phi i64 [ 0, %end ], [ %last.now, %joined ]
  %total = phi i64 [ 0, %end ], [ %total.now, %joined ]
  %some = icmp ule i64 %k, %n
  br i1 %some, label %one, label %out
one:
  %piece = getelementptr { i64, i64 }, ptr %list, i64 %k
  %begin = load i64, ptr %piece, align 8
  %sizep = getelementptr i8, ptr %piece, i64 8
  %size = load i64, ptr %sizep, align 8
  %stop = add i64 %begin, %size
  %first = icmp eq i64 %kept, 0
  %apart = icmp ugt i64 %begin, %last
  %new = or i1 %first, %apart
  br i1 %new, label %keep, label %grow
keep:
  %kept.more = add i64 %kept, 1
  %to = getelementptr { i64, i64 }, ptr %list, i64 %kept.more
  store i64 %begin, ptr %to, align 8
  %to.size = getelementptr i8, ptr %to, i64 8
  store i64 %size, ptr %to.size, align 8
  br label %joined
grow:
  %longer = icmp ugt i64 %stop, %last
  %reach = select i1 %longer, i64 %stop, i64 %last
  %on = getelementptr { i64, i64 }, ptr %list, i64 %kept
  %on.begin = load i64, ptr %on, align 8
  %on.whole = sub i64 %reach, %on.begin
  %on.size = getelementptr i8, ptr %on, i64 8
  store i64 %on.whole, ptr %on.size, align 8
  br label %joined
joined:
  %kept.now = phi i64 [ %kept.more, %keep ], [ %kept, %grow ]
  %last.now = phi i64 [ %stop, %keep ], [ %reach, %grow ]
  %before = phi i64 [ %begin, %keep ], [ %last, %grow ]
  %added = sub i64 %last.now, %before
  %total.now = add i64 %total, %added
  %k.next = add i64 %k, 1
  br label %join
out:
  store i64 %kept, ptr %list, align 8
  %bytes = getelementptr i8, ptr %list, i64 8
  store i64 %total, ptr %bytes, align 8
  ret void
}
""",
}
"""The functions by their names."""
