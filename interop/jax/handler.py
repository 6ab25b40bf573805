"""XLA FFI handlers in LLVM IR: one per derivative program, compiled in this process, valid for every shape.

A handler builds the frame of the program's entry from XLA's buffers. What depends on shapes comes with each call as the
attribute `meta`, an array of i64. Calls with batch axes have handlers of their own (see `batched`). Without any:

    meta   ::= 0, slots, scratch bytes, record*slots, constant data
    record ::= kind, index, source, bytes

    kind 0  the operand `index` itself              kind 1  constant data at meta[index]
    kind 2  the result `index`, from zero           kind 3  the result `index`, copied from operand `source`
    kind 4  scratch at byte `index`, from zero      kind 5  scratch at byte `index`, copied from operand `source`
    kind 6  the result `index`, as it is

The layouts of the structures are those of `xla/ffi/api/c_api.h`, API version 0.1, which jaxlib 0.6 to 0.12 accept.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from irgrad.engine.codegen.polls import HANDLER
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.kernel.host import refuse_hosted
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.serialised_calls import shared_state
from irgrad.engine.runtime.arena import LIMIT
from irgrad.engine.signature.prototype import quoted
from irgrad.engine.signature.slots import Slot
from irgrad.interop.jax.status import checked_text, status_text
from irgrad.interop.jax.tape_limit import ASK, bound, is_bounded, limited
from irgrad.interop.jax.tape_memory import LOOK, report_text

__all__ = [
    "FAIL", "PARTS", "QUERY", "TARGETS", "Target", "handler_text", "in_turn", "integer_bytes", "register",
    "register_text", "target_of",
]  # fmt: skip

_LOCK = threading.Lock()
TARGETS: dict[str, Target] = {}  # by name

PARTS = """
@irgrad.nomem = private unnamed_addr constant [39 x i8] c"irgrad: no memory for scratch buffers\\0A\\00"
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr writeonly, i8, i64, i1 immarg)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly, ptr noalias readonly, i64, i1 immarg)

