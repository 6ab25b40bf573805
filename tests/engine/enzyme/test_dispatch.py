"""Calls through pointers of the program: which functions they may reach. What they compute:
`notation_programs/virtual.cpp`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from irgrad.engine.enzyme.dispatch import addresses, dispatched
from irgrad.interop.cli import main

PROGRAM = """
@table = constant [2 x ptr] [ptr @square, ptr @other]
define double @square(double %x) {
  %r = fmul double %x, %x
  ret double %r
}
define double @never(double %x) {
  ret double %x
}
define i32 @other(double %x) {
  ret i32 0
}
define double @root(ptr %p, double %x) {
  %f = load ptr, ptr %p, align 8
  %r = call double %f(double %x)
  ret double %r
}
define double @plain(double %x) {
  %r = call double @never(double %x)
  ret double %r
}
"""


def test_functions_of_the_type_whose_address_is_taken() -> None:
    found = dispatched(PROGRAM, PROGRAM, ["root"])
    assert found is not None
    text, names = found
    assert names == ["square"]
    assert "call double @irgrad.dispatch." in text
    assert "@never" not in text
    assert "@irgrad.address.square = external constant ptr" in text
    assert addresses(names) == "@irgrad.address.square = constant ptr @square\n"


def test_nothing_to_do_without_such_calls() -> None:
    plain = PROGRAM.replace("call double %f(", "call double @square(")
    assert dispatched(plain, plain, ["plain"]) is None


def test_types_that_only_those_functions_call_through() -> None:
    """A function that is found calls through a pointer of another type: its targets belong to the answer as well."""
    deep = PROGRAM.replace("@other]", "@other, ptr @inner]", 1).replace("[2 x ptr]", "[3 x ptr]") + """
define float @inner(float %x) {
  ret float %x
}
"""
    deep = deep.replace("  %r = fmul double %x, %x\n  ret double %r\n", """  %p = inttoptr i64 8 to ptr
  %f = load ptr, ptr %p, align 8
  %s = call float %f(float 1.0)
  %r = fpext float %s to double
  ret double %r
""", 1)
    root = deep[deep.index("define double @root"):deep.index("define double @plain")]
    found = dispatched(deep, root, ["root"])
    assert found is not None
    assert found[1] == ["square", "inner"]


def test_an_unknown_function_stops_the_program(tmp_path: Path) -> None:
    path = tmp_path / "stop.c"
    path.write_text("""
double __enzyme_autodiff(void *, ...);
extern int enzyme_const;
struct layer { double (*f)(double); double w; };
static double half(double x) { return x / 2; }
static int other(int x) { return x; }
static double run(const struct layer *l, double x) { return l->f(l->w * x); }
int main(int argc, char **argv) {
  struct layer l[2] = {{half, 3}, {(double (*)(double))(void *)other, 3}};
  return (int)__enzyme_autodiff((void *)run, enzyme_const, &l[argc - 1], 5.0);
}""")
    program = tmp_path / "stop"
    assert main(["cc", str(path), "-o", str(program)]) == 0
    assert subprocess.run([str(program)], check=False).returncode == 1
    done = subprocess.run([str(program), "x"], check=False, capture_output=True, text=True)
    assert done.returncode < 0
    assert "leads to a function that this program does not contain" in done.stderr


@pytest.mark.parametrize("names", [[], ["a", "b"]])
def test_addresses(names: list[str]) -> None:
    assert addresses(names).count("constant ptr") == len(names)


def test_methods_of_the_library_are_called_as_they_are() -> None:
    """`what` of a class whose body is in the C++ library, beside one of the program."""
    text = PROGRAM.replace("@square", "@_ZNKSt9exception4whatEv")
    found = dispatched(text, text, ["root"])
    assert found is not None
    assert found[1] == ["_ZNKSt9exception4whatEv"]
    rest = found[0].partition("define internal double @irgrad.dispatch.")[2]
    assert 'call double %f(double  %a0) "irgrad-inactive"' in rest
    assert "call void @abort" not in rest


THROWN = """
#include <exception>
#include <new>
#include <cstdio>
extern int enzyme_const;
double __enzyme_autodiff(void *, ...);
struct Mine : std::exception { const char *what() const noexcept override { return "mine"; } };
static double f(const std::exception *e, double x) { return e->what()[0] == 'm' ? x * x : x * x * x; }
int main() {
  Mine mine;
  std::bad_alloc other;
  std::printf("%g ", __enzyme_autodiff((void *)f, enzyme_const, (std::exception *)&mine, 2.0));
  std::printf("%g\\n", __enzyme_autodiff((void *)f, enzyme_const, (std::exception *)&other, 2.0));
}
"""


def test_an_exception_of_the_library_says_what_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "what.cpp"
    path.write_text(THROWN)
    assert main(["run", str(path)]) == 0
    assert capfd.readouterr().out == "4 12\n"
