"""Derivatives of the Cholesky factorisation and of solves with it.

Reverse potrf is the blocked algorithm of Murray, "Differentiation of the Cholesky decomposition" (2016), figure 3; the
blocks on the diagonal are done in closed form (Smith 1995; Giles 2008, section 3.2.5). An upper factor in column-major
order is a lower one in row-major order, so one derivation serves both. X' is the tangent of X, X^ its adjoint.
"""

from __future__ import annotations

from typing import Any

from irgrad.rules.blas.calls import Call, Matrix, no
from irgrad.rules.blas.loops import add, copy_matrix, copy_triangle, mirror, product_triangle

_BLOCK = 64


def potrf_forward(c: Call) -> None:
    """A = L L^T:  L' = L phi(L^-1 A' L^-T), where phi takes the lower triangle and halves the diagonal."""
    if not c.a.active:
        return
    n, lower, out = c.n, c.matrix("a", c.upper), c.shadow("a", c.upper)
    w = c.new(n, n, c.upper)
    copy_triangle(c, out, w, n, False)
    mirror(c, w, n, False)
    c.side("trsm", True, False, False, False, n, n, 1.0, lower, w)
    c.side("trsm", False, False, True, False, n, n, 1.0, lower, w)
    phi = c.new(n, n, c.upper, zero=True)
    copy_triangle(c, w, phi, n, False)
    c.scal(n, 0.5, phi.diagonal)
    c.side("trmm", True, False, False, False, n, n, 1.0, lower, phi)
    copy_triangle(c, phi, out, n, False)


def potrf_reverse(c: Call) -> None:
    """A^ from L^, block by block from the last one; the triangle that potrf leaves alone keeps its adjoint."""
    if not c.a.active:
        return
    n, lower, g = c.n, c.result("a", c.n, c.n, c.upper), c.shadow("a", c.upper)
    blocks = (n + (_BLOCK - 1)) // _BLOCK
    with c.loop(blocks) as t:
        j = (blocks - 1 - t) * _BLOCK
        nb = c.least(n - j, _BLOCK)
        k = j + nb
        rest = n - k
        d, gd = lower.at(j, j), g.at(j, j)  # on the diagonal
        r, gr = lower.at(j, 0), g.at(j, 0)  # left of it
        b, gb = lower.at(k, 0), g.at(k, 0)  # below that
        s, gs = lower.at(k, j), g.at(k, j)  # below it
        c.side("trsm", False, False, False, False, rest, nb, 1.0, d, gs)
        c.gemm(False, False, rest, j, nb, -1.0, gs, r, 1.0, gb)
        product_triangle(c, gd, nb, rest, False, False, -1.0, True, gs, False, s)
        c.gemm(True, False, nb, j, rest, -1.0, gs, b, 1.0, gr)
        both = _diagonal_block(c, d, gd, nb)
        c.symm(True, False, nb, j, -1.0, both, r, 1.0, gr)


def _diagonal_block(c: Call, d: Matrix, g: Matrix, n: Any) -> Matrix:
    """Turn D^ into the adjoint of D D^T, on the lower triangle; returns that plus its transpose.

    With P the lower triangle of D^T D^ and S = D^-T (P + P^T - diag P) D^-1: off the diagonal S, on it S / 2.
    """
    w = c.new(n, n, d.row, zero=True)
    copy_triangle(c, g, w, n, False)
    c.side("trmm", True, False, True, False, n, n, 1.0, d, w)
    mirror(c, w, n, False)
    c.side("trsm", True, False, True, False, n, n, 1.0, d, w)
    c.side("trsm", False, False, False, False, n, n, 1.0, d, w)
    copy_triangle(c, w, g, n, False)
    c.scal(n, 0.5, g.diagonal)
    return w


def _times(c: Call, factor: Matrix, transposed: Any, b: Matrix, unit: Any = False) -> Matrix:
    """L B or L^T B, where the factor holds L, or L^T above the diagonal."""
    made = c.new(c.n, c.nrhs)
    copy_matrix(c, b, made, c.n, c.nrhs)
    trans = c.upper if not transposed else no(c.upper)
    c.side("trmm", True, c.upper, trans, unit, c.n, c.nrhs, 1.0, factor, made)
    return made


def potrs_forward(c: Call) -> None:
    """X = (L L^T)^-1 B:  X' = (L L^T)^-1 (B' - L' L^T X - L L'^T X)."""
    if not c.b.active:
        return
    out = c.shadow("b")
    if c.a.active:
        factor, moved, x = c.matrix("a"), c.shadow("a"), c.matrix("b")
        add(c, out, -1.0, _times(c, moved, False, _times(c, factor, True, x)), c.n, c.nrhs)
        add(c, out, -1.0, _times(c, factor, False, _times(c, moved, True, x)), c.n, c.nrhs)
    c.emit("potrs", c.upper, c.n, c.nrhs, c.a, c.lda, out.p, out.ld, c.integers(1))


def potrs_reverse(c: Call) -> None:
    """B^ = (L L^T)^-1 X^;  L^ -= lower(B^ (L^T X)^T + X (L^T B^)^T)."""
    if not c.b.active:
        return
    n, k, g, factor = c.n, c.nrhs, c.shadow("b"), c.saved("a", c.n, c.n)
    c.emit("potrs", c.upper, n, k, factor.p, factor.ld, g.p, g.ld, c.integers(1))
    if c.a.active:
        x = c.result("b", n, k)
        for one, other in ((g, _times(c, factor, True, x)), (x, _times(c, factor, True, g))):
            left, right = c.pick(c.upper, other, one), c.pick(c.upper, one, other)
            product_triangle(c, c.shadow("a"), n, k, c.upper, False, -1.0, False, left, True, right)
