"""`irgrad run` and `irgrad cc` on sources of other languages than C: programs, objects that C is linked with."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolchains import needs_flang, needs_rustc

from irgrad.interop.cli import main

ZIG = """
extern fn __enzyme_autodiff(f: *const anyopaque, ...) f64;
export fn cube(x: f64) f64 { return x * x * x; }
export fn slope(x: f64) f64 { return __enzyme_autodiff(@ptrCast(&cube), x); }
export fn main() c_int { return @intFromFloat(slope(4.0)); }
"""
RUST = """
unsafe extern "C" { fn __enzyme_autodiff(f: *const (), ...) -> f64; }
#[unsafe(no_mangle)] pub extern "C" fn cube(x: f64) -> f64 { assert!(x < 9.0, "too large"); x * x * x }
#[unsafe(no_mangle)] pub extern "C" fn slope(x: f64) -> f64 { unsafe { __enzyme_autodiff(cube as *const (), x) } }
"""
MAIN = "double slope(double);\nint main(int argc, char **argv) { return (int)slope(argc == 1 ? 4.0 : 10.0); }\n"


@pytest.mark.long
def test_a_program_of_zig(tmp_path: Path) -> None:
    source = tmp_path / "slope.zig"
    source.write_text(ZIG)
    assert main(["run", str(source)]) == 48


@needs_rustc
@pytest.mark.long
def test_rust_in_a_program_of_c(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, program = tmp_path / "slope.rs", tmp_path / "main.c"
    source.write_text(RUST)
    program.write_text(MAIN)
    assert main(["run", str(program), str(source)]) == 48
    assert main(["run", str(program), str(source), "--", "more"]) == 128 + 6  # it aborts, and says why
    assert "too large at " in capfd.readouterr().err
    made = tmp_path / "slope.o"
    assert main(["cc", "-O2", "-c", str(source), "-o", str(made)]) == 0 and made.stat().st_size > 0
    assert main(["run", str(program), str(made)]) == 48


@needs_flang
@pytest.mark.long
def test_fortran_in_a_program_of_c(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C calls a procedure by the name that compilers of Fortran give it."""
    source, program = tmp_path / "slope.f90", tmp_path / "main.c"
    source.write_text("real(8) function cube(x)\n  real(8), intent(in) :: x\n  cube = x**3\nend function\n")
    program.write_text("double __enzyme_autodiff(void *, ...);\ndouble cube_(const double *);\nextern int enzyme_dup;\n"
                       "int main(void) { double x = 4, d = 0; __enzyme_autodiff((void *)cube_, enzyme_dup, &x, &d);\n"
                       "return (int)d; }\n")  # fmt: skip
    assert main(["run", str(program), str(source)]) == 48


@needs_flang
@pytest.mark.long
def test_a_program_of_fortran(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its run-time library is that of flang."""
    source = tmp_path / "program.f90"
    source.write_text("program main\n  print '(a,f6.3)', 'x', 0.5d0\nend program\n")
    assert main(["run", str(source)]) == 0
    assert capfd.readouterr().out == "x 0.500\n"
