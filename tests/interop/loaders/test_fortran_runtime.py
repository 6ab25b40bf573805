"""Programs that call Fortran's run-time library: allocation, assignment, constructors, types, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import fast
from toolchains import needs_flang

import irgrad
from irgrad import engine
from irgrad.interop.loaders.fortran_runtime import complete, open_library

RNG = np.random.default_rng(1)
X, A, B = RNG.normal(size=7), RNG.normal(size=(3, 4)), RNG.normal(size=3)
FILE = Path(__file__).with_name("arrays.f90")


def _erfc_scaled(x: float) -> float:
    return math.exp(x * x) * math.erfc(x)


PROGRAMS: list[tuple[str, str, tuple[Any, ...], Any]] = [
    ("appended", "f64(f64[n] x)", (X,), (X**3).sum()),
    ("assigned", "f64(f64[n] x)", (X,), (X**2).sum() + np.linalg.norm(X)),
    ("area_of", "f64(f64 x, i32 k)", (0.7, 1), 3 * 0.7**2),
    ("area_of", "f64(f64 x, i32 k)", (0.7, 2), 2 * 0.7**3),
    ("shrunk", "void(inout f64[n] y)", (X,), np.append(X[1:], 1) * X[0]),
    ("cubed", "void(f64[n] x, out f64[n] y)", (X,), X**3),
    ("squares", "void(f64[n] x, out f64[n] y)", (X,), X**2),
    ("columns", "f64(f64[m,n] a)", (A[:, :2].copy(),), (A[:, 0] * A[:, 1]).sum() + 2),
    ("pointed", "f64(f64[n] a)", (X,), (X**2).sum()),
    ("linked", "f64(f64[n] x)", (X,), (X**2).sum() * X[0]),
    ("constructed", "f64(f64[n] x)", (X,), 4 * (X[:3] ** 2).sum() + 2 * X[0] * X[1] + X[1] + 2 * X[2]),
    ("allocated", "f64(f64[n] x)", (X,), (X**3).sum()),
    ("reshaped", "f64(f64[n] x)", (X,), None),
    ("located", "f64(f64[n] x)", (X,), None),
    ("positive", "f64(f64[n] x)", (X,), (X[X > 0] ** 2).sum()),
    ("shifted", "f64(f64[n] x)", (X,), ((np.roll(X, -1) * X + np.append(X[1:], 0)) ** 2).sum()),
    ("spreaded", "f64(f64[n] x)", (X,), 6 * (X**2).sum()),
    ("pointers", "f64(f64[n] x)", (X,), (X[::2] ** 2).sum() * X[1]),
    ("moved", "f64(f64[n] x)", (X,), 4 * (X**2).sum()),
    ("activated", "f64(f64[m,n] x)", (A,), (A / (1 + np.exp(-A))).sum()),
    ("product_of", "void(out f64[n] y, f64[m,n] a, f64[m] x)", (A, B), B @ A),
    ("powers", "f64(f64 x, i32 n, f64 r)", (1.3, 3, 0.7),
     1.3**3 + 0.7**1.3 + 1.3 % 0.3 + -1.3 % 0.7 + 1.3 + 1 + 2 * 1.3 + 1 + 1.3),
    ("parts_of_floats", "f64(f64 x)", (0.83,), None),
    ("along_axes", "f64(f64[m,n] a)", (A,), None),
    ("unpacked", "f64(f64[n] x)", (X,), None),
    ("strided", "f64(f64[m,n] x)", (A,), None),
    ("outer", "f64(f64[n] a, f64[m] b)", (X, B), X.sum() * (B @ B) + (X @ X) * (B @ B)),
    ("by_name", "f64(f64 x, i32 m)", (0.3, 2), 0.09),
    ("complex_sums", "f64(f64[n] z)", (X,), None),
]  # fmt: skip


@needs_flang
@pytest.mark.parametrize(("name", "signature", "args", "expected"), fast(3, PROGRAMS))
def test_programs(name: str, signature: str, args: tuple[Any, ...], expected: Any) -> None:
    kernel = irgrad.load(FILE).kernel(name, signature)
    if expected is not None:
        np.testing.assert_allclose(kernel(*args), expected, rtol=1e-12)
    assert engine.check(kernel, *args).ok


@needs_flang
def test_functions_of_numbers() -> None:
    source = """
