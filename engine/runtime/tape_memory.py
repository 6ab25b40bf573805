"""The error of a call that found no memory for its tape."""

from __future__ import annotations

import ctypes

from irgrad.rules.errors import TapeMemoryError

__all__ = ["out_of_tape"]

_WORDS = 5  # of the record: bytes that were asked for, bytes held before, iterations, place of the loop, to be freed


def out_of_tape(name: str, record: int) -> TapeMemoryError:
    """The error for the record at an address (see `transforms/arena.ll`), which is freed. `name`: the function."""
    wanted, held, count, place, owned = (ctypes.c_int64 * _WORDS).from_address(record)
    where = ctypes.string_at(place).decode("utf-8", "replace") if place else ""
    if owned:
        libc = ctypes.CDLL(None)
        libc.free.argtypes = [ctypes.c_void_p]
        libc.free(record)
    which = f"{wanted:,} bytes"
    if where and count >= 0:
        which += f" for {count:,} iterations of the loop at {where}"
    elif where:
        which += f" for an iteration of the loop at {where}, which runs until it is left"
    return TapeMemoryError(
        f"there is no memory for the tape of `{name}`", which=which,
        because="reverse mode keeps what the loops compute until they run backwards; beside the "
        f"{held:,} bytes that the tape has, the system gives no more",
        fix='lib.kernel(..., tape_memory="512MB"), with which long loops keep states and run iterations again; or '
        "forward mode, which keeps nothing")  # fmt: skip
