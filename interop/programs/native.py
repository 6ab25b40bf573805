"""Programs on memory that a framework owns: addresses of operands and results in; it runs without the GIL.

Method: what does not depend on the addresses is made once. A call takes a ready frame from a list (two calls at once,
in two threads, have two), writes the addresses into it, and gives it back; operands and results are used where they
are. A call with batch axes is one of the engine's batches.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irgrad.engine.batches.axes import Data, Operands
from irgrad.engine.batches.batched import Batched
from irgrad.engine.kernel.binding import Bound, address_of, aligned_zeros
from irgrad.engine.kernel.programs import Program
from irgrad.engine.signature.status import failure
from irgrad.interop.programs.algebra import Spec, layout, program_of, result_numbers, sizes_of, used_operands
from irgrad.rules.errors import TapeMemoryError
from irgrad.rules.layers import using

__all__ = ["Native", "native_call"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
_MOST_FRAMES = 8
_NOWHERE = np.zeros(8)
_EMPTY = address_of(_NOWHERE)
"""Where arrays without elements are: native code gets no null pointer for them."""
_memset, _memmove = ctypes.memset, ctypes.memmove


class Native:
    """A program, its sizes and its batch axes, ready to be called.

    operands, results: shape and NumPy dtype of each; operands may have size 1 along batch axes
    zeroed: for each result whether it has to be zero before a call
    """

    def __init__(self, spec: Spec, sizes: Mapping[str, int], batch: Shape) -> None:
        self.spec = spec
        self.batch = batch
        self.operands = [((*batch, *spec.shape(i, sizes)), spec.dtype(i)) for i in spec.members]
        self.results = [((*batch, *spec.shape(i, sizes)), spec.dtype(i)) for i in spec.results]
        self.zeroed = [False] * len(self.results)

    def __call__(self, operands: Sequence[int], results: Sequence[int], shapes: Sequence[Shape] = ()) -> None:
        """Run it. operands, results: addresses of C-ordered arrays; shapes: of the operands, for calls with batch axes.
        Results that are `zeroed` are zeros.

        Raises KernelError for a status other than 0, TapeMemoryError where there is no memory for the tape.
        """
        raise NotImplementedError


def native_call(spec: Spec, sizes: Any, constants: Any, batch: Shape = ()) -> Native:
    """The program of a spec; sizes, constants: pairs, as the bridges keep them. Compiles it on its first call."""
    kind: Any = _Batch if batch else _Single
    names, numbers = sizes_of(spec, sizes, constants)
    made: Native = kind(spec, program_of(spec), names, numbers, batch)
    return made


class _Frame:
    """Addresses for one call, and the memory that belongs to it."""

    __slots__ = ("address", "frame", "memory")

    def __init__(self, slots: int, memory: Array, places: Sequence[tuple[int, int]]) -> None:
        self.frame = (ctypes.c_void_p * slots)()
        self.address = ctypes.addressof(self.frame)
        self.memory = memory
        start = address_of(memory)
        for number, offset in places:
            self.frame[number] = start + offset


class _Single(Native):
    """A call without batch axes."""

    def __init__(
        self, spec: Spec, program: Program, sizes: Mapping[str, int], constants: Mapping[int, int], batch: Shape
    ) -> None:
        super().__init__(spec, sizes, batch)
        self._given = sizes, constants
        self._longer: dict[tuple[bytes, ...], _Single] = {}  # for calls whose tape passes its limit, by integers
        words = layout(spec, program, sizes, constants, used_operands(spec, program))
        count, self._bytes = words[1], max(words[2], 1)
        self._program = program
        self._entry: Any = None
        self._free: list[_Frame] = []
        self._places: list[tuple[int, int]] = []
        self._constants = np.array(words[3 + 4 * count :], np.int64)
        self._inputs: list[tuple[int, int]] = []  # (slot, operand)
        self._outputs: list[tuple[int, int]] = []  # (slot, result)
        self._copies: list[tuple[int, int, int]] = []  # (result, operand, bytes)
        self._starts: list[tuple[int, int, int]] = []  # (offset, operand, bytes)
        self._behind = -(-self._bytes // 64) * 64
        self._zeros = False
        for number, slot in enumerate(program.slots):
            kind, first, source, nbytes = words[3 + 4 * number : 7 + 4 * number]
            if kind == 0:
                self._inputs.append((number, first))
            elif kind == 1:
                self._places.append((number, self._behind + 8 * (first - 3 - 4 * count)))
            elif kind in (2, 3, 6):
                self._outputs.append((number, first))
                if kind == 3:
                    self._copies.append((first, source, nbytes))
                elif kind == 2 and nbytes and (slot.steps or slot.parameter.is_array):  # each call writes its result
                    self.zeroed[first] = True
            else:
                self._places.append((number, first))
                self._zeros = True
                if kind == 5 and nbytes:
                    self._starts.append((first, source, nbytes))
        status = program.status_slot
        self._status = next((offset for number, offset in self._places if number == status), None)
        self._status_type = program.slots[status].dtype.numpy if status is not None else None

    def __call__(self, operands: Sequence[int], results: Sequence[int], shapes: Sequence[Shape] = ()) -> None:
        if self._longer and (longer := self._longer.get(self._integers(operands))):
            longer(operands, results)
            return
        try:
            state = self._free.pop()
        except IndexError:
            state = self._fresh()
        frame, zeros = state.frame, self._zeros
        if zeros:
            start = address_of(state.memory)
            _memset(start, 0, self._bytes)
            for offset, operand, nbytes in self._starts:
                _memmove(start + offset, operands[operand], nbytes)
        for number, operand in self._inputs:
            frame[number] = operands[operand] or _EMPTY
        for number, result in self._outputs:
            frame[number] = results[result] or _EMPTY
        for result, operand, nbytes in self._copies:
            _memmove(results[result], operands[operand], nbytes)
        failed = self._entry(state.address)
        if failed is not None:
            self._again(operands, results, self._program.out_of_tape(failed))
            return
        if self._status is not None:
            self._check(state)
        if len(self._free) < _MOST_FRAMES:
            self._free.append(state)

    def _integers(self, operands: Sequence[int]) -> tuple[bytes, ...]:
        """The values of the integer scalars among the operands, on which a tape may hang."""
        return tuple(ctypes.string_at(at, dtype.itemsize)
                     for at, (shape, dtype) in zip(operands, self.operands, strict=True)
                     if not shape and dtype.kind in "iu")  # fmt: skip

    def _again(self, operands: Sequence[int], results: Sequence[int], error: BaseException) -> None:
        """The call anew, with states in place of a tape that passed its limit. Raises another error."""
        if not isinstance(error, TapeMemoryError):
            raise error
        made = next(iter(self._longer.values()), None)
        if made is None:
            made = _Single(self.spec, self._program.keeping_states(error), *self._given, self.batch)
        for at, (shape, dtype), zeroed in zip(results, self.results, self.zeroed, strict=True):
            if zeroed:
                _memset(at, 0, math.prod(shape) * dtype.itemsize)
        self._longer[self._integers(operands)] = made
        made(operands, results)

    def _fresh(self) -> _Frame:
        if self._entry is None:
            self._entry = self._program.entry
        memory = aligned_zeros((self._behind + self._constants.nbytes,), np.dtype(np.uint8))
        memory[self._behind :] = self._constants.view(np.uint8)
        return _Frame(len(self._program.slots), memory, self._places)

    def _check(self, state: _Frame) -> None:
        source, first = self._program.source, self._status or 0
        kind: Any = self._status_type
        status = int(state.memory[first : first + kind.itemsize].view(kind)[0])
        if status:
            raise failure(source.name, source.signature, source.errors, status)


class _Batch(Native):
    """A call with batch axes."""

    def __init__(
        self, spec: Spec, program: Program, sizes: Mapping[str, int], constants: Mapping[int, int], batch: Shape
    ) -> None:
        super().__init__(spec, sizes, batch)
        self._samples = math.prod(batch)
        self._bound = Bound([], dict(sizes))
        self._given: dict[int, Data] = {}
        for index, bits in constants.items():
            kind = program.slots[next(n for n, s in enumerate(program.slots) if s.index == index)].dtype.numpy
            value = np.array([bits], np.int64).view(np.uint8)[: kind.itemsize].view(kind)
            self._given[index] = Data(value, 0, kind.itemsize)
        number = {(slot.index, slot.steps): n for n, slot in enumerate(program.slots) if slot.role != "scratch"}
        self._sources = [(number[key], n) for key, n in used_operands(spec, program).items() if key in number]
        targets = {n: number[key] for key, n in result_numbers(spec).items()}
        self._wanted = {targets[n]: "each" for n in range(len(spec.results))}
        self._batched = Batched(spec.kernel, lambda: program, spec.kernel.name, in_axes=None, layout="aos",
                                width="auto", threads=None, reduce=None)  # fmt: skip

    def __call__(self, operands: Sequence[int], results: Sequence[int], shapes: Sequence[Shape] = ()) -> None:
        axes = len(self.batch)
        starts: dict[int, Data] = {}
        for slot, n in self._sources:
            (full, dtype), shape = self.operands[n], shapes[n]
            array = _view(operands[n], shape, dtype)
            shared = all(size == 1 for size in shape[:axes])
            if not shared and shape[:axes] != self.batch:
                array = np.ascontiguousarray(np.broadcast_to(array, full))
            core = math.prod(full[axes:]) * dtype.itemsize
            starts[slot] = Data(array, 0 if shared else core, dtype.itemsize)
        out = [
            _view(at, (self._samples, *shape[axes:]), dtype)
            for at, (shape, dtype) in zip(results, self.results, strict=True)
        ]
        given = Operands(self._samples, {}, self._bound, self._given)
        with using(self.spec.rules):
            self._batched.run(given, starts, self._wanted, out)


def _view(address: int, shape: Shape, dtype: Any) -> Array:
    """The memory at an address as an array."""
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.zeros(shape, dtype)
    memory = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)
