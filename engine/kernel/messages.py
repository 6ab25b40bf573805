"""Errors in the user's words: the names of the normal form become those of the function and its arguments."""

from __future__ import annotations

import ctypes
import re

from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import PARTS, IRGradError

__all__ = ["in_users_words", "of_record"]

_LOCAL = re.compile(r"`?%(?:([avm])(\d+)|ret)(?![\w.-])`?")


def in_users_words(error: IRGradError, name: str, signature: Signature) -> IRGradError:
    """The same error, with `@f.normal` and `%a0` replaced by `@f` and the name that the signature gives.

    The values that the normal form loads from an argument (`%v0`) have the argument's name; the IR that is quoted in
    `which` keeps its own names.
    """
    function = re.compile(rf'@"?{re.escape(name)}\.normal(\.[a-z]\w*\.[01]+)*"?')

    def argument(found: re.Match[str]) -> str:
        if found[1] is None:
            return "the result"
        number = int(found[2])
        return f"`{signature.parameters[number].name}`" if number < len(signature.parameters) else found[0]

    said: dict[str, str] = {}
    for part in PARTS:
        text = function.sub(f"@{name}", getattr(error, part))
        if part != "which":
            text = re.sub(r"argument the result|memory the result", "the result", _LOCAL.sub(argument, text))
            text = re.sub(r"(argument (`\w+`) through )\2, ", r"\1", text)
            text = re.sub(r"(argument (`\w+`)) through \2(?= and)", r"\1", text)
        said[part] = text
    return error.change(**said)


def of_record(name: str, record: int, limit: int = 0) -> BaseException:
    """The error that the record of a failed call of a function tells of, or what a handler of a signal raised while it
    ran; the record is freed. limit: bytes of tape that the call could have, 0 for none."""
    from irgrad.engine.runtime.tape_memory import INTERRUPTED, out_of_tape

    if ctypes.c_int64.from_address(record + 16).value == INTERRUPTED:
        from irgrad.engine.codegen.interrupts import raised

        return raised(record)
    return out_of_tape(name, record, limit)
