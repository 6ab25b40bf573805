"""Derivatives of programs as sums of programs: against differences, and the tables against each other."""

from __future__ import annotations

import numpy as np
import pytest
from samples import sample

from irgrad.interop.programs.algebra import Spec
from irgrad.interop.programs.arguments import Values, bound_call
from irgrad.interop.programs.native import native_call
from irgrad.interop.programs.terms import OPERAND, gradient_terms, tangent_terms

RNG = np.random.default_rng(7)
VALUES = Values(
    lambda value: isinstance(value, np.ndarray), lambda value, p: np.asarray(value), lambda value, p: int(value), "map"
)
SUBJECTS = {
    "energy": lambda: [RNG.normal(size=(4, 3)), RNG.uniform(1, 2, 4)],
    "scale": lambda: [RNG.normal(size=3), np.array(0.7)],
    "two": lambda: [RNG.normal(size=3)],
    "product": lambda: [np.array(0.4), np.array(1.3)],
}


class Table:
    """A tiny adapter: programs on NumPy arrays, and the sums of their derivatives."""

    def __init__(self, name: str) -> None:
        self.call = bound_call(sample(name), SUBJECTS[name](), VALUES)

    def run(self, spec: Spec, operands: list[np.ndarray]) -> list[np.ndarray]:
        rows = [np.ascontiguousarray(x) for x in operands]
        native = native_call(spec, self.call.sizes, self.call.constants)
        out = [np.full(shape, 0 if zero else np.nan, kind)
               for (shape, kind), zero in zip(native.results, native.zeroed, strict=True)]  # fmt: skip
        native([x.ctypes.data for x in rows], [y.ctypes.data for y in out])
        return out

    def sums(self, terms, operands, given) -> dict[int, np.ndarray]:
        sums: dict[int, np.ndarray] = {}
        for term in terms:
            rows = [operands[n] if kind == OPERAND else given[n] for kind, n in term.operands]
            for target, value in zip(term.targets, self.run(term.spec, rows), strict=True):
                sums[target] = sums.get(target, 0) + value
        return sums

    def specs(self, depth: int) -> list[tuple[Spec, list[np.ndarray]]]:
        """The call, and the programs of its derivatives up to this order, with random operands."""
        found = [(self.call.spec, self.call.operands)]
        for spec, operands in found:
            if len(spec.groups) < depth:
                everything, results = range(len(operands)), range(len(spec.results))
                for term in [*gradient_terms(spec, everything, results), *tangent_terms(spec, everything)]:
                    kinds = [operands[n] if kind == OPERAND else None for kind, n in term.operands]
                    shapes = [shape for shape, _ in native_call(term.spec, *self.known()).operands]
                    fresh = [RNG.normal(size=s) if x is None else x for x, s in zip(kinds, shapes, strict=True)]
                    if all(term.spec != other for other, _ in found):
                        found.append((term.spec, fresh))
        return found

    def known(self) -> tuple:
        return self.call.sizes, self.call.constants


@pytest.mark.parametrize("name", SUBJECTS)
def test_tangents_are_differences_and_gradients_their_adjoints(name: str) -> None:
    table = Table(name)
    checked = 0
    for spec, operands in table.specs(3 if name == "product" else 2):
        out = table.run(spec, operands)
        moves = [RNG.normal(size=x.shape) for x in operands]
        tangents = table.sums(tangent_terms(spec, range(len(operands))), operands, moves)
        step = 1e-6
        ahead, behind = (
            table.run(spec, [x + side * step * t for x, t in zip(operands, moves, strict=True)]) for side in (1, -1)
        )
        cotangents = [RNG.normal(size=y.shape) for y in out]
        gradients = table.sums(gradient_terms(spec, range(len(operands)), range(len(out))), operands, cotangents)
        for n, y in enumerate(out):
            slope = (ahead[n] - behind[n]) / (2 * step)
            np.testing.assert_allclose(
                tangents[n], slope, rtol=2e-6, atol=2e-6 * (1 + np.abs(y).max()), err_msg=f"{spec}"
            )
        forward = sum(np.vdot(w, tangents[n]) for n, w in enumerate(cotangents))
        reverse = sum(np.vdot(gradients[n], t) for n, t in enumerate(moves) if n in gradients)
        np.testing.assert_allclose(forward, reverse, rtol=1e-10, err_msg=f"{spec}")
        checked += 1
    assert checked >= 5


def test_what_is_not_asked_for_is_not_computed() -> None:
    table = Table("two")
    spec = table.call.spec
    assert gradient_terms(spec, (), (0, 1, 2)) == [] and gradient_terms(spec, (0,), ()) == []
    assert tangent_terms(spec, ()) == []
    (term,) = gradient_terms(spec, (0,), (1,))
    assert term.spec.cotangents == (spec.results[1],)


def test_integers_have_no_terms() -> None:
    values = [np.ones(3), np.array([0, 2], np.int32)]
    call = bound_call(sample("gather"), values, VALUES)
    (term,) = gradient_terms(call.spec, (0, 1), (0,))
    assert term.spec.wanted == (call.spec.inputs[0],) and term.targets == (0,)
    count = bound_call(sample("count"), [np.ones(3)], VALUES)
    assert gradient_terms(count.spec, (0,), (0,)) == [] and tangent_terms(count.spec, (0,)) == []
