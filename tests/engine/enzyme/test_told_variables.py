"""Variables whose address the program keeps or hands on: what may be written there is not lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import irgrad
from irgrad.engine.enzyme.told_variables import libraries_called, told_variables
from irgrad.engine.ir.text.reader import read

SOURCE = """
#include <string.h>
double plain[4], held[4], stored[4], returned[4], given[4], kept[4], part[4], copied[4], asked[4], library[4], loop[4];
double *where = held, *slot;
struct both { int n; double *p; } both = {1, part + 2};
void elsewhere(double *);
double strtod(const char *, char **);
void __enzyme_autodiff(void *, ...);
static double sum(const double *x, int n) { return n ? x[n - 1] + sum(x, n - 1) : 0; }
__attribute__((noinline)) static void keep(int n, double *x) { if (n) keep(n - 1, x); else slot = x; }
double *give(void) { return returned; }
void store(void) { slot = stored; }
double f(int i) {
  plain[i] = given[i] = 1;
  for (double *p = loop; p < loop + 4; p++) *p = i;
  keep(i, kept);
  elsewhere(library);
  memcpy(copied, plain, sizeof plain);
  __enzyme_autodiff((void *)f, asked, asked);
  return sum(given, 4) + copied[i];
}
"""
NAMES = "plain held stored returned given kept part copied asked library loop".split()


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_whose_address_is_known_elsewhere(level: str, tmp_path: Path) -> None:
    (tmp_path / "told.c").write_text(SOURCE)
    text = irgrad.load(tmp_path / "told.c", opt=level).text
    assert told_variables(text, NAMES) == {"held", "stored", "returned", "kept", "part", "library"}


def test_code_of_which_nothing_is_known() -> None:
    head = ("declare double @{0}(double)\n"
            "define double @f(double %x) {{\n  %y = call double @{0}(double %x)\n  ret double %y\n}}\n")
    assert libraries_called(read(head.format("mystery"), ["f"]))
    assert not libraries_called(read(head.format("sin"), ["f"]))
    assert not libraries_called(read(head.format("llvm.sin.f64"), ["f"]))


@pytest.mark.parametrize(("variables", "read_total", "library", "said"), [
    ("double total[2], *where = total;", "where[1] = x * x; return total[1] * 3;", "",
     "an active float moves through a pointer of unknown origin"),
    ("double total; extern double read_total(void);", "total = x * x; return read_total() * 3;",
     "extern double total; double read_total(void) { return total; }", "`read_total` has neither a body nor a rule"),
    ("static double total; double *expose(void) { return &total; } extern double read_total(void);",
     "total = x * x; return read_total() * 3;",
     "double *expose(void); double read_total(void) { return *expose(); }",
     "`read_total` has neither a body nor a rule"),
])  # fmt: skip
def test_it_is_refused(variables: str, read_total: str, library: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "told.c").write_text(
        f"double __enzyme_autodiff(void *, double);\n{variables}\nstatic double f(double x) {{ {read_total} }}\n"
        "int main(void) { return (int)__enzyme_autodiff((void *)f, 5.0); }\n"
    )
    (tmp_path / "library.c").write_text(library)
    subprocess.run(["cc", "-c", "library.c", "-o", "library.o"], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "irgrad.interop.cli", "cc", "-O2", "told.c", "library.o", "-o", "told"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert said in found.stderr
