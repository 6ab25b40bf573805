"""The shape of every error message."""

from __future__ import annotations

import pickle

import pytest

from irgrad.rules import errors
from irgrad.rules.errors import IRGradError, MissingRuleError, Unsupported


def test_all_four_parts_are_rendered_in_order() -> None:
    error = Unsupported(
        "no derivative is known for this call",
        where="@kernel (gram.c:41:5), block %for.body",
        which="%7 = call double @bessel_k(double %nu, double %x)",
        because="%x is active and `bessel_k` has neither a body nor a rule",
        fix='@rule("bessel_k") def _(nu, x): ...',
    )
    assert error.render() == (
        "irgrad.Unsupported: no derivative is known for this call\n"
        "  in      @kernel (gram.c:41:5), block %for.body\n"
        "  which   %7 = call double @bessel_k(double %nu, double %x)\n"
        "  because %x is active and `bessel_k` has neither a body nor a rule\n"
        '  to fix  @rule("bessel_k") def _(nu, x): ...'
    )


def test_parts_that_are_empty_are_left_out_and_long_ones_stay_aligned() -> None:
    error = IRGradError("a file is missing", fix="one\ntwo")
    assert str(error) == "a file is missing\n  to fix  one\n          two"
    assert str(IRGradError("alone")) == "alone"


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "OneThread"])  # a warning
def test_classes_pickle_and_share_one_base(name: str) -> None:
    error = getattr(errors, name)("what", where="here", which="this", because="so", fix="do")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert isinstance(again, IRGradError)


def test_a_missing_rule_is_something_unsupported() -> None:
    assert issubclass(MissingRuleError, Unsupported)
