"""What is said about rules."""

from __future__ import annotations

from typing import Any

import pytest

from irgrad.rules import (
    Active,
    AoS,
    Array,
    Batched,
    Const,
    Duplicated,
    Ptr,
    Reverse,
    SoA,
    audit,
    f32,
    f64,
    i32,
    inactive,
    layer,
    opt_out,
    rule,
    show,
    which,
)
from irgrad.rules.definitions.types import Activity
from irgrad.rules.layers import current
from irgrad.rules.report import differences, nearest, one_at_a_time, template


def _define(key: str, *types: Any, **options: Any) -> None:
    @rule(key, *types, **options)
    def _(a, b, *, y):  # type: ignore[no-untyped-def]
        return y, y


def test_show_lists_layers_and_the_tables() -> None:
    with layer("outer"):
        _define("hypot", Active[f64], Activity)
        with layer("inner"):
            _define("hypotf")
            inactive(pattern="log_*")
            lines = show("hypot").splitlines()
            assert [line.split()[0] for line in lines] == ["inner", "outer", "builtin"]
            assert "hypot(a: Active[f64], b: Activity)  partials, at test_report.py:" in lines[1]
            assert "log_*" in show()
    assert show() == "no rules but the tables of irgrad"
    assert repr(show("no_such_function")) == "no rule for `no_such_function`"


def test_which() -> None:
    pointer, array = Duplicated[Ptr[f64]], Duplicated[Array[f64, 1]]
    with layer():
        _define("solve", pointer, Const)
        opt_out("sum_kernel", Array[f64, 1])
        assert which("solve", array, Const[i32]).how == "rule"
        for layout in (SoA, AoS):
            batched = which("solve", Batched[array, layout], Const[i32])
            assert batched.how == "lane by lane"
            assert batched.rule is which("solve", array, Const[i32]).rule
        assert which("solve", Active[f64], Const[i32]).how == "nothing"
        assert which("sum_kernel", array).how == "body"
        _define("anything")  # fits a batch as well, and still runs for one sample after the other
        assert which("anything", Batched[array, SoA], Const).how == "lane by lane"
    assert "cos(x0)" in str(which("sinf", Active[f32]))
    assert "no derivative flows" in str(which("printf"))


@pytest.mark.parametrize(
    ("defined", "one"),
    [
        ([{}], True),
        ([{"width": "any"}], False),
        ([{}, {"width": "any"}], False),
        ([{"width": 1}, {"width": "any"}], False),
        ([{}, {"width": 4}], True),
        ([{"mode": "reverse", "width": "any"}, {}], True),
        ([{"mode": "reverse", "width": "any"}, {"mode": "reverse"}], False),
    ],
)
def test_symbols_that_take_one_direction_at_a_time(defined: list[dict[str, Any]], one: bool) -> None:
    with layer():
        for options in defined:
            rule("f", **options)(lambda ctx, a: None)
        assert one_at_a_time(current().find("f")) is one
        rule("g")(lambda a: a)
        assert not one_at_a_time(current().find("g"))


def test_audit_finds_what_cannot_apply_and_ties() -> None:
    with layer():
        assert audit() == "nothing to remark"
        _define("f", Active, Activity)
        _define("f", Activity, Active)
        assert "tie: define (Active, Active) as well" in audit()
        _define("f", Active, Active)
        assert audit() == "nothing to remark"
        with layer():
            _define("f", Activity, Activity)
            assert audit().count("never applies") == 3
            _define("hypot")
            assert "takes the place of the tables' rule for `hypot`" in audit()


def test_the_nearest_rule_and_its_differences() -> None:
    with layer():
        _define("f", Active[f32], Const, mode="forward")
        _define("f", Active[f32], Activity)
        rules = current().find("f")[0].rules
        found = nearest(rules, (Reverse[1], Active[f64], Active[f64], Active[f64]))
        assert found is not None
        assert found[1] == ["a is Active[f64], the rule wants Active[f32]"]
        assert differences(rules[0], (Reverse[1], Const, Const)) == ["it is for 2 arguments, the call has 1"]


def test_templates() -> None:
    assert (
        template("f", [Active[f64], Const[i32], Const[f64]])
        .splitlines()[1]
        .startswith("def _(a0, a1, a2): return ..., ...")
    )
    assert "def _(ctx, x, a1): ..." in template("f", [Duplicated[Ptr[f64]], Const[i32]], ["x"])
