"""`irgrad run` and `irgrad cc`: programs that check themselves, exit codes, arguments, forms of output."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from irgrad.interop.cli import main
from irgrad.interop.driver import read_command
from irgrad.rules.errors import LoadError

PROGRAMS = Path(__file__).parent / "notation_programs"
SMALL = """#include <stdio.h>
#include <stdlib.h>
double __enzyme_autodiff(void *, double);
static double f(double x) { return x * x * x; }
double slope(double x) { return __enzyme_autodiff((void *)f, x); }
int main(int argc, char **argv) { return argc == 2 ? (int)slope(atof(argv[1])) : 99; }
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.c"
    path.write_text(SMALL)
    return str(path)


@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS.iterdir()))
@pytest.mark.parametrize("level", ["", "-O0", "-O2"])
def test_programs_check_themselves(name: str, level: str, capfd: pytest.CaptureFixture[str]) -> None:
    status = main(["run", *([level] if level else []), str(PROGRAMS / name)])
    output = capfd.readouterr()
    assert status == 0, output.out + output.err
    assert output.out == "all right\n"


def test_arguments_and_exit_status_are_the_programs(small: str) -> None:
    assert main(["run", small, "-lm", "--", "4"]) == 48
    assert main(["run", "-O1", small]) == 99


def test_a_function_that_is_handed_on(tmp_path: Path) -> None:
    path = tmp_path / "given.c"
    path.write_text("double __enzyme_autodiff(void *, double);\nstatic double f(double x) { return x * x; }\n"
                    "double slope(double (*g)(double), double x) { return __enzyme_autodiff((void *)g, x); }\n"
                    "int main(void) { return (int)slope(f, 4.0); }\n")
    assert main(["run", str(path)]) == 8


def test_cc_writes_each_form(small: str, tmp_path: Path) -> None:
    program, shared, ir, image = (tmp_path / name for name in ("prog", "lib.so", "out.ll", "out.o"))
    for output in (program, shared, ir, image):
        assert main(["cc", small, "-o", str(output)]) == 0
    assert subprocess.run([str(program), "2"], check=False).returncode == 12
    slope = ctypes.CDLL(str(shared)).slope
    slope.argtypes, slope.restype = [ctypes.c_double], ctypes.c_double
    assert slope(3.0) == 27.0
    assert "define double @slope" in ir.read_text() or "@slope(" in ir.read_text()
    assert "__enzyme_autodiff(" not in ir.read_text()
    assert image.read_bytes()[:4] == b"\x7fELF"


def test_errors_are_printed_with_their_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.c"
    path.write_text("double __enzyme_autodiff(void *, ...);\ndouble f(double *x) { return *x; }\n"
                    "int main(void) { double x; return (int)__enzyme_autodiff((void *)f, &x); }\n")
    assert main(["run", str(path)]) == 1
    told = capsys.readouterr().err
    assert "irgrad.Unsupported: too few arguments" in told
    assert "wrong.c:3:" in told


def test_a_command_line_in_any_order() -> None:
    command = read_command(["-O2", "a.c", "-I", "inc", "-lm", "b.cpp", "-DN=3", "-o", "x", "--", "-v", "--"])
    assert command.sources == ["a.c", "b.cpp"]
    assert command.flags == ["-I", "inc", "-DN=3"]
    assert (command.link, command.opt, command.output, command.args) == (["-lm"], "O2", "x", ["-v", "--"])
    assert command.cpp
    with pytest.raises(LoadError, match="no source file"):
        read_command(["-lm"])
