"""The small runtime that derivative code calls, in LLVM IR: the arena of the tape (`arena.py`), and adjoints of copied
memory.

The functions `irgrad.tape.*` stay declarations until machine code is made (`link_arena`), so that a derivative which
is differentiated again sees an allocation, not the inside of an allocator.
"""

from __future__ import annotations

import re
from functools import cache

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.ir.types import Type
from irgrad.engine.runtime.arena import arena_text, large_text
from irgrad.engine.runtime.segments import SEGMENTS
from irgrad.engine.runtime.word_sums import TEXT, WORD_SUM
from irgrad.engine.support.lines import change_lines

P, N, V = ty.PTR, ty.I64, ty.VOID
TAPE_TYPES: dict[str, tuple[Type, tuple[Type, ...]]] = {
    "irgrad.tape.acquire": (P, ()),
    "irgrad.tape.alloc": (P, (P, N)),
    "irgrad.tape.carve": (P, (P, N)),
    "irgrad.tape.free_later": (V, (P, P)),
    "irgrad.tape.finish_later": (V, (P, P)),
    "irgrad.tape.release_later": (V, (P, P, P)),
    "irgrad.tape.finish": (V, (P,)),
    "irgrad.tape.reuse": (V, (P,)),
    "irgrad.tape.at": (V, (P, N, P)),
    "irgrad.tape.need": (V, (P, ty.I1, N)),
    "irgrad.tape.peak": (N, (N,)),
    "irgrad.tape.differs": (V, (ty.I1, P)),
    "irgrad.tape.apart": (V, (ty.I1, P)),
    "irgrad.tape.leaves": (V, (ty.I1, P)),
    "irgrad.tape.lost": (V, (ty.I1, P)),
}
TAPE_ATTRIBUTES = "nounwind willreturn"
ALLOC_ATTRIBUTES = "nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)"


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
_EITHER = TEXT + """
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
  %t = load i64, ptr %targetp, align 8
  store i64 0, ptr %targetp, align 8
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
  %before = load i64, ptr %sourcep, align 8
  %total = call i64 @irgrad.word.sum(i64 %before, i64 %amount)
  %is_pointer = icmp ne i64 %pointer, 0
  %nothing = icmp eq i64 %amount, 0
  %added = select i1 %nothing, i64 %before, i64 %total
  %after = select i1 %is_pointer, i64 %pointer, i64 %added
  store i64 %after, ptr %sourcep, align 8
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
    if name == WORD_SUM:
        return TEXT
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
    return SEGMENTS[name] if name in SEGMENTS else _helper(name)


_DECLARATION = re.compile(r"declare [^\n]*@irgrad\.tape\.\w+\(")


_ARENA = frozenset(
    f"irgrad.tape.{word}"
    for word in "acquire apart carve finish leaves lost throws throws_format throwing ends caught".split()
)
_ENTRIES = re.compile(r"^define (\w+ @irgrad_tape_(?:drain|bytes|trim|stop)\()", re.M)


def uses_tape(text: str) -> bool:
    """Whether the module calls the arena."""
    return not _ARENA.isdisjoint(outline(text).functions)


_LOOK = """made:
  %used = add i64 %total, %size
  call void @irgrad.tape.large(ptr %t, i64 %used)
"""


def link_arena(text: str, *, whole: bool = False) -> str:
    """The module with the arena's definitions in place of their declarations; unchanged when it uses no arena.

    whole: nobody calls in to empty the arena, so that several such modules may be linked into one program.
    """
    if not uses_tape(text) or "irgrad.tape.alloc" in outline(text).defined:
        return text
    arena = arena_text()
    if whole:
        arena = arena.replace("call ptr @irgrad.tape.guard_of()", "inttoptr i64 0 to ptr")
        arena = arena.replace("made:  ; large_tapes.ll looks here\n", _LOOK) + large_text()
    runtime = arena + "declare i64 @llvm.umax.i64(i64, i64)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    kept = change_lines(text, "declare ", lambda line: "" if _DECLARATION.match(line) else line)
    linked = joined(kept, runtime)
    return _ENTRIES.sub(r"define internal \1", linked) if whole else linked
