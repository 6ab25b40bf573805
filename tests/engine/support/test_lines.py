"""Lines by how they begin, against regular expressions over all lines."""

from __future__ import annotations

import random
import re

import pytest

from irgrad.engine.support.lines import change_lines, lines_of

WORDS = ("declare a", "declare ab", " declare c", "define x", "", "xdeclare d", "declare")


def texts() -> list[str]:
    """Texts of such lines, with and without a break at the end."""
    made = random.Random(3)
    return ["", "\n", "declare ", *("\n".join(made.choices(WORDS, k=made.randrange(9))) + end
                                    for _ in range(200) for end in ("", "\n"))]  # fmt: skip


@pytest.mark.parametrize("start", ["declare ", "define ", "declare ab"])
def test_lines_are_those_of_a_regular_expression(start: str) -> None:
    for text in texts():
        assert list(lines_of(text, start)) == re.findall(rf"^{start}[^\n]*", text, re.M), repr(text)


def test_lines_change_and_go() -> None:
    for text in texts():
        gone = re.sub(r"^declare ab[^\n]*(?:\n|\Z)", "", text, flags=re.M)
        assert change_lines(text, "declare ", lambda line: "" if "ab" in line else line) == gone, repr(text)
        longer = re.sub(r"^(define [^\n]*)", r"\1!", text, flags=re.M)
        assert change_lines(text, "define ", lambda line: line.replace("x", "x!")) == longer, repr(text)


def test_what_nothing_changes_is_the_same_string() -> None:
    text = "define x\ndeclare y\n"
    assert change_lines(text, "declare ", str) is text and change_lines(text, "@", lambda _: "") is text
