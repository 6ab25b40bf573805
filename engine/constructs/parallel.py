"""`irgrad.parallel`: Futhark's parallel operators over foreign kernels of numbers.

    total = irgrad.parallel.reduce(lib.kernel("add"), neutral=0.0)
    total(x), irgrad.grad(total)(x), jax.grad(total)(x)

`reduce`, `scan`, `histogram` and `scatter` give a `Kernel`, so that each has every derivative, batch and framework that
kernels have. Operators have to be associative; they need not commute. After Schenck, Rønning, Henriksen and Oancea (AD
for an Array Language with Nested Parallelism, SC 2022), who scan linearised operators for want of a sequential
direction; here the reverse sweep of the fold visits each application of the operator once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from irgrad.engine.batches.axes import AxesSpec
from irgrad.engine.batches.batched import batch, batch_jvp, batch_vjp
from irgrad.engine.constructs.blocks import histogram_in_blocks, reduce_in_blocks, scan_in_blocks
from irgrad.engine.constructs.loops import Body, Neutral, histogram_text, reduce_text, scan_text, scatter_text
from irgrad.engine.constructs.operators import Operator, Part, flat_kernel
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.options import team_size
from irgrad.engine.kernel.programs import Options
from irgrad.engine.signature.dtypes import DTYPES, DType
from irgrad.engine.signature.extents import ConstExtent, Extent, NameExtent
from irgrad.engine.signature.parameter import Parameter, Wrt
from irgrad.engine.signature.signature import Signature
from irgrad.engine.support.foreign import bridge_function
from irgrad.rules.errors import SignatureError

__all__ = ["Map", "histogram", "map", "reduce", "scan", "scatter"]

_INDEX = ("i32", "i64", "u32", "u64")


class Map:
    """A kernel over arrays of arguments, made by `map`. Thread-safe."""

    def __init__(self, kernel: Any, in_axes: AxesSpec, threads: int | None) -> None:
        self.kernel, self.in_axes, self.threads = flat_kernel(kernel, "what is mapped"), in_axes, threads
        self.__name__ = f"map_{self.kernel.name}"

    def __call__(self, *args: Any) -> Any:
        """What the kernel returns for each element; values of JAX too. Raises as `batch` and the kernel do."""
        bridge = bridge_function(args, "mapped")
        if bridge is not None:
            return bridge(self, args)
        return batch(self.kernel, in_axes=self.in_axes, threads=self.threads)(*args)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Results and their tangents, as `batch_jvp`: one tangent per argument, None for none."""
        return batch_jvp(self.kernel, primals, tangents, in_axes=self.in_axes, threads=self.threads)

    def vjp(self, *primals: Any, wrt: Wrt = None) -> tuple[Any, Callable[[Any], Any]]:
        """Results and the pullback, as `batch_vjp`: cotangents of what all elements share are sums over them."""
        return batch_vjp(self.kernel, *primals, wrt=wrt, in_axes=self.in_axes, threads=self.threads)

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self.kernel.signature}>"


def map(kernel: Any, *, in_axes: AxesSpec = None, threads: int | None = None) -> Map:  # noqa: A001 - as in Futhark
    """The kernel for each element of its arguments: `batch` for NumPy arrays, `jax.vmap` for values of JAX.

    in_axes: which arguments have an axis of elements, as for `batch`: by default those with one axis more than the
             signature says; the others are shared by all elements
    threads: as for `batch`

    The result has `jvp` and `vjp`. Raises SignatureError for what is no kernel.
    """
    return Map(kernel, in_axes, threads)


def reduce(operator: Any, neutral: Any, *, threads: int | str | None = None) -> Kernel:
    """The fold of all elements by an associative operator: a kernel `x -> x[0] op x[1] op ...`.

    operator: a kernel `c = a op b`, with m inputs for the left side, m for the right, then what all calls share, and m
              outputs: numbers or arrays of constant extents
    neutral:  the result for no elements: a number or array for each of the m, alone where m is 1
    threads:  that share one call, in derivatives too, as for `lib.kernel`: blocks of elements are folded at once, and
              what they give then. Results have the same bits on any number of threads; None folds all in order

    The kernel takes an array `[n, ...]` for each of the m (named as the operator's right inputs), and what is shared. A
    single number is returned, others are outputs. Sums and products of one number run in vectors, in another order than
    that of the elements unless the operator has `strict_fp`; every other fold is in order. Raises SignatureError for a
    kernel that is no operator, and for a neutral element that does not fit.

        >>> add = lib.kernel("add", "f64(f64 a, f64 b)")
        >>> irgrad.parallel.reduce(add, 0.0)(np.array([1.0, 2.0, 3.0]))
        np.float64(6.0)
    """
    op = Operator(operator)
    constants = _neutral(op, neutral)
    names = _Names(op)
    n = names.fresh("n")
    returned = op.parts[0].output is None and not op.parts[0].shape and len(op.parts) == 1
    results = [None] if returned else names.results()
    inputs = [part.name for part in op.parts]
    signature = Signature(
        [*_arrays(op, inputs, NameExtent(n), "in"), *_shared(op), Parameter(n, DTYPES["i64"]),
         *(_arrays(op, results, None, "out") if not returned else ())],
        op.parts[0].dtype if returned else None,
    )  # fmt: skip
    if threads is None:
        return _made(op.kernel, "reduce", signature, op,
                     lambda body, text: reduce_text(body, text, inputs, results, constants, n))  # fmt: skip
    outputs = names.results()
    inside = Signature([*_arrays(op, inputs, NameExtent(n), "in"), *_shared(op), Parameter(n, DTYPES["i64"]),
                        *_arrays(op, outputs, None, "out")])  # fmt: skip

    def written(body: Body, text: str) -> str:
        fold = f"{op.kernel.source.name}.fold"
        text = reduce_text(Body(fold, inside, op, part=True), text, inputs, outputs, constants, n)
        return reduce_in_blocks(body, text, fold, inputs, results, n)

    return _made(op.kernel, "reduce_in_blocks", signature, op, written, threads)


