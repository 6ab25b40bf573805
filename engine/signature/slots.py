"""Slots: what the pointers of a normal-form function mean, for the primal and for every word of derivatives.

The primal's slots are the C parameters in order, then the return value. `jvp` puts a tangent behind every active slot,
`vjp` a shadow. The role of a derived slot follows from the role of what it derives:

    primal slot   tangent (jvp) shadow (vjp)
    in            in            inout   the gradient is added to it
    out           out           inout   cotangent on entry, consumed
    inout         inout         inout   cotangent of the value after on entry, of the value before on exit
    scratch       scratch       scratch

An `out` buffer starts from zero, a `scratch` one as well (memory that the derivative needs and nobody reads).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.signature.dtypes import DTYPES, DType
from irgrad.engine.signature.extents import NameExtent
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.signature import Signature

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.request import Derivative

__all__ = ["RETURN", "TAPE", "TAPE_BYTES", "TAPE_NAME", "Slot", "Step", "derived_slots", "only_again",
           "primal_slots", "word_text"]  # fmt: skip

RETURN = "return"
"""The name of the return value's slot."""
TAPE, TAPE_BYTES = -1, -2
"""Indices, in place of a C parameter's, of the slots of a tape that the caller owns, and of its size."""
TAPE_NAME = "#tape"
"""The name of the bytes of a tape in a table of sizes."""
_TAPE = Parameter("tape", DTYPES["u8"], (NameExtent(TAPE_NAME),))
_TAPE_BYTES = Parameter("bytes of the tape", DTYPES["i64"])


@dataclass(frozen=True, slots=True)
class Slot:
    """One pointer of a normal form. `steps` are the positions in the word at which it became a tangent or shadow."""

    parameter: Parameter
    index: int  # of the C parameter; the number of parameters for the return value
    role: str  # "in", "out", "inout", "scratch"
    steps: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()  # trailing axes of its buffer: the widths (over 1) of the steps that made it

    @property
    def name(self) -> str:
        """`pos`, `pos'` (derived once), `pos''`."""
        return self.parameter.name + "'" * len(self.steps)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.parameter.dtype

    @property
    def differentiable(self) -> bool:
        """Whether it may have a tangent or shadow."""
        return self.parameter.dtype.is_float

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Its shape; () for scalars. Lanes of a derivative of some width are a last axis."""
        return (self.parameter.extents(sizes) if self.parameter.shape else ()) + self.lanes


@dataclass(frozen=True, slots=True)
class Step:
    """One derivative of a word, with the slots (positions in the previous program) that are active.

    jvp forward; vjp reverse; jvp_only and pullback are those without the primal's outputs: `out` slots that the
    function never reads keep what they held, and what only they needed is not computed. forward_with_tape and
    reverse_from_tape are the two halves of vjp, with the tape in an array of the caller. `width` is the number of
    tangents or cotangents at once.
    """

    derivative: Derivative
    active: tuple[int, ...]
    width: int = 1

    def __str__(self) -> str:
        return f"{self.derivative}{self.width if self.width > 1 else ''}[{','.join(map(str, self.active))}]"


def only_again(signature: Signature, word: Sequence[Step], slots: Sequence[Slot]) -> bool:
    """Whether the last step of a word over these slots differentiates nothing but what the first, another one, did."""
    primal = primal_slots(signature)
    first = {primal[number].index for number in word[0].active}
    return len(word) > 1 and {slots[number].index for number in word[-1].active} <= first


def word_text(word: Sequence[Step]) -> str:
    """A word for people and for keys, first step first."""
    return ".".join(map(str, word)) or "P"


def primal_slots(signature: Signature) -> tuple[Slot, ...]:
    """The slots of the kernel itself."""
    slots = [Slot(p, index, p.intent) for index, p in enumerate(signature.parameters)]
    if signature.returns is not None:
        slots.append(Slot(Parameter(RETURN, signature.returns), len(slots), "out"))
    return tuple(slots)


def derived_slots(
    slots: Sequence[Slot], derivative: str, active: Iterable[int], scratch: Iterable[int], position: int, width: int = 1
) -> tuple[Slot, ...]:
    """The slots after one more derivative at that position of the word; `scratch`: inactive ones that need a shadow."""
    dup, extra = set(active), set(scratch)
    out: list[Slot] = []
    if derivative == "forward_with_tape":
        return (*slots, Slot(_TAPE, TAPE, "out"), Slot(_TAPE_BYTES, TAPE_BYTES, "in"))
    for number, slot in enumerate(slots):
        if derivative != "reverse_from_tape" or slot.role == "in":
            out.append(slot)
        steps = (*slot.steps, position)
        lanes = (*slot.lanes, width) if width > 1 else slot.lanes
        if number in dup:
            role = slot.role if derivative in ("jvp", "jvp_only") or slot.role == "scratch" else "inout"
            out.append(Slot(slot.parameter, slot.index, role, steps, lanes))
        elif number in extra:
            out.append(Slot(slot.parameter, slot.index, "scratch", steps, lanes))
    if derivative == "reverse_from_tape":
        out.append(Slot(_TAPE, TAPE, "in"))
    return tuple(out)
