"""Derivatives of triangular solves and inverses (Giles 2008, section 2.2.3)."""

from __future__ import annotations

from irgrad.rules.blas.calls import Call
from irgrad.rules.blas.level3 import trsm_forward, trsm_reverse
from irgrad.rules.blas.loops import copy_triangle


def _as_trsm(c: Call) -> Call:
    """trtrs is trsm from the left (but for its check of the diagonal)."""
    return c.also(left=True, m=c.n, n=c.nrhs, alpha=c.ctx.constant(1.0, c.dtype))


def trtrs_forward(c: Call) -> None:
    """X = op(A)^-1 B: as trsm."""
    trsm_forward(_as_trsm(c))


def trtrs_reverse(c: Call) -> None:
    """X = op(A)^-1 B: as trsm."""
    trsm_reverse(_as_trsm(c))


def trtri_forward(c: Call) -> None:
    """X = A^-1:  X' = -X A' X, on the triangle."""
    _sandwich(c, False)


def trtri_reverse(c: Call) -> None:
    """X = A^-1:  A^ = -X^T X^ X^T, on the triangle; a unit diagonal keeps its adjoint."""
    _sandwich(c, True)


def _sandwich(c: Call, trans: bool) -> None:
    if not c.a.active:
        return
    n, x, out = c.n, c.result("a", c.n, c.n), c.shadow("a")
    w = c.new(n, n, zero=True)
    copy_triangle(c, out, w, n, c.upper, c.unit)
    for left in (True, False):
        c.side("trmm", left, c.upper, trans, c.unit, n, n, 1.0, x, w)
    copy_triangle(c, w, out, n, c.upper, c.unit, by=-1.0)
