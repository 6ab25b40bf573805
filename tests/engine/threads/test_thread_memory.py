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
