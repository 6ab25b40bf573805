"""What may be said of long loops, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import irgrad as ig
from irgrad.engine.kernel.checkpoints import bytes_of, checkpoints, choices, memory
from irgrad.engine.kernel.options import Options
from irgrad.engine.normalise.segments import Choice
from irgrad.engine.signature.slots import primal_slots


@pytest.mark.parametrize(
    ("said", "number"),
    [(4096, 4096), ("65536", 65536), ("64kB", 2**16), ("1.5MB", 3 * 2**19), ("2GB", 2**31), ("1MiB", 2**20)],
)
def test_memory(said: object, number: int) -> None:
    assert memory(said) == number


@pytest.mark.parametrize("said", ["much", "-3MB", 0, -1, True, None, 1.5, "12TB"])
def test_no_memory(said: object) -> None:
    with pytest.raises(ig.IRGradError, match="is no amount of memory"):
        memory(said)


def test_choices() -> None:
    said = checkpoints({"a.c:3": 32, 7: "recompute", "b.c:9": "binomial:16", "c.c:1": "memory:1MB"}, "2MB")
    assert choices(Options(checkpoint=said)) == (
        ("a.c:3", Choice(unit=32)), ("7", Choice()), ("b.c:9", Choice(states=16)), ("c.c:1", Choice(bytes=2**20)),
        ("*", Choice(bytes=2**21)),
    )  # fmt: skip
    assert choices(Options(checkpoint=said, device=True)) == ()
    assert checkpoints(None) == ()


@pytest.mark.parametrize("choice", [0, -2, True, 1.5, "store", "binomial", "binomial:x", "memory:", None])
def test_no_choice(choice: Any) -> None:
    with pytest.raises(ig.IRGradError, match=r"is no choice|is no amount of memory") as refused:
        checkpoints({"a.c:3": choice})
    assert "to fix" in str(refused.value)


@pytest.mark.parametrize("said", [8, "recompute", [32]])
def test_a_choice_is_for_a_loop(said: Any) -> None:
    with pytest.raises(ig.IRGradError, match="is no choice") as refused:
        checkpoints(said)
    assert "by its file and line" in str(refused.value)


def test_bytes_of_arrays() -> None:
    slots = primal_slots(ig.Signature("f64(f64[n,2] x, f32[n*m+1] y, i32 n, i64 m, f64[k] z)"))
    assert bytes_of(slots) == (
        ("*", ("*", 8, (2, 32, True)), 2),
        ("*", 4, ("+", ("*", (2, 32, True), (3, 64, True)), 1)), 4, 8, None, 8,
    )  # fmt: skip
