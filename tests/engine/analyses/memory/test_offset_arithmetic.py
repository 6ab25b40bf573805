"""Sets that operations give, against all their members."""

from __future__ import annotations

import pytest
from handwritten.made import module_of

from irgrad.engine.analyses.memory.offset_arithmetic import at_most, binary, natural
from irgrad.engine.analyses.memory.strided_sets import Offsets


@pytest.mark.parametrize("places", [Offsets(5), Offsets(64), Offsets(0, ((32, None),)), Offsets(8, ((24, 3),)),
                                    Offsets(4, ((24, 2), (8, 1))), Offsets(3, ((6, None),))])  # fmt: skip
@pytest.mark.parametrize("limit", [0, 7, 64, 100])
def test_the_smaller_of_a_number_and_a_place_is_among_them(places: Offsets, limit: int) -> None:
    members = {x + places.stride * k for x in places.expand() for k in range(50)}
    found = at_most(places, limit)
    assert {min(x, limit) for x in members} <= set(found.expand())
    assert max(found.expand()) <= limit


def test_a_limit_keeps_the_stride() -> None:
    assert at_most(Offsets(0, ((32, None),)), 64) == Offsets(0, ((32, 2),))


def test_natural_numbers_do_not_reach_below_zero() -> None:
    assert natural(Offsets(0, ((8, None),)))
    assert not natural(Offsets(0, ((8, None),), True))
    assert not natural(Offsets(-8))




@pytest.mark.parametrize("rest, below", [("urem", False), ("srem", True)])
def test_a_number_less_its_rest_is_a_multiple(rest: str, below: bool) -> None:
    text = f"define i64 @f(i64 %n) {{\n  %r = {rest} i64 %n, 48\n  %d = sub i64 %n, %r\n  ret i64 %d\n}}\n"
    fn = module_of(text, "f", prepared=False).functions["f"]
    difference = next(instr for instr in fn.instructions() if instr.opcode == "sub")
    assert binary(difference, Offsets(-48, ((48, None),)), Offsets(0, ((1, 47),))) == Offsets(0, ((48, None),), below)
