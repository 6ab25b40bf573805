"""Arguments of a call in a framework -> operands of a program: which of them are constants, what determines sizes.

The checks of one framework's values come from its adapter; what the signature asks for is decided here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irgrad.engine.kernel.binding import as_scalar
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.signature.parameter import Parameter
from irgrad.interop.programs.algebra import Spec
from irgrad.rules.errors import ShapeError

__all__ = ["Call", "Values", "bound_call", "extents_of"]

Pairs = tuple[tuple[Any, int], ...]


@dataclass(frozen=True, slots=True)
class Values:
    """What an adapter says of its framework's values.

    owns:    whether a value is one of the framework's
    operand: a checked argument as the framework's array; raises DTypeError, ShapeError, ...
    static:  an integer that determines shapes; raises ShapeError for one that is known at run time only
    mapped:  how the framework maps a function over an axis, for messages
    shape:   the shape of an operand
    """

    owns: Callable[[Any], bool]
    operand: Callable[[Any, Parameter], Any]
    static: Callable[[Any, Parameter], int]
    mapped: str
    shape: Callable[[Any], tuple[int, ...]] = lambda operand: tuple(operand.shape)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a kernel: its program and operands; sizes: names in extents; constants: bits of integer arguments."""

    spec: Spec
    operands: list[Any]
    sizes: Pairs
    constants: Pairs


def extents_of(kernel: Kernel) -> frozenset[str]:
    """Names in the extents of arrays."""
    return frozenset(name for p in kernel.signature.parameters for e in p.shape or () for name in e.names())


def bound_call(kernel: Kernel, values: Sequence[Any], of: Values) -> Call:
    """The call for arguments in the order of the signature. Integers that are none of the framework's are constants.
    Raises what `of` raises, ShapeError, and what scalars raise."""
    signature = kernel.signature
    index = {p.name: i for i, p in enumerate(signature.parameters)}
    extents = extents_of(kernel)
    inputs, operands, constants, shapes, scalars = [], [], {}, {}, {}
    for p, value in zip(signature.arguments, values, strict=True):
        if not p.is_array and not p.dtype.is_float and not of.owns(value):
            constants[index[p.name]] = scalars[p.name] = int(as_scalar(value, p))
            continue
        if p.name in extents and not p.is_array:
            constants[index[p.name]] = scalars[p.name] = of.static(value, p)
            continue
        operand = of.operand(value, p)
        inputs.append(index[p.name])
        operands.append(operand)
        if p.is_array:
            shapes[p.name] = of.shape(operand)
        elif operand.shape != ():
            raise ShapeError(
                f"`{p.name}` is an array of shape {tuple(operand.shape)}, wanted a scalar",
                where=f"`{p}`",
                because="the signature passes it by value",
                fix=f"{of.mapped} over it, or pass a number",
            )
    sizes = signature.solve(shapes, scalars)
    for name in signature.sizes:
        constants[index[name]] = int(as_scalar(sizes[name], signature.parameters[index[name]]))
    bits = tuple(sorted((i, _bits(signature.parameters[i], value)) for i, value in constants.items()))
    spec = Spec(kernel, tuple(inputs), wanted=kernel.output_positions, rules=kernel.primal.in_force)
    return Call(spec, operands, tuple(sorted(sizes.items())), bits)


def _bits(p: Parameter, value: int) -> int:
    raw = np.array(value, p.dtype.numpy).tobytes().ljust(8, b"\0")
    return int.from_bytes(raw, "little", signed=True)
