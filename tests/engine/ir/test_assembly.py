"""Inline assembly that is understood: as IR it means the same, and programs with it have derivatives."""

from __future__ import annotations

import platform
from collections.abc import Callable

import numpy as np
import pytest

import irgrad as ig
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.ir.assembly import link_assembly, plain_assembly
from irgrad.rules.errors import IRInvalid

X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the assembly is that of x86-64")
CLOBBERS = ",~{dirflag},~{fpsr},~{flags}"


def body(lines: str, result: str = "double %r") -> str:
    return f"define {result.split(maxsplit=1)[0]} @f(double %x, double %y, ptr %p) {{\n{lines}\n  ret {result}\n}}\n"


@pytest.mark.parametrize(("lines", "want"), [
    (f'  %r = call noundef double asm sideeffect "", "=x,0{CLOBBERS}"(double %x) #2',
     "select i1 true, double %x, double %x"),
    (f'  %r = tail call double asm "# a comment", "=&g|x,0|0{CLOBBERS}"(double %x)', "select i1 true, double %x"),
    (f'  call void asm sideeffect "#A\\0A  # B", "{CLOBBERS[1:]}"()\n  %r = fneg double %x', "@f(double %x, double %y, "
     "ptr %p) {\n\n  %r = fneg"),
    (f'  call void asm sideeffect "", "=*imr|x,0{CLOBBERS}"(ptr elementtype(double) %p, double %y)\n'
     "  %r = load double, ptr %p", "store double %y, ptr %p"),
    ('  call void asm sideeffect "", "=*m,*m"(ptr elementtype(double) %p, ptr elementtype(double) %p)\n'
     "  %r = load double, ptr %p", "{\n\n  %r = load"),
    ('  call void asm sideeffect "pause", "r|m,~{memory}"(double %x)\n  %r = fneg double %x', "{\n\n  %r = fneg"),
    ('  %v = call { double, double } asm "", "=x,=x,1,0"(double %x, double %y)\n'
     "  %r = extractvalue { double, double } %v, 0", "insertvalue { double, double } poison, double %irgrad.asm.1, 0"),
])  # fmt: skip
def test_operands_that_prove_it(lines: str, want: str) -> None:
    text = plain_assembly(body(lines))
    assert want in text
    assert " asm " not in text
    parse(text).close()


def test_outputs_take_the_inputs_that_are_tied_to_them() -> None:
    """The second input is tied to the first output."""
    text = plain_assembly(body('  %v = call { double, double } asm "", "=x,=x,1,0"(double %x, double %y)\n'
                               "  %r = extractvalue { double, double } %v, 0"))  # fmt: skip
    kernel = ig.load(text, language="ll").kernel("f", "f64(f64 x, f64 y, f64[1] p)")
    assert kernel(3.0, 5.0, np.zeros(1)) == 5.0


@pytest.mark.parametrize("lines", [
    '  %r = call double asm "", "=x"()',  # an output that nothing is tied to
    '  %r = call double asm "addsd $0, $0", "=x,0"(double %x)',
    '  %r = call double asm "", "=x,0,0"(double %x)',
    '  %r = call double asm "# a\\0A sqrtsd $0, $0", "=x,0"(double %x)',
    '  %r = call double asm "", "=x,0"(float 1.0)',
    '  %v = call i32 asm "cpuid", "={ax},0"(i32 1)\n  %r = fneg double %x',
    '  %r = call double asm "vfmadd231pd $1, $2, $0", "=x,x,x,0"(double %x, double %x, double %x)',
])
def test_what_is_not_understood_stays(lines: str) -> None:
    text = body(lines)
    assert plain_assembly(text) == text


def test_it_stays_refused() -> None:
    kernel = ig.load(body('  %r = call double asm "addsd $0, $0", "=x,0"(double %x)'), language="ll").kernel(
        "f", "f64(f64 x, f64 y, f64[1] p)")  # fmt: skip
    with pytest.raises(IRInvalid, match="inline assembly"):
        kernel(1.0, 1.0, np.zeros(1))


def test_a_barrier_stays_one_where_arithmetic_is_fast() -> None:
    """(x + big) - big rounds x; fast arithmetic would make it x."""
    big = "0x4338000000000000"  # 1.5 * 2^52
    kernel = ig.load(body(
        f'  %s = fadd fast double %x, {big}\n  %t = call double asm "", "=x,0"(double %s)\n'
        f"  %r = fsub fast double %t, {big}"), language="ll").kernel("f", "f64(f64 x, f64 y, f64[1] p)")  # fmt: skip
    assert kernel(2.7, 0.0, np.zeros(1)) == 3.0
    assert ig.engine.grad(kernel, argnums=0)(2.7, 0.0, np.zeros(1)) == 1.0


FENCED = r"""
double f(const double *x, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) {
    double v = x[i] * x[i];
    __asm__ volatile("" : "+m"(v));
    __asm__ volatile("# a marker");
    __asm__ volatile("" : "+r,m"(v) : : "memory");
    s += v * x[(i + 1) % n];
  }
  return s;
}
"""


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_a_program_with_barriers(level: str) -> None:
    kernel = ig.load(FENCED, opt=level).kernel("f", "f64(f64[n] x, i32 n)")
    x = np.array([0.5, -1.25, 2.0, 3.0])
    value, gradient = ig.engine.value_and_grad(kernel)(x)
    assert value == pytest.approx(np.sum(x**2 * np.roll(x, -1)))
    np.testing.assert_allclose(gradient, 2 * x * np.roll(x, -1) + np.roll(x, 1) ** 2, rtol=1e-14)


