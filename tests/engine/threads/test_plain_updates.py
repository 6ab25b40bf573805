"""Sums that a thread keeps in an array of its own."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from small_chunks import small_chunks

import irgrad as ig
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.analyses.evolution.dependence import Dependence
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.threads.plain_updates import plain_updates

LOOP = """
declare double @llvm.fmuladd.f64(double, double, double)
define void @f(ptr noalias %x, i64 %n) {
entry:
  %a = alloca [8 x double]
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %more, %turn ]
  %at = and i64 %k, 7
  %p = getelementptr double, ptr %a, i64 %at
  %q = getelementptr double, ptr %x, i64 %k
  %v = load double, ptr %q
  {update}
  %more = add i64 %k, 1
  %end = icmp eq i64 %more, %n
  br i1 %end, label %done, label %turn
done:
  ret void
}
"""
OLD = "%old = load double, ptr %p\n  "


def _updates(update: str) -> list[str]:
    """What a loop has in place of its updates of `a`; [] where they are none."""
    module = read(textwrap.dedent(LOOP).replace("{update}", update), roots=["f"])
    fn = module.functions["f"]
    dependence = Dependence(fn, Pointers(module, fn), Induction(fn))
    array = next(i for i in fn.instructions() if i.opcode == "alloca")
    before = to_text(module)
    found = plain_updates(dependence, get(Loops, fn).top[0], [array])
    if found is None:
        return []
    found.as_atomic()
    rows = [row.strip() for row in to_text(module).splitlines() if "atomicrmw" in row]
    found.as_plain()
    assert to_text(module) == before
    return rows


@pytest.mark.parametrize(("update", "how"), [
    (f"{OLD}%s = fadd double %old, %v\n  store double %s, ptr %p", "fadd ptr"),
    (f"{OLD}%s = fadd double %v, %old\n  store double %s, ptr %p", "fadd ptr"),
    (f"{OLD}%s = fsub double %old, %v\n  store double %s, ptr %p", "fsub ptr"),
    (f"{OLD}%s = call double @llvm.fmuladd.f64(double %v, double %v, double %old)\n  store double %s, ptr %p",
     "fadd ptr"),
    (f"{OLD}%r = getelementptr double, ptr %a, i64 %at\n  %s = fadd double %old, %v\n  store double %s, ptr %r",
     "fadd ptr"),
])  # fmt: skip
def test_updates(update: str, how: str) -> None:
    rows = _updates(update)
    assert len(rows) == 1 and how in rows[0]


@pytest.mark.parametrize("update", [
    "store double %v, ptr %p",
    f"{OLD}%s = fsub double %v, %old\n  store double %s, ptr %p",
    f"{OLD}%s = fmul double %old, %v\n  store double %s, ptr %p",
    f"{OLD}%s = fadd double %old, %v\n  store double %s, ptr %p\n  %late = load double, ptr %p",
    f"{OLD}%s = fadd double %old, %v\n  store double %s, ptr %p\n  store double %s, ptr %q",
    f"{OLD}%s = fadd double %old, %v\n  %r = getelementptr double, ptr %a, i64 1\n  store double %s, ptr %r",
    f"{OLD}%o = load double, ptr %a\n  %s = fadd double %old, %v\n  %t = fadd double %o, %v\n"
    "  store double %t, ptr %a\n  store double %s, ptr %p",
])  # fmt: skip
def test_what_is_none(update: str) -> None:
    assert not _updates(update)


@pytest.mark.long
@pytest.mark.parametrize("memory", ["double mine[10] = {0};", "double *mine = (double *)calloc(m, 8);"])
def test_kept_sums_on_threads(memory: str) -> None:
    small_chunks()
    release = "free(mine);" if "calloc" in memory else ""
    source = """
    #include <math.h>
    #include <stdlib.h>
    double f(const double *x, long n) {
        long m = 10;
        double h[10] = {0}, s = 0;
        #pragma omp parallel
        {
            MEMORY
            #pragma omp for nowait
            for (long i = 0; i < n; i++) { mine[i * 7 % 10] += exp(0.3 * x[i]); mine[i % 3] -= x[i]; }
            #pragma omp critical
            for (long k = 0; k < m; k++) h[k] += mine[k];
            RELEASE
        }
        for (long k = 0; k < m; k++) s += h[k] * h[k];
        return s;
    }"""
    lib = ig.load(source.replace("MEMORY", memory).replace("RELEASE", release), flags=["-fopenmp"])
    x = np.sin(np.arange(50.0))
    plain = lib.kernel("f", "f64(f64[n] x, i64 n)")
    assert ig.check(plain, x).ok
    found = []
    for threads in (1, 2, 4):
        kernel = lib.kernel("f", "f64(f64[n] x, i64 n)", threads=threads)
        found.append((kernel(x), ig.grad(kernel)(x)))
    assert "shared by a team" in str(ig.explain(kernel)) and "reverse sweep" not in str(ig.explain(kernel))
    for value, gradient in found:
        assert value == found[0][0]
        np.testing.assert_array_equal(gradient, found[0][1])
    np.testing.assert_allclose(found[0][1], ig.grad(plain)(x), rtol=1e-12)
