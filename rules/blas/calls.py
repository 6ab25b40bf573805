"""What the derivations of BLAS and LAPACK are written in: the call at hand, matrices, vectors, and calls of BLAS.

`Call` reads the arguments of a call in either convention: flags become conditions (plain bools where they are literals,
else conditions of the kernel), integers are i64. Its methods call the routines of the same library again. All matrices
of one call are stored in the same order; where a routine of Fortran is to work on row-major matrices, the call is
turned into the one on their transposes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from irgrad.rules.blas.spelling import FLAGS, Spelling

__all__ = ["Call", "Matrix", "Vector", "no", "xor"]

# the values of C's enumerations, and the letters of Fortran, for "yes" and "no"
_C = {"order": (101, 102), "trans": (112, 111), "uplo": (121, 122), "diag": (132, 131), "side": (141, 142)}
_LETTER = {"trans": "NT", "uplo": "UL", "diag": "UN", "side": "LR", "jobz": "VN", "job": "SN"}


def no(a: Any) -> Any:
    """The opposite of a condition."""
    return not a if isinstance(a, bool) else ~a


def xor(a: Any, b: Any) -> Any:
    """One of two conditions, not both."""
    if isinstance(a, bool):
        return no(b) if a else b
    return xor(b, a) if isinstance(b, bool) else (a & no(b)) | (no(a) & b)


@dataclass(frozen=True, slots=True)
class Vector:
    """Elements at a distance; a negative one counts from the end, as BLAS does."""

    p: Any
    inc: Any


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix in memory: an address, a leading dimension, and whether rows (else columns) are contiguous."""

    p: Any
    ld: Any
    row: Any
    call: Call

    def place(self, i: Any, j: Any) -> Any:
        """The position of an element."""
        c = self.call
        return i * c.where(self.row, self.ld, 1) + j * c.where(self.row, 1, self.ld)

    def at(self, i: Any, j: Any) -> Matrix:
        """The part that begins at an element."""
        return replace(self, p=self.p + self.place(i, j))

    def rows(self, i: Any) -> Vector:
        """The row `i`."""
        return Vector(self.p + self.place(i, 0), self.call.where(self.row, 1, self.ld))

    def column(self, j: Any) -> Vector:
        """The column `j`."""
        return Vector(self.p + self.place(0, j), self.call.where(self.row, self.ld, 1))

    @property
    def diagonal(self) -> Vector:
        """The diagonal."""
        return Vector(self.p, self.ld + 1)


