"""Python arguments -> checked buffers, one per C parameter.

Nothing is converted in silence: an array must have the dtype of the signature, a Python number must fit the scalar.
Arrays that are not C-contiguous (or not aligned) are copied; `inout` arguments are always copied, so that a call never
changes its caller's arrays.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from irgrad.engine.signature.dtypes import DType
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import DTypeError, ShapeError, SignatureError

__all__ = ["Binder", "Bound", "address_of", "aligned_zeros", "as_array", "as_scalar", "frame_of"]

Array = np.ndarray[Any, Any]


def address_of(array: Array) -> int:
    """Where an array's elements begin: through the buffer protocol, which takes a quarter of NumPy's own ways' time,
    and otherwise (arrays that are empty, read-only or not contiguous) through NumPy."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type, unused-ignore]
    except (TypeError, ValueError, BufferError):
        return int(array.__array_interface__["data"][0])


def frame_of(buffers: Sequence[Array]) -> Any:
    """What the entry of a program takes: the addresses of the buffers, which have to stay alive elsewhere."""
    return (ctypes.c_void_p * len(buffers))(*map(address_of, buffers))


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """Zeros that begin at a cache line: NumPy's own memory does not, and each vector of lanes would lie across two."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + 64, np.uint8)
    first = -address_of(raw) % 64
    whole: Array = raw[first : first + size].view(dtype).reshape(shape)
    return whole


class Bound:
    """Bound arguments: `sizes` (names in extents) and `buffers` (one per C parameter, None for `out`)."""

    __slots__ = ("buffers", "sizes")

    def __init__(self, buffers: list[Array | None], sizes: dict[str, int]) -> None:
        self.buffers = buffers
        self.sizes = sizes


class Binder:
    """Binds the arguments of Python calls for one signature. Immutable apart from a small memory of shapes."""

    __slots__ = ("_arguments", "_known", "_names", "_out", "_positions", "_scalars", "_sizes", "signature")

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        index = {p.name: i for i, p in enumerate(signature.parameters)}
        self._arguments = [(index[p.name], p, p.dtype.numpy) for p in signature.arguments]
        self._names = {p.name: i for i, p in enumerate(signature.arguments)}
        self._scalars = [row for row in self._arguments if not row[1].is_array and not row[1].dtype.is_float]
        self._sizes = [(index[name], name) for name in sorted(signature.sizes)]
        self._positions = [row for row in self._arguments if row[1].is_array]
        self._known: dict[Any, tuple[dict[str, int], list[tuple[int, Array]]]] = {}

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Bound:
        """Check and convert. Raises SignatureError (count, names), DTypeError or ShapeError."""
        if kwargs or len(args) != len(self._arguments):
            args = self.ordered(args, kwargs)
        buffers: list[Array | None] = [None] * len(self.signature.parameters)
        for (index, p, dtype), value in zip(self._arguments, args, strict=True):
            if not p.is_array:
                buffers[index] = as_scalar(value, p)
            elif type(value) is np.ndarray and value.dtype == dtype and value.flags.carray:
                buffers[index] = value.copy() if p.is_output else value
            else:
                buffers[index] = as_array(value, p)
        sizes, fills = self._solve(buffers)
        for index, filled in fills:
            buffers[index] = filled
        return Bound(buffers, sizes)

    def _solve(self, buffers: list[Array | None]) -> tuple[dict[str, int], list[tuple[int, Array]]]:
        key = tuple([buffers[i].shape for i, _, _ in self._positions]  # type: ignore[union-attr]
                    + [buffers[i].item() for i, _, _ in self._scalars])  # type: ignore[union-attr]
        known = self._known.get(key)
        if known is None:
            shapes = {p.name: _buffer(buffers[i]).shape for i, p, _ in self._positions}
            scalars = {p.name: int(_buffer(buffers[i]).item()) for i, p, _ in self._scalars}
            sizes = self.signature.solve(shapes, scalars)
            fills = [(i, as_scalar(sizes[name], self.signature.parameters[i])) for i, name in self._sizes]
            known = (sizes, fills)
            if len(self._known) < 256:
                self._known[key] = known
        return known

    def ordered(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments in order. Raises SignatureError for a wrong count, unknown, double or missing names."""
        names = self._names
        if len(args) == len(names) and not kwargs:
            return list(args)
        where, listed = f"`{self.signature}`", ", ".join(names)
        if len(args) > len(names):
            hidden = ", ".join(f"`{name}`" for name in sorted(self.signature.sizes))
            outs = ", ".join(f"`{p.name}`" for p in self.signature.parameters if p.is_output and not p.is_input)
            notes = [f"the size arguments {hidden} are filled from the shapes"] if hidden else []
            notes += [f"the outputs {outs} are returned"] if outs else []
            raise SignatureError(f"got {len(args)} arguments, wanted {len(names)}", where=where,
                                 because="; ".join(notes), fix=f"call it with ({listed})")
        values: dict[str, Any] = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise unknown_name(name, names, where, self.signature)
            if name in values:
                raise SignatureError(f"argument `{name}` is given twice", where=where, fix=f"call it with ({listed})")
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing:
            raise SignatureError(f"argument `{missing[0]}` is missing", where=where,
                                 because=f"got {len(values)} of {len(names)} arguments", fix=f"call it with ({listed})")
        return [values[name] for name in names]


