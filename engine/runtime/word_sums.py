"""Sums of words that hold a double at one time and a pointer at another (see `differentiate/shadow/tagged_words.py`).

They stay calls until machine code is made. LLVM would move a word that is cast to be added as a double from there on:
then nothing says any longer that it may be a pointer, and the next derivative finds floats where pointers are.
"""

from __future__ import annotations

import re

from irgrad.engine.support.lines import change_lines

__all__ = ["TEXT", "WORD_SUM", "link_word_sums"]

WORD_SUM = "irgrad.word.sum"
TEXT = f"declare i64 @{WORD_SUM}(i64, i64) nounwind willreturn memory(none)\n"
_DECLARED = re.compile(r"^declare i64 @irgrad\.word\.sum\([^\n]*$")
_BODY = f"""\
define internal i64 @{WORD_SUM}(i64 %a, i64 %b) alwaysinline nounwind willreturn memory(none) {{
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %sum = fadd double %x, %y
  %word = bitcast double %sum to i64
  ret i64 %word
}}"""


def link_word_sums(text: str) -> str:
    """The module with the body in place of the declaration."""
    return change_lines(text, "declare ", lambda line: _DECLARED.sub(_BODY, line)) if f"@{WORD_SUM}(" in text else text
