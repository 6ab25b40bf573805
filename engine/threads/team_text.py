"""The functions of a job, in LLVM IR: what runs it, a part, and what adds up (see `teams.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.codegen.team import RUN, THREADS
from irgrad.engine.ir import types as ty
from irgrad.engine.normalise.iterations import CHUNKS as _CHUNKS
from irgrad.engine.runtime.arena import guarded_text
from irgrad.engine.runtime.copies import OWN_MEMORY, told_text

__all__ = ["AUTOMATIC_TEXT", "THREADS_TEXT", "Job", "Room", "job_text"]

THREADS_TEXT = f"""
@irgrad.team.threads = internal global i64 1
define void @{THREADS}(i64 %threads) {{
  store i64 %threads, ptr @irgrad.team.threads
  ret void
}}
"""
AUTOMATIC_TEXT = "\n@irgrad.team.threads = internal constant i64 0\n"
"""In place of it: as many threads as `team.ll` chooses."""
_BLOCK = 512  # elements that are added up for all chunks before the next ones are
_MOST = 1 << 32  # bytes of address space of which it is asked which pages were touched
_LARGE = 65536  # bytes that are worth threads
_SCANNED = 1 << 20  # bytes of copies from which on it is asked which of their pages were written to
NO_COPIES = f"memory for copies of the arrays that its chunks add to {OWN_MEMORY}"
NO_PAGES = ("there is no memory for copies of the arrays that its chunks add to, or they lie in more than "
            f"{_MOST // _CHUNKS >> 20} MiB without a gap")  # fmt: skip


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
    rooms meanwhile, atomically; place: of the loop, for what is said where there is no memory
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


def job_text(job: Job) -> str:
    """`@NAME(i64 last, given..., sums so far..., (address, bytes) of each room)` and what it needs."""
    context = _Context(job)
    texts = [_runner(job, context), _part(job, context)]
    if job.rooms:
        texts.append(_fold_pages(job, context) if job.pages else _fold(job, context))
    more = (_OF_TAPES if job.guarded else "") + (_OF_PAGES if job.pages else _OF_COPIES if job.rooms else "")
    return "".join(texts) + _DECLARATIONS + more + (_said(job) if job.rooms else "")


def _said(job: Job) -> str:
    """What is said where one thread runs a job."""
    said = told_text(job.place, NO_PAGES if job.pages else NO_COPIES)
    word = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in said)
    return (f'\n@{job.name}.said = private unnamed_addr constant [{len(said)} x i8] c"{word}", align 1\n'
            f"declare void @irgrad.copies.told(ptr, i64)\n")  # fmt: skip


def _tell(job: Job) -> str:
    length = len(told_text(job.place, NO_PAGES if job.pages else NO_COPIES))
    return f"  call void @irgrad.copies.told(ptr @{job.name}.said, i64 {length})\n"


_DECLARATIONS = f"""
declare ptr @{RUN}(ptr, ptr, i64, i64)
declare void @free(ptr)
"""
_OF_COPIES = """
declare ptr @irgrad_team_copies(i64)
declare void @irgrad_team_copies_back(ptr)
declare void @irgrad_team_copies_drop(ptr)
declare ptr @irgrad_team_touched(ptr, i64)
declare i64 @irgrad.copies.most()
"""
_OF_PAGES = """
declare i64 @irgrad_team_extent(ptr, ptr)
declare ptr @irgrad_team_pages(i64)
declare ptr @irgrad_team_touched(ptr, i64)
declare void @irgrad_team_pages_free(ptr, i64, ptr)
declare void @irgrad_team_add(ptr, ptr, i64, i64, i64, i64, i64, ptr, i64)
"""
_OF_TAPES = """
declare ptr @irgrad.tape.child(ptr, i64)
declare void @irgrad.tape.fail(i64, i64, i64, ptr)
"""


class _Context:
    """Where things are in the context: the given, then two words a room, the bytes of all rooms of a chunk, their
    memory, the arenas and the results of the chunks."""

    def __init__(self, job: Job) -> None:
        self.result = _result(job.sums)
        self.align = max(64, *map(ty.align_of, (*job.given, *job.sums, ty.I64)))
        fields = [str(kind) for kind in job.given]
        self.room = len(fields)
        fields += ["ptr", "i64", "i64"] * len(job.rooms)  # address, elements, offset
        self.bytes, self.memory, self.arenas, self.results = range(len(fields), len(fields) + 4)
        fields += ["i64", "ptr", f"[{_CHUNKS} x ptr]", f"[{_CHUNKS} x {self.result if job.sums else 'i8'}]"]
        self.type = f"{{ {', '.join(fields)} }}"

    def at(self, name: str, field: int, index: str = "") -> str:
        """A row that makes the address of a field, or of an element of it."""
        more = f", i64 {index}" if index else ""
        return f"  %{name} = getelementptr inbounds {self.type}, ptr %context, i64 0, i32 {field}{more}\n"


def _result(sums: Sequence[ty.Type]) -> str:
    return "void" if not sums else str(sums[0]) if len(sums) == 1 else str(ty.struct(tuple(sums)))


def _runner(job: Job, context: _Context) -> str:
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
    prepared = _prepared_pages if job.pages else _prepared
    rows.append(prepared(job, context) if job.rooms else "  br label %prepared\nprepared:\n")
    rows.append(_arenas(job, context))
    if job.rooms:  # without memory of their own, one chunk after the other adds to the arrays
        rows.append("  %wanted = load i64, ptr @irgrad.team.threads\n"
                    "  %threads = select i1 %alone, i64 1, i64 %wanted\n")  # fmt: skip
    else:
        rows.append("  %threads = load i64, ptr @irgrad.team.threads\n")
    rows.append(f"  %failure = call ptr @{RUN}(ptr @{job.name}.part, ptr %context, i64 %count, i64 %threads)\n")
    rows.append(_failed(job) if job.guarded else "  br label %through\nthrough:\n")
    if job.rooms and job.pages:
        rows.append(_added_pages(job, context))
    elif job.rooms:
        rows.append(_added(job, context))
    rows.append(_summed(job, context))
    return "".join(rows)


def _prepared(job: Job, context: _Context) -> str:
    """Memory of the chunks, in place of the arrays that several add to."""
    rows, total = [], "0"
    for room in job.rooms:
        n = room.number
        rows.append(f"  %elements{n} = lshr i64 %bytes{n}, {3 if room.kind == 'double' else 2}\n")
        for word, value in enumerate((f"ptr %base{n}", f"i64 %elements{n}", f"i64 {total}")):
            place = context.at(f"r{n}.{word}", context.room + 3 * n + word)
            rows.append(f"{place}  store {value}, ptr %r{n}.{word}\n")
        rows.append(f"""
  %up{n} = add i64 %bytes{n}, 63
  %whole{n} = and i64 %up{n}, -64
  %total{n} = add i64 {total}, %whole{n}
