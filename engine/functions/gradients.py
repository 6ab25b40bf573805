"""`grad`, `value_and_grad`, `jvp`, `vjp`, `hvp`: single derivatives of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from irgrad.engine.kernel.binding import Bound, frame_of
from irgrad.engine.kernel.frames import MISSED, Calls
from irgrad.engine.kernel.kernel import Kernel, Prepared, plain
from irgrad.engine.kernel.pages import copied
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.run import Run, like
from irgrad.engine.kernel.select import (
    active_outputs,
    at_types,
    by_types,
    in_tuple,
    plain_kernel,
    scalar_output,
    selected,
    structured,
)
from irgrad.engine.signature.parameter import Wrt
from irgrad.rules.errors import IRGradError, SignatureError
from irgrad.rules.layers import token

if TYPE_CHECKING:
    from irgrad.engine.kernel.trees import TreeGradient, TreeKernel

__all__ = ["Gradient", "forward_over_reverse", "grad", "hvp", "jvp", "value_and_grad", "vjp"]

Array = np.ndarray[Any, Any]


class Gradient:
    """The gradient of a scalar-valued kernel, callable like the kernel. Made by `grad` and `value_and_grad`."""

    def __init__(self, kernel: Kernel, wrt: Wrt, argnums: Wrt, with_value: bool, of: str | None = None) -> None:
        self.kernel = kernel
        self.positions, self.single = selected(kernel, wrt, argnums)
        self.target = scalar_output(kernel, of)
        self.of = of
        self.with_value = with_value
        self.__name__ = f"{'value_and_' if with_value else ''}grad_{kernel.name}"
        self.__doc__ = f"Gradient of `{kernel.signature}`."
        self._plan: tuple[list[int], list[int], int] | None = None
        self._calls: tuple[Any, Calls] | None = None

    @property
    def program(self) -> Program:
        """The reverse program: active are the arguments asked for and the scalar output."""
        active = (*self.positions, self.target)
        return self.kernel.primal.vjp(active) if self.with_value else self.kernel.primal.pullback(active)

    def valued(self, kernel: Kernel | None = None) -> Gradient:
        """The same gradient together with the value. kernel: of this one, which has the same arguments."""
        if self.with_value and kernel is None:
            return self
        names = tuple(self.kernel.signature.parameters[i].name for i in self.positions)  # sizes have positions, too
        return Gradient(kernel or self.kernel, names[0] if self.single else names, None, with_value=True, of=self.of)

    @property
    def tape_bytes(self) -> int:
        """The most tape memory that one call has used so far, in bytes."""
        return self.program.tape_bytes

    def _layout(self) -> tuple[list[int], list[int], int]:
        """Where the frame takes its buffers from (C parameter, -1 for zeros), gradients, and the cotangent's slot."""
        if self._plan is None:
            program, count = self.program, len(self.kernel.signature.parameters)
            origin = [s.index if not s.steps and s.index < count else -1 for s in program.slots]
            gradients = [_slot(program, i, 0) for i in self.positions]
            self._plan = (origin, gradients, _slot(program, self.target, 0))
        return self._plan

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The gradient at these arguments: one array, or a tuple when `wrt` is one; `(value, gradient)` with value.

        Gradients have shape and dtype of their arguments. Raises as the kernel does.
        """
        if not kwargs:
            calls = self._calls
            if calls is None or calls[0] != token():
                calls = self._quick()
            given = calls[1](args)
            if given is not MISSED:
                if self.with_value:
                    value, *gradients = given
                    return value, gradients[0] if self.single else tuple(gradients)
                return given[0] if self.single else tuple(given)
        bound = self.kernel.bind(args, kwargs)
        full = self._buffers(bound)

        def again() -> None:
            for buffer, fresh in zip(full, self._buffers(self.kernel.bind(args, kwargs)), strict=True):
                buffer[...] = fresh

        self.program.within_limit(frame_of(full), full, again)
        gradients = [plain(full[i]) for i in self._layout()[1]]
        result = structured(gradients, self.single)
        if not self.with_value:
            return result
        return full[_slot(self.program, self.target)].reshape(())[()], result

    def _quick(self) -> tuple[Any, Calls]:
        """The rules that are in force, and calls by them."""
        origin, gradients, cotangent = self._layout()
        results = [_slot(self.program, self.target), *gradients] if self.with_value else gradients
        kernel = self.kernel
        self._calls = token(), Calls(self.program, kernel.signature, kernel.bind, origin, results, [cotangent])
        return self._calls

    def _buffers(self, bound: Bound) -> list[Array]:
        origin, _, cotangent = self._layout()
        given = bound.buffers
        full = self.program.fill([given[i] if i >= 0 else None for i in origin], bound.sizes)
        full[cotangent][...] = 1
        return full

    def prepare(self, *args: Any, **kwargs: Any) -> Prepared:
        """A call without arguments on buffers made now, for measuring: it sets gradients to zero and the cotangent to
        one, and runs the native code. `outputs` are the gradients."""
        bound = self.kernel.bind(args, kwargs)
        full = self._buffers(bound)
        reset: list[tuple[Array, Array | float]] = []
        for number, slot in enumerate(self.program.slots):
            if slot.role == "inout":
                reset.append((full[number], full[number].copy() if full[number].any() else 0.0))
        return Prepared(self.program, full, reset, [full[i] for i in self._layout()[1]])

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self.kernel.signature}>"


@overload
def grad(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None, of: str | None = None) -> Gradient: ...


@overload
def grad(
    kernel: TreeKernel[Kernel], wrt: Wrt = None, *, argnums: Wrt = None, of: str | None = None
) -> TreeGradient: ...


def grad(
    kernel: Kernel | TreeKernel[Kernel], wrt: Wrt = None, *, argnums: Wrt = None, of: str | None = None
) -> Gradient | TreeGradient:
    """The gradient of a scalar-valued kernel (reverse mode) as a function of the kernel's arguments.

    kernel: returns a float, or has a single float output of shape () or [1]; also `kernel.tree(...)`, and kernels of
            functions with structs
    wrt:    argument names or positions, one or several; argument 0 by default (`argnums` is the same by position)
    of:     the name of the output to differentiate, where there are several ("return" for the returned value)

    Returns a function that gives one array, or a tuple of arrays when `wrt` is a tuple; of trees and structs it gives
    trees (None for integers). Source of the method: reverse accumulation on optimised IR (Moses and Churavy, NeurIPS
    2020). Raises ActivityError when the kernel is not scalar-valued or an argument is not floating-point,
    SignatureError for an unknown argument.

        >>> irgrad.grad(f)(3.0, 2.0)
        np.float64(12.0)
        >>> irgrad.grad(f, wrt=("x", "y"))(3.0, 2.0)
        (np.float64(12.0), np.float64(9.0))
    """
    made = by_types(kernel, lambda k: grad(k, wrt, argnums=argnums, of=of))
    made = made or _over_trees(kernel, grad, wrt, argnums, of)
    return made or Gradient(plain_kernel(kernel), wrt, argnums, with_value=False, of=of)


@overload
def value_and_grad(kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None, of: str | None = None) -> Gradient: ...


@overload
def value_and_grad(
    kernel: TreeKernel[Kernel], wrt: Wrt = None, *, argnums: Wrt = None, of: str | None = None
) -> TreeGradient: ...


def value_and_grad(
    kernel: Kernel | TreeKernel[Kernel], wrt: Wrt = None, *, argnums: Wrt = None, of: str | None = None
) -> Gradient | TreeGradient:
    """The value and the gradient of a scalar-valued kernel, from one native call.

    Arguments as of `grad`. Returns a function that gives `(value, gradient)`: the value is a scalar of the kernel's
    dtype, the gradient is what `grad` gives. Raises as `grad` does.

        >>> irgrad.value_and_grad(f, wrt="y")(3.0, 2.0)
        (np.float64(18.0), np.float64(9.0))
    """
    made = by_types(kernel, lambda k: value_and_grad(k, wrt, argnums=argnums, of=of))
    made = made or _over_trees(kernel, value_and_grad, wrt, argnums, of)
    return made or Gradient(plain_kernel(kernel), wrt, argnums, with_value=True, of=of)


def _over_trees(
    kernel: Any, function: Callable[..., Any], wrt: Wrt, argnums: Wrt, of: str | None
) -> TreeGradient | None:
    """The gradient of a kernel over trees; None for every other kernel, which then imports nothing about them."""
    if isinstance(kernel, Kernel):
        return None
    from irgrad.engine.kernel.trees import TreeGradient, TreeKernel

    make = function if of is None else partial(function, of=of)
    return TreeGradient(kernel, make, wrt, argnums) if isinstance(kernel, TreeKernel) else None


def _tree(kernel: Any) -> Any:
    """The kernel, where it is one over trees; None for every other, which then imports nothing about them."""
    if isinstance(kernel, Kernel):
        return None
    from irgrad.engine.kernel.trees import TreeKernel

    return kernel if isinstance(kernel, TreeKernel) else None


@overload
def jvp(kernel: Kernel) -> Callable[[Sequence[Any], Sequence[Any]], tuple[Any, Any]]: ...


@overload
def jvp(kernel: Kernel, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]: ...


def jvp(kernel: Kernel, primals: Sequence[Any] | None = None, tangents: Sequence[Any] | None = None) -> Any:
    """Outputs and their directional derivative (forward mode): `(out, tangent of out)`.

    primals:  the kernel's arguments
    tangents: one per argument, of its shape and dtype; None (or anything, for integer arguments) for no perturbation
              (of a kernel over trees, or structs: a tree like the argument, in which leaves may be None)

    `jvp(kernel)` is the function of `(primals, tangents)`.

    Outputs that are not floating-point have the tangent None. Raises as the kernel does, and ShapeError or DTypeError
    for a tangent that does not fit.

        >>> irgrad.jvp(f, (3.0, 2.0), (1.0, None))
        (np.float64(18.0), np.float64(12.0))
    """
    if primals is None and tangents is None and hasattr(kernel, "kernel_for"):
        return partial(jvp, kernel)
    if primals is not None and tangents is not None:
        in_tuple(kernel, primals, "jvp(kernel, (x,), (t,))")
        in_tuple(kernel, tangents, "jvp(kernel, (x,), (t,))")
        kernel, given = at_types(kernel, primals)
        primals, tangents = given, [*tangents, *([None] * (len(given) - len(primals)))]
    tree = _tree(kernel)
    kernel = plain_kernel(kernel) if tree is None else kernel
    if primals is None or tangents is None:
        _both_or_none(primals, tangents, f"`{kernel.signature}`")
        return partial(jvp, kernel)
    if tree is not None:
        return tree.jvp(jvp, primals, tangents)
    bound = kernel.bind(tuple(primals), {})
    arguments = kernel.signature.arguments
    if len(tangents) != len(arguments):
        raise SignatureError(f"got {len(tangents)} tangents for {len(arguments)} arguments",
                             where=f"`{kernel.signature}`", fix="one per argument, None for no perturbation")
    index = {p.name: i for i, p in enumerate(kernel.signature.parameters)}
    moved = {index[p.name]: tangent for p, tangent in zip(arguments, tangents, strict=True)
             if tangent is not None and p.dtype.is_float}  # fmt: skip
    program = kernel.primal.jvp((*moved, *active_outputs(kernel)))
    start = {}
    for position, tangent in moved.items():
        primal = bound.buffers[position]
        if primal is not None:
            name = f"tangent of `{arguments_name(kernel, position)}`"
            start[_slot(program, position, 0)] = like(tangent, primal, name)
    full = Run(program, bound, start)()
    return _outputs(kernel, program, full), _outputs(kernel, program, full, 0)


def vjp(kernel: Kernel, *primals: Any, wrt: Wrt = None) -> Any:
    """Outputs and the pullback (reverse mode): `(out, pullback)`; `pullback(cotangent)` gives the gradients.

    primals: the kernel's arguments (or one tuple of them); without any, `vjp(kernel)` is the function of them
    wrt:     arguments to differentiate; all floating-point ones by default, then the pullback returns a tuple

    The pullback takes one cotangent, or a tuple of them when there are several outputs (None for an output that is
    not floating-point or has no cotangent). It runs primal and reverse in one native call (combined mode): nothing is
    kept between `vjp` and the pullback but the arguments, which are copied.

    Gradients have the shapes and dtypes of their arguments. Raises as the kernel does, and SignatureError, ShapeError
    or DTypeError for cotangents that do not fit.

        >>> y, pullback = irgrad.vjp(squares, np.array([1.0, 2.0]), wrt="x")
        >>> pullback(np.array([1.0, 10.0]))
        array([ 2., 40.])
    """
    if not primals and hasattr(kernel, "kernel_for"):
        return partial(vjp, kernel, wrt=wrt)
    kernel, primals = at_types(kernel, primals)
    tree = _tree(kernel)
    if tree is not None:
        return tree.vjp(vjp, primals, wrt) if primals else partial(vjp, kernel, wrt=wrt)
    kernel = plain_kernel(kernel)
    if len(primals) == 1 and isinstance(primals[0], tuple) and len(kernel.signature.arguments) != 1:
        primals = primals[0]
    positions, single = selected(kernel, wrt, None, all_floats=True)
    if not primals:
        return partial(vjp, kernel, wrt=wrt)
    bound = kernel.bind(primals, {})
    kept = Bound([None if b is None else copied(b) for b in bound.buffers], bound.sizes)
    out = kernel(*primals)
    program = kernel.primal.pullback((*positions, *active_outputs(kernel)))
    run = Run(program, kept, {})

    def pullback(cotangent: Any) -> Any:
        """Gradients of the arguments for this cotangent of the outputs."""
        full = run(_cotangents(kernel, program, run, cotangent))
        return structured([plain(copied(full[_slot(program, i, 0)])) for i in positions], single)

    return out, pullback


def _cotangents(kernel: Kernel, program: Program, run: Run, cotangent: Any) -> dict[int, Array | float]:
    outputs = kernel.output_positions
    rows = [cotangent] if len(outputs) == 1 else list(cotangent)
    if len(rows) != len(outputs):
        raise SignatureError(f"got {len(rows)} cotangents for {len(outputs)} outputs", where=f"`{kernel.signature}`",
                             fix="one per output: " + ", ".join(kernel.output_names))
    start: dict[int, Array | float] = {}
    for position, name, row in zip(outputs, kernel.output_names, rows, strict=True):
        number = program.find(position, 0)
        if number is not None:
            start[number] = 0.0 if row is None else like(row, run.buffers[number], f"cotangent of `{name}`")
    return start


def forward_over_reverse(kernel: Kernel, positions: Sequence[int]) -> tuple[Program, int]:
    """The program JV of a scalar-valued kernel and the slot of the scalar's cotangent.

    J acts on the arguments in `positions` and on everything that the reverse program writes.
    """
    reverse, moving, target = reverse_of_scalar(kernel, positions)
    program = reverse.jvp_only(moving)
    return program, _slot(program, target, 0)


def reverse_of_scalar(kernel: Kernel, positions: Sequence[int]) -> tuple[Program, list[int], int]:
    """The reverse program of a scalar-valued kernel, its slots that move with the arguments in `positions` (these, and
    everything that the program writes), and the C parameter of the scalar."""
    target = scalar_output(kernel)
    reverse = kernel.primal.pullback((*positions, target))
    moving = [n for n, s in enumerate(reverse.slots)
              if s.differentiable and (s.role != "in" or (s.index in positions and not s.steps))]  # fmt: skip
    return reverse, moving, target


def hvp(
    kernel: Kernel, primals: Sequence[Any] | None = None, tangents: Any = None, wrt: Wrt = None, *,
    argnums: Wrt = None,
) -> Any:  # fmt: skip
    """Hessian-vector product of a scalar-valued kernel: forward over reverse, one native call.

    primals:  the kernel's arguments;  wrt: arguments of the Hessian, argument 0 by default
    tangents: the vector: one array of the shape of the argument, or a tuple when `wrt` is one

    `hvp(kernel, wrt=...)` is the function of `(primals, tangents)`.

    Returns an array of the shape of the argument, or a tuple of them when `wrt` is one. Raises as `grad` does, and
    SignatureError, ShapeError or DTypeError for a vector that does not fit.

        >>> irgrad.hvp(f, (3.0, 2.0), 1.0, wrt="x")
        np.float64(4.0)
    """
    if primals is not None:
        in_tuple(kernel, primals, "hvp(kernel, (x,), t)")
        kernel, primals = at_types(kernel, primals)
    elif hasattr(kernel, "kernel_for") and tangents is None:
        return partial(hvp, kernel, wrt=wrt, argnums=argnums)
    tree = _tree(kernel)
    if tree is not None and primals is not None and tangents is not None:
        return tree.hvp(hvp, primals, tangents, wrt if wrt is not None else argnums)
    kernel = plain_kernel(kernel) if tree is None else kernel
    positions, single = selected(kernel, wrt, argnums) if tree is None else ((), True)
    if primals is None or tangents is None:
        _both_or_none(primals, tangents, f"`{kernel.signature}`")
        return partial(hvp, kernel, wrt=wrt, argnums=argnums)
    bound = kernel.bind(tuple(primals), {})
    program, cotangent = forward_over_reverse(kernel, positions)
    rows = [tangents] if single else list(tangents)
    if len(rows) != len(positions):
        raise SignatureError(f"got {len(rows)} tangents for {len(positions)} arguments", where=f"`{kernel.signature}`",
                             fix="one per argument in `wrt`")
    start: dict[int, Array | float] = {cotangent: 1.0}
    for position, row in zip(positions, rows, strict=True):
        primal = bound.buffers[position]
        if primal is not None:
            start[_slot(program, position, 1)] = like(row, primal, f"tangent of `{arguments_name(kernel, position)}`")
    full = Run(program, bound, start)()
    return structured([plain(full[_slot(program, i, 0, 1)]) for i in positions], single)


def _both_or_none(primals: Any, tangents: Any, where: str) -> None:
    """Raises SignatureError where one of them is missing."""
    if (primals is None) != (tangents is None):
        missing = "primals" if primals is None else "tangents"
        raise SignatureError(f"`{missing}` is missing", where=where, because="primals and tangents come together",
                             fix="jvp(kernel, primals, tangents), or jvp(kernel) for a function of both; hvp likewise")


def arguments_name(kernel: Kernel, position: int) -> str:
    """Name of a C parameter."""
    return kernel.signature.parameters[position].name


def _slot(program: Program, index: int, *steps: int) -> int:
    number = program.find(index, *steps)
    if number is None:
        raise IRGradError("a slot of a derivative is missing", where=repr(program), because=f"index {index}, {steps}")
    return number


def _outputs(kernel: Kernel, program: Program, full: list[Array], *steps: int) -> Any:
    rows: list[Any] = []
    for position in kernel.output_positions:
        number = program.find(position, *steps)
        rows.append(None if number is None else plain(full[number]))
    return rows[0] if len(rows) == 1 else tuple(rows) if rows else None
