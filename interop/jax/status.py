"""What a handler tells XLA when a kernel reports failure: IR that looks at statuses and builds the error's message.

XLA turns the error into `jax.errors.JaxRuntimeError`. A call of one sample has its status in scratch memory. A call
with batch axes has it as one more result, an integer per sample, which XLA allocates and nobody uses: the first sample,
in C order, whose status is not 0 is named in the message, by its positions along the batch axes that its arguments have
(on the device that runs it, where several share the batch).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.core
import numpy as np
from jax.interpreters import mlir

from irgrad.engine.kernel.programs import Program
from irgrad.engine.runtime.ir_writer import Writer, constant_text
from irgrad.engine.signature.status import shown_name

__all__ = ["checked_text", "on_own_thread", "scan_call", "status_text"]

_ABORTED = 10  # the code of the error: the operation was aborted
_PLACE = 320  # characters of the text that names a sample
_CALL_TYPE = "i32 (ptr, i64, ptr, ...)"
_FLOPS = 1024


def on_own_thread(ctx: Any, operands: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    """The operands of a call that can fail, and one that nobody reads: it makes XLA run the program on its own thread.

    XLA:CPU runs programs of fewer than 1000 floating-point operations (custom calls count as none) on the thread that
    calls them, and `jit`, once it is warm, turns their errors into ValueError. Errors of programs that run on XLA's own
    thread arrive as JaxRuntimeError, always.
    """
    aval = jax.core.ShapedArray((_FLOPS,), np.dtype(np.float32))
    extra = mlir.lower_fun(_squares, multiple_results=False)(ctx.replace(avals_in=(), avals_out=(aval,)))
    return ctx.replace(avals_in=(*ctx.avals_in, aval)), (*operands, *extra)


def _squares() -> Any:
    numbers = jax.lax.iota(np.float32, _FLOPS)
    return numbers * numbers


def checked_text(program: Program) -> tuple[str, str]:
    """Instructions of a handler without batch axes, behind the call of the program, and those that return from it.

    Both are `("", "  ret ptr null")` for a program without a status.
    """
    slot = program.status_slot
    if slot is None:
        return "", "  ret ptr null"
    dtype = program.slots[slot].dtype
    look = f"""
  %statusp = getelementptr ptr, ptr %frame, i64 {slot}
  %statusat = load ptr, ptr %statusp
  %statusraw = load {dtype.ir}, ptr %statusat
  %status = {_widened(dtype.ir, dtype.kind, "%statusraw")}
  %failure = alloca ptr
  store ptr null, ptr %failure"""
    leave = """  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %report, label %fine
report:
  call void @irgrad.status.report(ptr %failure, ptr %call, i64 %status, ptr @irgrad.status.none)
  %reported = load ptr, ptr %failure
  ret ptr %reported
fine:
  ret ptr null"""
    return look, leave


def scan_call(program: Program, word: int) -> tuple[str, str]:
    """The same for a handler with batch axes.

    word: where in `meta` its words for the status are: the number of the result, a bit mask of the axes to name
    """
    if program.status_slot is None:
        return "", "  ret ptr null"
    leave = f"""  %failure = alloca ptr
  store ptr null, ptr %failure
  call void @irgrad.status.scan(ptr %failure, ptr %call, ptr %rets, ptr %meta, i64 {word})
  %reported = load ptr, ptr %failure
  ret ptr %reported"""
    return "", leave


def _widened(ir: str, kind: str, value: str) -> str:
    if ir == "i64":
        return f"add i64 {value}, 0"
    return f"{'sext' if kind == 'i' else 'zext'} {ir} {value} to i64"


def status_text(program: Program) -> str:
    """The functions and messages behind `checked_text` and `scan_call`; empty for a program without a status."""
    slot = program.status_slot
    if slot is None:
        return ""
    dtype = program.slots[slot].dtype
    errors = program.source.errors
    words = {
        "none": "", "name": shown_name(program.source.name), "format": "`%s` failed with status %lld%s%s",
        "one": " (sample %lld", "first": " (sample [%lld", "next": ", %lld", "close": ")", "bracket": "])",
        **{f"text.{number}": f": {text}" for number, (_, text) in enumerate(errors)},
    }  # fmt: skip
    texts = [constant_text(f"irgrad.status.{name}", text) for name, text in words.items()]
    longest = max((len(message.encode()) for _, message in errors), default=0)
    room = len(program.source.name.encode()) + longest + _PLACE + 80
    return "\n".join([*texts, "declare i32 @snprintf(ptr, i64, ptr, ...)", _report(errors, room),
                      _scan(dtype.ir, dtype.kind, dtype.size)])  # fmt: skip


def _report(errors: tuple[tuple[int, str], ...], room: int) -> str:
    """`irgrad.status.report(out, call, status, place)`: an error of XLA's goes to `out`."""
    w = Writer("define internal void @irgrad.status.report(ptr %out, ptr %call, i64 %status, ptr %place) noinline cold")
    buffer, text = w.alloca("i8", room), w.alloca("ptr")
    w.do(f"store ptr @irgrad.status.none, ptr {text}")
    for number, (code, _) in enumerate(errors):
        with w.when(w.compare("eq", "%status", str(code))):
            w.do(f"store ptr @irgrad.status.text.{number}, ptr {text}")
    w.emit(f"call {_CALL_TYPE} @snprintf(ptr {buffer}, i64 {room}, ptr @irgrad.status.format, ptr @irgrad.status.name, "
           f"i64 %status, ptr {w.load('ptr', text)}, ptr %place)")
    words = w.alloca("i64", 4)
    for number, word in enumerate(("i64 28", "i64 0", f"ptr {buffer}", f"i32 {_ABORTED}")):
        w.do(f"store {word}, ptr {w.at(words, str(number), 'i64')}")
    create = w.load("ptr", w.at(w.load("ptr", w.at("%call", "16")), "48"))
    w.do(f"store ptr {w.emit(f'call ptr {create}(ptr {words})')}, ptr %out")
    return w.text()


