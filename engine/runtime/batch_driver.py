"""The native driver of a batch, in LLVM IR: it claims chunks of samples and brings blocks of them to a block function.

A *block function* `ptr block(i64 count, ptr pointers, ptr strides)` runs a program for `count` samples: slot i of
sample j is at `pointers[i] + j * strides[i]`, or interleaved with the other lanes of the block where the function was
built so (see `batch_blocks`). The driver is the same for every program and layout; what depends on shapes comes with
each call:

    work(ptr control, ptr meta, ptr bases, i64 worker, i64 limit)

    control  words: next chunk (atomic), address of the workers' scratch memory, address of the block function,
             chunks completed (atomic), the record of a failure (atomic; null: none), which a block function returns
             where it found no memory for a tape: chunks that come later are passed over
    meta     i64 words: those of `HEAD`, the outer dimensions, then one record per slot
    record   the words of `FIELDS`, then strides of the source along the outer axes, then those of the destination
    bases    the addresses to which records refer by number
    limit    chunks after which the call returns even when there is more to do

Chunks are claimed by an atomic counter, so that any number of threads may call `work` with one control block. The
samples and blocks of a chunk follow from `meta` alone: which thread runs it changes no bit of a result. Sums over
samples go to an accumulator per chunk, in the order of the samples; the caller adds the accumulators in a fixed order.

Where there are lanes, a block has a multiple of their number of samples: in the last one of a row the last sample is
repeated, so that every sample of every batch takes the same path through the same vector code.
"""

from __future__ import annotations

from irgrad.engine.runtime.ir_writer import Writer

__all__ = ["CONTROL", "FIELDS", "HEAD", "KIND_CODES", "WORK", "driver_text"]

WORK = "irgrad.batch.work"

CONTROL: tuple[str, ...] = ("next", "scratch", "block", "completed", "failure")

# samples of a row, rows, samples of a chunk, chunks of a row, most samples of a block, bytes of scratch memory of a
# worker (the first 16 for each slot are the driver's own), outer axes, slots, lanes: a block has a multiple of them,
# samples by which all chunks but the first begin earlier
HEAD: tuple[str, ...] = ("samples", "rows", "chunk", "chunks", "block", "scratch", "axes", "slots", "lanes", "lead")

FIELDS: tuple[str, ...] = (
    "place",  # of the slot in a block: 0 scratch memory, 1 in the source, 2 in the destination, 3 in the source and the
    #           same for all samples, 4 the accumulator
    "start",  # 0 nothing, 1 zero, 2 copied from the source, 3 the source's one value for all samples
    "finish",  # 0 dropped, 1 copied to the destination, 2 added to the accumulator
    "source", "target",  # numbers of bases
    "count", "size",  # elements of a sample, bytes of an element
    "offset",  # in scratch memory
    "source_sample", "source_element", "target_sample", "target_element", "block_sample", "block_element",  # strides
    "kind",  # of float (`KIND_CODES`), for sums
)  # fmt: skip

KIND_CODES = {"double": 0, "float": 1, "half": 2, "bfloat": 3}

_SMALL = " noinline optsize nounwind"  # what takes time is in the block function
_COPY = "irgrad.batch.copy"
_COPY_ARGUMENTS = ("i64 %ds", "i64 %de", "ptr noalias %s", "i64 %ss", "i64 %se", "i64 %m", "i64 %e")
_DECLARATIONS = """
declare void @llvm.memset.p0.i64(ptr writeonly, i8, i64, i1 immarg)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly, ptr noalias readonly, i64, i1 immarg)
"""


def driver_text(known: str = "", ask: str = "") -> str:
    """The driver; `known` is the text that it is appended to.

    ask: a function without arguments that it asks before each block whether a signal ends the batch; its result is
    null, or the record of a failure.
    """
    lines = [line for line in _DECLARATIONS.splitlines() if line and not _declared(line, known)]
    parts = [_transpose(size) for size in (1, 2, 4, 8)] + [_copy(), _place_sums(), _offset()]
    return "\n".join([*lines, *parts, _begin(), _end(), _work(ask)])


def _declared(line: str, known: str) -> bool:
    symbol = line[line.index(" @") : line.index("(") + 1]
    return any(symbol in row for row in known.splitlines() if row.startswith(("declare ", "define ")))


