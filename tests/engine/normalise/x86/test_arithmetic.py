"""Arithmetic, comparisons, choices: SSE to AVX2 as the machine does it, AVX-512 as plain C does."""

from __future__ import annotations

import numpy as np
import pytest
from shares import fast
from vector_programs import D2, D4, D8, F4, F8, F16, Plain, same_as_machine_code, same_as_plain

import irgrad as ig

DOUBLES = {
    **{f"{word} {bits}": width.body(f"_mm{bits}_{word}_pd(a, b)")
       for word in ("hadd", "hsub", "addsub", "max", "min") for bits, width in (("256", D4), ("", D2))},
    **{f"{word} sd": D2.body(f"_mm_{word}_sd(a, b)") for word in ("max", "min")},
    **{word: D4.body(f"_mm256_{word}_pd(a, b, c)") for word in ("fmaddsub", "fmsubadd", "fnmadd")},
    **{f"round {way}": D4.body(f"_mm256_sub_pd(b, _mm256_round_pd(_mm256_mul_pd(a, b), {way}))")
       for way in (0, 9, 2, 11, 4)},
    "round sd": D2.body("_mm_mul_pd(b, _mm_floor_sd(a, b))"),
    **{f"dot {word}": D2.body(f"_mm_dp_pd(a, b, {word})") for word in ("0x31", "0x12", "0x33")},
    "blend": D4.body("_mm256_blendv_pd(a, b, c)"), "blend sse": D2.body("_mm_blendv_pd(a, b, c)"),
    **{f"compare {word}": D4.body(f"_mm256_blendv_pd(a, b, _mm256_cmp_pd(a, c, {word}))") for word in range(0, 32, 3)},
    "and": D4.body("_mm256_and_pd(a, _mm256_cmp_pd(a, c, _CMP_LT_OQ))"),
    "compare sd": D2.body("_mm_blendv_pd(a, b, _mm_cmp_sd(a, c, _CMP_NGE_US))"),
    **{f"{u}comi{word}": D2.body(f"_mm_mul_pd(a, _mm_set1_pd(1 + _mm_{u}comi{word}_sd(a, b)))")
       for u in ("", "u") for word in ("eq", "lt", "le", "gt", "ge", "neq")},
    "movmsk": D4.body("_mm256_mul_pd(a, _mm256_set1_pd(_mm256_movemask_pd(b)))"),
    **{f"{word} signs": D4.body(f"_mm256_mul_pd(a, _mm256_set1_pd(1 + _mm256_{word}_pd(b, c)))")
       for word in ("testz", "testc", "testnzc")},
    **{f"{word} bits": D2.body(f"_mm_mul_pd(a, _mm_set1_pd(1 + _mm_{word}_si128(_mm_castpd_si128(b), "
                               "_mm_castpd_si128(c))))") for word in ("testz", "testc", "testnzc")},
}  # fmt: skip
FLOATS = {
    **{f"{word} {bits}": width.body(f"_mm{bits}_{word}_ps(a, b)")
       for word in ("hadd", "addsub", "max") for bits, width in (("256", F8), ("", F4))},
    "min ss": F4.body("_mm_min_ss(a, b)"), "fmsubadd": F8.body("_mm256_fmsubadd_ps(a, b, c)"),
    "round": F4.body("_mm_sub_ps(b, _mm_ceil_ps(a))"),
    **{f"dot {word}": F8.body(f"_mm256_dp_ps(a, b, {word})") for word in ("0xff", "0x53")},
    "dot sse": F4.body("_mm_dp_ps(a, b, 0xa8)"), "blend": F4.body("_mm_blendv_ps(a, b, c)"),
    "compare ss": F4.body("_mm_blendv_ps(a, b, _mm_cmp_ss(a, c, 1))"),
}  # fmt: skip
_R = "_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC"
_M8, _M16, _M1 = "int m = (0xa5 ^ n) & 255;", "int m = 0xa5c3 ^ n;", "int m = n;"
_ROUND = {0: "nearbyint", 1: "floor", 2: "ceil", 3: "trunc", 4: "rint"}


def _wide(ours: str, plain: str) -> tuple[str, str]:
    return D8.body(ours, _M8), Plain(8).body(plain, _M8)


def _single(ours: str, plain: str, others: str = "a") -> tuple[str, str]:
    return D2.body(ours, _M1), Plain(2).body(f"i ? {others}[1] : ({plain})", _M1)


