"""Python functions without a signature: a kernel for the types of each call.

    @irgrad.jit
    def energy(pos, mass): ...

A call looks at the types of its arguments: arrays of other ranks or element types are another kernel, made by Numba
when it is wanted first. Extents are free: each axis has a name of its own, so that one kernel takes all sizes.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from irgrad.rules.errors import SignatureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.signature.parameter import Parameter

__all__ = ["LazyKernel"]


class LazyKernel:
    """A Python function that Numba compiles for the types of its arguments.

    It is called as the function is, with NumPy arrays and numbers or, under JAX, with tracers; the derivatives of
    irgrad take it as it is, batches and sparse matrices the kernel for some types, `f.kernel_for(*examples)`. Arrays
    are read; one that the function writes wants a signature with `inout` or `out`.
    """

    def __init__(self, function: Callable[..., Any], compiled: Callable[[Any, list[Parameter]], Kernel]) -> None:
        """compiled: the kernel of a function for parameters (`numba_functions.from_types`)."""
        functools.update_wrapper(self, getattr(function, "py_func", function))
        self.function = function
        self._compiled = compiled
        self.kernels: dict[tuple[tuple[str, int], ...], Kernel] = {}
        self._lock = threading.Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns. Raises what `from_numba` and kernels raise."""
        args = self.bound(args, kwargs)
        return self.kernel_for(*args)(*args)

    def kernel_for(self, *args: Any, **kwargs: Any) -> Kernel:
        """The kernel for arguments of these types: arrays, numbers, or `jax.ShapeDtypeStruct`s."""
        types = tuple(_type(value) for value in self.bound(args, kwargs))
        made = self.kernels.get(types)
        if made is None:
            with self._lock:
                made = self.kernels.get(types) or self._made(types)
                self.kernels[types] = made
        return made

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in their order with defaults. Raises SignatureError for others than the function has."""
        import inspect

        signature = inspect.signature(self)
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise SignatureError(f"`{self._name()}` is called with other arguments", because=str(error),
                                 fix=f"{self._name()}{signature}") from None
        given.apply_defaults()
        return tuple(given.args)

    def _name(self) -> str:
        return str(getattr(self, "__name__", "function"))

    def _made(self, types: tuple[tuple[str, int], ...]) -> Kernel:
        import inspect

        from irgrad.engine.signature.dtypes import DTYPES
        from irgrad.engine.signature.extents import NameExtent
        from irgrad.engine.signature.parameter import Parameter

        parameters = []
        for name, (dtype, rank) in zip(inspect.signature(self).parameters, types, strict=True):
            axes = tuple(NameExtent(f"{name}_{axis}") for axis in range(rank))
            parameters.append(Parameter(name, DTYPES[dtype], axes if rank else None))
        return self._compiled(self.function, parameters)

    def __repr__(self) -> str:
        return f"<irgrad.jit {self._name()}: {len(self.kernels)} kernels>"


def _type(value: Any) -> tuple[str, int]:
    """The element type and the rank of an argument."""
    import numpy as np

    from irgrad.engine.signature.dtypes import DTYPES

    dtype = getattr(value, "dtype", None)
    if dtype is None:
        dtype = np.asarray(value).dtype
    named = next((name for name, known in DTYPES.items() if known.numpy_name == str(dtype)), None)
    if named is None:
        raise SignatureError(f"an argument of type `{dtype}`", because="kernels take floats, integers and booleans",
                             fix="numbers, or arrays of them")
    return named, len(getattr(value, "shape", np.shape(value)))
