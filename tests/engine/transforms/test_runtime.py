"""The arena and the copy helpers, run as machine code."""

from __future__ import annotations

import ctypes
import re
import threading
from typing import Any

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir.reader import read
from irgrad.engine.transforms import runtime

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
        self.unit = compile_module(runtime.link_runtime(ARENA), entries, cache=False)
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


def test_a_module_without_tape_is_left_alone() -> None:
    text = "define void @f() {\n  ret void\n}\n"
    assert runtime.link_runtime(text) == text
    assert not runtime.uses_tape(text)


def test_linking_twice_changes_nothing() -> None:
    once = runtime.link_runtime(ARENA)
    assert runtime.uses_tape(once)
    assert runtime.link_runtime(once) == once


def test_declarations_that_the_module_has_already_are_kept_once() -> None:
    text = ARENA + "declare noalias ptr @malloc(i64)\ndeclare void @free(ptr)\n"
    linked = runtime.link_runtime(text)
    declared = re.findall(r"^(?:declare|define) [^\n]*?@([\w.]+)\(", linked, re.M)
    assert len(declared) == len(set(declared))
    read(linked)


def _in_use() -> int:
    """Bytes of the C heap in use, mapped blocks included."""

    class Mallinfo2(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

    call = ctypes.CDLL(None).mallinfo2
    call.restype = Mallinfo2
    info = call()
    return int(info.uordblks + info.hblkhd)


# -- adjoints of copied memory ------------------------------------------------------------------------------------


def _helper(name: str, count: int) -> Any:
    """A copy helper as a function of `count` pointers, then bytes, period, offset."""
    parameters = ", ".join(["ptr"] * count + ["i64"] * 3)
    names = ", ".join([f"ptr %p{i}" for i in range(count)] + [f"i64 %n{i}" for i in range(3)])
    text = runtime.helper_text(name)
    assert f"@{name}(" in text and parameters
    text += f"define void @entry({names}) {{\n  call void @{name}({names})\n  ret void\n}}\n"
    return compile_module(text, ["entry"], cache=False).function("entry", None, *[P] * count, *[I64] * 3)


@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("float", np.float32), ("half", np.float16)])
def test_adjoint_of_a_copy(kind: str, dtype: Any) -> None:
    """The source's shadow gains what the target's had, the target's is cleared; other fields of a period stay."""
    size = np.dtype(dtype).itemsize
    target, source = np.arange(1, 9, dtype=dtype), np.full(8, 100, dtype)
    helper = _helper(f"irgrad.adjoint.copy.{kind}", 2)
    helper(target.ctypes.data, source.ctypes.data, 8 * size, 2 * size, size)  # the second of each pair
    assert target.tolist() == [1, 0, 3, 0, 5, 0, 7, 0]
    assert source.tolist() == [100, 102, 100, 104, 100, 106, 100, 108]


@pytest.mark.parametrize("shift", [3, -3, 0, 11])
def test_adjoint_of_a_copy_that_overlaps(shift: int) -> None:
    """memmove in either direction: the result is J^T of the move, with the memory as the variable."""
    n, total = 8, 32
    first, second = 12, 12 + shift
    shadow = np.random.default_rng(0).uniform(1, 2, total)
    jacobian = np.eye(total)
    jacobian[second : second + n] = np.eye(total)[first : first + n]
    want = jacobian.T @ shadow
    helper = _helper("irgrad.adjoint.copy.double", 2)
    helper(shadow[second:].ctypes.data, shadow[first:].ctypes.data, 8 * n, 8, 0)
    np.testing.assert_allclose(shadow, want, rtol=1e-15)


@pytest.mark.parametrize("shift", [2, -2])
def test_shadow_pointers_move_like_the_pointers(shift: int) -> None:
    memory = np.arange(24)
    want = memory.copy()
    want[8 + shift : 16 + shift] = memory[8:16]
    helper = _helper("irgrad.copy.pointers", 2)
    helper(memory[8 + shift :].ctypes.data, memory[8:].ctypes.data, 64, 8, 0)
    assert memory.tolist() == want.tolist()


def test_clearing_keeps_to_its_field() -> None:
    shadow = np.ones(9)
    _helper("irgrad.adjoint.clear.double", 1)(shadow.ctypes.data, 72, 24, 8)
    assert shadow.tolist() == [1, 0, 1] * 3
    pointers = np.arange(1, 7)
    _helper("irgrad.clear.pointers", 1)(pointers.ctypes.data, 48, 16, 0)
    assert pointers.tolist() == [0, 2, 0, 4, 0, 6]


def test_a_copy_shorter_than_its_field_moves_nothing() -> None:
    target, source = np.ones(2), np.ones(2)
    _helper("irgrad.adjoint.copy.double", 2)(target.ctypes.data, source.ctypes.data, 7, 8, 0)
    assert target.tolist() == source.tolist() == [1, 1]


def test_several_programs_with_an_arena_may_be_linked_together() -> None:
    text = ("declare void @irgrad.tape.finish(ptr)\n"
            "define void @f(ptr %x) {\n  call void @irgrad.tape.finish(ptr %x)\n  ret void\n}")  # fmt: skip
    assert "\ndefine void @irgrad_tape_drain()" in runtime.link_runtime(text)
    whole = runtime.link_runtime(text, whole=True)
    assert "\ndefine internal void @irgrad_tape_drain()" in whole
    assert "\ndefine internal i64 @irgrad_tape_bytes()" in whole
