"""Plans: a program with its sizes and batch axes, ready to run, and the plans of its derivatives.

Adapters derive a class that runs a plan on their arrays, and record its calls.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from irgrad.engine.codegen.cache import fingerprint
from irgrad.engine.signature.slots import TAPE
from irgrad.interop.programs.algebra import Spec, kept_for
from irgrad.interop.programs.native import Native, native_call
from irgrad.interop.programs.terms import OPERAND, Term, gradient_terms, tangent_terms

__all__ = ["Plan", "plan_of"]

P = TypeVar("P", bound="Plan")


class Plan:
    """A program with its sizes and batch axes. Made by `plan_of`.

    results: shape and name of the NumPy dtype of each;  flows: whether it has a derivative
    """

    def __init__(self, spec: Spec, sizes: Any, constants: Any, batch: tuple[int, ...]) -> None:
        self.spec, self.sizes, self.constants, self.batch = spec, sizes, constants, batch
        names = dict(sizes)
        self.results = [((*batch, *spec.shape(i, names)), spec.dtype(i).name) for i in spec.results]
        self.flows = [spec.flows(i) for i in spec.results]
        self._terms: dict[Any, Any] = {}

    @cached_property
    def name(self) -> str:
        """What graphs know it by: a digest of all that determines it, so that one which another process has stored
        means the same here."""
        spec = self.spec
        said = [spec.inputs, spec.directions, spec.cotangents, spec.wanted, self.sizes, self.constants, self.batch]
        ruled = spec.rules.digest if spec.rules is not None else ""
        found = fingerprint(spec.kernel.content_digest, ruled, *map(repr, said))
        return f"{spec.kernel.name}.{found[:32]}"

    @cached_property
    def native(self) -> Native:
        """The compiled program."""
        return native_call(self.spec, self.sizes, self.constants, self.batch)

    def gradients(self: P, wanted: tuple[int, ...], live: tuple[int, ...]) -> list[tuple[P, Term]]:
        """The terms of the gradients of these operands from cotangents of these results."""
        key = wanted, live
        if key not in self._terms:
            self._terms[key] = self._planned(gradient_terms(self.spec, wanted, live))
        found: list[tuple[P, Term]] = self._terms[key]
        return found

    def taped(self: P, needed: tuple[int, ...]) -> P | None:
        """The same with a tape as the last result, for gradients of these operands: a plan with `from_tape`. None where
        the primal runs again instead."""
        key = "tape", needed
        if key not in self._terms:
            spec, made = self.spec, None
            arguments = tuple(spec.inputs[n] for n in needed if n < len(spec.inputs) and spec.flows(spec.inputs[n]))
            outputs = tuple(i for i in spec.wanted if spec.flows(i))
            if arguments and outputs and not (self.batch or spec.groups or spec.tape):
                kept = kept_for(spec, arguments, outputs, self.sizes, self.constants)
                made = kept and replace(spec, wanted=(*spec.wanted, TAPE), tape=kept)
            self._terms[key] = made and plan_of(type(self), made, self.sizes, self.constants)
        plan: P | None = self._terms[key]
        return plan

    def from_tape(self: P, wanted: tuple[int, ...], live: tuple[int, ...]) -> list[tuple[P, Term]]:
        """The terms of `gradients` of a plan that gives a tape, which is one more operand behind the inputs."""
        key = "from tape", wanted, live
        if key not in self._terms:
            spec, count = self.spec, len(self.spec.inputs)
            terms = [
                Term(replace(term.spec, inputs=(*spec.inputs, TAPE), tape=spec.tape),
                     (*term.operands[:count], (OPERAND, count), *term.operands[count:]), term.targets)
                for term in gradient_terms(spec.plain, wanted, live)
            ]  # fmt: skip
            self._terms[key] = self._planned(terms)
        found: list[tuple[P, Term]] = self._terms[key]
        return found

    @cached_property
    def plain(self: P) -> P:
        """The same program without the tape."""
        return plan_of(type(self), self.spec.plain, self.sizes, self.constants)

    def tangents(self: P, moved: tuple[int, ...]) -> list[tuple[P, Term]]:
        """The terms of the results' tangents from those of these operands."""
        if moved not in self._terms:
            self._terms[moved] = self._planned(tangent_terms(self.spec, moved))
        found: list[tuple[P, Term]] = self._terms[moved]
        return found

    def _planned(self: P, terms: list[Term]) -> list[tuple[P, Term]]:
        return [(plan_of(type(self), term.spec, self.sizes, self.constants, self.batch), term) for term in terms]

    def mapped(self: P, size: int) -> P:
        """The same with one more batch axis in front."""
        return plan_of(type(self), self.spec, self.sizes, self.constants, (size, *self.batch))


def plan_of(kind: type[P], spec: Spec, sizes: Any, constants: Any, batch: tuple[int, ...] = ()) -> P:
    """The plan for a call, of an adapter's class; made once, and kept as long as the kernel is."""
    known = spec.kernel.adapters.setdefault(kind, {})
    key = spec, sizes, constants, batch
    plan: P | None = known.get(key)
    made: P = known.setdefault(key, kind(*key)) if plan is None else plan
    return made
