"""How a rule describes itself, and the rows that partials become."""

from __future__ import annotations

from irgrad.rules import Duplicated, Forward, Ptr, current, f64, layer, rule
from irgrad.rules.layers import Layer


def _only(layer_: Layer) -> object:
    return next(iter(layer_.rules.values()))[0]


def test_signatures_read_like_the_declaration() -> None:
    with layer() as mine:

        @rule("dgemv", mode="reverse", A=Duplicated[Ptr[f64]])
        def _(ctx, A, x):  # type: ignore[no-untyped-def]
            pass

        found = mine.rules[next(iter(mine.rules))][0]
        assert found.signature == "dgemv(A: Duplicated[Ptr[f64]], x: Activity, mode=Reverse)"
        assert found.place.startswith("test_definition.py:")
        assert found.form == "calls"
        assert found.mode is not Forward


def test_partials_are_traced_once_per_shape_of_call() -> None:
    calls = []
    with layer():

        @rule("f")
        def _(x, *, y):  # type: ignore[no-untyped-def]
            calls.append(1)
            return 2 * y

        from irgrad.rules import Active, Reverse

        found = current().resolve("f", (Reverse[1], Active[f64], Active[f64]))
        assert found is not None
        assert found.partials("f") is found.partials("f")
        assert len(calls) == 1
        assert found.partials("pf").signature == "pf"