define internal ptr @irgrad.buffer(ptr %bufs, i64 %index) {
  %bp = getelementptr ptr, ptr %bufs, i64 %index
  %b = load ptr, ptr %bp
  %pp = getelementptr i8, ptr %b, i64 24
  %data = load ptr, ptr %pp
  ret ptr %data
}
"""
"""What every handler needs: an error message, memory, the data of a buffer."""
QUERY = """
define ptr @HANDLER(ptr %call) {
start:
  %extp = getelementptr i8, ptr %call, i64 8
  %ext0 = load ptr, ptr %extp
  br label %chain
chain:
  %ext = phi ptr [ %ext0, %start ], [ %extn, %link ]
  %last = icmp eq ptr %ext, null
  br i1 %last, label %run, label %link
link:
  %typep = getelementptr i8, ptr %ext, i64 8
  %type = load i32, ptr %typep
  %nextp = getelementptr i8, ptr %ext, i64 16
  %extn = load ptr, ptr %nextp
  %query = icmp eq i32 %type, 1
  br i1 %query, label %metadata, label %chain
metadata:
  %mdp = getelementptr i8, ptr %ext, i64 24
  %md = load ptr, ptr %mdp
  %v0 = getelementptr i8, ptr %md, i64 8
  store i64 24, ptr %v0
  %v1 = getelementptr i8, ptr %md, i64 16
  store ptr null, ptr %v1
  %v2 = getelementptr i8, ptr %md, i64 24
  store i32 0, ptr %v2
  %v3 = getelementptr i8, ptr %md, i64 28
  store i32 1, ptr %v3
  %v4 = getelementptr i8, ptr %md, i64 32
  store i32 0, ptr %v4
  ret ptr null
run:
  %argsp = getelementptr i8, ptr %call, i64 72
  %args = load ptr, ptr %argsp
  %retsp = getelementptr i8, ptr %call, i64 112
  %rets = load ptr, ptr %retsp
  %attrsp = getelementptr i8, ptr %call, i64 160
  %attrs = load ptr, ptr %attrsp
  %array = load ptr, ptr %attrs
  %datap = getelementptr i8, ptr %array, i64 16
  %meta = load ptr, ptr %datap
"""
"""The beginning of a handler: it answers the query for its version, else %args, %rets and %meta are there."""
FAIL = """
error:
  %ea = alloca [4 x i64], align 8
  store i64 28, ptr %ea
  %e1 = getelementptr i64, ptr %ea, i64 1
  store i64 0, ptr %e1
  %e2 = getelementptr i64, ptr %ea, i64 2
  store ptr @irgrad.nomem, ptr %e2
  %e3 = getelementptr i64, ptr %ea, i64 3
  store i32 8, ptr %e3
  %apip = getelementptr i8, ptr %call, i64 16
  %api = load ptr, ptr %apip
  %createp = getelementptr i8, ptr %api, i64 48
  %create = load ptr, ptr %createp
  %err = call ptr %create(ptr %ea)
  ret ptr %err
"""
"""The block `error` of a handler, which tells XLA that there is no memory."""

_BODY = """
  %bytesp = getelementptr i64, ptr %meta, i64 2
  %scratchbytes = load i64, ptr %bytesp
  %records = getelementptr i64, ptr %meta, i64 3
  %frame = alloca ptr, i64 SLOTS, align 8
  %needs = icmp ne i64 %scratchbytes, 0
  br i1 %needs, label %reserve, label %ready
reserve:
  %block = call ptr @malloc(i64 %scratchbytes)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %error, label %ready
"""
_CALL = """
ready:
  %scratch = phi ptr [ null, %run ], [ %block, %reserve ]
  br label %slot
slot:
  %s = phi i64 [ 0, %ready ], [ %s1, %placed ]
  %alls = icmp uge i64 %s, SLOTS
  br i1 %alls, label %invoke, label %place
place:
  %ro = shl i64 %s, 2
  %record = getelementptr i64, ptr %records, i64 %ro
  %kind = load i64, ptr %record
  %ip = getelementptr i64, ptr %record, i64 1
  %index = load i64, ptr %ip
  %sp = getelementptr i64, ptr %record, i64 2
  %source = load i64, ptr %sp
  %np = getelementptr i64, ptr %record, i64 3
  %bytes = load i64, ptr %np
  switch i64 %kind, label %operand [
    i64 1, label %constant
    i64 2, label %resultzero
    i64 3, label %resultcopy
    i64 4, label %scratchzero
    i64 5, label %scratchcopy
    i64 6, label %result
  ]
operand:
  %p0 = call ptr @irgrad.buffer(ptr %args, i64 %index)
  br label %placed
constant:
  %p1 = getelementptr i64, ptr %meta, i64 %index
  br label %placed
result:
  %p6 = call ptr @irgrad.buffer(ptr %rets, i64 %index)
  br label %placed
resultzero:
  %p2 = call ptr @irgrad.buffer(ptr %rets, i64 %index)
  br label %zero
scratchzero:
  %p4 = getelementptr i8, ptr %scratch, i64 %index
  br label %zero
zero:
  %pz = phi ptr [ %p2, %resultzero ], [ %p4, %scratchzero ]
  call void @llvm.memset.p0.i64(ptr %pz, i8 0, i64 %bytes, i1 false)
  br label %placed
resultcopy:
  %p3 = call ptr @irgrad.buffer(ptr %rets, i64 %index)
  br label %copy
scratchcopy:
  %p5 = getelementptr i8, ptr %scratch, i64 %index
  br label %copy
copy:
  %pc = phi ptr [ %p3, %resultcopy ], [ %p5, %scratchcopy ]
  %from = call ptr @irgrad.buffer(ptr %args, i64 %source)
  %same = icmp eq ptr %pc, %from
  br i1 %same, label %placed, label %move
move:
  call void @llvm.memcpy.p0.p0.i64(ptr %pc, ptr %from, i64 %bytes, i1 false)
  br label %placed
placed:
  %p = phi ptr [ %p0, %operand ], [ %p1, %constant ], [ %p6, %result ], [ %pz, %zero ], [ %pc, %copy ], [ %pc, %move ]
  %fp = getelementptr ptr, ptr %frame, i64 %s
  store ptr %p, ptr %fp
  %s1 = add i64 %s, 1
  br label %slot
invoke:BEFORE
  %tape = call ptr @ENTRY(ptr %frame)LOOK
  br i1 %needs, label %release, label %end
release:
  call void @free(ptr %scratch)
  br label %end
end:
TAPE
LEAVE
}
"""
_TEMPLATE = PARTS + QUERY + _BODY + FAIL + _CALL


def handler_text(
    name: str, entry: str, slots: int, checked: tuple[str, str] = ("", "  ret ptr null"),
    integers: Sequence[int] | None = None,
) -> str:  # fmt: skip
    """The IR of the handler `name` for a program whose entry and number of slots are given.

    checked: what is done behind the call of the entry, and how the handler returns (see `status.checked_text`)
    integers: of a program whose tape has a limit, the bytes of each slot that is an integer scalar, else 0
    """
    text = _TEMPLATE.replace("LOOK", checked[0]).replace("LEAVE", checked[1]).replace("TAPE", LOOK)
    text = text.replace("@HANDLER", f"@{quoted(name)}").replace("@ENTRY", f"@{quoted(entry)}")
    text = text.replace("SLOTS", str(max(slots, 1))) if slots else text.replace("SLOTS", "0")
    places = None if integers is None else [(4 + 4 * n, size, 3 + 4 * n) for n, size in enumerate(integers) if size]
    return limited(name, text, "%scratch", places) + report_text(name.split(".")[1] if "." in name else name)


_TURNS = """
@irgrad.turn = internal global i32 0, align 4
declare i32 @usleep(i32)
define ptr @HANDLER(ptr %call) {
start:
  br label %ask
ask:
  %seen = cmpxchg ptr @irgrad.turn, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %seen, 1
  br i1 %mine, label %run, label %wait
wait:
  %slept = call i32 @usleep(i32 20)
  br label %ask
run:
  %result = call ptr @INNER(ptr %call) noinline
  store atomic i32 0, ptr @irgrad.turn release, align 4
  ret ptr %result
}
"""


def in_turn(program: Program, name: str, text: str) -> str:
    """The module of a handler of the program, changed where the function keeps data in global variables: XLA runs
    devices, and programs that do not wait for each other, at the same time, and such calls take turns."""
    if not shared_state(program.stage.text):
        return text
    inner, outer = quoted(f"{name}.in_turn"), quoted(name)
    text = text.replace(f"define ptr @{outer}(", f"define internal ptr @{inner}(")
    return joined(text, _TURNS.replace("@HANDLER", f"@{outer}").replace("@INNER", f"@{inner}"))


class Target(NamedTuple):
    """A registered handler: its IR, the option it was compiled with, its machine code, and how many threads share a
    loop at most (0: as many as there are cores)."""

    text: str
    strict_fp: bool
    compiled: Any
    threads: int = 0


def register(program: Program) -> str:
    """Compile the handler of a program, register it with XLA and return the target's name.

    The name is a digest of the program, so that XLA's persistent cache finds the target again in another process. A
    target can be neither renamed nor removed: its code lives as long as the process.
    """
    from irgrad.engine.codegen.cache import fingerprint

    key, reports, options = program.key, status_text(program), program.source.options
    if reports:
        key = fingerprint(key, reports)
    if options.threads:  # which is no part of the code, but of what its handler has been told
        key = fingerprint(key, f"threads={options.threads}")
    if is_bounded(program):
        key = fingerprint(key, "bounded")
    name = f"irgrad.{program.source.name}.{key[:32]}"
    if name not in TARGETS:
        refuse_hosted(program.stage.text, repr(program), "JAX")
        integers = integer_bytes(program.slots) if is_bounded(program) else None
        handler = handler_text(name, program.entry_symbol, len(program.slots), checked_text(program), integers)
        text = joined(program.ir, handler + reports)
        if options.threads:
            from irgrad.engine.kernel.shared_loops import warn_of_one_thread

            warn_of_one_thread(program)
        register_text(name, in_turn(program, name, text), options.strict_fp, HANDLER, options.threads)
        bound(program, target_of(name), lambda other: target_of(register(other)))
    return name


def target_of(name: str) -> tuple[Any, int]:
    """The machine code of a handler and its address."""
    compiled = TARGETS[name].compiled
    return compiled, int(compiled.address(name))


def integer_bytes(slots: Sequence[Slot]) -> list[int]:
    """The bytes of each slot that is an integer scalar, 0 for others."""
    return [0 if slot.parameter.is_array or slot.differentiable or slot.steps or slot.role != "in" else slot.dtype.size
            for slot in slots]  # fmt: skip


def register_text(
    name: str, text: str, strict_fp: bool, stoppable: bool | str = False, threads: int = 0
) -> None:
    """Compile a handler's module and register it under its name, once in a process. stoppable: see `compile_module`;
    threads: how many share one of its loops at most, of a module that has shared loops."""
    import ctypes

    import jax

    from irgrad.engine.codegen import team
    from irgrad.engine.codegen.jit import compile_module

    with _LOCK:
        if name not in TARGETS:
            entries, hands = [name, *(row for row in (LIMIT, ASK) if f"@{row}(" in text)], max(threads, 0)
            if f"@{team.RUN}(" in text:
                team.provide()
                entries.append(team.THREADS)
            compiled = compile_module(text, entries, strict_fp=strict_fp, stoppable=stoppable)
            if team.THREADS in entries:
                compiled.function(team.THREADS, None, ctypes.c_int64)(hands)
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(compiled.address(name)), platform="cpu")
            TARGETS[name] = Target(text, strict_fp, compiled, hands)
