"""Which loops of OpenMP one thread runs, and why, read from a module's text."""

from __future__ import annotations

from irgrad.engine.parallel.one_thread import ALONE, ATOMIC, CRITICAL, loops_on_one_thread, tasks

TEXT = """
declare void @init(i32)
define void @f() {
  call void @init(i32 1), !dbg !5, !irgrad.one_thread !6
  call void @init(i32 2), !irgrad.one_thread !7
  call void @init(i32 3), !dbg !5
  ret void
}
!3 = !DIFile(filename: "f.c", directory: ".")
!4 = distinct !DISubprogram(name: "f", scope: !3, file: !3)
!5 = !DILocation(line: 12, column: 3, scope: !4)
!6 = !{!"it has a critical section"}
!7 = !{!"it has atomic operations"}
"""


def test_rows() -> None:
    assert loops_on_one_thread(TEXT) == [f"f.c:12:3: {CRITICAL}", f"a loop: {ATOMIC}"]
    assert loops_on_one_thread(TEXT.replace(ALONE, "other")) == []


def test_tasks() -> None:
    call = "  %t = call ptr @__kmpc_omp_task_alloc(ptr null, i32 0, i32 1, i64 40, i64 8, ptr @g), !dbg !5\n"
    assert tasks(TEXT.replace("  ret void", f"{call}{call.replace('%t', '%u')}  ret void")) == ["f.c:12:3"]
    assert not tasks(TEXT)