def scan(operator: Any, *, reverse: bool = False, threads: int | str | None = None) -> Kernel:
    """All folds of the first elements: a kernel `x -> y` with `y[i] = x[0] op ... op x[i]`.

    operator: as for `reduce`
    reverse:  from the other end: `y[i] = y[i+1] op x[i]`, as `jax.lax.associative_scan` has it
    threads:  as for `reduce`; most elements are folded twice then

    Arguments are those of `reduce`; outputs are arrays of the shapes of the inputs. Raises SignatureError for a kernel
    that is no operator.

        >>> irgrad.parallel.scan(add)(np.array([1.0, 2.0, 3.0]))
        array([1., 3., 6.])
    """
    op = Operator(operator)
    names = _Names(op)
    n = names.fresh("n")
    inputs, results = [part.name for part in op.parts], names.results()
    signature = Signature([*_arrays(op, inputs, NameExtent(n), "in"), *_shared(op), Parameter(n, DTYPES["i64"]),
                           *_arrays(op, results, NameExtent(n), "out")])  # fmt: skip
    what = "scan_reverse" if reverse else "scan"
    if threads is None:
        return _made(op.kernel, what, signature, op,
                     lambda body, text: scan_text(body, text, inputs, results, n, reverse=reverse))  # fmt: skip

    last = names.results()
    inside = Signature([*signature.parameters, *_arrays(op, last, None, "out")])

    def written(body: Body, text: str) -> str:
        own = f"{op.kernel.source.name}.{what}"
        text = scan_text(Body(own, inside, op, part=True), text, inputs, results, n, reverse=reverse, last=last)
        return scan_in_blocks(body, text, own, inputs, results, n, reverse=reverse)

    return _made(op.kernel, f"{what}_in_blocks", signature, op, written, threads)


def histogram(
    operator: Any, neutral: Any, bins: int, *, index: str = "i64", threads: int | str | None = None
) -> Kernel:  # fmt: skip
    """Folds by bins: a kernel `(at, x) -> h` where `h[b]` is the fold of the `x[i]` with `at[i] == b`, in their order.

    operator, neutral: as for `reduce`; a bin without elements holds the neutral element
    bins:     how many there are; elements whose index is none of `0 ... bins-1` are passed over
    index:    the type of the indices, "i32", "i64", "u32" or "u64"
    threads:  as for `reduce`; each block of elements has a histogram of its own, as many numbers as there are elements

    Raises SignatureError as `reduce`, and for another type or a negative number of bins.

        >>> irgrad.parallel.histogram(add, 0.0, 3)(np.array([0, 2, 0]), np.array([1.0, 2.0, 4.0]))
        array([5., 0., 2.])
    """
    op = Operator(operator)
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 0:
        raise SignatureError(f"bins = {bins!r} is no number of bins", fix="an integer of at least 0")
    constants = _neutral(op, neutral)
    names = _Names(op)
    n, at = names.fresh("n"), names.fresh("at")
    inputs, results = [part.name for part in op.parts], names.results()
    signature = Signature(
        [Parameter(at, _index(index), (NameExtent(n),)), *_arrays(op, inputs, NameExtent(n), "in"), *_shared(op),
         Parameter(n, DTYPES["i64"]), *_arrays(op, results, ConstExtent(bins), "out")]
    )  # fmt: skip
    arrays = at, inputs, results, constants, n, bins
    if threads is None:
        return _made(op.kernel, "histogram", signature, op, lambda body, text: histogram_text(body, text, *arrays))
    marks = names.fresh("marks")
    inside = Signature([*signature.parameters, Parameter(marks, DTYPES["u8"], (ConstExtent(bins),), "inout")])

    def written(body: Body, text: str) -> str:
        own = f"{op.kernel.source.name}.bins"
        text = histogram_text(Body(own, inside, op, part=True), text, *arrays, marks)
        return histogram_in_blocks(body, text, own, *arrays)

    return _made(op.kernel, "histogram_in_blocks", signature, op, written, threads)


