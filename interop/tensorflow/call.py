"""A Kernel called with tensors of TensorFlow: each program is a `tf.custom_gradient` whose gradient applies others.

Gradients of every order follow (see `programs/terms`): nested tapes record the calls that a gradient is made of. In a
graph (`tf.function`) a program is a `tf.numpy_function`, which runs in this process and which XLA cannot compile.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from irgrad.engine.kernel.binding import address_of, as_array, as_scalar
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.signature.parameter import Parameter
from irgrad.interop.programs import plans
from irgrad.interop.programs.arguments import Values, bound_call
from irgrad.interop.programs.terms import OPERAND
from irgrad.rules.errors import DTypeError, ShapeError, Unsupported

__all__ = ["call", "owns"]


def owns(value: Any) -> bool:
    """Whether a value is a tensor or a variable of TensorFlow."""
    return isinstance(value, tf.Tensor | tf.Variable)


@tf.autograph.experimental.do_not_convert  # type: ignore[misc, untyped-decorator, unused-ignore]
def call(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `kernel(*args, **kwargs)` means in TensorFlow: tensors, with gradients by `tf.GradientTape`.

    Integer scalars given as Python numbers are constants of the call. Raises as the kernel does for NumPy arrays,
    ShapeError for shapes that are open in a graph, Unsupported for tensors that are not in the memory of the CPU. What
    a graph raises when it runs (KernelError) arrives as an error of TensorFlow with the same text.
    """
    made = bound_call(kernel, kernel.ordered(args, kwargs), _VALUES)
    out = _apply(plans.plan_of(Plan, made.spec, made.sizes, made.constants), made.operands)
    return out[0] if len(out) == 1 else tuple(out) if out else None


class Plan(plans.Plan):
    """A plan on tensors."""

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """The results, without a record."""
        if all(hasattr(x, "numpy") for x in operands) and tf.executing_eagerly():
            return [tf.convert_to_tensor(y) for y in self.compute(*(x.numpy() for x in operands))]
        kinds = [tf.dtypes.as_dtype(kind) for _, kind in self.results]
        out = tf.numpy_function(self.compute, list(operands), kinds, name=f"irgrad_{self.spec.kernel.name}")
        for y, (shape, _) in zip(out, self.results, strict=True):
            y.set_shape(shape)
        return list(out)

    def compute(self, *operands: Any) -> list[Any]:
        """The results of a native call on NumPy arrays."""
        rows = [np.require(x, kind, ["C", "A"]) for x, (_, kind) in zip(operands, self.native.operands, strict=True)]
        out = [np.empty(shape, kind) for shape, kind in self.native.results]
        self.native([address_of(x) for x in rows], [address_of(y) for y in out])
        return out


def _apply(plan: Plan, operands: Sequence[Any]) -> list[Any]:
    """The results of a program, recorded for the tapes that watch."""

    @tf.custom_gradient  # type: ignore[misc, untyped-decorator, unused-ignore]
    def program(*xs: Any) -> Any:
        def gradient(*cotangents: Any) -> Any:
            live = tuple([n for n, flows in enumerate(plan.flows) if flows])
            wanted = tuple([n for n, index in enumerate(plan.spec.members) if plan.spec.flows(index)])
            sums: dict[int, Any] = {}
            for part, term in plan.gradients(wanted, live):
                rows = [xs[n] if kind == OPERAND else tf.convert_to_tensor(cotangents[n]) for kind, n in term.operands]
                for target, value in zip(term.targets, _apply(part, rows), strict=True):
                    sums[target] = sums[target] + value if target in sums else value
            return [sums.get(n) for n in range(len(xs))]

        return tuple(plan.run(xs)), gradient

    return list(program(*operands)) if operands else plan.run(operands)


def _operand(value: Any, p: Parameter) -> Any:
    if type(value) in (list, tuple) and any(map(owns, tf.nest.flatten(value))):
        value = tf.stack(value)
    if not owns(value):
        return tf.convert_to_tensor(as_array(value, p) if p.is_array else as_scalar(value, p))
    value = tf.convert_to_tensor(value)
    if tf.executing_eagerly() and "CPU" not in value.device:
        raise Unsupported(f"`{p.name}` is on the device {value.device}", where=f"`{p}`",
                          because="a kernel that is called with tensors runs on the CPU",
                          fix='with tf.device("CPU"): tf.identity(...); for NVIDIA\'s GPUs call the kernel from JAX')
    wanted = tf.dtypes.as_dtype(p.dtype.numpy)
    if value.dtype != wanted:
        raise DTypeError(f"`{p.name}` has dtype {value.dtype.name}, wanted {wanted.name}", where=f"`{p}`",
                         because="dtypes are never converted in silence", fix=f"tf.cast({p.name}, tf.{wanted.name})")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    if not value.shape.is_fully_defined():
        raise ShapeError(f"the shape {value.shape} is not known while the graph is made",
                         because="a kernel is compiled into a graph for one shape",
                         fix="tf.ensure_shape(x, ...), or an input_signature without None")
    return tuple(value.shape)


def _static(value: Any, p: Parameter) -> int:
    if not owns(value):
        return int(as_scalar(value, p))
    if not hasattr(value, "numpy") or value.shape.rank != 0 or not value.dtype.is_integer:
        raise ShapeError(f"`{p.name}` is not known while the function is transformed or compiled", where=f"`{p}`",
                         because="it determines the shape of an array", fix=f"pass `{p.name}` as a Python int")
    return int(value.numpy())


_VALUES = Values(owns, _operand, _static, "tf.map_fn", _shape)
