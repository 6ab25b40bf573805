"""Functions that report failure: an integer status, returned or written through a pointer, 0 for success.

A signature marks it with `status` (`status i32(...)`, or a parameter `status i32 info`). It is no output: every run of
the function or of a derivative looks at it, and another value than 0 is an error. Derivatives compute it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irgrad.rules.errors import KernelError, SignatureError

if TYPE_CHECKING:
    from irgrad.engine.signature.signature import Signature

__all__ = ["CHECKED", "WRAPPED", "Table", "failure", "marked", "sentence", "shown_name", "status_table"]

Table = tuple[tuple[int, str], ...]
"""Statuses and what they mean, in order."""
WRAPPED = ".fields"
"""What the name of a wrapper that packs structs adds to the function's."""
CHECKED = ".checked"
"""What the name of a wrapper that returns a status adds to the function's."""
_SHOWN = 8  # samples that a message lists


def status_table(errors: Any) -> Table:
    """`errors={1: "matrix is singular"}` as a table. Raises SignatureError for what is none."""
    if not isinstance(errors, Mapping):
        raise SignatureError("`errors` is no table", because=f"got {type(errors).__name__}",
                             fix='errors={1: "matrix is singular"}')
    for code, message in errors.items():
        good = isinstance(code, int) and not isinstance(code, bool) and -(1 << 63) <= code < 1 << 63
        if not good or not isinstance(message, str) or "\0" in message:
            raise SignatureError(f"`errors` maps {code!r} to {message!r}", because="it maps integers to strings",
                                 fix='errors={1: "matrix is singular"}')
        if code == 0:
            raise SignatureError("`errors` has a message for 0", because="0 is success", fix="leave it out")
    return tuple(sorted((int(code), message) for code, message in errors.items()))


def marked(signature: Signature, name: str) -> Signature:
    """The signature with its integer return value as the status, unless it names one already. Raises SignatureError."""
    from dataclasses import replace

    if signature.status is not None:
        return signature
    if signature.returns is None or signature.returns.kind not in "iu":
        got = signature.returns or "void"
        raise SignatureError(f"`{name}` returns no status", where=f"`{signature}`",
                             because=f"`errors` is given, and the function returns `{got}`, wanted an integer",
                             fix="leave `errors` out, or mark the parameter that has the status: `status i32 info`")
    return replace(signature, returns_status=True)


def shown_name(name: str) -> str:
    """A function's name for messages: that of the function in a wrapper of irgrad's own."""
    return name.removesuffix(WRAPPED).removesuffix(CHECKED)


def sentence(name: str, status: int, table: Table) -> str:
    """What went wrong, in one line."""
    message = dict(table).get(status)
    return f"`{shown_name(name)}` failed with status {status}" + (f": {message}" if message else "")


def failure(name: str, signature: Signature, table: Table, status: int, samples: Sequence[int] = ()) -> KernelError:
    """The error for a status; samples: those of a batch that failed, the first of which had it."""
    what = sentence(name, status, table)
    if samples:
        listed = ", ".join(map(str, samples[:_SHOWN])) + (", ..." if len(samples) > _SHOWN else "")
        what += f" (sample {listed})" if len(samples) == 1 else f" (samples {listed})"
    known = ", ".join(str(code) for code, _ in table)
    unknown = f"; `errors` knows {known}" if known and status not in dict(table) else ""
    return KernelError(what, where=f"`{signature}`", because=f"the function reports a status other than 0{unknown}",
                        fix="call it with arguments for which it succeeds" if status in dict(table) else
                            f'lib.kernel(..., errors={{{status}: "..."}}) says what the status means',
                        status=status, samples=tuple(int(n) for n in samples))  # fmt: skip