def _transpose(size: int) -> str:
    """A copy of m samples of e elements with any strides, element by element: lanes are the inner loop."""
    kind = f"i{8 * size}"
    w = Writer(f"define internal void @{_COPY}{size}(ptr noalias %d, {', '.join(_COPY_ARGUMENTS)}){_SMALL}")
    with w.loop("%e") as k:
        d, s = w.at("%d", w.mul(k, "%de")), w.at("%s", w.mul(k, "%se"))
        with w.loop("%m") as j:
            value = w.emit(f"load {kind}, ptr {w.at(s, w.mul(j, '%ss'))}, align {size}")
            w.do(f"store {kind} {value}, ptr {w.at(d, w.mul(j, '%ds'))}, align {size}")
    return w.text()


def _copy() -> str:
    """A copy of m samples of e elements of a size: in the longest pieces that both sides have in one piece."""
    w = Writer(f"define internal void @{_COPY}(ptr noalias %d, {', '.join(_COPY_ARGUMENTS)}, i64 %size){_SMALL}")
    row = w.mul("%e", "%size")
    wide = [w.emit(f"and i1 {w.compare('eq', f'%d{x}', n)}, {w.compare('eq', f'%s{x}', n)}")
            for x, n in (("s", "%size"), ("e", "%size"), ("s", row))]
    lanes, elements = wide[0], wide[1]
    dense = w.emit(f"and i1 {elements}, {wide[2]}")
    with w.forever() as out:
        with w.when(dense):
            w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %s, i64 {w.mul(row, '%m')}, i1 false)")
            w.leave("true", out)
        for condition, count, strides, length in (
            (lanes, "%e", ("%de", "%se"), w.mul("%m", "%size")), (elements, "%m", ("%ds", "%ss"), row),
        ):  # fmt: skip
            with w.when(condition):
                with w.loop(count) as k:
                    d, s = w.at("%d", w.mul(k, strides[0])), w.at("%s", w.mul(k, strides[1]))
                    w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {d}, ptr {s}, i64 {length}, i1 false)")
                w.leave("true", out)
        arguments = ", ".join(argument.replace(" noalias", "") for argument in _COPY_ARGUMENTS)
        for size in (1, 2, 4, 8):
            with w.when(w.compare("eq", "%size", str(size))):
                w.do(f"call void @{_COPY}{size}(ptr %d, {arguments})")
        w.leave("true", out)
    return w.text()


def _place_sums() -> str:
    """accumulator[k] += sum over the samples of block[k]: eight partial sums where the samples lie side by side."""
    texts = []
    for kind, code in KIND_CODES.items():
        size = {"double": 8, "float": 4, "half": 2, "bfloat": 2}[kind]
        w = Writer(f"define internal void @irgrad.batch.sum{code}(ptr noalias %a, ptr noalias %b, i64 %bs, i64 %be, "
                   f"i64 %m, i64 %e){_SMALL}")
        groups = w.emit("udiv i64 %m, 8")
        lanes = w.compare("eq", "%bs", str(size))
        eights = w.emit(f"select i1 {lanes}, i64 {groups}, i64 0")
        done = w.mul(eights, "8")
        rest = w.emit(f"sub i64 %m, {done}")
        with w.loop("%e") as k:
            cell, row = w.at("%a", w.mul(k, str(size))), w.at("%b", w.mul(k, "%be"))
            partial = w.alloca(f"<8 x {kind}>", align=64)
            w.do(f"store <8 x {kind}> zeroinitializer, ptr {partial}")
            with w.loop(eights) as g:
                part = w.emit(f"load <8 x {kind}>, ptr {w.at(row, w.mul(g, str(8 * size)))}, align {size}")
                total = w.emit(f"fadd <8 x {kind}> {w.emit(f'load <8 x {kind}>, ptr {partial}')}, {part}")
                w.do(f"store <8 x {kind}> {total}, ptr {partial}")
            vector = w.emit(f"load <8 x {kind}>, ptr {partial}")
            lane = [w.emit(f"extractelement <8 x {kind}> {vector}, i64 {i}") for i in range(8)]
            while len(lane) > 1:
                half = len(lane) // 2
                lane = [w.emit(f"fadd {kind} {lane[i]}, {lane[i + half]}") for i in range(half)]
            old = w.emit(f"load {kind}, ptr {cell}, align {size}")
            w.do(f"store {kind} {w.emit(f'fadd {kind} {old}, {lane[0]}')}, ptr {cell}, align {size}")
        with w.loop(rest) as j:
            sample = w.at("%b", w.mul(w.add(j, done), "%bs"))
            with w.loop("%e") as k:
                cell, value = w.at("%a", w.mul(k, str(size))), w.at(sample, w.mul(k, "%be"))
                old, new = (w.emit(f"load {kind}, ptr {p}, align {size}") for p in (cell, value))
                w.do(f"store {kind} {w.emit(f'fadd {kind} {old}, {new}')}, ptr {cell}, align {size}")
        texts.append(w.text())
    return "\n".join(texts)


