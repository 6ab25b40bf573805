"""Lines of a module's text by the letters that they begin with: its definitions, declarations, attributes.

A regular expression that begins with `^` is tried at each character of a text; the break of a line and the letters
behind it are found at the speed of memory, which of a derivative of 20 MB is a twentieth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["change_lines", "line_spans", "lines_of"]


def line_spans(text: str, start: str) -> Iterator[tuple[int, int]]:
    """Where such a line begins, and where its break is."""
    wanted = f"\n{start}"
    begin = 0 if text.startswith(start) else text.find(wanted) + 1
    while begin or text.startswith(start):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield begin, end
        begin = text.find(wanted, end) + 1
        if not begin:
            return


def lines_of(text: str, start: str) -> Iterator[str]:
    """The lines that begin with some letters, without their breaks."""
    return (text[begin:end] for begin, end in line_spans(text, start))


def change_lines(text: str, start: str, change: Callable[[str], str]) -> str:
    """The text with the lines that begin with some letters, each with its break, changed; the same string where none
    is."""
    pieces: list[str] = []
    done = 0
    for begin, end in line_spans(text, start):
        line = text[begin : end + 1]
        new = change(line)
        if new != line:
            pieces += text[done:begin], new
            done = end + 1
    return "".join([*pieces, text[done:]]) if pieces else text
