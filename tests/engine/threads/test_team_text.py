"""The text of a job: LLVM takes it, whatever the job has."""

from __future__ import annotations

import itertools

import pytest

from irgrad.engine.codegen.llvm import parse
from irgrad.engine.ir import types as ty
from irgrad.engine.threads.jobs import Job, Room
from irgrad.engine.threads.team_text import THREADS_TEXT, job_text


@pytest.mark.parametrize(
    ("sums", "rooms", "arena"), list(itertools.product([[], [ty.F64], [ty.F64, ty.F32]], [0, 1, 2], [-1, 2]))
)
def test_llvm_takes_it(sums: list[ty.Type], rooms: int, arena: int) -> None:
    job = Job("irgrad.team.0", [ty.I64, ty.PTR], sums, [Room("double", n) for n in range(rooms)], arena, arena >= 0)
    kinds = ["i64", "i64", "ptr", *["ptr"] * (2 * rooms)]
    result = "void" if not sums else str(sums[0]) if len(sums) == 1 else "{ double, float }"
    parse(f"declare {result} @irgrad.team.0.chunk({', '.join(kinds)})\n{_runtime(job)}{THREADS_TEXT}{job_text(job)}")


def _runtime(job: Job) -> str:
    return "declare ptr @_unused()\n" if not job.guarded else """
declare i32 @_setjmp(ptr) returns_twice
declare void @irgrad.tape.enter(ptr)
declare void @irgrad.tape.leave(ptr)
declare ptr @irgrad.tape.failure(ptr)
"""