module numbers
contains
  function f(x, n) result(y)
    real(8), intent(in) :: x
    integer, intent(in) :: n
    real(8) :: y
    select case (n)
    case (1); y = erfc_scaled(x)
    case (2); y = fraction(x)
    case (3); y = exponent(x) * x
    case (4); y = scale(x, -3)
    case (5); y = set_exponent(x, 5)
    case (6); y = spacing(x)
    case (7); y = mod(x, -0.6_8)
    case default; y = modulo(x, -0.6_8)
    end select
  end function
end module
"""
    kernel = irgrad.load(source, language="fortran").kernel("f", "f64(f64 x, i32 n)")
    slope = engine.grad(kernel, wrt="x")
    for x in (0.3, 1.7, 5.0):
        mantissa, exponent = np.frexp(x)
        wanted = [
            (_erfc_scaled(x), 2 * x * _erfc_scaled(x) - 2 / np.sqrt(np.pi)), (mantissa, 2.0**-exponent),
            (exponent * x, exponent), (x / 8, 1 / 8), (mantissa * 32, 2.0 ** (5 - exponent)), (np.spacing(x), 0),
            (np.fmod(x, -0.6), 1), (x % -0.6, 1),
        ]  # fmt: skip
        for n, (value, derivative) in enumerate(wanted, 1):
            np.testing.assert_allclose(kernel(x, n), value, rtol=1e-13)
            np.testing.assert_allclose(slope(x, n), derivative, rtol=1e-9, atol=1e-13)
    assert abs(kernel(30.0, 1) - 0.018795888861416751) < 1e-17  # by 50-digit arithmetic


@needs_flang
def test_an_allocatable_argument_of_another_shape_is_an_error() -> None:
    source = """
module m
contains
  subroutine cut(y)
    real(8), allocatable, intent(inout) :: y(:)
    if (y(1) > 0) y = y(2:)
    if (y(1) < -9) deallocate(y)
  end subroutine
end module
"""
    kernel = irgrad.load(source, language="fortran").kernel("cut", "void(inout f64[n] y)")
    np.testing.assert_array_equal(kernel(np.array([-1.0, 2])), [-1, 2])
    for bad in ([1.0, 2], [-10.0, 2]):
        for call in (kernel, lambda y: engine.jacrev(kernel)(y)):
            with pytest.raises(irgrad.KernelError, match="leaves `y` with another shape, or not allocated"):
                call(np.array(bad))


@needs_flang
def test_output_is_kept_and_has_no_derivative(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    source = f"""
module m
contains
  function f(x) result(s)
    real(8), intent(in) :: x(:)
    real(8) :: s
    character(len=20) :: text
    integer :: i
    open(unit=17, file="{file}")
    s = 0
    do i = 1, size(x)
      s = s + x(i)**2
      write(17, '(a, i3, f8.3)') "step", i, s
    end do
    write(text, '(a, i0)') "n=", size(x)
    write(17, *) trim(text), x(1:2) > 0
    close(17)
  end function
end module
"""
    kernel = irgrad.load(source, language="fortran").kernel("f", "f64(f64[n] x)")
    x = np.array([1.0, -2.0])
    np.testing.assert_array_equal(engine.grad(kernel)(x), 2 * x)
    assert file.read_text().splitlines() == ["step  1   1.000", "step  2   5.000", " n=2 T F"]
    assert engine.check(kernel, x).ok


@needs_flang
def test_input_is_a_constant_or_refused() -> None:
    source = """
