"""Derivatives of the QR factorisation as LAPACK stores it: R above, Householder vectors below, their factors in tau.

The derivative is that of the algorithm, reflection by reflection (Golub and Van Loan, "Matrix Computations", section
5.2.2; dgeqr2 and dlarfg of LAPACK): for a column x with first element alpha, beta = -sign(alpha) |x|,
tau = (beta - alpha) / beta, v = x / (alpha - beta), v_1 = 1; the columns X behind it become X - tau v (X^T v)^T.
Reflections are their own inverses, so the reverse sweep restores the matrix from the result; nothing is kept.
"""

from __future__ import annotations

from typing import Any

from irgrad.rules.blas.calls import Call, Matrix, Vector, no
from irgrad.rules.blas.loops import copy_matrix, scale_vector


class _Step:
    """One reflection: its vector, with the leading 1, and where it stands."""

    def __init__(self, c: Call, i: Any, result: Matrix, tau: Any) -> None:
        self.c = c
        self.i = i
        self.rows, self.columns = c.m - i, c.n - i - 1  # of the part that it changes
        self.v = Vector(c.memory(self.rows), 1)
        c.copy(self.rows, result.at(i, i).column(0), self.v)
        self.v.p[0] = 1.0
        self.tau = tau[i]
        self.beta = result.p[result.place(i, i)]
        self.alpha = self.beta * (1 - self.tau)
        self.still = self.tau == 0  # nothing was to be done: beta is alpha, v is zero behind its first element
        self.d = c.where(self.still, 1.0, self.alpha - self.beta)

    def times(self, a: Matrix) -> Vector:
        """A^T v."""
        made = Vector(self.c.memory(self.columns), 1)
        self.c.gemv(True, self.rows, self.columns, 1.0, a, self.v, 0.0, made)
        return made

    def reflect(self, a: Matrix) -> Vector:
        """A := A - tau v (A^T v)^T; returns A^T v."""
        product = self.times(a)
        self.c.ger(self.rows, self.columns, -self.tau, self.v, product, a)
        return product

    def by_beta(self, a: Any) -> Any:
        """a / beta, where there was a reflection."""
        return self.c.where(self.still, 0.0, a / self.c.where(self.still, 1.0, self.beta))


def geqrf_reverse(c: Call) -> None:
    """A^ from R^, v^ and tau^, from the last reflection to the first."""
    if not c.a.active:
        return
    asked, m, n = c.lwork == -1, c.m, c.n
    count = c.where(asked, 0, c.least(m, n))
    result, tau = c.result("a", m, n, when=no(asked)), c.tau.result(count)
    g = c.shadow("a")
    with c.when(no(asked)):
        w = c.new(m, n)
        copy_matrix(c, result, w, m, n)
        with c.loop(count) as t:
            i = count - 1 - t
            step = _Step(c, i, result, tau)
            rows, columns = step.rows, step.columns
            x, gx = w.at(i, i + 1), g.at(i, i + 1)
            step.reflect(x)  # X again
            s = step.times(x)
            u = step.reflect(gx)  # X^, and Y^^T v
            # v^ -= tau (Y^ s + X u), with Y^ = X^ + tau v u^T; tau^ -= u . s
            gv = Vector(c.memory(rows, zero=True), 1)
            both = c.dot(columns, u, s)
            c.gemv(False, rows, columns, -step.tau, gx, s, 1.0, gv)
            c.axpy(rows, -step.tau * step.tau * both, step.v, gv)
            c.gemv(False, rows, columns, -step.tau, x, u, 1.0, gv)
            g_tau = (c.tau.d[i] if c.tau.active else 0.0) - both
            _column(c, step, w, g, gv, g_tau)
        if c.tau.active:
            scale_vector(c, count, 0, Vector(c.tau.d, 1))


def _column(c: Call, step: _Step, w: Matrix, g: Matrix, gv: Vector, g_tau: Any) -> None:
    """The adjoint of the column that a reflection was made of; the column itself is restored."""
    i, below = step.i, step.rows - 1
    head = w.place(i, i)
    tail, g_tail = w.at(i + 1, i).column(0), g.at(i + 1, i).column(0)
    v, gv = Vector(step.v.p + 1, 1), Vector(gv.p + 1, 1)
    c.copy(below, v, tail)
    c.scal(below, step.d, tail)
    w.p[head] = step.alpha
    c.axpy(below, 1.0, g_tail, gv)  # v^, the stored part of it included
    g_d = -c.dot(below, gv, v) / step.d
    g_beta = g.p[g.place(i, i)] - g_d + step.by_beta(step.by_beta(step.alpha * g_tau))
    g_alpha = g_d - step.by_beta(g_tau) + step.by_beta(step.alpha * g_beta)
    g.p[g.place(i, i)] = c.where(step.still, g.p[g.place(i, i)], g_alpha)
    scale_vector(c, below, 0, g_tail)
    c.axpy(below, c.where(step.still, 0.0, 1.0 / step.d), gv, g_tail)
    c.axpy(below, step.by_beta(g_beta), tail, g_tail)


def geqrf_forward(c: Call) -> None:
    """The algorithm on a copy of A, with the tangents of each reflection."""
    if not c.a.active:
        return
    asked, m, n = c.lwork == -1, c.m, c.n
    count = c.where(asked, 0, c.least(m, n))
    w, result, moved = c.saved("a", m, n, when=no(asked)), c.matrix("a"), c.shadow("a")
    with c.loop(count) as i:
        step = _Step(c, i, result, c.tau)
        rows, columns = step.rows, step.columns
        x, dx = w.at(i, i + 1), moved.at(i, i + 1)
        tail, d_tail = w.at(i + 1, i).column(0), moved.at(i + 1, i).column(0)
        d_alpha = moved.p[moved.place(i, i)]
        d_beta = step.by_beta(step.alpha * d_alpha + c.dot(rows - 1, tail, d_tail))
        d_tau = step.by_beta(step.by_beta(step.alpha * d_beta) - d_alpha)
        dv = Vector(c.memory(rows, zero=True), 1)  # v' = (x' - v d') / d
        behind = Vector(dv.p + 1, 1)
        c.axpy(rows - 1, c.where(step.still, 0.0, 1.0 / step.d), d_tail, behind)
        c.axpy(rows - 1, c.where(step.still, 0.0, -(d_alpha - d_beta) / step.d), Vector(step.v.p + 1, 1), behind)
        moved.p[moved.place(i, i)] = c.where(step.still, d_alpha, d_beta)
        c.copy(rows - 1, behind, d_tail)
        if c.tau.active:
            c.tau.d[i] = d_tau
        s = step.times(x)
        ds = step.times(dx)
        c.gemv(True, rows, columns, 1.0, x, dv, 1.0, ds)
        c.ger(rows, columns, -d_tau, step.v, s, dx)
        c.ger(rows, columns, -step.tau, dv, s, dx)
        c.ger(rows, columns, -step.tau, step.v, ds, dx)
        c.ger(rows, columns, -step.tau, step.v, s, x)
