"""Layouts of calls: where each slot lives."""

from __future__ import annotations

from samples import sample

from irgrad.interop.jax.algebra import Spec, layout, program_of


def test_layout_of_a_batched_primal() -> None:
    kernel = sample("cubes")
    spec = Spec(kernel, (0, 1), wanted=(3,))
    assert spec.members == (0, 1)
    meta = layout(spec, program_of(spec), {"n": 3}, {2: 3}, (2,), ((2, 3), (1,)))
    members, axes, slots, scratch, dim, *rest = meta.words
    assert (members, axes, slots, scratch, dim) == (2, 1, 4, 0, 2)
    records = [tuple(rest[6 * i : 6 * i + 6]) for i in range(4)]
    assert records[0] == (0, 0, 0, 24, 24, 0)  # x: operand 0, one row of 24 bytes per member
    assert records[1] == (0, 1, 0, 8, 0, 0)  # a: not batched, stride 0
    assert records[2][0] == 1 and meta.words[records[2][1]] == 3  # n: a constant
    assert records[3] == (2, 0, 0, 8, 8, 0)  # the return value: result 0


def test_groups_are_named() -> None:
    spec = Spec(sample("cubes"), (0, 1), directions=((0,), (0, 1)), cotangents=(3,), wanted=(0,))
    assert spec.groups == (("w", -1, (3,)), ("t", 0, (0,)), ("t", 1, (0, 1)))
    assert spec.members == (0, 1, 3, 0, 0, 1)
    assert repr(spec) == "G2[cubes]"
