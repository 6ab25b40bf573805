"""Threads for batched calls: chunks are shared with tasks on XLA's own thread pool.

XLA runs the calls of one device one after another, so a batch that takes long uses the pool's threads itself. The
caller runs the first chunk and takes its time; when the rest is worth it, tasks are scheduled that claim chunks as the
caller does. The caller never waits for a task that has not begun, so a pool that is busy (with other devices of a
`shard_map`, say) cannot block it: it waits only until the chunks that were claimed are completed. A task that begins
later finds nothing to do. The memory of a call is counted and freed by the last one that uses it.

    control words behind those of the driver: `WORDS`
"""

from __future__ import annotations

from irgrad.engine.runtime.batch_driver import CONTROL, WORK
from irgrad.engine.runtime.ir_writer import Writer

__all__ = ["ENOUGH", "WORDS", "sharing_text"]

WORDS: tuple[str, ...] = (*CONTROL, "began", "users", "memory", "meta", "bases")
"""Of the control block: helpers that began, users of the memory, the memory, `meta` and `bases` for the driver."""

ENOUGH = 600_000
"""Cycles of remaining work from which tasks are scheduled."""

_API, _CONTEXT = 16, 24  # in the call frame
_DESTROY, _SCHEDULE, _THREADS = 48 + 8 * 2, 48 + 8 * 11, 48 + 8 * 12  # in the function table


def sharing_text() -> str:
    """`irgrad.batch.share(call, control, chunks, helpers)` runs all chunks, then gives up the caller's use of the
    memory. Its result is null, or the record of a failure."""
    return "\n".join(["declare i32 @sched_yield()", "declare i64 @llvm.readcyclecounter()",
                      "declare i64 @llvm.smax.i64(i64, i64)", _drop(), _task(), _share()])


def _word(w: Writer, name: str) -> str:
    return w.at("%control", str(WORDS.index(name)), "i64")


def _drop() -> str:
    w = Writer("define internal void @irgrad.batch.drop(ptr %control) noinline")
    users = w.emit(f"atomicrmw sub ptr {_word(w, 'users')}, i64 1 acq_rel, align 8")
    with w.when(w.compare("eq", users, "1")):
        w.do(f"call void @free(ptr {w.load('ptr', _word(w, 'memory'))})")
    return w.text()


def _task() -> str:
    w = Writer("define internal void @irgrad.batch.task(ptr %control)")
    number = w.emit(f"atomicrmw add ptr {_word(w, 'began')}, i64 1 monotonic, align 8")
    meta, bases = w.load("ptr", _word(w, "meta")), w.load("ptr", _word(w, "bases"))
    w.do(f"call void @{WORK}(ptr %control, ptr {meta}, ptr {bases}, i64 {w.add(number, '1')}, i64 -1)")
    w.do("call void @irgrad.batch.drop(ptr %control)")
    return w.text()


def _share() -> str:
    w = Writer("define internal ptr @irgrad.batch.share(ptr %call, ptr %control, i64 %chunks, i64 %helpers) noinline")
    meta, bases = w.load("ptr", _word(w, "meta")), w.load("ptr", _word(w, "bases"))
    start = w.emit("call i64 @llvm.readcyclecounter()")
    w.do(f"call void @{WORK}(ptr %control, ptr {meta}, ptr {bases}, i64 0, i64 1)")
    taken = w.emit(f"sub i64 {w.emit('call i64 @llvm.readcyclecounter()')}, {start}")
    with w.when(w.compare("ugt", "%chunks", "1")):
        left = w.emit("sub i64 %chunks, 1")
        long = w.compare("uge", w.mul(taken, left), str(ENOUGH))
        with w.when(w.emit(f"and i1 {long}, {w.compare('ne', '%helpers', '0')}")):
            _schedule(w, left)
        w.do(f"call void @{WORK}(ptr %control, ptr {meta}, ptr {bases}, i64 0, i64 -1)")
        with w.forever() as done:
            completed = w.emit(f"load atomic i64, ptr {_word(w, 'completed')} acquire, align 8")
            w.leave(w.compare("uge", completed, "%chunks"), done)
            w.emit("call i32 @sched_yield()")
    failure = w.load("ptr", _word(w, "failure"))
    w.do("call void @irgrad.batch.drop(ptr %control)")
    return w.text(f"ptr {failure}")


def _schedule(w: Writer, left: str) -> None:
    """Schedule as many tasks as there are other threads in the pool, chunks left, and room for."""
    api = w.load("ptr", w.at("%call", str(_API)))
    context = w.load("ptr", w.at("%call", str(_CONTEXT)))
    count = w.alloca("i64")
    w.do(f"store i64 1, ptr {count}")
    _ask(w, api, _THREADS, ("i64 32", "ptr null", f"ptr {context}", f"ptr {count}"))
    others = w.emit(f"sub i64 {w.emit(f'load i64, ptr {count}')}, 1")
    positive = w.emit(f"call i64 @llvm.smax.i64(i64 {others}, i64 0)")
    fewer = w.emit(f"call i64 @llvm.umin.i64(i64 {positive}, i64 {left})")
    with w.loop(w.emit(f"call i64 @llvm.umin.i64(i64 {fewer}, i64 %helpers)")):
        w.emit(f"atomicrmw add ptr {_word(w, 'users')}, i64 1 monotonic, align 8")
        words = ("i64 40", "ptr null", f"ptr {context}", "ptr @irgrad.batch.task", "ptr %control")
        failed = _ask(w, api, _SCHEDULE, words)
        with w.when(failed):  # the caller still uses the memory: this cannot be the last
            w.emit(f"atomicrmw sub ptr {_word(w, 'users')}, i64 1 monotonic, align 8")


def _ask(w: Writer, api: str, at: int, words: tuple[str, ...]) -> str:
    """Call a function of XLA's table; gives whether it failed. Its error is destroyed."""
    arguments = w.alloca("i64", len(words))
    for number, word in enumerate(words):
        w.do(f"store {word}, ptr {w.at(arguments, str(number), 'i64')}")
    error = w.emit(f"call ptr {w.load('ptr', w.at(api, str(at)))}(ptr {arguments})")
    failed = w.emit(f"icmp ne ptr {error}, null")
    with w.when(failed):
        gone = w.alloca("i64", 3)
        for number, word in enumerate(("i64 24", "ptr null", f"ptr {error}")):
            w.do(f"store {word}, ptr {w.at(gone, str(number), 'i64')}")
        w.do(f"call void {w.load('ptr', w.at(api, str(_DESTROY)))}(ptr {gone})")
    return failed
