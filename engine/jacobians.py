"""`jacfwd`, `jacrev`, `hessian`: derivatives as arrays, one native call per direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irgrad.engine.gradients import forward_over_reverse
from irgrad.engine.kernel import Kernel
from irgrad.engine.run import Run, basis
from irgrad.engine.select import Wrt, active_outputs, selected

__all__ = ["hessian", "jacfwd", "jacrev"]

Array = np.ndarray[Any, Any]


def jacfwd(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None) -> Callable[..., Any]:
    """The Jacobian by forward mode, one native call per element of the arguments: for few inputs.

    Returns a function of the kernel's arguments. For one output and one argument it gives an array of shape
    `output.shape + argument.shape`; several outputs give a tuple, several arguments a tuple (inside that of outputs),
    as in JAX. Only floating-point outputs are differentiated.
    """
    positions, single = selected(kernel, wrt, argnums)
    outputs = active_outputs(kernel)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        """The Jacobian at these arguments."""
        bound = kernel.bind(args, kwargs)
        program = kernel.primal.T((*positions, *outputs))
        run = Run(program, bound, {})
        tangents = [_found(program.find(o, 0)) for o in outputs]
        blocks: list[list[Array]] = [[] for _ in outputs]
        for position in positions:
            moved = _found(program.find(position, 0))
            shape = run.buffers[moved].shape
            parts = [np.empty((*run.buffers[t].shape, run.buffers[moved].size), run.buffers[t].dtype) for t in tangents]
            for number, unit in basis(shape, run.buffers[moved].dtype):
                full = run({moved: unit})
                for part, tangent in zip(parts, tangents, strict=True):
                    part[..., number] = full[tangent]
            run.start[moved] = 0.0
            for block, part, tangent in zip(blocks, parts, tangents, strict=True):
                block.append(part.reshape((*run.buffers[tangent].shape, *shape)))
        return _nested(blocks, single)

    return jacobian


def jacrev(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None) -> Callable[..., Any]:
    """The Jacobian by reverse mode, one native call per element of the outputs: for few outputs.

    Arguments and result as `jacfwd`.
    """
    positions, single = selected(kernel, wrt, argnums)
    outputs = active_outputs(kernel)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        """The Jacobian at these arguments."""
        bound = kernel.bind(args, kwargs)
        program = kernel.primal.R((*positions, *outputs))
        run = Run(program, bound, {})
        gradients = [_found(program.find(i, 0)) for i in positions]
        blocks: list[list[Array]] = []
        for output in outputs:
            seed = _found(program.find(output, 0))
            shape, dtype = run.buffers[seed].shape, run.buffers[seed].dtype
            parts = [np.empty((run.buffers[seed].size, *run.buffers[g].shape), run.buffers[g].dtype) for g in gradients]
            for number, unit in basis(shape, dtype):
                full = run({seed: unit})
                for part, gradient in zip(parts, gradients, strict=True):
                    part[number] = full[gradient]
            run.start[seed] = 0.0
            blocks.append([part.reshape((*shape, *part.shape[1:])) for part in parts])
        return _nested(blocks, single)

    return jacobian


def hessian(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None) -> Callable[..., Any]:
    """The Hessian of a scalar-valued kernel: forward over reverse, one native call per element of the arguments.

    Returns a function of the kernel's arguments. For one argument it gives an array of shape
    `argument.shape + argument.shape`; for a tuple `wrt` a tuple of tuples of blocks, as in JAX.
    """
    positions, single = selected(kernel, wrt, argnums)

    def second(*args: Any, **kwargs: Any) -> Any:
        """The Hessian at these arguments."""
        bound = kernel.bind(args, kwargs)
        program, cotangent = forward_over_reverse(kernel, positions)
        run = Run(program, bound, {cotangent: 1.0})
        results = [_found(program.find(i, 0, 1)) for i in positions]
        blocks: list[list[Array]] = [[] for _ in positions]
        for position in positions:
            moved = _found(program.find(position, 1))
            shape, size = run.buffers[moved].shape, run.buffers[moved].size
            parts = [np.empty((*run.buffers[r].shape, size), run.buffers[r].dtype) for r in results]
            for number, unit in basis(shape, run.buffers[moved].dtype):
                full = run({moved: unit})
                for part, result in zip(parts, results, strict=True):
                    part[..., number] = full[result]
            run.start[moved] = 0.0
            for block, part, result in zip(blocks, parts, results, strict=True):
                block.append(part.reshape((*run.buffers[result].shape, *shape)))
        return blocks[0][0] if single else tuple(map(tuple, blocks))

    return second


def _nested(blocks: list[list[Array]], single: bool) -> Any:
    rows: list[Any] = [block[0] if single else tuple(block) for block in blocks]
    return rows[0] if len(rows) == 1 else tuple(rows)


def _found(number: int | None) -> int:
    if number is None:
        raise AssertionError("a slot of a derivative is missing")
    return number