def _offset() -> str:
    """Byte offset of a row: its digits in the outer dimensions times the strides."""
    w = Writer("define internal void @irgrad.batch.offset(ptr noalias %out, ptr %dims, ptr %strides, i64 %axes, "
               f"i64 %row){_SMALL}")
    rest, total = w.alloca("i64"), w.alloca("i64")
    w.do(f"store i64 %row, ptr {rest}")
    w.do(f"store i64 0, ptr {total}")
    with w.loop("%axes") as k:
        axis = w.emit(f"sub i64 {w.emit('sub i64 %axes, 1')}, {k}")
        size, now = w.load("i64", "%dims", axis), w.emit(f"load i64, ptr {rest}")
        part = w.mul(w.emit(f"urem i64 {now}, {size}"), w.load("i64", "%strides", axis))
        w.do(f"store i64 {w.emit(f'udiv i64 {now}, {size}')}, ptr {rest}")
        w.do(f"store i64 {w.add(w.emit(f'load i64, ptr {total}'), part)}, ptr {total}")
    w.do(f"store i64 {w.emit(f'load i64, ptr {total}')}, ptr %out")
    return w.text()


_STEP = ("ptr %record", "ptr %dims", "i64 %axes", "ptr %bases", "ptr %scratch", "i64 %row", "i64 %first", "i64 %m",
         "i64 %lanes", "i64 %chunk", "i1 %short")


class _Record:
    """The fields of `%record` and the addresses of a block's first sample, for `_begin` and `_end`."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self._offset = w.alloca("i64")

    def __getitem__(self, name: str) -> str:
        return self.w.load("i64", "%record", FIELDS.index(name))

    def address(self, side: str) -> str:
        """Address of the first sample of the block in the source or destination."""
        w = self.w
        base = w.load("ptr", "%bases", self[side])
        strides = w.at("%record", str(len(FIELDS)), "i64")
        if side == "target":
            strides = w.at(strides, "%axes", "i64")
        w.do(f"store i64 0, ptr {self._offset}")
        with w.when(w.compare("ne", "%axes", "0")):
            w.do(f"call void @irgrad.batch.offset(ptr {self._offset}, ptr %dims, ptr {strides}, i64 %axes, i64 %row)")
        row = w.at(base, w.emit(f"load i64, ptr {self._offset}"))
        return w.at(row, w.mul("%first", self[f"{side}_sample"]))

    def accumulator(self) -> str:
        """Address of this chunk's accumulator."""
        w = self.w
        return w.at(w.load("ptr", "%bases", self["target"]), w.mul("%chunk", self["target_sample"]))

    def copy(self, to: str, to_side: str, start: str, side: str, count: str, stride: str | None = None) -> None:
        """Copy `count` samples between source, destination and block."""
        w = self.w
        step = self[f"{side}_sample"] if stride is None else stride
        w.do(f"call void @{_COPY}(ptr {to}, i64 {self[f'{to_side}_sample']}, i64 {self[f'{to_side}_element']}, "
             f"ptr {start}, i64 {step}, i64 {self[f'{side}_element']}, i64 {count}, i64 {self['count']}, "
             f"i64 {self['size']})")


