"""A constant needs no shadow because a function that reads it also reads what is differentiated."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.engine.normalise.constant_arguments import separate_constants
from irgrad.interop.driver import main_cc

SCALE = """define internal void @scale(ptr %from, ptr %by, ptr %to) {
  %x = load double, ptr %from
  %y = load double, ptr %by
  %p = fmul double %x, %y
  store double %p, ptr %to
  ret void
}
"""
OUTER = """define internal void @outer(ptr %from, ptr %by, ptr %to) {
  call void @scale(ptr %from, ptr %by, ptr %to)
  ret void
}
"""
F = """define void @f(ptr %x, ptr %c, ptr %out) {
  %t = alloca double
  call void @scale(ptr %c, ptr %x, ptr %t)
  call void @scale(ptr %t, ptr %x, ptr %out)
  ret void
}
"""
FOUND = {
    "directly": (SCALE + F, 1),
    "through a function between": (SCALE + OUTER + F.replace("@scale", "@outer"), 2),
    "its address is used too": (SCALE + F.replace("  ret", "  store ptr @scale, ptr null\n  ret"), 1),
    "two constants": (SCALE + F.replace("ptr %out)", "ptr %d, ptr %out)", 1).replace(
        "  ret", "  call void @scale(ptr %d, ptr %x, ptr %t)\n  ret"), 1),
}  # fmt: skip
LEFT = {
    "seen from outside": SCALE.replace("internal ", "") + F,
    "calls itself": SCALE.replace("  ret", "  call void @scale(ptr %to, ptr %by, ptr %from)\n  ret") + F,
    "one call for both": SCALE + F.replace("  call void @scale(ptr %c, ptr %x, ptr %t)\n", """  %b = load i1, ptr %x
  %s = select i1 %b, ptr %c, ptr %t
  %z = load double, ptr %x
  store double %z, ptr %t
""").replace("ptr %t, ptr %x, ptr %out", "ptr %s, ptr %x, ptr %out"),
}  # fmt: skip
PROGRAM = """#include <math.h>
static void turn(const double *a, double by, double *out) {
    for (int i = 0; i < 3; i++) { out[i] = 0; for (int k = 0; k < 3; k++) out[i] += cos(by * (i + k)) * a[k]; }
}
static void bend(const double *a, const double *t, int twice, double *out) {
    double first[3];
    turn(a, t[0], first);
    for (int i = 0; i < twice; i++) { turn(first, t[1], out); for (int k = 0; k < 3; k++) first[k] = out[k]; }
}
"""
ROOT = """double f(const double *t, const double *rest, int n) {
    double own[3], s = 0;
    bend(rest, t, n, own);
    bend(own, t, n, own);
    for (int i = 0; i < 3; i++) s += own[i] * own[i];
    return s;
}
"""
STAY = "__attribute__((noinline)) static"


def _facts(text: str) -> Facts:
    module = read(text)
    return Facts(module, module.functions["f"], [0, len(module.functions["f"].args) - 1])


@pytest.mark.parametrize("what", FOUND)
def test_the_constant_needs_no_shadow(what: str) -> None:
    text, rounds = FOUND[what]
    facts = _facts(text)
    assert facts.activity.scratch
    for _ in range(rounds):
        assert separate_constants(facts)
        assert not verify_module(facts.module)
        facts = Facts(facts.module, facts.root, facts.dup)
    assert not facts.activity.scratch
    assert not separate_constants(facts)


@pytest.mark.parametrize("what", LEFT)
def test_others_stay(what: str) -> None:
    facts = _facts(LEFT[what])
    assert facts.activity.scratch
    assert not separate_constants(facts)


def test_a_kernel_against_differences(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text((PROGRAM + ROOT).replace("static", STAY), encoding="utf-8")
    kernel = ig.load(tmp_path / "f.c").kernel("f", "f64(f64[2] t, f64[3] rest, i32 n)")
    t, rest = np.array([0.3, -0.7]), np.array([1.0, 0.5, -2.0])
    found = ig.grad(kernel, "t")(t, rest, 2)
    steps = 1e-6 * np.eye(2)
    want = [(kernel(t + step, rest, 2) - kernel(t - step, rest, 2)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found, want, rtol=1e-7)


def test_a_program_says_enzyme_const(tmp_path: Path) -> None:
    main = """#include <stdio.h>
int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
int main() {
    double t[2] = {0.3, -0.7}, g[2] = {0, 0}, rest[3] = {1, 0.5, -2};
    __enzyme_autodiff((void *)f, enzyme_dup, t, g, enzyme_const, rest, enzyme_const, 2);
    for (int i = 0; i < 2; i++) {
        double up[2] = {t[0], t[1]}, down[2] = {t[0], t[1]};
        up[i] += 1e-6, down[i] -= 1e-6;
        double want = (f(up, rest, 2) - f(down, rest, 2)) / 2e-6;
        if (!(fabs(g[i] - want) < 1e-6 * (1 + fabs(want)))) return 1 + i;
    }
    return 0;
}
"""
    (tmp_path / "p.c").write_text((PROGRAM + ROOT).replace("static", STAY) + main, encoding="utf-8")
    assert main_cc(["-O2", str(tmp_path / "p.c"), "-o", str(tmp_path / "p"), "-lm"]) == 0
    assert subprocess.run([str(tmp_path / "p")], check=False).returncode == 0
