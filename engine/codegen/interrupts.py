"""Signals during native calls: Ctrl-C stops a call, and a call that takes long tells where it is.

A thread sets the flag that loops ask (`polls.py`) ten times a second while calls run, twice while none does. The loop
that finds it set on the main thread lets Python's handlers of signals run, natively: in a callback written in Python
they would run before its first line, where no `try` can be. What a handler raises is kept and raised by the call.

XLA's handlers run on threads of its own, while the main thread waits for them where no handler of Python's can run.
There Ctrl-C is counted where the system delivers it, before Python's handler gets it, and a call that began before
the last one ends; Python raises KeyboardInterrupt when XLA's error has come back. That is for the handler that Python
has by default: what another one does is not known before it runs. On the main thread XLA's handlers are as any call.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from irgrad.engine.codegen import symbols
from irgrad.engine.codegen.symbols import MEET

__all__ = ["count_interrupts", "meet", "raised", "sampled"]

STATE, TICK, SAID = "irgrad.stop.words", "irgrad.stop.ask", "irgrad.stop.said"
_ENTER, _LEAVE, _NOTE = "irgrad.stop.enter", "irgrad.stop.leave", "irgrad.stop.note"

_OFTEN, _SELDOM = 0.1, 0.5  # seconds
_, _MAIN, _RAISED, _CALLS, _URGENT, _GUARD, _ENTERS, _LEAVES = range(8)
"""Words of the state: the guard of the main thread's innermost call, ticks for which the flag stays set since a signal
has come, the functions that calls of handlers begin and end with."""
_MEMORY = (ctypes.c_int64 * 16)()
_WORDS = (ctypes.c_int64 * 8).from_address(ctypes.addressof(_MEMORY) + -ctypes.addressof(_MEMORY) % 64)
_SLOTS, _WIDTH = 64, 4
_CALLED = (ctypes.c_int64 * (_SLOTS * _WIDTH + 3))()
"""Calls of handlers: guard (0: nobody's), thread, number of the call, signals before it. Behind them the number of
signals, the number of calls, and the handler that the system called before."""
_SIGNALS, _NUMBER, _BEFORE = range(_SLOTS * _WIDTH, _SLOTS * _WIDTH + 3)
_PLACE = ctypes.create_string_buffer(256)
"""The loop that asked last. It is a copy: the unit that has the text may be freed meanwhile."""
_LOCK = threading.Lock()
_UNIT: list[Any] = []  # it stays as long as the process
_CALLS_TABLE = "irgrad.stop.calls"
_TEXT = f"""
@{STATE} = external global [8 x i64]
@{SAID} = external global [{len(_PLACE)} x i8]
@{_CALLS_TABLE} = external global [{len(_CALLED)} x i64]
@nowhere = private constant [1 x i8] zeroinitializer
declare ptr @strncpy(ptr, ptr, i64)
declare i64 @pthread_self()
declare ptr @__errno_location()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @PyErr_SetObject(ptr, ptr)
declare i32 @Py_AddPendingCall(ptr, ptr)
declare void @Py_DecRef(ptr)

; the innermost call of a handler on this thread (stacks grow downwards), null where there is none
define internal ptr @called(i64 %me) noinline nounwind {{
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %best = phi ptr [ null, %entry ], [ %now, %on ]
  %least = phi i64 [ -1, %entry ], [ %low, %on ]
  %at = mul i64 %i, {_WIDTH}
  %slot = getelementptr i64, ptr @{_CALLS_TABLE}, i64 %at
  %guard = load atomic i64, ptr %slot monotonic, align 8
  %threadp = getelementptr i64, ptr %slot, i64 1
  %thread = load atomic i64, ptr %threadp monotonic, align 8
  %used = icmp ne i64 %guard, 0
  %mine = icmp eq i64 %thread, %me
  %both = and i1 %used, %mine
  %below = icmp ult i64 %guard, %least
  %take = and i1 %both, %below
  %now = select i1 %take, ptr %slot, ptr %best
  %low = select i1 %take, i64 %guard, i64 %least
  br label %on
on:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {_SLOTS}
  br i1 %more, label %each, label %out
out:
  ret ptr %now
}}

define ptr @{_ENTER}(ptr %guard) noinline nounwind {{
entry:
  %number = ptrtoint ptr %guard to i64
  %me = call i64 @pthread_self()
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %at = mul i64 %i, {_WIDTH}
  %slot = getelementptr i64, ptr @{_CALLS_TABLE}, i64 %at
  %seen = load atomic i64, ptr %slot monotonic, align 8
  %free = icmp eq i64 %seen, 0
  br i1 %free, label %try, label %on
try:
  %threadp = getelementptr i64, ptr %slot, i64 1
  %swap = cmpxchg ptr %slot, i64 0, i64 %number acq_rel monotonic, align 8
  %got = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %got, label %mine, label %on
mine:
  store atomic i64 %me, ptr %threadp monotonic, align 8
  %countp = getelementptr i64, ptr @{_CALLS_TABLE}, i64 {_NUMBER}
  %count = atomicrmw add ptr %countp, i64 1 monotonic, align 8
  %slotcount = getelementptr i64, ptr %slot, i64 2
  store atomic i64 %count, ptr %slotcount monotonic, align 8
  %signalsp = getelementptr i64, ptr @{_CALLS_TABLE}, i64 {_SIGNALS}
  %signals = load atomic i64, ptr %signalsp monotonic, align 8
  %before = getelementptr i64, ptr %slot, i64 3
  store i64 %signals, ptr %before, align 8
  ret ptr %slot
on:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {_SLOTS}
  br i1 %more, label %each, label %none
none:
  ret ptr null
}}

define void @{_LEAVE}(ptr %slot) noinline nounwind {{
  %none = icmp eq ptr %slot, null
  br i1 %none, label %out, label %free
free:
  %threadp = getelementptr i64, ptr %slot, i64 1
  store atomic i64 0, ptr %threadp monotonic, align 8
  store atomic i64 0, ptr %slot release, align 8
  br label %out
out:
  ret void
}}

; what the system calls at Ctrl-C: the signal is counted, then it goes to Python's handler
define void @{_NOTE}(i32 %signal, ptr %how, ptr %where) noinline nounwind {{
  %signalsp = getelementptr i64, ptr @{_CALLS_TABLE}, i64 {_SIGNALS}
  %old = atomicrmw add ptr %signalsp, i64 1 monotonic, align 8
  %urgentp = getelementptr i64, ptr @{STATE}, i64 {_URGENT}
  store atomic i64 10, ptr %urgentp monotonic, align 8
  store atomic i32 1, ptr @{STATE} monotonic, align 8
  %beforep = getelementptr i64, ptr @{_CALLS_TABLE}, i64 {_BEFORE}
  %before = load ptr, ptr %beforep, align 8
  call void %before(i32 %signal, ptr %how, ptr %where)
  ret void
}}

; raises on the main thread, once its own code runs again, what a handler raised during a call of XLA's
define i32 @late(ptr %error) noinline nounwind {{
  %kindp = getelementptr i8, ptr %error, i64 8
  %kind = load ptr, ptr %kindp, align 8
  call void @PyErr_SetObject(ptr %kind, ptr %error)
  call void @Py_DecRef(ptr %error)
  ret i32 -1
}}

define ptr @{TICK}(ptr %place) noinline nounwind {{
entry:
  %kind = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  %urgentp = getelementptr i64, ptr @{STATE}, i64 {_URGENT}
  %urgent = load atomic i64, ptr %urgentp monotonic, align 8
  %hurry = icmp ne i64 %urgent, 0
  %flag = zext i1 %hurry to i32
  store atomic i32 %flag, ptr @{STATE} monotonic, align 8
  %me = call i64 @pthread_self()
  %slot = call ptr @called(i64 %me)
  %handled = icmp ne ptr %slot, null
  br i1 %handled, label %handler, label %own
handler:
  %inner = load ptr, ptr %slot, align 8
  br label %own
own:
  %innermost = phi ptr [ null, %entry ], [ %inner, %handler ]
  %mainp = getelementptr i8, ptr @{STATE}, i64 8
  %main = load i64, ptr %mainp, align 8
  %waits = icmp eq i64 %me, %main
  br i1 %waits, label %here, label %there
there:
  br i1 %handled, label %count, label %on
count:
  %text0 = call ptr @placed(ptr %place)
  %beforep = getelementptr i64, ptr %slot, i64 3
  %before = load i64, ptr %beforep, align 8
  %signalsp = getelementptr i64, ptr @{_CALLS_TABLE}, i64 {_SIGNALS}
  %signals = load atomic i64, ptr %signalsp monotonic, align 8
  %came = icmp ne i64 %before, %signals
  %stop = select i1 %came, ptr %innermost, ptr null
  ret ptr %stop
here:
  %guardp = getelementptr i8, ptr @{STATE}, i64 40
  %guard = load ptr, ptr %guardp, align 8
  %outer = ptrtoint ptr %guard to i64
  %last = sub i64 %outer, 1
  %number = ptrtoint ptr %innermost to i64
  %least = sub i64 %number, 1
  %nested = icmp ult i64 %least, %last
  %to = select i1 %nested, ptr %innermost, ptr %guard
  %can = icmp ne ptr %to, null
  br i1 %can, label %ask, label %on
ask:
  %errnop = call ptr @__errno_location()
  %errno = load i32, ptr %errnop, align 4
  %text1 = call ptr @placed(ptr %place)
  %held = call i32 @PyGILState_Ensure()
  %failed = call i32 @PyErr_CheckSignals()
  %well = icmp eq i32 %failed, 0
  br i1 %well, label %out, label %keep
keep:
  call void @PyErr_Fetch(ptr %kind, ptr %value, ptr %trace)
  call void @PyErr_NormalizeException(ptr %kind, ptr %value, ptr %trace)
  %error = load ptr, ptr %value, align 8
  %class = load ptr, ptr %kind, align 8
  call void @Py_DecRef(ptr %class)
  %frames = load ptr, ptr %trace, align 8
  call void @Py_DecRef(ptr %frames)
  br i1 %nested, label %later, label %now
later:
  %added = call i32 @Py_AddPendingCall(ptr @late, ptr %error)
  br label %out
now:
  %raisedp = getelementptr i8, ptr @{STATE}, i64 16
  store ptr %error, ptr %raisedp, align 8
  br label %out
out:
  %stopped = phi ptr [ null, %ask ], [ %to, %later ], [ %to, %now ]
  call void @PyGILState_Release(i32 %held)
  store i32 %errno, ptr %errnop, align 4
  ret ptr %stopped
on:
  ret ptr null
}}

define internal ptr @placed(ptr %place) noinline nounwind {{
  %unknown = icmp eq ptr %place, null
  %text = select i1 %unknown, ptr @nowhere, ptr %place
  %to = call ptr @strncpy(ptr @{SAID}, ptr %text, i64 {len(_PLACE) - 1})
  ret ptr %to
}}
"""


def meet(unit: Any, compile_module: Callable[[str, list[str]], Any]) -> None:
    """Tell a unit with polls whom they ask, and begin to set the flag; `compile_module` makes what they ask."""
    with _LOCK:
        if not _UNIT:
            symbols.define(STATE, ctypes.addressof(_WORDS))
            symbols.define(SAID, ctypes.addressof(_PLACE))
            symbols.define(_CALLS_TABLE, ctypes.addressof(_CALLED))
            made = compile_module(_TEXT, [TICK, _ENTER, _LEAVE, _NOTE])
            _UNIT.append(made)
            _begin()
            os.register_at_fork(after_in_child=_begin)
        told = unit.function(MEET, None, ctypes.c_void_p, ctypes.c_void_p)
        told(ctypes.addressof(_WORDS), _UNIT[0].address(TICK))


def count_interrupts() -> None:
    """From now on calls of XLA's handlers can be stopped."""
    with _LOCK:
        if _UNIT and not _WORDS[_ENTERS]:
            _WORDS[_LEAVES], _WORDS[_ENTERS] = _UNIT[0].address(_LEAVE), _UNIT[0].address(_ENTER)
            atexit.register(_restore)
    _listen()


class _Action(ctypes.Structure):
    """`struct sigaction` of Linux' C libraries."""

    _fields_ = (("handler", ctypes.c_void_p), ("mask", ctypes.c_uint64 * 16), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p))  # fmt: skip


