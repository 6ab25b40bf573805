"""Which arguments and outputs a derivative is about: `wrt` (names or positions), `argnums`, the scalar output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from irgrad.engine.kernel.binding import unknown_name
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.signature.parameter import Parameter, Wrt
from irgrad.rules.errors import ActivityError, SignatureError

__all__ = [
    "active_outputs", "at_types", "by_types", "in_tuple", "plain_kernel", "scalar_output", "selected", "structured",
]  # fmt: skip


def plain_kernel(kernel: Any) -> Kernel:
    """The kernel. Raises SignatureError for anything else, one over trees included."""
    if isinstance(kernel, Kernel):
        return kernel
    from irgrad.engine.kernel.trees import TreeKernel

    if isinstance(kernel, TreeKernel):
        raise SignatureError("a kernel over trees, where the leaves are wanted",
                             because=f"got {kernel!r}", fix="its attribute `kernel` takes the leaves as arguments")
    if hasattr(kernel, "kernel_for"):
        raise SignatureError("a function whose types are those of each call", because=f"got {kernel!r}",
                             fix="f.kernel_for(*arguments) is the kernel for the types of these arguments")
    value = isinstance(kernel, (float, int)) or hasattr(kernel, "dtype")
    raise SignatureError("not a kernel", because=f"got {type(kernel).__name__}",
                         fix="grad(kernel)(*arguments), not grad(kernel(*arguments))" if value
                         else 'lib.kernel("name", "f64(f64[n] x, i64 n)") makes one')  # fmt: skip


def by_types(kernel: Any, make: Callable[[Kernel], Callable[..., Any]]) -> Any:
    """Of a function whose types are those of each call, what `make` makes of its kernel for them; None for others."""
    if not hasattr(kernel, "kernel_for"):
        return None
    made: dict[Kernel, Callable[..., Any]] = {}

    @wraps(kernel)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = kernel.bound(args, kwargs)
        typed = kernel.kernel_for(*given)
        if typed not in made:
            made[typed] = make(typed)
        return made[typed](*given)

    return call


def at_types(kernel: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> tuple[Kernel, tuple[Any, ...]]:
    """A function whose types are those of each call as its kernel for these arguments, which have its defaults then;
    every other kernel as it is."""
    if isinstance(kernel, Kernel) or not hasattr(kernel, "kernel_for"):
        return kernel, tuple(args)
    given = kernel.bound(tuple(args), kwargs or {})
    typed: Kernel = kernel.kernel_for(*given)
    return typed, given


def selected(kernel: Kernel, wrt: Wrt, argnums: Wrt, *, all_floats: bool = False) -> tuple[tuple[int, ...], bool]:
    """C parameter indices of the arguments to differentiate, and whether one was asked for rather than a tuple.

    Names and positions may be mixed; negative positions count from the end. Without any: every float argument when
    `all_floats`, else argument 0, as in JAX. Raises SignatureError (unknown) or ActivityError (not a float).
    """
    signature = plain_kernel(kernel).signature
    where = f"`{signature}`"
    if wrt is not None and argnums is not None:
        raise SignatureError("both `wrt` and `argnums` are given", where=where, fix="give one of them")
    choice = wrt if wrt is not None else argnums
    index = {p.name: i for i, p in enumerate(signature.parameters)}
    if choice is None:
        floats = tuple(index[p.name] for p in signature.arguments if p.dtype.is_float)
        if not floats:
            raise ActivityError("the function has no differentiable argument", where=where,
                                because="no argument is floating-point", fix="differentiate a function of floats")
        if all_floats:
            return floats, False
        choice = 0
    single = isinstance(choice, str | int)
    rows: Sequence[str | int] = [choice] if isinstance(choice, str | int) else list(choice)
    if not rows:
        raise SignatureError("`wrt` is empty", where=where, fix="name at least one argument")
    out = tuple(index[_argument(signature.arguments, row, kernel).name] for row in rows)
    if len(set(out)) != len(out):
        raise SignatureError("`wrt` names an argument twice", where=where, fix="name every argument once")
    return out, single


def in_tuple(kernel: Any, values: Any, call: str) -> None:
    """Raise SignatureError for an array or a number in place of the arguments of a call, which are a tuple."""
    alone = isinstance(values, (str, float, int)) or hasattr(values, "dtype")
    count = len(kernel.signature.arguments) if isinstance(kernel, Kernel) else -1
    if alone and getattr(values, "shape", ())[:1] != (count,):
        raise SignatureError("the arguments are no tuple", because=f"got a {type(values).__name__} in their place",
                             fix=f"{call}, of a function of one argument too")  # fmt: skip


def _argument(arguments: tuple[Parameter, ...], row: str | int, kernel: Kernel) -> Parameter:
    where = f"`{kernel.signature}`"
    names = [p.name for p in arguments]
    if isinstance(row, str):
        if row not in names:
            raise unknown_name(row, names, where, kernel.signature)
        p = arguments[names.index(row)]
    elif not hasattr(row, "__index__"):
        raise SignatureError(f"a {type(row).__name__} is no argument to differentiate by", where=where,
                             because="names and positions are wanted; the values go to the function that is returned",
                             fix="grad(kernel)(*arguments)   or   grad(kernel, wrt=\"" + names[0] + "\")(*arguments)")
    elif not -len(arguments) <= row < len(arguments):
        raise SignatureError(f"there is no argument {row}", where=where,
                             because=f"the call has {len(arguments)} arguments: {', '.join(names)}",
                             fix=f"a position from 0 to {len(arguments) - 1}, or a name")
    else:
        p = arguments[row]
    if not p.dtype.is_float:
        floats = [q.name for q in arguments if q.dtype.is_float]
        raise ActivityError(f"`{p.name}` has no derivative", where=where, because=f"its elements are {p.dtype}",
                            fix="wrt=" + (" or ".join(f'"{n}"' for n in floats) or "a floating-point argument"))
    return p


def active_outputs(kernel: Kernel) -> tuple[int, ...]:
    """Slots of the floating-point outputs, in the order in which a call returns them."""
    slots = plain_kernel(kernel).primal.slots
    return tuple(i for i in kernel.output_positions if slots[i].differentiable)


def scalar_output(kernel: Kernel, of: str | None = None) -> int:
    """The slot of the scalar that `grad` differentiates: the output of that name, else a float return value, or else
    the single float output; it must be of shape () or [1]. Raises ActivityError when there is no such scalar,
    SignatureError when no output has the name."""
    slots = kernel.primal.slots
    floats = active_outputs(kernel)
    if of is not None:
        if of not in kernel.output_names:
            raise unknown_name(of, list(kernel.output_names), f"`{kernel.signature}`", kernel.signature)
        chosen = kernel.output_positions[kernel.output_names.index(of)]
        floats = (chosen,) if chosen in floats else ()
        if floats == (len(slots) - 1,) and kernel.signature.returns is not None:
            return chosen
    elif kernel.signature.returns is not None and kernel.signature.returns.is_float:
        return len(slots) - 1
    scalars = [i for i in floats if all(str(e) == "1" for e in slots[i].parameter.shape or ())]
    if len(floats) == 1 and scalars:
        return scalars[0]
    names = ", ".join(f"`{slots[i].parameter}`" for i in floats) or "no floating-point output"
    raise ActivityError("`grad` needs a scalar-valued function", where=f"`{kernel.signature}`",
                        because=f"it returns {names}" if of is None else f"`{of}` is no floating-point number",
                        fix="return a floating-point number, or declare one that is written `out`" if not floats else
                        "vjp(kernel, *args) with a cotangent   or   jacrev(kernel)   or   jacfwd(kernel)")


def structured(values: list[object], single: bool) -> object:
    """One value, or a tuple of them."""
    return values[0] if single else tuple(values)
