"""The small runtime that derivative code calls, all in LLVM IR: an arena for the tape, and adjoints of copied memory.

The arena hands out memory by moving a pointer through chunks and frees nothing before `finish`. It then keeps its
memory for the next call: pages fresh from the system are the slowest memory there is. Arenas live in a pool of the
compiled unit and are taken and given back by atomic exchange, so calls may run on any number of threads.

The functions `irgrad.tape.*` stay declarations until machine code is made (`link_runtime`), so that a derivative which
is differentiated again sees an allocation, not the inside of an allocator.
"""

from __future__ import annotations

import re
from functools import cache

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.assembly import link_assembly
from irgrad.engine.ir.types import Type
from irgrad.engine.transforms.idle import link_idle

P, N, V = ty.PTR, ty.I64, ty.VOID
TAPE_TYPES: dict[str, tuple[Type, tuple[Type, ...]]] = {
    "irgrad.tape.acquire": (P, ()),
    "irgrad.tape.alloc": (P, (P, N)),
    "irgrad.tape.carve": (P, (P, N)),
    "irgrad.tape.free_later": (V, (P, P)),
    "irgrad.tape.finish_later": (V, (P, P)),
    "irgrad.tape.release_later": (V, (P, P, P)),
    "irgrad.tape.finish": (V, (P,)),
}
TAPE_ATTRIBUTES = "nounwind willreturn"
ALLOC_ATTRIBUTES = "nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)"


def _taken(name: str, otherwise: str) -> str:
    """A function that takes n bytes, rounded up to 16, from the top of `{ top, end }`; what it does without room."""
    return f"""
define internal noalias ptr @irgrad.tape.{name}(ptr %t, i64 %n)
    noinline nounwind memory(argmem: readwrite, inaccessiblemem: readwrite) {{
entry:
  %up = add i64 %n, 15
  %size = and i64 %up, -16
  %top = load ptr, ptr %t, align 8
  %endp = getelementptr i8, ptr %t, i64 8
  %end = load ptr, ptr %endp, align 8
  %topi = ptrtoint ptr %top to i64
  %endi = ptrtoint ptr %end to i64
  %room = sub i64 %endi, %topi
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %fast, label %slow
fast:
  %new = getelementptr i8, ptr %top, i64 %size
  store ptr %new, ptr %t, align 8
  ret ptr %top
slow:
{otherwise}
}}
"""


