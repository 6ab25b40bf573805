"""Calls with batch axes: FFI handlers that hand XLA's buffers to the engine's driver of batches.

The batch axes stand in front of every buffer. The last one holds the samples, the others are rows (see
`engine/runtime/batch_driver.py`); their sizes are read from the buffers (the results have them all), so that XLA may
cut a batch over devices, or leave its size open in an exported program. An operand whose size is 1 along an axis is the
same for all samples along it: nothing is broadcast in memory. Samples run as vector lanes where the engine finds that
possible, else one after the other, as in `engine.batch`. What else depends on shapes comes with each call as `meta`:

    meta   ::= axes, slots, bytes of memory, bytes of them before the scratch memory, lanes, samples of a block,
               bytes of scratch memory of a worker, most helpers, record*slots, status, constant data
    status ::= nothing, or for a kernel with a status the number of its result and a mask of axes (see `status`)
    record ::= operand (-1: constant data, -2: none), word of the constant, result (-1: none), the words of `FIELDS`
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from irgrad.engine.batches.batched import LARGEST
from irgrad.engine.batches.blocks import BLOCK
from irgrad.engine.batches.plan import CHUNKS, LONG, STAGE_BYTES, front_bytes, placed, scratch_bytes
from irgrad.engine.batches.threads import cores
from irgrad.engine.batches.unit import Strategy, block_ir, strategy_of
from irgrad.engine.codegen.polls import ASKS, WANTED, asking_text
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.kernel.programs import Program
from irgrad.engine.runtime.batch_driver import FIELDS, HEAD, KIND_CODES, driver_text
from irgrad.engine.runtime.ir_writer import Writer
from irgrad.engine.signature.prototype import quoted
from irgrad.engine.signature.slots import TAPE
from irgrad.interop.jax.handler import (
    FAIL,
    PARTS,
    QUERY,
    TARGETS,
    in_turn,
    integer_bytes,
    register_text,
    target_of,
)
from irgrad.interop.jax.status import scan_call, status_text
from irgrad.interop.jax.tape_limit import bound, is_bounded, limited
from irgrad.interop.jax.tape_memory import LOOK, report_text
from irgrad.interop.jax.threads import WORDS, sharing_text
from irgrad.rules.errors import Unsupported

__all__ = ["Uses", "batch_strategy", "batched_layout", "batched_text", "register_batched", "uses_of"]

Key = tuple[int, tuple[int, ...]]
Words = tuple[int, ...]
Uses = tuple[tuple[str, bool], ...]  # by slot: how it starts, whether it is wanted
_FRONT, _BESIDE = 8, 3
_HELPERS, _MEMORY = 15, 1 << 24  # the most helpers; the most bytes of scratch memory for them
_ALL = 1 << 62

_BODY = """
  %bytesp = getelementptr i64, ptr %meta, i64 2
  %bytes = load i64, ptr %bytesp
  %more = add i64 %bytes, 64
  %block = call ptr @malloc(i64 %more)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %error, label %ready
"""
_CALL = """
ready:
  %number = ptrtoint ptr %block to i64
  %up = add i64 %number, 63
  %start64 = and i64 %up, -64
  %memory = inttoptr i64 %start64 to ptr
BEFORE
  %tape = call ptr @irgrad.batch.asked(ptr %call, ptr %args, ptr %rets, ptr %meta, ptr %memory, ptr %block)
