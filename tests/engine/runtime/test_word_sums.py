"""Sums of words become sums of doubles when machine code is made."""

from __future__ import annotations

from irgrad.engine.runtime.word_sums import TEXT, WORD_SUM, link_word_sums


def test_the_sum_gets_its_body() -> None:
    text = link_word_sums(f"; words\n{TEXT}")
    assert "fadd double %x, %y" in text
    assert f"define internal i64 @{WORD_SUM}(" in text
    assert "declare" not in text


def test_other_modules_stay_as_they_are() -> None:
    text = "declare i64 @f(i64)\n"
    assert link_word_sums(text) is text
