"""Memory of each chunk in place of arrays that several chunks add to, in LLVM IR: zeros before the chunks run, added to
the arrays in the order of the chunks behind them.

How large an array is is known before the loop, or asked of the system when the job runs (`pages.ll`).
"""

from __future__ import annotations

from irgrad.engine.codegen.team import RUN
from irgrad.engine.normalise.iterations import CHUNKS
from irgrad.engine.runtime.copies import OWN_MEMORY, told_text
from irgrad.engine.threads.jobs import Context, Job

__all__ = ["added_text", "copies_text", "prepared_text"]

_BLOCK = 512  # elements that are added up for all chunks before the next ones are
_MOST = 1 << 32  # bytes of address space of which it is asked which pages were touched
_LARGE = 65536  # bytes that are worth threads
_SCANNED = 1 << 20  # bytes of copies from which on it is asked which of their pages were written to
NO_COPIES = f"memory for copies of the arrays that its chunks add to {OWN_MEMORY}"
NO_PAGES = ("there is no memory for copies of the arrays that its chunks add to, or they lie in more than "
            f"{_MOST // CHUNKS >> 20} MiB without a gap")  # fmt: skip
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


def prepared_text(job: Job, context: Context) -> str:
    """Rows that reserve the memory, up to the block `prepared`: `%memory`, of `%all` bytes, and `%alone`, whether there
    is none, so that one thread adds to the arrays themselves, chunk by chunk."""
    return _prepared_pages(job, context) if job.pages else _prepared(job, context)


def added_text(job: Job, context: Context) -> str:
    """Rows that add what chunks have in their memory to the arrays, up to the block `added`."""
    return _added_pages(job, context) if job.pages else _added(job, context)


def copies_text(job: Job, context: Context) -> str:
    """What these rows need: the function that adds up a part of the arrays, what is said, declarations."""
    fold = _fold_pages(job, context) if job.pages else _fold(job, context)
    return fold + (_OF_PAGES if job.pages else _OF_COPIES) + _said(job)


def _said(job: Job) -> str:
    """What is said where one thread runs a job."""
    said = told_text(job.place, NO_PAGES if job.pages else NO_COPIES)
    word = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in said)
    return (f'\n@{job.name}.said = private unnamed_addr constant [{len(said)} x i8] c"{word}", align 1\n'
            f"declare void @irgrad.copies.told(ptr, i64)\n")  # fmt: skip


def _tell(job: Job) -> str:
    length = len(told_text(job.place, NO_PAGES if job.pages else NO_COPIES))
    return f"  call void @irgrad.copies.told(ptr @{job.name}.said, i64 {length})\n"


def _prepared(job: Job, context: Context) -> str:
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


def _prepared_pages(job: Job, context: Context) -> str:
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


def _added(job: Job, context: Context) -> str:
    """What the chunks have added in copies of arrays is added to the arrays; the copies are zeros again."""
    return f"""  br i1 %alone, label %added, label %own
own:
  %small = icmp ult i64 %total{len(job.rooms) - 1}, {_LARGE}
  %hands = select i1 %small, i64 1, i64 %threads
  %pieces = select i1 %small, i64 1, i64 {CHUNKS}
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


def _added_pages(job: Job, context: Context) -> str:
    """What the chunks have added in their own memory is added to the arrays."""
    return f"""
  br i1 %alone, label %added, label %own
own:
  %touched = call ptr @irgrad_team_touched(ptr %memory, i64 %all)
{context.at("ap", context.arenas)}  store ptr %touched, ptr %ap
{context.at("cp", context.arenas, "1")}  %copies = inttoptr i64 %count to ptr
  store ptr %copies, ptr %cp
  %unused = call ptr @{RUN}(ptr @{job.name}.fold, ptr %context, i64 {CHUNKS}, i64 %threads)
  call void @irgrad_team_pages_free(ptr %memory, i64 %all, ptr %touched)
  br label %added
added:
"""


def _fold_pages(job: Job, context: Context) -> str:
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
  %low{n} = udiv i64 %l{n}, {CHUNKS}
  %h{n} = mul i64 %pages{n}, %p1
  %high{n} = udiv i64 %h{n}, {CHUNKS}
  %own{n} = getelementptr i8, ptr %memory, i64 %offset{n}
  call void @irgrad_team_add(ptr %base{n}, ptr %own{n}, i64 %bytes, i64 %count, i64 {kind}, {pages})
""")
    rows.append("  ret ptr null\n}\n")
    return "".join(rows)


def _fold(job: Job, context: Context) -> str:
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
