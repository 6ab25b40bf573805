"""The algebra of derivatives under JAX, apart from any primitive: what each program takes, gives, and becomes.

Two families are closed under jvp and transposition, at any order:

    D[t1..tk](x)     the k-th directional derivative of f at x along t1 ... tk   (k = 0: f itself)
    G[t1..tk](x, w)  the gradient of <w, D[t1..tk](x)>, which is multilinear in w, t1, ..., tk

    d D[t..](x)    = D[t.., dx](x)    + sum_i D[.. dt_i ..](x)
    d G[t..](x, w) = G[t.., dx](x, w) + sum_i G[.. dt_i ..](x, w) + G[t..](x, dw)

    transpose of D[t1..tk] in t_i, cotangent w:  G[the other t](x, w)
    transpose of G[t1..tk] in t_i, cotangent u:  G[u for t_i](x, w)      (derivatives commute)
    transpose of G[t1..tk] in w,   cotangent u:  D[t1..tk, u](x)

As words over the kernel D is J...J and G is V, then J...J (forward over reverse). Masks say which arguments a direction
moves, which outputs have cotangents and which gradients are wanted: what is inactive costs nothing.

A tape may go along as one more result of D0 and one more input of D1 and G0. It says nothing that the inputs do not
say: G0 with a tape skips the primal, D1 drops it, and hands it on to G0 when it is transposed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.tapes import frugal, tape_of
from irgrad.engine.signature.slots import TAPE, TAPE_BYTES, TAPE_NAME, Slot
from irgrad.rules.layers import InForce, using

__all__ = [
    "Kept", "Key", "Spec", "in_place", "kept_for", "layout", "operand_groups", "operand_numbers", "program_of",
    "result_numbers", "sizes_of", "used_operands",
]  # fmt: skip

Words = tuple[int, ...]
Key = tuple[int, Words]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a tape is for: derivatives of these outputs with respect to these arguments. bytes: its size."""

    arguments: tuple[int, ...]
    outputs: tuple[int, ...]
    bytes: int

    @property
    def active(self) -> frozenset[int]:
        """The slots with a shadow."""
        return frozenset((*self.arguments, *self.outputs))


