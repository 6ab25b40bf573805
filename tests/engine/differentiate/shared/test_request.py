"""What is asked of the differentiator: the direction, the arguments, and the name of what is made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import get_args

import pytest
from handwritten.made import make

from irgrad.engine.differentiate.layout.shadow_types import Apart
from irgrad.engine.differentiate.shared.request import DERIVATIVES, Derivative, Request

PRODUCT = "void f(double *x, double *w, double *o) { *o = x[0] * w[0]; }"
ROLES = ("dup", "const", "dup")


def test_every_derivative_is_described() -> None:
    assert tuple(DERIVATIVES) == get_args(Derivative)
    assert len(set(DERIVATIVES.values())) == len(DERIVATIVES)


def test_derivatives_flow_in_one_of_two_directions() -> None:
    forward = {name for name in DERIVATIVES if Request("f", name).mode == "forward"}
    assert forward == {"jvp", "jvp_only", "split_forward"}
    assert {Request("f", name).mode for name in DERIVATIVES} == {"forward", "reverse"}


def test_the_active_arguments_are_those_with_a_shadow_of_the_caller() -> None:
    assert Request("f", "vjp", ROLES).active == {0, 2}
    assert Request("f", "vjp", ("const", "const")).active == frozenset()


@pytest.mark.parametrize(("width", "strip"), [(1, ""), (Apart(1), ""), (4, "4x"), (Apart(4), "4a")])
def test_the_name_says_derivative_width_and_shadowed_arguments(width: int, strip: str) -> None:
    asked = Request("f", "pullback", ROLES, width=width)
    assert asked.name([True, False, True]) == f"f.pullback{strip}.101"
    assert asked.name([True, True], "reverse_from_tape") == f"f.reverse_from_tape{strip}.11"


def test_derivatives_have_that_name() -> None:
    assert make(PRODUCT, "f", "forward", ROLES).derived.name == "f.jvp.101"
    assert make(PRODUCT, "f", "reverse", ROLES).derived.name == "f.vjp.101"
    assert make(PRODUCT, "f", "reverse", ROLES, discard=[2]).derived.name == "f.pullback.101"
    assert make(PRODUCT, "f", "forward", ROLES, width=4).derived.name == "f.jvp4x.101"


def test_requests_are_values() -> None:
    """Equal where they ask for the same, of any use as a key, and nobody changes one that another has read."""
    asked = Request("f", "vjp", ROLES)
    assert asked == Request("f", activity=ROLES)
    assert len({asked, replace(asked), replace(asked, width=2), replace(asked, strict_fp=True)}) == 3
    for field in fields(Request):
        with pytest.raises(FrozenInstanceError):
            setattr(asked, field.name, getattr(asked, field.name))
