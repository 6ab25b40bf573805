"""Derivatives of the matrix-vector routines (Giles 2008, section 2.2): bilinear forms, and the inverse in trsv.

X' is the tangent of X, X^ its adjoint. Of a triangular or symmetric matrix only the stored triangle has an adjoint, and
of a unit triangle not the diagonal; the other elements are not read by the routine.
"""

from __future__ import annotations

from typing import Any

from irgrad.rules.blas.calls import Call, Vector, no
from irgrad.rules.blas.loops import dense, outer_triangle, scale_vector, triangle


def ger_forward(c: Call) -> None:
    """A += a x y^T:  A' += a' x y^T + a x' y^T + a x y'^T."""
    if not c.a.active:
        return
    x, y, a = c.vector("x"), c.vector("y"), c.shadow("a")
    if c.alpha.active:
        c.ger(c.m, c.n, c.alpha.d, x, y, a)
    if c.x.active:
        c.ger(c.m, c.n, c.alpha, c.vector_shadow("x"), y, a)
    if c.y.active:
        c.ger(c.m, c.n, c.alpha, x, c.vector_shadow("y"), a)


def ger_reverse(c: Call) -> None:
    """a^ += x . A^ y;  x^ += a A^ y;  y^ += a A^T x."""
    if not c.a.active:
        return
    a = c.shadow("a")
    if c.alpha.active:
        product = Vector(c.memory(c.m), 1)
        c.gemv(False, c.m, c.n, 1.0, a, c.vector_saved("y", c.n), 0.0, product)
        c.alpha.d += c.where(c.n > 0, c.dot(c.m, c.vector_saved("x", c.m), product), 0.0)
    if c.x.active:
        c.gemv(False, c.m, c.n, c.alpha, a, c.vector_saved("y", c.n), 1.0, c.vector_shadow("x"))
    if c.y.active:
        c.gemv(True, c.m, c.n, c.alpha, a, c.vector_saved("x", c.m), 1.0, c.vector_shadow("y"))


def syr_forward(c: Call) -> None:
    """A += a x x^T on a triangle:  A' += a' x x^T + a (x' x^T + x x'^T)."""
    if not c.a.active:
        return
    if c.alpha.active:
        c.syr(c.upper, c.n, c.alpha.d, c.vector("x"), c.shadow("a"))
    if c.x.active:
        c.syr2(c.upper, c.n, c.alpha, c.vector("x"), c.vector_shadow("x"), c.shadow("a"))


def syr_reverse(c: Call) -> None:
    """With S = A^ + A^^T of the triangle:  a^ += x . S x / 2;  x^ += a S x."""
    if not c.a.active:
        return
    if c.alpha.active or c.x.active:
        x, product = c.vector_saved("x", c.n), _both_halves(c, "x")
        if c.alpha.active:
            c.alpha.d += 0.5 * c.dot(c.n, x, product)
        if c.x.active:
            c.axpy(c.n, c.alpha, product, c.vector_shadow("x"))


def _both_halves(c: Call, name: str) -> Vector:
    """S v, where S is the adjoint of the triangle and its transpose together."""
    product = Vector(c.memory(c.n), 1)
    c.scal(c.n, 2.0, c.shadow("a").diagonal)
    c.symv(c.upper, c.n, 1.0, c.shadow("a"), c.vector_saved(name, c.n), 0.0, product)
    c.scal(c.n, 0.5, c.shadow("a").diagonal)
    return product


def syr2_forward(c: Call) -> None:
    """A += a (x y^T + y x^T) on a triangle: linear in each."""
    if not c.a.active:
        return
    x, y, a = c.vector("x"), c.vector("y"), c.shadow("a")
    if c.alpha.active:
        c.syr2(c.upper, c.n, c.alpha.d, x, y, a)
    if c.x.active:
        c.syr2(c.upper, c.n, c.alpha, c.vector_shadow("x"), y, a)
    if c.y.active:
        c.syr2(c.upper, c.n, c.alpha, x, c.vector_shadow("y"), a)