def unknown_name(name: str, known: Iterable[str], where: str, signature: Signature) -> SignatureError:
    """The error for a name that no argument has, with the nearest ones."""
    known = list(known)
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if name in signature.sizes:
        because, near = f"`{name}` is a size argument: it is filled from the shapes", []
    elif any(p.name == name and not p.is_input for p in signature.parameters):
        because, near = f"`{name}` is an output", []
    else:
        because = "the arguments are " + ", ".join(f"`{k}`" for k in known)
    return SignatureError(f"there is no argument `{name}`", where=where, because=because,
                          fix=f"did you mean `{near[0]}`?" if near else "choose one of " + ", ".join(known))


def _buffer(array: Array | None) -> Array:
    if array is None:
        raise AssertionError("an input has no buffer")
    return array


def as_array(value: Any, p: Parameter) -> Array:
    """An array argument as a C-contiguous, aligned array of the parameter's dtype (a copy for inout)."""
    dtype = p.dtype.numpy
    if isinstance(value, list | tuple | int | float):
        array = _from_python(value, p)
    else:
        try:
            array = _exchanged(value)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            _refuse_tracer(value, p)
            raise DTypeError(f"`{p.name}` is not an array", where=f"`{p}`",
                             because=f"got {type(value).__name__}: {error}",
                             fix=f"pass a NumPy array of {dtype.name}") from None
        if array.dtype.kind in "OUS":
            raise DTypeError(f"`{p.name}` is not an array of numbers", where=f"`{p}`",
                             because=f"got {type(value).__name__}, of dtype {array.dtype}",
                             fix=f"pass a NumPy array of {dtype.name}")
    if array.dtype != dtype:
        raise _dtype_error(p, array.dtype, f"{p.name}.astype(np.{dtype.name})")
    return np.array(array, dtype=dtype, order="C", copy=True) if p.is_output else np.require(array, dtype, ["C", "A"])


def _exchanged(value: Any) -> Array:
    """An array of NumPy on the memory of another library's (by `__dlpack__`, where NumPy knows no other way)."""
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__") and not hasattr(value, "__array_interface__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def _refuse_tracer(value: Any, p: Parameter) -> None:
    """Raise SignatureError for a value of JAX that is known at run time only."""
    kind = type(value)
    if kind.__module__.startswith("jax") and "Tracer" in kind.__name__:
        raise SignatureError(f"`{p.name}` is traced by JAX", where=f"`{p}`",
                             because=f"got {kind.__name__}, wanted numbers: this function is one for NumPy",
                             fix="inside of jax.jit and the like call the kernel itself, it is a JAX function: "
                                 "jax.grad(kernel), jax.vmap(kernel), ...")


def _from_python(value: Any, p: Parameter) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"`{p.name}` is a ragged list", where=f"`{p}`", because=str(error),
                         fix="pass rows of one length") from None
    fits = array.dtype.kind in "iufb" if p.dtype.is_float else array.dtype.kind in "iub"
    if not fits and array.size:
        raise _dtype_error(p, array.dtype, f"np.asarray({p.name}, dtype=np.{p.dtype.numpy.name})")
    if not p.dtype.is_float and array.size:
        low, high = p.dtype.bounds
        if array.min() < low or array.max() > high:
            raise DTypeError(f"`{p.name}` does not fit into {p.dtype}", where=f"`{p}`",
                             because=f"its values reach from {array.min()} to {array.max()}, wanted {low} to {high}",
                             fix="use a wider integer type in the signature and in C")
    return array.astype(p.dtype.numpy)


def _dtype_error(p: Parameter, got: Any, fix: str) -> DTypeError:
    return DTypeError(f"`{p.name}` has dtype {got}, wanted {p.dtype.numpy.name}", where=f"`{p}`",
                      because="dtypes are never converted in silence", fix=fix)


def as_scalar(value: Any, p: Parameter) -> Array:
    """A scalar argument as a 0-d array. Python numbers fit when their value does; NumPy ones when nothing is lost."""
    kind = type(value)
    if p.dtype.is_float:
        if kind is float or kind is int or kind is bool:
            return np.array(value, p.dtype.numpy)
    elif kind is int or kind is bool:
        return _in_range(value, p)
    return _numpy_scalar(value, p)


def _in_range(value: int, p: Parameter) -> Array:
    low, high = p.dtype.bounds
    if not low <= value <= high:
        raise DTypeError(f"`{p.name}` = {value} does not fit into {p.dtype}", where=f"`{p}`",
                         because=f"{p.dtype} reaches from {low} to {high}",
                         fix="pass a smaller value, or use a wider type in the signature and in C")
    return np.array(value, p.dtype.numpy)


def _numpy_scalar(value: Any, p: Parameter) -> Array:
    dtype: DType = p.dtype
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        _refuse_tracer(value, p)
        array = np.asarray(None)
    if array.ndim and array.dtype.kind in "iufb":
        raise ShapeError(f"`{p.name}` is an array of shape {array.shape}, wanted a scalar", where=f"`{p}`",
                         because="the signature passes it by value",
                         fix=f"pass a number, or declare `{dtype}[n] {p.name}`")
    if array.dtype.kind in "iub" and not dtype.is_float:
        return _in_range(int(array), p)
    if array.dtype.kind in "iub" or array.dtype == dtype.numpy or (
        dtype.is_float and array.dtype.kind == "f" and np.can_cast(array.dtype, dtype.numpy, "safe")
    ):
        return array.astype(dtype.numpy)
    got = array.dtype if array.dtype.kind in "fc" else type(value).__name__
    raise DTypeError(f"`{p.name}` is a {got}, wanted {dtype.numpy.name}", where=f"`{p}`",
                     because="dtypes are never converted in silence",
                     fix=f"{'float' if dtype.is_float else 'int'}({p.name})")
