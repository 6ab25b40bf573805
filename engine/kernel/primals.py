"""Functions that C only declares, given in Python or by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irgrad.engine.codegen.symbols import define, is_known
from irgrad.engine.kernel.host import kept
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import LoadError, SignatureError

__all__ = ["primal"]

_NUMBERS: dict[str, Any] = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "bool": ctypes.c_bool,
    **{f"{kind}{bits}": getattr(ctypes, f"c_{word}{bits}")
       for kind, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
}  # fmt: skip
_HELD: dict[str, Any] = {}  # by name: compiled code calls them as long as the process lives
_Function = Callable[..., Any]


def primal(name: str, given: str | Signature | Any) -> Any:
    """Give `name`, a function that sources declare and nothing defines, a body: of Python or of ctypes.

    name:  as C sees it; nothing else in the process may define it
    given: a signature, to decorate a function of Python with; or a function of ctypes, of a library or a callback

    A function of Python gets numbers, and arrays that show the memory of the call: it writes into those that are `out`
    or `inout`, and returns the number that the signature says. Its exceptions are raised by the kernel. It takes the
    GIL for each call, and JAX and batches refuse it. Derivatives come from a rule for `name`, as for any function
    without a body. Kernels made before keep what they have.

    Raises LoadError where the name has a body already, SignatureError for what is no function of ctypes and no
    signature, or has types that Python is not handed.

        >>> @irgrad.primal("lookup", "f64(f64 x)")
        ... def _(x):
        ...     return np.interp(x, [0.0, 1.0], [1.0, 3.0])
        >>> irgrad.load("double lookup(double); double f(double x) { return 2 * lookup(x); }").kernel("f")(0.5)
        np.float64(4.0)
    """
    if name not in _HELD and is_known(name):
        raise LoadError(f"`{name}` has a body already", because="a library that is open here defines it",
                        fix="declare a function of another name in the source, and give that one a body")  # fmt: skip
    if isinstance(given, (str, Signature)):
        signature = given if isinstance(given, Signature) else Signature(given)
        kinds = [_kind(signature, p.dtype.name, p.is_array) for p in signature.parameters]
        result = None if signature.returns is None else _kind(signature, signature.returns.name, array=False)

        def decorate(function: _Function) -> _Function:
            _hold(name, ctypes.CFUNCTYPE(result, *kinds)(_entrance(function, signature)), python=True)
            return function

        return decorate
    if not isinstance(given, ctypes._CFuncPtr):  # type: ignore[attr-defined, unused-ignore]
        raise SignatureError(f"a {type(given).__name__} is no body of `{name}`",
                             because="a function of ctypes is wanted, or a signature for one of Python",
                             fix=f'@irgrad.primal("{name}", "f64(f64 x)")')  # fmt: skip
    _hold(name, given)
    return given


def _hold(name: str, function: Any, *, python: bool = False) -> None:
    _HELD[name] = (*_HELD.get(name, ()), function)
    define(name, ctypes.cast(function, ctypes.c_void_p).value or 0, python=python)


def _kind(signature: Signature, dtype: str, array: bool) -> Any:
    if array:
        return ctypes.c_void_p
    if dtype not in _NUMBERS:
        raise SignatureError(f"a number of type `{dtype}` is not handed to Python", where=f"`{signature}`",
                             fix="f64 or f32")  # fmt: skip
    return _NUMBERS[dtype]


def _entrance(function: _Function, signature: Signature) -> _Function:
    parameters = signature.parameters
    zero = None if signature.returns is None else signature.returns.numpy.type(0).item()

    def run(values: Sequence[Any]) -> Any:
        given = list(zip(parameters, values, strict=True))
        sizes = {p.name: int(value) for p, value in given if not (p.is_array or p.dtype.is_float)}
        found = function(*(_shown(p, value, sizes) for p, value in given))
        if zero is None and found is not None:
            raise SignatureError(f"the body of a void function returns a {type(found).__name__}",
                                 where=f"`{signature}`", fix="write into its `out` arrays: y[...] = value")  # fmt: skip
        return None if zero is None else type(zero)(found)

    return lambda *values: kept(lambda: run(values), zero)


def _shown(p: Any, value: Any, sizes: dict[str, int]) -> Any:
    """The number, or the array at the address."""
    if not p.is_array:
        return value
    shape, dtype = p.extents(sizes), p.dtype.numpy
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(value or 0) if count else b""
    array = np.frombuffer(memory, dtype, count).reshape(shape)
    if count and not p.is_output:
        array.flags.writeable = False
    return array