def _begin() -> str:
    """Where one slot of a block is (pointer and stride go to %out), filled as its record says."""
    w = Writer(f"define internal void @irgrad.batch.begin(ptr noalias %out, {', '.join(_STEP)}) nounwind")
    r = _Record(w)
    place, start = r["place"], r["start"]
    stride = w.at("%out", "1", "i64")
    with w.forever() as done:
        with w.when(w.compare("eq", place, "4")):
            w.do(f"store ptr {r.accumulator()}, ptr %out")
            w.do(f"store i64 0, ptr {stride}")
            w.leave("true", done)
        for code, side in ((1, "source"), (3, "source")):  # nothing to fill
            full = "true" if code == 3 else w.emit("xor i1 %short, true")
            with w.when(w.emit(f"and i1 {w.compare('eq', place, str(code))}, {full}")):
                w.do(f"store ptr {r.address(side)}, ptr %out")
                w.do(f"store i64 {r[f'{side}_sample']}, ptr {stride}")
                w.leave("true", done)
        direct = w.emit(f"and i1 {w.compare('eq', place, '2')}, {w.emit('xor i1 %short, true')}")
        scratch = w.at("%scratch", r["offset"])
        block = w.alloca("ptr")
        w.do(f"store ptr {scratch}, ptr {block}")
        with w.when(direct):
            w.do(f"store ptr {r.address('target')}, ptr {block}")
        here = w.emit(f"load ptr, ptr {block}")
        step = w.emit(f"select i1 {direct}, i64 {r['target_sample']}, i64 {r['block_sample']}")
        w.do(f"store ptr {here}, ptr %out")
        w.do(f"store i64 {step}, ptr {stride}")
        lanes = w.emit("select i1 %short, i64 %lanes, i64 %m")
        with w.when(w.compare("eq", start, "1")):
            size = w.mul(w.mul(lanes, r["count"]), r["size"])
            w.do(f"call void @llvm.memset.p0.i64(ptr {here}, i8 0, i64 {size}, i1 false)")
        given = w.emit(f"or i1 {w.compare('eq', start, '2')}, {w.compare('eq', place, '1')}")
        with w.when(given):
            source = r.address("source")
            with w.when(w.emit(f"icmp ne ptr {source}, {here}")):
                r.copy(here, "block", source, "source", "%m")
            with w.when("%short"):
                last = w.emit("sub i64 %m, 1")
                again = w.at(source, w.mul(last, r["source_sample"]))
                beyond = w.at(here, w.mul("%m", r["block_sample"]))
                r.copy(beyond, "block", again, "source", w.emit("sub i64 %lanes, %m"), "0")
        with w.when(w.compare("eq", start, "3")):
            r.copy(here, "block", r.address("source"), "source", lanes, "0")
        w.leave("true", done)
    return w.text()


def _end() -> str:
    """What becomes of one slot of a block, which is at %here, behind it."""
    w = Writer(f"define internal void @irgrad.batch.end(ptr %here, {', '.join(_STEP)}) nounwind")
    r = _Record(w)
    finish, here = r["finish"], "%here"
    elsewhere = w.emit(f"or i1 %short, {w.compare('ne', r['place'], '2')}")
    copies = w.compare("eq", finish, "1")
    with w.when(w.emit(f"and i1 {elsewhere}, {copies}")):
        r.copy(r.address("target"), "target", here, "block", "%m")
    with w.when(w.compare("eq", finish, "2")):
        kind = r["kind"]
        for code in KIND_CODES.values():
            with w.when(w.compare("eq", kind, str(code))):
                w.do(f"call void @irgrad.batch.sum{code}(ptr {r.accumulator()}, ptr {here}, i64 {r['block_sample']}, "
                     f"i64 {r['block_element']}, i64 %m, i64 {r['count']})")
    return w.text()


