"""What the reverse of a loop may keep, in `explain`: bytes of tapes and states, what runs again, why there are none."""

from __future__ import annotations

import re

import irgrad as ig

STEPS = """
#include <math.h>
double f(double *u, const double *w, long n, long steps) {
    double e = 0;
    for (long t = 0; t < steps; t++) {
        for (long i = 1; i < n; i++) u[i] = sin(u[i] + w[i] * u[i - 1]);
        e += u[0] * u[n - 1];
    }
    return e;
}
"""
SIGNATURE = "f64(inout f64[n] u, f64[n] w, i64 n, i64 steps)"


def _choices(source: str, signature: str) -> list[tuple[str, ...]]:
    found = ig.explain(ig.load(source).kernel("f", signature), lanes=False)
    return [loop.choices for function in found.functions for loop in function.loops]


def test_bytes_and_work_of_each() -> None:
    outer, inner = _choices(STEPS, SIGNATURE)
    assert inner == ()
    tape, fused, again, each, some, memory = outer
    assert fused.startswith("not fused: ")
    assert re.fullmatch(r"to run all iterations once more: about [-+ *0-9a-z]*steps[-+ *0-9a-z]* additions, "
                        r"where 8 bytes of tape cost 28", again)  # fmt: skip
    assert tape.startswith("a tape of all iterations: ") and "*n*steps" in tape and "nothing runs again" in tape
    assert each.startswith('checkpoint={"<string>:5": 1}: a state each iteration of 8*n + 40 bytes')
    assert "16 such states" in some and "once more up to 17 iterations, twice up to 153" in some
    assert memory.startswith('tape_memory="512MB"')
    text = str(ig.explain(ig.load(STEPS).kernel("f", SIGNATURE), lanes=False))
    assert text.count("    choice      ") == 6


def test_both_sweeps_at_once() -> None:
    source = """#include <math.h>
    double f(const double *x, long n, long steps) {
        double s = 0;
        for (long i = 0; i < n; i++) { double v = 1; for (long j = 0; j < n; j++) v *= cos(x[i] - x[j]); s += v; }
        return s * steps;
    }"""
    (_, fused, *_), _ = _choices(source, "f64(f64[n] x, i64 n, i64 steps)")
    assert fused == (
        'checkpoint={"<string>:4": "fused"}: the tape of one iteration, both of whose sweeps run; nothing runs again')


def test_why_there_are_no_states() -> None:
    source = "#include <stdio.h>" + STEPS.replace("e += u[0]", "if (t == 3) fflush(stdout); e += u[0]")
    (tape, left), _ = _choices(source, SIGNATURE)
    assert "nothing runs again" in tape
    assert left.startswith("no states: ") and "fflush" in left


def test_loops_that_keep_nothing_have_no_choices() -> None:
    source = "double f(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += 3 * x[i]; return s; }"
    assert _choices(source, "f64(f64[n] x, i64 n)") == [()]
