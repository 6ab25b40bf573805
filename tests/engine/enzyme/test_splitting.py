"""Split mode as text: one derivative for both halves, a tape that is checked; what it computes is in
`notation_programs/split.c`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from irgrad.engine.enzyme.lower import lower
from irgrad.interop.cli import main
from irgrad.interop.loaders import load
from irgrad.rules.errors import Unsupported

HEAD = """extern int enzyme_const, enzyme_width, enzyme_tape, enzyme_allocated, enzyme_not_overwritten;
struct taped { void *tape; double value; };
struct taped __enzyme_augmentfwd(void *, ...);
double __enzyme_reverse(void *, ...);
void __enzyme_reverse_void(void *, ...);
double square(double x) { return x * x; }
double sum(double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }
"""


def test_both_halves_share_a_derivative() -> None:
    text = lower(load(HEAD + """
void both(double *x, double *d, int n) {
  struct taped t = __enzyme_augmentfwd((void *)sum, x, d, n);
  __enzyme_reverse_void((void *)sum, x, d, n, 1.0, t.tape);
}""").text)  # fmt: skip
    names = re.findall(r"^define [^@\n]*@(irgrad\.root\.[\w.]+)\(", text, re.M)
    assert sorted(names) == ["irgrad.root.1.split_reverse.101", "irgrad.root.1.split_reverse.101.reverse"]


@pytest.mark.parametrize(("said", "loads"), [("", 0), ("enzyme_not_overwritten,", 1)])
def test_memory_that_stays_is_read_again(said: str, loads: int) -> None:
    text = lower(load(HEAD + f"""
double product(double *x) {{ return x[0] * x[1]; }}
struct taped first(double *x, double *d) {{
  return __enzyme_augmentfwd((void *)product, {said} x, d);
}}""").text)
    reverse = text.split(".reverse(ptr %v0,", 1)[1].split("\n}", 1)[0]
    assert reverse.count("ptr %v0, align") == loads


def test_a_tape_of_another_function_stops_the_program(tmp_path: Path) -> None:
    path = tmp_path / "mixed.c"
    path.write_text(HEAD + """
int main(void) {
  double x[2] = {1, 2}, d[2] = {0};
  struct taped t = __enzyme_augmentfwd((void *)square, 3.0);
  __enzyme_reverse_void((void *)sum, x, d, 2, 1.0, t.tape);
}""")
    program = tmp_path / "mixed"
    assert main(["cc", str(path), "-o", str(program)]) == 0
    done = subprocess.run([str(program)], check=False, capture_output=True, text=True)
    assert done.returncode < 0
    assert "this tape belongs to another function" in done.stderr


@pytest.mark.parametrize(("body", "what", "because"), [
    ("double r(double x) { return __enzyme_reverse((void *)square, x, 1.0); }",
     "too few arguments", "the tape that __enzyme_augmentfwd returned is missing"),
    ("double r(double x) { return __enzyme_reverse((void *)square, x, 1.0, 2.0); }",
     "the tape is a `double`", "returns first is a pointer"),
    ("double r(double x, char *t) { return __enzyme_reverse((void *)square, enzyme_allocated, 4, enzyme_tape, t, x); }",
     "the memory for the tape is too small", "4 bytes, and 8 are needed"),
    ("struct taped r(double x, char *t) { return __enzyme_augmentfwd((void *)square, enzyme_tape, 3, x); }",
     "enzyme_tape is not followed by an address", "`i32`"),
    ("void r(double x, void *t) { __enzyme_reverse_void((void *)square, enzyme_width, 3, x, 1.0, 2.0, t); }",
     "too few arguments", "the tape that __enzyme_augmentfwd returned is missing"),
])  # fmt: skip
def test_what_is_wrong_names_the_line(body: str, what: str, because: str) -> None:
    text = load(HEAD + body).text
    with pytest.raises(Unsupported) as caught:
        lower(text)
    assert what in caught.value.what
    assert because in caught.value.because
    assert f":{HEAD.count(chr(10)) + 1}:" in caught.value.where
