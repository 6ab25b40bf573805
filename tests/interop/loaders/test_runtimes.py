"""Modules as Julia and Swift write them: derivatives against those of C, failures with a line, names."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

import irgrad
from irgrad import engine
from irgrad.interop.loaders.runtimes import adapted

HERE = Path(__file__).parent
SIGNATURE = "f64(f64[n,3] pos, f64[n] mass, i64 n)"
C = r"""
#include <math.h>
double energy(const double *pos, const double *mass, long n) {
    double e = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            double r = 0.01;
            for (int k = 0; k < 3; k++) { double d = pos[3*i+k] - pos[3*j+k]; r += d * d; }
            e -= mass[i] * mass[j] / sqrt(r);
        }
    return e;
}
"""
RNG = np.random.default_rng(0)
POS, MASS = RNG.normal(size=(5, 3)), RNG.uniform(1, 2, 5)


@pytest.mark.parametrize("language", ["julia", "swift"])
def test_derivatives_are_those_of_c(language: str) -> None:
    kernel, by_c = (lib.kernel("energy", SIGNATURE) for lib in (irgrad.load(HERE / f"{language}.ll"), irgrad.load(C)))
    np.testing.assert_allclose(kernel(POS, MASS), by_c(POS, MASS), rtol=1e-13)
    for mine, his in zip(engine.grad(kernel, argnums=(0, 1))(POS, MASS), engine.grad(by_c, argnums=(0, 1))(POS, MASS),
                         strict=True):  # fmt: skip
        np.testing.assert_allclose(mine, his, rtol=1e-13, atol=1e-13)
    assert engine.check(kernel, POS, MASS).ok
    with jax.enable_x64(True):
        mine, his = (jax.jit(jax.grad(lambda *a, k=row: k(*a), argnums=1))(POS, MASS) for row in (kernel, by_c))
    np.testing.assert_allclose(mine, his, rtol=1e-13)


@pytest.mark.parametrize(("language", "said"), [
    ("julia", "an exception is thrown at model.jl:5"), ("swift", "a negative mass at model.swift:5"),
])  # fmt: skip
def test_what_throws_is_a_failure_with_its_line(language: str, said: str) -> None:
    kernel = irgrad.load(HERE / f"{language}.ll").kernel("energy", SIGNATURE)
    for call in (kernel, engine.grad(kernel)):
        with pytest.raises(irgrad.KernelError, match=said):
            call(POS, -MASS)


def test_traps_of_swift() -> None:
    kernel = irgrad.load(HERE / "swift.ll").kernel("energy", "f64(f64[4,3] pos, f64[4] mass, i64 n)")
    with pytest.raises(irgrad.KernelError, match="a trap of Swift"):
        kernel(POS[:4], MASS[:4], -1)


def test_functions_of_julia_go_by_their_names() -> None:
    assert irgrad.load(HERE / "julia.ll").functions() == ("energy",)
    one = "define double @julia_f_1(double %x) {\n  ret double %x\n}\n"
    two = one + one.replace("_1", "_22")
    assert "@f(" in adapted(one) and "@julia_f_1(" in adapted(two) and "@julia_f_22(" in adapted(two)
    shout = adapted(one.replace("@julia_f_1", '@"julia_f!_1"'))
    assert '@"f!"(double %x)' in shout
    asked = adapted(one.replace("  ret", "  %s = call ptr @julia.get_pgcstack()\n  ret"))
    assert "[64 x ptr]" in asked and "@julia." not in asked


def test_what_is_thrown_has_a_name_where_the_module_says_it() -> None:
    text = """define double @julia_f_1(double %x) {{
top:
  br i1 true, label %bad, label %good

bad:
  %e = load ptr, ptr @"+Core.BoundsError#4"
  call void @{}(ptr %e)
  unreachable

good:
  ret double %x
}}
"""
    for name, said in (("ijl_throw", "BoundsError is thrown"), ("ijl_bounds_error_int", "an index out of bounds"),
                       ("j_error_12", "BoundsError is thrown")):  # fmt: skip
        assert said in adapted(text.format(name))
    assert "`error` throws" in adapted(text.format("j_error_12").replace('@"+Core.BoundsError#4"', "null"))


def test_modules_of_others_stay() -> None:
    text = irgrad.load(C).text
    assert adapted(text) is text
    trapped = "define void @f() {\n  call void @llvm.trap()\n  unreachable\n}\n"
    assert adapted(trapped) is trapped


def test_bitcode(tmp_path: Path) -> None:
    import llvmlite.binding as llvm

    module = llvm.parse_assembly((HERE / "swift.ll").read_text())
    path = tmp_path / "swift.bc"
    path.write_bytes(module.as_bitcode())
    kernel = irgrad.load(path).kernel("energy", SIGNATURE)
    np.testing.assert_allclose(engine.grad(kernel, wrt="mass")(POS, MASS),
                               engine.grad(irgrad.load(C).kernel("energy", SIGNATURE), wrt="mass")(POS, MASS),
                               rtol=1e-13)  # fmt: skip
