"""The type of a shadow: W lanes of every float, side by side or apart."""

from __future__ import annotations

import pytest

from irgrad.engine.differentiate.layout.shadow_types import Apart, shadow_type
from irgrad.engine.ir import types as ty

PAIR = ty.struct((ty.F64, ty.PTR, ty.I32))


@pytest.mark.parametrize("type_", [ty.F64, ty.PTR, ty.I64, PAIR, ty.vector(2, ty.F32), ty.array(3, PAIR), ty.VOID])
def test_one_lane_is_the_type_itself(type_: ty.Type) -> None:
    assert shadow_type(type_, 1) is type_


def test_lanes_side_by_side() -> None:
    assert shadow_type(ty.F64, 4) is ty.vector(4, ty.F64)
    assert shadow_type(ty.vector(2, ty.F32), 4) is ty.vector(8, ty.F32)
    assert shadow_type(ty.I64, 2) is ty.int_(128)
    assert shadow_type(PAIR, 2) is ty.struct((ty.vector(2, ty.F64), ty.PTR, ty.int_(64)))
    assert shadow_type(ty.array(3, ty.F64), 2) is ty.array(3, ty.vector(2, ty.F64))


def test_lanes_apart() -> None:
    """Numbers are as above; pointers and integers are one for each lane. The two are not one key of the cache."""
    assert shadow_type(ty.F64, Apart(2)) is ty.vector(2, ty.F64)
    assert shadow_type(ty.PTR, Apart(2)) is ty.array(2, ty.PTR)
    assert shadow_type(ty.PTR, 2) is ty.PTR
    assert shadow_type(ty.I64, Apart(2)) is ty.array(2, ty.I64)
