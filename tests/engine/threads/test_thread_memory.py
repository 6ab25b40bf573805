"""Memory that each thread of a region reserves: chunks have their own, or the loop stays with one thread."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.memory_cases import EACH, FILL, OWN, ROW, SIGNATURE, A, text_of

import irgrad as ig
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.threads import chunks
from irgrad.engine.threads.thread_memory import ThreadMemory, without_marks
from irgrad.rules.errors import OneThread

ONE = {
    "read behind the loop": (
        "double *t = calloc(m, 8);",
        f"schedule(static) nowait\n{EACH} {{ {ROW} t[j] += a[i*m+j]; y[i] = a[i*m]; }}",
        "\n#pragma omp critical\nfor (long j = 0; j < m && j < n; j++) y[j] += t[j];\nfree(t);"),
    "made larger behind the loop": (
        "double *t = malloc(m * 8);", f"schedule(dynamic)\n{EACH} {{ {FILL} y[i] = s; }}",
        "t = realloc(t, 1024); t[100] = 1; y[0] += t[100]; free(t);"),
    "its address in memory": (
        "double *t = malloc(m * 8), **at = malloc(8); *at = t;",
        f"schedule(static)\n{EACH} {{ {ROW} (*at)[j] = sin(a[i*m+j]); y[i] = t[i % m]; }}", "free(t); free(at);"),
}  # fmt: skip


def _all(kernel: ig.Kernel, along: np.ndarray) -> list[np.ndarray]:
    """The value, a gradient, a tangent."""
    bar = np.cos(np.arange(len(A)))
    value, pull = ig.vjp(kernel, A)
    gradient, tangent = pull(bar), ig.jvp(kernel, (A,), (along,))[1]
    found = [np.asarray(row[0] if isinstance(row, tuple) else row) for row in (value, gradient, tangent)]
    assert found[2] @ bar == pytest.approx(np.vdot(found[1], along), rel=1e-11)
    return found


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("name", [*OWN, *ONE])
def test_the_same_bits_on_any_number_of_threads(name: str, level: str) -> None:
    lib = ig.load(text_of({**OWN, **ONE}[name]), flags=["-fopenmp", level])
    along = np.sin(np.arange(A.size) + 0.5).reshape(A.shape)
    alone = lib.kernel("f", SIGNATURE)
    wanted, found = _all(alone, along), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)
        for threads in (1, 2, 4, 16):
            kernel = lib.kernel("f", SIGNATURE, threads=threads)
            found.append(_all(kernel, along))
    for rows in found:
        assert all(np.array_equal(a, b) for a, b in zip(rows, found[0], strict=True))
        for row, want in zip(rows, wanted, strict=True):
            np.testing.assert_allclose(row, want, rtol=1e-11, atol=1e-12)
    step = 1e-6
    differences = (np.asarray(alone(A + step * along)) - np.asarray(alone(A - step * along))) / (2 * step)
    np.testing.assert_allclose(wanted[2], differences.reshape(-1), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [*OWN, *ONE])
def test_which_memory_is_a_chunks_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    have_own = chunks.have_own

    def kept(module: Module, fn: Function, loop: Loop, every: Sequence[ThreadMemory]) -> None:
        found.extend(one.reserve.opcode for one in every)
        have_own(module, fn, loop, every)

    others: list[str] = []
    share = chunks.share_loops

    def told(*args: Any, **options: Any) -> chunks.SharedLoops:
        result = share(*args, **options)
        others.extend(result.others)
        return result

    monkeypatch.setenv("IRGRAD_CACHE", "0")
    monkeypatch.setattr(chunks, "have_own", kept)
    monkeypatch.setattr(chunks, "share_loops", told)
    lib = ig.load(text_of({**OWN, **ONE}[name]), flags=["-fopenmp", "-O1"])
    text = lib.kernel("f", SIGNATURE, threads=3).primal.stage.text
    assert len(found) == (0 if name in ONE else 2 if "there" in OWN[name][0] else 1)
    assert "irgrad.thread.memory" not in text
    assert not [row for row in others if "goes from iteration" in row]


def test_in_programs(tmp_path: Path) -> None:
    text = text_of(OWN["what it holds before"])
    (tmp_path / "p.c").write_text(text + r"""
