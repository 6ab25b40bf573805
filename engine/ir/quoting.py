"""Names, strings and lists as LLVM's text spells them: what is quoted, how bytes are escaped, where a list ends."""

from __future__ import annotations

import re

__all__ = ["bare_name", "escape", "quoted_name", "split_list", "unescape"]

_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|\\)")
_PLAIN_NAME = re.compile(r"[-a-zA-Z$._][-\w$.]*", re.ASCII)


def unescape(body: str) -> bytes:
    r"""The bytes that a quoted string (without its quotes) stands for: `\0A` is a newline."""
    raw = body.encode("utf-8", "surrogateescape")
    if b"\\" not in raw:
        return raw
    return _ESCAPE.sub(lambda m: b"\\" if m[1] == b"\\" else bytes((int(m[1], 16),)), raw)


def escape(data: bytes) -> str:
    """Bytes as LLVM prints them between quotes."""
    return "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in data)


def bare_name(token: str) -> str:
    """Name of a `%x`, `@"x y"` or `$x` token, without sigil, quotes and escapes."""
    if token[1:2] != '"':
        return token[1:]
    return unescape(token[2:-1]).decode("utf-8", "surrogateescape")


def quoted_name(name: str) -> str:
    """A name as it stands after its sigil: quoted where LLVM wants that (the number of an unnamed symbol is not)."""
    if _PLAIN_NAME.fullmatch(name) or (name.isdecimal() and name.isascii()):
        return name
    return f'"{escape(name.encode("utf-8", "surrogateescape"))}"'


def split_list(text: str) -> list[str]:
    """What stands between commas up to the bracket that closes the list, or to the end."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            depth -= 1
            if depth < 0:
                text = text[:at]
                break
        elif letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
