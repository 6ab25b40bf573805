"""Which memory a derivative asks for. What that computes: `notation_programs/workspaces.c`, `workspaces.cpp`."""

from __future__ import annotations

from pathlib import Path

import pytest

from irgrad.engine.enzyme.found_memory import Group, find_memory, found_before, may_find
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.interop.cli import main

MODULE = """
%s = type { i64, ptr, [2 x { ptr, double }] }
@work = external global ptr
@fields = external global %s
@text = external global [16 x i8]
@bytes = external global { ptr, [24 x i8] }
@elsewhere = external global ptr
@first = external global ptr
define void @f() {
  ret void
}
"""
DEFINED: dict[str | None, bool] = {"work": False, "fields": False, "text": False, "bytes": False, "first": True}


def test_pointers_of_variables_that_the_program_defines() -> None:
    found = may_find(read(MODULE, ["f"]), {**DEFINED})
    assert found == [("work", 0), ("fields", 8), ("fields", 16), ("fields", 32)]


def test_what_is_asked_for_is_part_of_the_function() -> None:
    module = read(MODULE, ["f"])
    groups = {("work", 0): Group(0, 8), ("fields", 8): Group(1, 0), ("fields", 16): Group(0, -1)}
    variables = find_memory(module, module.functions["f"], groups)
    assert [var.name for var in variables] == ["work", "fields"]
    text = to_text(module)
    assert text.count("call ptr @irgrad_found_memory(") == 2
    assert "mul nsw i64" in text
    found_before(module)  # where that is differentiated again, it is no memory of its own
    text = to_text(module)
    assert text.count("call ptr @irgrad_found_memory(") == 0
    assert "call i64 @irgrad_found_before(" in text


def test_a_list_is_not_there_yet() -> None:
    module = read(MODULE, ["f"])
    find_memory(module, module.functions["f"], {("work", 0): Group(0, -2), ("fields", 8): Group(0, -1)})
    text = to_text(module)
    assert text.count("call void @irgrad_found_nothing(") == 1
    assert "the pointer in `work`" in text
    assert "@irgrad_found_begin" not in text


def test_what_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "refused.c"
    path.write_text("""#include <stdlib.h>
static double kept[6], other[6], *w = kept;
static void begin(void) { w = other; }
double __enzyme_autodiff(void *, double);
__attribute__((noinline)) static double f(double x) {
  double s = 0;
  for (int i = 0; i < 6; i++) w[i] = x * i;
  for (int i = 0; i < 6; i++) s += w[i] * w[i];
  return s;
}
int main(void) { begin(); return (int)__enzyme_autodiff((void *)f, 2.0); }
""")
    assert main(["run", str(path)]) == 1
    said = capfd.readouterr().err
    assert "an active float moves through a pointer of unknown origin" in said
    assert "hand over the memory that `w` leads to as an argument" in said


def test_a_shadow_is_not_stored_in_a_variable_of_the_program(tmp_path: Path) -> None:
    path = tmp_path / "stored.c"
    path.write_text("""#include <stdlib.h>
double __enzyme_autodiff(void *, double);
double *w;
static double f(double x) {
  if (w) free(w);
  w = malloc(8);
  *w = x;
  return *w * *w;
}
int main(void) { double d = __enzyme_autodiff((void *)f, 2.0); return d == 4 && *w == 2 && f(3) == 9 ? 7 : 1; }
""")
    assert main(["run", str(path)]) == 7
