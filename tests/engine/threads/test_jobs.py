"""Where a job's context has what: every field is one of the type, and no two are the same."""

from __future__ import annotations

from irgrad.engine.ir import types as ty
from irgrad.engine.threads.jobs import Context, Job, Room


def test_fields_of_a_context() -> None:
    job = Job("irgrad.team.0", [ty.I64, ty.PTR], [ty.F64, ty.F32], [Room("double", 0), Room("float", 1)])
    context = Context(job)
    rooms = range(context.room, context.room + 3 * len(job.rooms))
    fields = [*range(len(job.given)), *rooms, context.bytes, context.memory, context.arenas, context.results]
    assert fields == list(range(len(fields)))
    kinds = ["i64", "ptr", *["ptr", "i64", "i64"] * 2, "i64", "ptr", "[16 x ptr]", "[16 x { double, float }]"]
    assert context.type == f"{{ {', '.join(kinds)} }}" and context.result == "{ double, float }"
    assert context.at("p", context.arenas, "%c").split(" = ")[1].endswith(f"i64 0, i32 {context.arenas}, i64 %c\n")


def test_a_job_without_results() -> None:
    context = Context(Job("irgrad.team.1", [ty.vector(16, ty.F64)], [], []))
    assert context.result == "void" and context.align == 128 and context.type.endswith("[16 x i8] }")