_TAPE = (
    """
; arena: { top, end, chunk, first, pending, total, hint, - } ; chunk: { next, size, -... } then data at +64
@irgrad.tape.pool = internal global [64 x ptr] zeroinitializer, align 64
@irgrad_tape_peak = internal global i64 0, align 8
declare noalias ptr @malloc(i64)
declare noalias ptr @calloc(i64, i64)
declare void @free(ptr)
declare void @abort() noreturn

define internal noalias ptr @irgrad.tape.acquire() noinline nounwind {
entry:
  br label %scan
scan:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %cell = getelementptr [64 x ptr], ptr @irgrad.tape.pool, i64 0, i64 %i
  %seen = load atomic ptr, ptr %cell monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %again, label %take
take:
  %got = atomicrmw xchg ptr %cell, ptr null acq_rel, align 8
  %lost = icmp eq ptr %got, null
  br i1 %lost, label %again, label %found
found:
  ret ptr %got
again:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %scan, label %fresh
fresh:
  %new = call ptr @calloc(i64 1, i64 64)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %die, label %made
die:
  call void @abort()
  unreachable
made:
  ret ptr %new
}

"""
    + _taken("alloc", "  %p = call ptr @irgrad.tape.grow(ptr %t, i64 %size)\n  ret ptr %p")
    + """
define internal ptr @irgrad.tape.grow(ptr %t, i64 %size) noinline cold nounwind {
entry:
  %totalp = getelementptr i8, ptr %t, i64 40
  %total = load i64, ptr %totalp, align 8
  %hintp = getelementptr i8, ptr %t, i64 48
  %hint = load i64, ptr %hintp, align 8
  %a = call i64 @llvm.umax.i64(i64 %size, i64 %total)
  %b = call i64 @llvm.umax.i64(i64 %a, i64 %hint)
  %room = call i64 @llvm.umax.i64(i64 %b, i64 65536)
  %bytes = add i64 %room, 64
  %chunk = call ptr @malloc(i64 %bytes)
  %failed = icmp eq ptr %chunk, null
  br i1 %failed, label %die, label %made
die:
  call void @abort()
  unreachable
made:
  %chunkp = getelementptr i8, ptr %t, i64 16
  %before = load ptr, ptr %chunkp, align 8
  store ptr %before, ptr %chunk, align 8
  %sizep = getelementptr i8, ptr %chunk, i64 8
  store i64 %room, ptr %sizep, align 8
  store ptr %chunk, ptr %chunkp, align 8
  %grown = add i64 %total, %room
  store i64 %grown, ptr %totalp, align 8
  store i64 0, ptr %hintp, align 8
  %data = getelementptr i8, ptr %chunk, i64 64
  %end = getelementptr i8, ptr %data, i64 %room
  %endp = getelementptr i8, ptr %t, i64 8
  store ptr %end, ptr %endp, align 8
  %top = getelementptr i8, ptr %data, i64 %size
  store ptr %top, ptr %t, align 8
  ret ptr %data
}

; the same out of the caller's buffer { top, end }, which is as large as was computed before: it cannot run out
"""
    + _taken("carve", "  call void @abort()\n  unreachable")
    + """
define internal void @irgrad.tape.free_later(ptr %t, ptr %p) nounwind {
  call void @irgrad.tape.later(ptr %t, ptr %p, i64 0)
  ret void
}

define internal void @irgrad.tape.finish_later(ptr %t, ptr %p) nounwind {
  call void @irgrad.tape.later(ptr %t, ptr %p, i64 1)
  ret void
}

; %release gives back what %p describes (memory of an allocator of the user)
define internal void @irgrad.tape.release_later(ptr %t, ptr %p, ptr %release) nounwind {
  %kind = ptrtoint ptr %release to i64
  call void @irgrad.tape.later(ptr %t, ptr %p, i64 %kind)
  ret void
}

define internal void @irgrad.tape.later(ptr %t, ptr %p, i64 %kind) noinline nounwind {
  %node = call ptr @irgrad.tape.alloc(ptr %t, i64 32)
  %pendingp = getelementptr i8, ptr %t, i64 32
  %pending = load ptr, ptr %pendingp, align 8
  store ptr %pending, ptr %node, align 8
  %what = getelementptr i8, ptr %node, i64 8
  store ptr %p, ptr %what, align 8
  %kindp = getelementptr i8, ptr %node, i64 16
  store i64 %kind, ptr %kindp, align 8
  store ptr %node, ptr %pendingp, align 8
  ret void
}

define internal void @irgrad.tape.finish(ptr %t) noinline nounwind {
entry:
  %pendingp = getelementptr i8, ptr %t, i64 32
  %first = load ptr, ptr %pendingp, align 8
  br label %free
free:
  %node = phi ptr [ %first, %entry ], [ %next, %freed ]
  %done = icmp eq ptr %node, null
  br i1 %done, label %count, label %one
one:
  %next = load ptr, ptr %node, align 8
  %what = getelementptr i8, ptr %node, i64 8
  %p = load ptr, ptr %what, align 8
  %kindp = getelementptr i8, ptr %node, i64 16
  %kind = load i64, ptr %kindp, align 8
  switch i64 %kind, label %release [ i64 0, label %memory
                                     i64 1, label %arena ]
release:
  %how = inttoptr i64 %kind to ptr
  call void %how(ptr %p)
  br label %freed
memory:
  call void @free(ptr %p)
  br label %freed
arena:
  call void @irgrad.tape.finish(ptr %p)
  br label %freed
freed:
  br label %free
count:
  store ptr null, ptr %pendingp, align 8
  %totalp = getelementptr i8, ptr %t, i64 40
  %total = load i64, ptr %totalp, align 8
  %endp = getelementptr i8, ptr %t, i64 8
  %end = load ptr, ptr %endp, align 8
  %top = load ptr, ptr %t, align 8
  %endi = ptrtoint ptr %end to i64
  %topi = ptrtoint ptr %top to i64
  %left = sub i64 %endi, %topi
  %used = sub i64 %total, %left
  %peak = atomicrmw umax ptr @irgrad_tape_peak, i64 %used monotonic, align 8
  %chunkp = getelementptr i8, ptr %t, i64 16
  %chunk = load ptr, ptr %chunkp, align 8
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %give, label %some
some:
  %second = load ptr, ptr %chunk, align 8
  %single = icmp eq ptr %second, null
  br i1 %single, label %rewind, label %merge
rewind:
  %data = getelementptr i8, ptr %chunk, i64 64
  store ptr %data, ptr %t, align 8
  br label %give
merge:
  call void @irgrad.tape.drop(ptr %t)
  %hintp = getelementptr i8, ptr %t, i64 48
  store i64 %total, ptr %hintp, align 8
  br label %give
give:
  br label %scan
scan:
  %i = phi i64 [ 0, %give ], [ %inext, %taken ]
  %cell = getelementptr [64 x ptr], ptr @irgrad.tape.pool, i64 0, i64 %i
  %seen = load atomic ptr, ptr %cell monotonic, align 8
  %vacant = icmp eq ptr %seen, null
  br i1 %vacant, label %try, label %taken
try:
  %swap = cmpxchg ptr %cell, ptr null, ptr %t acq_rel monotonic, align 8
  %ok = extractvalue { ptr, i1 } %swap, 1
  br i1 %ok, label %out, label %taken
taken:
  %inext = add i64 %i, 1
  %more = icmp ult i64 %inext, 64
  br i1 %more, label %scan, label %full
full:
  call void @irgrad.tape.drop(ptr %t)
  call void @free(ptr %t)
  br label %out
out:
  ret void
}

define internal void @irgrad.tape.drop(ptr %t) noinline nounwind {
entry:
  %chunkp = getelementptr i8, ptr %t, i64 16
  %first = load ptr, ptr %chunkp, align 8
  br label %loop
loop:
  %chunk = phi ptr [ %first, %entry ], [ %next, %one ]
  %done = icmp eq ptr %chunk, null
  br i1 %done, label %out, label %one
one:
  %next = load ptr, ptr %chunk, align 8
  call void @free(ptr %chunk)
  br label %loop
out:
  call void @llvm.memset.p0.i64(ptr %t, i8 0, i64 64, i1 false)
  ret void
}

; gives all memory of idle arenas back; called when the unit is closed
define void @irgrad_tape_drain() noinline nounwind {
entry:
  br label %scan
scan:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %cell = getelementptr [64 x ptr], ptr @irgrad.tape.pool, i64 0, i64 %i
  %got = atomicrmw xchg ptr %cell, ptr null acq_rel, align 8
  %empty = icmp eq ptr %got, null
  br i1 %empty, label %again, label %drop
drop:
  call void @irgrad.tape.drop(ptr %got)
  call void @free(ptr %got)
  br label %again
again:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %scan, label %out
out:
  ret void
}

; the largest tape of one call since the last time this was asked
define i64 @irgrad_tape_bytes() noinline nounwind {
  %old = atomicrmw xchg ptr @irgrad_tape_peak, i64 0 monotonic, align 8
  ret i64 %old
}
"""
)

