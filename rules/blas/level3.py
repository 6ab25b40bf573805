"""Derivatives of the matrix-matrix routines (Giles 2008, sections 2.2 and 2.3; syrk after Murray 2016, appendix B).

X' is the tangent of X, X^ its adjoint. The factors cost one product each, and the adjoint of alpha another one where
alpha is active. Of a triangular or symmetric matrix only the stored triangle has an adjoint.
"""

from __future__ import annotations

from typing import Any

from irgrad.rules.blas.calls import Call, Matrix, Vector, no
from irgrad.rules.blas.loops import (
    add,
    copy_matrix,
    inner,
    product_triangle,
    scale,
    scale_triangle,
    triangle,
    triangle_inner,
)

# -- gemm, symm --------------------------------------------------------------------------------------------------------


def _beta_forward(c: Call) -> None:
    scale(c, c.shadow("c"), c.m, c.n, c.beta)
    if c.beta.active:
        with c.when(c.beta.d != 0):  # C may hold anything where beta is zero
            add(c, c.shadow("c"), c.beta.d, c.saved("c", c.m, c.n), c.m, c.n)


def _beta_reverse(c: Call) -> None:
    if c.beta.active:
        c.beta.d += inner(c, c.saved("c", c.m, c.n), c.shadow("c"), c.m, c.n)
    scale(c, c.shadow("c"), c.m, c.n, c.beta)


def gemm_forward(c: Call) -> None:
    """C := a op(A) op(B) + b C:  C' := b C' + b' C + a' op(A) op(B) + a op(A') op(B) + a op(A) op(B')."""
    if not c.c.active:
        return
    a, b, out = c.matrix("a"), c.matrix("b"), c.shadow("c")
    flags = (c.transa, c.transb, c.m, c.n, c.k)
    _beta_forward(c)
    if c.alpha.active:
        c.gemm(*flags, c.alpha.d, a, b, 1.0, out)
    if c.a.active:
        c.gemm(*flags, c.alpha, c.shadow("a"), b, 1.0, out)
    if c.b.active:
        c.gemm(*flags, c.alpha, a, c.shadow("b"), 1.0, out)


def gemm_reverse(c: Call) -> None:
    """op(A)^ += a C^ op(B)^T;  op(B)^ += a op(A)^T C^;  a^ += <C^, op(A) op(B)>;  C^ := b C^."""
    if not c.c.active:
        return
    ta, tb, m, n, k, w = c.transa, c.transb, c.m, c.n, c.k, c.where
    g = c.shadow("c")
    a = c.saved("a", w(ta, k, m), w(ta, m, k), when=c.b.active or c.alpha.active)
    b = c.saved("b", w(tb, n, k), w(tb, k, n), when=c.a.active or c.alpha.active)
    if c.alpha.active:
        product = c.new(m, n)
        c.gemm(ta, tb, m, n, k, 1.0, a, b, 0.0, product)
        c.alpha.d += inner(c, product, g, m, n)
    if c.a.active:  # A^ += a C^ op(B)^T, or its transpose a op(B) C^T
        left, right = c.pick(ta, b, g), c.pick(ta, g, b)
        c.gemm(w(ta, tb, False), w(ta, True, no(tb)), w(ta, k, m), w(ta, m, k), n, c.alpha, left, right, 1.0,
               c.shadow("a"))  # fmt: skip
    if c.b.active:  # B^ += a op(A)^T C^, or its transpose a C^T op(A)
        left, right = c.pick(tb, g, a), c.pick(tb, a, g)
        c.gemm(w(tb, True, no(ta)), w(tb, ta, False), w(tb, n, k), w(tb, k, n), m, c.alpha, left, right, 1.0,
               c.shadow("b"))  # fmt: skip
    _beta_reverse(c)


def symm_forward(c: Call) -> None:
    """C := a A B + b C (or B A), A symmetric: as gemm."""
    if not c.c.active:
        return
    a, b, out = c.matrix("a"), c.matrix("b"), c.shadow("c")
    flags = (c.left, c.upper, c.m, c.n)
    _beta_forward(c)
    if c.alpha.active:
        c.symm(*flags, c.alpha.d, a, b, 1.0, out)
    if c.a.active:
        c.symm(*flags, c.alpha, c.shadow("a"), b, 1.0, out)
    if c.b.active:
        c.symm(*flags, c.alpha, a, c.shadow("b"), 1.0, out)