""")
        total = f"%total{n}"
    rows.append(f"""
{context.at("bp", context.bytes)}  store i64 {total}, ptr %bp
  %all = mul i64 {total}, %count
  %few = icmp eq i64 %count, 1
  br i1 %few, label %prepared, label %asks
asks:
  %most = call i64 @irgrad.copies.most()
  %large = icmp ugt i64 %all, %most
  %within = select i1 %large, i64 0, i64 %all
  %copies = call ptr @irgrad_team_copies(i64 %within)
  %none = icmp eq ptr %copies, null
  %some = icmp ne i64 %all, 0
  %lacks = and i1 %none, %some
  br i1 %lacks, label %refused, label %prepared
refused:
{_tell(job)}  br label %prepared
prepared:
  %memory = phi ptr [ null, %entry ], [ %copies, %asks ], [ null, %refused ]
  %alone = phi i1 [ true, %entry ], [ false, %asks ], [ true, %refused ]
{context.at("mp", context.memory)}  store ptr %memory, ptr %mp
""")
    return "".join(rows)


def _prepared_pages(job: Job, context: _Context) -> str:
    """The same where nobody knows how much lies behind the addresses: as much as can be written to, for each chunk."""
    short = f"icmp ult i64 {job.trips}, {job.least}" if job.trips else "icmp ult i64 0, 0"
    few = f"  %short = {short}\n  %one = icmp eq i64 %count, 1\n  %few = or i1 %short, %one\n"
    rows, total, good = ["  %lows = alloca ptr\n" + few], "0", "true"
    for room in job.rooms:
        n, mask = room.number, 7 if room.kind == "double" else 3
        rows.append(f"""
  store ptr %base{n}, ptr %lows
  %asked{n} = select i1 %few, ptr null, ptr %base{n}
  %extent{n} = call i64 @irgrad_team_extent(ptr %asked{n}, ptr %lows)
  %low{n} = load ptr, ptr %lows
{context.at(f"r{n}.0", context.room + 3 * n)}  store ptr %low{n}, ptr %r{n}.0
{context.at(f"r{n}.1", context.room + 3 * n + 1)}  store i64 %extent{n}, ptr %r{n}.1
{context.at(f"r{n}.2", context.room + 3 * n + 2)}  store i64 {total}, ptr %r{n}.2
  %total{n} = add i64 {total}, %extent{n}
  %at{n} = ptrtoint ptr %base{n} to i64
  %beside{n} = and i64 %at{n}, {mask}
  %even{n} = icmp eq i64 %beside{n}, 0
  %known{n} = icmp ne i64 %extent{n}, 0
  %both{n} = and i1 %even{n}, %known{n}
  %good{n} = and i1 {good}, %both{n}