def syr2_reverse(c: Call) -> None:
    """With S = A^ + A^^T of the triangle:  a^ += x . S y;  x^ += a S y;  y^ += a S x."""
    if not c.a.active:
        return
    if c.alpha.active or c.x.active:
        product = _both_halves(c, "y")
        if c.alpha.active:
            c.alpha.d += c.where(c.n > 0, c.dot(c.n, c.vector_saved("x", c.n), product), 0.0)
        if c.x.active:
            c.axpy(c.n, c.alpha, product, c.vector_shadow("x"))
    if c.y.active:
        c.axpy(c.n, c.alpha, _both_halves(c, "x"), c.vector_shadow("y"))


def _beta_forward(c: Call, n: Any) -> None:
    """The part of y := ... + beta y that does not come from the product."""
    scale_vector(c, n, c.beta, c.vector_shadow("y"))
    if c.beta.active:
        with c.when(c.beta.d != 0):  # y may hold anything where beta is zero
            c.axpy(n, c.beta.d, c.vector_saved("y", n), c.vector_shadow("y"))


def _beta_reverse(c: Call, n: Any) -> None:
    if c.beta.active:
        c.beta.d += c.dot(n, c.vector_saved("y", n), c.vector_shadow("y"))
    scale_vector(c, n, c.beta, c.vector_shadow("y"))


def gemv_forward(c: Call) -> None:
    """y := a op(A) x + b y:  y' := b y' + b' y + a' op(A) x + a op(A') x + a op(A) x'."""
    if not c.y.active:
        return
    x, y = c.vector("x"), c.vector_shadow("y")
    rows = c.where(c.trans, c.n, c.m)
    _beta_forward(c, c.where((c.m > 0) & (c.n > 0), rows, 0))  # BLAS returns at once otherwise
    if c.alpha.active:
        c.gemv(c.trans, c.m, c.n, c.alpha.d, c.matrix("a"), x, 1.0, y)
    if c.a.active:
        c.gemv(c.trans, c.m, c.n, c.alpha, c.shadow("a"), x, 1.0, y)
    if c.x.active:
        c.gemv(c.trans, c.m, c.n, c.alpha, c.matrix("a"), c.vector_shadow("x"), 1.0, y)


def gemv_reverse(c: Call) -> None:
    """a^ += x . op(A)^T y^;  x^ += a op(A)^T y^;  A^ += a y^ x^T (or a x y^T);  y^ := b y^."""
    if not c.y.active:
        return
    rows, columns = c.where(c.trans, c.n, c.m), c.where(c.trans, c.m, c.n)
    some = (c.m > 0) & (c.n > 0)
    rows, columns = c.where(some, rows, 0), c.where(some, columns, 0)
    y = c.vector_shadow("y")
    a = c.saved("a", c.m, c.n, when=c.x.active or c.alpha.active)
    if c.alpha.active:
        product = Vector(c.memory(columns), 1)
        c.gemv(no(c.trans), c.m, c.n, 1.0, a, y, 0.0, product)
        c.alpha.d += c.dot(columns, c.vector_saved("x", columns), product)
        if c.x.active:
            c.axpy(columns, c.alpha, product, c.vector_shadow("x"))
    elif c.x.active:
        c.gemv(no(c.trans), c.m, c.n, c.alpha, a, y, 1.0, c.vector_shadow("x"))
    if c.a.active:
        x = c.vector_saved("x", columns)
        u = Vector(c.where(c.trans, x.p, y.p), c.where(c.trans, x.inc, y.inc))
        v = Vector(c.where(c.trans, y.p, x.p), c.where(c.trans, y.inc, x.inc))
        c.ger(c.m, c.n, c.alpha, u, v, c.shadow("a"))
    _beta_reverse(c, rows)


def symv_forward(c: Call) -> None:
    """y := a A x + b y, A symmetric: as gemv."""
    if not c.y.active:
        return
    x, y = c.vector("x"), c.vector_shadow("y")
    _beta_forward(c, c.n)
    if c.alpha.active:
        c.symv(c.upper, c.n, c.alpha.d, c.matrix("a"), x, 1.0, y)
    if c.a.active:
        c.symv(c.upper, c.n, c.alpha, c.shadow("a"), x, 1.0, y)
    if c.x.active:
        c.symv(c.upper, c.n, c.alpha, c.matrix("a"), c.vector_shadow("x"), 1.0, y)


