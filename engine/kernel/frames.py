"""Calls of small kernels: what does not change from one call to the next is made once for arguments of one shape.

Method: a call takes a ready frame from a list, writes the addresses of its arguments and of fresh results into it, and
gives it back. Two calls at once, in two threads or one inside of a rule of the other, have two frames. Only what
`numpy` has as it is wanted goes this way: C-contiguous arrays of the dtype, and Python numbers. All else, with its
conversions and messages, goes through `Binder`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from irgrad.engine.kernel.binding import address_of
from irgrad.engine.kernel.pages import LEAST, zeros
from irgrad.engine.signature.slots import RETURN
from irgrad.rules.errors import TapeMemoryError

if TYPE_CHECKING:
    from irgrad.engine.kernel.binding import Bound
    from irgrad.engine.kernel.programs import Program
    from irgrad.engine.signature.signature import Signature

__all__ = ["MISSED", "Calls"]

Array = np.ndarray[Any, Any]
MISSED = object()
"""What a call gives that does not go this way."""
_MOST_SHAPES, _MOST_FRAMES, _MOST_BYTES = 64, 8, 1 << 14
_addressof, _from_buffer, _ndarray = ctypes.addressof, ctypes.c_char.from_buffer, np.ndarray


class Calls:
    """Calls of one program.

    bind:     checks and converts arguments
    origin:   of each slot, the C parameter that it takes its buffer from, -1 for none
    results:  slots whose contents a call gives
    ones:     slots that start from one, all others from zero
    """

    __slots__ = ("_bind", "_entry", "_known", "_ones", "_origin", "_program", "_results", "_wanted")

    def __init__(
        self, program: Program, signature: Signature, bind: Callable[..., Bound], origin: Sequence[int],
        results: Sequence[int], ones: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self._program = program
        self._bind = bind
        self._origin = tuple(origin)
        self._results = tuple(results)
        self._ones = frozenset(ones)
        self._entry: Any = None
        self._known: dict[tuple[Any, ...], _Shape | None] = {}
        plain = signature.status is None and not any(slot.lanes for slot in program.slots)
        self._wanted: list[tuple[Any, int, int]] | None = None  # (dtype, bounds of an integer) of each argument
        if plain:
            self._wanted = [
                (p.dtype.numpy, 0, 0) if p.is_array else (None, 0, 0) if p.dtype.is_float else (None, *p.dtype.bounds)
                for p in signature.arguments
            ]

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """The results in a list: arrays, scalars of NumPy; MISSED for arguments that have to be converted."""
        wanted = self._wanted
        if wanted is None or len(args) != len(wanted):
            return MISSED
        key: Any = ()
        for value, (dtype, low, high) in zip(args, wanted):  # noqa: B905 strict= costs a tenth of the call
            if dtype is not None:
                if type(value) is not _ndarray or value.dtype is not dtype or not value.flags.carray:
                    return MISSED
                key += (value.shape,)
            elif high:
                if type(value) is not int or not low <= value <= high:
                    return MISSED
                key += (value,)
            elif type(value) is not float:
                return MISSED
        found = self._known.get(key)
        if found is None:
            found = self._shape(key, args)
            if found is None:
                return MISSED
        try:
            return found.call(args)
        except TapeMemoryError as error:
            from irgrad.engine.runtime.tape_memory import PassedLimit

            if not isinstance(error, PassedLimit):
                raise
            self._known[key] = None  # the other way does it with states in place of the tape
            return MISSED

    def _shape(self, key: tuple[Any, ...], args: tuple[Any, ...]) -> _Shape | None:
        if key in self._known or len(self._known) >= _MOST_SHAPES or any(0 in k for k in key if isinstance(k, tuple)):
            return None
        bound = self._bind(args, {})
        made = _Shape(self._program, bound, self._origin, self._results, self._ones)
        self._known[key] = made if made.own_bytes <= _MOST_BYTES else None
        return self._known[key]


class _Shape:
    """Calls with arguments of one shape: plain numbers, where in the frame everything goes, and a Python function that
    does what is left, without a loop."""

    __slots__ = ("call", "own_bytes")

    def __init__(
        self, program: Program, bound: Bound, origin: tuple[int, ...], results: tuple[int, ...], ones: frozenset[int]
    ) -> None:
        signature = program.source.signature
        position = {p.name: n for n, p in enumerate(signature.arguments)}
        names: dict[str, Any] = {"addressof": _addressof, "from_buffer": _from_buffer}
        before: list[str] = []  # lines of the function: addresses into the frame, numbers into its buffers
        after: list[str] = []
        starts: list[tuple[int, tuple[int, ...], Any]] = []  # slot, shape, what its buffer holds when a call begins
        passing = set[int]()  # results that are made for each call
        shapes = program.shapes(bound.sizes)
        for number, (slot, index) in enumerate(zip(program.slots, origin, strict=True)):
            dtype, shape = slot.dtype.numpy, shapes[number]
            argument = position.get(slot.parameter.name) if index >= 0 else None
            given = bound.buffers[index] if index >= 0 and argument is None else None
            if given is not None:  # a size
                starts.append((number, shape, given[()]))
            elif argument is None and number in results and shape:
                names[f"make{number}"] = zeros if math.prod(shape) * dtype.itemsize >= LEAST else np.zeros
                names[f"shape{number}"], names[f"dtype{number}"] = shape, dtype
                before += [f"b{number} = make{number}(shape{number}, dtype{number})", _address(number, f"b{number}")]
                passing.add(number)
            elif argument is None:
                returned = slot.parameter.name == RETURN and slot.role == "out"  # each call writes it
                starts.append((number, shape, dtype.type(number in ones)))
                if not returned and slot.role != "in":
                    names[f"start{number}"] = starts[-1][2]
                    after.append(f"b{number}.fill(start{number})")
            elif not slot.parameter.is_array:
                starts.append((number, shape, dtype.type(0)))
                before.append(f"b{number}[()] = args[{argument}]")
            elif slot.role == "inout":
                before += [f"b{number} = args[{argument}].copy()", _address(number, f"b{number}")]
                passing.add(number)
            else:
                before.append(_address(number, f"args[{argument}]"))
        self.own_bytes = sum(_bytes(shape, value) for _, shape, value in starts)
        give = [f"b{number}" if number in passing else f"b{number}[()]" for number in results]
        free: list[Any] = []
        names |= {"pop": free.pop, "push": free.append, "free": free, "entry": program.entry,
                  "fresh": lambda: _frame(len(program.slots), starts), "failure": program.out_of_tape}  # fmt: skip
        own = "".join(f", b{number}" for number, *_ in starts)
        exec(_code(own, "\n    ".join(before), ", ".join(give), "\n    ".join(after)), names)
        self.call: Callable[[tuple[Any, ...]], list[Any]] = names["call"]


_TEXT = """
def call(args):
    try:
        state = pop()
    except IndexError:
        state = fresh()
    frame, address{own} = state
    {before}
    failed = entry(address)
    if failed is not None:
        raise failure(failed)
    given = [{give}]
    {after}
    if len(free) < {most}:
        push(state)
    return given
"""


@lru_cache(256)
def _code(own: str, before: str, give: str, after: str) -> CodeType:
    text = _TEXT.format(own=own, before=before, give=give, after=after, most=_MOST_FRAMES)
    return compile(text, "<call of a kernel>", "exec")


def _address(number: int, array: str) -> str:
    return f"frame[{number}] = addressof(from_buffer({array}))"


def _frame(slots: int, starts: list[tuple[int, tuple[int, ...], Any]]) -> tuple[Any, ...]:
    """Addresses for one call, where they lie, and the buffers that belong to the frame."""
    frame = (ctypes.c_void_p * slots)()
    buffers = [np.full(shape, value, value.dtype) for _, shape, value in starts]
    for (number, *_), buffer in zip(starts, buffers, strict=True):
        frame[number] = address_of(buffer)
    return frame, ctypes.addressof(frame), *buffers


def _bytes(shape: tuple[int, ...], value: Any) -> int:
    return math.prod(shape) * int(value.dtype.itemsize)