""")
        total, good = f"%total{n}", f"%good{n}"
    rows.append(f"""
{context.at("bp", context.bytes)}  store i64 {total}, ptr %bp
  %together = mul i64 {total}, %count
  %large = icmp ugt i64 %together, {_MOST}
  %within = select i1 %large, i64 0, i64 %together
  %all = select i1 {good}, i64 %within, i64 0
  %memory = call ptr @irgrad_team_pages(i64 %all)
{context.at("mp", context.memory)}  store ptr %memory, ptr %mp
  %alone = icmp eq ptr %memory, null
  %enough = xor i1 %few, true
  %refuses = and i1 %alone, %enough
  br i1 %refuses, label %refused, label %prepared
refused:
{_tell(job)}  br label %prepared
prepared:
""")
    return "".join(rows)


def _added(job: Job, context: _Context) -> str:
    """What the chunks have added in copies of arrays is added to the arrays; the copies are zeros again."""
    return f"""  br i1 %alone, label %added, label %own
own:
  %small = icmp ult i64 %total{len(job.rooms) - 1}, {_LARGE}
  %hands = select i1 %small, i64 1, i64 %threads
  %pieces = select i1 %small, i64 1, i64 {_CHUNKS}
  %code = shl i64 %pieces, 32
  %both = or i64 %code, %count
{context.at("ap", context.arenas)}  store i64 %both, ptr %ap
{context.at("cp", context.arenas, "1")}  store ptr null, ptr %cp
  %scanned = icmp ugt i64 %all, {_SCANNED}
  br i1 %scanned, label %scan, label %fold
scan:
  %pages = call ptr @irgrad_team_touched(ptr %memory, i64 %all)
  store ptr %pages, ptr %cp
  br label %fold
fold:
  %touched = load ptr, ptr %cp
  %unused = call ptr @{RUN}(ptr @{job.name}.fold, ptr %context, i64 %pieces, i64 %hands)
  call void @irgrad_team_copies_back(ptr %memory)
  call void @free(ptr %touched)
  br label %added
added:
"""


def _added_pages(job: Job, context: _Context) -> str:
    """What the chunks have added in their own memory is added to the arrays."""
    return f"""
  br i1 %alone, label %added, label %own
