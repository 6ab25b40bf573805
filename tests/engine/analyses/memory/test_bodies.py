"""What functions do with their parameters, by their bodies alone."""

from __future__ import annotations

import pytest

from irgrad.engine.analyses.memory.bodies import uses, written_through
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.text.reader import read
from irgrad.interop.loaders import load

SOURCE = """
#include <string.h>
double kept;
extern void elsewhere(double *);
double reads(const double *x, long n) { double s = 0; for (long i = 0; i < n; i++) s += x[i]; return s; }
void writes(const double *x, double *y) { y[1] = x[0]; }
void chooses(double *x, double *y, int c) { double *p = c ? x : y + 1; *p = 2; }
void copies(double *x, const double *y) { double t[9]; memcpy(t, y, 72); t[1] = 2; memcpy(x, t, 72); }
void remembers(double *x) { kept = *x; }
double recalls(void) { return kept; }
void hands_on(double *x) { elsewhere(x); }
void calls(double *x, double *y) { writes(y, x); }
void nested(double **x, double *y) { **x = *y; }
void walks(double *x, double *end) { for (; x != end; x += 2) *x = 0; }
void recurses(double *x, double *y, int n) { if (n) { *x = n; recurses(y, x, n - 1); } }
"""


@pytest.fixture(scope="module")
def module() -> Module:
    names = [line.split("(")[0].split()[-1] for line in SOURCE.splitlines() if "{" in line]
    return read(prepare(load(SOURCE).text, names))


@pytest.mark.parametrize(("function", "expected"), [
    ("reads", set()), ("writes", {1}), ("chooses", {0, 1}), ("copies", {0}), ("remembers", None), ("hands_on", None),
    ("calls", {0}), ("nested", None), ("walks", {0}), ("recurses", {0, 1}), ("elsewhere", None),
])  # fmt: skip
def test_what_is_written_through(module: Module, function: str, expected: set[int] | None) -> None:
    fn = module.functions[function]
    before = fn.lazy
    found = written_through(module, fn)
    assert found == expected
    assert fn.lazy == before


def test_what_is_looked_at(module: Module) -> None:
    assert uses(module, module.functions["writes"], 0)
    plain = read("define void @f(ptr %x, ptr %y) {\n  store i8 0, ptr %y\n  ret void\n}\n")
    assert [uses(plain, plain.functions["f"], i) for i in range(2)] == [False, True]
    assert uses(module, module.functions["elsewhere"], 0)
