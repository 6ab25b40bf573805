"""Calls whose tape passes half of the free memory begin anew in another handler, with states in place of the tape.

A handler that is told a limit asks Python (once: the answer is another handler, for the same words of `meta`) when a
tape passes it, and goes on there. It remembers the last such calls by their sizes and integers, and goes there at once
when one comes again. Results and operands of such a handler share no memory: what it began it can begin anew.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from irgrad.engine.codegen.jit import Compiled
from irgrad.engine.differentiate.tape.long_tapes import WholeTape
from irgrad.engine.kernel.pages import free_memory
from irgrad.engine.kernel.programs import Program
from irgrad.engine.runtime.arena import LIMIT
from irgrad.engine.runtime.ir_writer import Writer
from irgrad.engine.runtime.tape_memory import PassedLimit, free_record, out_of_tape
from irgrad.engine.signature.prototype import quoted

__all__ = ["ASK", "bound", "is_bounded", "limited"]

ASK = "irgrad.bound.ask"
"""Tells a handler whom it asks: a function of a record and of a cell, where it puts the address of another handler (and
returns nothing: what a callback returns is undefined where a signal's handler raises in it)."""
_BEFORE = """
  %limit.known = call ptr @irgrad.bound.known(ptr %args, ptr %array, ptr %meta)
  %limit.elsewhere = icmp ne ptr %limit.known, null
  br i1 %limit.elsewhere, label %limit.there, label %limit.here
limit.there:
  call void @free(ptr MEMORY)
  %limit.found = call ptr %limit.known(ptr %call)
  ret ptr %limit.found
limit.here:"""
_BEHIND = """
  %limit.again = call ptr @irgrad.bound.again(ptr %args, ptr %array, ptr %meta, ptr %tape)
  %limit.states = icmp ne ptr %limit.again, null
  br i1 %limit.states, label %limit.restart, label %limit.report
limit.restart:
  %limit.restarted = call ptr %limit.again(ptr %call)
  ret ptr %limit.restarted
limit.report:"""
_WORDS = 5  # of the record of a failure
_KEPT = 16  # calls that are remembered
_ASKED: list[Any] = []  # what handlers call lives as long as the process, as they do
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def is_bounded(program: Program) -> bool:
    """Whether the tape of a program has a limit where nothing is said."""
    return program.source.options.bounded and any(s.derivative in ("vjp", "pullback") for s in program.word)


def limited(name: str, text: str, memory: str, integers: Sequence[tuple[int, int, int]] | None) -> str:
    """The text of the handler of a name, with its places BEFORE (in front of the call) and EXHAUSTED (where there was
    no memory) filled in, and what these call; nothing is there where `integers` (see `_limit_text`) is None.

    memory: what is freed
    """
    before, behind = ("", "") if integers is None else (_BEFORE.replace("MEMORY", memory), _BEHIND)
    text = text.replace("BEFORE", before).replace("EXHAUSTED", behind)
    return text if integers is None else text + _limit_text(name, integers)


def _limit_text(name: str, integers: Sequence[tuple[int, int, int]]) -> str:
    """`irgrad.bound.known(args, array, meta)` and `irgrad.bound.again(args, array, meta, record)`, each null or another
    handler.

    integers: of each integer scalar the word of `meta` that holds the number of its operand, the bytes of a value, and
    the word that is 0 where there is such an operand (-1: the number is not negative then)
    """
    return "\n".join([
        "@irgrad.bound.other = internal global ptr null, align 8",
        "@irgrad.bound.asked = internal global ptr null, align 8",
        f"@irgrad.bound.calls = internal global [{_KEPT} x i64] zeroinitializer, align 8",
        "@irgrad.bound.next = internal global i64 0, align 8",
        _ask(), _digest(integers), _known(), _again(name),
    ])  # fmt: skip


def _ask() -> str:
    w = Writer(f"define void @{ASK}(ptr %function)")
    w.do("store atomic ptr %function, ptr @irgrad.bound.asked release, align 8")
    return w.text()


def _digest(integers: Sequence[tuple[int, int, int]]) -> str:
    """Of the words of a call and of its integers (FNV-1a, by words of 64 bits); never 0."""
    w = Writer("define internal i64 @irgrad.bound.digest(ptr %args, ptr %array, ptr %meta) noinline")
    cell = w.alloca("i64")
    w.do(f"store i64 -3750763034362895579, ptr {cell}")

    def mix(word: str) -> None:
        mixed = w.emit(f"xor i64 {w.load('i64', cell)}, {word}")
        w.do(f"store i64 {w.mul(mixed, '1099511628211')}, ptr {cell}")

    with w.loop(w.load("i64", "%array", 1)) as word:
        mix(w.load("i64", "%meta", word))
    for number, size, there in integers:
        operand = w.load("i64", "%meta", number)
        used = w.compare("eq", w.load("i64", "%meta", there), "0") if there >= 0 else w.compare("sge", operand, "0")
        with w.when(used):
            data = w.emit(f"call ptr @irgrad.buffer(ptr %args, i64 {operand})")
            value = w.emit(f"load i{8 * size}, ptr {data}, align 1")
            mix(value if size == 8 else w.emit(f"zext i{8 * size} {value} to i64"))
    return w.text(f"i64 {w.emit('or i64 1, ' + w.load('i64', cell))}")


def _known() -> str:
    w = Writer("define internal ptr @irgrad.bound.known(ptr %args, ptr %array, ptr %meta)")
    other = w.emit("load atomic ptr, ptr @irgrad.bound.other acquire, align 8")
    found = w.alloca("ptr")
    w.do(f"store ptr null, ptr {found}")
    with w.when(w.emit(f"icmp ne ptr {other}, null")):
        digest = w.emit("call i64 @irgrad.bound.digest(ptr %args, ptr %array, ptr %meta)")
        with w.loop(str(_KEPT)) as n:
            cell = w.at("@irgrad.bound.calls", n, "i64")
            seen = w.emit(f"load atomic i64, ptr {cell} monotonic, align 8")
            with w.when(w.compare("eq", seen, digest)):
                w.do(f"store ptr {other}, ptr {found}")
    return w.text(f"ptr {w.load('ptr', found)}")


def _again(name: str) -> str:
    """The handler itself begins anew where it has no limit any more."""
    w = Writer("define internal ptr @irgrad.bound.again(ptr %args, ptr %array, ptr %meta, ptr %record) noinline cold")
    found = w.alloca("ptr")
    w.do(f"store ptr null, ptr {found}")
    asked = w.emit("load atomic ptr, ptr @irgrad.bound.asked acquire, align 8")
    full = w.compare("sge", w.load("i64", "%record", 2), "-1")  # and no signal, nor another end of a loop
    with w.when(w.emit(f"and i1 {full}, {w.emit(f'icmp ne ptr {asked}, null')}")):
        w.do(f"call void {asked}(ptr %record, ptr {found})")
    other = w.load("ptr", found)
    another = w.emit(f"icmp ne ptr {other}, @{quoted(name)}")
    with w.when(w.emit(f"and i1 {another}, {w.emit(f'icmp ne ptr {other}, null')}")):
        digest = w.emit("call i64 @irgrad.bound.digest(ptr %args, ptr %array, ptr %meta)")
        turn = w.emit("atomicrmw add ptr @irgrad.bound.next, i64 1 monotonic, align 8")
        cell = w.at("@irgrad.bound.calls", w.emit(f"urem i64 {turn}, {_KEPT}"), "i64")
        w.do(f"store atomic i64 {digest}, ptr {cell} monotonic, align 8")
        w.do(f"store atomic ptr {other}, ptr @irgrad.bound.other release, align 8")
    return w.text(f"ptr {other}")


def bound(
    program: Program, own: tuple[Compiled, int], handler: Callable[[Program], tuple[Compiled, int] | None],
    calls: int = 1, lanes: int = 1,
) -> None:  # fmt: skip
    """Tell a handler its limit: half of the free memory, shared by as many calls as run at a time.

    own:     machine code and address of the handler
    handler: the same of the program with states; None where that cannot run the same calls: the limit goes, then
    lanes:   samples of a call
    """
    compiled = own[0]
    limit = (free_memory() or 0) // (2 * calls)
    if not limit or not compiled.has(LIMIT) or not compiled.has(ASK):
        return
    made: list[tuple[Compiled, int]] = []

    def other(address: int, cell: int) -> None:
        try:
            error = _passed(program.source.name, address, limit)
            if error is None:
                return
            if not made:
                from irgrad.engine.kernel.checkpoints import keeping_states

                found = handler(keeping_states(program, limit, error, calls, lanes=lanes))
                if found is None:
                    compiled.function(LIMIT, None, ctypes.c_int64)(-1)
                    warnings.warn(WholeTape(
                        f"samples of a batch of `{program.source.name}` run as lanes of vectors under JAX, with a tape "
                        'of all iterations: say tape_memory="512MB", or more'), stacklevel=2)  # fmt: skip
                made.append(found or own)
            ctypes.c_void_p.from_address(cell).value = made[0][1]
            if ctypes.c_int64.from_address(address + 8 * (_WORDS - 1)).value:
                free_record(address)
        except BaseException as error:  # the call then fails, with the words of the record
            print(f"irgrad: `{program.source.name}` with states in place of its tape: {error}", file=sys.stderr)

    asked = _CALLBACK(other)
    _ASKED.append(asked)
    compiled.function(LIMIT, None, ctypes.c_int64)(limit)
    compiled.function(ASK, None, ctypes.c_void_p)(ctypes.cast(asked, ctypes.c_void_p))


def _passed(name: str, address: int, limit: int) -> PassedLimit | None:
    """The error of a record, which is not freed, where a tape passed the limit."""
    copy = (ctypes.c_int64 * _WORDS).from_buffer_copy(ctypes.string_at(address, 8 * _WORDS))
    copy[_WORDS - 1] = 0
    error = out_of_tape(name, ctypes.addressof(copy), limit)
    return error if isinstance(error, PassedLimit) else None
