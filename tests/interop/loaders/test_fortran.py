"""Procedures of Fortran: programs with the idioms of the language, assumed shapes, stops, names, messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from shares import fast
from toolchains import needs_flang

import irgrad
from irgrad import engine
from irgrad.interop.loaders import fortran
from irgrad.interop.loaders.languages import FLANG

RNG = np.random.default_rng(0)
A, FILE = RNG.uniform(0.1, 0.4, 6), Path(__file__).with_name("programs.f90")
PROGRAMS: list[tuple[str, str, tuple[Any, ...]]] = [
    ("payoff", "f64(f64[n] z, f64 spot, f64 vol, f64 strike)", (RNG.normal(size=9), 1.0, 0.3, 1.05)),
    ("legendre", "f64(i32 n, f64 x)", (4, 0.3)),
    ("logistic", "void(f64 x, f64 r, i32 n, out f64 y)", (0.3, 2.7, 5)),
    ("equation_of_state", "f64(f64 v, f64 t, f64 a, f64 b)", (2.0, 1.4, 0.3, 0.2)),
    ("quadrature", "f64(f64[k] p, f64 b, i32 steps)", (np.array([1.3, 0.7]), 1.5, 20)),
    ("tridiagonal", "void(f64[n] a, f64[n] b, f64[n] c, f64[n] d, out f64[n] x, i32 n)",
     (A, RNG.uniform(2, 3, 6), A[::-1].copy(), RNG.normal(size=6))),
    ("product_of", "void(f64[k,n] a, f64[k,m] b, out f64[m,n] c)",
     (RNG.normal(size=(2, 3)), RNG.normal(size=(2, 4)))),
    ("kepler", "f64(f64 m, f64 e)", (1.2, 0.4)),
    ("masked", "f64(f64[n] x, f64 low)", (RNG.uniform(0.1, 2, 7), 0.8)),
    ("temporary", "f64(f64[n] x)", (RNG.normal(size=5),)),
    ("special", "f64(f64 x)", (1.3,)),
    ("interpolated", "f64(f64[n] x, f64[n] y, i32 n, f64 at)", (np.arange(5.0), RNG.normal(size=5), 2.3)),
    ("sweep", "void(inout f64[m,n] u, i32 n, i32 m, f64 w)", (RNG.normal(size=(4, 3)), 0.2)),
    ("complex_power", "f64(f64 re, f64 im)", (0.3, 0.7)),
    ("single", "f32(f32[n] x)", (RNG.normal(size=4).astype(np.float32),)),
    ("old", "f64(f64[n] x, i32 n)", (RNG.normal(size=4),)),
]  # fmt: skip


def _expected(name: str, args: tuple[Any, ...]) -> Any:
    """The value by NumPy, for the programs that have a formula there."""
    if name == "payoff":
        z, spot, vol, strike = args
        return np.maximum(spot * np.exp(-0.5 * vol**2 + vol * z) - strike, 0).mean()
    if name == "legendre":
        return np.polynomial.legendre.Legendre.basis(args[0])(args[1])
    if name == "tridiagonal":
        a, b, c, d = args
        return np.linalg.solve(np.diag(b) + np.diag(a[1:], -1) + np.diag(c[:-1], 1), d)
    if name == "product_of":
        return (args[0].T @ args[1]).T  # a and b are Fortran's a(n, k) and b(m, k)
    if name == "interpolated":
        return np.interp(args[2], args[0], args[1])
    return 2 * (args[0] ** 2).sum() if name == "old" else None


@needs_flang
@pytest.mark.parametrize(("name", "signature", "args"), fast(3, PROGRAMS))
def test_programs(name: str, signature: str, args: tuple[Any, ...]) -> None:
    kernel = irgrad.load(FILE).kernel(name, signature)
    expected = _expected(name, args)
    if expected is not None:
        np.testing.assert_allclose(kernel(*args), expected, rtol=1e-13)
    assert engine.check(kernel, *args).ok


@needs_flang
def test_shapes_are_those_of_numpy_without_copies() -> None:
    """u(i, j) of Fortran is u[j, i] of NumPy: the same memory."""
    source = """
