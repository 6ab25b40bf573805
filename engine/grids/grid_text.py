"""The IR of a kernel that runs a program for each sample of a batch, one sample a thread at a time.

Thread t of T runs the samples t, t + T, t + 2 T, ...: what it needs beside the samples' own arrays (its tape, scratch
memory) does not grow with their number. Three functions, the later ones around the earlier:

    NAME.sample(parameters, i64 sample, i64 row, ptr arena)     one sample: the program's pointers, and its call; row:
                                                                the number of the thread
    NAME.thread(i64 thread, i64 threads, parameters, i64 samples, ptr tape, i64 tape_bytes)
    NAME                                                 the kernel; on the host one thread, whose number it gets
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from irgrad.engine.runtime.ir_writer import Writer
from irgrad.engine.signature.dtypes import DType
from irgrad.engine.signature.extents import BinaryExtent, ConstExtent, Extent, NameExtent
from irgrad.engine.signature.prototype import quoted
from irgrad.rules.errors import Unsupported

__all__ = ["GridParameter", "GridSlot", "kernel_text", "sample_text"]

_OPERATIONS = {"+": "add", "-": "sub", "*": "mul"}
_LOCAL = 256  # bytes of an array of a sample that is the thread's own: registers, or memory that is cached near by


@dataclass(frozen=True, slots=True)
class GridParameter:
    """A parameter of the kernel: an array, or a number that the launch passes.

    alone: whether no other parameter's array may be the same memory
    """

    name: str
    dtype: DType
    by_value: bool = False
    alone: bool = True

    @property
    def ir(self) -> str:
        """Its type."""
        return self.dtype.memory if self.by_value else "ptr"

    @property
    def text(self) -> str:
        """The parameter as IR."""
        return f"{self.ir}{'' if self.by_value or not self.alone else ' noalias'} %{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class GridSlot:
    """How a pointer of the program is had for a sample.

    shape:  its extents in one sample, () for one number
    source: the parameter that its values come from, "" for none; along which axes of the batch it has a row for each
            sample (an array that all share has none)
    target: the parameter with a row for each sample that its values go to, "" for none
    start:  "keep" (what is in the target), "copy" (the source), "zero", "bits" (a number), or "in place": the program
            only reads the source
    per_thread: whether the target has a row for each thread instead, to which it adds what its samples give
    """

    name: str
    dtype: DType
    start: str
    shape: tuple[Extent, ...] = ()
    source: str = ""
    axes: tuple[bool, ...] = ()
    target: str = ""
    bits: int = 0
    per_thread: bool = False


def sample_text(
    program: str, name: str, parameters: Sequence[GridParameter], slots: Sequence[GridSlot], batch: Sequence[str],
    status: int | None = None,
) -> str:  # fmt: skip
    """`NAME.sample`, which calls the program for one sample.

    batch:  sizes of the axes of the batch, the last ones change fastest; that of the first may be "", not known
    status: the slot that says by a number other than 0 that a sample has failed: its results become NaN

    Raises Unsupported for an array whose size no parameter says.
    """
    given = ", ".join(p.text for p in parameters)
    w = Writer(f"define void @{quoted(name)}.sample({given}, i64 %sample, i64 %row, ptr %arena)")
    sizes = _Sizes(w, parameters)
    digits = _digits(w, batch)
    held = {p.name: p for p in parameters}
    pointers, staged = [], []
    for slot in slots:
        count, width = sizes.count(slot), slot.dtype.size
        source = ""
        if slot.source and held[slot.source].by_value:
            source = w.alloca(slot.dtype.memory, align=16)
            w.do(f"store {slot.dtype.memory} %{quoted(slot.source)}, ptr {source}, align {width}")
        elif slot.source:
            row, source = _row(w, digits, slot.axes), f"%{quoted(slot.source)}"
            source = w.at(source, w.mul(row, w.mul(count, str(width)))) if row else source
        target = ""
        if slot.target:
            number = "%row" if slot.per_thread else "%sample"
            target = w.at(f"%{quoted(slot.target)}", w.mul(number, w.mul(count, str(width))))
        if slot.start == "in place":
            pointers.append(source)
            continue
        local = count.isdigit() and int(count) * width <= _LOCAL
        if slot.start == "bits":
            memory = w.alloca("i64", align=16)
            w.do(f"store i64 {slot.bits}, ptr {memory}, align 8")
        elif local:
            memory = w.alloca(slot.dtype.memory, max(1, int(count)), align=16)
        elif target:
            memory = target
        else:
            memory = w.emit(f"call ptr @irgrad.tape.alloc(ptr %arena, i64 {w.mul(count, str(width))})")
        if slot.start == "zero":
            _fill(w, slot.dtype, memory, count, "zeroinitializer")
        elif slot.start == "copy":
            _copy(w, slot.dtype, memory, source, count)
        elif slot.start == "keep" and memory != target:
            _copy(w, slot.dtype, memory, target, count)
        pointers.append(memory)
        if target:
            staged.append((slot, memory, target, count))
    w.do(f"call void @{quoted(program)}({', '.join(f'ptr {p}' for p in pointers)})")
    for slot, memory, target, count in staged:
        if memory != target:
            _copy(w, slot.dtype, target, memory, count)
    if status is not None:
        kind = slots[status].dtype
        failed = w.emit(f"icmp ne {kind.memory} {w.load(kind.memory, pointers[status], align=kind.size)}, 0")
        with w.when(failed):
            for slot, _, target, count in staged:
                if slot.dtype.is_float:
                    _fill(w, slot.dtype, target, count, _NAN[slot.dtype.name])
    return w.text() + "declare ptr @irgrad.tape.alloc(ptr, i64)\n"


_NAN = {"f64": "0x7FF8000000000000", "f32": "0x7FF8000000000000", "f16": "0xH7E00", "bf16": "0xR7FC0"}


def kernel_text(
    name: str, parameters: Sequence[GridParameter], samples: str, *, device: bool, slab: int | None = 0,
    rows: Sequence[GridSlot] = (), groups: int = 1,
) -> str:  # fmt: skip
    """`NAME.thread` around `NAME.sample`, and `NAME` around that, a kernel of a device; without one a function of the
    host that runs one thread, and takes its number and how many there are as two more arguments.

    samples: their number, "" where the launch says it (`i64 samples` behind the other parameters)
    slab:    bytes of the part of `tape` that is a thread's own, None where the launch says it (`tape_bytes`); 0: the
             sample takes what it needs of `tape` by the thread's number (`static_tape.py`)
    rows:    slots whose target has a row for each thread
    groups:  of samples, equally many in each, that rows are not shared by: threads are shared out among them, and where
             there are more groups than threads, each thread has several groups, one after the other
    """
    rest = [] if samples else [("i64", "%samples")]
    rest += [("ptr", "%tape"), ("i64", "%tape_bytes")] if slab is None else [("ptr", "%tape")]
    declared = ", ".join([*(p.text for p in parameters), *(f"{kind} {word}" for kind, word in rest)])
    numbers = [f"{kind} {word}" for kind, word in rest]
    passed = ", ".join([*(f"{p.ir} %{quoted(p.name)}" for p in parameters), *numbers])
    text = _thread_text(name, parameters, declared, samples or "%samples", slab=slab, rows=rows,
                        groups=groups)
    thread = f"call void @{quoted(name)}.thread"
    if not device:
        w = Writer(f"define void @{quoted(name)}({declared}, i64 %thread, i64 %threads)")
        w.do(f"{thread}(i64 %thread, i64 %threads, {passed})")
        return text + w.text()
    w = Writer(f"define ptx_kernel void @{quoted(name)}({declared})")
    words = [f"llvm.nvvm.read.ptx.sreg.{word}.x" for word in ("ctaid", "ntid", "nctaid", "tid")]
    block, size, blocks, own = (w.emit(f"zext i32 {w.emit(f'call i32 @{word}()')} to i64") for word in words)
    number, threads = w.add(w.mul(block, size), own), w.mul(blocks, size)
    w.do(f"{thread}(i64 {number}, i64 {threads}, {passed})")
    return text + w.text() + "".join(f"declare i32 @{word}()\n" for word in words)


def _thread_text(
    name: str, parameters: Sequence[GridParameter], declared: str, samples: str, *, slab: int | None,
    rows: Sequence[GridSlot], groups: int,
) -> str:  # fmt: skip
    w = Writer(f"define internal void @{quoted(name)}.thread(i64 %thread, i64 %threads, {declared}) alwaysinline")
    given = ", ".join(f"{p.ir} %{quoted(p.name)}" for p in parameters)
    own = slab != 0
    place = _slab(w, "%tape_bytes" if slab is None else str(slab)) if own else "ptr %tape, i64 %thread, i64 %threads"
    sizes = _Sizes(w, parameters)

    def part(first: str, end: str, step: str, row: str) -> None:
        for slot in rows:
            size = sizes.count(slot)
            memory = w.at(f"%{quoted(slot.target)}", w.mul(row, w.mul(size, str(slot.dtype.size))))
            _fill(w, slot.dtype, memory, size, "zeroinitializer")
        with w.loop(_turns(w, first, end, step)) as turn:
            sample = w.add(first, w.mul(turn, step))
            if own:
                w.do(f"store ptr %slab, {place}, align 8")
            w.do(f"call void @{quoted(name)}.sample({given}, i64 {sample}, i64 {row}, {place})")

    if groups == 1:
        part("%thread", samples, "%threads", "%thread")
        return w.text()
    shared = w.emit(f"udiv i64 %threads, {groups}")
    each = w.emit(f"select i1 {w.compare('eq', shared, '0')}, i64 1, i64 {shared}")
    members = str(int(samples) // groups)
    with w.loop(_turns(w, "%thread", w.mul(each, str(groups)), "%threads")) as turn:
        row = w.add("%thread", w.mul(turn, "%threads"))
        begin = w.mul(w.emit(f"udiv i64 {row}, {each}"), members)
        part(w.add(begin, w.emit(f"urem i64 {row}, {each}")), w.add(begin, members), each, row)
    return w.text()


def _turns(w: Writer, first: str, end: str, step: str) -> str:
    """How many of first, first + step, ... are below the end."""
    above = w.emit(f"sub i64 {end}, {first}")
    up = w.emit(f"udiv i64 {w.add(above, w.emit(f'sub i64 {step}, 1'))}, {step}")
    return w.emit(f"select i1 {w.compare('sgt', end, first)}, i64 {up}, i64 0")


def _slab(w: Writer, size: str) -> str:
    """An arena, as `ptr NAME`: its top, which is set for each sample, and the end of the thread's slab, `%slab`."""
    arena = w.alloca("[2 x i64]", align=16)
    own = w.emit(f"and i64 {size}, -16")
    w.do(f"%slab = getelementptr i8, ptr %tape, i64 {w.mul('%thread', own)}")
    w.do(f"store ptr {w.at('%slab', own)}, ptr {w.at(arena, '8')}, align 8")
    return f"ptr {arena}"


