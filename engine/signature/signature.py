"""`Signature`: a C prototype with shapes.

    signature ::= (["status"] dtype | "void") "(" [parameter ("," parameter)*] ")"
    parameter ::= ["in" | "out" | "inout" | "status"] dtype ["[" [extent ("," extent)*] "]"] name

`f64 x` is a scalar passed by value, `f64[n,3] x` a C-ordered array passed by pointer, `f64[] x` (or `out f64 x`) a
pointer to one element. `out` and `inout` arguments are returned. Extents are integer expressions (see `extents`); an
integer scalar whose name is an extent of an input array is a *size argument*: it is filled from the shapes and is no
argument of the Python call. An integer marked `status`, returned (`status i32(...)`) or written (`status i32 info`), is
no output: another value than 0 is an error (see `status`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irgrad.engine.signature.dtypes import DType
from irgrad.engine.signature.extents import Extent, NameExtent
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.parser import parse_signature
from irgrad.rules.errors import ShapeError, SignatureError

__all__ = ["Signature"]


@dataclass(frozen=True, slots=True, init=False)
class Signature:
    """A prototype with shapes: `Signature("f64(f64[n] x, i64 n)")`, or from its parts.

    parameters: the whole signature as text, or the parameters in the order of the C prototype
    returns:    the return type, None for void; returns_status: it is a status
    sizes:      names of the scalar parameters that shapes determine (filled in, not part of the Python call)

    Raises SignatureError with a caret under the place where a text stops making sense, and for extents that nothing
    determines.

        >>> signature = irgrad.Signature("f64(f64[n,3] pos, out f64[n] y, i64 n)")
        >>> [p.name for p in signature.arguments]
        ['pos']
    """

    parameters: tuple[Parameter, ...]
    returns: DType | None
    sizes: frozenset[str] = field(init=False)
    text: str = field(compare=False)
    returns_status: bool

    def __init__(
        self, parameters: str | Sequence[Parameter], returns: DType | None = None, text: str = "",
        returns_status: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(parameters, tuple | list):
            text = parameters  # type: ignore[assignment]  # `parse_signature` refuses what is no text
            returns, parameters, returns_status = parse_signature(text)
        for name, value in (("parameters", tuple(parameters)), ("returns", returns), ("text", text),
                            ("returns_status", returns_status)):  # fmt: skip
            object.__setattr__(self, name, value)
        determined = _determined(self.parameters)
        scalars = {p.name for p in self.parameters if not p.is_array and not p.dtype.is_float}
        object.__setattr__(self, "sizes", frozenset(determined & scalars))
        for p in self.parameters:
            for extent in p.shape or ():
                loose = extent.names() - determined - scalars
                if loose:
                    name = min(loose)
                    raise SignatureError(
                        f"extent `{name}` is determined by nothing", where=f"`{self}`", which=f"`{p}`",
                        because=f"no input array has `{name}` as an extent and no integer parameter has that name",
                        fix=f"add a parameter `i64 {name}`, or write the extent as a number")

    @property
    def status(self) -> int | None:
        """The parameter that reports failure; the number of parameters stands for the return value, None for none."""
        if self.returns_status:
            return len(self.parameters)
        return next((i for i, p in enumerate(self.parameters) if p.is_status), None)

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters that are arguments of the Python call, in order: inputs that are not size arguments."""
        return tuple(p for p in self.parameters if p.is_input and p.name not in self.sizes)

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        """The out and inout parameters, in order (the return value comes before them)."""
        return tuple(p for p in self.parameters if p.is_output)

    def solve(self, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, int]) -> dict[str, int]:
        """Values of all names in extents, from the shapes of the input arrays and the integer scalars given.

        Every extent of every input array is checked. Raises ShapeError.
        """
        sizes: dict[str, int] = dict(scalars)
        origin: dict[str, str] = {name: f"argument `{name}`" for name in scalars}
        arrays = [p for p in self.parameters if p.is_array and p.is_input]
        for p in arrays:
            _check_rank(self, p, shapes[p.name])
        pending = [(p, axis, extent) for p in arrays for axis, extent in enumerate(p.shape or ())]
        pending.sort(key=lambda row: not isinstance(row[2], NameExtent))
        progress = True
        while progress:
            progress = False
            for p, axis, extent in pending:
                unknown = extent.names() - sizes.keys()
                if len(unknown) != 1:
                    continue
                name = min(unknown)
                if extent.degree(name) != 1:
                    continue
                solution = extent.solve(name, shapes[p.name][axis], sizes)
                if solution is None:
                    raise ShapeError(f"shape {shapes[p.name]} of `{p.name}` does not fit", where=f"`{self}`",
                                     because=f"no integer `{name}` makes `{extent}` equal to {shapes[p.name][axis]}",
                                     fix=f"pass `{p.name}` with an extent of the form `{extent}`")
                sizes[name] = solution
                origin[name] = f"axis {axis} of `{p.name}`"
                progress = True
        for p, axis, extent in pending:
            _check_extent(self, p, axis, extent, shapes[p.name], sizes, origin)
        return sizes

    def __str__(self) -> str:
        status = "status " if self.returns_status else ""
        return f"{status}{self.returns or 'void'}({', '.join(map(str, self.parameters))})"


def _determined(parameters: tuple[Parameter, ...]) -> set[str]:
    """Names that the shapes of the input arrays determine: bare ones first, then affine ones with a single unknown.

    Names of which every occurrence is in an `out` shape are not among them.
    """
    extents = [e for p in parameters if p.is_array and p.is_input for e in p.shape or ()]
    known = {e.name for e in extents if isinstance(e, NameExtent)}
    progress = True
    while progress:
        progress = False
        for extent in extents:
            unknown = extent.names() - known
            if len(unknown) == 1 and extent.degree(min(unknown)) == 1 and _unit_slope(extent, min(unknown)):
                known |= unknown
                progress = True
    return known


def _unit_slope(extent: Extent, name: str) -> bool:
    """Whether the coefficient of `name` is a non-zero number rather than another name, which might be 0 at run time."""
    try:
        zero = dict.fromkeys(extent.names(), 0)
        one = {**zero, name: 1}
        slope = extent.value(one) - extent.value(zero)
        two = dict.fromkeys(extent.names(), 2)
        return slope != 0 and extent.value({**two, name: 3}) - extent.value(two) == slope
    except ZeroDivisionError:
        return False


def _check_rank(signature: Signature, p: Parameter, shape: tuple[int, ...]) -> None:
    rank = len(p.shape or ())
    if len(shape) != rank:
        raise ShapeError(f"`{p.name}` has rank {len(shape)}, wanted rank {rank}", where=f"`{signature}`",
                         because=f"its shape is {shape} and the signature says `{p}`",
                         fix=f"reshape it to [{', '.join(map(str, p.shape or ()))}]")


def _check_extent(
    signature: Signature, p: Parameter, axis: int, extent: Extent, shape: tuple[int, ...],
    sizes: Mapping[str, int], origin: Mapping[str, str],
) -> None:  # fmt: skip
    try:
        wanted = extent.value(sizes)
    except ZeroDivisionError:
        wanted = -1
    if wanted == shape[axis]:
        return
    reasons = [f"`{name}` is {sizes[name]} from {origin[name]}" for name in sorted(extent.names())]
    raise ShapeError(f"`{p.name}` has extent {shape[axis]} on axis {axis}, wanted {wanted}", where=f"`{signature}`",
                     because=f"its shape is {shape}, the signature says `{p}`"
                     + (" and " + ", ".join(reasons) if reasons else ""),
                     fix=f"pass `{p.name}` with {wanted} on axis {axis}")
