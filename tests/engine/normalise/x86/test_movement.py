"""Lanes that move, inside vectors and to and from memory: as machine code, or as plain C where this CPU may lack it."""

from __future__ import annotations

import pytest
from shares import fast
from vector_programs import D2, D4, D8, F4, F8, F16, Plain, same_as_machine_code, same_as_plain

_INDICES = "__m256i v = _mm256_set_epi64x(3, 2, n, 1 + n), u = _mm256_set_epi32(7, 3, 2, n, 5, n + 1, 9, 0);"
_FEW = "_mm256_castsi256_si128"
MOVES = {
    "permutevar": D4.body("_mm256_permutevar_pd(a, v)", _INDICES),
    "permutevar sse": D2.body(f"_mm_permutevar_pd(a, {_FEW}(v))", _INDICES),
    "gather i32": D4.body(f"_mm256_i32gather_pd(x, {_FEW}(u), 8)", _INDICES),
    "gather i64": D4.body("_mm256_i64gather_pd(x, v, 8)", _INDICES),
    "gather two": D2.body(f"_mm_i32gather_pd(x + 1, {_FEW}(u), 8)", _INDICES),
    "gather masked": D4.body("_mm256_mask_i64gather_pd(b, x, v, _mm256_cmp_pd(a, c, 1), 8)", _INDICES),
    "maskload": D4.body("_mm256_maskload_pd(x, _mm256_castpd_si256(c))"),
    "maskstore": D4.body("_mm256_loadu_pd(z)").replace("_mm256_storeu", "double z[4] = {x[9], x[8], 0, 1}; "
                         "_mm256_maskstore_pd(z, _mm256_castpd_si256(b), a); _mm256_storeu", 1),
    "lddqu": D4.body("_mm256_castsi256_pd(_mm256_lddqu_si256((const __m256i *)(x + 1)))"),
}  # fmt: skip
FLOATS = {
    "permutevar": F8.body("_mm256_permutevar_ps(a, u)", _INDICES),
    "permute": F8.body("_mm256_permutevar8x32_ps(a, u)", _INDICES),
    "gather i64": F4.body("_mm256_i64gather_ps(q, v, 4)", _INDICES),
    "gather two": F4.body(f"_mm_i64gather_ps(q, {_FEW}(v), 4)", _INDICES),
    "maskload": F8.body("_mm256_maskload_ps(q, _mm256_castps_si256(b))"),
    "insert": F4.body("_mm_insert_ps(a, b, 0x9a)"),
}
_LONGS = (8, 6, 5, 14, 3, 3, 9, 1)
_V = f"__m512i v = _mm512_set_epi64({', '.join(map(str, _LONGS[::-1]))}); int m = (0xa5 ^ n) & 255;"
_W = f"long w[8] = {{{', '.join(map(str, _LONGS))}}}; int m = (0xa5 ^ n) & 255;"
_COUNT = "int k = 0; double t[8]; for (int j = 0; j < 8; j++) if (m >> j & 1) t[k++] = x[j];"


def _wide(ours: str, plain: str, more: str = "") -> tuple[str, str]:
    return D8.body(ours, _V), Plain(8).body(plain, _W + more)


WIDE = {
    "permutexvar": _wide("_mm512_permutexvar_pd(v, a)", "a[w[i] & 7]"),
    "permutex2var": _wide("_mm512_mask_permutex2var_pd(a, m, v, b)",
                          "m >> i & 1 ? w[i] & 8 ? b[w[i] & 7] : a[w[i] & 7] : a[i]"),
    "permutevar": _wide("_mm512_permutevar_pd(a, v)", "a[(i & ~1) + (w[i] >> 1 & 1)]"),
    "compress": _wide("_mm512_mask_compress_pd(c, m, a)", "i < k ? t[i] : c[i]", _COUNT),
    "expand": _wide("_mm512_mask_expand_pd(c, m, a)", "m >> i & 1 ? a[k++] : c[i]", "int k = 0;"),
    "gather": _wide("_mm512_i64gather_pd(v, x, 8)", "x[w[i]]"),
    "gather masked": _wide("_mm512_mask_i32gather_pd(c, m, _mm512_cvtepi64_epi32(v), x, 8)",
                           "m >> i & 1 ? x[w[i]] : c[i]"),
    "gather 256": (D4.body("_mm256_mmask_i64gather_pd(c, m, _mm512_castsi512_si256(v), x, 8)", _V),
                   Plain(4).body("m >> i & 1 ? x[w[i]] : c[i]", _W)),
    "gather ps": (F16.body("_mm512_mask_i32gather_ps(a, m, v, q, 4)", _V.replace("_epi64", "1_epi32", 1).replace(
                  ", ".join(map(str, _LONGS[::-1])), "n + 10")),
                  Plain(16, "float").body("m >> i & 1 ? (float)x[n + 10] : a[i]", _W)),
    "scatter": (f"{_V} _mm512_mask_i64scatter_pd(r, m, v, _mm512_loadu_pd(x), 8);",
                f"{_W} for (int i = 0; i < 8; i++) if (m >> i & 1) r[w[i]] = x[i];"),
    "load": _wide("_mm512_mask_loadu_pd(c, m, x + 2)", "m >> i & 1 ? x[i + 2] : c[i]"),
}  # fmt: skip


@pytest.mark.parametrize("name", fast(6, MOVES))
def test_doubles(name: str) -> None:
    same_as_machine_code(MOVES, name)


@pytest.mark.parametrize("name", fast(3, FLOATS))
def test_floats(name: str) -> None:
    same_as_machine_code(FLOATS, name, step=2.0**-12, within=2e-3)


@pytest.mark.parametrize("name", fast(6, WIDE))
def test_wide(name: str) -> None:
    same_as_plain(WIDE, name)
