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
from typing import TYPE_CHECKING, Any

import numpy as np

from irgrad.engine.kernel.binding import address_of
from irgrad.engine.kernel.pages import LEAST, zeros
from irgrad.engine.signature.slots import RETURN

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
        return found(args)

    def _shape(self, key: tuple[Any, ...], args: tuple[Any, ...]) -> _Shape | None:
        if key in self._known or len(self._known) >= _MOST_SHAPES or any(0 in k for k in key if isinstance(k, tuple)):
            return None
        bound = self._bind(args, {})
        made = _Shape(self._program, bound, self._origin, self._results, self._ones)
        self._known[key] = made if made.own_bytes <= _MOST_BYTES else None
        return self._known[key]


_Start = tuple[int, tuple[int, ...], Any, bool]
"""Slot, shape, what its buffer holds when a call begins, and whether a call changes that."""


class _Shape:
    """Calls with arguments of one shape: plain numbers, and where in the frame everything goes."""

    __slots__ = ("_arrays", "_copies", "_entry", "_free", "_fresh", "_give", "_passing", "_program", "_scalars",
                 "_starts", "own_bytes")  # fmt: skip

    def __init__(
        self, program: Program, bound: Bound, origin: tuple[int, ...], results: tuple[int, ...], ones: frozenset[int]
    ) -> None:
        signature = program.source.signature
        position = {p.name: n for n, p in enumerate(signature.arguments)}
        self._program = program
        self._entry = program.entry
        self._free: list[_Frame] = []
        self._arrays: list[tuple[int, int]] = []  # (slot, argument)
        self._copies: list[tuple[int, int]] = []
        self._scalars: list[tuple[int, int]] = []
        self._fresh: list[tuple[int, tuple[int, ...], Any, Any]] = []
        self._starts: list[_Start] = []
        shapes = program.shapes(bound.sizes)
        for number, (slot, index) in enumerate(zip(program.slots, origin, strict=True)):
            dtype, shape = slot.dtype.numpy, shapes[number]
            argument = position.get(slot.parameter.name) if index >= 0 else None
            if index >= 0 and argument is None:
                given = bound.buffers[index]
                if given is not None:  # a size
                    self._starts.append((number, shape, given[()], False))
                    continue
            if argument is None and number in results and shape:
                make = zeros if math.prod(shape) * dtype.itemsize >= LEAST else np.zeros
                self._fresh.append((number, shape, dtype, make))
            elif argument is None:
                returned = slot.parameter.name == RETURN and slot.role == "out"  # each call writes it
                self._starts.append((number, shape, dtype.type(number in ones), not returned and slot.role != "in"))
            elif not slot.parameter.is_array:
                self._scalars.append((number, argument))
                self._starts.append((number, shape, dtype.type(0), False))
            else:
                (self._copies if slot.role == "inout" else self._arrays).append((number, argument))
        self._passing = [*(row[0] for row in self._copies), *(row[0] for row in self._fresh)]
        self._give = [(number, number in self._passing) for number in results]
        self.own_bytes = sum(_bytes(shape, value) for _, shape, value, _ in self._starts)

    def __call__(self, args: tuple[Any, ...]) -> list[Any]:
        try:
            state = self._free.pop()
        except IndexError:
            state = _Frame(len(self._program.slots), self._starts)
        frame, held = state.frame, state.held
        for number, argument in self._arrays:
            frame[number] = _addressof(_from_buffer(args[argument]))
        for number, argument in self._copies:
            held[number] = copied = args[argument].copy()
            frame[number] = _addressof(_from_buffer(copied))
        for number, argument in self._scalars:
            held[number][()] = args[argument]
        for number, shape, dtype, make in self._fresh:
            held[number] = fresh = make(shape, dtype)
            frame[number] = _addressof(_from_buffer(fresh))
        failed = self._entry(state.address)
        if failed is not None:
            raise self._program.out_of_tape(failed)
        given = [held[number] if passes else held[number][()] for number, passes in self._give]
        for number in self._passing:
            del held[number]
        for fill, value in state.starts:
            fill(value)
        if len(self._free) < _MOST_FRAMES:
            self._free.append(state)
        return given


class _Frame:
    """Addresses for one call, and the buffers that belong to it."""

    __slots__ = ("address", "frame", "held", "starts")

    def __init__(self, slots: int, starts: list[_Start]) -> None:
        self.frame = (ctypes.c_void_p * slots)()
        self.held: dict[int, Array] = {}
        self.starts: list[tuple[Callable[[Any], None], Any]] = []
        for number, shape, value, again in starts:
            buffer = self.held[number] = np.full(shape, value, value.dtype)
            self.frame[number] = address_of(buffer)
            if again:
                self.starts.append((buffer.fill, value))
        self.address = ctypes.addressof(self.frame)


def _bytes(shape: tuple[int, ...], value: Any) -> int:
    return math.prod(shape) * int(value.dtype.itemsize)