WIDE = {
    **{f"{word} round": _wide(f"_mm512_mask_{word}_round_pd(c, m, a, b, {_R})", f"m >> i & 1 ? a[i] {sign} b[i] : c[i]")
       for word, sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"))},
    "mul ss": _single(f"_mm_mask_mul_round_sd(c, m, a, b, {_R})", "m & 1 ? a[0] * b[0] : c[0]"),
    "add ps": (F16.body(f"_mm512_mask_add_round_ps(a, m, b, c, {_R})", _M16),
               Plain(16, "float").body("m >> i & 1 ? b[i] + c[i] : a[i]", _M16)),
    "max": _wide("_mm512_max_pd(a, b)", "a[i] > b[i] ? a[i] : b[i]"),
    "min sd": _single("_mm_mask_min_sd(c, m, a, b)", "m & 1 ? a[0] < b[0] ? a[0] : b[0] : c[0]"),
    "sqrt": _wide(f"_mm512_mask_sqrt_round_pd(a, m, _mm512_mul_pd(b, b), {_R})",
                  "m >> i & 1 ? sqrt(b[i] * b[i]) : a[i]"),
    "sqrt sd": _single(f"_mm_mask_sqrt_round_sd(c, m, a, _mm_mul_sd(b, b), {_R})",
                       "m & 1 ? sqrt(b[0] * b[0]) : c[0]"),
    "fma": _wide(f"_mm512_mask3_fnmsub_round_pd(a, b, c, m, {_R})", "m >> i & 1 ? fma(-a[i], b[i], -c[i]) : c[i]"),
    "fma sd": _single(f"_mm_fmadd_round_sd(a, b, c, {_R})", "fma(a[0], b[0], c[0])"),
    "fma in turn": _wide(f"_mm512_maskz_fmaddsub_round_pd(m, a, b, c, {_R})",
                         "m >> i & 1 ? fma(a[i], b[i], i & 1 ? c[i] : -c[i]) : 0"),
    **{f"rndscale {way}": _wide(f"_mm512_mask_roundscale_pd(a, m, _mm512_mul_pd(b, c), {way | 0x30})",
                                f"m >> i & 1 ? {name}(b[i] * c[i] * 8) / 8 : a[i]") for way, name in _ROUND.items()},
    "rndscale 256": (D4.body("_mm256_mask_roundscale_pd(a, (unsigned char)m, b, 1)", _M8),
                     Plain(4).body("m >> i & 1 ? floor(b[i]) : a[i]", _M8)),
    "rndscale sd": _single("_mm_mask_roundscale_sd(c, m, a, b, 0x12)", "m & 1 ? ceil(b[0] * 2) / 2 : c[0]"),
    **{f"reduce {way}": _wide(f"_mm512_mask_reduce_pd(a, m, b, {way | 0x10})",
                              f"m >> i & 1 ? b[i] - {name}(b[i] * 2) / 2 : a[i]") for way, name in _ROUND.items()},
    "scalef": _wide("_mm512_mask_scalef_pd(c, m, a, b)", "m >> i & 1 ? ldexp(a[i], (int)floor(b[i])) : c[i]"),
    "scalef sd": _single("_mm_scalef_sd(a, b)", "ldexp(a[0], (int)floor(b[0]))"),
    "getexp": _wide("_mm512_mul_pd(a, _mm512_mask_getexp_pd(c, m, b))", "a[i] * (m >> i & 1 ? logb(b[i]) : c[i])"),
    "getexp sd": _single("_mm_mul_sd(a, _mm_getexp_sd(a, b))", "a[0] * logb(b[0])"),
    "getmant": _wide("_mm512_mask_getmant_pd(c, m, b, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src)",
                     "m >> i & 1 ? ldexp(b[i], -ilogb(b[i])) : c[i]"),
    "getmant half": _wide("_mm512_getmant_pd(b, _MM_MANT_NORM_p5_1, _MM_MANT_SIGN_zero)",
                          "fabs(ldexp(b[i], -1 - ilogb(b[i])))"),
    "getmant sd": _single("_mm_getmant_sd(a, b, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src)",
                          "ldexp(b[0], -ilogb(b[0]) - (ldexp(fabs(b[0]), -ilogb(b[0])) >= 1.5))"),
    "compare": _wide("_mm512_mask_blend_pd(_mm512_mask_cmp_round_pd_mask(m, a, b, _CMP_LT_OQ, 8), a, b)",
                     "(m >> i & 1) && a[i] < b[i] ? b[i] : a[i]"),
    "compare sd": _single("_mm_mask_sub_sd(a, _mm_cmp_sd_mask(a, b, _CMP_GT_OQ), a, b)",
                          "a[0] > b[0] ? a[0] - b[0] : a[0]"),
    "comi": _single("_mm_mul_sd(a, _mm_set_sd(2 + _mm_comi_round_sd(a, b, _CMP_GT_OQ, 8)))",
                    "a[0] * (2 + (a[0] > b[0]))"),
}  # fmt: skip


@pytest.mark.parametrize("name", fast(12, DOUBLES))
def test_doubles(name: str) -> None:
    same_as_machine_code(DOUBLES, name)


@pytest.mark.parametrize("name", fast(4, FLOATS))
def test_floats(name: str) -> None:
    same_as_machine_code(FLOATS, name, step=2.0**-12, within=2e-3)


@pytest.mark.parametrize("name", fast(10, WIDE))
def test_masks_and_roundings(name: str) -> None:
    same_as_plain(WIDE, name)


@pytest.mark.parametrize("word", ["rsqrt", "rcp"])
@pytest.mark.parametrize(("form", "lanes"), [("ps", 4), ("ss", 1)])
def test_approximations(word: str, form: str, lanes: int) -> None:
    """The value is the machine's, to 11 bits; the derivative that of the function it stands for, taken at the value."""
    body = F4.body(f"_mm_{word}_{form}(_mm_mul_ps(a, a))").replace("const double *x", "")
    source = f"#include <immintrin.h>\nvoid f(const double *x, double *r) {{ {body} }}\n"
    kernel = ig.load(source).kernel("f", "void(f64[24] x, out f64[4] r)")
    x = np.random.default_rng(0).uniform(0.5, 2, 24)
    y = kernel(x)[:lanes]
    exact = 1 / x[:lanes] if word == "rsqrt" else 1 / x[:lanes] ** 2
    assert 0 < np.abs(y / exact - 1).max() < 2**-11
    slope = (-0.5 * y**3 if word == "rsqrt" else -(y**2)) * 2 * x[:lanes]
    for jacobian in (ig.engine.jacrev, ig.engine.jacfwd):
        np.testing.assert_allclose(np.diagonal(jacobian(kernel)(x))[:lanes], slope, 1e-6)


@pytest.mark.parametrize(("word", "first"), [("max", lambda a, b: a > b), ("min", lambda a, b: a < b)])
def test_extremes_at_ties_and_nan(word: str, first: object) -> None:
    """The second operand where they are equal or one is NaN, as the instruction has it."""
    source = f"""#include <immintrin.h>
void f(const double *x, const double *y, double *r) {{
  _mm256_storeu_pd(r, _mm256_{word}_pd(_mm256_loadu_pd(x), _mm256_loadu_pd(y)));
}}
"""
    kernel = ig.load(source, flags=["-mavx"]).kernel("f", "void(f64[4] x, f64[4] y, out f64[4] r)")
    x, y = np.array([1.0, 3.0, 2.0, np.nan]), np.array([2.0, 1.0, 2.0, 1.0])
    chosen = first(x, y)  # type: ignore[operator]
    value, pullback = ig.engine.vjp(kernel, x, y)
    np.testing.assert_array_equal(value, np.where(chosen, x, y))
    dx, dy = pullback(np.ones(4))
    np.testing.assert_array_equal(dx, chosen)
    np.testing.assert_array_equal(dy, ~chosen)


@pytest.mark.parametrize(("call", "expected"), [
    ("getexp_pd(a)", [-np.inf, np.inf, np.inf, np.nan, -1074, 1, -2, 0]),
    ("getmant_pd(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src)", [1, 1, -1, np.nan, 1, -1.5, 1.2, 1]),
    ("getmant_pd(a, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero)", [1, 1, 1, np.nan, 1, 0.75, 1.2, 1]),
    ("getmant_pd(a, _MM_MANT_NORM_p5_1, _MM_MANT_SIGN_nan)", [1, 1, np.nan, np.nan, 0.5, np.nan, 0.6, 0.5]),
    ("scalef_pd(_mm512_set1_pd(3), a)", [3, np.inf, 0, np.nan, 3, 0.375, 3, 6]),
    ("reduce_pd(a, 1)", [0, 0, 0, np.nan, 5e-324, 0, 0.3, 0]),
])  # fmt: skip
def test_infinities_zeros_and_nan(call: str, expected: list[float]) -> None:
    source = f"""#include <immintrin.h>
void f(const double *x, double *r) {{ __m512d a = _mm512_loadu_pd(x); _mm512_storeu_pd(r, _mm512_{call}); }}
"""
    kernel = ig.load(source, flags=["-march=skylake-avx512"]).kernel("f", "void(f64[8] x, out f64[8] r)")
    x = np.array([0, np.inf, -np.inf, np.nan, 5e-324, -3, 0.3, 1])
    np.testing.assert_array_equal(kernel(x), expected)
