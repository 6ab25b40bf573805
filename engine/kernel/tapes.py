"""The tape of a kernel as an array: whether there is one, how large it is, and why there is none.

`Program.A` computes the primal and fills the tape, `Program.B` is the reverse sweep alone; an array goes from one to
the other (see `differentiate/tape/taped.py`). That wants the size of all parts of the tape to follow from integer
arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from irgrad.engine.differentiate.tape.tape_size import Room
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.programs import Program
from irgrad.rules.errors import IRGradError
from irgrad.rules.report import Text

__all__ = ["Tape", "explain_tape", "frugal", "tape_of"]

_SMALL, _TIMES = 1 << 16, 16  # a tape is small in so many bytes, or so many times the bytes of arguments and results


@dataclass(frozen=True, slots=True)
class Tape:
    """room: its bytes; layout: a digest, equal for tapes that can be exchanged; or because: why there is none."""

    room: Room | None = None
    layout: str = ""
    because: str = ""

    def bytes(self, scalars: Mapping[int, int]) -> int | None:
        """The bytes of the tape for integer arguments by position; None where there is no tape."""
        return self.room.bytes(scalars) if self.room is not None else None


def tape_of(program: Program, active: Iterable[int], width: int = 1) -> Tape:
    """The tape between `program.forward_with_tape(active, width)` and `program.reverse_from_tape(active, width)`.
    Differentiates, or asks the disk cache; an error that the derivative in one piece would raise as well is a reason
    here."""
    made = program.forward_with_tape(active, width)
    try:
        note = made.stage.note
    except IRGradError as error:
        return Tape(because=f"{error.what}: {error.because}")
    return _read(note)


@cache
def _read(note: str) -> Tape:
    fields = json.loads(note)
    if "because" in fields:
        where = f" ({fields['where']})" if fields["where"] else ""
        return Tape(because=f"{fields['because']}{where}")
    return Tape(Room.from_text(fields["room"]), fields["layout"])


def frugal(kernel: Kernel, tape: int, traffic: int) -> bool:
    """Whether a tape of so many bytes is to be kept, by the kernel's option; traffic: of arguments and results."""
    choice = kernel.options.tape
    return choice == "store" or (choice == "auto" and tape <= max(_SMALL, _TIMES * traffic))


def explain_tape(kernel: Kernel, **sizes: int) -> Text:
    """Where a reverse sweep that runs apart from the primal (`jax.vjp`, reverse mode over `scan`) gets its values from.

    All floating-point arguments count as differentiated. sizes: the integer arguments, by name, for which to tell the
    bytes. Raises SignatureError for a name that is no integer argument.

        >>> print(irgrad.explain_tape(total, n=1000))
        nothing is kept: the reverse sweep reads the arguments only
    """
    from irgrad.engine.kernel.select import plain_kernel
    from irgrad.rules.errors import SignatureError

    parameters = plain_kernel(kernel).signature.parameters
    positions = {p.name: i for i, p in enumerate(parameters) if not p.is_array and not p.dtype.is_float}
    for name in sizes:
        if name not in positions:
            raise SignatureError(f"`{name}` is no integer argument", where=f"`{kernel.signature}`",
                                 because=f"the integer arguments are {', '.join(positions) or 'none'}",
                                 fix="explain_tape(kernel, n=1000)")  # fmt: skip
    program = kernel.primal
    found = tape_of(program, [n for n, slot in enumerate(program.slots) if slot.differentiable])
    again = "the primal runs again in front of each reverse sweep"
    if found.room is None:
        return Text(f"no array: {again}, because {found.because}")
    if kernel.options.tape == "recompute":
        return Text(f'no array: {again}, as tape="recompute" says')
    size = found.bytes({positions[name]: value for name, value in sizes.items()})
    missing = [name for name in positions if name not in sizes]
    if size == 0:
        return Text("nothing is kept: the reverse sweep reads the arguments only")
    if size is None:
        return Text(f"an array; its bytes follow from {', '.join(missing)}")
    rule = 'kept, as tape="store" says' if kernel.options.tape == "store" else "kept where that is little"
    return Text(f"an array of {size} bytes, {rule}")
