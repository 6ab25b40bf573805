"""`Parameter`: one parameter of a C function, with its shape and what is done to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irgrad.engine.signature.dtypes import DType
from irgrad.engine.signature.extents import Extent
from irgrad.rules.errors import ShapeError

__all__ = ["Parameter", "Wrt"]

Wrt = str | int | Sequence[str | int] | None
"""Parameters to differentiate by: names, positions, or both; None for what the function takes by default."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the C function. `shape` is None for a scalar by value, () for a pointer to one element."""

    name: str
    dtype: DType
    shape: tuple[Extent, ...] | None = None
    intent: str = "in"  # "in", "out", "inout"
    is_status: bool = False  # an `out` that reports failure

    @property
    def is_array(self) -> bool:
        """Passed by pointer."""
        return self.shape is not None

    @property
    def is_input(self) -> bool:
        """Its value on entry matters."""
        return self.intent != "out"

    @property
    def is_output(self) -> bool:
        """Its value on exit is returned."""
        return self.intent != "in" and not self.is_status

    def extents(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape as numbers. Raises ShapeError for a negative extent or a division by zero."""
        out = []
        for extent in self.shape or ():
            try:
                number = extent.value(sizes)
            except ZeroDivisionError:
                number = -1
            if number < 0:
                known = ", ".join(f"{name} = {sizes[name]}" for name in sorted(extent.names()))
                raise ShapeError(f"extent `{extent}` of `{self.name}` is no size", where=f"`{self}`",
                                 because=f"it is negative or divides by zero for {known}",
                                 fix="pass sizes for which every extent is at least 0")
            out.append(number)
        return tuple(out)

    def __str__(self) -> str:
        intent = "" if self.intent == "in" else "status " if self.is_status else f"{self.intent} "
        shape = "" if self.shape is None else f"[{','.join(map(str, self.shape))}]"
        return f"{intent}{self.dtype}{shape} {self.name}"