def _digits(w: Writer, batch: Sequence[str]) -> list[tuple[str, str]]:
    """Position and size of a sample along each axis of the batch."""
    if len(batch) == 1:
        return [("%sample", batch[0])]
    out, rest = [], "%sample"
    for size in reversed(batch[1:]):
        out.append((w.emit(f"urem i64 {rest}, {size}"), size))
        rest = w.emit(f"udiv i64 {rest}, {size}")
    return [*([(rest, batch[0])] if batch else []), *reversed(out)]


def _row(w: Writer, digits: Sequence[tuple[str, str]], axes: Sequence[bool]) -> str:
    """The number of a sample's row in an array that has some axes of the batch, "" for none."""
    row = ""
    for (digit, size), own in zip(digits, axes, strict=True):
        if own:
            row = digit if not row else w.add(w.mul(row, size), digit)
    return row


def _fill(w: Writer, dtype: DType, memory: str, count: str, value: str) -> None:
    with w.loop(count) as i:
        w.do(f"store {dtype.memory} {value}, ptr {w.at(memory, i, dtype.memory)}, align {dtype.size}")


def _copy(w: Writer, dtype: DType, to: str, source: str, count: str) -> None:
    with w.loop(count) as i:
        value = w.load(dtype.memory, source, i, align=dtype.size)
        w.do(f"store {dtype.memory} {value}, ptr {w.at(to, i, dtype.memory)}, align {dtype.size}")


