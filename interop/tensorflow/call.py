"""A Kernel called with tensors of TensorFlow: each program is recorded with a gradient that applies others.

Gradients of every order follow (see `programs/terms`): nested tapes record the calls that a gradient is made of. Where
a `GradientTape` watches, a call keeps the tape of its sweep for them (`lib.kernel(..., tape=)`). In a graph
(`tf.function`) a program is a `tf.numpy_function`, which runs in this process and which XLA cannot compile.
"""

# pyright: reportMissingImports=false, reportMissingModuleSource=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.record import record_operation, should_record_backprop, stop_recording

from irgrad.engine.kernel.binding import address_of, as_array, as_scalar
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.slots import TAPE
from irgrad.interop.programs import plans
from irgrad.interop.programs.arguments import Values, bound_call
from irgrad.interop.programs.terms import OPERAND
from irgrad.rules.errors import DTypeError, ShapeError, Unsupported

__all__ = ["call", "owns"]

Words = tuple[int, ...]


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
        """The results, without a record. A tape stays an array where nothing waits for a graph."""
        if tf.executing_eagerly() and all(isinstance(x, np.ndarray) or hasattr(x, "numpy") for x in operands):
            out = self.compute(*(x if isinstance(x, np.ndarray) else x.numpy() for x in operands))
            return [y if i == TAPE else tf.convert_to_tensor(y) for i, y in zip(self.spec.results, out, strict=True)]
        kinds = [tf.dtypes.as_dtype(kind) for _, kind in self.results]
        out = tf.numpy_function(self.compute, list(operands), kinds, name=f"irgrad_{self.spec.kernel.name}")
        for y, (shape, _) in zip(out, self.results, strict=True):
            y.set_shape(shape)
        return list(out)

    def compute(self, *operands: Any) -> list[Any]:
        """The results of a native call on NumPy arrays."""
        native = self.native
        rows = [np.require(x, kind, ["C", "A"]) for x, (_, kind) in zip(operands, native.operands, strict=True)]
        out = [(np.zeros if zero else np.empty)(shape, kind)
               for (shape, kind), zero in zip(native.results, native.zeroed, strict=True)]  # fmt: skip
        native([address_of(x) for x in rows], [address_of(y) for y in out])
        return out

    @cached_property
    def parts(self) -> tuple[Words, Words]:
        """The operands that have gradients, and the results that have cotangents: their numbers."""
        return (tuple(n for n, index in enumerate(self.spec.members) if self.spec.flows(index)),
                tuple(n for n, flows in enumerate(self.flows) if flows))  # fmt: skip


def _apply(plan: Plan, operands: Sequence[Any], tape: tuple[Any, ...] = ()) -> list[Any]:
    """The results of a program, recorded for whoever watches. tape: what it reads beside the operands: it says nothing
    that they do not say, and so the derivatives are those of the program without it."""
    xs, at = list(operands), len(plan.spec.inputs) - 1
    plain = plan.plain if tape else plan
    taped = plan.taped(plain.parts[0]) if not tape and should_record_backprop(xs) else None
    kept: list[Any] = []

    def results(*given: Any) -> tuple[Any, ...]:
        out = (taped or plan).run([*given[:at], *tape, *given[at:]] if tape else given)
        kept[:] = out[len(plain.results) :]
        return tuple(out[: len(plain.results)])

    def gradient(*cotangents: Any) -> list[Any]:
        sums: dict[int, Any] = {}
        for part, term in (plain.gradients if taped is None else taped.from_tape)(*plain.parts):
            rows = [xs[n] if kind == OPERAND else tf.convert_to_tensor(cotangents[n])
                    for kind, n in term.operands if (kind, n) != (OPERAND, len(xs))]  # fmt: skip
            for target, value in zip(term.targets, _apply(part, rows, tuple(kept)), strict=True):
                sums[target] = sums[target] + value if target in sums else value
        return [sums.get(n) for n in range(len(xs))]

    if not xs:
        return list(results())
    with stop_recording():  # in a graph, of what the results are made of: forward mode would take its tangents, zeros
        if tf.executing_eagerly():
            out = results(*xs)
        else:
            out = tf.custom_gradient(lambda *given: (results(*given), gradient))(*xs)
    record_operation("irgrad", out, xs, gradient)
    return list(out)


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
