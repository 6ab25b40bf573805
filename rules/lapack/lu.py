"""Derivatives of the LU factorisation P A = L U with row exchanges, and of solves and inverses with it.

The exchanges are constant where the factorisation is differentiable. With Q = L^-1 P A' U^-1: L' = L lower(Q)
(strictly), U' = upper(Q) U; the adjoint follows from <L^, L'> + <U^, U'> (Giles 2008, section 2; de Hoog, Anderssen and
Lukas, "Differentiation of matrix functionals using triangular factorization", 2011). X' is the tangent of X, X^ its
adjoint.
"""

from __future__ import annotations

from typing import Any

from irgrad.rules.blas.calls import Call, Matrix, no
from irgrad.rules.blas.loops import add, copy_matrix, copy_triangle, product_triangle


def _lower(c: Call, routine: str, left: bool, trans: Any, m: Any, n: Any, lu: Matrix, b: Matrix) -> None:
    """B = op(L) B (trmm) or op(L)^-1 B (trsm), or from the right."""
    c.side(routine, left, False, trans, True, m, n, 1.0, lu, b)


def _upper(c: Call, routine: str, left: bool, trans: Any, m: Any, n: Any, lu: Matrix, b: Matrix) -> None:
    """The same with U."""
    c.side(routine, left, True, trans, False, m, n, 1.0, lu, b)


def _halves(c: Call, a: Matrix, n: Any) -> tuple[Matrix, Matrix]:
    """Copies of the strictly lower and of the upper triangle, zero elsewhere."""
    low, high = c.new(n, n, zero=True), c.new(n, n, zero=True)
    copy_triangle(c, a, low, n, False, True)
    copy_triangle(c, a, high, n, True)
    return low, high


def _join(c: Call, low: Matrix, high: Matrix, out: Matrix, n: Any) -> None:
    """The strictly lower triangle of one and the upper one of the other."""
    copy_triangle(c, low, out, n, False, True)
    copy_triangle(c, high, out, n, True)


def _exchange(c: Call, a: Matrix, columns: Any, rows: Any, pivots: Any, back: bool) -> None:
    """P A, or P^T A."""
    c.emit("laswp", columns, a.p, a.ld, 1, rows, pivots, -1 if back else 1)


def _copy(c: Call, a: Matrix, m: Any, n: Any) -> Matrix:
    made = c.new(m, n)
    copy_matrix(c, a, made, m, n)
    return made


# -- laswp -------------------------------------------------------------------------------------------------------------


def laswp_forward(c: Call) -> None:
    """Exchanges are linear: the same ones of A'."""
    if c.a.active:
        out = c.shadow("a")
        c.emit("laswp", c.n, out.p, out.ld, c.k1, c.k2, c.ipiv, c.incx)


def laswp_reverse(c: Call) -> None:
    """The last exchange of A^ first."""
    if c.a.active:
        g = c.shadow("a")
        steps = c.where(c.incx < 0, 0 - c.incx, c.incx)
        pivots = c.ipiv.saved(c.k1 + (c.k2 - c.k1) * steps)
        c.emit("laswp", c.n, g.p, g.ld, c.k1, c.k2, pivots, 0 - c.incx)


# -- getrf -------------------------------------------------------------------------------------------------------------


def getrf_forward(c: Call) -> None:
    """L' and U' from P A'; rows below and columns beside the square part follow from L2 U = A2 and L U2 = A2."""
    if c.a.active:
        _factor_forward(c, c.m, c.n)


def getrf_reverse(c: Call) -> None:
    """A^ from L^ and U^."""
    if c.a.active:
        _factor_reverse(c, c.m, c.n)


def _factor_forward(c: Call, m: Any, n: Any) -> None:
    k, lu, out = c.least(m, n), c.matrix("a"), c.shadow("a")
    _exchange(c, out, n, k, c.ipiv, False)
    q = _copy(c, out, k, k)
    _lower(c, "trsm", True, False, k, k, lu, q)
    _upper(c, "trsm", False, False, k, k, lu, q)
    low, high = _halves(c, q, k)
    _lower(c, "trmm", True, False, k, k, lu, low)
    _upper(c, "trmm", False, False, k, k, lu, high)
    _join(c, low, high, out, k)
    below, beside = out.at(k, 0), out.at(0, k)
    c.gemm(False, False, m - k, k, k, -1.0, lu.at(k, 0), high, 1.0, below)
    _upper(c, "trsm", False, False, m - k, k, lu, below)
    c.gemm(False, False, k, n - k, k, -1.0, low, lu.at(0, k), 1.0, beside)
    _lower(c, "trsm", True, False, k, n - k, lu, beside)


def _factor_reverse(c: Call, m: Any, n: Any) -> None:
    k, lu, g = c.least(m, n), c.result("a", m, n), c.shadow("a")
    pivots = c.ipiv.result(k)
    below, beside = g.at(k, 0), g.at(0, k)
    _upper(c, "trsm", False, True, m - k, k, lu, below)
    product_triangle(c, g, k, m - k, True, False, -1.0, True, lu.at(k, 0), False, below)
    _lower(c, "trsm", True, True, k, n - k, lu, beside)
    product_triangle(c, g, k, n - k, False, True, -1.0, False, beside, True, lu.at(0, k))
    low, high = _halves(c, g, k)
    _lower(c, "trmm", True, True, k, k, lu, low)
    _upper(c, "trmm", False, True, k, k, lu, high)
    _join(c, low, high, g, k)
    _lower(c, "trsm", True, True, k, k, lu, g)
    _upper(c, "trsm", False, True, k, k, lu, g)
    _exchange(c, g, n, k, pivots, True)


