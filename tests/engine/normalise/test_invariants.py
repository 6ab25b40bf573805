"""Loads, phis and numbers leave the loops that do not change them; what a loop may change stays."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.invariants import leave_loops, may_gain

TEXT = """declare noalias ptr @malloc(i64)
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %n) {
entry:
  %count = load i64, ptr %n
  %flag = icmp sgt i64 %count, 3
  %own = call ptr @malloc(i64 80)
  %cell = load ptr, ptr %a
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  br i1 %flag, label %then, label %join
then:
  br label %join
join:
  %chosen = phi ptr [ %own, %then ], [ %b, %loop ]
  %far = getelementptr double, ptr %chosen, i64 2
  %x = load double, ptr %cell
  %place = getelementptr double, ptr %TARGET, i64 %i
  store double %x, ptr %place
  br label %latch
latch:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %out, label %loop
out:
  ret void
}
"""


def _moved(text: str) -> tuple[int, Function, dict[str, Instruction]]:
    module = read(text)
    root = module.functions["f"]
    assert may_gain(root)
    count = leave_loops(points_to(module, root), root)
    return count, root, {str(i.name): i for i in root.instructions() if i.name is not None}


def _depth(fn: Function, instr: Instruction) -> int:
    assert instr.block is not None
    return get(Loops, fn).depth(instr.block)


def test_a_load_and_a_decided_phi_leave() -> None:
    count, root, by_name = _moved(TEXT.replace("%TARGET", "%own"))
    assert count == 2
    assert by_name["chosen"].opcode == "select" and [o.name for o in by_name["chosen"].operands] == ["flag", "own", "b"]
    assert [_depth(root, by_name[name]) for name in ("chosen", "x", "far", "place")] == [0, 0, 0, 1]


def test_a_load_of_what_the_loop_writes_stays() -> None:
    _, root, by_name = _moved(TEXT.replace("%TARGET", "%cell"))
    assert _depth(root, by_name["x"]) == 1


def test_a_load_behind_a_branch_stays() -> None:
    text = TEXT.replace("%TARGET", "%own").replace("  %x = load double, ptr %cell\n", "").replace(
        "then:\n", "then:\n  %x = load double, ptr %cell\n  store double %x, ptr %own\n").replace(
        "store double %x, ptr %place\n", "store double 1.0, ptr %place\n")  # fmt: skip
    _, root, by_name = _moved(text)
    assert _depth(root, by_name["x"]) == 1


REFERENCE = """define void @f(ptr noalias %a, ptr noalias dereferenceable(BYTES) %r, i64 %count, i1 %flag) {
entry:
  %far = getelementptr inbounds i8, ptr %r, i64 16
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  br i1 %flag, label %then, label %latch
then:
  %x = load double, ptr CELL
  %place = getelementptr double, ptr %a, i64 %i
  store double %x, ptr %place
  br label %latch
latch:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %out, label %loop
out:
  ret void
}
"""


@pytest.mark.parametrize(("cell", "size", "depth"), [("%r", 24, 0), ("%far", 24, 0), ("%far", 23, 1), ("%r", 4, 1)])
def test_a_load_of_a_reference_leaves_from_behind_a_branch(cell: str, size: int, depth: int) -> None:
    """Where all its bytes are among those that the argument is declared to lead to."""
    _, root, by_name = _moved(REFERENCE.replace("BYTES", str(size)).replace("CELL", cell))
    assert _depth(root, by_name["x"]) == depth


def test_a_load_behind_a_call_that_may_not_return_stays() -> None:
    text = TEXT.replace("%TARGET", "%own").replace("then:\n", "then:\n  call void @exit(i32 0)\n")
    _, root, by_name = _moved("declare void @exit(i32)\n" + text)
    assert _depth(root, by_name["x"]) == 1


CHOSEN = """define double @f(ptr noalias %a, ptr noalias %b, i1 %flag) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %sum = phi double [ 0.0, %entry ], [ %more, %latch ]
  br label %inner
inner:
  %j = phi i64 [ 0, %loop ], [ %after, %rest ]
  br i1 %flag, label %then, label %join
then:
  br label %join
join:
  %chosen = phi ptr [ %a, %then ], [ %b, %inner ]
  %x = sitofp i64 %j to double
  store double %x, ptr %chosen
  br label %rest
rest:
  %after = add i64 %j, 1
  %last = icmp eq i64 %after, 4
  br i1 %last, label %latch, label %inner
latch:
  %y = load double, ptr %a
  %more = fadd double %sum, %y
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, 5
  br i1 %end, label %out, label %loop
out:
  ret double %more
}
"""


def test_what_a_decided_phi_has_become_leads_where_the_phi_led() -> None:
    count, root, by_name = _moved(CHOSEN)
    assert count and by_name["chosen"].opcode == "select"
    assert _depth(root, by_name["y"]) == 1  # the store through the select may write what it loads


ROWS = """#include <stdlib.h>
double f(const double *a, const double *b, long n) {
    double **c = malloc(n * sizeof *c), s = 0;
    for (long i = 0; i < n; i++) c[i] = calloc(n, sizeof(double));
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++) c[i][j] += a[i * n + k] * b[k * n + j] * (1 + c[i][(j + 1) % n]);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) s += c[i][j] * c[i][j];
    for (long i = 0; i < n; i++) free(c[i]);
    free(c);
    return s;
}"""


@pytest.mark.parametrize("n", [1, 3])
def test_derivatives(n: int) -> None:
    kernel = ig.load(ROWS).kernel("f", "f64(f64[n,n] a, f64[n,n] b, i64 n)")
    a, b = np.random.default_rng(1).uniform(-0.5, 0.5, size=(2, n, n))
    report = ig.engine.check(kernel, a, b)
    assert report.ok, str(report)
