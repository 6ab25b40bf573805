"""Which loops are asked, and that what they compute stays as it is."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.optimise import optimise
from irgrad.engine.codegen.polls import HANDLER, with_polls
from irgrad.engine.codegen.symbols import MEET

SOURCE = """
#include <math.h>
double nested(const double *x, long n, long m) {
    double s = 0;
    for (long t = 0; t < m; t++)
        for (long i = 0; i < n; i++) s = sin(s + x[i]);
    return s;
}
double recurrence(const double *x, long n, long m) {
    double s = x[0];
    for (long t = 0; t < m; t++) s = 3.5 * s * (1 - s);
    return s + n;
}
double memory(double *restrict x, long n, long m) {
    for (long i = 0; i < n; i++) x[i] *= 2;
    return m;
}
double straight(const double *x, long n, long m) { return x[0] * n + m; }
double strange(const double *x, long n, long m) {
    double s = 0;
    long i = 0;
    if (m & 1) goto middle;
    for (;;) {
        s = s * 0.5 + x[i];
        if (s > 1e6) return s;
    middle:
        s += exp(-s);
        if (++i >= n) { if (--m <= 0) break; i = 0; }
        switch (i & 3) { case 0: s += 1; break; case 1: s *= 0.5; break; default: continue; }
    }
    return s;
}
"""
POLLED = {"nested": True, "recurrence": True, "memory": False, "straight": False, "strange": True}


@pytest.fixture(scope="module")
def library() -> ig.Library:
    return ig.load(SOURCE)


def _kernel(library: ig.Library, name: str) -> ig.Kernel:
    role = "inout " if name == "memory" else ""
    return library.kernel(name, f"f64({role}f64[n] x, i64 n, i64 m)")


@pytest.mark.parametrize("name", POLLED)
def test_loops_that_can_take_long_are_asked(name: str, library: ig.Library) -> None:
    program = _kernel(library, name).primal
    text = optimise(program.ir, [program.entry_symbol])
    polled = with_polls(text, [program.entry_symbol])
    assert (polled is not text) == POLLED[name]
    heads = len(re.findall(r"flag\.\d+ = load atomic i32, ptr %irgrad.state ", polled))
    assert (heads > 0) == POLLED[name]
    assert polled.count("call void @irgrad.stop.poll(") == heads
    parse(polled).verify()


def test_the_place_of_a_loop_is_known(library: ig.Library) -> None:
    program = _kernel(library, "nested").primal
    text = with_polls(optimise(program.ir, [program.entry_symbol]), [program.entry_symbol])
    assert re.search(r'@irgrad\.place\.0 = [^\n]*:[56]\\00"', text)


def test_what_is_not_a_program_is_left_alone(library: ig.Library) -> None:
    program = _kernel(library, "nested").primal
    text = optimise(program.ir.replace(program.entry_symbol, "other"), ["other"])
    assert with_polls(text, ["other"]) is text


def _strange(x: list[float], m: int) -> float:
    s, i, skip = 0.0, 0, bool(m & 1)
    while True:
        if not skip:
            s = s * 0.5 + x[i]
        skip = False
        s += np.exp(-s)
        i += 1
        if i >= len(x):
            m -= 1
            if m <= 0:
                return s
            i = 0
        s = s + 1 if i & 3 == 0 else s * 0.5 if i & 3 == 1 else s


@pytest.mark.parametrize("m", [1, 2, 5])
def test_values_and_derivatives(library: ig.Library, m: int) -> None:
    x = np.linspace(0.1, 0.9, 7)
    kernel = _kernel(library, "strange")
    assert kernel(x, m) == pytest.approx(_strange(list(x), m), rel=1e-14)
    h = 1e-6
    wanted = [(_strange(list(x + h * e), m) - _strange(list(x - h * e), m)) / (2 * h) for e in np.eye(7)]
    np.testing.assert_allclose(ig.grad(kernel)(x, m), wanted, rtol=1e-7, atol=1e-9)


def test_a_call_where_the_flag_is_set_leaves_all_values_as_they_are(repository: Path) -> None:
    """Vector registers too: the flag is set at each head here."""
    words = (ctypes.c_int64 * 16)()
    words[0] = words[8] = 1
    asked: list[int] = []
    answer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda place: asked.append(1) or 0)
    kernel = ig.load(repository / "benchmarks" / "kernels" / "burgers.c").kernel(
        "burgers_copy", "f64(f64[n] u0, i64 n, i64 steps, f64 dt, f64 dx, f64 nu)"
    )
    rng, numbers = np.random.default_rng(1), {"n": 50, "steps": 7, "dt": 4e-3, "dx": 2e-2, "nu": 1e-2}
    primal = kernel.primal
    jvp, pullback = primal.jvp, primal.pullback
    for program in (primal, jvp([0, 6]), jvp([0, 6], 3), pullback([0, 6]), pullback([0, 6], 3)):
        shapes = program.shapes({"n": 50})
        start = [np.asarray(numbers.get(slot.name, rng.random(shape)), slot.dtype.numpy)
                 for slot, shape in zip(program.slots, shapes, strict=True)]  # fmt: skip
        plain = program.run([value.copy() for value in start], {"n": 50})
        meet = program.compiled.function(MEET, None, ctypes.c_void_p, ctypes.c_void_p)
        meet(ctypes.addressof(words), ctypes.cast(answer, ctypes.c_void_p))
        before = len(asked)
        for one, other in zip(plain, program.run([value.copy() for value in start], {"n": 50}), strict=True):
            np.testing.assert_array_equal(one, other)
        assert len(asked) > before


TURNED = """
define internal fastcc ptr @h.in_turn(ptr %call) {
start:
  br label %outer
outer:
  %i = phi i64 [ 0, %start ], [ %j, %done ]
  br label %inner
inner:
  %k = phi i64 [ 0, %outer ], [ %l, %inner ]
  %l = add i64 %k, 1
  %p = getelementptr double, ptr %call, i64 %l
  store volatile double 1.0, ptr %p
  %more = icmp ult i64 %l, 1000
  br i1 %more, label %inner, label %done
done:
  %j = add i64 %i, 1
  %again = icmp ult i64 %j, 1000
  br i1 %again, label %outer, label %end
end:
  ret ptr null
}
define ptr @h(ptr %call) {
  %result = call fastcc ptr @h.in_turn(ptr %call)
  ret ptr %result
}
"""


def test_a_handler_that_takes_turns_keeps_the_convention_that_llvm_gave_it() -> None:
    found = with_polls(TURNED, ["h"], HANDLER)
    parse(found).verify()
    assert 'define internal fastcc ptr @"h.in_turn"(ptr' in found
    assert found.count('call fastcc ptr @"h.in_turn.polled"') == 2 == found.count('@"h.in_turn.polled"(') - 1