# -- getrs, gesv -------------------------------------------------------------------------------------------------------


def _solve(c: Call, trans: Any, lu: Matrix, pivots: Any, b: Matrix) -> None:
    c.emit("getrs", trans, c.n, c.nrhs, lu.p, lu.ld, pivots, b.p, b.ld, c.integers(1))


def getrs_forward(c: Call) -> None:
    """X = op(A)^-1 B, A = P^T L U:  X' = op(A)^-1 (B' - op(A') X), A' = P^T (L' U + L U')."""
    if not c.b.active:
        return
    out, n, k, lu = c.shadow("b"), c.n, c.nrhs, c.matrix("a")
    if c.a.active:
        low, high = _halves(c, c.shadow("a"), n)
        _upper(c, "trmm", False, False, n, n, lu, low)
        _lower(c, "trmm", True, False, n, n, lu, high)
        add(c, low, 1.0, high, n, n)
        _exchange(c, low, n, n, c.ipiv, True)
        c.gemm(c.trans, False, n, k, n, -1.0, low, c.matrix("b"), 1.0, out)
    _solve(c, c.trans, lu, c.ipiv, out)


def getrs_reverse(c: Call) -> None:
    """B^ = op(A)^-T X^;  A^ = -B^ X^T (or -X B^^T) = P^T M^;  L^ += lower(M^ U^T) (strictly), U^ += upper(L^T M^)."""
    if not c.b.active:
        return
    n, k, g = c.n, c.nrhs, c.shadow("b")
    lu, pivots = c.saved("a", n, n), c.ipiv.saved(n)
    _solve(c, no(c.trans), lu, pivots, g)
    if not c.a.active:
        return
    x, out = c.result("b", n, k), c.shadow("a")
    u, v = _copy(c, c.pick(c.trans, x, g), n, k), _copy(c, c.pick(c.trans, g, x), n, k)  # M^ = -(P u) v^T
    _exchange(c, u, k, n, pivots, False)
    scaled = _copy(c, v, n, k)
    _upper(c, "trmm", True, False, n, k, lu, scaled)
    product_triangle(c, out, n, k, False, True, -1.0, False, u, True, scaled)
    _lower(c, "trmm", True, True, n, k, lu, u)
    product_triangle(c, out, n, k, True, False, -1.0, False, u, True, v)


def gesv_forward(c: Call) -> None:
    """X = A^-1 B, and A becomes L and U:  X' = A^-1 (B' - A' X)."""
    if c.b.active:
        out = c.shadow("b")
        if c.a.active:
            c.gemm(False, False, c.n, c.nrhs, c.n, -1.0, c.shadow("a"), c.matrix("b"), 1.0, out)
        _solve(c, False, c.matrix("a"), c.ipiv, out)
    if c.a.active:
        _factor_forward(c, c.n, c.n)


def gesv_reverse(c: Call) -> None:
    """B^ = A^-T X^;  A^ = (what L^ and U^ give) - B^ X^T."""
    n, k = c.n, c.nrhs
    if c.a.active:
        _factor_reverse(c, n, n)
    if c.b.active:
        _solve(c, True, c.result("a", n, n), c.ipiv.result(n), c.shadow("b"))
        if c.a.active:
            c.gemm(False, True, n, n, k, -1.0, c.shadow("b"), c.result("b", n, k), 1.0, c.shadow("a"))


# -- getri -------------------------------------------------------------------------------------------------------------


def getri_forward(c: Call) -> None:
    """X = A^-1:  X' = -X A' X, A' = P^T (L' U + L U')."""
    if not c.a.active:
        return
    n, x, out = c.n, c.matrix("a"), c.shadow("a")
    with c.when(c.lwork != -1):  # else the size of the workspace is asked for
        lu = c.saved("a", n, n, when=c.lwork != -1)
        low, high = _halves(c, out, n)
        _upper(c, "trmm", False, False, n, n, lu, low)
        _lower(c, "trmm", True, False, n, n, lu, high)
        add(c, low, 1.0, high, n, n)
        _exchange(c, low, n, n, c.ipiv, True)
        c.gemm(False, False, n, n, n, 1.0, x, low, 0.0, high)
        c.gemm(False, False, n, n, n, -1.0, high, x, 0.0, out)


def getri_reverse(c: Call) -> None:
    """M^ = -P X^T X^ X^T;  L^ = lower(M^ U^T) (strictly), U^ = upper(L^T M^)."""
    if not c.a.active:
        return
    n, g, asked = c.n, c.shadow("a"), c.lwork == -1
    lu, x = c.saved("a", n, n, when=no(asked)), c.result("a", n, n, when=no(asked))
    pivots = c.ipiv.saved(c.where(asked, 0, n))
    with c.when(no(asked)):
        w, m = c.new(n, n), c.new(n, n)
        c.gemm(True, False, n, n, n, 1.0, x, g, 0.0, w)
        c.gemm(False, True, n, n, n, -1.0, w, x, 0.0, m)
        _exchange(c, m, n, n, pivots, False)
        copy_matrix(c, m, w, n, n)
        _upper(c, "trmm", False, True, n, n, lu, w)
        _lower(c, "trmm", True, True, n, n, lu, m)
        _join(c, w, m, g, n)