TAPE
LEAVE
}
"""


def uses_of(
    program: Program, operands: Mapping[Key, int], results: Mapping[Key, int], constants: Sequence[int],
    shared: Sequence[bool],
) -> Uses:  # fmt: skip
    """How the samples of a call use each slot: start ("zero", "each", "one") and whether it is a result.

    shared: for each operand whether it is the same for all samples
    """
    out = []
    for slot in program.slots:
        key = (slot.index, slot.steps)
        source = operands.get(key) if slot.role != "scratch" else None
        constant = not slot.steps and slot.index in constants
        start = "one" if constant else "zero" if source is None else "one" if shared[source] else "each"
        out.append((start, slot.role != "scratch" and key in results))
    return tuple(out)


def batch_strategy(program: Program, uses: Uses, sizes: Mapping[str, int], samples: int | None) -> Strategy:
    """The engine's strategy for a call. samples: None where their number is open."""
    words = _block_uses(program, uses)
    if any(slot.index == TAPE for slot in program.slots):
        return strategy_of(program, words, 1)  # samples have tapes of their own: nothing is interleaved
    found = strategy_of(program, words)
    if found.name != "lanes":
        return found
    shapes = program.shapes(sizes)
    held = sum(math.prod(shape) * slot.dtype.size
               for slot, shape, use in zip(program.slots, shapes, words, strict=True) if use != "in one")  # fmt: skip
    few = samples is not None and 2 * samples < found.lanes
    return strategy_of(program, words, 1) if few or held * found.lanes > LARGEST else found


def _block_uses(program: Program, uses: Uses) -> tuple[str, ...]:
    return tuple(f"in {start}" if slot.role == "in" else f"{start} out" if wanted else start
                 for slot, (start, wanted) in zip(program.slots, uses, strict=True))  # fmt: skip


def register_batched(program: Program, strategy: Strategy, uses: Uses) -> str:
    """Compile and register the batched handler of a program; returns the target's name, a digest of its code."""
    from irgrad.engine.codegen.cache import fingerprint

    words = _block_uses(program, uses)
    varies = words if strategy.name == "scalars" else tuple(use == "in one" for use in words)
    form = f"{strategy.name} {strategy.lanes} {varies if strategy.lanes else ''}"
    reports = status_text(program)
    threads = program.source.options.threads  # no part of the code, but of what its handler has been told
    has_limit = is_bounded(program)
    more = [*([reports] if reports else []), *([f"threads={threads}"] if threads else []), *(["bounded"] * has_limit)]
    how = fingerprint(program.key, sharing_text(), WANTED, form, *more)
    name = f"irgrad.{program.source.name}.batch.{how[:32]}"
    if name not in TARGETS:
        leave = scan_call(program, _FRONT + len(program.slots) * (_BESIDE + len(FIELDS)))[1]
        integers = integer_bytes(program.slots) if has_limit else None
        text = batched_text(name, block_ir(program, strategy, words), leave, reports, integers)
        options = program.source.options
        register_text(name, in_turn(program, name, text), options.strict_fp, ASKS, options.threads)
        bound(program, target_of(name), lambda other: _with_states(other, strategy, uses), cores(),
              max(strategy.lanes, 1))  # fmt: skip
    return name


def _with_states(program: Program, strategy: Strategy, uses: Uses) -> tuple[Any, int] | None:
    """The handler of another program for calls of one with this strategy; None where its samples run in another way."""
    try:
        found = strategy_of(program, _block_uses(program, uses), strategy.lanes or 1)
    except Unsupported:
        return None
    if (found.name, found.lanes, found.serial) != (strategy.name, strategy.lanes, strategy.serial):
        return None
    return target_of(register_batched(program, found, uses))


def batched_text(
    name: str, block: str, leave: str = "  ret ptr null", reports: str = "", integers: Sequence[int] | None = None
) -> str:
    """The module of a handler: a block function, the driver, and what fills in the driver's words from the buffers.

    leave, reports: how it returns, and the functions which that calls (see `status`); integers: see `handler_text`
    """
    text = block + driver_text(block, WANTED) + _filler() + asking_text("irgrad.batch.call", "irgrad.batch.asked")
    handler = sharing_text() + (PARTS + QUERY + _BODY + FAIL + _CALL).replace("LEAVE", leave) + reports
    step = _BESIDE + len(FIELDS)
    places = None if integers is None else [(_FRONT + n * step, size, -1) for n, size in enumerate(integers) if size]
    handler = limited(name, handler.replace("TAPE", LOOK), "%block", places)
    handler += report_text(name.split(".")[1] if "." in name else name)
    return joined(text, handler.replace("@HANDLER", f"@{quoted(name)}"))