module m
contains
  function f(x) result(s)
    real(8), intent(in) :: x
    real(8) :: s
    character(len=5) :: text
    text = "2.5"
    read (text, *) s
    s = s * x
  end function
end module
"""
    kernel = irgrad.load(source, language="fortran").kernel("f", "f64(f64 x)")
    assert (kernel(2.0), engine.grad(kernel)(2.0)) == (5.0, 2.5)
    over = source.replace('text = "2.5"', 'text = "2.5"; s = x * x')
    with pytest.raises(irgrad.Unsupported, match=r"(?s)<string>:9.*_FortranAio"):
        engine.grad(irgrad.load(over, language="fortran").kernel("f", "f64(f64 x)"))(2.0)


def test_a_library_that_is_not_there(tmp_path: Path) -> None:
    text = "declare ptr @_FortranAioBeginExternalListOutput(i32, ptr, i32)\n"
    fake = tmp_path / "flang"
    fake.write_text(f"#!/bin/sh\necho {tmp_path}\n")
    fake.chmod(0o755)
    with pytest.raises(irgrad.LoadError, match=r"(?s)run-time library of Fortran was not found.*output statements"):
        open_library(text, lambda: (str(fake), ""))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libflang_rt.runtime.a").write_text("")
    other = tmp_path / "other"
    other.write_text(f"#!/bin/sh\ntest $1 = -shared && echo no ld >&2 && exit 1\necho {tmp_path}\n")
    other.chmod(0o755)
    with pytest.raises(irgrad.LoadError, match=r"(?s)cannot be linked.*no ld"):
        open_library(text, lambda: (str(other), ""))
    assert open_library("", lambda: ("", "")) == ""


SHORT = np.array([0.7, 1.3, -0.4, 0.9])
SQUARES = (SHORT**2).sum()
OWNERS = [
    ("own_alloc", SQUARES), ("own_nested", 2 * SHORT.sum() + SQUARES), ("own_assign", 4 * SQUARES),
    ("own_passed", 4 * SQUARES), ("own_copied", SQUARES + 2 * SHORT[0] ** 2), ("own_returned", 9 * SQUARES),
    ("own_array", 5 * SQUARES),
]  # fmt: skip
"""Allocatable components that are allocated, assigned, passed on, left, and copied with the whole object."""
@needs_flang
@pytest.mark.parametrize(("name", "expected"), fast(2, OWNERS))
def test_allocatable_components(name: str, expected: float) -> None:
    kernel = irgrad.load(FILE.with_name("owners.f90")).kernel(name, "f64(f64[n] x)")
    np.testing.assert_allclose(kernel(SHORT), expected, rtol=1e-13)
    assert engine.check(kernel, SHORT).ok


IDIOMS = """use_stack generics optional_ associates blocks foralls concurrent_ elementals recursion internal use_chars
    ptr_swap ptr_alloc reshapes implied named_exit saved wheremask procptr lowbounds cplx derived_array""".split()


@needs_flang
@pytest.mark.parametrize("name", fast(3, IDIOMS))
def test_idioms(name: str) -> None:
    kernel = irgrad.load(FILE.with_name("idioms.f90")).kernel(name, "f64(f64[n] x)")
    assert engine.check(kernel, SHORT).ok


MODELS: list[tuple[str, str | None, tuple[Any, ...]]] = [
    *((name, "f64(f64[n] x)", (RNG.uniform(0.2, 1.5, 8),)) for name in (
        "ops copies mlp passed_copy spectrum bisect_newton sorted specials linked_pool".split())),
    *((name, "f64(f64[n] x)", (np.array([0.7, 0.3, 0.9, 1.1]),)) for name in "random_payoff random_places".split()),
    *(("ode", "f64(f64[n] x, i32 method)", (RNG.uniform(0.2, 1.5, 4), method)) for method in (1, 2)),
    ("spline", "f64(f64[n] x, f64[n] y, f64 t)", (np.arange(6) + RNG.uniform(0, 0.5, 6), RNG.normal(size=6), 2.8)),
    ("nbody", "struct body { f64[3] x; f64[3] v; f64 m; }; f64(body[n] b, i32 n)",
     ({"x": RNG.normal(size=(4, 3)), "v": RNG.normal(size=(4, 3)), "m": RNG.uniform(1, 2, 4)},)),
    ("mc", "f64(f64[n] x)", (np.array([1, 0.3, 0.9]),)),
    ("legacy", "f64(f64[n] x, i32 n)", (X,)),
    ("jacobi", "void(inout f64[n,n] u, f64[n,n] f, i32 n, i32 it)",
     (RNG.normal(size=(5, 5)), RNG.normal(size=(5, 5)), np.int32(4))),
    ("eos", None, (800.0, 320.0)),
    ("gaussq", "f64(f64[n] x)", (np.array([0.7, 0.1, 1.3]),)),
    ("lu_det", "f64(f64[n,m] a)", (RNG.normal(size=(4, 4)),)),
    ("iso", "f64(f64[n,m] x)", (RNG.normal(size=(4, 4)),)),
]  # fmt: skip


@needs_flang
@pytest.mark.parametrize(("name", "signature", "args"), fast(4, MODELS))
def test_models(name: str, signature: str | None, args: tuple[Any, ...]) -> None:
    kernel = irgrad.load(FILE.with_name("models.f90")).kernel(name, signature)
    assert engine.check(kernel, *args).ok


INTRINSICS: list[tuple[str, str, tuple[Any, ...]]] = [
    *((name, "f64(f64[n] x)", (RNG.uniform(0.2, 1.5, 8),)) for name in (
        "parr cptr classarr holder cplx mixed globals diffs ptrfun transferred seq optarg crs broyden kinds words near"
    ).split()),
    *(("dims", "f64(f64[n,m] x, i32 k)", (RNG.uniform(0.2, 1.5, (2, 4)), axis)) for axis in (1, 2)),
]  # fmt: skip


@needs_flang
@pytest.mark.parametrize(("name", "signature", "args"), fast(2, INTRINSICS))
def test_intrinsics(name: str, signature: str, args: tuple[Any, ...]) -> None:
    kernel = irgrad.load(FILE.with_name("intrinsics.f90")).kernel(name, signature)
    if name == "dims":
        x, axis = args[0].T, args[1] - 1
        own = (x.sum(axis) ** 2).sum() + x.max(axis).sum() + (x.argmax(axis) + 1).sum()
        np.testing.assert_allclose(kernel(*args), own + x.sum(0).prod() + x[:, 0].sum(), rtol=1e-13)
    if name == "near":
        z = complex(*args[0][:2])
        np.testing.assert_allclose(kernel(*args), args[0][0] + (z**3).real + ((z + 1) ** -3).imag, rtol=1e-13)
    assert engine.check(kernel, *args).ok


@needs_flang
def test_random_numbers_begin_where_the_source_says() -> None:
    """The same numbers behind the same seed; without one they go on, from call to call."""
    source = """
module m
contains
  function f(x, seeded) result(s)
    real(8), intent(in) :: x
    integer, intent(in) :: seeded
    real(8) :: s, u(1000)
    if (seeded == 1) call random_init(.true., .false.)
    call random_number(u)
    s = x * sum(u) / 1000
  end function
end module
"""
    kernel = irgrad.load(source, language="fortran").kernel("f", "f64(f64 x, i32 seeded)")
    first = kernel(1.0, 1)
    assert first == kernel(1.0, 1) and abs(first - 0.5) < 0.05
    np.testing.assert_allclose(engine.grad(kernel)(1.0, 1), first, rtol=1e-13)
    assert len({first, kernel(1.0, 0), kernel(1.0, 0)}) == 3


def test_modules_that_call_none_of_it_are_left_alone() -> None:
    text = "declare void @_FortranAioBeginExternalListOutput()\n"
    assert complete(text) is text
