"""Variables that a call hands over and that the function uses by name: the program stops. What works is in
`notation_programs/given.c`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
extern int enzyme_const, enzyme_dup;
double __enzyme_autodiff(void *, ...);
double *malloc(unsigned long);
static double state[4] = {1, 2, 3, 4}, *held;
typedef struct { double a, b; int n; } pair;
static pair one, many[5];
__attribute__((noinline)) static double at(int i) { return state[i] * state[i]; }
__attribute__((noinline)) static void put(int i, double v) { state[i] = v; }
__attribute__((noinline)) static double behind(int i) { return held[i]; }
__attribute__((noinline)) static double product(int i) { return one.a * many[i].b; }
"""
MEMBERS = [f"m{n}" for n in range(70)]
WIDE = f"""typedef struct {{ double {', '.join(MEMBERS)}; }} wide;
static wide all;
__attribute__((noinline)) static double every(void) {{ return {' * '.join(f'all.{m}' for m in MEMBERS)}; }}
"""
SUM = "double s = 0; for (int i = 0; i < 4; i++)"


@pytest.mark.parametrize(("function", "call", "said"), [
    (f"double f(double *x) {{ {SUM} x[i] *= 2; for (int i = 0; i < 4; i++) s += at(i); return s; }}",
     "double d[4] = {0}; __enzyme_autodiff(f, enzyme_dup, state, d)", "leads into the variable `state`"),
    (f"double f(double *x) {{ {SUM} put(i, x[i] * x[i]); for (int i = 0; i < 4; i++) s += x[i]; return s; }}",
     "double d[4] = {0}; __enzyme_autodiff(f, enzyme_dup, state, d)", "leads into the variable `state`"),
    (f"double f(double *x) {{ {SUM} s += at(i) * x[1]; return s; }}",
     "double d[4] = {0}; __enzyme_autodiff(f, enzyme_dup, &state[1], d)", "leads into the variable `state`"),
    (f"double f(double *w, double *x) {{ {SUM} w[i] = x[i]; for (int i = 0; i < 4; i++) s += at(i); return s; }}",
     "double d[4] = {0}, x[4] = {1}; __enzyme_autodiff(f, enzyme_const, state, enzyme_dup, x, d)",
     "parameter 1 of `f` leads into the variable `state`"),
    (f"double f(double *x) {{ {SUM} s += behind(i) * x[i]; return s; }}",
     "double d[4] = {0}, x[4] = {1}; held = x; __enzyme_autodiff(f, enzyme_dup, x, d)",
     "is the pointer that the variable `held` holds"),
    (f"double f(double *x) {{ {SUM} held[i] = x[i] * x[i]; for (int i = 0; i < 4; i++) s += x[i]; return s; }}",
     "double d[4] = {0}; held = malloc(32); __enzyme_autodiff(f, enzyme_dup, held, d)",
     "is the pointer that the variable `held` holds"),
    ("double f(pair *p) { p->a *= 2; return product(1) * p->b; }",
     "pair d = {0}; many[1].b = 3; __enzyme_autodiff(f, enzyme_dup, &one, &d)", "leads into the variable `one`"),
    (f"double f(pair *p) {{ one.a = 2; {SUM} s += p[i].b * product(i); return s; }}",
     "pair d[5] = {0}; many[1].b = 3; __enzyme_autodiff(f, enzyme_dup, many, d)", "leads into the variable `many`"),
    (f"{WIDE} double f(double *x) {{ return every() * *x; }}",  # as many questions as there are members
     "double d = 0; __enzyme_autodiff(f, enzyme_dup, &all.m69, &d)", "leads into the variable `all`"),
])  # fmt: skip
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_program_stops(function: str, call: str, said: str, level: str, tmp_path: Path) -> None:
    (tmp_path / "given.c").write_text(f"{HEAD}{function}\nint main(void) {{\n{call};\nreturn 0; }}\n")
    command = [sys.executable, "-m", "irgrad.interop.cli", "run", level, "given.c"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 134, found.stderr
    assert said in found.stderr
    assert "differentiated by @main (given.c:" in found.stderr
    assert "use the parameter in place of the variable" in found.stderr
