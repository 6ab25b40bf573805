"""The arena of the tape, run as machine code."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.pipeline.derivatives import link_runtime
from irgrad.engine.runtime.arena import guarded_text, run_name

ARENA = """
declare ptr @irgrad.tape.acquire()
declare ptr @irgrad.tape.alloc(ptr, i64)
declare void @irgrad.tape.finish(ptr)
declare void @irgrad.tape.free_later(ptr, ptr)
declare void @irgrad.tape.finish_later(ptr, ptr)
define ptr @acquire() {
  %t = call ptr @irgrad.tape.acquire()
  ret ptr %t
}
define ptr @alloc(ptr %t, i64 %n) {
  %p = call ptr @irgrad.tape.alloc(ptr %t, i64 %n)
  ret ptr %p
}
define void @finish(ptr %t) {
  call void @irgrad.tape.finish(ptr %t)
  ret void
}
define void @free_later(ptr %t, ptr %p) {
  call void @irgrad.tape.free_later(ptr %t, ptr %p)
  ret void
}
define void @finish_later(ptr %t, ptr %p) {
  call void @irgrad.tape.finish_later(ptr %t, ptr %p)
  ret void
}
"""
P, I64 = ctypes.c_void_p, ctypes.c_int64


class Arena:
    """The runtime's functions of a unit of its own."""

    def __init__(self) -> None:
        entries = ["acquire", "alloc", "finish", "free_later", "finish_later", "irgrad_tape_drain", "irgrad_tape_bytes"]
        self.unit = compile_module(link_runtime(ARENA), entries, cache=False)
        self.acquire = self.unit.function("acquire", P)
        self.alloc = self.unit.function("alloc", P, P, I64)
        self.finish = self.unit.function("finish", None, P)
        self.free_later = self.unit.function("free_later", None, P, P)
        self.finish_later = self.unit.function("finish_later", None, P, P)
        self.drain = self.unit.function("irgrad_tape_drain", None)
        self.tape_bytes = self.unit.function("irgrad_tape_bytes", I64)


@pytest.fixture
def arena() -> Arena:
    return Arena()


def test_pieces_are_aligned_and_apart(arena: Arena) -> None:
    t = arena.acquire()
    sizes = [1, 16, 17, 4096, 200_000, 8, 3_000_000, 64]  # some fit the chunk, some need a new one
    pieces = [(arena.alloc(t, n), n) for n in sizes]
    for number, (address, n) in enumerate(pieces):
        assert address % 16 == 0
        ctypes.memset(address, number + 1, n)
    for number, (address, n) in enumerate(pieces):
        assert ctypes.string_at(address, n) == bytes([number + 1]) * n
    arena.finish(t)
    arena.drain()


def test_the_second_call_reuses_the_memory_of_the_first(arena: Arena) -> None:
    t = arena.acquire()
    first = arena.alloc(t, 1000)
    arena.finish(t)
    again = arena.acquire()
    assert again == t
    assert arena.alloc(again, 1000) == first
    arena.finish(again)
    arena.drain()


def test_grown_arenas_become_one_chunk(arena: Arena) -> None:
    """The call after one that needed many chunks gets one that holds everything."""
    for _ in range(2):
        t = arena.acquire()
        addresses = [arena.alloc(t, 50_000) for _ in range(40)]
        arena.finish(t)
    steps = np.diff(addresses)
    assert set(steps) == {50_000}
    arena.drain()


def test_bytes_are_the_largest_tape_since_they_were_asked(arena: Arena) -> None:
    assert arena.tape_bytes() == 0
    for size in (90_000, 5_000, 100):
        t = arena.acquire()
        arena.alloc(t, size)
        arena.finish(t)
    assert 90_000 <= arena.tape_bytes() < 90_100
    assert arena.tape_bytes() == 0
    arena.drain()


def test_memory_given_to_the_arena_is_freed_by_finish(arena: Arena) -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = P, [ctypes.c_size_t]
    before = _in_use()
    for _ in range(50):
        t = arena.acquire()
        arena.free_later(t, libc.malloc(100_000))
        inner = arena.acquire()
        arena.alloc(inner, 300_000)
        arena.finish_later(t, inner)
        arena.finish(t)
    arena.drain()
    assert _in_use() - before < 100_000


