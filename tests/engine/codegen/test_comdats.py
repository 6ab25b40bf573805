"""What is internal leaves the groups of sections that objects share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import irgrad as ig
from irgrad.engine.codegen.comdats import without_own_comdats
from irgrad.engine.codegen.llvm import parse
from irgrad.interop.cli import main

GROUPS = """
$f = comdat any
$"g h" = comdat any
$v = comdat any
@v = linkonce_odr constant [9 x i8] c", comdat\\00", comdat, align 8
@w = internal unnamed_addr constant [9 x i8] c", comdat\\00", section "s", comdat($v), align 8
define linkonce_odr double @f(double %x) comdat align 16 {
  %y = call double @"g h"(double %x)
  ret double %y
}
define internal double @"g h"(double %x) #0 comdat {
  ret double %x
}
define private double @k(double %x) unnamed_addr section "t" comdat($"g h") align 8 {
  ret double %x
}
declare double @d(double)
attributes #0 = { "comdat" noinline }
"""


def test_what_is_internal_has_no_group() -> None:
    made = without_own_comdats(GROUPS)
    parse(made).verify()
    assert made.count(" comdat any") == 3
    assert '@f(double %x) comdat align 16 {' in made
    assert 'c", comdat\\00", comdat, align 8' in made
    assert 'c", comdat\\00", section "s", align 8' in made
    assert '@"g h"(double %x) #0 {' in made
    assert 'unnamed_addr section "t" align 8 {' in made
    assert without_own_comdats(made) == made
    every = without_own_comdats(GROUPS, every=True)
    parse(every).verify()
    assert "@f(double %x) align 16 {" in every and 'c", comdat\\00", align 8' in every


STREAM = """
#include <sstream>
#include <string>
static double sum(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) { std::ostringstream name; name << i * 7; s += x[i] * name.str().size(); }
    for (long i = 0; i < n; i++) { std::string name = std::to_string(i); s += x[i] * x[i] * name.size(); }
    return s;
}
"""
KERNEL = STREAM + 'extern "C" double f(const double *x, long n) { return sum(x, n); }'


def test_a_kernel_with_functions_that_the_cxx_library_has_too() -> None:
    """The C++ library's own callers of such a function called the begin of the shared library."""
    x = np.linspace(0.1, 1.2, 12)
    program = f"""
import numpy as np, irgrad as ig
kernel = ig.load({KERNEL!r}, language="c++").kernel("f", "f64(f64[n] x, i64 n)")
print(*ig.value_and_grad(kernel)(np.linspace(0.1, 1.2, 12)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    printed = np.array(done.stdout.replace("[", " ").replace("]", " ").split(), dtype=float)
    a = np.array([len(str(i * 7)) for i in range(12)])
    b = np.array([len(str(i)) for i in range(12)])
    np.testing.assert_allclose(printed, [a @ x + b @ (x * x), *(a + 2 * b * x)], rtol=1e-7)


OTHER = """
#include <sstream>
#include <string>
std::string name(long i) { std::ostringstream o; o << i; return o.str() + std::to_string(i * 2); }
"""
PROGRAM = STREAM + """
#include <cstdio>
extern int enzyme_dup, enzyme_const;
extern void __enzyme_autodiff(void *, ...);
std::string name(long i);
int main() {
    double x[3] = {0.1, 0.2, 0.3}, dx[3] = {0};
    __enzyme_autodiff((void *)sum, enzyme_dup, x, dx, enzyme_const, 3l);
    printf("%g %g %g %s\\n", dx[0], dx[1], dx[2], name(21).c_str());
}
"""


def test_objects_that_share_inline_functions_with_a_derivative(tmp_path: Path) -> None:
    for name, source in (("other", OTHER), ("program", PROGRAM)):
        file = tmp_path / f"{name}.cpp"
        file.write_text(source, encoding="utf-8")
        assert main(["cc", "-O1", "-c", str(file), "-o", str(tmp_path / f"{name}.o")]) == 0
    for order in (["other.o", "program.o"], ["program.o", "other.o"]):
        output = tmp_path / "program"
        assert main(["cc", *(str(tmp_path / name) for name in order), "-o", str(output)]) == 0
        done = subprocess.run([str(output)], capture_output=True, text=True, check=True)
        assert done.stdout == "1.2 1.4 2.6 2142\n"


def test_the_kernel_has_a_name_of_a_group() -> None:
    source = "inline double g(double x) { return x * x; } double h(double x) { return g(x) + 1; }"
    kernel = ig.load(source, language="c++").kernel("_Z1gd", "f64(f64 x)")
    assert ig.grad(kernel)(3.0) == 6.0
