"""Derivatives of the vector routines.

They are linear in each argument or elementwise; the adjoints follow term by term (Giles, "Collected matrix derivative
results for forward and reverse mode algorithmic differentiation", 2008, section 2). X' is the tangent of X, X^ its
adjoint; reverse bodies turn the adjoint of what is overwritten into the adjoint of what was there before.
"""

from __future__ import annotations

from typing import Any

from irgrad.rules.blas.calls import Call, Vector
from irgrad.rules.blas.loops import elements, scale_vector


def scal_forward(c: Call) -> None:
    """x := a x:  x' := a x' + a' x."""
    if not c.x.active:
        return
    count = c.where(c.incx > 0, c.n, 0)  # BLAS leaves x alone otherwise
    scale_vector(c, count, c.alpha, c.vector_shadow("x"))
    if c.alpha.active:
        c.axpy(count, c.alpha.d, c.vector_saved("x", count), c.vector_shadow("x"))


def scal_reverse(c: Call) -> None:
    """a^ += x . x^;  x^ := a x^."""
    if not c.x.active:
        return
    count = c.where(c.incx > 0, c.n, 0)
    if c.alpha.active:
        c.alpha.d += c.dot(count, c.vector_saved("x", count), c.vector_shadow("x"))
    scale_vector(c, count, c.alpha, c.vector_shadow("x"))


def axpy_forward(c: Call) -> None:
    """y := a x + y:  y' += a x' + a' x."""
    if not c.y.active:
        return
    if c.x.active:
        c.axpy(c.n, c.alpha, c.vector_shadow("x"), c.vector_shadow("y"))
    if c.alpha.active:
        c.axpy(c.n, c.alpha.d, c.vector("x"), c.vector_shadow("y"))


def axpy_reverse(c: Call) -> None:
    """a^ += x . y^;  x^ += a y^."""
    if not c.y.active:
        return
    if c.alpha.active:
        c.alpha.d += c.dot(c.n, c.vector_saved("x", c.n), c.vector_shadow("y"))
    if c.x.active:
        c.axpy(c.n, c.alpha, c.vector_shadow("y"), c.vector_shadow("x"))


def dot_forward(c: Call) -> None:
    """s = x . y:  s' = x' . y + x . y'."""
    total: Any = 0.0
    if c.x.active:
        total = c.dot(c.n, c.vector_shadow("x"), c.vector("y")) + total
    if c.y.active:
        total = c.dot(c.n, c.vector("x"), c.vector_shadow("y")) + total
    c.ctx.result.d = total


def dot_reverse(c: Call) -> None:
    """x^ += s^ y;  y^ += s^ x."""
    if c.x.active:
        c.axpy(c.n, c.ctx.result.d, c.vector_saved("y", c.n), c.vector_shadow("x"))
    if c.y.active:
        c.axpy(c.n, c.ctx.result.d, c.vector_saved("x", c.n), c.vector_shadow("y"))


def _by_norm(c: Call, value: Any) -> Any:
    """value / |x|, and zero at x = 0, where the norm has a kink (BLAS returns 0 for increments that it refuses)."""
    norm = c.ctx.result
    return c.where(norm == 0, 0.0, value / c.where(norm == 0, 1.0, norm))


def nrm2_forward(c: Call) -> None:
    """s = |x|:  s' = x . x' / s."""
    if c.x.active:
        count = c.where(c.ctx.result == 0, 0, c.n)
        c.ctx.result.d = _by_norm(c, c.dot(count, c.vector("x"), c.vector_shadow("x")))


def nrm2_reverse(c: Call) -> None:
    """x^ += s^ x / s."""
    if c.x.active:
        count = c.where(c.ctx.result == 0, 0, c.n)
        c.axpy(count, _by_norm(c, c.ctx.result.d), c.vector_saved("x", c.n), c.vector_shadow("x"))


def _sign(c: Call, x: Any) -> Any:
    return c.where(x > 0, 1.0, c.where(x < 0, -1.0, 0.0))


def asum_forward(c: Call) -> None:
    """s = sum |x_i|:  s' = sum sign(x_i) x'_i."""
    if not c.x.active:
        return
    count = c.where(c.ctx.result == 0, 0, c.n)
    total = c.ctx.variable(c.ctx.constant(0.0, c.dtype))
    with elements(c, count, c.vector("x")) as at:
        total.value += _sign(c, c.x[at]) * c.x.d[at]
    c.ctx.result.d = total.value


def asum_reverse(c: Call) -> None:
    """x^_i += s^ sign(x_i)."""
    if not c.x.active:
        return
    saved, count = c.vector_saved("x", c.n), c.where(c.ctx.result == 0, 0, c.n)
    with elements(c, count, saved) as at:
        c.x.d[at] += c.ctx.result.d * _sign(c, saved.p[at])


def copy_forward(c: Call) -> None:
    """y := x:  y' := x'."""
    if c.y.active and c.x.active:
        c.copy(c.n, c.vector_shadow("x"), c.vector_shadow("y"))
    elif c.y.active:
        scale_vector(c, c.n, 0, c.vector_shadow("y"))


def copy_reverse(c: Call) -> None:
    """x^ += y^;  y^ := 0."""
    if not c.y.active:
        return
    if c.x.active:
        c.axpy(c.n, 1.0, c.vector_shadow("y"), c.vector_shadow("x"))
    scale_vector(c, c.n, 0, c.vector_shadow("y"))


def swap_forward(c: Call) -> None:
    """x, y := y, x: the shadows change places as well; the one of a constant is zero."""
    if c.x.active and c.y.active:
        c.emit("swap", c.n, c.x.d, c.incx, c.y.d, c.incy)
    elif c.x.active:
        scale_vector(c, c.n, 0, c.vector_shadow("x"))
    elif c.y.active:
        scale_vector(c, c.n, 0, c.vector_shadow("y"))


swap_reverse = swap_forward


def _shadows(c: Call) -> tuple[Vector, Vector]:
    """The shadows of x and y; zeros for the one of a constant."""
    return tuple(  # type: ignore[return-value]
        c.vector_shadow(name) if c.args[name].active else Vector(c.memory(c.n, zero=True), 1) for name in ("x", "y")
    )


def rot_forward(c: Call) -> None:
    """x, y := c x + s y, c y - s x:  x' := c x' + s y' + c' x + s' y;  y' := c y' - s x' + c' y - s' x."""
    if not (c.x.active or c.y.active):
        return
    x, y = _shadows(c)
    c.emit("rot", c.n, x.p, x.inc, y.p, y.inc, c.c, c.s)
    if c.c.active or c.s.active:
        old_x, old_y = c.vector_saved("x", c.n), c.vector_saved("y", c.n)
        c.axpy(c.n, c.c.d, old_x, x)
        c.axpy(c.n, c.c.d, old_y, y)
        c.axpy(c.n, c.s.d, old_y, x)
        c.axpy(c.n, -c.s.d, old_x, y)


def rot_reverse(c: Call) -> None:
    """c^ += x . x^ + y . y^;  s^ += y . x^ - x . y^;  x^, y^ := c x^ - s y^, c y^ + s x^."""
    if not (c.x.active or c.y.active):
        return
    x, y = _shadows(c)
    if c.c.active or c.s.active:
        old_x, old_y = c.vector_saved("x", c.n), c.vector_saved("y", c.n)
        c.c.d += c.dot(c.n, old_x, x) + c.dot(c.n, old_y, y)
        c.s.d += c.dot(c.n, old_y, x) - c.dot(c.n, old_x, y)
    c.emit("rot", c.n, x.p, x.inc, y.p, y.inc, c.c, -c.s)