def symm_reverse(c: Call) -> None:
    """B^ += a A C^;  with G = a C^ B^T (or a B^T C^): A^_ij += G_ij + G_ji off the diagonal, A^_ii += G_ii."""
    if not c.c.active:
        return
    m, n = c.m, c.n
    order = c.where(c.left, m, n)
    g = c.shadow("c")
    a = c.saved("a", order, order, when=c.b.active or c.alpha.active)
    b = c.saved("b", m, n, when=c.a.active or c.alpha.active)
    if c.alpha.active:
        product = c.new(m, n)
        c.symm(c.left, c.upper, m, n, 1.0, a, b, 0.0, product)
        c.alpha.d += inner(c, product, g, m, n)
    if c.b.active:
        c.symm(c.left, c.upper, m, n, c.alpha, a, g, 1.0, c.shadow("b"))
    if c.a.active:
        into, shorter = c.shadow("a"), c.where(c.left, n, m)
        with c.loop(order) as i:  # syr2k counts the diagonal twice
            line, other = (_line(c, x, i) for x in (g, b))
            into.p[i * (into.ld + 1)] += -c.alpha * c.dot(shorter, line, other)
        c.syr2k(c.upper, no(c.left), order, shorter, c.alpha, g, b, 1.0, into)
    _beta_reverse(c)


def _line(c: Call, x: Matrix, i: Any) -> Any:
    """Row i where the symmetric matrix is on the left, else column i."""
    row, column = x.rows(i), x.column(i)
    return Vector(c.where(c.left, row.p, column.p), c.where(c.left, row.inc, column.inc))


# -- syrk, syr2k -------------------------------------------------------------------------------------------------------


def _symmetric_forward(c: Call) -> None:
    scale_triangle(c, c.shadow("c"), c.n, c.upper, c.beta)
    if c.beta.active:
        old, into = c.saved("c", c.n, c.n), c.shadow("c")
        lines = triangle(c, into, c.n, c.upper)
        with c.when(c.beta.d != 0), lines as (o, first, last), c.loop(first, last) as i:
            into.p[o * into.ld + i] += c.beta.d * old.p[o * old.ld + i]


def _symmetric_reverse(c: Call) -> None:
    if c.beta.active:
        c.beta.d += triangle_inner(c, c.saved("c", c.n, c.n), c.shadow("c"), c.n, c.upper)
    scale_triangle(c, c.shadow("c"), c.n, c.upper, c.beta)


def _shape(c: Call) -> tuple[Any, Any]:
    """Rows and columns of A."""
    return c.where(c.trans, c.k, c.n), c.where(c.trans, c.n, c.k)


def _halves(c: Call, factor: float) -> None:
    """Scale the diagonal of C^: the triangle then stands for C^ + C^^T, whose diagonal is doubled."""
    c.scal(c.n, factor, c.shadow("c").diagonal)


def syrk_forward(c: Call) -> None:
    """C := a A A^T + b C (or A^T A):  C' := b C' + b' C + a' A A^T + a (A' A^T + A A'^T)."""
    if not c.c.active:
        return
    _symmetric_forward(c)
    if c.alpha.active:
        c.syrk(c.upper, c.trans, c.n, c.k, c.alpha.d, c.matrix("a"), 1.0, c.shadow("c"))
    if c.a.active:
        c.syr2k(c.upper, c.trans, c.n, c.k, c.alpha, c.matrix("a"), c.shadow("a"), 1.0, c.shadow("c"))


def syrk_reverse(c: Call) -> None:
    """A^ += a (C^ + C^^T) A, or A (C^ + C^^T);  C^ := b C^."""
    if not c.c.active:
        return
    rows, columns = _shape(c)
    a = c.saved("a", rows, columns)
    if c.alpha.active:
        product = c.new(c.n, c.n)
        c.syrk(c.upper, c.trans, c.n, c.k, 1.0, a, 0.0, product)
        c.alpha.d += triangle_inner(c, product, c.shadow("c"), c.n, c.upper)
    if c.a.active:
        _halves(c, 2.0)
        c.symm(no(c.trans), c.upper, rows, columns, c.alpha, c.shadow("c"), a, 1.0, c.shadow("a"))
        _halves(c, 0.5)
    _symmetric_reverse(c)


def syr2k_forward(c: Call) -> None:
    """C := a (A B^T + B A^T) + b C (or A^T B + B^T A): linear in A and in B."""
    if not c.c.active:
        return
    flags, out = (c.upper, c.trans, c.n, c.k), c.shadow("c")
    _symmetric_forward(c)
    if c.alpha.active:
        c.syr2k(*flags, c.alpha.d, c.matrix("a"), c.matrix("b"), 1.0, out)
    if c.a.active:
        c.syr2k(*flags, c.alpha, c.shadow("a"), c.matrix("b"), 1.0, out)
    if c.b.active:
        c.syr2k(*flags, c.alpha, c.matrix("a"), c.shadow("b"), 1.0, out)


