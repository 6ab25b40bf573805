"""The functions of a job, in LLVM IR: what runs it, and a part (see `teams.py`)."""

from __future__ import annotations

from irgrad.engine.codegen.team import RUN, THREADS
from irgrad.engine.runtime.arena import guarded_text
from irgrad.engine.threads.copies_text import added_text, copies_text, prepared_text
from irgrad.engine.threads.jobs import Context, Job

__all__ = ["AUTOMATIC_TEXT", "THREADS_TEXT", "job_text"]

THREADS_TEXT = f"""
@irgrad.team.threads = internal global i64 1
define void @{THREADS}(i64 %threads) {{
  store i64 %threads, ptr @irgrad.team.threads
  ret void
}}
"""
AUTOMATIC_TEXT = "\n@irgrad.team.threads = internal constant i64 0\n"
"""In place of it: as many threads as `team.ll` chooses."""


def job_text(job: Job) -> str:
    """`@NAME(i64 last, given..., sums so far..., (address, bytes) of each room)` and what it needs."""
    context = Context(job)
    more = (_OF_TAPES if job.guarded else "") + (copies_text(job, context) if job.rooms else "")
    return _runner(job, context) + _part(job, context) + _DECLARATIONS + more


_DECLARATIONS = f"""
declare ptr @{RUN}(ptr, ptr, i64, i64)
declare void @free(ptr)
"""
_OF_TAPES = """
declare ptr @irgrad.tape.child(ptr, i64)
declare void @irgrad.tape.fail(i64, i64, i64, ptr)
"""


def _runner(job: Job, context: Context) -> str:
    given = [f"{kind} %g{n}" for n, kind in enumerate(job.given)]
    sums = [f"{kind} %s{n}" for n, kind in enumerate(job.sums)]
    rooms = [word for n in range(len(job.rooms)) for word in (f"ptr %base{n}", f"i64 %bytes{n}")]
    parameters = ", ".join(["i64 %last", *given, *sums, *rooms])
    rows = [f"""
define internal {context.result} @{job.name}({parameters}) noinline nounwind {{
entry:
  %context = alloca {context.type}, align {context.align}
  %count = add i64 %last, 1
"""]  # fmt: skip
    for n, kind in enumerate(job.given):
        rows.append(context.at(f"gp{n}", n) + f"  store {kind} %g{n}, ptr %gp{n}\n")
    rows.append(prepared_text(job, context) if job.rooms else "  br label %prepared\nprepared:\n")
    rows.append(_arenas(job, context))
    if job.rooms:  # without memory of their own, one chunk after the other adds to the arrays
        rows.append("  %wanted = load i64, ptr @irgrad.team.threads\n"
                    "  %threads = select i1 %alone, i64 1, i64 %wanted\n")  # fmt: skip
    else:
        rows.append("  %threads = load i64, ptr @irgrad.team.threads\n")
    rows.append(f"  %failure = call ptr @{RUN}(ptr @{job.name}.part, ptr %context, i64 %count, i64 %threads)\n")
    rows.append(_failed(job) if job.guarded else "  br label %through\nthrough:\n")
    rows.append(added_text(job, context) if job.rooms else "")
    rows.append(_summed(job, context))
    return "".join(rows)


def _arenas(job: Job, context: Context) -> str:
    """An arena for each chunk."""
    if job.arena < 0:
        return ""
    return f"""  br label %arenas
arenas:
  %c = phi i64 [ 0, %prepared ], [ %cnext, %arenas ]
  %child = call ptr @irgrad.tape.child(ptr %g{job.arena - 1}, i64 %c)
{context.at("tp", context.arenas, "%c")}  store ptr %child, ptr %tp
  %cnext = add i64 %c, 1
  %cmore = icmp ult i64 %cnext, %count
  br i1 %cmore, label %arenas, label %begin
begin:
"""


