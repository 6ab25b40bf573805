"""Implicit differentiation of foreign solvers: `root`, `fixed_point`, `linear_solve`.

A solver finds x with F(x, p) = 0. By the implicit function theorem, where F_x = dF/dx is regular,

    dx = -F_x^-1 F_p dp                     forward: one linear solve with F_x
    p_bar += -F_p^T w,  F_x^T w = x_bar     reverse: one linear solve with F_x^T

whatever the solver did, and at the cost of one step of Newton's method (Christianson, "Reverse accumulation and
implicit functions", Optimization Methods and Software 9, 1998). A fixed point x = G(x, p) is the root of F = G(x, p) -
x. What the solver finds in x when it starts (its guess) has no influence on the result, so its derivative is zero.

For A x = b:  w = A^-T x_bar,  b_bar += w,  A_bar += -w x^T  (Giles, "Collected matrix derivative results for forward
and reverse mode algorithmic differentiation", 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irgrad.engine.kernel.kernel import Kernel
from irgrad.rules.definitions.prototype import Prototype
from irgrad.rules.errors import RuleError
from irgrad.rules.keys import key_of
from irgrad.rules.registry import rule

__all__ = ["fixed_point", "linear_solve", "root"]

Array = np.ndarray[Any, Any]
Solve = Callable[..., Array]
DENSE = 64
"""Up to so many unknowns the matrix of the linear solve is formed."""


def root(solver: Any, residual: Kernel, *, x: str = "x", solve: Solve | None = None, method: str = "auto",
         tolerance: float = 1e-8) -> None:  # fmt: skip
    """The solver's derivatives follow from F(x, p) = 0: rules for forward and reverse mode.

    solver:    the foreign function: a Kernel or `extern(...)`; it writes the solution to its array `x`
    residual:  a Kernel of F with one floating-point output of the size of x. Its arguments are named as the solver's
    solve:     solve(v, transposed, *arguments of the residual): F_x^-1 v, or F_x^-T v where `transposed`
    method:    how to solve without `solve`: "dense" (the Jacobian and LU), "gmres" or "cg" (matrix-free, SciPy; cg for
               a symmetric, definite F_x), "auto"
    tolerance: largest |F| relative to 1 + |x| at a solution; above it the derivative raises RuleError

    The body runs in Python for each call (`host=True`): arrays need extents. Raises RuleError when names do not fit.

        >>> lib = irgrad.load('''
        ... void newton(const double *p, double *x) {
        ...     for (int i = 0; i < 60; i++) x[0] -= (x[0] * x[0] - p[0]) / (2 * x[0]);
        ... }
        ... void residual(const double *p, const double *x, double *r) { r[0] = x[0] * x[0] - p[0]; }
        ... ''')
        >>> newton = lib.kernel("newton", "void(f64[1] p, inout f64[1] x)")
        >>> _ = irgrad.root(newton, lib.kernel("residual", "void(f64[1] p, f64[1] x, out f64[1] r)"))
        >>> x, by_p = irgrad.jvp(newton, (np.array([4.0]), np.ones(1)), (np.ones(1), None))
        >>> x, by_p
        (array([2.]), array([0.25]))
    """
    _define(solver, residual, x, solve, method, tolerance, fixed=False)


def fixed_point(solver: Any, step: Kernel, *, x: str = "x", solve: Solve | None = None, method: str = "auto",
                tolerance: float = 1e-8) -> None:  # fmt: skip
    """The solver's derivatives follow from x = G(x, p), of which the Kernel `step` computes G.

    Arguments as of `root`; `solve` solves with G_x - 1. Raises RuleError when names do not fit.

        >>> lib = irgrad.load('''
        ... void iterate(const double *p, double *x) { for (int i = 0; i < 99; i++) x[0] = 0.5 * x[0] + p[0]; }
        ... void step(const double *p, const double *x, double *r) { r[0] = 0.5 * x[0] + p[0]; }
        ... ''')
        >>> iterate = lib.kernel("iterate", "void(f64[1] p, inout f64[1] x)")
        >>> _ = irgrad.fixed_point(iterate, lib.kernel("step", "void(f64[1] p, f64[1] x, out f64[1] r)"))
        >>> irgrad.jvp(iterate, (np.ones(1), np.ones(1)), (np.ones(1), None))
        (array([2.]), array([2.]))
    """
    _define(solver, step, x, solve, method, tolerance, fixed=True)


def _define(solver: Any, residual: Kernel, x: str, solve: Solve | None, method: str, tolerance: float, *,
            fixed: bool) -> None:  # fmt: skip
    prototype = _prototype(solver)
    if method not in ("auto", "dense", "gmres", "cg"):
        raise RuleError(f"there is no method {method!r}", fix='"auto", "dense", "gmres" or "cg"')
    problem = _Problem(prototype, residual, x, solve, method, tolerance, fixed)
    # what the rule depends on, in the closures of its bodies: a rule with another residual is another rule
    depends = (residual.source.digest, residual.name, str(residual.signature), x, method, tolerance, fixed, solve)

    @rule(solver, mode="reverse", host=True)
    def _reverse(ctx: Any, *arguments: Any) -> None:
        problem.reverse(arguments, depends)

    @rule(solver, mode="forward", host=True)
    def _forward(ctx: Any, *arguments: Any) -> None:
        problem.forward(arguments, depends)


def _prototype(solver: Any) -> Prototype:
    declared = key_of(solver)
    if declared.prototype is None:
        raise RuleError(f"the prototype of `{declared.key}` is not known", because="the arrays need extents",
                        fix=f'extern("{declared.key.name}", "void(f64[m] p, i64 m, inout f64[n] x, i64 n)")')
    return declared.prototype


class _Problem:
    """F, and how its arguments and those of the solver belong together."""

    def __init__(
        self, prototype: Prototype, residual: Kernel, x: str, solve: Solve | None, method: str, tolerance: float,
        fixed: bool,
    ) -> None:  # fmt: skip
        self.residual, self.solve, self.method, self.tolerance = residual, solve, method, tolerance
        self.sign = -1.0 if fixed else 0.0  # F_x is G_x - 1, and F is G - x
        names = [p.name for p in prototype.params]
        where = f"`{residual.signature}` for `{prototype}`"
        wanted = [p.name for p in residual.signature.arguments]
        missing = [name for name in (x, *wanted) if name not in names]
        if missing or x not in wanted:
            raise RuleError(f"`{(missing or [x])[0]}` is no argument of both functions", where=where,
                            because="arguments belong together by name", fix="name them alike in both prototypes")
        if not prototype.params[names.index(x)].writes:
            raise RuleError(f"the solver does not write `{x}`", where=where, fix=f"out {x} or inout {x}")
        if len(residual.output_positions) != 1:
            raise RuleError("the residual has to have one output", where=where, fix="out f64[n] r")
        self.positions = [names.index(name) for name in wanted]
        self.unknown = names.index(x)
        self.number = wanted.index(x)
        floats = [p.dtype.is_float for p in residual.signature.arguments]
        self.floats = [k for k, is_float in enumerate(floats) if is_float]
        self.where = where

    def point(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments of F at the solution, which has to be one."""
        found = []
        for k, (position, p) in enumerate(zip(self.positions, self.residual.signature.arguments, strict=True)):
            given = arguments[position]
            if p.is_array:
                found.append(np.array(given.result if k == self.number else given.saved))
            else:
                found.append(p.dtype.numpy.type(given))
        x = found[self.number]
        left = np.asarray(self.residual(*found)) + self.sign * x
        error = float(np.max(np.abs(left), initial=0.0))
        if not error <= self.tolerance * (1 + float(np.max(np.abs(x), initial=0.0))):
            raise RuleError("the solver has not converged", where=self.where,
                            because=f"its result leaves a residual of {error:.3g}, the tolerance is {self.tolerance:g}",
                            fix="more iterations, a smaller tolerance in the solver, or tolerance= in the rule")
        return found

    def reverse(self, arguments: Sequence[Any], depends: Any) -> None:
        """p_bar += -F_p^T w with F_x^T w = x_bar; the guess gets no adjoint."""
        from irgrad.engine.functions.gradients import vjp

        unknown = arguments[self.unknown]
        if not unknown.active:
            return
        at = self.point(arguments)
        wrt = [self.residual.signature.arguments[k].name for k in self.floats]
        _, pull = vjp(self.residual, *at, wrt=wrt)
        solution = self._linear(np.array(unknown.d), at, True)
        unknown.d[...] = 0
        gradients = pull(solution)
        for k, gradient in zip(self.floats, gradients, strict=True):
            given = arguments[self.positions[k]]
            if k != self.number and given.active:
                given.d -= gradient

    def forward(self, arguments: Sequence[Any], depends: Any) -> None:
        """dx = -F_x^-1 F_p dp."""
        from irgrad.engine.functions.gradients import jvp

        unknown = arguments[self.unknown]
        if not unknown.active:
            return
        at = self.point(arguments)
        moves: list[Any] = [None] * len(at)
        for k in self.floats:
            given = arguments[self.positions[k]]
            if k != self.number and given.active:
                moves[k] = np.asarray(given.d, np.asarray(at[k]).dtype)[()]
        if all(move is None for move in moves):
            unknown.d[...] = 0
            return
        unknown.d[...] = -self._linear(np.array(jvp(self.residual, at, moves)[1]), at, False)

    def _linear(self, v: Array, at: list[Any], transposed: bool) -> Array:
        """F_x^-1 v, or F_x^-T v."""
        if self.solve is not None:
            return np.asarray(self.solve(v, transposed, *at), v.dtype).reshape(v.shape)
        method = self.method
        if method == "auto":
            method = "dense" if v.size <= DENSE else "gmres"
        if method != "dense":
            return self._iterated(v, at, transposed, method)
        from irgrad.engine.functions.jacobians import jacrev

        matrix = np.asarray(jacrev(self.residual, self._x)(*at)).reshape(v.size, v.size)
        matrix = matrix + self.sign * np.eye(v.size)
        try:
            return np.linalg.solve(matrix.T if transposed else matrix, v.reshape(-1)).astype(v.dtype).reshape(v.shape)
        except np.linalg.LinAlgError:
            raise RuleError("the derivative of the residual is singular", where=self.where,
                            because="the implicit function theorem needs a regular one",
                            fix="the solution is no isolated one: state the problem otherwise") from None  # fmt: skip

    @property
    def _x(self) -> str:
        return self.residual.signature.arguments[self.number].name

    def _iterated(self, v: Array, at: list[Any], transposed: bool, method: str) -> Array:
        """Matrix-free, by SciPy: a product is one derivative of F."""
        from irgrad.engine.functions.gradients import jvp, vjp

        try:
            import scipy.sparse.linalg as sparse
        except ImportError:
            raise RuleError(f"`{method}` needs SciPy", where=self.where, fix='pip install scipy, or method="dense"') \
                from None  # fmt: skip
        _, pull = vjp(self.residual, *at, wrt=self._x)

        def product(u: Array) -> Array:
            u = np.asarray(u, v.dtype).reshape(v.shape)
            if transposed:
                got = pull(u)
            else:
                got = jvp(self.residual, at, [u if k == self.number else None for k in range(len(at))])[1]
            return np.asarray(np.asarray(got) + self.sign * u).reshape(-1)

        size, eps = v.size, float(np.finfo(v.dtype).eps)
        library: Any = sparse  # its stubs know only half of its constructors
        operator = library.LinearOperator((size, size), matvec=product, dtype=v.dtype)
        options: dict[str, Any] = {"restart": min(size, 200)} if method == "gmres" else {}
        found, state = getattr(library, method)(operator, v.reshape(-1), rtol=50 * eps, atol=0.0, **options)
        if state != 0:
            raise RuleError(f"`{method}` has not converged", where=self.where, because=f"SciPy says {state}",
                            fix='method="dense", or solve=: your own')  # fmt: skip
        return np.asarray(found, v.dtype).reshape(v.shape)


