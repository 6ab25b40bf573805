"""What a program asks of the differentiator, from its slots and the options of its kernel."""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.kernel.checkpoints import bytes_of, choices
from irgrad.engine.kernel.options import Options
from irgrad.engine.signature.slots import Slot, Step

__all__ = ["request_of"]


def fuses(options: Options, slots: Sequence[Slot]) -> bool:
    """Whether loops may be fused where nobody asks: not where all of a tape is wanted, where threads share loops, on a
    GPU, or in a derivative."""
    return options.bounded and not (options.device or options.threads or any(slot.steps for slot in slots))


def request_of(
    name: str, step: Step, slots: Sequence[Slot], status: int | None, options: Options, followed: bool
) -> Request:
    """The derivative `step` of the function `name` with these slots. status: the slot of its status; followed: see
    `Request`."""
    outputs = [n for n, s in enumerate(slots) if s.role != "in"]
    return Request(
        name, step.derivative, width=step.width, outputs=tuple(outputs),
        activity=tuple("dup" if number in step.active else "const" for number in range(len(slots))),
        elements=tuple(slot.dtype.memory if slot.dtype.is_float else "" for slot in slots),
        discard=tuple(n for n in outputs if n != status) if step.derivative in ("jvp_only", "pullback") else (),
        strict_fp=options.strict_fp, costs=options.costs, strong_zero=options.strong_zero,
        zero_slopes=options.strong_zero, followed=followed, checkpoint=choices(options),
        bytes_of=bytes_of(slots) if options.checkpoint or fuses(options, slots) else (), fuse=fuses(options, slots),
    )  # fmt: skip
