"""Time levels picked by the parity of the step are two phis that change places; what only looks so is left alone."""

from __future__ import annotations

import numpy as np
import pytest

import irgrad
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.alternating import swap_alternating

TABLE = """declare ptr @malloc(i64)
declare void @free(ptr)
define void @f(ptr noalias %x, ptr noalias %out, i32 %n, i64 %size) {
entry:
  %levels = alloca [2 x ptr]
  %one = call ptr @malloc(i64 %size)
  store ptr %one, ptr %levels
  %second = getelementptr i8, ptr %levels, i64 8
  %two = call ptr @malloc(i64 %size)
  store ptr %two, ptr %second
  br label %loop
loop:
  %t = phi i32 [ 0, %entry ], [ %next, %loop ]
  %odd = and i32 %t, 1
  %from = zext i32 %odd to i64
  %p = getelementptr ptr, ptr %levels, i64 %from
  %u = load ptr, ptr %p
  %even = xor i32 %odd, 1
  %to = zext i32 %even to i64
  %q = getelementptr ptr, ptr %levels, i64 %to
  %v = load ptr, ptr %q
  %a = load double, ptr %u
  %b = fmul double %a, %a
  store double %b, ptr %v
  %next = add i32 %t, 1
  %end = icmp eq i32 %next, %n
  br i1 %end, label %done, label %loop
done:
  call void @free(ptr %one)
  ret void
}
"""
EDITS = {
    "steps of two": ("%next = add i32 %t, 1", "%next = add i32 %t, 2"),
    "a table that changes": ("store double %b, ptr %v", "store double %b, ptr %v\n  store ptr %v, ptr %second"),
    "beside the table": ("zext i32 %even to i64", "sub i64 2, %from"),
    "a start that is not known": ("phi i32 [ 0, %entry ]", "phi i32 [ %n, %entry ]"),
    "every other bit": ("and i32 %t, 1", "and i32 %t, 2"),
    "a higher bit": ("%odd = and i32 %t, 1", "%half = lshr i32 %t, 1\n  %odd = and i32 %half, 1"),
}


def _loop(text: str) -> tuple[int, list[str]]:
    """How many pointers changed, and the phis of pointers then."""
    module = read(text)
    count = swap_alternating(module, module.functions["f"])
    header = next(b for b in module.functions["f"].blocks if b.name == "loop")
    phis = [i for i in header.phis if i.type.is_ptr]
    return count, sorted(str(phi.operands[0].name) for phi in phis)


def test_entries_of_a_table_become_the_two_allocations() -> None:
    assert _loop(TABLE) == (2, ["one", "two"])


def test_an_index_that_comes_back_is_as_good() -> None:
    flipped = TABLE.replace("%next = add i32 %t, 1", "%more = add i32 %t, 1\n  %next = xor i32 %t, 1")
    flipped = flipped.replace("%odd = and i32 %t, 1", "%odd = add i32 %t, 0")
    flipped = flipped.replace("icmp eq i32 %next", "icmp eq i32 %n")
    assert _loop(flipped) == (2, ["one", "two"])


@pytest.mark.parametrize("name", EDITS)
def test_what_does_not_alternate_is_left_alone(name: str) -> None:
    old, new = EDITS[name]
    assert old in TABLE
    count, phis = _loop(TABLE.replace(old, new))
    assert count == (1 if name == "beside the table" else 0)
    assert len(phis) == (2 if name == "beside the table" else 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [("store ptr %two, ptr %second", "store ptr %two, ptr %second\n  store ptr %one, ptr %second"),
     ("br label %loop\nloop", "%w = icmp eq i32 %n, 7\n  br i1 %w, label %again, label %loop\nagain:\n"
      "  store ptr %one, ptr %second\n  br label %loop\nloop")],
)  # fmt: skip
def test_a_cell_that_is_stored_to_twice_is_read(old: str, new: str) -> None:
    text = TABLE.replace(old, new)
    if "%again" in text:
        text = text.replace("br i1 %w, label %again, label %loop", "br i1 %w, label %again, label %start")
        text = text.replace("  br label %loop\nloop", "  br label %start\nstart:\n  br label %loop\nloop")
        text = text.replace("phi i32 [ 0, %entry ]", "phi i32 [ 0, %start ]")
    count, phis = _loop(text)
    assert count == 2
    assert phis.count("one") == 1 and "two" not in phis


STENCIL = """#include <stdlib.h>
double f(const double *u0, int n, int steps) {{
    {0}
    for (int i = 0; i < n; i++) {1}
    {2}
    for (int t = 0; t < steps; t++) {{
        double *u = {3}, *v = {4};
        for (int i = 1; i < n - 1; i++) v[i] = u[i] + 0.1 * u[i] * (u[i + 1] - u[i - 1]) + 0.2 * (u[i + 1] - 2 * u[i]);
        {5}
    }}
    double s = 0;
    for (int i = 0; i < n; i++) s += {6}[i] * {6}[i] * (i + 1);
    {7}
    return s;
}}"""
POINTERS = "double *w[2] = {malloc(n * sizeof(double)), malloc(n * sizeof(double))};"
FORMS = {  # declare, start, before, read, write, after, last, release
    "t % 2": (POINTERS, "w[0][i] = w[1][i] = u0[i];", "", "w[t % 2]", "w[(t + 1) % 2]", "", "w[steps % 2]",
              "free(w[0]), free(w[1]);"),
    "an index": (POINTERS, "w[0][i] = w[1][i] = u0[i];", "int cur = 0;", "w[cur]", "w[1 - cur]", "cur = 1 - cur;",
                 "w[cur]", "free(w[0]), free(w[1]);"),
    "swapped": (POINTERS + "double *a = w[0], *b = w[1];", "a[i] = b[i] = u0[i];", "", "a", "b",
                "double *c = a; a = b, b = c;", "a", "free(a), free(b);"),
    "rows of one array": ("double (*w)[64] = malloc(128 * sizeof(double));", "w[0][i] = w[1][i] = u0[i];", "",
                          "w[t % 2]", "w[(t + 1) % 2]", "", "w[steps % 2]", "free(w);"),
    "a choice": (POINTERS, "w[0][i] = w[1][i] = u0[i];", "double *a = w[0], *b = w[1];", "(t & 1 ? b : a)",
                 "(t & 1 ? a : b)", "", "(steps & 1 ? b : a)", "free(a), free(b);"),
}  # fmt: skip


def _value(u0: np.ndarray, steps: int) -> complex:
    u, v = u0.copy(), u0.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] + 0.1 * u[1:-1] * (u[2:] - u[:-2]) + 0.2 * (u[2:] - 2 * u[1:-1])
        u, v = v, u
    return complex((u * u * np.arange(1, len(u) + 1)).sum())


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_time_levels(form: str, steps: int) -> None:
    kernel = irgrad.load(STENCIL.format(*FORMS[form])).kernel("f", "f64(f64[n] u0, i32 n, i32 steps)")
    u0 = np.random.default_rng(5).normal(size=12)
    want = [_value(u0 + 1e-30j * e, steps).imag / 1e-30 for e in np.eye(12)]
    np.testing.assert_allclose(kernel(u0, steps), _value(u0, steps).real, rtol=1e-13)
    np.testing.assert_allclose(irgrad.grad(kernel)(u0, steps), want, rtol=1e-12)
