"""Derivatives of the singular value decomposition A = U diag(s) V^T (Giles 2008, section 3.2; Townsend 2016).

With P = U^T A' V and F_ij = 1 / (s_j^2 - s_i^2): s'_i = P_ii, U' = U (F o (P S + S P^T)) + (1 - U U^T) A' V S^-1, and
V' = V (F o (S P + P^T S)) + (1 - V V^T) A'^T U S^-1. U has k = min(m, n) columns, V^T as many rows. Vectors of equal
singular values have no derivative; F is zero there, which is right for functions of their span.
"""

from __future__ import annotations

from typing import Any

from irgrad.rules.blas.calls import Call, Matrix, Vector, no
from irgrad.rules.blas.loops import copy_matrix, scale, scale_vector


def _asked(c: Call) -> Any:
    """Whether the call only asks for the size of the workspace."""
    return c.lwork == -1


def _is(c: Call, *letters: str) -> Any:
    """Whether the job is one of these."""
    found: Any = False
    for letter in letters:
        same = (c.letter == ord(letter)) | (c.letter == ord(letter.lower()))
        found = same if found is False else found | same
    return found


def _factors(c: Call, m: Any, n: Any, k: Any) -> tuple[Matrix, Matrix]:
    """U and V^T; where only singular values are asked for, they are computed again from a copy of A."""
    given, none = _is(c, "S", "A"), _is(c, "N")
    u, vt = c.result("u", m, k, when=given), c.result("vt", k, n, when=given)
    before, room = c.saved("a", m, n, when=none), c.where(none, k, 0)
    own_u, own_vt, copy = c.new(m, room), c.new(room, n), c.new(c.where(none, m, 0), n)
    with c.when(none):
        copy_matrix(c, before, copy, m, n)
        size = 4 * k * k + 7 * k + 64 * (m + n)
        c.emit("gesdd", True, m, n, copy.p, m, c.memory(k), own_u.p, m, own_vt.p, k, c.memory(size), size,
               c.integers(8 * k), c.integers(1))  # fmt: skip
    return c.pick(none, own_u, u), c.pick(none, own_vt, vt)


def _unknown(c: Call, m: Any, n: Any) -> Any:
    """Whether the job has no derivative: vectors that complete a basis, or that take the place of A."""
    return (_is(c, "A") & (m != n)) | _is(c, "O")


def _by_gap(c: Call, s: Any, i: Any, j: Any) -> Any:
    """F_ij."""
    gap = (s[j] - s[i]) * (s[j] + s[i])  # 0 for equal ones, however it is rounded
    apart = gap != 0
    return c.where(apart, 1.0 / c.where(apart, gap, 1.0), 0.0)


def _inverse(c: Call, s: Any, i: Any) -> Any:
    """1 / s_i, 0 for 0."""
    return c.where(s[i] != 0, 1.0 / c.where(s[i] != 0, s[i], 1.0), 0.0)


def _cross(c: Call, k: Any, p: Matrix, s: Any, *, left: bool) -> Matrix:
    """F o (P S + S P^T), or F o (S P + P^T S)."""
    made = c.new(k, k)
    with c.loop(k) as j, c.loop(k) as i:
        one, other = p.p[j * p.ld + i], p.p[i * p.ld + j]
        both = one * s[j] + s[i] * other if left else s[i] * one + other * s[j]
        made.p[j * made.ld + i] = _by_gap(c, s, i, j) * both
    return made