_LOOP = """
define internal void @{name}({parameters}) nounwind {{
entry:
  %reach = add i64 %offset, {width}
  %enough = icmp uge i64 %bytes, %reach
  br i1 %enough, label %some, label %out
some:
  %rest = sub i64 %bytes, %reach
  %last = udiv i64 %rest, %period
  {setup}
  br label %loop
loop:
  %k = phi i64 [ 0, %some ], [ %knext, %loop ]
  {index}
  %scaled = mul i64 %i, %period
  %at = add i64 %scaled, %offset
  {body}
  %knext = add i64 %k, 1
  %more = icmp ule i64 %knext, %last
  br i1 %more, label %loop, label %out
out:
  ret void
}}
"""
_TWO = "ptr %target, ptr %source, i64 %bytes, i64 %period, i64 %offset"
_ONE = "ptr %target, i64 %bytes, i64 %period, i64 %offset"
_PLAIN = "%i = add i64 %k, 0"
_TURNED = "%back = sub i64 %last, %k\n  %i = select i1 %up, i64 %k, i64 %back"
_EITHER = """
define internal void @irgrad.adjoint.either(ptr %target, ptr %source, ptr %saved, i64 %bytes) nounwind {
entry:
  %n = lshr i64 %bytes, 3
  %waiting = getelementptr i64, ptr %saved, i64 %n
  %none = icmp eq i64 %n, 0
  br i1 %none, label %out, label %take
take:
  %i = phi i64 [ 0, %entry ], [ %inext, %take ]
  %targetp = getelementptr i64, ptr %target, i64 %i
  %waitp = getelementptr i64, ptr %waiting, i64 %i
  %t = load i64, ptr %targetp, align 1
  store i64 0, ptr %targetp, align 1
  store i64 %t, ptr %waitp, align 8
  %inext = add i64 %i, 1
  %imore = icmp ult i64 %inext, %n
  br i1 %imore, label %take, label %give
give:
  %k = phi i64 [ 0, %take ], [ %knext, %give ]
  %sourcep = getelementptr i64, ptr %source, i64 %k
  %savedp = getelementptr i64, ptr %saved, i64 %k
  %gotp = getelementptr i64, ptr %waiting, i64 %k
  %pointer = load i64, ptr %savedp, align 8
  %amount = load i64, ptr %gotp, align 8
  %before = load i64, ptr %sourcep, align 1
  %x = bitcast i64 %before to double
  %y = bitcast i64 %amount to double
  %sum = fadd double %x, %y
  %total = bitcast double %sum to i64
  %is_pointer = icmp ne i64 %pointer, 0
  %nothing = icmp eq i64 %amount, 0
  %added = select i1 %nothing, i64 %before, i64 %total
  %after = select i1 %is_pointer, i64 %pointer, i64 %added
  store i64 %after, ptr %sourcep, align 1
  %knext = add i64 %k, 1
  %kmore = icmp ult i64 %knext, %n
  br i1 %kmore, label %give, label %out
out:
  ret void
}
"""
_CELL = "%{0}p = getelementptr i8, ptr %{0}, i64 %at"


