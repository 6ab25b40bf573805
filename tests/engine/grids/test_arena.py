"""The arena of a thread over its slab: aligned pieces one behind the other, and a trap where it is full."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys

import numpy as np

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids.arena import ARENA, CARVE, TAPE

USE = """
define ptr @take(ptr %t, i64 %bytes) {
  %p = call ptr @irgrad.tape.alloc(ptr %t, i64 %bytes)
  ret ptr %p
}
define ptr @cut(ptr %t, i64 %bytes) {
  %p = call ptr @irgrad.tape.carve(ptr %t, i64 %bytes)
  ret ptr %p
}
"""


def _pieces(name: str) -> list[int]:
    slab = np.zeros(32)
    arena = np.array([slab.ctypes.data, slab.ctypes.data + 64], np.uint64)
    compiled = compile_module(ARENA + CARVE + USE, ["take", "cut"])
    function = compiled.function(name, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return [function(arena.ctypes.data, size) - slab.ctypes.data for size in (1, 16, 20)]


def test_pieces_are_aligned() -> None:
    assert _pieces("take") == _pieces("cut") == [0, 16, 32]


def test_a_full_slab_traps() -> None:
    """Never a number that is wrong: the process (on a device the launch) ends."""
    text = ARENA + USE.split("define ptr @cut", maxsplit=1)[0]
    program = f"""
import ctypes, numpy as np
from irgrad.engine.codegen.jit import compile_module
slab = np.zeros(8)
arena = np.array([slab.ctypes.data, slab.ctypes.data + 64], np.uint64)
take = compile_module({text!r}, ["take"]).function("take", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
take(arena.ctypes.data, 64)
print("full", flush=True)
take(arena.ctypes.data, 1)
print("never", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "full\n" and done.returncode in (-signal.SIGILL, -signal.SIGTRAP), done.stderr


def test_all_words_of_the_tape_have_a_body() -> None:
    assert all(f"@{word}(" in ARENA for word in TAPE)