def gesdd_forward(c: Call) -> None:
    """s', U' and V'^T; A' is cleared, as A is gone."""
    if not c.a.active:
        return
    m, n = c.m, c.n
    k = c.least(m, n)
    with c.when(no(_asked(c))):
        da, s, vectors = c.shadow("a"), c.s, no(_is(c, "N"))
        u, vt = _factors(c, m, n, k)
        t, p = c.new(k, n), c.new(k, k)
        c.gemm(True, False, k, n, m, 1.0, u, da, 0.0, t)
        c.gemm(False, True, k, k, n, 1.0, t, vt, 0.0, p)
        if c.u.active:
            du = c.shadow("u")
            scale(c, du, c.where(vectors, m, 0), k, 0)
            with c.when(vectors & (m > k)):
                c.gemm(False, True, m, k, n, 1.0, da, vt, 0.0, du)
                c.gemm(False, False, m, k, k, -1.0, u, p, 1.0, du)
                with c.loop(k) as j:
                    c.scal(m, _inverse(c, s, j), du.column(j))
            with c.when(vectors):
                c.gemm(False, False, m, k, k, 1.0, u, _cross(c, k, p, s, left=True), 1.0, du)
        if c.vt.active:
            dvt = c.shadow("vt")
            scale(c, dvt, c.where(vectors, k, 0), n, 0)
            with c.when(vectors & (n > k)):
                c.gemm(False, False, k, n, k, -1.0, p, vt, 1.0, t)
                with c.loop(n) as j, c.loop(k) as i:
                    dvt.p[j * dvt.ld + i] = t.p[j * t.ld + i] * _inverse(c, s, i)
            with c.when(vectors):
                c.gemm(True, False, k, n, k, 1.0, _cross(c, k, p, s, left=False), vt, 1.0, dvt)
        if c.s.active:
            c.copy(k, p.diagonal, Vector(c.s.d, 1))
            with c.when(_unknown(c, m, n)):
                scale_vector(c, k, float("nan"), Vector(c.s.d, 1))
        scale(c, da, m, n, 0)


def gesdd_reverse(c: Call) -> None:
    """A^ = U G V^T with G = diag(s^) + (X + X^T) S + S (Y + Y^T), X = F o U^T U^ and Y = F o V^T V^; and what U^ and V^
    have outside of the spans of U and V, over S."""
    asked, m, n = _asked(c), c.m, c.n
    k = c.least(m, n)
    s = c.s.result(c.where(asked, 0, k))
    vectors = no(asked) & no(_is(c, "N"))
    if c.a.active:
        ga = c.shadow("a")
        with c.when(no(asked)):
            u, vt = _factors(c, m, n, k)
            g, x, t = c.new(k, k, zero=True), c.new(k, k), c.new(k, n, zero=True)
            scale(c, ga, m, n, 0)
            if c.s.active:
                c.copy(k, Vector(c.s.d, 1), g.diagonal)
            if c.u.active:
                gu = c.shadow("u")
                scale(c, x, k, k, 0)
                with c.when(vectors):
                    c.gemm(True, False, k, k, m, 1.0, u, gu, 0.0, x)
                with c.when(vectors & (m > k)):
                    h = c.new(m, k)
                    with c.loop(k) as j:
                        c.copy(m, gu.column(j), h.column(j))
                    c.gemm(False, False, m, k, k, -1.0, u, x, 1.0, h)
                    with c.loop(k) as j:
                        c.scal(m, _inverse(c, s, j), h.column(j))
                    c.gemm(False, False, m, n, k, 1.0, h, vt, 0.0, ga)
                with c.loop(k) as j, c.loop(k) as i:
                    both = _by_gap(c, s, i, j) * (x.p[j * x.ld + i] - x.p[i * x.ld + j])
                    g.p[j * g.ld + i] = g.p[j * g.ld + i] + both * s[j]
            if c.vt.active:
                gvt = c.shadow("vt")
                scale(c, x, k, k, 0)
                with c.when(vectors):
                    c.gemm(False, True, k, k, n, 1.0, vt, gvt, 0.0, x)
                with c.when(vectors & (n > k)):
                    with c.loop(n) as j:
                        c.copy(k, gvt.column(j), t.column(j))
                    c.gemm(True, False, k, n, k, -1.0, x, vt, 1.0, t)
                    with c.loop(n) as j, c.loop(k) as i:
                        t.p[j * t.ld + i] = t.p[j * t.ld + i] * _inverse(c, s, i)
                with c.loop(k) as j, c.loop(k) as i:
                    both = _by_gap(c, s, i, j) * (x.p[j * x.ld + i] - x.p[i * x.ld + j])
                    g.p[j * g.ld + i] = g.p[j * g.ld + i] + s[i] * both
            c.gemm(False, False, k, n, k, 1.0, g, vt, 1.0, t)
            c.gemm(False, False, m, n, k, 1.0, u, t, 1.0, ga)
            with c.when(_unknown(c, m, n)):
                scale(c, ga, m, n, float("nan"))
    if c.s.active:
        scale_vector(c, c.where(asked, 0, k), 0, Vector(c.s.d, 1))
    with c.when(vectors):
        if c.u.active:
            scale(c, c.shadow("u"), m, k, 0)
        if c.vt.active:
            scale(c, c.shadow("vt"), k, n, 0)
