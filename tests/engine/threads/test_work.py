"""In how many chunks a loop runs follows from its work, counted when it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_chunks import small_chunks

import irgrad
from irgrad.engine.codegen.llvm import host_cpu
from irgrad.engine.codegen.machine_costs import host_costs, written
from irgrad.engine.codegen.own_sources import forget_costs
from irgrad.engine.ir.text.reader import read
from irgrad.engine.threads.chunks import share_loops
from irgrad.engine.threads.work import Worth
from irgrad.rules.expressions.costs import Costs


def test_costs_of_tests_are_the_shipped_ones_but_for_chunks(tmp_path: Path, chunks_of_400: None) -> None:
    assert small_chunks(tmp_path, 7).read_bytes() == written(Costs(chunk=7, copied=1), host_cpu())
    assert host_costs() == Costs(chunk=7, copied=1)


SUM = "double f(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i] * x[i]; return s; }"
SIGNATURE = "f64(f64[n] x, i64 n)"


@pytest.fixture
def chunks_of_400() -> Iterator[None]:
    """400 operations are worth a chunk."""
    before = os.environ["IRGRAD_COSTS"]
    small_chunks(chunk=400)
    yield
    os.environ["IRGRAD_COSTS"] = before
    forget_costs()


def in_chunks(x: np.ndarray, count: int) -> float:
    """The sum of squares, added up in chunks."""
    whole, total, at = len(x), 0.0, 0
    for c in range(count):
        size, part = whole // count + (c < whole % count), 0.0
        for value in x[at : at + size]:
            part = float(np.float64(value) * value) + part
        total, at = total + part, at + size
    return total


def chunks(found: float, x: np.ndarray) -> list[int]:
    """The numbers of chunks by which that sum may have been computed."""
    return [count for count in (1, 2, 4, 8, 16) if in_chunks(x, count) == found]


def test_more_work_has_more_chunks(chunks_of_400: None) -> None:
    """Rounding tells in which order a sum was made."""
    rng = np.random.default_rng(3)
    kernel = irgrad.load(SUM, flags=["-ffp-contract=off"]).kernel("f", SIGNATURE, threads=2)
    seen = []
    for n in (90, 200, 400, 1600, 20_000):
        x = rng.normal(size=n) * 10.0 ** rng.integers(-3, 3, n)
        seen.append(chunks(kernel(x), x))
    assert 1 in seen[0] and seen[1] and 16 not in seen[1] and 1 not in seen[2] and seen[-1] == [16], seen


WEIGHTED = """
double f(const double *x, const double *w, const long *k, long n, long m) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i] * w[k[i]];
    return s;
}
"""


def test_a_chunk_has_work_for_its_copies(chunks_of_400: None) -> None:
    """Of an array that all iterations read each chunk's reverse sweep has a copy, and it is large or small."""
    rng, n = np.random.default_rng(4), 20_000
    x = rng.normal(size=n) * 10.0 ** rng.integers(-3, 3, n)
    small_chunks(chunk=400, copied=10)
    lib = irgrad.load(WEIGHTED, flags=["-ffp-contract=off"])
    signature = "f64(f64[n] x, f64[m] w, i64[n] k, i64 n, i64 m)"
    one, two, three = (lib.kernel("f", signature, threads=threads) for threads in (None, 2, 3))
    seen = []
    for m in (2, 4000, 1_000_000):
        w, k = np.ones(m), np.minimum(rng.integers(0, 2000, n), m - 1)
        seen.append(chunks(two(x, w, k), x))
        shared, again, plain = (irgrad.grad(kernel, wrt=("x", "w"))(x, w, k) for kernel in (two, three, one))
        for a, b, c in zip(shared, again, plain, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-11, atol=1e-11)
    assert 16 in seen[0] and 4 in seen[1] and 16 not in seen[1] and seen[2] == [1], seen


LOOPS = """
double f(const double *x, double *y, long n, long m) {
    double s = 0;
    for (long t = 0; t < m; t++) {
        for (long i = 0; i < n; i++) y[i] = 0.5 * y[i] + x[i] * x[i];
        for (long i = 1; i < n; i++) y[i] += 0.1 * y[i - 1];
    }
    for (long i = 0; i < n; i++) s += y[i];
    return s;
}
"""


def test_a_loop_of_time_steps_is_there_twice(chunks_of_400: None) -> None:
    """Steps of little work are as they are without threads; those of more share their loops."""
    lib = irgrad.load(LOOPS)
    signature = "f64(f64[n] x, inout f64[n] y, i64 n, i64 m)"
    alone, shared = (lib.kernel("f", signature, threads=threads) for threads in (None, 3))
    assert len(re.findall(r"call [^\n]*loop\.0\(", shared.primal.stage.text)) == 1
    for n in (7, 900):
        x, y = np.linspace(0.1, 1, n), np.linspace(1, 2, n)
        one, more = ((k(x, y, 5), irgrad.grad(k, wrt="x", of="return")(x, y, 5)) for k in (alone, shared))
        np.testing.assert_allclose(one[1], more[1], rtol=1e-13)
        np.testing.assert_allclose(one[0][0], more[0][0], rtol=1e-13)
        np.testing.assert_array_equal(one[0][1], more[0][1])


def test_loops_of_constant_work_are_decided_where_they_are_compiled() -> None:
    text = """
define double @f(ptr noalias %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr inbounds double, ptr %x, i64 %i
  %a = load double, ptr %p
  %t = fadd double %s, %a
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 100
  br i1 %more, label %loop, label %done
done:
  ret double %t
}
"""
    for least, shared in ((20, True), (1 << 20, False)):
        module = read(text)
        found = share_loops(module, module.functions["f"], worth=Worth(least))
        assert bool(found.shared) is shared
        why = r"it has about [5-9]00 operations, of which 1048576 are worth a chunk"
        assert shared or re.search(why, found.others[0])


INNER = """
double f(const double *x, long n, long m, const long *ends) {
    double s = 0;
    for (long i = 0; i < n; i++) BODY
    return s;
}
"""


@pytest.mark.parametrize(
    "body",
    ["for (long j = 0; j < m; j++) s += x[i] * x[j];", "for (long j = 0; j < i; j++) s += x[i] * x[j];",
     "for (long j = 0; j < (m < n - i ? m : n - i); j++) s += x[i] * x[j];",
     "for (long j = 0; j < ends[i]; j++) s += x[i] * x[j];"],
)  # fmt: skip
def test_loops_inside_count(body: str, chunks_of_400: None) -> None:
    """As often as is known before: a triangle as its longest row, and sixteen times what only the loop itself knows.
    Counts end at 2**31, and so does what is worth eight and sixteen chunks with copies of x."""
    kernel = irgrad.load(INNER.replace("BODY", body)).kernel(
        "f", "f64(f64[n] x, i64 n, i64 m, i64[n] ends)", threads=2)
    known = re.findall(r"umin.*, i64 21474836\d\d\)", kernel.primal.stage.text)
    assert len(known) == (4 if "ends[" in body else 6)