#include <stdio.h>
void __enzyme_autodiff(void *, ...);
extern int enzyme_dup, enzyme_const;
int main(void) {
    long n = 300, m = 20;
    double *a = malloc(n * m * 8), *da = calloc(n * m, 8), *y = malloc(n * 8), *dy = malloc(n * 8), *z = malloc(n * 8);
    for (long i = 0; i < n * m; i++) a[i] = cos(i);
    for (long i = 0; i < n; i++) dy[i] = sin(i);
    __enzyme_autodiff((void *)f, enzyme_dup, a, da, enzyme_dup, y, dy, enzyme_const, n, enzyme_const, m);
    double along = 0, h = 1e-6, differences = 0;
    for (long i = 0; i < n * m; i++) along += da[i] * sin(2 * i), a[i] += h * sin(2 * i);
    f(a, y, n, m);
    for (long i = 0; i < n * m; i++) a[i] -= 2 * h * sin(2 * i);
    f(a, z, n, m);
    for (long i = 0; i < n; i++) differences += (y[i] - z[i]) / (2 * h) * sin(i);
    printf("%.17g\n", along);
    return fabs(along - differences) > 1e-6 * fabs(along);
}
""")
    runs = [subprocess.run(["irgrad", "run", "-O2", "-fopenmp", "p.c"], cwd=tmp_path, capture_output=True, text=True,
                           env={**os.environ, "OMP_NUM_THREADS": threads}, check=False)
            for threads in ("1", "4")]  # fmt: skip
    assert all(run.returncode == 0 and "goes from iteration" not in run.stderr for run in runs), runs
    assert runs[0].stdout == runs[1].stdout


def test_a_mark_stands_for_the_memory_of_the_thread() -> None:
    module = read("""
declare ptr @irgrad.thread.memory.0(ptr, i64)
define double @f(ptr %x) {
  %own = call ptr @irgrad.thread.memory.0(ptr %x, i64 8)
  %v = load double, ptr %own, align 8
  ret double %v
}
""")
    fn = module.functions["f"]
    without_marks(module, fn)
    verify_module(module)
    load = next(i for i in fn.instructions() if i.opcode == "load")
    assert load.operands[0] is fn.args[0] and list(module.functions) == ["f"]


SCRATCH = """
#include <math.h>
#include <stdlib.h>
double f(const double *x, long n, long m, long k) {
    RESERVE
    double s = 0;
    for (long i = 0; i < n; i++) { BODY }
    RELEASE
    return s;
}
"""
USE = "for (long j = 1; j < m; j++) t[j] += sin(t[j - 1] * x[i]); for (long j = 0; j < m; j++) s += t[j] * t[j];"
HEAP = "double *t = malloc((m + 1) * sizeof(double)); for (long j = 0; j <= m; j++) t[j] = 0.5;", "free(t);"
SCRATCHES = {
    "as far as k": (HEAP, f"for (long j = 0; j < k; j++) t[j] = x[i] * (j + 1); {USE}"),
    "where k is large": (HEAP, f"if (k > 5) for (long j = 0; j < m; j++) t[j] = x[i] * (j + 1); {USE}"),
    "a row at a time": (HEAP, f"for (long r = 0; r < 3; r++) {{ {ROW} t[j] = x[i] * (j + r); {USE} }}"),
    "the first row alone": (HEAP, f"for (long r = 0; r < 3; r++) {{ if (!r) {ROW} t[j] = x[i]; {USE} }}"),
    "on the stack": (("double t[40]; for (long j = 0; j < 40; j++) t[j] = 0.1;", ""),
                     f"for (long j = 0; j < k; j++) t[j] = x[i] * (j + 1); {USE}"),
    "on the stack, of an iteration": (("double t[40];", ""), f"for (long j = 0; j < 40; j++) t[j] = x[i]; {USE}"),
    "read behind it": (("double *t = calloc(m, 8);", "s += t[0]; free(t);"), f"{ROW} t[j] = x[i]; {USE}"),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [n if n == "as far as k" else pytest.param(n, marks=pytest.mark.long) for n in SCRATCHES]
)
def test_scratch_of_a_loop_is_each_chunks_own_where_iterations_leave_nothing_there(name: str) -> None:
    """Where they do (k < m), which is known when the program runs, the loop has one chunk."""
    (reserve, release), body = SCRATCHES[name]
    lib = ig.load(SCRATCH.replace("RESERVE", reserve).replace("RELEASE", release).replace("BODY", body))
    signature = "f64(f64[n] x, i64 n, i64 m, i64 k)"
    alone, one, team = (lib.kernel("f", signature, threads=threads) for threads in (None, 1, 3))
    x = np.random.default_rng(5).normal(size=37)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneThread)
        for m, k in ((7, 7), (7, 8), (7, 3), (1, 1)):
            before, first, found = (_all_of(kernel, x, m, k) for kernel in (alone, one, team))
            for a, b, c in zip(before, first, found, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12)
                np.testing.assert_array_equal(c, b)
        assert bool(_shared(team)) is (name not in ("the first row alone", "read behind it"))


def _shared(kernel: ig.Kernel) -> list[str]:
    from irgrad.engine.kernel.shared_loops import shared_loops

    return [place for place in shared_loops(kernel.primal).shared if place.endswith(":7:24")]


def _all_of(kernel: ig.Kernel, x: np.ndarray, m: int, k: int) -> list[np.ndarray]:
    along = np.cos(np.arange(len(x)))
    _, pushed = ig.jvp(kernel, (x, m, k), (along, None, None))
    gradient = ig.grad(kernel)(x, m, k)
    np.testing.assert_allclose(along @ gradient, pushed, rtol=1e-9, atol=1e-12)
    return [np.asarray(kernel(x, m, k)), gradient, np.asarray(pushed)]
