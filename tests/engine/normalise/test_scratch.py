"""Memory of an iteration leaves its loop where no iteration sees that of another, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise import scratch
from irgrad.engine.normalise.scratch import normal_form, reuse_scratch

SIGNATURE = "f64(f64[n] x, i64 n, i64 d)"
HEAD = "#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n"
MOVED = {
    "malloc": """double f(const double *x, long n, long d) {
        double s = 0;
        for (long i = 0; i < n; i++) {
            double *t = malloc(d * sizeof *t);
            for (long j = 0; j < d; j++) t[j] = sin(x[i] * (j + 1));
            for (long j = d - 1; j >= 0; j--) s += t[j] * t[d - 1 - j];
            free(t);
        }
        return s;
    }""",
    "calloc, filled in part": """double f(const double *x, long n, long d) {
        double s = 0;
        for (long i = 0; i < n; i++) {
            double *t = calloc(d, sizeof *t);
            for (long j = i % 2; j < d; j += 2) t[j] = x[i] * x[(i + j) % n];
            for (long j = 0; j < d; j++) s += exp(t[j]) * (j + 1);
            free(t);
        }
        return s;
    }""",
    "in a nest, conditional": """double f(const double *x, long n, long d) {
        double s = 0;
        for (long i = 0; i < n; i++)
            for (long k = 0; k < 2; k++) {
                double *t = d > 2 ? malloc(d * sizeof *t) : 0;
                if (t) {
                    for (long j = 0; j < d; j++) t[j] = x[i] + k * j;
                    for (long j = 0; j < d; j++) s += t[j] * t[j] * t[j];
                }
                free(t);
            }
        return s;
    }""",
    "left by a break": """double f(const double *x, long n, long d) {
        double s = 0;
        for (long i = 0; i < n; i++) {
            double *t = malloc(d * sizeof *t);
            for (long j = 0; j < d; j++) t[j] = x[i] * x[i] + j;
            s += t[0] * t[d - 1];
            if (s > 40) { s *= t[0]; free(t); break; }
            free(t);
        }
        return s;
    }""",
}
KEPT = {
    "the one before is read": """double f(const double *x, long n, long d) {
        double s = 0, *before = calloc(d, 8);
        for (long i = 0; i < n; i++) {
            double *t = malloc(d * sizeof *t);
            for (long j = 0; j < d; j++) t[j] = before[j] * x[i] + x[i];
            free(before);
            before = t;
        }
        for (long j = 0; j < d; j++) s += before[j];
        free(before);
        return s;
    }""",
    "kept in memory": """double f(const double *x, long n, long d) {
        double s = 0, **all = malloc(n * sizeof *all);
        for (long i = 0; i < n; i++) {
            all[i] = malloc(d * sizeof(double));
            for (long j = 0; j < d; j++) all[i][j] = x[i] * (j + 1);
        }
        for (long i = 0; i < n; i++) {
            for (long j = 0; j < d; j++) s += all[i][j] * all[n - 1 - i][j];
        }
        for (long i = 0; i < n; i++) free(all[i]);
        free(all);
        return s;
    }""",
    "of bytes that each iteration decides": """double f(const double *x, long n, long d) {
        double s = 0;
        for (long i = 0; i < n; i++) {
            double *t = malloc((d + i) * sizeof *t);
            for (long j = 0; j < d + i; j++) t[j] = x[i] * j;
            for (long j = 0; j < d + i; j++) s += t[j] * t[d + i - 1 - j];
            free(t);
        }
        return s;
    }""",
}


def _in_loops(source: str) -> tuple[int, int]:
    """Allocations in loops before and after the pass."""
    kernel = ig.load(HEAD + source).kernel("f", SIGNATURE)
    stage = kernel.primal.stage
    module = read(stage.text, roots=[stage.name])
    root = module.functions[stage.name]

    def count() -> int:
        return sum(get(Loops, root).of(i.block) is not None for i in root.instructions()
                   if i.is_call and i.callee_name in ("malloc", "calloc") and i.block is not None)  # fmt: skip

    before = count()
    reuse_scratch(module, root)
    return before, count()


@pytest.mark.parametrize("name", MOVED)
def test_scratch_leaves_its_loops(name: str) -> None:
    before, after = _in_loops(MOVED[name])
    assert before > after == 0


@pytest.mark.parametrize("name", KEPT)
def test_what_iterations_share_stays(name: str) -> None:
    before, after = _in_loops(KEPT[name])
    assert before == after > 0


@pytest.mark.parametrize("name", [*MOVED, *KEPT])
@pytest.mark.parametrize("d", [1, 4])
def test_derivatives(name: str, d: int) -> None:
    kernel = ig.load(HEAD + (MOVED | KEPT)[name]).kernel("f", SIGNATURE)
    x = np.random.default_rng(2).uniform(0.3, 1.2, size=7)
    report = ig.engine.check(kernel, x, d)
    assert report.ok, str(report)


def test_only_functions_in_normal_form() -> None:
    module = read("define void @f(ptr %a, ptr noalias %b) {\n  ret void\n}\n")
    root = module.functions["f"]
    assert not normal_form(root) and reuse_scratch(module, root) == 0


RELEASES = """declare noalias ptr @_Znwm(i64)
declare void @_ZdlPvm(ptr, i64)
declare void @__rust_dealloc(ptr, i64, i64)
define void @f(ptr noalias %n, i1 %some) {
entry:
  %count = load i64, ptr %n
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  br i1 %some, label %work, label %latch
work:
  %p = call ptr @_Znwm(i64 24)
  store double 1.0, ptr %p
  call void RELEASE
  br label %latch
latch:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %out, label %loop
out:
  ret void
}
"""


def test_a_release_with_the_bytes_gets_those_of_the_allocation() -> None:
    module = read(RELEASES.replace("RELEASE", "@_ZdlPvm(ptr %p, i64 24)"))
    root = module.functions["f"]
    assert reuse_scratch(module, root) == 1
    entry, out = root.entry.instructions, root.blocks[-1].instructions
    call = next(i for i in entry if i.callee_name == "_Znwm") if any(i.is_call for i in entry) else None
    assert call is not None and getattr(call.args[0], "opcode", "") == "select"
    assert out[0].callee_name == "_ZdlPvm" and out[0].args == [call, call.args[0]]


def test_a_release_with_other_arguments_stays() -> None:
    module = read(RELEASES.replace("RELEASE", "@__rust_dealloc(ptr %p, i64 24, i64 8)"))
    assert reuse_scratch(module, module.functions["f"]) == 0


def test_memory_is_solved_once_however_many_loops_scratch_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[Pointers] = []
    solve = scratch.points_to

    def counted(module: Module, root: Function) -> Pointers:
        solved.append(solve(module, root))
        return solved[-1]

    monkeypatch.setattr(scratch, "points_to", counted)
    for name in ("in a nest, conditional", "calloc, filled in part"):
        solved.clear()
        before, after = _in_loops(MOVED[name])
        assert before > after == 0
        (pointers,) = solved
        again = solve(pointers.module, pointers.root)
        for instr in pointers.root.instructions():
            assert (pointers.effect(instr) is None) == (again.effect(instr) is None)
            assert pointers.names(pointers.instr_writes(instr)) == again.names(again.instr_writes(instr))
        assert pointers.names(pointers.writes(pointers.root)) == again.names(again.writes(again.root))
