"""The passes of a derivative, with times and sizes."""

from __future__ import annotations

from explained import kernel

from irgrad.engine import explain, grad
from irgrad.engine.report.derivation import question_of
from irgrad.engine.report.passes import CODE, passes_of


def test_passes_in_the_order_in_which_they_ran() -> None:
    grad(kernel("straight")).prepare(1.0, 2.0)()  # the disk cache has it, and is not asked
    rows = passes_of(question_of(kernel("straight"), "grad", None))
    names = [row.name for row in rows]
    assert names.index("pullback") < names.index("optimise-for-machine") < names.index(CODE) == len(names) - 1
    assert all(row.seconds >= 0 for row in rows)
    assert all(row.instructions > 0 for row in rows[:-1])
    made = names.index("pullback")
    assert rows[made].instructions > rows[made - 1].instructions


def test_passes_of_forward_mode() -> None:
    assert "jvp" in [row.name for row in passes_of(question_of(kernel("straight"), "jvp", None))]


def test_passes_are_told_when_they_are_asked_for() -> None:
    assert explain(kernel("straight"), lanes=False).passes == ()
    told = explain(kernel("straight"), lanes=False, passes=True)
    assert f"  {CODE}" in str(told)
    assert "together" in str(told)
    assert CODE in told.to_html()
