"""A Kernel called with tensors: checked arguments become operands of `function.apply`.

The second call with arguments of the same shapes goes a shorter way: its plan is found by the shapes, and what a plan
needs of tensors is looked at one by one.
"""

# pyright: reportMissingImports=false, reportPrivateImportUsage=false, reportAttributeAccessIssue=false
# pyright: reportIncompatibleMethodOverride=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from irgrad.engine.kernel.binding import as_array, as_scalar
from irgrad.engine.kernel.kernel import KERNELS, Kernel
from irgrad.engine.signature.parameter import Parameter
from irgrad.interop.programs.arguments import Values, bound_call, extents_of
from irgrad.interop.programs.plans import plan_of
from irgrad.interop.torch import operator  # noqa: F401 - it registers the operator
from irgrad.interop.torch.function import PLAIN, Plan, apply, modes
from irgrad.rules.errors import DTypeError, IRGradError, ShapeError, Unsupported
from irgrad.rules.layers import token

__all__ = ["call", "owns"]

_MOST_SHAPES = 256
_STRIDED = torch.strided
_Key = tuple[Any, ...]


def owns(value: Any) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value, torch.Tensor)


def call(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `kernel(*args, **kwargs)` means in torch: tensors, with their gradients.

    Integer scalars given as Python numbers are constants of the call. Raises as the kernel does for NumPy arrays,
    Unsupported for tensors that are not dense or not in the memory of the CPU.
    """
    if torch.compiler.is_compiling():
        return _in_graph(kernel.handle, args, kwargs)
    return _call(kernel, args, kwargs)


def _call(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    caller = kernel.adapters.get("torch")
    if caller is None:
        caller = kernel.adapters.setdefault("torch", _Caller(kernel))
    out = caller(kernel.ordered(args, kwargs) if kwargs else args)
    return out[0] if len(out) == 1 else out if out else None


@torch._dynamo.nonstrict_trace  # type: ignore[misc, untyped-decorator, unused-ignore]
def _in_graph(handle: str, args: Any, kwargs: Any) -> Any:
    """A call while `torch.compile` traces: the compiler runs it on tensors without numbers, and records what it does. A
    kernel is no value of a graph, its handle is."""
    kernel = KERNELS.get(handle)
    if kernel is None:
        raise IRGradError(
            "the kernel of a compiled graph is gone",
            which=handle,
            fix="keep the kernel as long as the function that was compiled",
        )
    return _call(kernel, args, kwargs)


class _Caller:
    """Calls of one kernel, with the plans of the shapes that it has seen."""

    __slots__ = ("_kernel", "_known", "_wanted")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._known: dict[_Key, Plan] = {}
        extents = extents_of(kernel)
        self._wanted: list[Any] = []  # of each argument: the dtype of a tensor; None for a constant
        for p in kernel.signature.arguments:
            constant = not p.is_array and (p.name in extents or not p.dtype.is_float)
            self._wanted.append(None if constant else _dtype(p))

    def __call__(self, args: Any) -> Any:
        """The results in a tuple."""
        if len(args) != len(self._wanted) or modes():
            return self._first(args)
        seen: list[Any] = [token()]
        operands = []
        for value, wanted in zip(args, self._wanted):  # noqa: B905 - as long as each other, and it is faster
            kind = type(value)
            if kind in PLAIN and value.dtype is wanted and value.layout is _STRIDED:
                seen.append(value.shape)
                operands.append(value)
            elif kind is int and wanted is None:
                seen.append(value)
            else:
                return self._first(args)
        key = tuple(seen)
        plan = self._known.get(key)
        return self._first(args, key) if plan is None else apply(plan, operands)

    def _first(self, args: Any, key: _Key = ()) -> Any:
        kernel = self._kernel
        args = [_known(value) for value in args]
        made = bound_call(kernel, kernel.ordered(tuple(args), {}), _VALUES)
        plan = plan_of(Plan, made.spec, made.sizes, made.constants)
        if key and len(self._known) < _MOST_SHAPES:
            self._known[key] = plan
        return apply(plan, made.operands)


def _known(value: Any) -> Any:
    """A number that a graph leaves open is fixed, if it is an integer, or is a tensor of the graph."""
    if isinstance(value, torch.SymInt):
        return int(value)
    return torch.scalar_tensor(value, dtype=torch.float64, device="cpu") if isinstance(value, torch.SymFloat) else value


def _dtype(p: Parameter) -> torch.dtype:
    return getattr(torch, _NAMES.get(p.dtype.name, p.dtype.numpy.name))  # type: ignore[no-any-return, unused-ignore]


_NAMES = {"bf16": "bfloat16"}


def _operand(value: Any, p: Parameter) -> torch.Tensor:
    value = _stacked(value, p)
    if not owns(value):
        checked = as_array(value, p) if p.is_array else as_scalar(value, p)
        if p.dtype.name == "bf16":
            return torch.from_numpy(checked.view(np.int16).copy()).view(torch.bfloat16)
        return torch.from_numpy(checked if checked.flags.writeable else checked.copy())
    if value.device.type not in ("cpu", "meta"):
        raise Unsupported(
            f"`{p.name}` is on the device {value.device}",
            where=f"`{p}`",
            because="a kernel that is called with tensors runs on the CPU",
            fix=f"{p.name}.cpu(); for NVIDIA's GPUs call the kernel from JAX",
        )
    if value.layout is not torch.strided:
        raise Unsupported(
            f"`{p.name}` is a tensor with the layout {value.layout}",
            where=f"`{p}`",
            because="kernels read dense arrays",
            fix=f"{p.name}.to_dense()",
        )
    wanted = _dtype(p)
    if value.dtype is not wanted:
        raise DTypeError(
            f"`{p.name}` has dtype {value.dtype}, wanted {wanted}",
            where=f"`{p}`",
            because="dtypes are never converted in silence",
            fix=f"{p.name}.to({wanted})",
        )
    return value


def _stacked(value: Any, p: Parameter) -> Any:
    """A list with tensors in it as one tensor; anything else as it is."""
    if type(value) not in (list, tuple) or not _any_tensor(value):
        return value
    try:
        return torch.stack([_tensor(_stacked(row, p), p) for row in value])
    except (RuntimeError, TypeError) as error:
        raise ShapeError(
            f"`{p.name}` is no array",
            where=f"`{p}`",
            because=str(error).split("\n")[0],
            fix="pass rows of one length and dtype",
        ) from None


def _tensor(value: Any, p: Parameter) -> torch.Tensor:
    return value if owns(value) else torch.as_tensor(value, dtype=_dtype(p), device="cpu")


def _any_tensor(value: Any) -> bool:
    return any(owns(row) or (type(row) in (list, tuple) and _any_tensor(row)) for row in value)


def _static(value: Any, p: Parameter) -> int:
    if not owns(value):
        return int(as_scalar(value, p))
    try:
        if value.dtype.is_floating_point or value.dtype.is_complex or value.dim():
            raise DTypeError(
                f"`{p.name}` is a tensor of shape {tuple(value.shape)} and {value.dtype}",
                where=f"`{p}`",
                because="wanted an integer",
                fix=f"int({p.name})",
            )
        return int(value.item())
    except RuntimeError:
        raise ShapeError(
            f"`{p.name}` is not known while the function is transformed or compiled",
            where=f"`{p}`",
            because="it determines the shape of an array",
            fix=f"pass `{p.name}` as a Python int",
        ) from None


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """Its shape in numbers: one that is left open while a graph is made is fixed by that."""
    return tuple(map(int, tensor.shape))


_VALUES = Values(owns, _operand, _static, "torch.func.vmap", _shape)
