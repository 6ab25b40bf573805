"""`jac_sparse`, `hessian_sparse`: Jacobians and Hessians with few entries, by compression.

Columns that share no row are summed into one direction (rows that share no column into one cotangent), so that as
many directions as colours give all entries: Curtis, Powell and Reid (1974), with greedy colouring, largest first. The
colours are the lanes of one program. One more lane carries a random direction: a pattern that misses an entry is
noticed.

A pattern that is not given is found by probing: a tangent that is NaN makes every tangent NaN that it reaches, also
where a partial happens to be zero. Elements are probed in groups that are halved until they are single; groups of one
level that reach different outputs share a lane, so that a band takes a number of lanes that grows with the logarithm
of its length. What a branch not taken would add is not seen; when later arguments take it, the random direction tells,
and the pattern is extended. Rows that are NaN in the direction zero already, as 0 * inf is, are probed
at points nearby.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from irgrad.engine.functions.colouring import Pattern, colours, count
from irgrad.engine.functions.jacobians import hessian_strips, lane_bytes
from irgrad.engine.functions.strips import Strips, Width, choose_width
from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.select import active_outputs, selected
from irgrad.engine.signature.parameter import Wrt
from irgrad.rules.errors import ActivityError, IRGradError, ShapeError, SignatureError

__all__ = ["Coo", "SparseDerivative", "hessian_sparse", "jac_sparse"]

Array = np.ndarray[Any, Any]
Make = Callable[[int], Strips]
Lane = tuple[Array, Array | float]  # elements, and what they are seeded with

_ROUNDED = float(np.sqrt(np.finfo(np.float32).eps))
"""How far products may be from the entries of a pattern that holds where it was probed: a function of doubles may round
to single precision inside."""


class Coo(NamedTuple):
    """A sparse matrix where SciPy is not installed: entries by row, then column."""

    rows: Array
    cols: Array
    values: Array
    shape: tuple[int, int]


def jac_sparse(
    kernel: Kernel, pattern: Any = None, *, wrt: Wrt = None, argnums: Wrt = None, of: str | None = None,
    mode: str = "auto", width: Width = "auto",
) -> SparseDerivative:  # fmt: skip
    """The Jacobian of one output by one argument as a sparse matrix.

    pattern: which entries may differ from zero: a boolean array or SciPy sparse array of shape [output size, argument
             size], or a pair (rows, cols); found by probing when it is not given (and kept for calls of the same sizes)
    wrt:     the argument, by name or position (argument 0 by default); of: the output, where there are several
    mode:    "forward" (columns are compressed), "reverse" (rows), or "auto": what needs fewer directions
    width:   directions in one native call, as in `jacfwd`

    Returns a function of the kernel's arguments that gives a `scipy.sparse.csr_array` with arrays flattened in C order;
    without SciPy a `Coo` (rows, cols, values, shape). It also has `pattern`, `colours` and `aslinearoperator`, which
    take the same arguments. Raises SignatureError for unknown names, ShapeError for a pattern of another shape,
    IRGradError for a pattern that misses an entry.

        >>> J = irgrad.jac_sparse(squares)
        >>> J(np.arange(1.0, 4)).toarray().diagonal()
        array([2., 4., 6.])
        >>> J.colours(np.arange(1.0, 4)), J.pattern(np.arange(1.0, 4)).nnz
        (1, 3)
    """
    position, output = _single(kernel, wrt, argnums), _output(kernel, of)
    if mode not in ("auto", "forward", "reverse"):
        raise SignatureError(f"there is no mode {mode!r}", fix='mode="forward", "reverse" or "auto"')
    choose_width(width, 1, 0)
    active = (position, output)

    def problem(bound: Bound) -> _Problem:
        def forward(at: Bound) -> Make:
            return lambda w: Strips(lambda v: kernel.primal.jvp_only(active, v), at, [(position, 0)], [(output, 0)], w)

        def reverse(w: int) -> Strips:
            return Strips(lambda v: kernel.primal.pullback(active, v), bound, [(output, 0)], [(position, 0)], w)

        shapes = kernel.primal.shapes(bound.sizes)
        shape = (_product(shapes[output]), _product(shapes[position]))
        sizes = _Sizes(shape, width, lane_bytes(kernel, bound, active), position, f"`{kernel.signature}`")
        return _Problem(sizes, forward, reverse, mode)

    return SparseDerivative(kernel, _Patterns(pattern), problem)


def hessian_sparse(
    kernel: Kernel, pattern: Any = None, *, wrt: Wrt = None, argnums: Wrt = None, width: Width = "auto"
) -> SparseDerivative:
    """The Hessian of a scalar-valued kernel by one argument as a sparse matrix: compressed Hessian-vector products.

    Arguments, result and errors are those of `jac_sparse`; the matrix is [argument size, argument size]. Raises
    ActivityError when the kernel is not scalar-valued.

        >>> irgrad.hessian_sparse(total)(np.ones(1000)).nnz
        1000
    """
    position = _single(kernel, wrt, argnums)
    choose_width(width, 1, 0)

    def problem(bound: Bound) -> _Problem:
        size = _product(kernel.primal.shapes(bound.sizes)[position])
        bytes_ = 2 * lane_bytes(kernel, bound, (position,))
        sizes = _Sizes((size, size), width, bytes_, position, f"`{kernel.signature}`")

        def forward(at: Bound) -> Make:
            return lambda w: hessian_strips(kernel, at, (position,), w)

        return _Problem(sizes, forward, None, "forward")

    return SparseDerivative(kernel, _Patterns(pattern), problem)


class SparseDerivative:
    """A sparse Jacobian or Hessian as a function of the kernel's arguments. Made by `jac_sparse`, `hessian_sparse`.

    `J(*args)` is the matrix, `J.pattern(*args)` where it may have entries, `J.colours(*args)` how many directions it
    takes, `J.aslinearoperator(*args)` the matrix as products alone. All take the kernel's arguments and raise as it
    does.
    """

    def __init__(self, kernel: Kernel, patterns: _Patterns, problem: Callable[[Bound], _Problem]) -> None:
        self.kernel = kernel
        self._patterns = patterns
        self._problem = problem

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The sparse matrix at these arguments."""
        bound = self.kernel.bind(args, kwargs)
        return _matrix(self._patterns, bound, self._problem(bound))

    def pattern(self, *args: Any, **kwargs: Any) -> Any:
        """The entries that may differ from zero, as a sparse matrix of True: the pattern that was given, or the one
        that calls with arguments of these sizes have found so far (it is probed if there was none)."""
        found, problem = self._known(args, kwargs)
        return _result(found, np.ones(len(found.rows), bool), problem.sizes.shape)

    def colours(self, *args: Any, **kwargs: Any) -> int:
        """How many directions give all entries: the colours of columns, or of rows in reverse mode."""
        found, problem = self._known(args, kwargs)
        return count(problem.direction(found)[1])

    def aslinearoperator(self, *args: Any, **kwargs: Any) -> Any:
        """A `scipy.sparse.linalg.LinearOperator` at these arguments, which are copied: products by forward mode, those
        with the transpose by reverse mode, and no matrix. Raises IRGradError without SciPy."""
        try:
            import scipy.sparse.linalg as linalg  # noqa: PLR0402
        except ImportError:
            raise IRGradError("`aslinearoperator` needs SciPy", fix="pip install scipy") from None
        bound = self.kernel.bind(args, kwargs)
        bound = Bound([None if b is None else b.copy() for b in bound.buffers], bound.sizes)
        problem = self._problem(bound)
        forward = problem.forward(bound)

        def products(make: Make, vectors: Any) -> Array:
            rows = np.asarray(vectors).reshape(len(vectors), -1)
            lanes: list[Lane] = [(np.arange(len(rows)), column) for column in rows.T]
            return _apply(make, lanes, problem.sizes.chosen(len(lanes)))

        made: Any = linalg.LinearOperator
        return made(problem.sizes.shape, matvec=lambda v: products(forward, v)[:, 0],
                    rmatvec=lambda v: products(problem.reverse or forward, v)[:, 0],
                    matmat=lambda v: products(forward, v), dtype=forward(1).dtype(0))  # fmt: skip

    def _known(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Pattern, _Problem]:
        bound = self.kernel.bind(args, kwargs)
        problem = self._problem(bound)
        sizes = problem.sizes
        found = self._patterns.get(bound, sizes.shape, sizes.where)
        if found is None:
            found = _found(problem.forward, bound, sizes)
            self._patterns.keep(bound, sizes.shape, found)
        return found, problem


