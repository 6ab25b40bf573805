"""What a kernel's user says of the memory of long loops: `checkpoint=` and `tape_memory=`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irgrad.rules.errors import IRGradError, TapeMemoryError
from irgrad.rules.layers import InForce, using

if TYPE_CHECKING:
    from irgrad.engine.kernel.options import Options
    from irgrad.engine.normalise.repeatable import Bytes
    from irgrad.engine.normalise.segments import Choice
    from irgrad.engine.signature.extents import Extent
    from irgrad.engine.signature.slots import Slot

__all__ = ["LongTape", "bytes_of", "checkpoints", "choices", "chosen", "keeping_states", "memory"]

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)i?B?$")
_UNITS = {"": 1, "k": 2**10, "M": 2**20, "G": 2**30}
_WORDS = re.compile(r"recompute$|fused$|binomial:(\d+)$|memory:(.+)$")


class LongTape(RuntimeWarning):
    """The tape of a call would take more than half of the free memory, so that loops keep states in its place."""


def keeping_states(
    program: Any, limit: int, error: TapeMemoryError, calls: int = 1, known: Any = None, lanes: int = 1
) -> Any:
    """The Program for calls whose tape passes its limit: loops that can run again keep states, the rest a tape without
    one. Raises the error where it is another one. Warns.

    calls: that share half of the memory, each within the limit; known: what was made for others; lanes: samples of a
    call"""
    from irgrad.engine.codegen.jit import release_tapes
    from irgrad.engine.runtime.tape_memory import PassedLimit

    release_tapes()  # what the call had
    if known is not None:
        return known

    if not isinstance(error, PassedLimit):
        raise error
    within = 1 << ((limit // lanes).bit_length() - 1)  # few numbers: each is a program of its own
    place = f", {error.which}" if "loop" in error.which else ""
    among = f" for each of {calls} calls at a time" if calls > 1 else ""
    warnings.warn(LongTape(
        f"the tape of a derivative of `{program.source.name}` would take more than {limit:,} bytes, half of the memory "
        f"that was free{among}{place}: its loops keep states within {within:,} bytes and run iterations again where "
        'they can; say tape_memory="8GB", or None for a tape of all'), stacklevel=5)  # fmt: skip
    for said in ((("*", f"memory:{within}"),), ()):
        source = replace(program.source, options=replace(program.source.options, checkpoint=said, bounded=False))
        made = type(program)(source)
        with using(None if program.rules is None else InForce("", program.rules)):
            for step in program.word:
                made = getattr(made, step.derivative)(step.active, step.width)
        try:
            if [(s.index, s.steps, s.role) for s in made.slots] == [(s.index, s.steps, s.role) for s in program.slots]:
                return made
        except IRGradError:
            continue
    raise error


def memory(text: object) -> int:
    """A number of bytes: `512MB`, `2GB`, `65536`. Raises IRGradError."""
    found = _MEMORY.match(text.strip()) if isinstance(text, str) else None
    number = int(float(found[1]) * _UNITS[found[2]]) if found else text
    if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
        raise IRGradError(f"{text!r} is no amount of memory", because="bytes are wanted, or a text with a unit",
                          fix='"512MB"')  # fmt: skip
    return number


def checkpoints(said: Mapping[Any, Any] | None, tape_memory: object = None) -> tuple[tuple[str, str], ...]:
    """The choices as (place, words); "auto" is none. Raises IRGradError for one that makes no sense."""
    rows: list[tuple[str, str]] = []
    if said is not None and not isinstance(said, Mapping):
        raise IRGradError(f"checkpoint={said!r} is no choice", because="a choice is for a loop, by its file and line",
                          fix='checkpoint={"solve.c:41": 32}, or tape_memory="512MB" for all loops')  # fmt: skip
    for place, choice in (said or {}).items():
        words = str(choice)
        number = words.isdecimal() and int(words) > 0
        if not number and not (isinstance(choice, str) and _WORDS.match(words)):
            raise IRGradError(
                f"checkpoint={{{place!r}: {choice!r}}} is no choice",
                because='there are "recompute", "fused", a number of iterations, "binomial:STATES" and "memory:BYTES"',
                fix='checkpoint={"solve.c:41": 32}, or tape_memory="512MB" for all loops',
            )  # fmt: skip
        _choice(words)
        rows.append((str(place), words))
    if tape_memory not in (None, "auto"):
        rows.append(("*", f"memory:{memory(tape_memory)}"))
    return tuple(rows)


def choices(options: Options) -> tuple[tuple[str, Choice], ...]:
    """The choices of a kernel, for a `Request`; on a GPU, whose tapes are bounded in other ways, there are none."""
    return () if options.device else chosen(options.checkpoint)


def chosen(said: Sequence[tuple[str, str]]) -> tuple[tuple[str, Choice], ...]:
    """What `checkpoints` gave, for a `Request`."""
    return tuple((place, _choice(words)) for place, words in said)


def _choice(words: str) -> Choice:
    from irgrad.engine.normalise.segments import Choice

    if words.isdecimal():
        return Choice(unit=int(words))
    if words.startswith("memory:"):
        return Choice(bytes=memory(words.removeprefix("memory:")))
    if words.startswith("binomial:"):
        return Choice(states=max(int(words.removeprefix("binomial:")), 1))
    return Choice(fused=words == "fused")


def bytes_of(slots: Sequence[Slot]) -> tuple[Bytes | None, ...]:
    """Of each slot, the bytes of its memory; None where a size is no C parameter."""
    numbers: dict[str, Bytes] = {}
    for place, slot in enumerate(slots):
        if not slot.parameter.is_array and slot.dtype.kind in "iu" and not slot.steps and slot.role == "in":
            numbers[slot.name] = (place, slot.dtype.size * 8, slot.dtype.kind == "i")
    return tuple(_bytes(slot, numbers) for slot in slots)


def _bytes(slot: Slot, numbers: Mapping[str, Bytes]) -> Bytes | None:
    total: Bytes | None = slot.dtype.size
    for extent in [*(_number(e, numbers) for e in slot.parameter.shape or ()), *slot.lanes]:
        total = None if total is None or extent is None else ("*", total, extent)
    return total


def _number(extent: Extent, numbers: Mapping[str, Bytes]) -> Bytes | None:
    from irgrad.engine.signature.extents import BinaryExtent, ConstExtent

    if isinstance(extent, ConstExtent):
        return extent.number
    if isinstance(extent, BinaryExtent):
        left, right = _number(extent.left, numbers), _number(extent.right, numbers)
        return None if left is None or right is None else (extent.op, left, right)
    return numbers.get(str(extent))