def linear_solve(solver: Any, *, A: str = "A", b: str = "b", x: str = "x") -> None:  # noqa: N803 - a matrix
    """Rules for a function that solves A x = b, `void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)` in any order.

    A, b, x: names of its arguments. The same solver is called on A (forward) and on a transposed copy of A (reverse):
    no Python runs. Raises RuleError when the prototype does not fit.

        >>> from irgrad.rules import extern
        >>> _ = irgrad.linear_solve(extern("my_solve", "void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)"))
    """
    prototype = _prototype(solver)
    where = f"`{prototype}`"
    at: list[int] = []
    for name, dimensions, writes in ((A, 2, False), (b, 1, False), (x, 1, True)):
        position = prototype.position(name)
        param = prototype.params[position] if position is not None else None
        if position is None or param is None or len(param.extents) != dimensions or param.writes != writes:
            raise RuleError(f"`{name}` is no {'output' if writes else 'input'} with {dimensions} axes", where=where,
                            fix='linear_solve(extern("solve", "void(f64[n,n] A, f64[n] b, out f64[n] x, i64 n)"))')
        at.append(position)
    i_matrix, i_right, i_unknown = at
    symbol = key_of(solver).key.name

    @rule(solver, mode="reverse")
    def _reverse(ctx: Any, *arguments: Any) -> None:
        matrix, right, unknown = (arguments[i] for i in (i_matrix, i_right, i_unknown))
        if not unknown.active:
            return
        rows, columns = matrix.shape
        flipped, w = ctx.temporary_like(matrix), ctx.temporary_like(unknown)
        before = matrix.saved
        with ctx.for_range(rows) as i, ctx.for_range(columns) as j:
            flipped[j, i] = before[i, j]
        handed = list(arguments)
        handed[i_matrix], handed[i_right], handed[i_unknown] = flipped, unknown.d, w
        ctx.foreign(symbol)(*handed)
        if right.active:
            with ctx.for_range(rows) as i:
                right.d[i] += w[i]
        if matrix.active:
            solution = unknown.result
            with ctx.for_range(rows) as i, ctx.for_range(columns) as j:
                matrix.d[i, j] += -(w[i] * solution[j])

    @rule(solver, mode="forward")
    def _forward(ctx: Any, *arguments: Any) -> None:
        matrix, right, unknown = (arguments[i] for i in (i_matrix, i_right, i_unknown))
        if not unknown.active:
            return
        rows, columns = matrix.shape
        moved = ctx.temporary_like(unknown)
        solution = unknown.result
        with ctx.for_range(rows) as i:
            total = ctx.variable(right.d[i] if right.active else ctx.constant(0.0, _dtype(prototype, i_right)))
            if matrix.active:
                with ctx.for_range(columns) as j:
                    total.value -= matrix.d[i, j] * solution[j]
            moved[i] = total.value
        handed = list(arguments)
        handed[i_matrix], handed[i_right], handed[i_unknown] = matrix.saved, moved, unknown.d
        ctx.foreign(symbol)(*handed)


def _dtype(prototype: Prototype, position: int) -> Any:
    from irgrad.rules.definitions.types import SCALARS

    return SCALARS[prototype.params[position].dtype]