_SIGACTION = ctypes.CDLL(None).sigaction
_SIGACTION.argtypes = [ctypes.c_int, ctypes.POINTER(_Action), ctypes.POINTER(_Action)]


def _listen() -> None:
    """Stand before Python's own handler of Ctrl-C, where it is the one by default."""
    if not sys.platform.startswith("linux") or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    action, note = _Action(), _UNIT[0].address(_NOTE)
    if _SIGACTION(signal.SIGINT, None, ctypes.byref(action)) == 0 and action.handler not in (None, 1, note):
        _CALLED[_BEFORE], action.handler = action.handler, note
        _SIGACTION(signal.SIGINT, ctypes.byref(action), None)


def _restore() -> None:
    """Before the process ends: its code goes before its signals do."""
    action = _Action()
    if _SIGACTION(signal.SIGINT, None, ctypes.byref(action)) == 0 and action.handler == _UNIT[0].address(_NOTE):
        action.handler = _CALLED[_BEFORE]
        _SIGACTION(signal.SIGINT, ctypes.byref(action), None)
    _WORDS[_ENTERS] = 0


def _begin() -> None:
    main = threading.main_thread().ident or 0  # what pthread_self() gives
    if _WORDS[_MAIN] != main:  # the first time, or in a child of another thread
        _WORDS[_MAIN], _WORDS[_GUARD] = main, 0
    for slot in range(_SLOTS):  # the calls of a parent's threads
        _CALLED[_WIDTH * slot] = 0
    threading.Thread(target=_ticks, name="irgrad-ticks", daemon=True).start()


