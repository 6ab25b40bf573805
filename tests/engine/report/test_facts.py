"""The facts as data: frozen, with words for what they say."""

from __future__ import annotations

import dataclasses
import pickle

import pytest
from explained import kernel

from irgrad.engine import explain
from irgrad.engine.report import facts
from irgrad.engine.report.facts import LaneFacts, LoopFacts, Place, RuleUse, Step, route
from irgrad.engine.report.formulas import Symbol, of_atom
from irgrad.engine.report.sizes import Size

N = of_atom(Symbol("n"))


def test_everything_is_frozen_and_documented() -> None:
    classes = [value for name in facts.__all__ if dataclasses.is_dataclass(value := getattr(facts, name))]
    assert len(classes) == len(facts.__all__)
    for cls in classes:
        assert cls.__dataclass_params__.frozen, cls  # type: ignore[attr-defined]
        assert cls.__doc__
    with pytest.raises(dataclasses.FrozenInstanceError):
        Place().line = 3  # type: ignore[misc]


def test_a_report_is_only_data() -> None:
    found = explain(kernel("nested"), lanes=False)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert str(again) == str(found)
    assert hash(found.functions) == hash(again.functions)


def test_chains_in_words() -> None:
    x, made, here = Step("argument", "x", Place()), Step("value", "phi %2", Place()), Place("a.c", 3)
    line, memory = Step("value", "load", here), Step("memory", "memory `alloca`", Place())
    arrow = " \N{RIGHTWARDS ARROW} "
    assert route((x, line, line, made, memory)) == arrow.join(("x", "line 3", "memory `alloca`"))
    assert route((made,)) == "phi %2"
    many = tuple(Step("value", "fadd", Place("a.c", n)) for n in range(1, 12))
    assert route(many).count("...") == 1


def test_loops_in_words() -> None:
    loop = LoopFacts("f", 0, None, 1, Place("a.c", 2), 4, N, 8, (Size(8, ((N, 0),)),), (), ())
    assert (loop.trips, loop.total) == ("n", "8*n bytes")
    assert loop.tape_bytes(n=3) == 32
    unknown = dataclasses.replace(loop, iterations=None, sizes=None)
    assert unknown.trips == unknown.total == "not known before it runs"
    assert unknown.tape_bytes(n=3) is None


def test_numbers_need_their_arguments() -> None:
    found = explain(kernel("nested"), lanes=False)
    assert found.tape_bytes({"n": 2}, m=3) == 16 + 48
    with pytest.raises(KeyError, match="m"):
        found.tape_bytes(n=2)


def test_words() -> None:
    assert str(Place("a.c", 3, 4)) == "line 3"
    assert str(Place()) == "no line"
    assert LaneFacts("directions", 1, "so").refused
    assert not LaneFacts("directions", 0, "so").refused
    assert RuleUse("f", "nothing", ("Active[f64]",)).text.startswith("(Active[f64]) by nothing")
    assert RuleUse("f", "unused", defined="a.py:3").text.startswith("the rule at a.py:3 is not used")
