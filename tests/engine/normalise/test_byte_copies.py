"""Loops over bytes as memcpy: each spelling copies what it copied, overlapping or not, and has a derivative."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.byte_copies import copy_at_once
from irgrad.interop.loaders import load

LOOPS = {
    "index": "for (size_t i = 0; i < n; i++) t[i] = f[i];",
    "int": "for (int i = 0; i < (int)n; ++i) t[i] = f[i];",
    "unsigned": "for (unsigned i = 0; i != (unsigned)n; i++) t[i] = f[i];",
    "pointers": "for (const char *end = f + n; f != end;) *t++ = *f++;",
    "down": "while (n--) *t++ = *f++;",
    "do": "if (n) do *t++ = *f++; while (--n);",
}
COPY = """#include <stddef.h>
{words} void copy(void *to, const void *from, size_t n) {{ char *t = to; const char *f = from; {loop} }}
"""
PLACES = ((0, 40, 40), (40, 0, 39), (3, 0, 30), (0, 3, 30), (5, 5, 9), (1, 0, 1), (8, 0, 8), (7, 0, 8), (9, 2, 0))
BODY = """#include <stdlib.h>
struct part { double a; int k; double *p; float f; };
double loss(const double *x, long n) {
  struct part *u = calloc(3, sizeof *u), *v = malloc(sizeof *v);
  u->a = x[0] * x[1]; u->k = 2; u->p = malloc(16); u->p[0] = x[2]; u->p[1] = x[3]; u->f = 2;
  copy(v, u, sizeof *u);
  copy(&u[n - 2], v, sizeof *v);
  copy(&u[1], &u[2], sizeof *v);
  return v->a * v->k + u[1].p[1] * v->p[0] * u[2].a + v->f;
}
"""


@pytest.mark.parametrize("name", LOOPS)
def test_overlapping_places(name: str) -> None:
    text = prepare(load(COPY.format(words="", loop=LOOPS[name]), opt="O0").text, ["copy"])
    assert "llvm.memcpy" in text
    unit = compile_module(text, ["copy"])
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(unit.address("copy"))
    for to, source, n in PLACES:
        memory = np.random.default_rng(0).integers(0, 256, 96, dtype=np.uint8)
        want = memory.copy()
        for i in range(n):
            want[to + i] = want[source + i]
        call(memory.ctypes.data + to, memory.ctypes.data + source, n)
        np.testing.assert_array_equal(memory, want)


@pytest.mark.parametrize("level", [None, pytest.param("O0", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LOOPS)
def test_structs_with_pointers_are_copied(name: str, level: str | None) -> None:
    source = COPY.format(words="static", loop=LOOPS[name]) + BODY
    kernel = ig.load(source, opt=level).kernel("loss", "f64(f64[n] x, i64 n)")
    x = np.array([0.5, 0.3, 1.2, 0.7])
    value = x[3] * x[2] * x[0] * x[1]
    want = [value / x[0] + 2 * x[1], value / x[1] + 2 * x[0], value / x[2], value / x[3]]
    np.testing.assert_allclose(ig.engine.grad(kernel)(x), want, rtol=1e-14)
    np.testing.assert_allclose(ig.engine.jvp(kernel, (x,), (x,))[1], want @ x, rtol=1e-14)


@pytest.mark.parametrize("body", [
    "%q = getelementptr i16, ptr %t, i64 %i\n  store i8 %v, ptr %q",
    "%q = getelementptr i8, ptr %t, i64 %i\n  store volatile i8 %v, ptr %q",
    "%q = getelementptr i8, ptr %t, i64 %i\n  %w = add i8 %v, 1\n  store i8 %w, ptr %q",
    "%q = getelementptr i8, ptr %t, i64 %i\n  store i8 %v, ptr %q\n  call void @seen()",
])  # fmt: skip
def test_what_is_no_copy_stays(body: str) -> None:
    module = read(f"""declare void @seen()
define void @f(ptr %t, ptr %s, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %p = getelementptr i8, ptr %s, i64 %i
  %v = load i8, ptr %p
  {body}
  %j = add i64 %i, 1
  %c = icmp ne i64 %j, %n
  br i1 %c, label %loop, label %out
out:
  ret void
}}
""")
    before = to_text(module)
    assert not copy_at_once(module, module.functions["f"]) and to_text(module) == before
