"""What a handler tells XLA where there is no memory for a tape: IR that makes an error of the record of a failure.

The record is what entries and batches return (`engine/runtime/arena.ll`). XLA turns the error into
`jax.errors.JaxRuntimeError`, whose text names the class that NumPy's calls raise.
"""

from __future__ import annotations

from irgrad.engine.codegen.polls import CANCELLED
from irgrad.engine.runtime.ir_writer import Writer, constant_text
from irgrad.engine.runtime.tape_memory import ANOTHER_WAY, APART, INTERRUPTED, LOST, OUTSIDE, THROWN

__all__ = ["LOOK", "report_text"]

_EXHAUSTED = 8  # the code of the error
_ROOM = 700  # characters of the message, without the function's name
LOOK = """
  %full = icmp eq ptr %tape, null
  br i1 %full, label %well, label %exhausted
exhausted:EXHAUSTED
  %outof = alloca ptr
  call void @irgrad.tape.report(ptr %outof, ptr %call, ptr %tape)
  %tapeerror = load ptr, ptr %outof
  ret ptr %tapeerror
well:"""
"""Behind the last use of what was reserved: `%tape` is null, or the handler returns an error."""
_TEXTS = {
    "counted": "irgrad.TapeMemoryError: there is no memory for the tape of `%s`: %lld bytes for %lld iterations of the "
    "loop at %s, beside the %lld bytes that it has%s",
    "uncounted": "irgrad.TapeMemoryError: there is no memory for the tape of `%s`: %lld bytes for an iteration of the "
    "loop at %s, beside the %lld bytes that it has%s",
    "plain": "irgrad.TapeMemoryError: there is no memory for the tape of `%s`: %lld bytes, beside the %lld bytes that "
    "it has%s",
    "another": "irgrad.KernelError: a loop of `%s` ended in another way when its iterations ran again, at %s",
    "apart": "irgrad.KernelError: a pointer of `%s` moves by the distance of two allocations, computed at %s",
    "outside": "irgrad.KernelError: an index of `%s` leaves the array that is a member of its struct, at %s",
    "lost": "irgrad.KernelError: a pointer of `%s` leads where no analysis has seen that it may, at %s",
    "thrown": "irgrad.KernelError: `%s` throws %s, at %s",
    "stopped": "KeyboardInterrupt: a call of `%s` was stopped by a signal",
    "nowhere": "a place that is not known",
    "advice": '; lib.kernel(..., tape_memory="512MB") lets long loops keep states and run iterations again',
}


def report_text(function: str) -> str:
    """`irgrad.tape.report(out, call, record)`: an error of XLA's goes to `out`; the record is freed."""
    w = Writer("define internal void @irgrad.tape.report(ptr %out, ptr %call, ptr %record) noinline cold")
    room = _ROOM + len(function.encode())
    buffer = w.alloca("i8", room)
    wanted, held, count = (w.load("i64", "%record", n) for n in range(3))
    where = w.load("ptr", "%record", 3)
    known = w.emit(f"icmp ne ptr {where}, null")
    finite = w.compare("sge", count, "0")

    def say(form: str, *rest: str) -> None:
        words = ", ".join(("ptr @irgrad.tape.function", f"i64 {wanted}", *rest, f"i64 {held}",
                           "ptr @irgrad.tape.say.advice"))  # fmt: skip
        w.emit(f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {buffer}, i64 {room}, ptr @irgrad.tape.say.{form}, "
               f"{words})")  # fmt: skip

    say("plain")
    with w.when(known):
        say("uncounted", f"ptr {where}")
    with w.when(w.emit(f"and i1 {known}, {finite}")):
        say("counted", f"i64 {count}", f"ptr {where}")
    for code, form in ((ANOTHER_WAY, "another"), (APART, "apart"), (OUTSIDE, "outside"), (LOST, "lost")):
        with w.when(w.compare("eq", count, str(code))):
            w.emit(f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {buffer}, i64 {room}, ptr @irgrad.tape.say.{form}, "
                   f"ptr @irgrad.tape.function, ptr {where})")  # fmt: skip
    with w.when(w.compare("eq", count, str(THROWN))):
        said = w.emit(f"inttoptr i64 {wanted} to ptr")
        place = w.emit(f"select i1 {known}, ptr {where}, ptr @irgrad.tape.say.nowhere")
        w.emit(f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {buffer}, i64 {room}, ptr @irgrad.tape.say.thrown, "
               f"ptr @irgrad.tape.function, ptr {said}, ptr {place})")  # fmt: skip
        w.do(f"call void @free(ptr {said})")
    with w.when(w.compare("eq", count, str(INTERRUPTED))):
        w.emit(f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {buffer}, i64 {room}, ptr @irgrad.tape.say.stopped, "
               f"ptr @irgrad.tape.function)")  # fmt: skip
    with w.when(w.compare("ne", w.load("i64", "%record", 4), "0")):
        w.do("call void @free(ptr %record)")
    words = w.alloca("i64", 4)
    for number, word in enumerate(("i64 28", "i64 0", f"ptr {buffer}", f"i32 {_EXHAUSTED}")):
        w.do(f"store {word}, ptr {w.at(words, str(number), 'i64')}")
    with w.when(w.compare("eq", count, str(INTERRUPTED))):
        w.do(f"store i32 {CANCELLED}, ptr {w.at(words, '3', 'i64')}")
    create = w.load("ptr", w.at(w.load("ptr", w.at("%call", "16")), "48"))
    w.do(f"store ptr {w.emit(f'call ptr {create}(ptr {words})')}, ptr %out")
    texts = [constant_text(f"irgrad.tape.say.{name}", text) for name, text in _TEXTS.items()]
    declared = "declare i32 @snprintf(ptr, i64, ptr, ...)\n"
    return "\n".join(["", *texts, constant_text("irgrad.tape.function", function), declared]) + w.text()