def _scan(ir: str, kind: str, size: int) -> str:
    """`irgrad.status.scan(out, call, rets, meta, word)`: report the first sample that failed, if one did."""
    w = Writer("define internal void @irgrad.status.scan(ptr %out, ptr %call, ptr %rets, ptr %meta, i64 %word) "
               "noinline")
    axes, mask = w.load("i64", "%meta"), w.load("i64", "%meta", w.add("%word", "1"))
    buffer = w.load("ptr", "%rets", w.load("i64", "%meta", "%word"))
    data, dims = w.load("ptr", w.at(buffer, "24")), w.load("ptr", w.at(buffer, "40"))
    total, union, found = w.alloca("i64"), w.alloca("i64"), w.alloca("i64")
    w.do(f"store i64 1, ptr {total}")
    w.do(f"store i64 0, ptr {union}")
    with w.loop(axes) as k:
        w.do(f"store i64 {w.mul(w.emit(f'load i64, ptr {total}'), w.load('i64', dims, k))}, ptr {total}")
    samples = w.emit(f"load i64, ptr {total}")
    with w.loop(samples) as n:  # a loop that vectorises: failures are rare
        value = w.emit(_widened(ir, kind, w.load(ir, data, n, align=size)))
        w.do(f"store i64 {w.emit(f'or i64 {value}, ' + w.emit(f'load i64, ptr {union}'))}, ptr {union}")
    with w.when(w.compare("ne", w.emit(f"load i64, ptr {union}"), "0")):
        w.do(f"store i64 0, ptr {found}")
        with w.forever() as out:
            at = w.emit(f"load i64, ptr {found}")
            value = w.emit(_widened(ir, kind, w.load(ir, data, at, align=size)))
            w.leave(w.compare("ne", value, "0"), out)
            w.do(f"store i64 {w.add(at, '1')}, ptr {found}")
        first = w.emit(f"load i64, ptr {found}")
        status = w.emit(_widened(ir, kind, w.load(ir, data, first, align=size)))
        place = _place(w, axes, mask, dims, samples, first)
        w.do(f"call void @irgrad.status.report(ptr %out, ptr %call, i64 {status}, ptr {place})")
    return w.text()


def _place(w: Writer, axes: str, mask: str, dims: str, samples: str, first: str) -> str:
    """Text such as ` (sample 3)` or ` (sample [0, 3])`: the positions of a sample along the axes of the mask."""
    place, end, rest, block = w.alloca("i8", _PLACE), w.alloca("i64"), w.alloca("i64"), w.alloca("i64")
    w.do(f"store i8 0, ptr {place}")
    w.do(f"store i64 0, ptr {end}")
    w.do(f"store i64 {first}, ptr {rest}")
    w.do(f"store i64 {samples}, ptr {block}")
    named = w.emit(f"call i64 @llvm.ctpop.i64(i64 {mask})")
    single = w.compare("eq", named, "1")
    opening = w.emit(f"select i1 {single}, ptr @irgrad.status.one, ptr @irgrad.status.first")
    closing = w.emit(f"select i1 {single}, ptr @irgrad.status.close, ptr @irgrad.status.bracket")

    def append(form: str, number: str) -> None:
        done = w.emit(f"load i64, ptr {end}")
        left = w.emit(f"sub i64 {_PLACE}, {done}")
        text = f"call {_CALL_TYPE} @snprintf(ptr {w.at(place, done)}, i64 {left}, ptr {form}, i64 {number})"
        wrote = w.emit(f"sext i32 {w.emit(text)} to i64")
        w.do(f"store i64 {w.emit(f'call i64 @llvm.umin.i64(i64 {w.add(done, wrote)}, i64 {_PLACE - 1})')}, ptr {end}")

    with w.loop(axes) as k:
        step = w.emit(f"udiv i64 {w.emit(f'load i64, ptr {block}')}, {w.load('i64', dims, k)}")
        now = w.emit(f"load i64, ptr {rest}")
        digit = w.emit(f"udiv i64 {now}, {step}")
        w.do(f"store i64 {w.emit(f'urem i64 {now}, {step}')}, ptr {rest}")
        w.do(f"store i64 {step}, ptr {block}")
        bit = w.emit(f"and i64 {w.emit(f'lshr i64 {mask}, {k}')}, 1")
        with w.when(w.compare("ne", bit, "0")):
            fresh = w.compare("eq", w.emit(f"load i64, ptr {end}"), "0")
            append(w.emit(f"select i1 {fresh}, ptr {opening}, ptr @irgrad.status.next"), digit)
    with w.when(w.compare("ne", w.emit(f"load i64, ptr {end}"), "0")):
        append(closing, "0")
    return place