@dataclass(frozen=True, slots=True)
class _Sizes:
    shape: tuple[int, int]
    width: Width
    lane_bytes: int
    position: int
    where: str

    def chosen(self, lanes: int) -> int:
        return choose_width(self.width, lanes, self.lane_bytes)


@dataclass(frozen=True, slots=True)
class _Problem:
    """A matrix at some arguments: products forward (for other arguments as well), and reverse where there are such."""

    sizes: _Sizes
    forward: Callable[[Bound], Make]
    reverse: Make | None
    mode: str

    def direction(self, pattern: Pattern) -> tuple[Make | None, Array]:
        """The reverse products and colours of rows where they are fewer or asked for; else None and columns'."""
        by_column = pattern.by_column(self.sizes.shape[1])
        if self.mode != "forward" and self.reverse is not None:
            by_row = pattern.by_row(self.sizes.shape[0])
            if self.mode == "reverse" or 2 * count(by_row) < count(by_column):
                return self.reverse, by_row
        return None, by_column


class _Patterns:
    """The pattern that was given, or those found so far for each set of sizes."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self._found: dict[Any, Pattern] = {}

    def get(self, bound: Bound, shape: tuple[int, int], where: str) -> Pattern | None:
        """The pattern to begin with; None: to be probed. Raises ShapeError."""
        key = (shape, *bound.sizes.values())
        if self.given is not None and key not in self._found:
            self._found[key] = _given(self.given, shape, where)
        return self._found.get(key)

    def keep(self, bound: Bound, shape: tuple[int, int], pattern: Pattern) -> None:
        """Remember what probing has found."""
        self._found[(shape, *bound.sizes.values())] = pattern


def _given(pattern: Any, shape: tuple[int, int], where: str) -> Pattern:
    if isinstance(pattern, tuple) and len(pattern) == 2:
        rows, cols = (np.asarray(part) for part in pattern)
        fits = rows.shape == cols.shape and rows.ndim == 1
        fits = fits and (not len(rows) or (min(rows.min(), cols.min()) >= 0
                                           and rows.max() < shape[0] and cols.max() < shape[1]))  # fmt: skip
        if not fits:
            raise ShapeError("the pattern does not fit", where=where, because=f"the matrix is {shape[0]} x {shape[1]}",
                             fix="a pair of index arrays of one length within these bounds")  # fmt: skip
        return Pattern.of(rows, cols, shape)
    if tuple(np.shape(pattern)) != shape and getattr(pattern, "shape", None) != shape:
        raise ShapeError(f"the pattern has shape {getattr(pattern, 'shape', np.shape(pattern))}", where=where,
                         because=f"the matrix is {shape[0]} x {shape[1]}", fix="one row for each element of the output")
    to_coordinates: Any = getattr(pattern, "tocoo", None)
    if to_coordinates is not None:
        coo = to_coordinates()
        return Pattern.of(coo.row, coo.col, shape)
    rows, cols = np.nonzero(np.asarray(pattern))
    return Pattern.of(rows, cols, shape)


# -- one matrix --------------------------------------------------------------------------------------------------------


def _matrix(patterns: _Patterns, bound: Bound, problem: _Problem) -> Any:
    sizes, forward = problem.sizes, problem.forward
    pattern = patterns.get(bound, sizes.shape, sizes.where)
    probed, lacking = pattern is None, "does not account for a product with a random vector"
    if pattern is None:
        pattern = _found(forward, bound, sizes)
    values, gap = _entries(pattern, bound, problem)
    if gap > np.sqrt(np.finfo(values.dtype).eps) and not probed:  # other branches than in the calls before, or rounding
        joined = pattern.joined(_found(forward, bound, sizes), sizes.shape)
        probed = patterns.given is None or len(joined.rows) == len(pattern.rows)
        if not probed:
            lacking = f"lacks {joined.beyond(pattern, sizes.shape)}"
        else:
            values, gap = _entries(pattern := joined, bound, problem)
    if gap > (_ROUNDED if probed else np.sqrt(np.finfo(values.dtype).eps)):
        how = "the pattern that was given" if patterns.given is not None else "the pattern that was found by probing"
        raise IRGradError("a sparse matrix has entries outside of its pattern", where=sizes.where,
                          because=f"{how} {lacking}",
                          fix="pass a pattern with all entries, or none; or use jacfwd, jacrev or hessian")  # fmt: skip
    if patterns.given is None:
        patterns.keep(bound, sizes.shape, pattern)
    return _result(pattern, values, sizes.shape)


def _result(pattern: Pattern, values: Array, shape: tuple[int, int]) -> Any:
    try:
        from scipy.sparse import csr_array
    except ImportError:
        return Coo(pattern.rows, pattern.cols, values, shape)
    ends = np.searchsorted(pattern.rows, np.arange(shape[0] + 1))
    return csr_array((values, pattern.cols, ends), shape=shape)


def _entries(pattern: Pattern, bound: Bound, problem: _Problem) -> tuple[Array, float]:
    """The values at the places of the pattern, and how far they are from accounting for a product, relatively."""
    reverse, colour = problem.direction(pattern)
    if reverse is not None:
        return _compressed(reverse, pattern.rows, pattern.cols, colour, problem.sizes)
    return _compressed(problem.forward(bound), pattern.cols, pattern.rows, colour, problem.sizes)


def _compressed(make: Make, seeded: Array, read: Array, colour: Array, sizes: _Sizes) -> tuple[Array, float]:
    """Entries that lie at (seeded element, read element), the seeded elements summed up by colour."""
    needed = count(colour)
    check = np.random.default_rng(0).uniform(0.5, 1.5, len(colour))
    lanes: list[Lane] = [(np.flatnonzero(colour == c), 1.0) for c in range(needed)]
    lanes.append((np.arange(len(colour)), check))
    products = _apply(make, lanes, sizes.chosen(len(lanes)))
    values = products[read, colour[seeded]]
    want, total, size = products[:, needed], np.zeros(len(products)), np.zeros(len(products))
    with np.errstate(invalid="ignore"):
        terms = values * check.astype(values.dtype)[seeded]
        np.add.at(total, read, terms)
        np.add.at(size, read, np.abs(terms))
        gap = np.abs(total - want) / (np.maximum(size, np.abs(want)) + np.finfo(values.dtype).tiny)
    return values, float(gap[np.isfinite(want) & np.isfinite(size)].max(initial=0.0))


def _apply(make: Make, lanes: Sequence[Lane], width: int) -> Array:
    """Products with these directions as columns."""
    strips = make(width)
    seed = strips.seed(0)
    out = np.empty((_product(strips.result_shapes[0]), len(lanes)), strips.dtype(0))
    for first in range(0, len(lanes), strips.width):
        strip = lanes[first : first + strips.width]
        seed[...] = 0
        for lane, (elements, values) in enumerate(strip):
            seed[elements, lane] = values
        out[:, first : first + len(strip)] = strips.run()[0][:, : len(strip)]
    return out


# -- patterns by probing ----------------------------------------------------------------------------------------------


def _found(forward: Callable[[Bound], Make], bound: Bound, sizes: _Sizes) -> Pattern:
    """The pattern by probing. Raises IRGradError where no direction tells anything about a row."""
    pattern, missing = Pattern.of((), (), sizes.shape), np.ones(sizes.shape[0], bool)
    for at in _points(bound, sizes.position):
        more, unknown = _probe(forward(at), sizes)
        new = missing[more.rows]
        pattern = pattern.joined(Pattern(more.rows[new], more.cols[new]), sizes.shape)
        missing &= unknown
        if not missing.any():
            return pattern
    raise IRGradError("a pattern cannot be found by probing", where=sizes.where,
                      because=f"the derivatives of element {np.flatnonzero(missing)[0]} of the output are NaN in the "
                              "direction zero, here and nearby",
                      fix="pass a pattern with all entries, or make the first call where they are finite")  # fmt: skip


def _points(bound: Bound, position: int) -> Iterator[Bound]:
    """The arguments; with numbers like the others of their array in place of NaN and infinities; and these with the
    differentiated argument a little larger and smaller, away from infinite slopes."""
    yield bound
    rng = np.random.default_rng(0)
    buffers = [None if b is None else _finite(b, rng) for b in bound.buffers]
    yield Bound(buffers, bound.sizes)
    x = buffers[position]
    assert x is not None
    step = 1e-3 * (float(np.max(np.abs(x), initial=0.0)) or 1.0)
    for sign in (step, -step):
        moved = list(buffers)
        moved[position] = np.asarray(x + np.asarray(sign * rng.uniform(0.5, 1.0, x.shape), x.dtype))
        yield Bound(moved, bound.sizes)


def _finite(buffer: Array, rng: np.random.Generator) -> Array:
    known = np.isfinite(buffer) if buffer.dtype.kind in "fV" else np.True_
    if np.all(known):
        return buffer
    low, high = (float(f(buffer[known])) for f in (np.min, np.max)) if np.any(known) else (0.5, 1.5)
    return np.where(known, buffer, rng.uniform(low, high if high > low else low + 1, buffer.shape)).astype(buffer.dtype)


def _probe(make: Make, sizes: _Sizes) -> tuple[Pattern, Array]:
    """The pattern at the arguments of `make`: which outputs a NaN in each element reaches; and the outputs that are NaN
    without one, which it leaves out."""
    rows, columns = sizes.shape
    if not rows or not columns:
        return Pattern.of((), (), sizes.shape), np.zeros(rows, bool)
    step = 2
    while step < columns:
        step *= 2
    made: dict[int, Make] = {}

    def shared(width: int) -> Strips:
        found = made.get(width)
        if found is None:
            strips = make(width)
            found = made[width] = lambda _: strips
        return found(width)

    unknown = np.isnan(_apply(shared, [(np.arange(0), 0.0)], sizes.chosen(2)))[:, 0]
    known = np.flatnonzero(~unknown)
    pattern = Pattern(known, np.zeros_like(known))  # one group, which may reach every output
    while step > 1:
        pattern, step = _halved(shared, pattern, step, sizes), step // 2
    return Pattern.of(pattern.rows, pattern.cols, sizes.shape), unknown


def _halved(make: Make, coarse: Pattern, step: int, sizes: _Sizes) -> Pattern:
    """The pattern of groups of `step // 2` elements from that of groups of `step`."""
    half, columns = step // 2, sizes.shape[1]
    colour = colours(coarse.rows, coarse.cols, -(-columns // step))
    lanes: list[Lane] = []
    for c in range(count(colour)):
        first = np.flatnonzero(colour == c) * step
        for start in (first, first + half):
            elements = (start[:, None] + np.arange(half)).reshape(-1)
            lanes.append((elements[elements < columns], np.nan))
    if not lanes:
        return coarse
    reached = np.isnan(_apply(make, lanes, sizes.chosen(len(lanes))))
    rows, cols = [], []
    for side in (0, 1):
        hit = reached[coarse.rows, 2 * colour[coarse.cols] + side]
        rows.append(coarse.rows[hit])
        cols.append(2 * coarse.cols[hit] + side)
    return Pattern(np.concatenate(rows), np.concatenate(cols))


# -- arguments ---------------------------------------------------------------------------------------------------------


def _single(kernel: Kernel, wrt: Wrt, argnums: Wrt) -> int:
    positions, single = selected(kernel, wrt, argnums)
    if not single and len(positions) != 1:
        raise SignatureError("a sparse matrix is by one argument", where=f"`{kernel.signature}`",
                             fix="name one argument, and call once for each")  # fmt: skip
    return positions[0]


def _output(kernel: Kernel, of: str | None) -> int:
    outputs = active_outputs(kernel)
    names = dict(zip(kernel.output_names, kernel.output_positions, strict=True))
    floats = [name for name, position in names.items() if position in outputs]
    if of is None and len(floats) == 1:
        return outputs[0]
    if of is None or of not in floats:
        what = f"there is no floating-point output `{of}`" if of is not None else "a sparse matrix is of one output"
        kind = SignatureError if floats else ActivityError
        raise kind(what, where=f"`{kernel.signature}`", because=f"the outputs are {', '.join(floats) or 'no floats'}",
                   fix=f'of="{floats[0]}"' if floats else "differentiate a function of floats")  # fmt: skip
    return names[of]


def _product(shape: Sequence[int]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size
