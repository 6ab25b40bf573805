"""Derivatives of the symmetric eigenvalue problem A = Z diag(w) Z^T (Giles 2008, section 3.1).

With Q = Z^T A' Z: w'_i = Q_ii and Z' = Z (F o Q), F_ij = 1 / (w_j - w_i). Eigenvectors of equal eigenvalues have no
derivative; F is zero there, which is right for functions of their span. Where only eigenvalues are asked for, the
eigenvectors are computed again from a copy of A.
"""

from __future__ import annotations

from typing import Any

from irgrad.rules.blas.calls import Call, Matrix, Vector, no
from irgrad.rules.blas.loops import copy_matrix, copy_triangle, mirror, scale, scale_vector


def _vectors(c: Call) -> Matrix:
    """Z."""
    n, made = c.n, c.new(c.n, c.n)
    before, after = c.saved("a", n, n, when=no(c.vectors)), c.result("a", n, n, when=c.vectors)
    with c.when(c.vectors):
        copy_matrix(c, after, made, n, n)
    with c.when(no(c.vectors)):
        copy_matrix(c, before, made, n, n)
        size = 34 * n + 1
        c.emit("syev", True, c.upper, n, made.p, made.ld, c.memory(n), c.memory(size), size, c.integers(1))
    return made


def _weight(c: Call, q: Matrix, w: Any, n: Any, diagonal: Any) -> None:
    """Q := F o Q, with another diagonal."""
    with c.loop(n) as j, c.loop(n) as i:
        gap, at = w[j] - w[i], j * q.ld + i
        apart = gap != 0
        factor = c.where(apart, 1.0 / c.where(apart, gap, 1.0), 0.0)
        q.p[at] = c.where(i == j, diagonal(j), q.p[at] * factor)


def _asked(c: Call) -> Any:
    """Whether the call only asks for the size of the workspace."""
    return c.lwork == -1


def syev_forward(c: Call) -> None:
    """w'_i = Q_ii, Z' = Z (F o Q); without eigenvectors A' is cleared."""
    if not c.a.active:
        return
    n, out = c.n, c.shadow("a")
    with c.when(no(_asked(c))):
        z, full, q = _vectors(c), c.new(c.n, c.n), c.new(c.n, c.n)
        copy_triangle(c, out, full, n, c.upper)
        mirror(c, full, n, c.upper)
        c.gemm(True, False, n, n, n, 1.0, z, full, 0.0, q)
        c.gemm(False, False, n, n, n, 1.0, q, z, 0.0, full)
        if c.w.active:
            c.copy(n, full.diagonal, Vector(c.w.d, 1))
        _weight(c, full, c.w, n, lambda j: 0.0)
        scale(c, out, n, n, 0)
        with c.when(c.vectors):
            c.gemm(False, False, n, n, n, 1.0, z, full, 0.0, out)


def syev_reverse(c: Call) -> None:
    """A^ = R + R^T off the diagonal of the triangle, R on it, with R = Z (diag w^ + F o Z^T Z^) Z^T."""
    asked = _asked(c)
    values = c.w.result(c.where(asked, 0, c.n))
    if c.a.active:
        n, g = c.n, c.shadow("a")
        with c.when(no(asked)):
            z, q, r = _vectors(c), c.new(n, n, zero=True), c.new(n, n)
            with c.when(c.vectors):
                c.gemm(True, False, n, n, n, 1.0, z, g, 0.0, q)
            _weight(c, q, values, n, lambda j: c.w.d[j] if c.w.active else 0.0)
            c.gemm(False, False, n, n, n, 1.0, z, q, 0.0, r)
            c.gemm(False, True, n, n, n, 1.0, r, z, 0.0, q)
            scale(c, g, n, n, 0)
            with c.loop(n) as j, c.loop(c.where(c.upper, 0, j), c.where(c.upper, j + 1, n)) as i:
                both = q.p[j * q.ld + i] + q.p[i * q.ld + j]
                g.p[j * g.ld + i] = c.where(i == j, 0.5, 1.0) * both
    if c.w.active:
        scale_vector(c, c.where(asked, 0, c.n), 0, Vector(c.w.d, 1))