def syr2k_reverse(c: Call) -> None:
    """A^ += a (C^ + C^^T) B;  B^ += a (C^ + C^^T) A (from the right for A^T B);  C^ := b C^."""
    if not c.c.active:
        return
    rows, columns = _shape(c)
    a = c.saved("a", rows, columns, when=c.b.active or c.alpha.active)
    b = c.saved("b", rows, columns, when=c.a.active or c.alpha.active)
    if c.alpha.active:
        product = c.new(c.n, c.n)
        c.syr2k(c.upper, c.trans, c.n, c.k, 1.0, a, b, 0.0, product)
        c.alpha.d += triangle_inner(c, product, c.shadow("c"), c.n, c.upper)
    _halves(c, 2.0)
    for name, other in (("a", b), ("b", a)):
        if c.args[name].active:
            c.symm(no(c.trans), c.upper, rows, columns, c.alpha, c.shadow("c"), other, 1.0, c.shadow(name))
    _halves(c, 0.5)
    _symmetric_reverse(c)


# -- trmm, trsm --------------------------------------------------------------------------------------------------------


def _tangent_product(c: Call, b: Matrix) -> Matrix:
    """op(A') B (or B op(A')); the diagonal of a unit triangle has no tangent."""
    product = c.new(c.m, c.n)
    copy_matrix(c, b, product, c.m, c.n)
    c.side("trmm", c.left, c.upper, c.trans, c.unit, c.m, c.n, 1.0, c.shadow("a"), product)
    with c.when(c.unit):
        add(c, product, -1.0, b, c.m, c.n)
    return product


def _triangle_adjoint(c: Call, factor: Any, g: Matrix, b: Matrix) -> None:
    """A^ += factor g b^T, or what it is for the other sides and transposes, on the triangle.

    left: g b^T, transposed b g^T; right: b^T g, transposed g^T b.
    """
    order = c.where(c.left, c.m, c.n)
    swap = c.where(c.left, c.trans, no(c.trans))
    x, y = c.pick(swap, b, g), c.pick(swap, g, b)
    length = c.where(c.left, c.n, c.m)
    product_triangle(c, c.shadow("a"), order, length, c.upper, c.unit, factor, no(c.left), x, c.left, y)


def trmm_forward(c: Call) -> None:
    """B := a op(A) B (or B op(A)):  B' := a op(A) B' + a' op(A) B + a op(A') B."""
    if not c.b.active:
        return
    out, m, n = c.shadow("b"), c.m, c.n
    c.side("trmm", c.left, c.upper, c.trans, c.unit, m, n, c.alpha, c.matrix("a"), out)
    if c.alpha.active:
        product = c.new(m, n)
        copy_matrix(c, c.saved("b", m, n), product, m, n)
        c.side("trmm", c.left, c.upper, c.trans, c.unit, m, n, c.alpha.d, c.matrix("a"), product)
        add(c, out, 1.0, product, m, n)
    if c.a.active:
        add(c, out, c.alpha, _tangent_product(c, c.saved("b", m, n)), m, n)


def trmm_reverse(c: Call) -> None:
    """A^ += a B^ B^T (see `_triangle_adjoint`);  G = op(A)^T B^;  a^ += <G, B>;  B^ := a G."""
    if not c.b.active:
        return
    out, m, n = c.shadow("b"), c.m, c.n
    order = c.where(c.left, m, n)
    if c.a.active:
        _triangle_adjoint(c, c.alpha, out, c.saved("b", m, n))
    a, alpha = c.saved("a", order, order), 1.0 if c.alpha.active else c.alpha
    c.side("trmm", c.left, c.upper, no(c.trans), c.unit, m, n, alpha, a, out)
    if c.alpha.active:
        c.alpha.d += inner(c, c.saved("b", m, n), out, m, n)
        scale(c, out, m, n, c.alpha)


def trsm_forward(c: Call) -> None:
    """B := X = a op(A)^-1 B (or B op(A)^-1):  X' = op(A)^-1 (a B' + a' B - op(A') X)."""
    if not c.b.active:
        return
    out, m, n = c.shadow("b"), c.m, c.n
    scale(c, out, m, n, c.alpha)
    if c.alpha.active:
        add(c, out, c.alpha.d, c.saved("b", m, n), m, n)
    if c.a.active:
        add(c, out, -1.0, _tangent_product(c, c.result("b", m, n)), m, n)
    c.side("trsm", c.left, c.upper, c.trans, c.unit, m, n, 1.0, c.matrix("a"), out)


def trsm_reverse(c: Call) -> None:
    """G = op(A)^-T X^;  A^ -= G X^T (see `_triangle_adjoint`);  a^ += <G, B>;  B^ := a G."""
    if not c.b.active:
        return
    out, m, n = c.shadow("b"), c.m, c.n
    order = c.where(c.left, m, n)
    c.side("trsm", c.left, c.upper, no(c.trans), c.unit, m, n, 1.0, c.saved("a", order, order), out)
    if c.a.active:
        _triangle_adjoint(c, -1.0, out, c.result("b", m, n))
    if c.alpha.active:
        c.alpha.d += inner(c, c.saved("b", m, n), out, m, n)
    scale(c, out, m, n, c.alpha)