def symv_reverse(c: Call) -> None:
    """x^ += a A y^;  A^_ij += a (y^_i x_j + x_i y^_j), A^_ii += a y^_i x_i;  y^ := b y^."""
    if not c.y.active:
        return
    y = c.vector_shadow("y")
    if c.alpha.active:
        product = Vector(c.memory(c.n), 1)
        c.symv(c.upper, c.n, 1.0, c.saved("a", c.n, c.n), y, 0.0, product)
        c.alpha.d += c.dot(c.n, c.vector_saved("x", c.n), product)
    if c.x.active:
        c.symv(c.upper, c.n, c.alpha, c.saved("a", c.n, c.n), y, 1.0, c.vector_shadow("x"))
    if c.a.active:
        a, u, v = c.shadow("a"), dense(c, c.n, y), dense(c, c.n, c.vector_saved("x", c.n))
        with triangle(c, a, c.n, c.upper, True) as (o, first, last):
            one, other = c.alpha * u.p[o], c.alpha * v.p[o]
            with c.loop(first, last) as i:
                a.p[o * a.ld + i] += one * v.p[i] + other * u.p[i]
            a.p[o * a.ld + o] += one * v.p[o]
    _beta_reverse(c, c.n)


def _tangent_product(c: Call, x: Vector) -> Vector:
    """op(A') x; the diagonal of a unit triangle has no tangent."""
    product = dense(c, c.n, x)
    c.triangular("trmv", c.upper, c.trans, c.unit, c.n, c.shadow("a"), product)
    c.axpy(c.n, c.where(c.unit, -1.0, 0.0), x, product)
    return product


def _outer(c: Call, factor: float, g: Vector, x: Vector) -> None:
    """A^ += factor g x^T, or its transpose, on the triangle."""
    u, v = c.where(c.trans, x.p, g.p), c.where(c.trans, g.p, x.p)
    outer_triangle(c, c.shadow("a"), c.n, c.upper, c.unit, factor, Vector(u, 1), Vector(v, 1))


def trmv_forward(c: Call) -> None:
    """x := op(A) x:  x' := op(A) x' + op(A') x."""
    if not c.x.active:
        return
    c.triangular("trmv", c.upper, c.trans, c.unit, c.n, c.matrix("a"), c.vector_shadow("x"))
    if c.a.active:
        product = _tangent_product(c, c.vector_saved("x", c.n))
        c.axpy(c.n, 1.0, product, c.vector_shadow("x"))


def trmv_reverse(c: Call) -> None:
    """A^ += x^ x^T (or its transpose), x^ := op(A)^T x^."""
    if not c.x.active:
        return
    x = c.vector_shadow("x")
    if c.a.active:
        _outer(c, 1.0, dense(c, c.n, x), dense(c, c.n, c.vector_saved("x", c.n)))
    c.triangular("trmv", c.upper, no(c.trans), c.unit, c.n, c.saved("a", c.n, c.n), x)


def trsv_forward(c: Call) -> None:
    """x := op(A)^-1 b:  x' := op(A)^-1 (b' - op(A') x)."""
    if not c.x.active:
        return
    if c.a.active:
        c.axpy(c.n, -1.0, _tangent_product(c, c.vector("x")), c.vector_shadow("x"))
    c.triangular("trsv", c.upper, c.trans, c.unit, c.n, c.matrix("a"), c.vector_shadow("x"))


def trsv_reverse(c: Call) -> None:
    """b^ = op(A)^-T x^;  A^ -= b^ x^T (or its transpose)."""
    if not c.x.active:
        return
    x = c.vector_shadow("x")
    c.triangular("trsv", c.upper, no(c.trans), c.unit, c.n, c.saved("a", c.n, c.n), x)
    if c.a.active:
        _outer(c, -1.0, dense(c, c.n, x), dense(c, c.n, c.vector_result("x", c.n)))