class Call:
    """A call of a routine: its arguments by name, and the library it belongs to."""

    def __init__(self, ctx: Any, spelling: Spelling, args: tuple[Any, ...]) -> None:
        self.ctx = ctx
        self.args: dict[str, Any] = {}
        self.row: Any = False  # order of the matrices
        self.spelling = spelling
        for param, arg in zip(spelling.prototype.params, args, strict=True):
            if param.name in FLAGS:
                self._flag(param.name, arg)
            elif param.dtype in ("i32", "i64") and param.kind in ("scalar", "reference"):
                self.args[param.name] = arg.astype("i64")
                if spelling.c and arg.dtype != spelling.ints:  # the program says which integers its library has
                    self.spelling = replace(spelling, ints=arg.dtype)
            else:
                self.args[param.name] = arg

    def __getattr__(self, name: str) -> Any:
        return self.args[name]

    def also(self, **args: Any) -> Call:
        """The call with arguments that its routine does not have, for the rule of another routine."""
        self.args.update(args)
        return self

    def _flag(self, name: str, arg: Any) -> None:
        kind = "trans" if name.startswith("trans") else name
        if self.spelling.c:
            yes = arg == _C[kind][0] if kind != "trans" else arg != _C[kind][1]
        else:
            letter = _LETTER[kind][0]
            yes = (arg == ord(letter)) | (arg == ord(letter.lower()))
            yes = no(yes) if kind == "trans" else yes
        if name == "job":
            self.args["letter"] = arg
        if name == "order":
            self.row = yes
        else:
            self.args[{"uplo": "upper", "diag": "unit", "side": "left", "jobz": "vectors"}.get(name, name)] = yes

    # -- the context -------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> str:
        return self.spelling.dtype

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """`a` where the condition holds, else `b`: numbers, pointers, or conditions."""
        if isinstance(condition, bool):
            return a if condition else b
        if a is b:
            return a
        if all(isinstance(v, bool) or getattr(v, "dtype", "") == "i1" for v in (a, b)):
            return (condition & a) | (no(condition) & b)
        return self.ctx.where(condition, a, b)

    def when(self, condition: Any) -> AbstractContextManager[None]:
        manager: AbstractContextManager[None] = self.ctx.when(condition)
        return manager

    def loop(self, *bounds: Any) -> AbstractContextManager[Any]:
        manager: AbstractContextManager[Any] = self.ctx.for_range(*bounds)
        return manager

    def least(self, a: Any, b: Any) -> Any:
        return self.where(a < b, a, b)

    def memory(self, count: Any, zero: bool = False, dtype: str | None = None) -> Any:
        """Memory until the body (or the loop around) ends."""
        return self.ctx.temporary(count, dtype or self.dtype, zero=zero)

    # -- arguments ---------------------------------------------------------------------------------------------------

    def matrix(self, name: str, row: Any = None) -> Matrix:
        """A matrix argument as it is now."""
        return Matrix(self.args[name], self.args[f"ld{name}"], self.row if row is None else row, self)

    def shadow(self, name: str, row: Any = None) -> Matrix:
        """Its shadow."""
        return replace(self.matrix(name, row), p=self.args[name].d)

    def saved(self, name: str, m: Any, n: Any, row: Any = None, when: Any = True) -> Matrix:
        """What an m by n matrix held when the routine was called (nothing is kept where `when` does not hold)."""
        matrix = self.matrix(name, row)
        return replace(matrix, p=self.args[name].saved(self.where(when, self.extent(matrix, m, n), 0)))

    def result(self, name: str, m: Any, n: Any, row: Any = None, when: Any = True) -> Matrix:
        """What it held when the routine had returned."""
        matrix = self.matrix(name, row)
        if self.ctx.mode == "forward":
            return matrix
        return replace(matrix, p=self.args[name].result(self.where(when, self.extent(matrix, m, n), 0)))

    def extent(self, matrix: Matrix, m: Any, n: Any) -> Any:
        """Elements from the first to the last one."""
        outer, inner = self.where(matrix.row, m, n), self.where(matrix.row, n, m)
        return self.where((outer > 0) & (inner > 0), (outer - 1) * matrix.ld + inner, 0)

    def vector(self, name: str) -> Vector:
        """A vector argument as it is now."""
        return Vector(self.args[name], self.args[f"inc{name}"])

    def vector_shadow(self, name: str) -> Vector:
        return Vector(self.args[name].d, self.args[f"inc{name}"])

    def span(self, n: Any, inc: Any) -> Any:
        """Elements from the first to the last one of a vector."""
        return self.where(n > 0, (n - 1) * abs(inc) + 1, 0)

    def vector_saved(self, name: str, n: Any) -> Vector:
        inc = self.args[f"inc{name}"]
        return Vector(self.args[name].saved(self.span(n, inc)), inc)

    def vector_result(self, name: str, n: Any) -> Vector:
        inc = self.args[f"inc{name}"]
        if self.ctx.mode == "forward":
            return self.vector(name)
        return Vector(self.args[name].result(self.span(n, inc)), inc)

    def new(self, m: Any, n: Any, row: Any = None, zero: bool = False) -> Matrix:
        """A temporary m by n matrix."""
        row = self.row if row is None else row
        ld = self.where(row, n, m)
        ld = self.where(ld > 1, ld, 1) if not isinstance(ld, int) else max(ld, 1)
        return Matrix(self.memory(m * n, zero), ld, row, self)

    def pick(self, condition: Any, x: Matrix, y: Matrix) -> Matrix:
        """One of two matrices."""
        return Matrix(self.where(condition, x.p, y.p), self.where(condition, x.ld, y.ld), x.row, self)

    def integers(self, count: Any) -> Any:
        """Memory for integers of the library."""
        return self.memory(count, dtype=self.spelling.ints)

    # -- calls -------------------------------------------------------------------------------------------------------

    def emit(self, routine: str, *args: Any) -> Any:
        """Call a routine of the library; flags are given as conditions."""
        spelling = self.spelling.other(routine)
        given = []
        for name, arg in zip(spelling.names, args, strict=True):
            if name not in FLAGS:
                given.append(arg)
                continue
            kind = "trans" if name.startswith("trans") else name
            yes, otherwise = _C[kind] if spelling.c else map(ord, _LETTER[kind])
            if kind == "trans" and not spelling.c:
                yes, otherwise = otherwise, yes
            given.append(self.where(arg, yes, otherwise))
        return self.ctx.foreign(spelling.symbol, spelling.prototype)(*given)

    def dot(self, n: Any, x: Vector, y: Vector) -> Any:
        return self.emit("dot", n, x.p, x.inc, y.p, y.inc)

    def axpy(self, n: Any, alpha: Any, x: Vector, y: Vector) -> None:
        self.emit("axpy", n, alpha, x.p, x.inc, y.p, y.inc)

    def scal(self, n: Any, alpha: Any, x: Vector) -> None:
        self.emit("scal", n, alpha, x.p, x.inc)

    def copy(self, n: Any, x: Vector, y: Vector) -> None:
        self.emit("copy", n, x.p, x.inc, y.p, y.inc)

    def gemv(self, trans: Any, m: Any, n: Any, alpha: Any, a: Matrix, x: Vector, beta: Any, y: Vector) -> None:
        """y = alpha op(A) x + beta y."""
        order, w = self._order(a)
        self.emit("gemv", *order, xor(trans, w), self.where(w, n, m), self.where(w, m, n), alpha, a.p, a.ld, x.p, x.inc,
                  beta, y.p, y.inc)  # fmt: skip

    def symv(self, upper: Any, n: Any, alpha: Any, a: Matrix, x: Vector, beta: Any, y: Vector) -> None:
        """y = alpha A x + beta y."""
        order, w = self._order(a)
        self.emit("symv", *order, xor(upper, w), n, alpha, a.p, a.ld, x.p, x.inc, beta, y.p, y.inc)

    def ger(self, m: Any, n: Any, alpha: Any, x: Vector, y: Vector, a: Matrix) -> None:
        """A += alpha x y^T."""
        order, w = self._order(a)
        c = self.where
        self.emit("ger", *order, c(w, n, m), c(w, m, n), alpha, c(w, y.p, x.p), c(w, y.inc, x.inc), c(w, x.p, y.p),
                  c(w, x.inc, y.inc), a.p, a.ld)  # fmt: skip

    def syr(self, upper: Any, n: Any, alpha: Any, x: Vector, a: Matrix) -> None:
        """A += alpha x x^T."""
        order, w = self._order(a)
        self.emit("syr", *order, xor(upper, w), n, alpha, x.p, x.inc, a.p, a.ld)

    def syr2(self, upper: Any, n: Any, alpha: Any, x: Vector, y: Vector, a: Matrix) -> None:
        """A += alpha (x y^T + y x^T)."""
        order, w = self._order(a)
        self.emit("syr2", *order, xor(upper, w), n, alpha, x.p, x.inc, y.p, y.inc, a.p, a.ld)

    def triangular(self, routine: str, upper: Any, trans: Any, unit: Any, n: Any, a: Matrix, x: Vector) -> None:
        """trmv, trsv."""
        order, w = self._order(a)
        self.emit(routine, *order, xor(upper, w), xor(trans, w), unit, n, a.p, a.ld, x.p, x.inc)

    def gemm(
        self, ta: Any, tb: Any, m: Any, n: Any, k: Any, alpha: Any, a: Matrix, b: Matrix, beta: Any, c: Matrix
    ) -> None:
        """C = alpha op(A) op(B) + beta C."""
        order, w = self._order(c)
        s = self.where
        self.emit("gemm", *order, s(w, tb, ta), s(w, ta, tb), s(w, n, m), s(w, m, n), k, alpha, s(w, b.p, a.p),
                  s(w, b.ld, a.ld), s(w, a.p, b.p), s(w, a.ld, b.ld), beta, c.p, c.ld)  # fmt: skip

    def symm(
        self, left: Any, upper: Any, m: Any, n: Any, alpha: Any, a: Matrix, b: Matrix, beta: Any, c: Matrix
    ) -> None:
        """C = alpha A B + beta C, or with B A."""
        order, w = self._order(c)
        self.emit("symm", *order, xor(left, w), xor(upper, w), self.where(w, n, m), self.where(w, m, n), alpha, a.p,
                  a.ld, b.p, b.ld, beta, c.p, c.ld)  # fmt: skip

    def syrk(self, upper: Any, trans: Any, n: Any, k: Any, alpha: Any, a: Matrix, beta: Any, c: Matrix) -> None:
        """C = alpha A A^T + beta C (or A^T A)."""
        order, w = self._order(c)
        self.emit("syrk", *order, xor(upper, w), xor(trans, w), n, k, alpha, a.p, a.ld, beta, c.p, c.ld)

    def syr2k(
        self, upper: Any, trans: Any, n: Any, k: Any, alpha: Any, a: Matrix, b: Matrix, beta: Any, c: Matrix
    ) -> None:
        """C = alpha (A B^T + B A^T) + beta C (or A^T B + B^T A)."""
        order, w = self._order(c)
        self.emit("syr2k", *order, xor(upper, w), xor(trans, w), n, k, alpha, a.p, a.ld, b.p, b.ld, beta, c.p, c.ld)

    def side(
        self, routine: str, left: Any, upper: Any, trans: Any, unit: Any, m: Any, n: Any, alpha: Any, a: Matrix,
        b: Matrix,
    ) -> None:  # fmt: skip
        """trmm: B = alpha op(A) B or alpha B op(A); trsm: with the inverse of A."""
        order, w = self._order(b)
        self.emit(routine, *order, xor(left, w), xor(upper, w), trans, unit, self.where(w, n, m), self.where(w, m, n),
                  alpha, a.p, a.ld, b.p, b.ld)  # fmt: skip

    def _order(self, matrix: Matrix) -> tuple[tuple[Any, ...], Any]:
        """The first arguments of a call, and whether the transposed matrices are worked on."""
        return ((matrix.row,), False) if self.spelling.c else ((), matrix.row)