function entry(u, i, j) result(v)
  real(8), intent(in) :: u(:, :)
  integer, intent(in) :: i, j
  real(8) :: v
  v = u(i, j)**2
end function
"""
    source = "module m\ncontains\n" + source + "end module\n"
    kernel = irgrad.load(source, language="fortran").kernel("entry", "f64(f64[m,n] u, i32 i, i32 j)")
    u = np.arange(6.0).reshape(2, 3)
    assert kernel(u, 3, 1) == u[0, 2] ** 2
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(kernel))(u, np.int32(3), np.int32(1))
    assert gradient[0, 2] == 2 * u[0, 2] and np.count_nonzero(gradient) == 1


STOPS = """
module m
contains
  function root(x) result(r)
    real(8), intent(in) :: x
    real(8) :: r
    if (x < 0) error stop "no root"
    if (x > 100) stop 3
    r = sqrt(x)
  end function
end module
"""


@needs_flang
def test_stops_are_errors_of_the_kernel() -> None:
    kernel = irgrad.load(STOPS, language="fortran").kernel("root", "f64(f64 x)")
    assert engine.grad(kernel)(4.0) == 0.25
    for call in (kernel, engine.grad(kernel)):
        with pytest.raises(irgrad.KernelError, match=r"no root at <string>:7"):
            call(-1.0)
        with pytest.raises(irgrad.KernelError, match=r"stop 3 at <string>:8"):
            call(101.0)


@needs_flang
def test_what_contradicts_the_procedure() -> None:
    lib = irgrad.load(FILE)
    assert {"numerics::payoff", "logistic", "old"} <= set(lib.functions())
    for name, signature, said in (
        ("payoff", "f64(f32[n] z, f64 spot, f64 vol, f64 strike)", "takes `f64` in an array"),
        ("payoff", "f64(f64[n] z, f64[n] spot, f64 vol, f64 strike)", "`f64` by reference: a number"),
        ("payoff", "f64(f64[n,m] z, f64 spot, f64 vol, f64 strike)", "2 extents.*has 1"),
        ("payoff", "f64(f64[n] z)", r"1 parameters.*draft   f64\(f64\[n\] a1, f64 a2, f64 a3, f64 a4\)"),
    ):
        with pytest.raises(irgrad.SignatureError, match=f"(?s){said}"):
            lib.kernel(name, signature)
    with pytest.raises(irgrad.SignatureError, match=r"(?s)needs a signature.*void\(inout f64\[n,m\] a1"):
        lib.kernel("sweep")


@needs_flang
def test_what_flang_says_has_the_name_of_the_source() -> None:
    with pytest.raises(irgrad.CompileError, match=r"(?s)`<string>` does not compile.*<string>.*No explicit type"):
        irgrad.load("function f(x)\nimplicit none\nreal(8) :: x, f\nf = x * y\nend function\n", language="fortran")


LINEAR = """
module linear
  implicit none
  interface
    subroutine dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) bind(c, name="scipy_dgemm_")
      character :: ta, tb
      integer :: m, n, k, lda, ldb, ldc
      real(8) :: alpha, beta, a(lda, *), b(ldb, *), c(ldc, *)
    end subroutine
    subroutine dgesv(n, nrhs, a, lda, pivots, b, ldb, info) bind(c, name="scipy_dgesv_")
      integer :: n, nrhs, lda, ldb, info, pivots(*)
      real(8) :: a(lda, *), b(ldb, *)
    end subroutine
  end interface
contains
  function f(a, b, n) result(s)
    integer, intent(in) :: n
    real(8), intent(in) :: a(n, n), b(n)
    real(8) :: s, c(n, n), x(n), lu(n, n)
    integer :: pivots(n), info
    call dgemm('N', 'T', n, n, n, 1.0_8, a, n, a, n, 0.0_8, c, n)
    lu = c
    x = b
    call dgesv(n, 1, lu, n, pivots, x, n, info)
    if (info /= 0) error stop "singular"
    s = dot_product(x, b)
  end function