own:
  %touched = call ptr @irgrad_team_touched(ptr %memory, i64 %all)
{context.at("ap", context.arenas)}  store ptr %touched, ptr %ap
{context.at("cp", context.arenas, "1")}  %copies = inttoptr i64 %count to ptr
  store ptr %copies, ptr %cp
  %unused = call ptr @{RUN}(ptr @{job.name}.fold, ptr %context, i64 {_CHUNKS}, i64 %threads)
  call void @irgrad_team_pages_free(ptr %memory, i64 %all, ptr %touched)
  br label %added
added:
"""


def _fold_pages(job: Job, context: _Context) -> str:
    """Piece p of the pages behind each address."""
    rows = [f"""
define internal ptr @{job.name}.fold(ptr %context, i64 %p) noinline nounwind {{
entry:
{context.at("ap", context.arenas)}  %touched = load ptr, ptr %ap
{context.at("cp", context.arenas, "1")}  %copies = load ptr, ptr %cp
  %count = ptrtoint ptr %copies to i64
{context.at("bp", context.bytes)}  %bytes = load i64, ptr %bp
{context.at("mp", context.memory)}  %memory = load ptr, ptr %mp
  %p1 = add i64 %p, 1
"""]
    for room in job.rooms:
        n, kind = room.number, int(room.kind == "float") + 2 * job.atomic
        pages = f"i64 %low{n}, i64 %high{n}, ptr %touched, i64 %offset{n}"
        rows.append(f"""
{context.at(f"rb{n}", context.room + 3 * n)}  %base{n} = load ptr, ptr %rb{n}
{context.at(f"re{n}", context.room + 3 * n + 1)}  %extent{n} = load i64, ptr %re{n}
{context.at(f"ro{n}", context.room + 3 * n + 2)}  %offset{n} = load i64, ptr %ro{n}
  %pages{n} = lshr i64 %extent{n}, 12
  %l{n} = mul i64 %pages{n}, %p
  %low{n} = udiv i64 %l{n}, {_CHUNKS}
  %h{n} = mul i64 %pages{n}, %p1
  %high{n} = udiv i64 %h{n}, {_CHUNKS}
  %own{n} = getelementptr i8, ptr %memory, i64 %offset{n}
  call void @irgrad_team_add(ptr %base{n}, ptr %own{n}, i64 %bytes, i64 %count, i64 {kind}, {pages})
""")
    rows.append("  ret ptr null\n}\n")
    return "".join(rows)


def _arenas(job: Job, context: _Context) -> str:
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


def _summed(job: Job, context: _Context) -> str:
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


def _part(job: Job, context: _Context) -> str:
    """One chunk, from what the context has."""
    name = f"{job.name}.part"
    guard = guarded_text(name, ["ptr", "i64"]).replace("define ptr", "define internal ptr", 1) if job.guarded else ""
    head = f"void @{name}.run" if job.guarded else f"ptr @{name}"
    rows = [guard, f"\ndefine internal {head}(ptr %context, i64 %c) noinline nounwind {{\n"]
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


def _fold(job: Job, context: _Context) -> str:
    """Piece p of the arrays: to each element what the chunks have for it is added, in their order. The copies are zeros
    then. Blocks of pages that nobody has written to are passed by: zeros are added as -0, which changes nothing."""
    rows = [f"""
define internal ptr @{job.name}.fold(ptr %context, i64 %p) noinline nounwind {{
entry:
{context.at("ap", context.arenas)}  %both = load i64, ptr %ap
  %pieces = lshr i64 %both, 32
  %count = and i64 %both, 4294967295
{context.at("cp", context.arenas, "1")}  %touched = load ptr, ptr %cp
  %all = icmp eq ptr %touched, null
{context.at("bp", context.bytes)}  %bytes = load i64, ptr %bp
{context.at("mp", context.memory)}  %memory = load ptr, ptr %mp
  %p1 = add i64 %p, 1
  br label %begin0
"""]
    for room in job.rooms:
        n, kind, shift = room.number, room.kind, 3 if room.kind == "double" else 2
        rows.append(f"""begin{n}:
{context.at(f"rb{n}", context.room + 3 * n)}  %base{n} = load ptr, ptr %rb{n}
{context.at(f"re{n}", context.room + 3 * n + 1)}  %elements{n} = load i64, ptr %re{n}
{context.at(f"ro{n}", context.room + 3 * n + 2)}  %offset{n} = load i64, ptr %ro{n}
  %l{n} = mul i64 %elements{n}, %p
  %low{n} = udiv i64 %l{n}, %pieces
  %h{n} = mul i64 %elements{n}, %p1
  %high{n} = udiv i64 %h{n}, %pieces
  %first{n} = getelementptr i8, ptr %memory, i64 %offset{n}
  %any{n} = icmp ult i64 %low{n}, %high{n}
  br i1 %any{n}, label %block{n}, label %begin{n + 1}
block{n}:
  %b{n} = phi i64 [ %low{n}, %begin{n} ], [ %e{n}, %after{n} ]
  %be{n} = add i64 %b{n}, {_BLOCK}
  %e{n} = call i64 @llvm.umin.i64(i64 %be{n}, i64 %high{n})
  br label %chunk{n}
chunk{n}:
  %c{n} = phi i64 [ 0, %block{n} ], [ %cn{n}, %added{n} ]
  %skip{n} = mul i64 %c{n}, %bytes
  %own{n} = getelementptr i8, ptr %first{n}, i64 %skip{n}
  br i1 %all, label %some{n}, label %look{n}
look{n}:
  %before{n} = add i64 %offset{n}, %skip{n}
  %bb{n} = shl i64 %b{n}, {shift}
  %eb{n} = shl i64 %e{n}, {shift}
  %lb{n} = add i64 %before{n}, %bb{n}
  %hb{n} = add i64 %before{n}, %eb{n}
  %last{n} = sub i64 %hb{n}, 1
  %lp{n} = lshr i64 %lb{n}, 12
  %hp{n} = lshr i64 %last{n}, 12
  %lf{n} = getelementptr i8, ptr %touched, i64 %lp{n}
  %hf{n} = getelementptr i8, ptr %touched, i64 %hp{n}
  %l1{n} = load i8, ptr %lf{n}
  %h1{n} = load i8, ptr %hf{n}
  %f{n} = or i8 %l1{n}, %h1{n}
  %clean{n} = icmp eq i8 %f{n}, 0
  br i1 %clean{n}, label %added{n}, label %some{n}
some{n}:
  br label %add{n}
add{n}:
  %i{n} = phi i64 [ %b{n}, %some{n} ], [ %in{n}, %add{n} ]
  %tp{n} = getelementptr {kind}, ptr %base{n}, i64 %i{n}
  %sp{n} = getelementptr {kind}, ptr %own{n}, i64 %i{n}
  %t{n} = load {kind}, ptr %tp{n}
  %s{n} = load {kind}, ptr %sp{n}
  %zero{n} = fcmp oeq {kind} %s{n}, 0.0
  %part{n} = select i1 %zero{n}, {kind} -0.0, {kind} %s{n}
  %sum{n} = fadd {kind} %t{n}, %part{n}
  store {kind} %sum{n}, ptr %tp{n}
  store {kind} 0.0, ptr %sp{n}
  %in{n} = add nuw i64 %i{n}, 1
  %im{n} = icmp ult i64 %in{n}, %e{n}
  br i1 %im{n}, label %add{n}, label %added{n}
added{n}:
  %cn{n} = add i64 %c{n}, 1
  %cm{n} = icmp ult i64 %cn{n}, %count
  br i1 %cm{n}, label %chunk{n}, label %after{n}
after{n}:
  %m{n} = icmp ult i64 %e{n}, %high{n}
  br i1 %m{n}, label %block{n}, label %begin{n + 1}
""")
    rows.append(f"begin{len(job.rooms)}:\n  ret ptr null\n}}\ndeclare i64 @llvm.umin.i64(i64, i64)\n")
    return "".join(rows)
