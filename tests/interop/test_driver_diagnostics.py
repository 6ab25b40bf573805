"""What the compiler says about calls that are wrong: each with its file, line and column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irgrad.interop.cli import main

HEAD = """#include <math.h>
extern int enzyme_const, enzyme_dup, enzyme_out, enzyme_dupp;
double __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
struct three { double a, b, c; };
struct three __enzyme_autodiff_three(void *, ...);
double bessel(double, double);
double square(double x) { return x * x; }
double dot(const double *x, const double *y, int n) { return n > 1 ? x[0] * y[0] + x[1] * y[1] : 0; }
int count(int n) { return n + 1; }
double special(double x) { return x * bessel(1.0, x); }
double x[2] = {1, 2}, d[2];
"""
CASES = {
    "too few values": ("return __enzyme_autodiff((void *)dot, x, d, x, d);",
                       "too few arguments", "the value of parameter 3 `n` of `dot` is missing"),
    "no tangent": ("return __enzyme_fwddiff((void *)square, 3.0);",
                   "too few arguments", "the shadow of parameter 1 `x` of `square` is missing"),
    "too many": ("return __enzyme_autodiff((void *)square, 1.0, 2.0);",
                 "too many arguments for `square`", "1 is left behind its 1 parameters"),
    "missing shadow": ("return __enzyme_autodiff((void *)dot, enzyme_dup, x, enzyme_const, x, 2);",
                       "enzyme_const stands where an argument is wanted", "the shadow of parameter 1 `x` of `dot`"),
    "shadow of another type": ("return __enzyme_autodiff((void *)dot, enzyme_dup, x, 1.0, enzyme_const, x, 2);",
                               "the shadow of parameter 1 `x` of `dot` is a `double`", "is a `ptr`"),
    "nothing": ("return __enzyme_autodiff((void *)count, 3);",
                "there is nothing to differentiate", "all parameters of `count` are constant"),
    "result": ("return __enzyme_autodiff_three((void *)square, 3.0).a;",
               "the result of the call is a struct of 24 bytes", "returns `double`"),
    "annotation": ("return __enzyme_autodiff((void *)square, enzyme_dupp, 3.0);",
                   "`enzyme_dupp` is not an annotation", "known are active_return"),
    "no derivative": ("return __enzyme_autodiff((void *)special, 3.0);",
                      "no derivative is known for this call", "`bessel` has neither a body nor a rule"),
}  # fmt: skip


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("case", CASES)
def test_a_wrong_call_is_told_with_its_place(case: str, level: str, tmp_path: Path,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    statement, what, because = CASES[case]
    path = tmp_path / "wrong.c"
    path.write_text(f"{HEAD}double wrong(void) {{ {statement} }}\n")
    assert main(["cc", level, "-c", str(path), "-o", str(tmp_path / "wrong.o")]) == 1
    told = capsys.readouterr().err
    lines = [line for line in told.splitlines() if " ... " not in line]  # what takes long says so before
    assert what in lines[0]
    assert re.search(r"wrong\.c:13:\d+\)", told)
    assert because in told
    assert not (tmp_path / "wrong.o").exists()


def test_a_call_without_derivative_says_how_to_register_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.c"
    path.write_text(f"{HEAD}double wrong(void) {{ {CASES['no derivative'][0]} }}\n")
    assert main(["cc", "-c", str(path), "-o", str(tmp_path / "wrong.o")]) == 1
    told = capsys.readouterr().err
    assert "@special (" in told and "wrong.c:11:39)" in told
    assert "void *__enzyme_register_gradient_bessel[] = {(void *)bessel, " in told


def test_a_registered_derivative_mends_it(tmp_path: Path) -> None:
    path = tmp_path / "right.c"
    path.write_text("""double twice(double x);
double __enzyme_autodiff(void *, double);
struct kept { double value; };
static double twice_forward(double x) { return twice(x); }
static double twice_reverse(double x, double cotangent) { return 2 * cotangent; }
void *__enzyme_register_gradient_twice[] = {(void *)twice, (void *)twice_forward, (void *)twice_reverse};
static double f(double x) { return x * twice(x); }
int main(void) { return (int)__enzyme_autodiff((void *)f, 3.0); }
""")
    (tmp_path / "twice.c").write_text("double twice(double x) { return 2 * x; }\n")
    assert main(["cc", "-c", str(tmp_path / "twice.c"), "-o", str(tmp_path / "twice.o")]) == 0
    assert main(["run", str(path), str(tmp_path / "twice.o")]) == 12
