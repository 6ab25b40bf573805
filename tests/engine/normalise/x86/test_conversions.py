"""Conversions: as machine code, or as plain C; what no integer equals; the widths that derivatives pass through."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from shares import fast
from vector_programs import D2, D4, D8, F4, F8, F16, Plain, same_as_machine_code, same_as_plain

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.normalise.x86.lower import lower_vector_intrinsics

INTEGERS = {  # powers of two: no rounding of the product hides a wrong integer
    "cvttpd": D4.body("_mm256_mul_pd(a, _mm256_cvtepi32_pd(_mm256_cvttpd_epi32(_mm256_mul_pd(b, c))))"),
    "cvtpd": D2.body("_mm_mul_pd(a, _mm_cvtepi32_pd(_mm_cvtpd_epi32(_mm_mul_pd(b, c))))"),
    "cvtsd2si": D2.body("_mm_mul_pd(a, _mm_set1_pd(_mm_cvtsd_si32(_mm_mul_pd(b, c))))"),
    "cvttsd2si64": D2.body("_mm_mul_pd(a, _mm_set1_pd(_mm_cvttsd_si64(_mm_mul_pd(b, c))))"),
}
FLOATS = {
    "cvtps": F4.body("_mm_mul_ps(a, _mm_cvtepi32_ps(_mm_cvtps_epi32(_mm_mul_ps(b, c))))"),
    "cvttps": F8.body("_mm256_mul_ps(a, _mm256_cvtepi32_ps(_mm256_cvttps_epi32(_mm256_mul_ps(b, c))))"),
    "pd2ps": F4.body("_mm256_cvtpd_ps(_mm256_loadu_pd(x))"), "pd2ps sse": F4.body("_mm_cvtpd_ps(_mm_loadu_pd(x))"),
    "sd2ss": F4.body("_mm_cvtsd_ss(a, _mm_loadu_pd(x + 5))"),
}
_M = "int m = (0xa5 ^ n) & 255;"


def _wide(ours: str, plain: str) -> tuple[str, str]:
    return D8.body(ours, _M), Plain(8).body(plain, _M)


WIDE = {
    "cvttpd_epi64": _wide("_mm512_mul_pd(a, _mm512_cvtepi64_pd(_mm512_cvttpd_epi64(_mm512_mul_pd(b, c))))",
                          "a[i] * (double)(long)(b[i] * c[i])"),
    "cvtpd_epu32": _wide("_mm512_mul_pd(a, _mm512_cvtepu32_pd(_mm512_cvtpd_epu32(_mm512_mul_pd(b, b))))",
                         "a[i] * (unsigned)rint(b[i] * b[i])"),
    "masked": _wide("_mm512_mul_pd(a, _mm512_cvtepi32_pd(_mm512_mask_cvttpd_epi32(_mm256_set1_epi32(7), m, b)))",
                    "a[i] * (m >> i & 1 ? (int)b[i] : 7)"),
    "epi64_pd": _wide("_mm512_mul_pd(a, _mm512_cvt_roundepi64_pd(_mm512_set1_epi64(n), 8))", "a[i] * n"),
    "cvttsd_u32": (D2.body("_mm_mul_sd(a, _mm_set_sd(_mm_cvttsd_u32(_mm_mul_sd(b, b))))"),
                   Plain(2).body("i ? a[1] : a[0] * (unsigned)(b[0] * b[0])")),
    "i64_sd": (D2.body("_mm_mul_sd(a, _mm_cvt_roundi64_sd(b, n, 8))"), Plain(2).body("i ? a[1] : a[0] * n")),
    "there and back": (D2.body("_mm_cvt_roundss_sd(a, _mm_cvt_roundsd_ss(_mm_setzero_ps(), b, 8), 8)"),
                       Plain(2).body("i ? a[1] : (float)b[0]")),
    "ps_pd": _wide("_mm512_mask_cvtps_pd(a, m, _mm512_cvt_roundpd_ps(b, 8))", "m >> i & 1 ? (float)b[i] : a[i]"),
    "ph": (F16.body("_mm512_cvtph_ps(_mm512_cvtps_ph(a, 0))"), Plain(16, "float").body("(float)(_Float16)a[i]")),
}  # fmt: skip


@pytest.mark.parametrize("name", fast(2, INTEGERS))
def test_doubles(name: str) -> None:
    same_as_machine_code(INTEGERS, name)


@pytest.mark.parametrize("name", fast(3, FLOATS))
def test_floats(name: str) -> None:
    same_as_machine_code(FLOATS, name, step=2.0**-12, within=2e-3)


@pytest.mark.parametrize("name", fast(4, WIDE))
def test_wide(name: str) -> None:
    same_as_plain(WIDE, name)


@pytest.mark.parametrize(("word", "dtype"), [("dq", np.int32), ("udq", np.uint32)])
def test_what_no_integer_equals(word: str, dtype: type) -> None:
    """The "indefinite" integer; a float above -1 is truncated to an unsigned 0."""
    name = f"llvm.x86.avx512.mask.cvttpd2{word}.512"
    types = "<8 x double>, <8 x i32>, i8, i32"
    module = read(f"""declare <8 x i32> @{name}({types})
define void @f(ptr %x, ptr %r) {{
  %v = load <8 x double>, ptr %x, align 8
  %i = call <8 x i32> @{name}(<8 x double> %v, <8 x i32> zeroinitializer, i8 -1, i32 4)
  store <8 x i32> %i, ptr %r, align 4
  ret void
}}""")
    assert lower_vector_intrinsics(module, module.functions["f"])
    text = to_text(module)
    assert f"call <8 x i32> @{name}" not in text
    bounds = np.iinfo(dtype)
    x = np.array([2.5, -0.5, float(bounds.max), bounds.max + 1.0, -1.5, np.nan, np.inf, -3e9])
    r = np.zeros(8, dtype)
    run = compile_module(text, ["f"], cache=False).function("f", None, ctypes.c_void_p, ctypes.c_void_p)
    run(x.ctypes.data, r.ctypes.data)
    lost = bounds.max if dtype is np.uint32 else bounds.min
    np.testing.assert_array_equal(r, [2, 0, bounds.max, lost, lost if dtype is np.uint32 else -1, lost, lost, lost])
