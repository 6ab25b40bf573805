"""`irgrad hints` and `irgrad rules`."""

from __future__ import annotations

from pathlib import Path

import pytest

import irgrad
from irgrad.interop.cli import main
from irgrad.interop.hints import EQUALITY, hints, unknown_callees
from irgrad.rules import inactive, layer

SOURCE = """
#include <math.h>
#include <stdio.h>
double outside(double a, int n);
void fill(double *x, long n);
void log_value(double x);
double entry(double *x, long n) { fill(x, n); log_value(x[0]); printf("%g", x[0]); return outside(sin(x[0]), 5); }
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "entry.c"
    path.write_text(SOURCE)
    return path


def test_lines_to_paste(source: Path) -> None:
    library = irgrad.load(source)
    with layer():
        inactive("log_value")
        assert [name for name, _ in unknown_callees(library)] == ["fill", "outside"]
        text = hints(library)
        assert "# double outside(double a0, int a1);" in text
        assert '@rule("outside")\ndef _(a0, a1): return ...' in text
        assert '@rule("fill", mode="reverse")\ndef _(ctx, a0, a1): ...' in text
        inactive("fill", "outside")
        assert hints(library).startswith("every function")


TESTS = """
#include <math.h>
double at_two(double x) { if (x == 2.0) return 4.0; return x * x; }
double pole(double x, double y) {
  double d = x - y;
  return d != 0 ? sin(d) / d : 1;
}
double fine(double x, int n) {
  if (x != x || isnan(x) || x == INFINITY || x == -INFINITY) return 0;
  if ((double)n == 3.0 || n == 2) return x;
  return x < 2.0 ? x : 2.0;
}
"""


def test_lines_that_compare_floats_for_equality(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "special.c"
    path.write_text(TESTS)
    text = hints(irgrad.load(path))
    assert EQUALITY in text
    rows = [line.split() for line in text.splitlines() if line.startswith("#   ")]
    assert [(row[1].rpartition("/")[2].split(":")[:2], row[-1]) for row in rows] == [
        (["special.c", "3"], "@at_two"), (["special.c", "6"], "@pole"),
    ]  # fmt: skip
    assert main(["hints", str(path)]) == 0
    assert "special.c:6:12" in capsys.readouterr().out


def test_command_line(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hints", str(source)]) == 0
    assert 'inactive("log_value")' in capsys.readouterr().out
    assert main(["rules", "show", "sinf"]) == 0
    assert "cos(x0)" in capsys.readouterr().out
    assert main(["rules", "list"]) == 0
    assert "hypot" in capsys.readouterr().out
    assert main(["rules", "show"]) == 1
    assert main(["rules", "list", "--rules", "no_such_module_of_rules"]) == 1
    assert "cannot import the rules" in capsys.readouterr().err


def test_rules_come_from_a_file(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "my_rules.py"
    rules.write_text("""
from irgrad import inactive, rule
inactive("log_value", "fill")

@rule("outside")
def _(a, n): return 2 * a
""")
    with layer():
        assert main(["hints", str(source), "--rules", str(rules)]) == 0
        assert "every function that is called has" in capsys.readouterr().out