def _helper(name: str) -> str:
    """Text of a copy helper. Copies may overlap (memmove): the adjoint copies in the opposite order of the primal."""
    two = _CELL.format("target") + "\n  " + _CELL.format("source")
    stem, _, ending = name.rpartition(".x")
    whole, lanes = name, 1
    if stem and ending.isdecimal():  # W lanes side by side
        name, lanes = stem, int(ending)
    if name.startswith("irgrad.adjoint.copy."):
        element = name.removeprefix("irgrad.adjoint.copy.")
        kind, nought = _lanes(element, lanes)
        body = (
            f"{two}\n  %d = load {kind}, ptr %targetp, align 1\n  store {kind} {nought}, ptr %targetp, align 1\n"
            f"  %s = load {kind}, ptr %sourcep, align 1\n  %sum = fadd {kind} %s, %d\n"
            f"  store {kind} %sum, ptr %sourcep, align 1"
        )
        setup = "%up = icmp uge ptr %target, %source"
        return _LOOP.format(
            name=whole, parameters=_TWO, width=_width(element) * lanes, setup=setup, index=_TURNED, body=body
        )
    if name.startswith("irgrad.adjoint.clear."):
        element = name.removeprefix("irgrad.adjoint.clear.")
        kind, nought = _lanes(element, lanes)
        body = f"{_CELL.format('target')}\n  store {kind} {nought}, ptr %targetp, align 1"
        size = _width(element) * lanes
        return _LOOP.format(name=whole, parameters=_ONE, width=size, setup="", index=_PLAIN, body=body)
    if name == "irgrad.adjoint.either":
        return _EITHER
    if name == "irgrad.copy.pointers":
        body = f"{two}\n  %s = load ptr, ptr %sourcep, align 1\n  store ptr %s, ptr %targetp, align 1"
        setup = "%up = icmp ule ptr %target, %source"
        return _LOOP.format(name=whole, parameters=_TWO, width=8 * lanes, setup=setup, index=_TURNED, body=body)
    assert name == "irgrad.clear.pointers", name
    body = f"{_CELL.format('target')}\n  store ptr null, ptr %targetp, align 1"
    return _LOOP.format(name=whole, parameters=_ONE, width=8 * lanes, setup="", index=_PLAIN, body=body)


def _lanes(element: str, lanes: int) -> tuple[str, str]:
    """Type and zero of the lanes of one element."""
    return (element, _zero(element)) if lanes == 1 else (f"<{lanes} x {element}>", "zeroinitializer")


def _width(kind: str) -> int:
    return ty.store_size(ty.float_(kind))


def _zero(kind: str) -> str:
    return {"half": "0xH0000", "bfloat": "0xR0000", "x86_fp80": "0xK00000000000000000000"}.get(kind, "0.0")


@cache
def helper_text(name: str) -> str:
    """Definition of a copy helper by name (`irgrad.adjoint.copy.double`, ...)."""
    return _helper(name)


_DECLARATION = re.compile(
    r"^declare [^\n]*@(?:irgrad\.tape\.\w+|malloc|calloc|free|abort|llvm\.umax\.i64|llvm\.memset\.p0\.i64)\([^\n]*\n",
    re.M,
)


_ENTRIES = re.compile(r"^define (\w+ @irgrad_tape_(?:drain|bytes)\()", re.M)


def uses_tape(text: str) -> bool:
    """Whether the module calls the arena."""
    return any(f"@irgrad.tape.{name}" in text for name in ("acquire", "carve", "finish("))


def link_runtime(text: str, *, whole: bool = False) -> str:
    """The module with the arena's definitions in place of their declarations; unchanged when it uses no arena.

    whole: nobody calls in to empty the arena, so that several such modules may be linked into one program.
    """
    text = link_assembly(link_idle(text))
    if not uses_tape(text) or "define internal noalias ptr @irgrad.tape.alloc" in text:
        return text
    runtime = _TAPE + "declare i64 @llvm.umax.i64(i64, i64)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    kept = _DECLARATION.sub(lambda m: "" if "@irgrad.tape." in m.group(0) else m.group(0), text + "\n")
    present = set(re.findall(r"^(?:declare|define) [^\n]*?@([\w.]+)\(", kept, re.M))
    lines = []
    for line in runtime.splitlines():
        found = re.match(r"declare [^\n]*?@([\w.]+)\(", line)
        if found is None or found.group(1) not in present:
            lines.append(line)
    linked = kept + "\n" + "\n".join(lines) + "\n"
    return _ENTRIES.sub(r"define internal \1", linked) if whole else linked