def scatter(dtype: str = "f64", shape: Sequence[int] = (), *, index: str = "i64") -> Kernel:
    """Writing by index: a kernel `(target, at, values) -> target` with `target[at[i]] = values[i]`, the last one wins.

    dtype, shape: of one element; `target` is `[m, ...]`, `values` `[n, ...]`
    index:        as for `histogram`; elements without a place in `target` are passed over

    Raises SignatureError for types that it does not know.

        >>> irgrad.parallel.scatter()(np.zeros(3), np.array([2, 0]), np.array([5.0, 7.0]))
        array([7., 0., 5.])
    """
    if dtype not in DTYPES or dtype == "bool":
        raise SignatureError(f"dtype = {dtype!r} is not known", fix="dtype = " + " or ".join(sorted(DTYPES)))
    kind, extents = DTYPES[dtype], tuple(ConstExtent(int(extent)) for extent in shape)
    signature = Signature([
        Parameter("target", kind, (NameExtent("m"), *extents), "inout"),
        Parameter("at", _index(index), (NameExtent("n"),)), Parameter("values", kind, (NameExtent("n"), *extents)),
        Parameter("m", DTYPES["i64"]), Parameter("n", DTYPES["i64"]),
    ])  # fmt: skip
    body = Body("scatter", signature)
    text = scatter_text(body, "", "at", "n", "m", kind, math.prod(shape), ("target", "values"))
    return Kernel(text, "scatter", signature, Options())


class _Names:
    """Names of parameters that are not taken."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.taken = {p.name for p in op.parameters} - {part.result for part in op.parts}

    def fresh(self, name: str) -> str:
        """This name, or one like it."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def results(self) -> list[str]:
        """Names of the outputs: those of the operator's."""
        return [self.fresh(part.result) for part in self.op.parts]


def _arrays(op: Operator, names: Sequence[Any], extent: Extent | None, intent: str) -> list[Parameter]:
    """A parameter for each part of the state."""
    ahead = () if extent is None else (extent,)
    return [Parameter(name, part.dtype, (*ahead, *_constants(part)), intent)
            for name, part in zip(names, op.parts, strict=True)]  # fmt: skip


def _constants(part: Part) -> tuple[Extent, ...]:
    return tuple(ConstExtent(extent) for extent in part.shape)


def _shared(op: Operator) -> list[Parameter]:
    return [op.parameters[i] for i in op.shared]


def _index(name: str) -> DType:
    if name not in _INDEX:
        raise SignatureError(f"index = {name!r} is not known", fix="index = " + " or ".join(f'"{w}"' for w in _INDEX))
    return DTYPES[name]


def _made(
    kernel: Kernel, what: str, signature: Signature, op: Operator, written: Callable[[Body, str], str],
    threads: int | str | None = None,
) -> Kernel:  # fmt: skip
    """The kernel of a function that is added to the operator's module."""
    from irgrad.engine.codegen.cache import fingerprint

    source = kernel.source
    name = f"{source.name}.{what}"
    text = written(Body(name, signature, op), source.text)
    said = f"{source.options.layout}{what} {fingerprint(text.removeprefix(source.text))}"
    options = replace(source.options, layout=said)
    options = options if threads is None else replace(options, threads=team_size(threads))
    return Kernel(text, name, signature, options, digest=source.digest, code=source.code)


def _neutral(op: Operator, neutral: Any) -> Neutral:
    """The neutral element as constants of IR. Raises SignatureError where it does not fit."""
    import numpy as np

    rows = [neutral] if len(op.parts) == 1 else list(neutral) if isinstance(neutral, list | tuple) else None
    if rows is None or len(rows) != len(op.parts):
        raise SignatureError("the neutral element does not fit the operator", where=f"`{op.kernel.signature}`",
                             because=f"the state has {len(op.parts)} parts", fix="a tuple with one entry for each")
    found = []
    for part, row in zip(op.parts, rows, strict=True):
        try:
            array = np.broadcast_to(np.asarray(row, part.dtype.numpy), part.shape)
        except (TypeError, ValueError, OverflowError) as error:
            raise SignatureError("the neutral element does not fit the operator", which=f"`{part.name}`",
                                 because=str(error), fix=f"{part.dtype} of shape {part.shape}, or a number") from None
        found.append([_constant(value, part.dtype) for value in array.reshape(-1)])
    return found


def _constant(value: Any, dtype: DType) -> str:
    """A number as a constant of IR."""
    if dtype.name in ("f16", "bf16"):
        return f"0x{'H' if dtype.name == 'f16' else 'R'}{int(value.view('uint16')):04X}"
    if dtype.is_float:  # float constants are written as the double of the same value
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"
    return str(int(value))
