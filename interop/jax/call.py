"""A Kernel called with JAX values: checked arguments become operands of `foreign_call`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from irgrad.engine.kernel.binding import as_array, as_scalar
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.signature.parameter import Parameter
from irgrad.interop.jax import rules, splitting  # noqa: F401 - they register the rules
from irgrad.interop.jax.eager import compiled_call
from irgrad.interop.jax.primitive import BINDER, bind
from irgrad.interop.programs.arguments import Values, bound_call
from irgrad.rules.errors import DTypeError, ShapeError, Unsupported

__all__ = ["call", "owns"]

_WIDE = ("f64", "i64", "u64")


def owns(value: Any) -> bool:
    """Whether a value is a JAX array or tracer."""
    return isinstance(value, jax.Array)


def call(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `kernel(*args, **kwargs)` means in JAX. Raises at trace time, as the kernel does for NumPy arrays.

    Integer scalars given as Python numbers are constants of the call; those that determine extents must be. A kernel
    that reports failure raises `jax.errors.JaxRuntimeError` when its results are waited for, with the message of its
    status; a call whose results nobody uses is not made, as ever in JAX.
    """
    values = kernel.ordered(args, kwargs)
    compiled = compiled_call(kernel, values, _traced) if BINDER.get() is None else None
    return _traced(kernel, *values) if compiled is None else compiled(*values)


def _traced(kernel: Kernel, *values: Any) -> Any:
    _check_x64(kernel)
    _check_results(kernel)
    of = Values(owns, lambda value, p: _operand(value, p, kernel), _static, "jax.vmap")
    made = bound_call(kernel, values, of)
    out = bind(made.spec, made.operands, made.sizes, made.constants, ())
    return out[0] if len(out) == 1 else tuple(out) if out else None


def _operand(value: Any, p: Parameter, kernel: Kernel) -> Any:
    dtype = p.dtype.numpy
    if dtype.itemsize == 8 and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise _x64(f"`{p}`", kernel)  # an integer scalar that is no constant
    value = _stacked(value, p)
    if not owns(value):
        checked = as_array(value, p) if p.is_array else as_scalar(value, p)
        return jax.numpy.asarray(checked)
    if value.dtype == dtype:
        return value
    if getattr(value.aval, "weak_type", False) and np.dtype(value.dtype).kind in ("fiu" if p.dtype.is_float else "iu"):
        return jax.lax.convert_element_type(value, dtype)
    raise DTypeError(f"`{p.name}` has dtype {value.dtype}, wanted {dtype.name}", where=f"`{p}`",
                     because="dtypes are never converted in silence", fix=f"{p.name}.astype(jnp.{dtype.name})")


def _stacked(value: Any, p: Parameter) -> Any:
    """A list with values of JAX in it as one array; anything else as it is."""
    if type(value) not in (list, tuple) or not any(map(owns, jax.tree.leaves(value))):
        return value
    try:
        return jax.numpy.asarray(value)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"`{p.name}` is no array", where=f"`{p}`", because=str(error).split("\n")[0],
                         fix="pass rows of one length and dtype") from None


def _static(value: Any, p: Parameter) -> int:
    try:
        return int(value)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError):
        raise ShapeError(f"`{p.name}` is traced", where=f"`{p}`",
                         because="it determines the shape of an output, and shapes are static under JAX",
                         fix=f"pass `{p.name}` as a Python int (jax.jit(..., static_argnums=...))") from None


def _check_x64(kernel: Kernel) -> None:
    if jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        return
    signature = kernel.signature
    for p in (*signature.arguments, *signature.outputs):
        wide = p.dtype.name in _WIDE and (p.is_array or p.dtype.is_float)
        if wide:
            raise _x64(f"`{p}`", kernel)
    if signature.returns is not None and signature.returns.name in _WIDE and not signature.returns_status:
        raise _x64(f"the return type `{signature.returns}`", kernel)


def _check_results(kernel: Kernel) -> None:
    if kernel.signature.status is not None and not kernel.output_positions:
        raise Unsupported(f"`{kernel.name}` returns nothing but its status", where=f"`{kernel.signature}`",
                          because="JAX makes no call of which no result is used: a failure would pass unnoticed",
                          fix="return the status as a value: leave `status` and `errors` out")


def _x64(what: str, kernel: Kernel) -> DTypeError:
    return DTypeError(f"`{kernel.name}` needs 64-bit types, which JAX has switched off", where=f"`{kernel.signature}`",
                      because=f"{what} is 64 bits wide, and JAX would round it to 32",
                      fix='jax.config.update("jax_enable_x64", True) at the start of the program')
