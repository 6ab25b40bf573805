"""Pointers behind parameters that lead into a variable which the function uses by name: the program stops, wherever
they are read; it goes on where they lead elsewhere, and its gradient is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
#include <stdio.h>
#include <stdlib.h>
extern int enzyme_const, enzyme_dup;
double __enzyme_autodiff(void *, ...);
struct half { void *tape; double value; } __enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
static double state[4] = {1, 2, 3, 4};
__attribute__((noinline)) static double at(int i) { return state[i] * state[i]; }
typedef struct { int n; double *x; double k; } box;
typedef struct { int n; box *in; } outer;
typedef struct node { struct node *next; double *v; } node;
static double sum(double *x, double k) {
  double s = 0;
  for (int i = 0; i < 4; i++) x[i] *= k, s += x[i] * x[i] * at(i);
  return s;
}
__attribute__((noinline)) static double of_box(box *p) { return p->n > 2 ? sum(p->x, p->k) : 0; }
"""
# the derivatives of  sum over i of (2 x[i] state[i]) ** 2  at x = 1
RIGHT = "8 32 72 128"
PRINT = 'printf("%g %g %g %g\\n", d[0], d[1], d[2], d[3])'
CASES = {
    "member": ("double f(box *p) { return sum(p->x, p->k); }",
               "box b = {4, there, 2}, e = {4, d, 0}; __enzyme_autodiff(f, enzyme_dup, &b, &e)",
               "by the pointer 8 bytes behind it,"),
    "asked for": ("double f(box *p) { return p->n ? sum(p->x, p->k) : 0; }",
                  "box *b = calloc(1, sizeof *b), e = {4, d, 0}; *b = (box){4, there, 2};"
                  "__enzyme_autodiff(f, enzyme_dup, b, &e)", "by a pointer behind it,"),
    "in a callee": ("double f(box *p) { return of_box(p) + of_box(p) * 0; }",
                    "box b = {4, there, 2}, e = {4, d, 0}; __enzyme_autodiff(f, enzyme_dup, &b, &e)", "behind it,"),
    "deep": ("double f(outer *p) { box *q = p->in; return sum(q->x, q->k); }",
             "box b = {4, there, 2}, e = {4, d, 0}; outer o = {1, &b}, g = {1, &e};"
             "__enzyme_autodiff(f, enzyme_dup, &o, &g)", "by the pointer 8 and then 8 bytes behind it,"),
    "table": ("double f(double **p, int n) { double s = 0; for (int i = 0; i < n; i++) s += sum(p[i], 2); return s; }",
              "double *p[2] = {there}, *e[2] = {d}; __enzyme_autodiff(f, enzyme_dup, p, e, enzyme_const, 1)",
              "behind it,"),
    "list": ("double f(node *p) { double s = 0; for (; p; p = p->next) s += sum(p->v, 2); return s; }",
             "double z[4] = {0}, dz[4]; node last = {0, there}, dl = {0, d}, a = {&last, z}, da = {&dl, dz};"
             "__enzyme_autodiff(f, enzyme_dup, &a, &da)", "by a pointer behind it,"),
    "halves": ("double f(box *p) { return sum(p->x, p->k); }",
               "box b = {4, there, 2}, e = {4, d, 0}; struct half h = __enzyme_augmentfwd(f, enzyme_dup, &b, &e);"
               "__enzyme_reverse(f, enzyme_dup, &b, &e, 1.0, h.tape)", "by the pointer 8 bytes behind it,"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_program_stops_where_it_would_be_wrong(name: str, level: str, tmp_path: Path) -> None:
    function, call, said = CASES[name]
    (tmp_path / "p.c").write_text(
        f"{HEAD}{function}\nint main(int argc, char **argv) {{ double x[4] = {{1, 1, 1, 1}}, d[4] = {{0}};\n"
        f"double *there = argc > 1 ? state : x;\n{call}; {PRINT}; return 0; }}\n")  # fmt: skip
    command = [sys.executable, "-m", "irgrad.interop.cli", "cc", level, "p.c", "-o", "p"]
    subprocess.run(command, cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "p"], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == RIGHT, found.stderr
    found = subprocess.run([tmp_path / "p", "there"], capture_output=True, text=True, check=False)
    assert found.returncode == -6, found.stdout
    assert said in found.stderr and "leads into the variable `state`" in found.stderr
    assert "differentiated by @main (p.c:" in found.stderr


def test_a_null_pointer_is_not_read_behind(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(
        f"{HEAD}double f(box *p, double *y) {{ if (p) return sum(p->x, p->k); return *y * at(2); }}\n"
        "int main(void) { double y = 3, dy = 0; __enzyme_autodiff(f, enzyme_dup, (box *)0, (box *)0, enzyme_dup, &y,"
        ' &dy); printf("%g\\n", dy); return 0; }\n')  # fmt: skip
    command = [sys.executable, "-m", "irgrad.interop.cli", "run", "-O1", "p.c"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "9", found.stderr