def _failed(job: Job) -> str:
    """A part's record is that of the call: which ends, or is stopped, as if it had failed by itself."""
    places = "".join(f"  %fp{n} = getelementptr i64, ptr %failure, i64 {n}\n" for n in range(5))
    words = "".join(f"  %f{n} = load i64, ptr %fp{n}\n" for n in range(5))
    free = "  call void @irgrad_team_copies_drop(ptr %memory)\n" if job.rooms else ""
    if job.rooms and job.pages:  # of no bytes it does nothing
        free = "  call void @irgrad_team_pages_free(ptr %memory, i64 %all, ptr null)\n"
    return f"""  %well = icmp eq ptr %failure, null
  br i1 %well, label %through, label %failed
failed:
{places}{words}{free}  %where = inttoptr i64 %f3 to ptr
  %owned = icmp ne i64 %f4, 0
  br i1 %owned, label %owns, label %fails
owns:
  call void @free(ptr %failure)
  br label %fails
fails:
  call void @irgrad.tape.fail(i64 %f0, i64 %f1, i64 %f2, ptr %where)
  unreachable
through:
"""


def _summed(job: Job, context: Context) -> str:
    """What the chunks add up, in their order."""
    if not job.sums:
        return "  ret void\n}\n"
    whole = len(job.sums) == 1
    before = "added" if job.rooms else "through"
    rows = [f"  br label %sum\nsum:\n  %k = phi i64 [ 0, %{before} ], [ %knext, %sum ]\n"]
    for n, kind in enumerate(job.sums):
        rows.append(f"  %t{n} = phi {kind} [ %s{n}, %{before} ], [ %n{n}, %sum ]\n")
    rows.append(context.at("rp", context.results, "%k") + f"  %got = load {context.result}, ptr %rp\n")
    for n, kind in enumerate(job.sums):
        part = "%got" if whole else f"%p{n}"
        rows.append("" if whole else f"  %p{n} = extractvalue {context.result} %got, {n}\n")
        rows.append(f"  %n{n} = fadd {kind} %t{n}, {part}\n")
    rows.append("""  %knext = add i64 %k, 1
  %kmore = icmp ult i64 %knext, %count
  br i1 %kmore, label %sum, label %summed
summed:
""")
    value = "%n0" if whole else "poison"
    for n, kind in enumerate(() if whole else job.sums):
        rows.append(f"  %v{n} = insertvalue {context.result} {value}, {kind} %n{n}, {n}\n")
        value = f"%v{n}"
    return "".join(rows) + f"  ret {context.result} {value}\n}}\n"


def _part(job: Job, context: Context) -> str:
    """One chunk, from what the context has."""
    name = f"{job.name}.part"
    guard = guarded_text(name, ["ptr", "i64"], unwinds=job.unwinds) if job.guarded else ""
    guard = guard.replace("define ptr", "define internal ptr", 1)
    head = f"void @{name}.run" if job.guarded else f"ptr @{name}"
    promise = "" if job.unwinds else " nounwind"
    rows = [guard, f"\ndefine internal {head}(ptr %context, i64 %c) noinline{promise} {{\n"]
    values = ["i64 %c"]
    for n, kind in enumerate(job.given):
        own = n + 1 == job.arena
        rows.append(context.at(f"p{n}", context.arenas, "%c") if own else context.at(f"p{n}", n))
        rows.append(f"  %g{n} = load {kind}, ptr %p{n}\n")
        values.append(f"{kind} %g{n}")
    if job.rooms:
        rows.append(f"""{context.at("bp", context.bytes)}  %bytes = load i64, ptr %bp
{context.at("mp", context.memory)}  %memory = load ptr, ptr %mp
  %skip = mul i64 %c, %bytes
  %own = getelementptr i8, ptr %memory, i64 %skip
  %alone = icmp eq ptr %memory, null
""")
    for room in job.rooms:
        n = room.number
        rows.append(f"""{context.at(f"rb{n}", context.room + 3 * n)}  %base{n} = load ptr, ptr %rb{n}
{context.at(f"ro{n}", context.room + 3 * n + 2)}  %offset{n} = load i64, ptr %ro{n}
  %its{n} = getelementptr i8, ptr %own, i64 %offset{n}
  %own{n} = select i1 %alone, ptr %base{n}, ptr %its{n}
""")
        values += [f"ptr %base{n}", f"ptr %own{n}"]
    call = f"call {context.result} @{job.name}.chunk({', '.join(values)})\n"
    if job.sums:
        place = context.at("rp", context.results, "%c")
        rows.append(f"  %r = {call}{place}  store {context.result} %r, ptr %rp\n")
    else:
        rows.append(f"  {call}")
    return "".join(rows) + ("  ret void\n}\n" if job.guarded else "  ret ptr null\n}\n")
