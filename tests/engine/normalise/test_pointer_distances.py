"""The size of vectors that change places leaves the loop, and other distances stay."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.pointer_distances import settle_distances

SWAPPED = """declare ptr @malloc(i64)
define i64 @f(i64 %n, i64 %size, i1 %some) {
entry:
  br i1 %some, label %make, label %start
make:
  %u = call ptr @malloc(i64 %size)
  %v = call ptr @malloc(i64 %size)
  %ue = getelementptr i8, ptr %u, i64 %size
  %ve = getelementptr i8, ptr %v, i64 %size
  br label %start
start:
  %u0 = phi ptr [ %u, %make ], [ null, %entry ]
  %ue0 = phi ptr [ %ue, %make ], [ null, %entry ]
  %v0 = phi ptr [ %v, %make ], [ null, %entry ]
  %ve0 = phi ptr [ %ve, %make ], [ null, %entry ]
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %total = phi i64 [ 0, %start ], [ %more, %loop ]
  %a = phi ptr [ %u0, %start ], [ %b, %loop ]
  %ae = phi ptr [ %ue0, %start ], [ %be, %loop ]
  %b = phi ptr [ %v0, %start ], [ %a, %loop ]
  %be = phi ptr [ %ve0, %start ], [ %ae, %loop ]
  %x = ptrtoint ptr %ae to i64
  %y = ptrtoint ptr %a to i64
  %d = sub i64 %x, %y
  %count = ashr exact i64 %d, 3
  %more = add i64 %total, %count
  %next = add nuw nsw i64 %i, 1
  %end = icmp eq i64 %next, %n
  br i1 %end, label %out, label %loop
out:
  ret i64 %more
}
"""
EDITS = {
    "of another size": ("ptr %v, i64 %size", "ptr %v, i64 %n"),
    "of another element": ("%ve = getelementptr i8", "%ve = getelementptr i16"),
    "empty alone": ("[ %ve, %make ], [ null", "[ %ve, %make ], [ inttoptr (i64 8 to ptr)"),
    "only one moves": ("%be = phi ptr [ %ve0, %start ], [ %ae", "%be = phi ptr [ %ve0, %start ], [ %be"),
    "shrinks": ("%ae = phi ptr [ %ue0, %start ], [ %be", "%ae = phi ptr [ %ue0, %start ], [ %less"),
}
LESS = ("%x = ptrtoint", "%less = getelementptr i8, ptr %be, i64 -8\n  %x = ptrtoint")


def test_the_size_of_vectors_that_change_places_leaves_the_loop() -> None:
    fn = read(SWAPPED).functions["f"]
    assert settle_distances(fn) == 1
    loop = next(block for block in fn.blocks if block.name == "loop")
    assert not {"sub", "ptrtoint", "ashr"} & {i.opcode for i in loop.instructions}
    assert settle_distances(fn) == 0


@pytest.mark.parametrize("name", list(EDITS))
def test_other_distances_stay(name: str) -> None:
    text = SWAPPED.replace(*EDITS[name])
    assert text != SWAPPED
    fn = read(text.replace(*LESS) if "%less" in text else text).functions["f"]
    assert settle_distances(fn) == 0


VECTORS = """
#include <utility>
#include <vector>
static void step(const std::vector<double> &u, std::vector<double> &next, double k) {
    for (size_t i = 1; i + 1 < u.size(); i++) next[i] = u[i] + k * u[i] * (u[i + 1] - 2 * u[i] + u[i - 1]);
}
extern "C" double f(const double *x, long n, long steps) {
    std::vector<double> u(x, x + n), next = u;
    for (long t = 0; t < steps; t++) {
        step(u, next, 0.1);
        std::swap(u, next);
    }
    double s = 0;
    for (double v : u) s += v * v;
    return s;
}
"""


@pytest.mark.parametrize(("n", "steps"), [(0, 3), (1, 2), (2, 4), (3, 1), (7, 0), (19, 5), (40, 12)])
def test_gradients_through_swapped_vectors(n: int, steps: int) -> None:
    kernel = irgrad.load(VECTORS, language="c++").kernel("f", "f64(f64[n] x, i64 n, i64 steps)")
    x = np.random.default_rng(n).uniform(0.5, 1.5, n)
    got = engine.grad(kernel, wrt="x")(x, steps)
    for i in range(n):
        h = np.zeros(n)
        h[i] = 1e-5
        slope = (kernel(x + h, steps) - kernel(x - h, steps)) / 2e-5
        assert np.asarray(got)[i] == pytest.approx(slope, rel=1e-6, abs=1e-8)
