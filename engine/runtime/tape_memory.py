"""The error of a call that found no memory for its tape."""

from __future__ import annotations

import ctypes

from irgrad.engine.ir.demangled import plain_name
from irgrad.rules.errors import IRGradError, KernelError, TapeMemoryError

__all__ = ["ANOTHER_WAY", "APART", "INTERRUPTED", "LOST", "OUTSIDE", "THROWN", "PassedLimit", "free_record",
           "out_of_tape"]  # fmt: skip

ANOTHER_WAY = -2
"""In place of the iterations, in the record of a loop that ended in another way when its iterations ran again."""
INTERRUPTED = -3
"""Likewise, of a call that the handler of a signal ended."""
APART = -4
"""Likewise, of a pointer that would move by the distance of two allocations."""
OUTSIDE = -5
"""Likewise, of an index that is not one of its array, a member of a struct."""
THROWN = -6
"""Likewise, of an exception that nothing catches; in place of the bytes stands the address of its text."""
LOST = -7
"""Likewise, of an access through a pointer that leads nowhere for the analysis."""
_WORDS = 5  # of the record: bytes that were asked for, bytes held before, iterations, place of the loop, to be freed


class PassedLimit(TapeMemoryError):
    """There may be memory, but not within the limit of the call."""


def out_of_tape(name: str, record: int, limit: int = 0) -> IRGradError:
    """The error for the record at an address (`arena.ll`), which is freed: a TapeMemoryError, or a KernelError where
    a loop ended in another way, a pointer moved by the distance of two allocations or led nowhere, an index left its
    array, or nothing caught an exception. name: the function; limit: bytes of tape that it could have, 0 for none"""
    wanted, held, count, place, owned = (ctypes.c_int64 * _WORDS).from_address(record)
    where = ctypes.string_at(place).decode("utf-8", "replace") if place else ""
    if owned:
        free_record(record)
    if count == THROWN:
        return _thrown(name, wanted, where)
    if count == ANOTHER_WAY:
        return KernelError(
            f"a loop of `{name}` ended in another way when its iterations ran again", which=f"the loop at {where}",
            because="its end depends on what it computes, to the last bit",
            fix="leave it out of `checkpoint`, or end it by a number of iterations")  # fmt: skip
    if count == APART:
        return KernelError(
            f"a pointer of `{name}` moves by the distance of two allocations", where=where,
            because="the shadows of the two lie at another distance",
            fix="write `new + (p - old)`, or keep indices in place of pointers")  # fmt: skip
    if count == OUTSIDE:
        return KernelError(
            f"an index of `{name}` leaves the array that is a member of its struct", where=where,
            because="its derivative takes the members of the struct for memory apart",
            fix="keep the index in the array, or walk through the struct by a pointer to it")  # fmt: skip
    if count == LOST:
        return KernelError(
            f"a pointer of `{name}` leads where no analysis has seen that it may", where=where,
            because="numbers in that memory would have a derivative of zero",
            fix="keep the pointer as a pointer, in a variable or a member of its own; call a function with the types "
            "that it has")  # fmt: skip
    which = f"{wanted:,} bytes"
    if where and count >= 0:
        which += f" for {count:,} iterations of the loop at {where}"
    elif where:
        which += f" for an iteration of the loop at {where}, which runs until it is left"
    return (PassedLimit if limit and wanted + held > limit else TapeMemoryError)(
        f"there is no memory for the tape of `{name}`", which=which,
        because="reverse mode keeps what the loops compute until they run backwards; beside the "
        f"{held:,} bytes that the tape has, the system gives no more",
        fix='lib.kernel(..., tape_memory="512MB"), with which long loops keep states and run iterations again; or '
        "forward mode, which keeps nothing")  # fmt: skip


def _thrown(name: str, text: int, where: str) -> KernelError:
    said = plain_name(ctypes.string_at(text).decode("utf-8", "replace")) if text else "an exception"
    if text:
        free_record(text)
    return KernelError(f"`{name}` throws {said}", where=where, because="nothing in the kernel catches it",
                       fix="call it with arguments for which it does not throw, or catch the exception")  # fmt: skip


def free_record(record: int) -> None:
    """Give the memory of a record back."""
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(record)
