"""Signals during native calls: Ctrl-C stops a call of the main thread, and a call that takes long tells where it is.

A thread sets the flag that loops ask (`polls.py`) ten times a second while calls run, twice while none does. The loop
that finds it set lets Python's handlers of signals run, natively: in a callback written in Python they would run before
its first line, where no `try` can be. What a handler raises is kept and raised by the call.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from irgrad.engine.codegen import symbols
from irgrad.engine.codegen.symbols import MEET

__all__ = ["meet", "raised"]

STATE, TICK, SAID = "irgrad.stop.words", "irgrad.stop.ask", "irgrad.stop.said"

_OFTEN, _SELDOM = 0.1, 0.5  # seconds
_, _MAIN, _RAISED, _CALLS, _, _GUARD = range(6)  # words of the state; the guard of the innermost call
_MEMORY = (ctypes.c_int64 * 16)()
_WORDS = (ctypes.c_int64 * 8).from_address(ctypes.addressof(_MEMORY) + -ctypes.addressof(_MEMORY) % 64)
_PLACE = ctypes.create_string_buffer(256)
"""The loop that asked last. It is a copy: the unit that has the text may be freed meanwhile."""
_LOCK = threading.Lock()
_UNIT: list[Any] = []  # it stays as long as the process
_TEXT = f"""
@{STATE} = external global [8 x i64]
@{SAID} = external global [{len(_PLACE)} x i8]
@nowhere = private constant [1 x i8] zeroinitializer
declare ptr @strncpy(ptr, ptr, i64)
declare i64 @pthread_self()
declare ptr @__errno_location()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @Py_DecRef(ptr)

define i32 @{TICK}(ptr %place) noinline nounwind {{
entry:
  %kind = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  store atomic i32 0, ptr @{STATE} monotonic, align 8
  %me = call i64 @pthread_self()
  %mainp = getelementptr i8, ptr @{STATE}, i64 8
  %main = load i64, ptr %mainp, align 8
  %waits = icmp eq i64 %me, %main
  %guardp = getelementptr i8, ptr @{STATE}, i64 40
  %guard = load ptr, ptr %guardp, align 8
  %under = icmp ne ptr %guard, null
  %can = select i1 %waits, i1 %under, i1 false
  br i1 %can, label %ask, label %on
ask:
  %errnop = call ptr @__errno_location()
  %errno = load i32, ptr %errnop, align 4
  %unknown = icmp eq ptr %place, null
  %text = select i1 %unknown, ptr @nowhere, ptr %place
  call ptr @strncpy(ptr @{SAID}, ptr %text, i64 {len(_PLACE) - 1})
  %held = call i32 @PyGILState_Ensure()
  %failed = call i32 @PyErr_CheckSignals()
  %well = icmp eq i32 %failed, 0
  br i1 %well, label %out, label %keep
keep:
  call void @PyErr_Fetch(ptr %kind, ptr %value, ptr %trace)
  call void @PyErr_NormalizeException(ptr %kind, ptr %value, ptr %trace)
  %error = load ptr, ptr %value, align 8
  %raisedp = getelementptr i8, ptr @{STATE}, i64 16
  store ptr %error, ptr %raisedp, align 8
  %class = load ptr, ptr %kind, align 8
  call void @Py_DecRef(ptr %class)
  %frames = load ptr, ptr %trace, align 8
  call void @Py_DecRef(ptr %frames)
  br label %out
out:
  call void @PyGILState_Release(i32 %held)
  store i32 %errno, ptr %errnop, align 4
  ret i32 %failed
on:
  ret i32 0
}}
"""


def meet(unit: Any, compile_module: Callable[[str, list[str]], Any]) -> None:
    """Tell a unit with polls whom they ask, and begin to set the flag; `compile_module` makes what they ask."""
    with _LOCK:
        if not _UNIT:
            symbols.define(STATE, ctypes.addressof(_WORDS))
            symbols.define(SAID, ctypes.addressof(_PLACE))
            _UNIT.append(compile_module(_TEXT, [TICK]))
            _begin()
            os.register_at_fork(after_in_child=_begin)
        told = unit.function(MEET, None, ctypes.c_void_p, ctypes.c_void_p)
        told(ctypes.addressof(_WORDS), _UNIT[0].address(TICK))


def _begin() -> None:
    main = threading.main_thread().ident or 0  # what pthread_self() gives
    if _WORDS[_MAIN] != main:  # the first time, or in a child of another thread
        _WORDS[_MAIN], _WORDS[_GUARD] = main, 0
    threading.Thread(target=_ticks, name="irgrad-ticks", daemon=True).start()


def _ticks() -> None:
    wait, call, since, due = _OFTEN, -1, 0.0, _SELDOM
    while True:
        time.sleep(wait)
        flag = ctypes.c_int32.from_buffer(_WORDS)
        asked = flag.value == 0
        flag.value = 1
        wait = _OFTEN if asked else min(2 * wait, _SELDOM)
        if _WORDS[_CALLS] != call or not (asked and _WORDS[_GUARD]):
            call, since, due = _WORDS[_CALLS], time.monotonic(), _SELDOM
        elif (taken := time.monotonic() - since) > due:
            due = _tell(taken)


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
