"""Layouts of calls: where each slot lives."""

from __future__ import annotations

from samples import sample

from irgrad.interop.programs.algebra import Spec, layout, program_of


def test_layout_of_a_batched_primal() -> None:
    kernel = sample("cubes")
    spec = Spec(kernel, (0, 1), wanted=(3,))
    assert spec.members == (0, 1)
    axes, slots, scratch, *rest = layout(spec, program_of(spec), {"n": 3}, {2: 3})
    assert (axes, slots, scratch) == (0, 4, 0)
    records = [tuple(rest[4 * i : 4 * i + 4]) for i in range(4)]
    assert records[0] == (0, 0, 0, 24)  # x: operand 0, 24 bytes per member
    assert records[1] == (0, 1, 0, 8)  # a: operand 1
    assert records[2][0] == 1 and rest[records[2][1] - 3] == 3  # n: a constant
    assert records[3] == (2, 0, 0, 8)  # the return value: result 0


def test_values_come_first() -> None:
    spec = Spec(sample("cubes"), (0, 1), directions=((0,),), wanted=(3,), values=(3,))
    assert spec.results == (3, 3) and repr(spec) == "D1+values[cubes]"
    assert (spec.primal, spec.linear.values) == (Spec(sample("cubes"), (0, 1), wanted=(3,)), ())
    records = layout(spec, program_of(spec), {"n": 3}, {2: 3})[3:]
    kinds = [records[4 * i : 4 * i + 3] for i in range(6)]
    assert kinds[-2:] == [(2, 0, 0), (2, 1, 0)]  # the value and its tangent


def test_groups_are_named() -> None:
    spec = Spec(sample("cubes"), (0, 1), directions=((0,), (0, 1)), cotangents=(3,), wanted=(0,))
    assert spec.groups == (("w", -1, (3,)), ("t", 0, (0,)), ("t", 1, (0, 1)))
    assert spec.members == (0, 1, 3, 0, 0, 1)
    assert repr(spec) == "G2[cubes]"