CPUID = r"""
#include <cpuid.h>
int leaf(void) { unsigned a, b, c, d; __cpuid(0, a, b, c, d); return (int)a; }
double f(double x) {
  unsigned a, b, c, d, e;
  __cpuid_count(0, 0, a, b, c, d);
  __asm__ __volatile__("cpuid" : "=a"(e), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
  double r = x;
  for (unsigned i = 0; i < a % 5 + e % 3; i++) r *= x + i;
  return r;
}
"""


@X86
def test_the_processor_is_asked_as_before() -> None:
    """cpuid's integers say how often a loop runs, and are the same before and after."""
    library = ig.load(CPUID, opt="O1")
    a = library.kernel("leaf")()
    assert a > 0
    kernel = library.kernel("f")
    x, h = 1.25, 1e-4
    want = (kernel(x - 2 * h) - 8 * kernel(x - h) + 8 * kernel(x + h) - kernel(x + 2 * h)) / (12 * h)
    value, gradient = ig.engine.value_and_grad(kernel)(x)
    assert value == pytest.approx(x * np.prod([x + i for i in range(a % 5 + a % 3)]))
    assert gradient == pytest.approx(want, rel=1e-9)
    assert ig.engine.jvp(kernel, (x,), (1.0,))[1] == pytest.approx(gradient, rel=1e-13)


def test_nothing_is_linked_where_nothing_is_declared() -> None:
    assert link_assembly(FENCED) is FENCED


FUSED = body("  %a = insertelement <2 x double> zeroinitializer, double %x, i64 0\n"
             "  %b = insertelement <2 x double> %a, double %y, i64 1\n"
             f'  %c = call <2 x double> asm "vfmadd231pd $1, $2, $0", "=x,x,x,0{CLOBBERS}"'
             "(<2 x double> %a, <2 x double> %b, <2 x double> %b)\n"
             "  %r = extractelement <2 x double> %c, i64 0")  # fmt: skip


def test_a_fused_product_and_sum() -> None:
    """x * x + x in the first lane."""
    kernel = ig.load(FUSED, language="ll").kernel("f", "f64(f64 x, f64 y, f64[1] p)")
    value, gradient = ig.engine.value_and_grad(kernel, argnums=(0, 1))(3.0, 5.0, np.zeros(1))
    assert (value, *gradient) == (12.0, 7.0, 0.0)


@X86
@pytest.mark.parametrize(("name", "order"), [("maxpd $1, $0", "=x,x,0"), ("vmaxpd $1, $2, $0", "=x,x,x"),
                                             ("minpd $1, $0", "=x,x,0"), ("vminpd $1, $2, $0", "=x,x,x")])  # fmt: skip
def test_the_larger_and_the_smaller(name: str, order: str) -> None:
    """As the processor does it: NaN in either gives the first operand of the listing, and so do equal numbers."""
    lines = ("  %a = insertelement <2 x double> zeroinitializer, double %x, i64 0\n"
             "  %b = insertelement <2 x double> zeroinitializer, double %y, i64 0\n"
             f'  %c = call <2 x double> asm "{name}", "{order}{CLOBBERS}"(<2 x double> %a, <2 x double> %b)\n'
             "  %r = extractelement <2 x double> %c, i64 0")  # fmt: skip
    kernel = ig.load(body(lines), language="ll").kernel("f", "f64(f64 x, f64 y, f64[1] p)")
    none = np.zeros(1)
    native = _native(name, order)
    for x, y in ((1.0, 2.0), (2.0, 1.0), (-0.0, 0.0), (0.0, -0.0), (np.nan, 1.0), (1.0, np.nan)):
        got, want = kernel(x, y, none), native(x, y)
        assert np.float64(got).tobytes() == np.float64(want).tobytes(), (x, y)
    first = "max" in name
    assert ig.engine.grad(kernel, argnums=(0, 1))(2.0, 1.0, none) == ((1.0, 0.0) if first else (0.0, 1.0))


def _native(name: str, order: str) -> Callable[[float, float], float]:
    """The instruction itself, run by the processor."""
    import ctypes
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    operand = '"+x"(r) : "x"(a)' if order.endswith("0") else '"=x"(r) : "x"(a), "x"(b)'
    listing = name.replace("$1, $2, $0", "%1, %2, %0").replace("$1, $0", "%1, %0")
    source = f"""typedef double two __attribute__((vector_size(16)));
double f(double x, double y) {{ two a = {{x, 0}}, b = {{y, 0}}, r = b; __asm__("{listing}" : {operand}); return r[0]; }}
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f.c")
        path.write_text(source)
        command = [sys.executable, "-m", "ziglang", "cc", "-O1", "-mavx", "-shared", "-o", str(path.with_suffix(".so"))]
        subprocess.run([*command, str(path)], check=True, capture_output=True, timeout=120)
        f = ctypes.CDLL(str(path.with_suffix(".so"))).f
    f.restype, f.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    return f  # type: ignore[no-any-return]