end module
"""


@needs_flang
def test_blas_and_lapack() -> None:
    library = next(iter(Path(np.__file__).parents[1].glob("scipy.libs/*openblas*")), None)
    if library is None:
        pytest.skip("SciPy brings no OpenBLAS here")
    kernel = irgrad.load(LINEAR, language="fortran", link=[library]).kernel("f", "f64(f64[n,n] a, f64[n] b, i32 n)")
    a, b = np.random.default_rng(0).normal(size=(4, 4)), np.ones(4)
    np.testing.assert_allclose(kernel(a, b), b @ np.linalg.solve(a.T @ a, b), rtol=1e-12)
    np.testing.assert_allclose(engine.grad(kernel, wrt="b")(a, b), 2 * np.linalg.solve(a.T @ a, b), rtol=1e-11)
    assert engine.check(kernel, a, b).ok
    with pytest.raises(irgrad.KernelError, match="singular at <string>:25"):
        kernel(0 * a, b)


def test_lengths_of_letters_are_left_out_of_blas() -> None:
    given = ", ".join(f"ptr %{n}" for n in range(1, 9))
    text = (f"  call void @dtrsv_({given}, i64 1, i64 1, i64 1), !dbg !9\n"
            "  call void @mine_(ptr %1, i64 1)\n"
            "declare void @dtrsv_(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, i64) #1\n"
            "declare void @mine_(ptr, i64)\n")  # fmt: skip
    made = fortran.plain_blas(text)
    assert "ptr %7, ptr %8), !dbg !9\n" in made and "ptr, ptr) #1\n" in made and "@mine_(ptr %1, i64 1)" in made


def test_a_compiler_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IRGRAD_FC", str(tmp_path / "flang"))
    with pytest.raises(irgrad.LoadError, match=r"(?s)flang` was not found.*IRGRAD_FC.*apt install flang-22"):
        FLANG.find()
    monkeypatch.delenv("IRGRAD_FC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(irgrad.LoadError, match=r"(?s)no Fortran compiler was found.*flang-22.*apt install"):
        irgrad.load("end\nend", language="fortran")
    fake = tmp_path / "flang"
    fake.write_text("#!/bin/sh\necho 'flang version 99.0'\n")
    fake.chmod(0o755)
    with pytest.raises(irgrad.LoadError, match=r"(?s)is not a flang of LLVM <= 22.*99"):
        FLANG.find()


def test_names_of_the_source() -> None:
    text = "define double @_QMmodelPenergy(ptr %0) {\n  ret double 0.0\n}\ndefine void @rk4_(ptr %0) {\n  ret void\n}\n"
    made = fortran.plain_names(text)
    assert 'define double @"model::energy"(ptr %0)' in made and "define void @rk4(ptr %0)" in made


def test_how_arguments_are_taken() -> None:
    text = """define double @f(ptr %0, ptr %1, ptr %2, ptr %3) !dbg !1 {
!1 = distinct !DISubprogram(name: "f", type: !2, unit: !9)
!2 = !DISubroutineType(types: !3)
!3 = !{!4, !4, !5, !6, !7}
!4 = !DIBasicType(name: "real(kind=8)", size: 64, encoding: DW_ATE_float)
!5 = !DICompositeType(tag: DW_TAG_array_type, baseType: !4, elements: !8)
!6 = !DICompositeType(tag: DW_TAG_array_type, baseType: !4, elements: !8, dataLocation: !DIExpression(DW_OP_deref))
!7 = !DICompositeType(tag: DW_TAG_array_type, baseType: !4, elements: !8, dataLocation: !10, allocated: !11)
!8 = !{!12, !12}
!9 = distinct !DICompileUnit(language: DW_LANG_Fortran95, file: !13)
"""
    assert fortran.passing(text, "f") == ["reference f64", "array f64 2", "descriptor f64 2", "allocatable f64 2"]
    assert fortran.passing(text.replace("Fortran95", "C11"), "f") is None
