"""Declarations that cannot be meant are refused, with the repair."""

from __future__ import annotations

from typing import Any

import pytest

from irgrad.rules import (
    Active,
    AoS,
    Batched,
    Const,
    Duplicated,
    Ptr,
    Reverse,
    SoA,
    alias,
    allocator,
    current,
    f64,
    foreign,
    inactive,
    layer,
    linear,
    opt_out,
    rule,
    show,
    stop_gradient,
)
from irgrad.rules.errors import RuleError

TYPES = (Reverse[1], Active[f64], Active[f64])


def _form(symbol: str) -> str | None:
    found = current().resolve(symbol, TYPES)
    return None if found is None else found.form


def test_the_simple_declarations() -> None:
    with layer():
        inactive("log_message", pattern="PyErr_*")
        stop_gradient("detach")
        opt_out("body")
        linear("scale")
        allocator("pool_get", 0, free="pool_put")
        foreign("solve", reverse="solve_reverse")
        alias("erfinv_fast", "erf")

        @rule("erf")
        def _(x: Any) -> Any:
            return x

        expected = {"log_message": "inactive", "PyErr_Clear": "inactive", "detach": "stop", "body": "opt_out",
                    "scale": "linear", "pool_get": "allocator", "pool_put": "allocator", "solve": "foreign",
                    "erfinv_fast": "partials", "erff": "partials", "other": None}  # fmt: skip
        assert {name: _form(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: rule("f", Active)(lambda a, b: (a, b)), "1 types for 2 parameters"),
        (lambda: rule("f", C=Duplicated)(lambda ctx, a: None), "the body has no parameter `C`"),
        (lambda: rule("f", Active, a=Const)(lambda a: a), "both by position and by name"),
        (lambda: rule("f", float)(lambda a: a), "`float` is no type of an argument"),
        (lambda: rule("f")(lambda a, *, z: a), "no keyword `z`"),
        (lambda: rule("f", host=True)(lambda a: a), "a host rule takes `ctx` first"),
        (lambda: foreign("f", augmented="g"), "no derivative is given"),
        (lambda: rule("f", width=0)(lambda a: a), "width=0 is no width of a derivative"),
        (lambda: rule("f", width="all")(lambda a: a), "width='all' is no width of a derivative"),
        (lambda: foreign("f", reverse="g", width=True), "width=True is no width of a derivative"),
        (lambda: rule("f", host=True, width="any")(lambda ctx, a: a), "a host rule takes one tangent or cotangent"),
        (lambda: rule("f", a=Batched[Active[f64], SoA])(lambda a: a), "a rule for whole batches that"),
        (lambda: rule("f", ret=Batched)(lambda a: a), "a rule for whole batches that is no function in C"),
        (lambda: opt_out("f", Batched[Active, AoS]), "a rule for whole batches that is no function in C"),
        (lambda: foreign("f", Batched[Active, AoS], primal="h", reverse="g"), "samples one after the other"),
        (lambda: foreign("f", Batched[Active], reverse="g"), "without the function itself"),
        (lambda: foreign("f", Batched[Active], primal="f", reverse="g", augmented="h"), "two functions make the call"),
        (lambda: foreign("f", Batched[Active], forward="g", width=4), "a rule for whole batches with a width"),
        (lambda: foreign("f", Active, reverse="g", primal="h"), "the function itself is given for a single sample"),
    ],
)
def test_wrong_declarations(declare: Any, message: str) -> None:
    with layer(), pytest.raises(RuleError, match=message):
        declare()


def test_bodies_for_whole_batches_are_refused_and_leave_nothing() -> None:
    """They would be kept and never called: a batch calls functions in C."""
    with layer():
        with pytest.raises(RuleError) as caught:

            @rule("solve3", Batched[Duplicated[Ptr[f64]], SoA], Const, mode="reverse")
            def _(ctx: Any, A: Any, n: Any) -> None: ...

        error = caught.value
        assert error.where.startswith("test_registry.py:")
        assert error.which == "Batched[Duplicated[Ptr[f64]], SoA]"
        assert 'foreign(name, ..., primal="...", reverse="...")' in error.fix
        assert "solve3" not in show()


def test_the_body_returns_unchanged() -> None:
    with layer():

        @rule("f")
        def body(x: Any) -> Any:
            return 2 * x

        assert body(3) == 6
