"""The IR of the kernels that run one program with many threads, part by part (see `parts.py`).

    NAME_first, NAME_next   one thread: the program from where it stopped to the next loop that a grid runs
    NAME_share              all threads: each its iterations of that loop; thread t has t, t + T, t + 2 T, ...
    NAME_fold               some threads: rows of sums that the threads left, added up in a fixed order
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.grids.grid_text import GridParameter
from irgrad.engine.grids.regions import Column, Region
from irgrad.engine.grids.resume import Stop
from irgrad.engine.ir import types as ty
from irgrad.engine.runtime.ir_writer import Writer
from irgrad.engine.signature.prototype import quoted

__all__ = ["ADDRESSES", "Rows", "kernels_text", "sums_text"]

ADDRESSES = 16
"""Where the state has the addresses of the arrays, behind the word that says where the program goes on."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Where threads leave sums. at: offset in the room; bytes: of a row; threads: how many rows; folded: how many are
    left when they have been folded (threads: they are not)."""

    at: int
    bytes: int
    threads: int
    folded: int


def sums_text(name: str, kind: str) -> str:
    """`KIND NAME.total.KIND(ptr rows, i64 stride, i64 count)`, a sum over rows, and `NAME.gather.KIND(ptr to, ptr rows,
    i64 stride, i64 columns, i64 count)`, which adds such sums to an array."""
    size = 8 if kind == "double" else 4
    w = Writer(f"define internal {kind} @{quoted(name)}.total.{kind}(ptr %rows, i64 %stride, i64 %count) nounwind")
    total = w.alloca(kind)
    w.do(f"store {kind} -0.0, ptr {total}")
    with w.loop("%count") as row:
        value = w.load(kind, w.at("%rows", w.mul(row, "%stride")), align=size)
        w.do(f"store {kind} {w.emit(f'fadd {kind} {w.load(kind, total)}, {value}')}, ptr {total}")
    text = w.text(f"{kind} {w.load(kind, total)}")
    w = Writer(f"define internal void @{quoted(name)}.gather.{kind}"
               "(ptr %to, ptr %rows, i64 %stride, i64 %columns, i64 %count) nounwind")  # fmt: skip
    with w.loop("%columns") as column:
        first = w.at("%rows", column, kind)
        value = w.emit(f"call {kind} @{quoted(name)}.total.{kind}(ptr {first}, i64 %stride, i64 %count)")
        more = w.emit(f"fadd {kind} {w.load(kind, '%to', column, align=size)}, {value}")
        w.do(f"store {kind} {more}, ptr {w.at('%to', column, kind)}, align {size}")
    return text + w.text()


def kernels_text(
    name: str, parameters: Sequence[GridParameter], buffers: Sequence[str], noted: Sequence[str],
    stops: Sequence[tuple[Stop, Region]], rows: Rows, *, device: bool,
) -> str:  # fmt: skip
    """The kernels of a program whose function is `NAME.resume(parameters, ptr state, ptr room)`.

    parameters: of the program; buffers: those of them that are results, which come as an operand as well; noted: those
    whose addresses stay from launch to launch
    device: False for functions of the host that run one thread, and take its number and how many there are as two more
    arguments
    """
    own = [p.name for p in parameters]
    text = _check_text(name, own, noted) + _share_text(name, stops, rows) + _fold_text(name, stops, rows)
    again = [f"{word}.given" for word in buffers]
    operands = [word for word in own if word not in buffers]
    first = [*operands, *again, "state.given", *buffers, "state", "room"]
    later = [*operands, *again, "state.given", "room.given", *buffers, "state", "room"]
    whole = ", ".join(f"ptr %{quoted(word)}" for word in own)
    check = f"call void @{quoted(name)}.check({whole}, ptr %state, ptr %room, i1"
    go_on = f"call void @{quoted(name)}.resume({whole}, ptr %state, ptr %room)"
    text += _kernel(name, "first", first, [f"{check} true)", go_on], device=device)
    text += _kernel(name, "next", later, [f"{check} false)", go_on], device=device)
    share = f"call void @{quoted(name)}.part.share(ptr %state, ptr %room, i64 THREAD, i64 THREADS)"
    text += _kernel(name, "share", later, [f"{check} false)", share], device=device)
    fold = f"call void @{quoted(name)}.part.fold(ptr %state, ptr %room, i64 THREAD)"
    return text + _kernel(name, "fold", later, [f"{check} false)", fold], device=device)


def _kernel(name: str, word: str, given: Sequence[str], lines: Sequence[str], *, device: bool) -> str:
    declared = ", ".join(f"ptr %{quoted(word)}" for word in given)
    if not device:
        w = Writer(f"define void @{quoted(name)}_{word}({declared}, i64 %thread, i64 %threads)")
        for line in lines:
            w.do(line.replace("THREADS", "%threads").replace("THREAD", "%thread"))
        return w.text()
    w = Writer(f"define ptx_kernel void @{quoted(name)}_{word}({declared})")
    words = [f"llvm.nvvm.read.ptx.sreg.{part}.x" for part in ("ctaid", "ntid", "nctaid", "tid")]
    block, size, blocks, own = (w.emit(f"zext i32 {w.emit(f'call i32 @{word}()')} to i64") for word in words)
    number, threads = w.add(w.mul(block, size), own), w.mul(blocks, size)
    for line in lines:
        w.do(line.replace("THREADS", threads).replace("THREAD", number))
    declarations = "".join(f"declare i32 @{word}()\n" for word in words) if word == "first" else ""
    return w.text() + declarations


def _check_text(name: str, own: Sequence[str], kept: Sequence[str]) -> str:
    """Addresses are kept from launch to launch: the first one notes where the arrays are, the others compare."""
    declared = ", ".join(f"ptr %{quoted(word)}" for word in own)
    given = f"{declared}, ptr %state, ptr %room, i1 %first" if own else "ptr %state, ptr %room, i1 %first"
    w = Writer(f"define internal void @{quoted(name)}.check({given}) alwaysinline nounwind")
    words = [*kept, "state", "room"]
    same = w.emit("xor i1 %first, true")
    noted = w.at("%state", str(ADDRESSES))
    with w.when("%first"):
        for n, word in enumerate(words):
            w.do(f"store ptr %{quoted(word)}, ptr {w.at(noted, str(n), 'ptr')}, align 8")
    with w.when(same):
        for n, word in enumerate(words):
            with w.when(w.emit(f"icmp ne ptr {w.load('ptr', noted, n)}, %{quoted(word)}")):
                w.do("call void @llvm.trap()")
    return w.text() + "declare void @llvm.trap()\n"


def _share_text(name: str, stops: Sequence[tuple[Stop, Region]], rows: Rows) -> str:
    w = Writer(f"define internal void @{quoted(name)}.part.share"
               "(ptr %state, ptr %room, i64 %thread, i64 %threads) alwaysinline nounwind")  # fmt: skip
    where = w.load("i64", "%state")
    row = w.at("%room", w.add(w.mul("%thread", str(rows.bytes)), str(rows.at)))
    for stop, region in stops:
        with w.when(w.compare("eq", where, str(stop.number))):
            _share_region(w, stop, region, row)
    return w.text()


def _share_region(w: Writer, stop: Stop, region: Region, row: str) -> None:
    given = [w.load(str(kind), w.at("%state", str(offset))) for offset, kind in stop.given[: len(region.given)]]
    last, places = given[0], _places(region.columns)
    for column, at in zip(region.columns, places, strict=True):
        kind, size = str(column.dtype), ty.size_of(column.dtype)
        place = w.at(row, str(at))
        with w.loop(str(column.count)) as n:
            w.do(f"store {kind} -0.0, ptr {w.at(place, n, kind)}, align {size}")
        if column.argument:
            given[column.argument] = place
    count = w.add(last, "1")
    more = w.emit(f"udiv i64 {w.emit(f'sub i64 {last}, %thread')}, %threads")
    some = w.compare("ule", "%thread", last)
    turns = w.emit(f"select i1 {some}, i64 {w.add(more, '1')}, i64 0")
    sums = [(column, w.at(row, str(at))) for column, at in zip(region.columns, places, strict=True)
            if not column.argument]  # fmt: skip
    cells = [w.alloca(str(column.dtype)) for column, _ in sums]
    for (column, _), cell in zip(sums, cells, strict=True):
        w.do(f"store {column.dtype} -0.0, ptr {cell}")
    with w.loop(turns) as turn:
        number = w.add("%thread", w.mul(turn, "%threads"))
        inner = zip(region.given[1:], given[1:], strict=True)
        words = [f"i64 {number}", *(f"{kind} {value}" for kind, value in inner)]
        if not region.tape:
            words.append("ptr null")
        call = f"@{quoted(region.name)}.one({', '.join(words)}, i64 {number}, i64 {count})"
        _sum_up(w, call, [column.dtype for column, _ in sums], cells)
    for (column, place), cell in zip(sums, cells, strict=True):
        kind, size = str(column.dtype), ty.size_of(column.dtype)
        w.do(f"store {kind} {w.load(kind, cell)}, ptr {place}, align {size}")


def _sum_up(w: Writer, call: str, kinds: Sequence[ty.Type], cells: Sequence[str]) -> None:
    if not kinds:
        w.do(f"call void {call}")
        return
    whole = str(kinds[0]) if len(kinds) == 1 else str(ty.struct(tuple(kinds)))
    result = w.emit(f"call {whole} {call}")
    for n, (kind, cell) in enumerate(zip(kinds, cells, strict=True)):
        part = result if len(kinds) == 1 else w.emit(f"extractvalue {whole} {result}, {n}")
        w.do(f"store {kind} {w.emit(f'fadd {kind} {w.load(str(kind), cell)}, {part}')}, ptr {cell}")


def _places(columns: Sequence[Column]) -> list[int]:
    places, at = [], 0
    for column in columns:
        places.append(at)
        at += -(-ty.size_of(column.dtype) * column.count // 8) * 8
    return places


def _fold_text(name: str, stops: Sequence[tuple[Stop, Region]], rows: Rows) -> str:
    """Thread f of F adds the rows f + F, f + 2 F, ... to row f."""
    w = Writer(f"define internal void @{quoted(name)}.part.fold"
               "(ptr %state, ptr %room, i64 %thread) alwaysinline nounwind")  # fmt: skip
    where = w.load("i64", "%state")
    first = w.at("%room", w.add(w.mul("%thread", str(rows.bytes)), str(rows.at)))
    others = w.emit(f"udiv i64 {w.emit(f'sub i64 {rows.threads - 1}, %thread')}, {rows.folded}")
    for stop, region in stops:
        with w.when(w.compare("eq", where, str(stop.number))):
            for column, at in zip(region.columns, _places(region.columns), strict=True):
                kind, size = str(column.dtype), ty.size_of(column.dtype)
                with w.loop(str(column.count)) as n:
                    place = w.at(w.at(first, str(at)), n, kind)
                    with w.loop(others) as number:
                        step = w.mul(w.add(number, "1"), str(rows.folded * rows.bytes))
                        value = w.load(kind, w.at(place, step), align=size)
                        total = w.emit(f"fadd {kind} {w.load(kind, place, align=size)}, {value}")
                        w.do(f"store {kind} {total}, ptr {place}, align {size}")
    return w.text()
