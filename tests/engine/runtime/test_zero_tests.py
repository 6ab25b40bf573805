"""Questions for zero become comparisons when machine code is made."""

from __future__ import annotations

from irgrad.engine.runtime.zero_tests import PREFIX, link_idle


def test_the_question_becomes_a_comparison() -> None:
    text = link_idle(f"declare i1 @{PREFIX}double(double) nounwind\ndeclare i1 @{PREFIX}float(float)\n")
    assert text.count("fcmp oeq") == 2
    assert "declare" not in text