@dataclass(frozen=True, slots=True)
class Spec:
    """One program. All members are C parameter indices; the return value's is the number of parameters.

    inputs:     arguments that are operands (the others are size arguments or constants)
    directions: for each t_i the arguments it moves
    cotangents: outputs that have a cotangent; None for the family D
    wanted:     results: outputs (D) or arguments whose gradient is wanted (G)
    values:     outputs whose values the same call returns as well, before the `wanted` (D1 and G0 only)
    widths:     for each group of operands behind the inputs, how many of them share the primal: 1, or the last axis
                of the group's operands; () stands for all 1

    rules:      those of the user that were in force where the kernel was called
    tape:       what the tape holds that is the last of the inputs, or the last of the wanted (as `TAPE`)

    Operands: inputs, then each direction's tangents, preceded by the cotangents for G. The widths over 1 are the last
    axes of the `wanted` results, in the order of the groups.
    """

    kernel: Kernel
    inputs: tuple[int, ...]
    directions: tuple[tuple[int, ...], ...] = ()
    cotangents: tuple[int, ...] | None = None
    wanted: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    widths: tuple[int, ...] = ()
    rules: InForce | None = None
    tape: Kept | None = None

    def flows(self, index: int) -> bool:
        """Whether a result has a tangent."""
        return index != TAPE and self.kernel.primal.slots[index].differentiable

    def shape(self, index: int, sizes: Mapping[str, int]) -> Words:
        """The shape of an operand or result without batch axes and lanes."""
        if index == TAPE:
            return (self.tape.bytes if self.tape is not None else 0,)
        return self.kernel.primal.slots[index].shape(sizes)

    def dtype(self, index: int) -> Any:
        """The NumPy dtype of an operand or result."""
        return np.dtype(np.uint8) if index == TAPE else self.kernel.primal.slots[index].dtype.numpy

    @property
    def reads_tape(self) -> bool:
        """Whether a tape is among the inputs."""
        return self.inputs[-1:] == (TAPE,)

    @property
    def plain(self) -> Spec:
        """The same without the tape."""
        kept = [tuple(i for i in row if i != TAPE) for row in (self.inputs, self.wanted)]
        return replace(self, inputs=kept[0], wanted=kept[1], tape=None)

    def width(self, number: int) -> int:
        """The width of a group."""
        return self.widths[number] if self.widths else 1

    def widened(self, number: int, width: int) -> Spec:
        """The same with another width of a group."""
        widths = [width if n == number else self.width(n) for n in range(len(self.groups))]
        return replace(self, widths=tuple(widths) if max(widths) > 1 else ())

    @property
    def lanes(self) -> tuple[int, ...]:
        """The last axes of the `wanted` results."""
        return tuple(width for width in self.widths if width > 1)

    @property
    def results(self) -> tuple[int, ...]:
        """The C parameter behind each result."""
        return (*self.values, *self.wanted)

    @property
    def primal(self) -> Spec:
        """The values alone: D0 of the same inputs."""
        return Spec(self.kernel, self.inputs, wanted=self.values, rules=self.rules)

    @property
    def linear(self) -> Spec:
        """The same derivative without the values."""
        return replace(self, values=())

    @property
    def groups(self) -> tuple[tuple[str, int, tuple[int, ...]], ...]:
        """Operand groups behind the inputs: ("w", -1, outputs), ("t", i, arguments)."""
        head = [("w", -1, self.cotangents)] if self.cotangents is not None else []
        return (*head, *(("t", i, mask) for i, mask in enumerate(self.directions)))

    @property
    def members(self) -> tuple[int, ...]:
        """The C parameter behind each operand."""
        return (*self.inputs, *(i for _, _, mask in self.groups for i in mask))

    def __repr__(self) -> str:
        letters = "D" if self.cotangents is None else "G"
        tape = "+tape" if self.tape is not None else ""
        lanes = "x".join(map(str, self.lanes))
        values = "+values" if self.values else ""
        return f"{letters}{len(self.directions)}{values}{tape}{' x' + lanes if lanes else ''}[{self.kernel.name}]"


def kept_for(spec: Spec, arguments: Words, outputs: Words, sizes: Any, constants: Any) -> Kept | None:
    """The tape between a call that gives values (`spec`) and derivatives of these outputs with respect to these
    arguments; None where the primal runs again instead."""
    kernel, names = spec.kernel, dict(sizes)
    if kernel.options.tape == "recompute":
        return None
    with using(spec.rules):
        nbytes = tape_of(kernel.primal, {*arguments, *outputs}).bytes(dict(constants))
    traffic = sum(math.prod(spec.shape(i, names)) * spec.dtype(i).itemsize for i in (*spec.inputs, *spec.results))
    return Kept(arguments, outputs, nbytes) if nbytes and frugal(kernel, nbytes, traffic) else None


def operand_groups(spec: Spec, values: Any) -> tuple[list[Any], list[list[Any]]]:
    """The operands' values as inputs and groups."""
    at = len(spec.inputs)
    inputs, groups = list(values[:at]), []
    for _, _, mask in spec.groups:
        groups.append(list(values[at : at + len(mask)]))
        at += len(mask)
    return inputs, groups


def program_of(spec: Spec) -> Program:
    """The kernel's program that computes `spec`."""
    with using(spec.rules):
        return _program_of(spec)


def _program_of(spec: Spec) -> Program:
    program = spec.kernel.primal
    if spec.tape is not None and TAPE in spec.wanted:
        return program.forward_with_tape(spec.tape.active)
    if spec.tape is not None and spec.reads_tape and spec.cotangents is not None:
        kept, width = spec.tape.active, spec.width(0)
        if width == 1 or tape_of(program, kept, width).layout == tape_of(program, kept).layout:
            return program.reverse_from_tape(kept, width)
    outputs = tuple(i for i in spec.kernel.output_positions if program.slots[i].differentiable)
    first = 0
    if spec.cotangents is not None:
        program = (program.vjp if spec.values else program.pullback)({*spec.wanted, *spec.cotangents}, spec.width(0))
        first = 1
    for number, mask in enumerate(spec.directions):
        last = number == len(spec.directions) - 1 and not spec.values
        if spec.cotangents is None and number == 0:
            active = {*mask, *outputs}
        else:
            active = {n for n, s in enumerate(program.slots) if s.differentiable and _moves(s, mask)}
        program = (program.jvp_only if last else program.jvp)(active, spec.width(number + first))
    return program