def _ticks() -> None:
    call: tuple[int, ...] = ()
    wait, since, due = _OFTEN, 0.0, _SELDOM
    while True:
        time.sleep(wait)
        flag = ctypes.c_int32.from_buffer(_WORDS)
        asked = flag.value == 0 or _WORDS[_URGENT] > 0
        flag.value = 1
        _WORDS[_URGENT] = max(0, _WORDS[_URGENT] - 1)
        if _WORDS[_ENTERS]:
            _listen()
        wait = _OFTEN if asked else min(2 * wait, _SELDOM)
        running = _running()
        if running != call or not (asked and running):
            call, since, due = running, time.monotonic(), _SELDOM
        elif (taken := time.monotonic() - since) > due:
            due = _tell(taken)


def _running() -> tuple[int, ...]:
    """The number of the main thread's call, or of the first that runs of XLA's; empty where none does."""
    if _WORDS[_GUARD]:
        return (_WORDS[_CALLS],)
    calls = [_CALLED[slot + 2] for slot in range(0, _SLOTS * _WIDTH, _WIDTH) if _CALLED[slot]]
    return (min(calls), -1) if calls else ()


def _tell(seconds: float) -> float:
    """Tell where a call is that has taken so long; returns how long it has to take to be told again."""
    from irgrad.engine.support.progress import PATIENCE, enabled

    if seconds <= PATIENCE:
        return PATIENCE
    if not enabled():
        return 2 * seconds
    where = f", now in the loop at {_PLACE.value.decode('utf-8', 'replace')}" if _PLACE.value else ""
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed
        sys.stderr.write(f"irgrad: native code has run for {seconds:.0f} s{where}\n")
        sys.stderr.flush()
    return 2 * seconds


