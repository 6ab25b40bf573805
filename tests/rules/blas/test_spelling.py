"""Symbols and prototypes of BLAS and LAPACK."""

from __future__ import annotations

import pytest

from irgrad.rules.blas.spelling import ROUTINES, spelled


@pytest.mark.parametrize(
    ("symbol", "routine", "dtype", "c", "ints"),
    [
        ("cblas_dgemm", "gemm", "f64", True, "i32"),
        ("dgemm_", "gemm", "f64", False, "i32"),
        ("scipy_cblas_ssyr2k64_", "syr2k", "f32", True, "i64"),
        ("scipy_dpotrf_", "potrf", "f64", False, "i32"),
        ("strsm_64_", "trsm", "f32", False, "i64"),
        ("cblas_dtrmm_64", "trmm", "f64", True, "i64"),
    ],
)
def test_symbols(symbol: str, routine: str, dtype: str, c: bool, ints: str) -> None:
    found = spelled(symbol)
    assert found is not None
    assert (found.routine, found.dtype, found.c, found.ints) == (routine, dtype, c, ints)
    assert found.symbol == symbol


@pytest.mark.parametrize("symbol", ["dgemm", "cblas_zgemm", "zgemm_", "cblas_dpotrf", "gemm_", "dot", "ddots_"])
def test_other_symbols(symbol: str) -> None:
    assert spelled(symbol) is None


def test_prototypes() -> None:
    c, fortran = spelled("cblas_sgemv"), spelled("dgemv_64_")
    assert c is not None
    assert fortran is not None
    assert str(c.prototype) == ("void(i32 order, i32 trans, i32 m, i32 n, f32 alpha, in f32* a, i32 lda, in f32* x, "
                                "i32 incx, f32 beta, f32* y, i32 incy)")  # fmt: skip
    assert str(fortran.prototype) == ("void(i8& trans, i64& m, i64& n, f64& alpha, in f64* a, i64& lda, in f64* x, "
                                      "i64& incx, f64& beta, f64* y, i64& incy)")  # fmt: skip
    dot = spelled("cblas_ddot")
    assert dot is not None
    assert dot.prototype.returns == "f64"


def test_every_routine_has_a_prototype() -> None:
    for name in ROUTINES:
        found = spelled(f"d{name}_")
        assert found is not None
        assert len(found.prototype.params) == len(found.names)
