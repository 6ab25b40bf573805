"""The arena of the tape (`arena.ll`), and functions that end with a record where it finds no more memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

__all__ = [
    "CONSTANT_SHADOW", "DRAIN", "LIMIT", "LOST_ON_DEVICE", "PEAK", "PEAK_TEXT", "RESET", "STOP", "TRIM", "WANTED",
    "arena_text", "guarded_text", "large_text", "run_name",
]  # fmt: skip

_GUARD_BYTES = 576  # see `arena.ll`
CONSTANT_SHADOW = ".shadow.constant."
"""In the name of the shadow of a constant (a table, a vtable): its pointers are always those that it starts with, and
adjoints that end in it are read by nobody. So calls may share it."""
DRAIN = "irgrad_tape_drain"
"""Closing the unit frees the tape memory that it keeps between calls."""
TRIM = "irgrad_tape_trim"
"""Frees the tape memory that no call uses."""
PEAK = "irgrad.tape_bytes"
LIMIT = "irgrad.tape_limit"
"""Sets how many bytes of tape a call may hold; as the number without sign, so that -1 is no limit."""
PEAK_TEXT = f"""
define i64 @{PEAK}(i64 %least) {{
  %peak = atomicrmw umax ptr @irgrad_tape_peak, i64 %least monotonic, align 8
  ret i64 %peak
}}

define void @{LIMIT}(i64 %bytes) {{
  store atomic i64 %bytes, ptr @irgrad_tape_limit monotonic, align 8
  ret void
}}
"""
"""Tells how much tape memory was in use at most since the last `RESET`; it is at least `least` from now on."""
RESET = "irgrad_tape_bytes"
"""Tells the same, and begins anew."""
LOST_ON_DEVICE = """
define internal void @irgrad.tape.lost(i1 %wrong, ptr %where) alwaysinline nounwind {
  br i1 %wrong, label %stop, label %go
stop:
  call void @llvm.trap()
  unreachable
go:
  ret void
}
declare void @llvm.trap()
"""
"""In place of a message a launch fails."""
STOP = "irgrad_tape_stop"
"""Ends a call of this thread, as one that found no memory."""
WANTED = (PEAK, LIMIT, RESET, DRAIN, TRIM, STOP)


@cache
def arena_text() -> str:
    """The definitions of `irgrad.tape.*`."""
    return Path(__file__).with_name("arena.ll").read_text(encoding="utf-8")


@cache
def large_text() -> str:
    """`irgrad.tape.large`, which tells of tapes that pass half of the free memory."""
    return Path(__file__).with_name("large_tapes.ll").read_text(encoding="utf-8")


def guarded_text(name: str, parameters: Sequence[str], *, unwinds: bool = False) -> str:
    """`ptr @NAME(...)`, which calls `void @NAME.run(...)` under a guard: null, or the record of a failure.

    unwinds: an exception of the C++ runtime may leave that function (see `exceptions.py`)"""
    arguments = ", ".join(f"{type_} %a{i}" for i, type_ in enumerate(parameters))
    run = f"void @{run_name(name)}({arguments})"
    run = _CAUGHT.replace("RUN", run) if unwinds else f"  call {run}\n"
    return f"""
define ptr @{name}({arguments}) noinline nounwind{_PERSONALITY if unwinds else ""} {{
  %guard = alloca [{_GUARD_BYTES} x i8], align 16
  %came = call i32 @_setjmp(ptr %guard) returns_twice
  %first = icmp eq i32 %came, 0
  br i1 %first, label %run, label %failed
run:
  call void @irgrad.tape.enter(ptr %guard)
{run}  call void @irgrad.tape.leave(ptr %guard)
  ret ptr null
failed:
  %failure = call ptr @irgrad.tape.failure(ptr %guard)
  ret ptr %failure
}}
"""


_PERSONALITY = " personality ptr @__gxx_personality_v0"
_CAUGHT = """  %noted = getelementptr i8, ptr %guard, i64 528
  store ptr null, ptr %noted, align 8
  invoke RUN to label %well unwind label %thrown
thrown:
  %pad = landingpad { ptr, i32 } catch ptr @_ZTISt9exception catch ptr null
  %header = extractvalue { ptr, i32 } %pad, 0
  %kind = extractvalue { ptr, i32 } %pad, 1
  %standard = call i32 @llvm.eh.typeid.for.p0(ptr @_ZTISt9exception)
  %says = icmp eq i32 %kind, %standard
  call void @irgrad.tape.caught(ptr %guard, ptr %header, i1 %says)
  unreachable
well:
"""


def run_name(name: str) -> str:
    """Name of the function that a guarded one calls; names may be quoted."""
    return f'{name[:-1]}.run"' if name.endswith('"') else f"{name}.run"
