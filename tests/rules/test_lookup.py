"""Spellings: every name of a function finds its row, with its float type; foreign names find nothing."""

from __future__ import annotations

import pytest

from irgrad.rules.lookup import find, float_intrinsics, opcode_row, reduction, spellings
from irgrad.rules.table import rows

C99 = (
    "acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log "
    "log10 log1p log2 "
    "logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint "
    "llrint round "
    "lround llround trunc fmod remainder remquo copysign nextafter nexttoward fdim fmax fmin fma"
).split()
GLIBC = "sincos exp10 pow10 j0 j1 jn y0 y1 yn gamma drem significand".split()
INTRINSICS = (
    "sqrt sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 exp10 log log2 log10 pow powi fma fmuladd "
    "fabs copysign "
    "floor ceil trunc rint nearbyint round roundeven minnum maxnum minimum maximum minimumnum maximumnum "
    "canonicalize ldexp "
    "frexp sincos sincospi modf lround llround lrint llrint is.fpclass"
).split()


@pytest.mark.parametrize("name", C99 + GLIBC)
def test_math_h_in_three_precisions(name: str) -> None:
    for suffix, dtype in (("", "f64"), ("f", "f32"), ("l", "f80")):
        match = find(name + suffix)
        assert match is not None, name + suffix
        assert match.dtype == dtype
        assert match.row is find(name).row  # type: ignore[union-attr]


@pytest.mark.parametrize("name", INTRINSICS)
def test_intrinsics_in_every_float_type(name: str) -> None:
    for dtype in ("f16", "bf16", "f32", "f64", "f80", "v4f64", "v2f32"):
        match = find(f"llvm.{name}.{dtype}")
        assert match is not None, name
        assert match.dtype == dtype


def test_all_spellings_of_a_function_share_one_row() -> None:
    names = ["sin", "sinf", "sinl", "llvm.sin.f64", "__sin_finite", "__sinf_finite", "__nv_sin", "__nv_sinf",
             "__ocml_sin_f32", "llvm.experimental.constrained.sin.f64"]  # fmt: skip
    assert {find(name).key for name in names} == {"sin"}  # type: ignore[union-attr]
    assert {"sin", "__nv_sinf", "llvm.sin"} <= set(spellings("sin"))


@pytest.mark.parametrize(
    ("symbol", "key", "dtype"),
    [
        ("llvm.powi.f64.i32", "powi", "f64"),
        ("__powidf2", "powi", "f64"),
        ("llvm.frexp.f32.i32", "frexp.pair", "f32"),
        ("llvm.lround.i64.f32", "to_integer", "f32"),
        ("llvm.fptosi.sat.i32.f64", "to_integer", "f64"),
        ("llvm.experimental.constrained.fadd.f64", "fadd", "f64"),
        ("lgammaf_r", "lgamma_r", "f32"),
        ("__muldc3", "complex.mul", "f64"),
        ("__divsc3", "complex.div", "f32"),
        ("j0f", "j0", "f32"),
        ("cabs", "hypot", "f64"),
    ],
)
def test_irregular_spellings(symbol: str, key: str, dtype: str) -> None:
    match = find(symbol)
    assert match is not None
    assert (match.key, match.dtype) == (key, dtype)


def test_float_complex_is_packed() -> None:
    packed = {name: find(name).packed for name in ("cexpf", "cexp", "cabsf", "cpowf", "__mulsc3", "sinf")}  # type: ignore[union-attr]
    assert packed == {"cexpf": True, "cexp": False, "cabsf": True, "cpowf": True, "__mulsc3": False, "sinf": False}


@pytest.mark.parametrize(
    "symbol", ["main", "", "llvm.", "llvm", "llvm.sinus.f64", "sin_table", "llvm.ctpop.i32", "printf"]
)
def test_other_names_find_nothing(symbol: str) -> None:
    assert find(symbol) is None


def test_opcodes() -> None:
    for opcode in "fadd fsub fmul fdiv frem fneg".split():
        assert opcode_row(opcode) is not None
    assert opcode_row("fmul").partials[0] != opcode_row("fadd").partials[0]  # type: ignore[union-attr]
    assert opcode_row("add") is None


def test_reductions() -> None:
    found = reduction("llvm.vector.reduce.fadd.v4f64")
    assert found is not None
    assert (found.key, found.start, found.dtype) == ("fadd", True, "v4f64")
    assert reduction("llvm.vector.reduce.fmaximum.v8f32").key == "maximum"  # type: ignore[union-attr]
    assert reduction("llvm.vector.reduce.add.v4i32") is None
    assert reduction("llvm.sin.f64") is None


def test_shapes_of_all_rows() -> None:
    for row in rows().values():
        assert len(row.partials) == len(row.outputs), row.key
        assert len(row.domain) == len(row.signature), row.key
        for of_result in row.partials:
            assert len(of_result) == len(row.signature), row.key
        assert set(row.signature) <= set("fip"), row.key
        assert spellings(row.key) or row.opcode, row.key


def test_intrinsics_of_library_functions() -> None:
    table = float_intrinsics()
    assert table["sin"] == ("sin", 1) and table["fma"] == ("fma", 3)
    assert table["fmin"] == ("minnum", 2) and table["fminimum_num"] == ("minimumnum", 2)
    assert not {"lrint", "ldexp", "modf", "erf", "pow10"} & set(table)
    assert all(find(f"llvm.{intrinsic}.f64").row is find(name).row for name, (intrinsic, _) in table.items())
