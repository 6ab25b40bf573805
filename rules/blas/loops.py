"""Loops over vectors, matrices and triangles that BLAS has no routine for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from irgrad.rules.blas.calls import Call, Matrix, Vector, xor

__all__ = [
    "add",
    "copy_matrix",
    "copy_triangle",
    "dense",
    "elements",
    "inner",
    "mirror",
    "outer_triangle",
    "product_triangle",
    "scale",
    "scale_triangle",
    "scale_vector",
    "triangle",
    "triangle_inner",
]

_BLOCK = 64


def dense(c: Call, n: Any, x: Vector) -> Vector:
    """A copy of a vector without gaps."""
    made = Vector(c.memory(n), 1)
    c.copy(n, x, made)
    return made


@contextmanager
def elements(c: Call, n: Any, x: Vector) -> Iterator[Any]:
    """A loop over the positions of a vector's elements."""
    start = c.where(x.inc < 0, (1 - n) * x.inc, 0)
    with c.loop(n) as i:
        yield start + i * x.inc


def scale_vector(c: Call, n: Any, beta: Any, x: Vector) -> None:
    """x = beta x, and zero where beta is, whatever x holds."""
    with elements(c, n, x) as at:
        x.p[at] = c.where(beta == 0, 0.0, beta * x.p[at]) if not isinstance(beta, int) else 0.0


@contextmanager
def _lines(c: Call, a: Matrix, m: Any, n: Any) -> Iterator[tuple[Any, Any]]:
    """A loop over the contiguous rows or columns: the position of each, and its length."""
    with c.loop(c.where(a.row, m, n)) as o:
        yield o, c.where(a.row, n, m)


def scale(c: Call, a: Matrix, m: Any, n: Any, beta: Any) -> None:
    """A = beta A, and zero where beta is."""
    with _lines(c, a, m, n) as (o, length), c.loop(length) as i:
        at = o * a.ld + i
        a.p[at] = c.where(beta == 0, 0.0, beta * a.p[at]) if not isinstance(beta, int) else 0.0


def copy_matrix(c: Call, source: Matrix, target: Matrix, m: Any, n: Any) -> None:
    """An m by n matrix to another place."""
    with _lines(c, source, m, n) as (o, length):
        c.ctx.copy(target.p + o * target.ld, source.p + o * source.ld, length)


def add(c: Call, target: Matrix, factor: Any, source: Matrix, m: Any, n: Any) -> None:
    """target += factor source."""
    with _lines(c, target, m, n) as (o, length), c.loop(length) as i:
        target.p[o * target.ld + i] += factor * source.p[o * source.ld + i]


def copy_triangle(
    c: Call, source: Matrix, target: Matrix, n: Any, upper: Any, strict: Any = False, by: Any = 1.0
) -> None:
    """A triangle, times a factor, to the same places of another matrix."""
    with triangle(c, source, n, upper, strict) as (o, first, last), c.loop(first, last) as i:
        target.p[o * target.ld + i] = by * source.p[o * source.ld + i]


def mirror(c: Call, a: Matrix, n: Any, upper: Any) -> None:
    """The other triangle becomes the mirror image of this one."""
    with triangle(c, a, n, upper, True) as (o, first, last), c.loop(first, last) as i:
        a.p[i * a.ld + o] = a.p[o * a.ld + i]


def inner(c: Call, a: Matrix, b: Matrix, m: Any, n: Any) -> Any:
    """The sum of the products of the elements."""
    total = c.ctx.variable(c.ctx.constant(0.0, c.dtype))
    with _lines(c, a, m, n) as (o, length):
        total.value += c.dot(length, Vector(a.p + o * a.ld, 1), Vector(b.p + o * b.ld, 1))
    return total.value


@contextmanager
def triangle(c: Call, a: Matrix, n: Any, upper: Any, strict: Any = False) -> Iterator[tuple[Any, Any, Any]]:
    """A loop over the contiguous lines of a triangle: (number, first position in the line, one behind the last)."""
    high = xor(upper, a.row)  # in memory the line holds what comes before the diagonal
    skip = c.where(strict, 1, 0)
    with c.loop(n) as o:
        yield o, c.where(high, 0, o + skip), c.where(high, o + 1 - skip, n)


def scale_triangle(c: Call, a: Matrix, n: Any, upper: Any, beta: Any) -> None:
    """A triangle times beta, and zero where beta is."""
    with triangle(c, a, n, upper) as (o, first, last), c.loop(first, last) as i:
        at = o * a.ld + i
        a.p[at] = c.where(beta == 0, 0.0, beta * a.p[at]) if not isinstance(beta, int) else 0.0


def triangle_inner(c: Call, a: Matrix, b: Matrix, n: Any, upper: Any) -> Any:
    """The sum of the products of the elements of two triangles."""
    total = c.ctx.variable(c.ctx.constant(0.0, c.dtype))
    with triangle(c, a, n, upper) as (o, first, last):
        total.value += c.dot(last - first, Vector(a.p + o * a.ld + first, 1), Vector(b.p + o * b.ld + first, 1))
    return total.value


def outer_triangle(c: Call, a: Matrix, n: Any, upper: Any, strict: Any, factor: Any, u: Vector, v: Vector) -> None:
    """A += factor u v^T on a triangle; u and v without gaps."""
    inside, outside = c.where(a.row, v.p, u.p), c.where(a.row, u.p, v.p)
    with triangle(c, a, n, upper, strict) as (o, first, last):
        by = factor * outside[o]
        with c.loop(first, last) as i:
            a.p[o * a.ld + i] += by * inside[i]


def product_triangle(
    c: Call, a: Matrix, n: Any, k: Any, upper: Any, strict: Any, factor: Any, tx: Any, x: Matrix, ty: Any, y: Matrix
) -> None:
    """A += factor op(X) op(Y) on a triangle: block by block, so that half of the product is not computed."""
    block = c.new(_BLOCK, _BLOCK, a.row)
    with c.loop(0, n, _BLOCK) as j:
        nb = c.least(n - j, _BLOCK)
        first, count = c.where(upper, 0, j + nb), c.where(upper, j, n - j - nb)
        mine = replace(y, p=y.p + c.where(ty, y.place(j, 0), y.place(0, j)))

        def rows(i: Any) -> Matrix:
            return replace(x, p=x.p + c.where(tx, x.place(0, i), x.place(i, 0)))

        c.gemm(tx, ty, count, nb, k, factor, rows(first), mine, 1.0, a.at(first, j))
        c.gemm(tx, ty, nb, nb, k, factor, rows(j), mine, 0.0, block)
        corner = a.at(j, j)
        with triangle(c, corner, nb, upper, strict) as (o, start, stop), c.loop(start, stop) as i:
            corner.p[o * a.ld + i] += block.p[o * block.ld + i]


