"""Loops in chunks: which are found independent, whose memory is whose, and that chunks compute what the loop did."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irgrad
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.kernel.shared_loops import shared_loops
from irgrad.engine.normalise.iterations import OWN_PLACES
from irgrad.engine.threads.chunks import share_loops, with_chunks

LOOP = """
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %n) {
entry:
  %count = load i64, ptr %n
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds double, ptr %x, i64 READ
  %a = load double, ptr %p
  %q = getelementptr inbounds double, ptr %y, i64 WRITTEN
  store double %a, ptr %q
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


@pytest.mark.parametrize(
    ("read_at", "written", "shared", "own"),
    [("%i", "%i", True, 2), ("0", "%i", True, 1), ("%i", "0", False, 0), ("%i", "%count", False, 0)],
)
def test_independent_loops_are_found(read_at: str, written: str, shared: bool, own: int) -> None:
    module = read(LOOP.replace("READ", read_at).replace("WRITTEN", written))
    found = share_loops(module, module.functions["f"])
    verify_module(module)
    assert bool(found.shared) is shared and bool(found.others) is not shared
    assert to_text(module).count(OWN_PLACES) == own
    if not shared:
        assert "iterations may meet in memory" in found.others[0]


def test_a_module_without_such_loops_stays_as_it_is() -> None:
    text = LOOP.replace("READ", "%i").replace("WRITTEN", "0")
    assert with_chunks(text, "f") is text


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 31, 32, 33, 1000])
def test_every_iteration_runs_once(n: int) -> None:
    lib = irgrad.load("void f(double *x, long n) { for (long i = 0; i < n; i++) x[i] += i + 1; }")
    f = lib.kernel("f", "void(inout f64[n] x, i64 n)", threads=2)
    np.testing.assert_array_equal(f(np.zeros(n)), np.arange(1.0, n + 1))


def test_rows_of_an_array_are_chunks_own() -> None:
    """Also where the row's length is an argument: the loop over a row is entered only where it is positive."""
    lib = irgrad.load("""
    void f(const double *x, double *y, long n, long m) {
        for (long i = 0; i < n; i++) { double s = 0; for (long j = 0; j < m; j++) s += x[i * m + j]; y[i] = s; }
    }""")
    f = lib.kernel("f", "void(f64[n,m] x, out f64[n] y, i64 n, i64 m)", threads=2)
    head = re.search(r"^define [^\n]*iteration\.0\([^\n]*", f.primal.stage.text, re.M)
    assert head is not None and head[0].count(OWN_PLACES) == 2


def test_a_loop_of_constant_length() -> None:
    """LLVM would write its sixteen chunks one after the other, or hand them to a loop around."""
    lib = irgrad.load("""
    #include <math.h>
    double f(const double *x, long n) {
        double s = 0;
        for (long t = 0; t < n; t++) {
            double y[64];
            for (int i = 0; i < 64; i++) y[i] = sin(x[i] * t);
            for (int i = 0; i < 64; i++) s = 0.5 * s + y[i];
        }
        return s;
    }""")
    f, plain = (lib.kernel("f", "f64(f64[64] x, i64 n)", threads=t) for t in (2, None))
    x = np.linspace(0.0, 1.0, 64)
    np.testing.assert_allclose(irgrad.grad(f)(x, 40), irgrad.grad(plain)(x, 40), rtol=1e-12)
    np.testing.assert_allclose(f(x, 40), plain(x, 40), rtol=1e-12)


def test_short_loops_stay() -> None:
    module = read(LOOP.replace("READ", "%i").replace("WRITTEN", "%i").replace("i64 %next, %count", "i64 %next, 15"))
    found = share_loops(module, module.functions["f"])
    assert not found.shared and found.others[0].endswith("it runs 15 times at most")


@pytest.mark.parametrize(("inside", "shared"), [(True, True), (False, False)])
def test_arrays_of_an_iteration(inside: bool, shared: bool) -> None:
    """What is declared in the loop is of one iteration; before it, an iteration may read what another one left."""
    array = "double d[3];" if inside else ""
    lib = irgrad.load(f"""
    void f(const double *x, double *y, const long *k, long n) {{
        {"" if inside else "double d[3] = {1, 2, 3};"}
        for (long i = 0; i < n; i++) {{
            {array}
            for (long c = 0; c < 3; c++) if ({int(inside)} || x[i * 3 + c] > 0) d[c] = x[i * 3 + c] * (c + 1);
            y[i] = d[k[i]] * d[0];
        }}
    }}""")
    signature = "void(f64[n,3] x, out f64[n] y, i64[n] k, i64 n)"
    f, plain = (lib.kernel("f", signature, threads=t) for t in (2, None))
    assert bool(shared_loops(f.primal).shared) is shared
    x, k = np.random.default_rng(3).normal(size=(50, 3)), np.arange(50) % 3
    np.testing.assert_array_equal(f(x, k), plain(x, k))
    bar = np.cos(np.arange(50.0))
    np.testing.assert_allclose(irgrad.vjp(f, x, k)[1](bar), irgrad.vjp(plain, x, k)[1](bar), rtol=1e-12)
