"""The order of the types on which rules dispatch."""

from __future__ import annotations

import pytest

from irgrad.rules.definitions.types import (
    Active,
    Activity,
    AoS,
    Argument,
    Array,
    Batched,
    Const,
    Duplicated,
    DuplicatedNoNeed,
    Float,
    Integer,
    Kind,
    Known,
    Mode,
    Ptr,
    Reverse,
    SoA,
    f32,
    f64,
    i32,
    literal,
    mode_type,
)

BELOW = [
    (Duplicated[Array[f64, 2]], Duplicated[Ptr[f64]]),
    (Duplicated[Array[f64, 2]], Duplicated[Ptr]),
    (Duplicated[Array[f64, 2]], Duplicated[Array[f64]]),
    (DuplicatedNoNeed[Ptr[f64]], Duplicated[Ptr[f64]]),
    (Active[f64], Activity[Float]),
    (Active[f32], Activity),
    (Const[literal(111, i32)], Const[Known[111]]),
    (Const[literal(111, i32)], Const[i32]),
    (Const[literal(111, i32)], Activity[Integer]),
    (Batched[Duplicated[Array[f64, 1]], SoA], Batched[Duplicated[Ptr[f64]], SoA]),
    (Batched[Const[f64], AoS], Batched[Const]),
    (Reverse[3], Reverse),
    (Reverse[3], Mode),
]
APART = [
    (Duplicated[Ptr[f64]], Duplicated[Array[f64, 1]]),
    (Duplicated[Ptr[f64]], Duplicated[Ptr[f32]]),
    (Duplicated[Array[f64, 1]], Duplicated[Array[f64, 2]]),
    (Duplicated[Ptr[f64]], DuplicatedNoNeed[Ptr[f64]]),
    (Const[literal(111, i32)], Const[Known[112]]),
    (Const[i32], Const[Known[111]]),
    (Batched[Const[f64], AoS], Batched[Const[f64], SoA]),
    (Batched[Const[f64], SoA], Activity),
    (Active[f64], Const[f64]),
    (Reverse, Reverse[3]),
]


@pytest.mark.parametrize(("narrow", "wide"), BELOW, ids=str)
def test_below(narrow: Kind, wide: Kind) -> None:
    assert issubclass(narrow, wide)
    assert not issubclass(wide, narrow)


@pytest.mark.parametrize(("one", "other"), APART, ids=str)
def test_apart(one: Kind, other: Kind) -> None:
    assert not issubclass(one, other)


def test_equal_parameters_give_one_class() -> None:
    assert Duplicated[Array[f64, 2]] is Duplicated[Array[f64, 2]]
    assert Known[True] is not Known[1]
    assert str(Duplicated[Array[f64, 2]]) == "Duplicated[Array[f64, 2]]"
    assert issubclass(Batched[Active[f64], SoA], Argument)


def test_plum_finds_them_faithful() -> None:
    import plum

    for kind in (Active[f64], Batched[Active[f64], SoA], Reverse[2], Const[literal(3, i32)]):
        assert plum.is_faithful(kind)


def test_parameters_are_checked() -> None:
    with pytest.raises(TypeError, match="one element type"):
        Active[SoA]
    with pytest.raises(TypeError, match="an activity and a layout"):
        Batched[f64, SoA]
    with pytest.raises(ValueError, match="forward"):
        mode_type("backward")
