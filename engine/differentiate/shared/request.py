"""What is asked of the differentiator: of which function, which derivative, with respect to what, how wide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from irgrad.engine.differentiate.layout.shadow_memory import ShadowMemory, memory_of
from irgrad.engine.differentiate.layout.shadow_types import Apart
from irgrad.engine.normalise.repeatable import Bytes
from irgrad.engine.normalise.segments import Choice
from irgrad.rules.expressions.costs import SHIPPED, Costs

__all__ = ["DERIVATIVES", "Derivative", "Request"]

Derivative = Literal[
    "jvp", "jvp_only", "vjp", "pullback", "forward_with_tape", "reverse_from_tape", "split_reverse", "split_forward"
]
DERIVATIVES: dict[Derivative, str] = {
    "jvp": "values and tangents",
    "jvp_only": "tangents without the values of the function's own outputs",
    "vjp": "values and gradients",
    "pullback": "gradients without the values of the function's own outputs",
    "forward_with_tape": "the function, which fills a tape that the caller owns",
    "reverse_from_tape": "the reverse sweep on such a tape",
    "split_reverse": "the function with a tape of its own and the reverse sweep, called one by one by a program",
    "split_forward": "the function with a log and the tangents, called one by one by a program",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One derivative of a function in normal form.

    activity: "dup" for the arguments that are differentiated, else "const"
    elements: the float type that each argument holds all over ("double", ...), "" where that is not known
    width: tangents or cotangents at once; shadow memory then holds that many lanes for each element, side by side (see
        layout/lanes.py); with an `Apart` width each shadow is an array of pointers to memories of their own
    layout: how the shadows of memory lie, given the width
    schedule: makes the `LoopSchedule` of a function from what is known about it; None: the one for stencils
    discard: arguments whose final contents nobody asks for ("jvp_only", "pullback")
    outputs: arguments that the function may write ("forward_with_tape")
    kept: arguments whose memory the program does not write between two halves ("split_reverse", "split_forward")
    log: False for tangents without a log, of a function that writes over none of its inputs ("split_forward")
    strict_fp: sums are not reordered
    approximate: calls of the math library may be approximated where the caller is not told what they give (`afn`)
    strong_zero: a zero tangent or adjoint times an infinite slope is zero; zero_slopes: so is an infinite one times a
        zero slope
    followed: the function is a derivative, of one whose pointers to the same active arguments were followed already
    rounding: shadows are bounds of relative rounding errors, in place of tangents ("jvp")
    costs: of the machine whose code is made: values that cost less than their tape are computed again
    checkpoint: loops that run backwards in segments, by their places (`file.c:12`), and how ("vjp", "pullback")
    bytes_of: of each argument, the bytes of its memory
    fuse: loops may be fused where nobody asks (see `pipeline/worth_fusing.py`)
    runtime_activity: a shadow that is its argument's own memory means that it has no derivative
    """

    function: str
    derivative: Derivative = "vjp"
    activity: tuple[str, ...] = ()
    elements: tuple[str, ...] = ()
    width: int = 1
    layout: Callable[[int], ShadowMemory] = memory_of
    schedule: Callable[..., Any] | None = None
    discard: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    log: bool = True
    strict_fp: bool = False
    approximate: bool = False
    strong_zero: bool = False
    zero_slopes: bool = False
    followed: bool = False
    rounding: bool = False
    costs: Costs = SHIPPED
    runtime_activity: bool = False
    checkpoint: tuple[tuple[str, Choice], ...] = ()
    bytes_of: tuple[Bytes | None, ...] = ()
    fuse: bool = False

    @property
    def mode(self) -> str:
        """"forward" or "reverse": in which direction derivatives flow."""
        return "forward" if self.derivative in ("jvp", "jvp_only", "split_forward") else "reverse"

    @property
    def active(self) -> frozenset[int]:
        """The arguments that are differentiated."""
        return frozenset(i for i, kind in enumerate(self.activity) if kind == "dup")

    def name(self, shadowed: list[bool], derivative: str = "") -> str:
        """The name of the function that gives the derivative; `shadowed`: which arguments are followed by a shadow."""
        strip = f"{self.width}{'a' if isinstance(self.width, Apart) else 'x'}" if self.width > 1 else ""
        mask = "".join("1" if shadow else "0" for shadow in shadowed)
        return f"{self.function}.{derivative or self.derivative}{strip}.{mask}"