def _moves(slot: Slot, mask: tuple[int, ...]) -> bool:
    """Whether a slot depends on a direction: arguments in its mask do, and everything that is written."""
    return slot.role != "in" or (not slot.steps and slot.index in mask)


def layout(
    spec: Spec, program: Program, sizes: Mapping[str, int], constants: Mapping[int, int],
    where: Mapping[Key, int] | None = None,
) -> Words:  # fmt: skip
    """The `meta` of a call without batch axes (see `handler`): where each slot lives.

    constants: bits (as i64) of scalar arguments that are not operands; where: numbers of the operands
    """
    where, results = operand_numbers(spec) if where is None else where, result_numbers(spec)
    scratch = 0
    records: list[Words] = []
    values: list[int] = []
    behind = 3 + 4 * len(program.slots)
    for slot, shape in zip(program.slots, program.shapes(sizes), strict=True):
        nbytes = math.prod(shape) * slot.dtype.size
        key = (slot.index, slot.steps)
        source = where.get(key) if slot.role != "scratch" else None
        result = results.get(key) if slot.role != "scratch" else None
        if not slot.steps and slot.index in constants:
            records.append((1, behind + len(values), 0, nbytes))
            values.append(constants[slot.index])
        elif result is not None:
            fresh = 6 if slot.index == TAPE else 2
            records.append((fresh if source is None else 3, result, source or 0, nbytes))
        elif slot.role == "in" and source is not None:
            records.append((0, source, 0, nbytes))
        else:
            records.append((4 if source is None else 5, scratch, source or 0, nbytes))
            scratch += -(-nbytes // 64) * 64
    return (0, len(records), scratch, *(word for record in records for word in record), *values)


def in_place(words: Words) -> dict[int, int]:
    """Operands that may share memory with a result: {operand: result}, from the words of `layout`."""
    records = [words[at : at + 4] for at in range(3, 3 + 4 * words[1], 4)]
    return {source: result for kind, result, source, _ in records if kind == 3}


def sizes_of(spec: Spec, sizes: Any, constants: Any) -> tuple[dict[str, int], dict[int, int]]:
    """Sizes and constants as tables, with those of the tape."""
    if spec.tape is None:
        return dict(sizes), dict(constants)
    return {**dict(sizes), TAPE_NAME: spec.tape.bytes}, {**dict(constants), TAPE_BYTES: spec.tape.bytes}


def used_operands(spec: Spec, program: Program) -> dict[Key, int]:
    """The operands that the program has a slot for, by (C parameter, steps of the word): their numbers."""
    slots = {(slot.index, slot.steps) for slot in program.slots if slot.role != "scratch"}
    return {key: n for key, n in operand_numbers(spec).items() if spec.tape is None or key in slots}


def operand_numbers(spec: Spec) -> dict[Key, int]:
    """(C parameter, steps of the word) of each operand -> its number."""
    first = 0 if spec.cotangents is None else 1
    steps: list[Words] = [()] * len(spec.inputs)
    for kind, number, mask in spec.groups:
        steps += [(0,) if kind == "w" else (number + first,)] * len(mask)
    return {(index, step): n for n, (index, step) in enumerate(zip(spec.members, steps, strict=True))}


def result_numbers(spec: Spec) -> dict[Key, int]:
    """(C parameter, steps of the word) of each result -> its number."""
    last = tuple(range(len(spec.directions) + (spec.cotangents is not None)))
    keys = [*((index, ()) for index in spec.values), *((index, last) for index in spec.wanted)]
    return {key: n for n, key in enumerate(keys)}
