"""Derivatives of programs as sums of programs: the tables of `algebra` for frameworks that record one call at a time.

A term names its operands by where they come from: an operand of the program that is differentiated, or what was given
for it: the tangent of an operand, the cotangent of a result. (`interop/jax/rules` says the same to JAX, which has
symbolic zeros, lanes and tapes besides.)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from irgrad.interop.programs.algebra import Spec

__all__ = ["GIVEN", "OPERAND", "Term", "gradient_terms", "tangent_terms"]

OPERAND, GIVEN = 0, 1
"""Where an operand of a term comes from."""
Source = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Term:
    """One program of a sum.

    operands: (OPERAND or GIVEN, number) for each operand of the program
    targets:  what each result is added to: the gradient of an operand, the tangent of a result (their numbers)
    """

    spec: Spec
    operands: tuple[Source, ...]
    targets: tuple[int, ...]


def gradient_terms(spec: Spec, wanted: Collection[int], live: Sequence[int]) -> list[Term]:
    """Gradients of the operands `wanted` from the cotangents of the results `live`: a term for the inputs, and one for
    each group of operands."""
    inputs, groups = _groups(spec)
    given: list[Source] = [(GIVEN, n) for n in live if spec.flows(spec.results[n])]
    marked = tuple(spec.results[n] for _, n in given)
    terms: list[Term] = []
    if not marked:
        return terms
    members, first = spec.members, _first(inputs)
    moved = [n for n in inputs if n in wanted and spec.flows(members[n])]
    if moved:
        mask = tuple(members[n] for n in moved)
        if spec.cotangents is None:
            term = replace(spec, cotangents=marked, wanted=mask)
            terms.append(_term(term, [first, given, *map(_first, groups)], moved))
        else:
            term = replace(spec, directions=(*spec.directions, marked), wanted=mask)
            terms.append(_term(term, [first, *map(_first, groups), given], moved))
    for number, (kind, which, _) in enumerate(spec.groups):
        targets = [n for n in groups[number] if n in wanted]
        if not targets:
            continue
        others = [_first(row) for k, row in enumerate(groups) if k != number]
        directions = list(spec.directions)
        mask = tuple(members[n] for n in targets)
        if kind == "w":  # G in w -> D with one more direction
            term = replace(spec, directions=(*directions, marked), cotangents=None, wanted=mask)
            at = len(directions)
        elif spec.cotangents is None:  # D in t_i -> G of the others
            del directions[which]
            term = replace(spec, directions=tuple(directions), cotangents=marked, wanted=mask)
            at = 0
        else:  # G in t_i -> G with the cotangent in its place
            directions[which] = marked
            term = replace(spec, directions=tuple(directions), wanted=mask)
            at = which + 1
        terms.append(_term(term, [first, *others[:at], given, *others[at:]], targets))
    return terms


def tangent_terms(spec: Spec, moved: Collection[int]) -> list[Term]:
    """Tangents of the results from those of the operands `moved`."""
    inputs, groups = _groups(spec)
    targets = [n for n, index in enumerate(spec.results) if spec.flows(index)]
    flow = replace(spec, wanted=tuple(spec.results[n] for n in targets))
    terms: list[Term] = []
    if not targets:
        return terms
    members, first = spec.members, _first(inputs)
    rows = [n for n in inputs if n in moved and spec.flows(members[n])]
    if rows:
        term = replace(flow, directions=(*spec.directions, tuple(members[n] for n in rows)))
        terms.append(_term(term, [first, *map(_first, groups), [(GIVEN, n) for n in rows]], targets))
    for number, (kind, which, _) in enumerate(spec.groups):
        rows = [n for n in groups[number] if n in moved]
        if not rows:
            continue
        mask = tuple(members[n] for n in rows)
        directions = list(spec.directions)
        if kind == "t":
            directions[which] = mask
        term = replace(flow, directions=tuple(directions), cotangents=mask if kind == "w" else spec.cotangents)
        changed = [_first(row) if k != number else [(GIVEN, n) for n in rows] for k, row in enumerate(groups)]
        terms.append(_term(term, [first, *changed], targets))
    return terms


def _term(spec: Spec, operands: Sequence[Sequence[Source]], targets: Sequence[int]) -> Term:
    return Term(spec, tuple(source for row in operands for source in row), tuple(targets))


def _first(numbers: Sequence[int]) -> list[Source]:
    return [(OPERAND, n) for n in numbers]


def _groups(spec: Spec) -> tuple[list[int], list[list[int]]]:
    """Numbers of the operands: the inputs, and each group."""
    at = len(spec.inputs)
    groups = []
    for _, _, mask in spec.groups:
        groups.append(list(range(at, at + len(mask))))
        at += len(mask)
    return list(range(len(spec.inputs))), groups
