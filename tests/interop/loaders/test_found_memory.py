"""Programs whose allocations tell of themselves; what stops one. Values: `notation_programs/workspaces.c`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from irgrad.interop.cli import main
from irgrad.interop.loaders.found_memory import complete

ASKS = "declare ptr @irgrad_found_memory(ptr, i64, i64, i64, ptr)\n"
ALLOCATES = """
@table = global ptr @free
declare ptr @malloc(i64)
declare void @free(ptr)
define ptr @bytes(ptr %p) {
  call void @free(ptr %p)
  %q = call ptr @malloc(i64 8)
  ret ptr %q
}
define ptr @calls(ptr %p) {
  %q = call ptr @irgrad_found_memory(ptr %p, i64 8, i64 1, i64 0, ptr %p)
  %r = call ptr @bytes(ptr %q)
  ret ptr %r
}
"""


def test_allocations_tell_where_somebody_asks() -> None:
    silent = ALLOCATES.replace("@irgrad_found_memory", "@other") + ASKS.replace("@irgrad_found_memory", "@other")
    assert complete(silent) == silent
    told = complete(ALLOCATES + ASKS)
    assert "@table = global ptr @irgrad_found_by_free" in told
    assert "call ptr @irgrad_found_by_malloc(i64 8)" in told
    assert "define ptr @bytes(" in told


def test_what_is_left_of_a_question_is_linked() -> None:
    """LLVM drops who looks for a shadow before who notes one."""
    left = complete("declare void @irgrad_found_shadow(ptr, ptr, ptr, i64)\n")
    assert "define internal void @irgrad_found_shadow(" in left


def test_functions_of_the_program_stay(tmp_path: Path) -> None:
    own = ALLOCATES.replace("declare void @free(ptr)\n", "define void @free(ptr %p) {\n  ret void\n}\n")
    assert "call void @free(ptr %p)" in complete(own + ASKS)


@pytest.mark.parametrize(("before", "message"), [
    ("static double kept[4]; w = kept;", "no allocation of this program returned"),
    ("w = malloc(32); k = (int *)w;", "for values of another kind"),
    ("double here[4]; w = here;", "no allocation of this program returned"),
])  # fmt: skip
def test_what_cannot_be_right_stops_the_program(before: str, message: str, tmp_path: Path) -> None:
    path, program = tmp_path / "stops.c", tmp_path / "stops"
    path.write_text(f"""#include <stdlib.h>
double __enzyme_autodiff(void *, double);
static double *w;
static int *k;
__attribute__((noinline)) static double f(double x) {{
  double s = 0;
  for (int i = 0; i < 4; i++) w[i] = x * i;
  for (int i = 0; i < 4; i++) s += w[i] * w[i];
  k[0] = 1;
  return s;
}}
int main(void) {{
  k = malloc(32);
  {before}
  return (int)__enzyme_autodiff((void *)f, 2.0);
}}
""")
    assert main(["cc", str(path), "-o", str(program)]) == 0
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert message in done.stderr


def test_a_list_that_was_made_before_stops_the_program(tmp_path: Path) -> None:
    """One that is made in the call is memory of the call: `notation_programs/contexts.c`."""
    path, program = tmp_path / "list.c", tmp_path / "list"
    path.write_text("""#include <stdlib.h>
double __enzyme_autodiff(void *, double);
static struct node { struct node *next; double value; } *first;
static void push(double x) {
  struct node *made = malloc(sizeof *made);
  *made = (struct node){first, x};
  first = made;
}
__attribute__((noinline)) static double f(double x) {
  for (int i = 1; i < 3; i++) push(i * x);
  double s = 0;
  for (struct node *p = first; p; p = p->next) s += p->value * p->value;
  first = NULL;
  return s;
}
int main(int argc, char **argv) {
  if (argc > 1) push(3);
  return (int)__enzyme_autodiff((void *)f, 2.0);
}
""")
    assert main(["cc", "-O0", str(path), "-o", str(program)]) == 0
    assert subprocess.run([str(program)], check=False).returncode == 20
    done = subprocess.run([str(program), "list"], capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 20)
    assert "the pointer in `first` leads to a list or a tree that was made before the derivative" in done.stderr