def _work(ask: str) -> str:
    """Claim chunks until there is none, or `limit` are done."""
    w = Writer(f"define void @{WORK}(ptr %control, ptr %meta, ptr %bases, i64 %worker, i64 %limit)")
    head = {name: w.load("i64", "%meta", number) for number, name in enumerate(HEAD)}
    dims = w.at("%meta", str(len(HEAD)), "i64")
    records = w.at(dims, head["axes"], "i64")
    length = w.add(w.mul(head["axes"], "2"), str(len(FIELDS)))
    scratch = w.at(w.load("ptr", "%control", 1), w.mul("%worker", head["scratch"]))
    total = w.mul(head["rows"], head["chunks"])
    lanes = w.emit(f"call i64 @llvm.umax.i64(i64 {head['lanes']}, i64 1)")
    pointers, strides = scratch, w.at(scratch, head["slots"], "i64")
    block, failure = w.load("ptr", "%control", 2), w.at("%control", str(CONTROL.index("failure")), "i64")
    place, first, claimed = w.alloca("{ ptr, i64 }"), w.alloca("i64"), w.alloca("i64")
    w.do(f"store i64 0, ptr {claimed}")
    with w.forever() as out:
        done = w.emit(f"load i64, ptr {claimed}")
        w.leave(w.compare("uge", done, "%limit"), out)
        w.do(f"store i64 {w.add(done, '1')}, ptr {claimed}")
        chunk = w.emit("atomicrmw add ptr %control, i64 1 monotonic, align 8")
        w.leave(w.compare("uge", chunk, total), out)
        row = w.emit(f"udiv i64 {chunk}, {head['chunks']}")
        at = w.mul(w.emit(f"urem i64 {chunk}, {head['chunks']}"), head["chunk"])
        low = w.emit(f"call i64 @llvm.usub.sat.i64(i64 {at}, i64 {head['lead']})")
        end = w.emit(f"sub i64 {w.add(at, head['chunk'])}, {head['lead']}")
        high = w.emit(f"call i64 @llvm.umin.i64(i64 {end}, i64 {head['samples']})")
        w.do(f"store i64 {low}, ptr {first}")
        with w.forever() as over:
            at = w.emit(f"load i64, ptr {first}")
            w.leave(w.compare("uge", at, high), over)
            if ask:
                asked = w.emit(f"call ptr @{ask}()")
                with w.when(w.emit(f"icmp ne ptr {asked}, null")):
                    w.emit(f"cmpxchg ptr {failure}, ptr null, ptr {asked} release monotonic, align 8")
            failed = w.emit(f"load atomic ptr, ptr {failure} monotonic, align 8")
            w.leave(w.emit(f"icmp ne ptr {failed}, null"), over)
            left = w.emit(f"call i64 @llvm.umin.i64(i64 {w.emit(f'sub i64 {high}, {at}')}, i64 {head['block']})")
            short = w.compare("ult", left, lanes)
            whole = w.emit(f"sub i64 {left}, {w.emit(f'urem i64 {left}, {lanes}')}")
            m = w.emit(f"select i1 {short}, i64 {left}, i64 {whole}")
            count = w.emit(f"select i1 {short}, i64 {lanes}, i64 {m}")
            rest = (f"ptr {dims}, i64 {head['axes']}, ptr %bases, ptr {scratch}, i64 {row}, i64 {at}, i64 {m}, "
                    f"i64 {lanes}, i64 {chunk}, i1 {short}")
            with w.loop(head["slots"]) as i:
                record = w.at(records, w.mul(i, length), "i64")
                w.do(f"call void @irgrad.batch.begin(ptr {place}, ptr {record}, {rest})")
                w.do(f"store ptr {w.load('ptr', place)}, ptr {w.at(pointers, i, 'ptr')}")
                w.do(f"store i64 {w.load('i64', place, 1)}, ptr {w.at(strides, i, 'i64')}")
            failed = w.emit(f"call ptr {block}(i64 {count}, ptr {pointers}, ptr {strides})")
            with w.when(w.emit(f"icmp ne ptr {failed}, null")):
                w.emit(f"cmpxchg ptr {failure}, ptr null, ptr {failed} release monotonic, align 8")
            w.leave(w.emit(f"icmp ne ptr {failed}, null"), over)
            with w.loop(head["slots"]) as i:
                record = w.at(records, w.mul(i, length), "i64")
                here = w.load("ptr", w.at(pointers, i, "ptr"))
                w.do(f"call void @irgrad.batch.end(ptr {here}, ptr {record}, {rest})")
            w.do(f"store i64 {w.add(at, m)}, ptr {first}")
        w.emit(f"atomicrmw add ptr {w.at('%control', '3', 'i64')}, i64 1 release, align 8")
    return w.text()
