"""Roles of slots under J and V, and words of both."""

from __future__ import annotations

from irgrad.engine.signature.signature import Signature
from irgrad.engine.signature.slots import Step, derived_slots, only_again, primal_slots, word_text

SLOTS = primal_slots(Signature("f64(f64[n] x, i64 n, inout f64[n] y, out f64[n] z)"))


def roles(slots: object) -> list[tuple[str, str]]:
    return [(s.name, s.role) for s in slots]  # type: ignore[attr-defined]


def test_primal() -> None:
    assert roles(SLOTS) == [("x", "in"), ("n", "in"), ("y", "inout"), ("z", "out"), ("return", "out")]


def test_tangents_keep_the_role() -> None:
    assert roles(derived_slots(SLOTS, "jvp", (0, 2, 4), (), 0)) == [
        ("x", "in"), ("x'", "in"), ("n", "in"), ("y", "inout"), ("y'", "inout"), ("z", "out"),
        ("return", "out"), ("return'", "out"),
    ]  # fmt: skip


def test_shadows_are_inout_and_scratch_stays_scratch() -> None:
    reverse = derived_slots(SLOTS, "vjp", (0, 4), (3,), 0)
    assert roles(reverse) == [
        ("x", "in"), ("x'", "inout"), ("n", "in"), ("y", "inout"), ("z", "out"), ("z'", "scratch"),
        ("return", "out"), ("return'", "inout"),
    ]  # fmt: skip
    second = derived_slots(reverse, "jvp", (0, 1, 5), (), 1)
    assert [(s.name, s.role, s.steps) for s in second if s.steps] == [
        ("x'", "in", (1,)), ("x'", "inout", (0,)), ("x''", "inout", (0, 1)), ("z'", "scratch", (0,)),
        ("z''", "scratch", (0, 1)), ("return'", "inout", (0,)),
    ]  # fmt: skip


def test_words_print() -> None:
    assert word_text(()) == "P"
    assert word_text((Step("vjp", (0, 4)), Step("jvp", (1,)))) == "vjp[0,4].jvp[1]"


def test_lanes_are_a_last_axis() -> None:
    """Inner width first; the primal's slots keep their shapes."""
    reverse = derived_slots(SLOTS, "R", (0, 4), (3,), 0, 4)
    second = derived_slots(reverse, "T", (0, 1, 5), (), 1, 3)
    lanes = {(s.name, s.steps): s.lanes for s in second}
    assert lanes["x", ()] == () and lanes["x'", (0,)] == (4,) and lanes["x'", (1,)] == (3,)
    assert lanes["x''", (0, 1)] == (4, 3) and lanes["z'", (0,)] == (4,)
    sizes = dict.fromkeys(SLOTS[0].parameter.shape[0].names(), 5)  # type: ignore[index]
    assert reverse[1].shape(sizes) == (*reverse[0].shape(sizes), 4)
    assert word_text((Step("pullback", (0, 4), 4), Step("jvp_only", (1,)))) == "pullback4[0,4].jvp_only[1]"


def test_the_last_step_differentiates_only_what_the_first_did() -> None:
    signature = Signature("f64(f64[2] x, f64[2] y)")
    primal = primal_slots(signature)
    first, both = Step("pullback", (0, 2)), Step("pullback", (0, 1, 2))
    derived = derived_slots(primal, "pullback", first.active, (), 0)
    assert {slot.index for slot in derived} == {0, 1, 2}
    again = tuple(n for n, slot in enumerate(derived) if slot.index != 1)
    other = tuple(n for n, slot in enumerate(derived) if slot.index == 1)
    assert only_again(signature, (first, Step("jvp_only", again)), derived)
    assert not only_again(signature, (first, Step("jvp_only", again + other)), derived)
    assert only_again(signature, (both, Step("jvp_only", again + other)), derived)
    assert not only_again(signature, (first,), primal)
