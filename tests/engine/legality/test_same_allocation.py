"""What shows that two addresses lie in one allocation, and what does not."""

from __future__ import annotations

import pytest
from handwritten.made import asked, module_of

from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.legality.same_allocation import SameAllocation
from irgrad.engine.pipeline.derivatives import analysed

PROGRAM = """
declare noalias ptr @malloc(i64)
@table = global [8 x double] zeroinitializer
define internal void @ends(ptr %first, ptr %last, ptr %other, ptr %o) noinline {
  %handed.a = getelementptr i8, ptr %first, i64 8
  %handed.b = getelementptr i8, ptr %last, i64 8
  %foreign.a = getelementptr i8, ptr %first, i64 8
  %foreign.b = getelementptr i8, ptr %other, i64 8
  %f = load double, ptr %handed.a
  %g = load double, ptr %handed.b
  %h = load double, ptr %foreign.b
  %fg = fadd double %f, %g
  %fgh = fadd double %fg, %h
  store double %fgh, ptr %o
  ret void
}
define void @f(ptr %x, ptr %rows, ptr %o, i64 %n) {
entry:
  %moved.a = getelementptr double, ptr %x, i64 %n
  %moved.b = getelementptr double, ptr %x, i64 1
  %from.a = getelementptr [8 x double], ptr @table, i64 0, i64 %n
  %from.b = getelementptr [8 x double], ptr @table, i64 0, i64 2
  %block = call ptr @malloc(i64 64)
  %one = getelementptr ptr, ptr %rows, i64 %n
  %elements.a = load ptr, ptr %one
  %next = getelementptr i8, ptr %one, i64 8
  %fields.a = load ptr, ptr %one
  %fields.b = load ptr, ptr %next
  %two = getelementptr ptr, ptr %rows, i64 2
  %elements.b = load ptr, ptr %two
  %again.a = load ptr, ptr %one
  %kept.a = load ptr, ptr %one
  store double 1.0, ptr @table
  %kept.b = load ptr, ptr %one
  store ptr %x, ptr %two
  %again.b = load ptr, ptr %one
  call void @ends(ptr %x, ptr %moved.a, ptr %block, ptr %o)
  br label %loop
loop:
  %walks.a = phi ptr [ %x, %entry ], [ %on, %loop ]
  %last = phi ptr [ %elements.a, %entry ], [ %now, %loop ]
  %span.a = phi ptr [ %x, %entry ], [ %grown.a, %loop ]
  %span.b = phi ptr [ %moved.a, %entry ], [ %grown.b, %loop ]
  %crossed.a = phi ptr [ %x, %entry ], [ %crossed.b, %loop ]
  %crossed.b = phi ptr [ %moved.a, %entry ], [ %now, %loop ]
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %on = getelementptr double, ptr %walks.a, i64 1
  %walks.b = getelementptr double, ptr %x, i64 2
  %place = getelementptr ptr, ptr %rows, i64 %i
  %now = load ptr, ptr %place
  %grown.a = call ptr @malloc(i64 64)
  %grown.b = getelementptr i8, ptr %grown.a, i64 %i
  %turns.a = getelementptr double, ptr %last, i64 1
  %turns.b = getelementptr double, ptr %now, i64 1
  %apart.a = getelementptr i8, ptr %block, i64 8
  %apart.b = getelementptr i8, ptr %walks.a, i64 8
  %v = load double, ptr %walks.a
  store double %v, ptr %turns.a
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  %to.a = getelementptr i8, ptr %elements.a, i64 8
  %to.b = getelementptr i8, ptr %elements.b, i64 0
  %jumps.a = getelementptr i8, ptr %elements.a, i64 8
  %jumps.b = getelementptr i8, ptr %block, i64 0
  br label %walk
walk:
  %at = phi ptr [ %to.a, %done ], [ %further, %walk ]
  %chain = phi ptr [ %jumps.a, %done ], [ %link, %walk ]
  %link = load ptr, ptr %chain
  %here = load double, ptr %at
  %further = getelementptr i8, ptr %at, i64 8
  %last.link = icmp eq ptr %link, %jumps.b
  %ended = icmp eq ptr %further, %to.b
  %both = and i1 %ended, %last.link
  br i1 %both, label %left, label %walk
left:
  %skipped.a = getelementptr i8, ptr %elements.a, i64 16
  %skipped.b = getelementptr i8, ptr %now, i64 16
  %within.a = getelementptr i8, ptr %again.a, i64 16
  %within.b = getelementptr i8, ptr %turns.b, i64 24
  %guarded.a = getelementptr i8, ptr %elements.a, i64 24
  %guarded.b = getelementptr i8, ptr %again.b, i64 24
  %none = icmp eq ptr %guarded.a, %guarded.b
  br i1 %none, label %after, label %guarded
guarded:
  %p = phi ptr [ %guarded.a, %left ], [ %p.on, %guarded ]
  store double 3.0, ptr %p
  %p.on = getelementptr i8, ptr %p, i64 8
  %p.ends = icmp eq ptr %p.on, %guarded.b
  br i1 %p.ends, label %after, label %guarded
after:
  br i1 %more, label %branch, label %end
branch:
  %q = phi ptr [ %skipped.a, %after ], [ %q.on, %branch ]
  store double 2.0, ptr %q
  %q.on = getelementptr i8, ptr %q, i64 8
  %q.ends = icmp eq ptr %q.on, %skipped.b
  br i1 %q.ends, label %behind, label %branch
behind:
  br i1 %none, label %end, label %inner
inner:
  %w = phi ptr [ %within.a, %behind ], [ %w.on, %inner ]
  store double 2.0, ptr %w
  %w.on = getelementptr i8, ptr %w, i64 8
  %w.ends = icmp eq ptr %w.on, %within.b
  br i1 %w.ends, label %use, label %inner
use:
  %use.within = getelementptr i8, ptr %w.on, i64 8
  br label %end
end:
  ret void
}
"""
SHOWN = {
    "moved": True, "from": True, "handed": True, "fields": True, "walks": True, "span": True, "to": True, "kept": True,
    "elements": False, "again": False, "foreign": False, "turns": False, "apart": False, "crossed": False,
    "jumps": False, "skipped": False, "within": True, "guarded": True,
}  # fmt: skip


@pytest.mark.parametrize("pair", SHOWN)
def test_pairs(pair: str) -> None:
    module = module_of(PROGRAM, "f", prepared=False)
    request = asked("f", "reverse", ["dup", "dup", "dup", "const"], buffers=["double", "ptr", "double", ""])
    unit = analysed(module, module.functions["f"], request)
    callers: dict[Function, list[Instruction]] = {}
    named = {}
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            named[instr.name] = instr
            for callee in (unit.pointers.callees(instr) or ()) if instr.is_call else ():
                callers.setdefault(callee, []).append(instr)
    uses = {fn: uses_of(fn.blocks) for fn in unit.pointers.functions}
    same = SameAllocation(unit, callers, lambda value: [u for found in uses.values() for u in found.get(value, ())])
    first, second = named[f"{pair}.a"], named[f"{pair}.b"]
    at = named.get(f"use.{pair}", named[f"{pair}.b"])
    assert same.shown(first, second, at) is same.shown(second, first, at) is SHOWN[pair]