def batched_layout(
    program: Program, strategy: Strategy, uses: Uses, sizes: Mapping[str, int], operands: Mapping[Key, int],
    results: Mapping[Key, int], constants: Mapping[int, int], axes: int, status: Words = (),
) -> Words:  # fmt: skip
    """The `meta` of a call with `axes` batch axes. status: the words for the status of a kernel that has one."""
    slots, form, lanes = program.slots, strategy.name, strategy.lanes
    shapes = program.shapes(sizes)
    rows: list[dict[str, int]] = []
    staged = 0
    for slot, shape, (start, wanted) in zip(slots, shapes, uses, strict=True):
        count, size = math.prod(shape), slot.dtype.size
        fits = count == 1 or form == "loop"
        place, first, finish = placed(form, slot, start, "each" if wanted else "", (fits, fits))
        first = 0 if slot.index == TAPE else first
        row = dict.fromkeys(FIELDS, 0)
        row.update(place=place, start=first, finish=finish, source=2 * len(rows), target=2 * len(rows) + 1, count=count,
                   size=size, source_element=size, target_element=size, kind=KIND_CODES.get(slot.dtype.memory, 0))
        staged += count * size if place == 0 or first else 0
        rows.append(row)
    free = max(1, min(64, STAGE_BYTES // staged)) if staged else _ALL
    block = {"scalars": LONG, "lanes": lanes}.get(form, free)
    offset = front_bytes(len(slots))
    for row in rows:
        width = row["count"] * row["size"]
        sides = (row["size"], block * row["size"]) if lanes else (width, row["size"])
        row.update(offset=offset, block_sample=sides[0], block_element=sides[1])
        offset += scratch_bytes(row["place"], block, lanes, width)
    before = 8 * (len(HEAD) + axes - 1 + len(slots) * (len(FIELDS) + 2 * (axes - 1)) + 2 * len(slots) + len(WORDS))
    helpers = 0 if strategy.serial else min(_HELPERS, _MEMORY // offset)
    before = -(-before // 64) * 64
    values: list[int] = []
    records: list[int] = []
    behind = _FRONT + len(slots) * (_BESIDE + len(FIELDS)) + len(status)
    for slot, row in zip(slots, rows, strict=True):
        key = (slot.index, slot.steps)
        constant = not slot.steps and slot.index in constants
        source = -1 if constant else operands.get(key, -2) if slot.role != "scratch" else -2
        result = results.get(key, -1) if slot.role != "scratch" else -1
        records += [source, behind + len(values), result, *(row[name] for name in FIELDS)]
        values += [constants[slot.index]] if constant else []
    total = before + offset * (1 + helpers)
    return (axes, len(slots), total, before, lanes, block, offset, helpers, *records, *status, *values)


def _filler() -> str:
    """`irgrad.batch.call`: fills in the driver's words from the buffers and calls it; its result is that of `share`."""
    w = Writer("define internal ptr @irgrad.batch.call(ptr %call, ptr %args, ptr %rets, ptr %meta, ptr %memory, "
               "ptr %block) noinline")
    axes, slots, _, before, lanes, block, scratch, helpers = (w.load("i64", "%meta", n) for n in range(_FRONT))
    outer = w.emit(f"sub i64 {axes}, 1")
    dims = w.load("ptr", w.at(w.load("ptr", "%rets"), "40"))
    rows = w.alloca("i64")
    w.do(f"store i64 1, ptr {rows}")
    places = w.at("%memory", str(len(HEAD)), "i64")
    with w.loop(outer) as k:
        size = w.load("i64", dims, k)
        w.do(f"store i64 {size}, ptr {w.at(places, k, 'i64')}")
        w.do(f"store i64 {w.mul(w.emit(f'load i64, ptr {rows}'), size)}, ptr {rows}")
    samples = w.load("i64", dims, outer)
    step = w.emit(f"call i64 @llvm.umax.i64(i64 {lanes}, i64 1)")
    part = _up(w, _up(w, samples, str(CHUNKS)), step)
    chunk = w.emit(f"call i64 @llvm.umax.i64(i64 {w.mul(part, step)}, i64 {step})")
    chunks = _up(w, samples, chunk)
    head = {"samples": samples, "rows": w.emit(f"load i64, ptr {rows}"), "chunk": chunk, "chunks": chunks,
            "block": block, "scratch": scratch, "axes": outer, "slots": slots, "lanes": lanes, "lead": "0"}
    for number, name in enumerate(HEAD):
        w.do(f"store i64 {head[name]}, ptr {w.at('%memory', str(number), 'i64')}")
    records = w.at(places, outer, "i64")
    length = w.add(w.mul(outer, "2"), str(len(FIELDS)))
    bases = w.at(records, w.mul(slots, length), "i64")
    control = w.at(bases, w.mul(slots, "2"), "i64")
    with w.loop(slots) as i:
        given = w.at("%meta", w.add(w.mul(i, str(_BESIDE + len(FIELDS))), str(_FRONT)), "i64")
        record = w.at(records, w.mul(i, length), "i64")
        words = w.at(given, str(_BESIDE), "i64")
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {record}, ptr {words}, i64 {8 * len(FIELDS)}, i1 false)")
        _fill_side(w, "source", "%args", w.load("i64", given), given, record, bases, i, outer)
        _fill_side(w, "target", "%rets", w.load("i64", given, 2), given, record, bases, i, outer)
    scratch_memory = w.at("%memory", before)
    control_words = {"scratch": f"ptr {scratch_memory}", "block": f"ptr @{BLOCK}", "users": "i64 1",
                     "memory": "ptr %block", "meta": "ptr %memory", "bases": f"ptr {bases}"}
    for number, name in enumerate(WORDS):
        w.do(f"store {control_words.get(name, 'i64 0')}, ptr {w.at(control, str(number), 'i64')}")
    total = w.mul(head["rows"], chunks)
    failure = w.emit(f"call ptr @irgrad.batch.share(ptr %call, ptr {control}, i64 {total}, i64 {helpers})")
    return w.text(f"ptr {failure}")


def _up(w: Writer, number: str, step: str) -> str:
    """number / step, rounded up."""
    less = w.emit(f"sub i64 {step}, 1")
    return w.emit(f"udiv i64 {w.add(number, less)}, {step}")


def _fill_side(
    w: Writer, side: str, buffers: str, number: str, given: str, record: str, bases: str, slot: str, outer: str
) -> None:
    """Base and strides of the source or the destination of a slot."""
    base = w.at(bases, w.add(w.mul(slot, "2"), "0" if side == "source" else "1"), "ptr")
    strides = w.at(record, str(len(FIELDS)), "i64")
    if side == "target":
        strides = w.at(strides, outer, "i64")
    sample = w.at(record, str(FIELDS.index(f"{side}_sample")), "i64")
    w.do(f"store ptr null, ptr {base}")
    with w.loop(outer) as k:
        w.do(f"store i64 0, ptr {w.at(strides, k, 'i64')}")
    if side == "source":
        with w.when(w.compare("eq", number, "-1")):
            w.do(f"store ptr {w.at('%meta', w.load('i64', given, 1), 'i64')}, ptr {base}")
    with w.when(w.compare("sge", number, "0")):
        buffer = w.load("ptr", buffers, number)
        own = w.load("ptr", w.at(buffer, "40"))
        w.do(f"store ptr {w.load('ptr', w.at(buffer, '24'))}, ptr {base}")
        width = w.mul(w.load("i64", record, FIELDS.index("count")), w.load("i64", record, FIELDS.index("size")))
        step = w.alloca("i64")
        w.do(f"store i64 {width}, ptr {step}")
        with w.loop(w.add(outer, "1")) as back:
            k = w.emit(f"sub i64 {outer}, {back}")
            size, now = w.load("i64", own, k), w.emit(f"load i64, ptr {step}")
            stride = w.emit(f"select i1 {w.compare('eq', size, '1')}, i64 0, i64 {now}")
            last = w.compare("eq", back, "0")
            cell = w.emit(f"select i1 {last}, ptr {sample}, ptr {w.at(strides, k, 'i64')}")
            w.do(f"store i64 {stride}, ptr {cell}")
            w.do(f"store i64 {w.mul(now, size)}, ptr {step}")