def sampled(call: Callable[[], object], seconds: float, every: float = 0.001) -> tuple[dict[str, int], float]:
    """Run a call of the main thread again and again: how often each loop was the one that asked, by place ("" for one
    without), of samples taken at `every`, and the seconds of a run. What has no loop that asks counts for the next."""
    found: dict[str, int] = {}
    ended = threading.Event()

    def watch() -> None:
        flag = ctypes.c_int32.from_buffer(_WORDS)
        while not ended.is_set():
            flag.value = 1
            time.sleep(every)
            if flag.value == 0 and _WORDS[_GUARD]:
                place = _PLACE.value.decode("utf-8", "replace")
                found[place] = found.get(place, 0) + 1

    watcher = threading.Thread(target=watch, name="irgrad-samples", daemon=True)
    watcher.start()
    runs, begin = 0, time.perf_counter()
    try:
        while runs == 0 or time.perf_counter() - begin < seconds:
            call()
            runs += 1
        taken = (time.perf_counter() - begin) / runs
    finally:
        ended.set()
        watcher.join()
    return found, taken


def raised(record: int) -> BaseException:
    """What a handler of a signal raised while the call ran that has just returned this record, which is freed."""
    from irgrad.engine.runtime.tape_memory import free_record

    if ctypes.c_int64.from_address(record + 32).value:
        free_record(record)
    address, _WORDS[_RAISED] = _WORDS[_RAISED], 0
    if not address:
        return KeyboardInterrupt()
    error: BaseException = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(error))
    return error
