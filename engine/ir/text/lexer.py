"""Tokens of LLVM's textual IR.

The whole text of a function is cut into a list of strings by one regular expression (`re.findall` runs in C), and the
reader walks over that list. Where a token stands in the text is worked out only when an error has to say so.
"""

from __future__ import annotations

import re
from typing import NoReturn

from irgrad.rules.errors import IRSyntaxError

# Blank space and comments are part of the match, not of the token. The last alternative ends the list with empty
# tokens: without it a long tail of blanks would be scanned again from each of its positions.
_TOKEN = re.compile(
    r"""(?:[\s]|;[^\n]*)*+(
      %[-\w$.]+
    | [,()=\[\]{}<>*|]
    | c"[^"]*"
    | [a-zA-Z$._][-\w$.]*:?
    | ![-\w$.\\]+ | !"[^"]*" | !
    | @[-\w$.]+
    | -?\d+(?:\.\d*(?:[eE][+-]?\d+)?|x[KLMHR]?[0-9A-Fa-f]+)?:?
    | \#dbg_[^\n]* | \#\d+
    | [%@$]"[^"]*"
    | "[^"]*":?
    | -[-\w$.]+:
    | [^\s] | \Z)""",
    re.ASCII | re.VERBOSE,
)

_NO_SPACE_BEFORE = frozenset((")", ",", "(", "]", ">", "=", ""))
_NO_SPACE_AFTER = frozenset(("(", "[", "<", "=", "!"))


def tokenise(text: str) -> list[str]:
    """The tokens of `text`, then at least one empty token that marks the end."""
    return _TOKEN.findall(text)


def join(tokens: list[str]) -> str:
    """Tokens as LLVM would print them: `range(i32 0, 10)`, `"a"="b"`, `[2 x i8]`."""
    if len(tokens) <= 1:
        return tokens[0] if tokens else ""
    out = [tokens[0]]
    last = tokens[0]
    for token in tokens[1:]:
        spaced = token not in _NO_SPACE_BEFORE and last not in _NO_SPACE_AFTER
        if last == "," and token in "([<":
            spaced = True
        out.append(f" {token}" if spaced else token)
        last = token
    return "".join(out)


def syntax_error(text: str, index: int, expected: str, first_line: int = 1) -> NoReturn:
    """Raise IRSyntaxError for token number `index` of `text`, whose first line is line `first_line` of the input."""
    offset = len(text)
    got = ""
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number == index:
            offset, got = match.start(1), match[1]
            break
    offset = min(offset, max(len(text.rstrip()), 0))
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)].strip()
    got = f"`{got[:60]}`" if got else "the end of the text"
    raise IRSyntaxError(
        "this text is not LLVM IR that irgrad can read",
        where=f"line {first_line + text.count(chr(10), 0, offset)}",
        which=line[:200],
        because=f"got {got} where {expected} was expected",
        fix="emit the IR with LLVM 22 or older (clang -S -emit-llvm, or a module printed by llvmlite)",
    )
