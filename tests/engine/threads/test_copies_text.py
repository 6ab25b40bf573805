"""Memory of chunks: LLVM takes its rows, and one chunk wants none."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.ir import types as ty
from irgrad.engine.threads.jobs import Job, Room
from irgrad.engine.threads.team_text import AUTOMATIC_TEXT, job_text


@pytest.mark.parametrize("guarded", [False, True])
def test_llvm_takes_rooms_of_unknown_size(guarded: bool) -> None:
    rooms = [Room("double", 0), Room("float", 1)]
    job = Job("irgrad.team.0", [ty.I64, ty.PTR], [ty.F64], rooms, 2 if guarded else -1, guarded, pages=True)
    chunk = "declare double @irgrad.team.0.chunk(i64, i64, ptr, ptr, ptr, ptr, ptr)"
    parse(f"{chunk}\n{_runtime(job)}{AUTOMATIC_TEXT}{job_text(job)}")


def _runtime(job: Job) -> str:
    return "declare ptr @_unused()\n" if not job.guarded else """
declare i32 @_setjmp(ptr) returns_twice
declare void @irgrad.tape.enter(ptr)
declare void @irgrad.tape.leave(ptr)
declare ptr @irgrad.tape.failure(ptr)
"""


SOURCE = """
double f(const double *x, const double *w, long n, long m) {
    double s = 0;
    for (long i = 0; i < n; i++) for (long j = 0; j < m; j++) s += x[i] * w[j] * w[j];
    return s;
}
"""


@pytest.mark.parametrize("n", [1, 2, 40])
def test_one_chunk_adds_to_the_arrays_themselves(
    n: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where there is no room for copies, a loop of several chunks says so, and one of a single chunk has no need."""
    monkeypatch.setenv("IRGRAD_MAX_COPIES", "1")
    kernel = irgrad.load(SOURCE).kernel("f", "f64(f64[n] x, f64[m] w, i64 n, i64 m)", threads=2)
    x, w = np.linspace(1, 2, n), np.linspace(-1, 1, 30)
    np.testing.assert_allclose(irgrad.grad(kernel, wrt="w")(x, w), 2 * w * x.sum(), rtol=1e-12)
    assert ("one thread runs" in capfd.readouterr().err) is (n > 1)
