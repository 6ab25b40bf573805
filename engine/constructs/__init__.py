"""Parallel constructs over scalar kernels: `map`, `reduce`, `scan`, `histogram`, `scatter` (the public name is
`irgrad.parallel`).

Takes a kernel and gives another: a function over arrays, written in IR beside the first, which is differentiated,
batched and compiled as any kernel is.

    >>> add = irgrad.load("double add(double a, double b) { return a + b; }").kernel("add")
    >>> irgrad.grad(irgrad.parallel.reduce(add, 0.0))(np.array([1.0, 2.0, 3.0]))
    array([1., 1., 1.])
"""

from __future__ import annotations

from irgrad.engine.constructs.parallel import histogram, map, reduce, scan, scatter  # noqa: A004 - as in Futhark

__all__ = ["histogram", "map", "reduce", "scan", "scatter"]
