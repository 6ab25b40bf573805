"""Places and names."""

from __future__ import annotations

import pytest
from explained import kernel, line

from irgrad.engine.report.derivation import derivation_of, question_of
from irgrad.engine.report.facts import Place
from irgrad.engine.report.words import Words, place_of


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a.c:3:5", Place("a.c", 3, 5)),
        ("a.c:3", Place("a.c", 3)),
        ("dir/a.h:3:5 (inlined at b.c:10:3)", Place("dir/a.h", 3, 5)),
        ("<string>:0:0", Place()),
        ("", Place()),
    ],
)
def test_places(text: str, place: Place) -> None:
    assert place_of(text) == place
    assert bool(place) == (place.line > 0)


def test_names_of_the_source() -> None:
    found = derivation_of(question_of(kernel("outer"), "vjp", None))
    root, inner = (planned.fn for planned in found.functions)
    words = Words(kernel("outer"), found.module, root)
    assert [words.argument(arg) for arg in root.args] == ["x", "n", "return"]
    assert (words.function(root), words.function(inner)) == ("outer", "inner")
    assert words.defined(inner).line == line("double inner(")
    scalars = {words.scalar(i) for i in root.instructions()}
    assert scalars == {None, "n"}
    assert words.scalar(inner.args[2]) == inner.args[2].name
    assert words.scalar(inner.args[1]) is None


def test_where_a_loop_begins_and_ends() -> None:
    found = derivation_of(question_of(kernel("heat"), "vjp", None))
    words = Words(kernel("heat"), found.module, found.unit.root)
    around = found.functions[0].facts.loops.top[0]
    place, last = words.loop_place(around)
    assert place.line == line("for (long t = 0; t < steps; t++) {")
    assert last == line("u[i] = v[i];") + 1