def test_drain_frees_idle_arenas(arena: Arena) -> None:
    before = _in_use()
    held = [arena.acquire() for _ in range(80)]  # more than the pool keeps
    for t in held:
        arena.alloc(t, 200_000)
    assert _in_use() - before > 80 * 200_000
    for t in held:
        arena.finish(t)
    assert _in_use() - before < 65 * 300_000, "those that the pool has no room for are freed at once"
    arena.drain()
    assert _in_use() - before < 100_000


def test_closing_the_unit_drains_it() -> None:
    before = _in_use()
    for _ in range(20):
        arena = Arena()
        t = arena.acquire()
        arena.alloc(t, 5_000_000)
        arena.finish(t)
        arena.unit.close()
    assert _in_use() - before < 3_000_000


def test_threads_never_share_an_arena(arena: Arena) -> None:
    barrier = threading.Barrier(8)
    wrong: list[int] = []

    def work(number: int) -> None:
        barrier.wait()
        for turn in range(200):
            t = arena.acquire()
            n = 1000 + 37 * turn
            address = arena.alloc(t, n)
            ctypes.memset(address, number, n)
            if ctypes.string_at(address, n) != bytes([number]) * n:
                wrong.append(number)
            arena.finish(t)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    arena.drain()


def test_a_guarded_function_returns_a_record(arena: Arena) -> None:
    """Memory that no machine has is asked for: the guard gets control back, and what was held is released."""
    body = """
define void @f.run(i64 %a0) {
  %t = call ptr @irgrad.tape.acquire()
  %small = call ptr @irgrad.tape.alloc(ptr %t, i64 100000)
  %p = call ptr @irgrad.tape.alloc(ptr %t, i64 %a0)
  call void @irgrad.tape.finish(ptr %t)
  ret void
}
"""
    declared = "".join(line + "\n" for line in ARENA.splitlines() if line.startswith("declare"))
    text = link_runtime(declared + body) + guarded_text("f", ["i64"])
    f = compile_module(text, ["f"], cache=False).function("f", P, I64)
    before = _in_use()
    for _ in range(20):
        assert f(1000) is None
        asked, held, *_ = (ctypes.c_int64 * 5).from_address(f(1 << 60))
        assert asked >= 1 << 60 and held >= 100_000
    assert _in_use() - before < 1_000_000


def test_names_in_quotes() -> None:
    assert (run_name("f"), run_name('"f g"')) == ("f.run", '"f g.run"')


def _in_use() -> int:
    """Bytes of the C heap in use, mapped blocks included."""

    class Mallinfo2(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

    call = ctypes.CDLL(None).mallinfo2
    call.restype = Mallinfo2
    info = call()
    return int(info.uordblks + info.hblkhd)


def test_programs_of_c_tell_of_a_large_tape(capfd: pytest.CaptureFixture[str]) -> None:
    """Once, where it passes half of the memory that the system says is free."""
    file = Path(f"/tmp/{os.getpid() % 10**8:08d}")  # as long a name as the system's
    file.write_text("MemTotal:  900000 kB\nMemAvailable:   100000 kB\n", encoding="ascii")
    text = link_runtime(ARENA, whole=True)
    for path in ("/proc/nothing", str(file)):
        unit = compile_module(text.replace("/proc/meminfo", path), ["acquire", "alloc", "finish"])
        acquire, alloc = unit.function("acquire", ctypes.c_void_p), unit.function("alloc", None, *[ctypes.c_void_p] * 2)
        tape = acquire()
        for megabytes in (10, 30, 20, 50):
            alloc(tape, megabytes << 20)
        unit.function("finish", None, ctypes.c_void_p)(tape)
        told = capfd.readouterr().err
        known = path == str(file)
        assert told.count("more than 51200000 bytes, half of the memory that was free, in its own code") == known
        assert told.count("irgrad: warning") == known
    file.unlink()
