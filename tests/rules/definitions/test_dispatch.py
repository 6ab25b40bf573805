"""Dispatch inside one layer."""

from __future__ import annotations

from typing import Any

import pytest

from irgrad.rules import (
    Active,
    Activity,
    Const,
    Duplicated,
    Forward,
    Known,
    Ptr,
    Reverse,
    current,
    f32,
    f64,
    i32,
    layer,
    rule,
)
from irgrad.rules.definitions.dispatch import COUNTS
from irgrad.rules.definitions.types import Kind, literal
from irgrad.rules.errors import AmbiguousRuleError


def _rule(tag: str, *types: Kind, **options: Any) -> None:
    def body(x, z, *, y):  # type: ignore[no-untyped-def]
        return tag

    rule("f", *types, **options)(body)


def _chosen(*types: Kind) -> str | None:
    found = current().resolve("f", types)
    return None if found is None or found.body is None else found.body(0, 0, y=0)


def test_the_most_specific_rule_is_chosen() -> None:
    with layer():
        _rule("any")
        _rule("pointer", Duplicated[Ptr], Activity)
        _rule("double", Duplicated[Ptr[f64]], Activity)
        _rule("flag", Duplicated[Ptr[f64]], Const[Known[111]])
        _rule("forward", Duplicated[Ptr], Activity, mode="forward")
        _rule("three", Activity, Activity, width=3, mode="reverse")
        plain = Const[i32]
        assert _chosen(Reverse[1], Const, Active[f64], plain) == "any"
        assert _chosen(Reverse[1], Const, Duplicated[Ptr[f32]], plain) == "pointer"
        assert _chosen(Reverse[1], Const, Duplicated[Ptr[f64]], plain) == "double"
        assert _chosen(Reverse[1], Const, Duplicated[Ptr[f64]], Const[literal(111, i32)]) == "flag"
        assert _chosen(Reverse[1], Const, Duplicated[Ptr[f64]], Const[literal(112, i32)]) == "double"
        assert _chosen(Forward[1], Const, Duplicated[Ptr[f32]], plain) == "forward"
        assert _chosen(Reverse[3], Const, Active[f64], plain) == "three"
        assert _chosen(Reverse[1], Const, Active[f64]) == "any"  # no types: any number of arguments


def test_rules_for_all_lanes() -> None:
    """Above width 1 before one without `width`, below one for that width; at width 1 where there is no other."""
    with layer():
        _rule("all", Active, Const, width="any", mode="reverse")
        assert [_chosen(Reverse[w], Const, Active[f64], Const[i32]) for w in (1, 2, 16)] == ["all"] * 3
        assert _chosen(Forward[2], Const, Active[f64], Const[i32]) is None
        _rule("one", Active, Const, mode="reverse")
        _rule("four", Active, Const, width=4, mode="reverse")
        assert [_chosen(Reverse[w], Const, Active[f64], Const[i32]) for w in (1, 2, 4)] == ["one", "all", "four"]
        with layer():  # an inner layer comes before all of them
            _rule("inner", Active, Const)
            assert [_chosen(Reverse[w], Const, Active[f64], Const[i32]) for w in (1, 2, 4)] == ["inner"] * 3


def test_dtypes_alone_mean_any_activity() -> None:
    with layer():
        _rule("single", f32, f32)
        assert _chosen(Reverse[1], Const, Active[f32], Const[f32]) == "single"
        assert _chosen(Reverse[1], Const, Active[f64], Const[f32]) is None


def test_ties_show_both_places_and_the_way_out() -> None:
    with layer():
        _rule("first", Active, Activity)
        _rule("second", Activity, Active)
        with pytest.raises(AmbiguousRuleError) as caught:
            _chosen(Reverse[1], Active[f64], Active[f64], Active[f64])
        text = caught.value.render()
        assert text.startswith("irgrad.AmbiguousRuleError: 2 rules match a call of `f` equally well")
        assert text.count("test_dispatch.py:") == 2
        assert '@rule("f", Active, Active)' in text
        assert "plum" not in text
        assert _chosen(Reverse[1], Active[f64], Active[f64], Const[f64]) == "first"
        _rule("settled", Active, Active)
        assert _chosen(Reverse[1], Active[f64], Active[f64], Active[f64]) == "settled"


def test_300_keys_ask_plum_once_per_combination_of_types() -> None:
    with layer():
        for number in range(300):
            for element in (f32, f64):

                @rule(f"function{number}", Active[element])
                def _(x, *, y):  # type: ignore[no-untyped-def]
                    return y

        snapshot = current()
        before = COUNTS["plum"]
        for _ in range(3):
            for number in range(300):
                for element in (f32, f64):
                    assert snapshot.resolve(f"function{number}", (Reverse[1], Active[element], Active[element]))
        assert COUNTS["plum"] - before == 600


def test_one_rule_needs_no_plum() -> None:
    before = COUNTS["plum"]
    with layer():
        _rule("only")
        assert _chosen(Reverse[1], Const, Active[f64], Active[f64]) == "only"
    assert COUNTS["plum"] == before


def test_plum_is_imported_when_a_tie_may_be() -> None:
    import subprocess
    import sys

    code = """
import sys
import irgrad
from irgrad.rules import Active, Reverse, current, f32, f64
irgrad.rule("f")(lambda x: 2 * x)
current().resolve("f", (Reverse[1], Active[f64], Active[f64]))
assert "plum" not in sys.modules
irgrad.rule("f", f32)(lambda x: 3 * x)
current().resolve("f", (Reverse[1], Active[f64], Active[f64]))
assert "plum" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