class _Sizes:
    """Sizes of arrays, from the integers that the launch passes."""

    def __init__(self, w: Writer, parameters: Sequence[GridParameter]) -> None:
        self.w = w
        self.values = {p.name: p.dtype for p in parameters if p.by_value and p.dtype.kind in "iu"}

    def count(self, slot: GridSlot) -> str:
        """Elements of one sample of a slot, as a constant where it is one."""
        found = [self._extent(slot, extent) for extent in slot.shape]
        known = math.prod(int(size) for size in found if size.isdigit())
        text = str(known)
        for size in found:
            if not size.isdigit():
                text = size if text == "1" else self.w.mul(text, size)
        return text

    def _extent(self, slot: GridSlot, extent: Extent) -> str:
        if isinstance(extent, ConstExtent):
            return str(extent.number)
        if isinstance(extent, BinaryExtent):
            left, right = self._extent(slot, extent.left), self._extent(slot, extent.right)
            if extent.op in _OPERATIONS:
                return self.w.emit(f"{_OPERATIONS[extent.op]} i64 {left}, {right}")
            rest = self.w.emit(f"srem i64 {self.w.add(self.w.emit(f'srem i64 {left}, {right}'), right)}, {right}")
            less = self.w.emit(f"sub i64 {left}, {rest}")
            return rest if extent.op == "%" else self.w.emit(f"sdiv i64 {less}, {right}")
        name = extent.name if isinstance(extent, NameExtent) else ""
        kind = self.values.get(name)
        if kind is None:
            raise Unsupported(f"the size of `{slot.name}` is not known to a launch",
                              because=f"`{name}` is no integer that all samples share",
                              fix=f"add a parameter `i64 {name}` to the function")  # fmt: skip
        if kind.size == 8:
            return f"%{name}"
        return self.w.emit(f"{'sext' if kind.kind == 'i' else 'zext'} {kind.memory} %{name} to i64")
