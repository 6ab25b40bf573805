"""Layers: which definition is in force, and for how long."""

from __future__ import annotations

import threading

from irgrad.rules import Active, Reverse, current, f64, layer, pack, rule
from irgrad.rules.definitions.definition import Rule
from irgrad.rules.layers import token

TYPES = (Reverse[1], Active[f64], Active[f64])


def _place(symbol: str = "some_function") -> str | None:
    found = current().resolve(symbol, TYPES)
    return None if found is None else found.layer


def _define() -> None:
    @rule("some_function")
    def _(x, *, y):  # type: ignore[no-untyped-def]
        return y


def test_inner_layers_win_and_end() -> None:
    assert _place() is None
    with layer("outer"):
        _define()
        assert _place() == "outer"
        with layer("inner"):
            assert _place() == "outer"
            _define()
            assert _place() == "inner"
        assert _place() == "outer"
    assert _place() is None


def test_a_less_specific_inner_rule_wins() -> None:
    with layer("outer"):

        @rule("some_function", Active[f64])
        def _(x, *, y):  # type: ignore[no-untyped-def]
            return y

        with layer("inner"):
            _define()
            assert _place() == "inner"


def test_a_layer_without_match_lets_the_next_answer() -> None:
    with layer("outer"):
        _define()
        with layer("inner"):

            @rule("some_function", mode="forward")
            def _(x, *, y):  # type: ignore[no-untyped-def]
                return y

            assert _place() == "outer"


def test_packs_stand_below_the_user() -> None:
    from irgrad.rules import layers

    with pack("test pack"):
        _define()
    try:
        assert _place() == "test pack"
        with layer("mine"):
            _define()
            assert _place() == "mine"
        assert _place() == "test pack"
    finally:
        layers._PACKS[:] = [p for p in layers._PACKS if p.name != "test pack"]
    assert _place() is None


def test_snapshots_do_not_change() -> None:
    with layer() as mine:
        _define()
        before, mark = current(), token()
        mine.clear()
        assert token() != mark
        assert current().resolve("some_function", TYPES) is None
        found = before.resolve("some_function", TYPES)
        assert isinstance(found, Rule)


def test_digests_follow_what_is_said_about_the_names() -> None:
    with layer():
        empty = current().digest(["a", "b"])
        assert empty == ""
        _define()
        assert current().digest(["a", "b"]) == ""
        said = current().digest(["some_function"])
        assert said != ""
        with layer():
            _define()
            assert current().digest(["some_function"]) != said
        assert current().digest(["some_function"]) == said


def test_other_threads_do_not_see_with_blocks() -> None:
    seen: list[str | None] = []
    with layer("mine"):
        _define()
        thread = threading.Thread(target=lambda: seen.append(_place()))
        thread.start()
        thread.join()
        assert _place() == "mine"
    assert seen == [None]


def test_equal_definitions_replace_each_other() -> None:
    with layer() as mine:
        _define()
        _define()
        assert [len(rules) for rules in mine.rules.values()] == [1]
        mine.remove(next(iter(mine.rules.values()))[0])
        assert _place() is None
