"""A loop of chunks as a job of the team: what its functions have to know (`team_text.py`, `copies_text.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.ir import types as ty
from irgrad.engine.normalise.iterations import CHUNKS

__all__ = ["Context", "Job", "Room"]


@dataclass(frozen=True, slots=True)
class Room:
    """Memory of each chunk in place of an array that several add to. kind: of the floats; number: of the room."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Job:
    """A loop of chunks.

    given: types of what each chunk gets behind its number; sums: of what chunks add up; rooms: see there; arena: which
    argument of a chunk is the call's arena, -1 for none; guarded: chunks may fail; pages: how many bytes lie behind the
    addresses of rooms is asked for when the job runs, and the memory of chunks is that of `pages.ll`; trips, least: how
    often the loop runs less one, as text, and how often it has to for that; atomic: others may add to the arrays of
    rooms meanwhile, atomically; place: of the loop, for what is said where there is no memory; unwinds: exceptions of
    the C++ runtime may leave a chunk
    """

    name: str
    given: list[ty.Type]
    sums: list[ty.Type]
    rooms: list[Room]
    arena: int = -1
    guarded: bool = False
    pages: bool = False
    trips: str = ""
    least: int = 0
    atomic: bool = False
    place: str = "a loop"
    unwinds: bool = False


class Context:
    """Where things are in the context: the given, then two words a room, the bytes of all rooms of a chunk, their
    memory, the arenas and the results of the chunks."""

    def __init__(self, job: Job) -> None:
        self.result = _result(job.sums)
        self.align = max(64, *map(ty.align_of, (*job.given, *job.sums, ty.I64)))
        fields = [str(kind) for kind in job.given]
        self.room = len(fields)
        fields += ["ptr", "i64", "i64"] * len(job.rooms)  # address, elements, offset
        self.bytes, self.memory, self.arenas, self.results = range(len(fields), len(fields) + 4)
        fields += ["i64", "ptr", f"[{CHUNKS} x ptr]", f"[{CHUNKS} x {self.result if job.sums else 'i8'}]"]
        self.type = f"{{ {', '.join(fields)} }}"

    def at(self, name: str, field: int, index: str = "") -> str:
        """A row that makes the address of a field, or of an element of it."""
        more = f", i64 {index}" if index else ""
        return f"  %{name} = getelementptr inbounds {self.type}, ptr %context, i64 0, i32 {field}{more}\n"


def _result(sums: Sequence[ty.Type]) -> str:
    return "void" if not sums else str(sums[0]) if len(sums) == 1 else str(ty.struct(tuple(sums)))
