"""Memory of the heap, of the stack in loops and of shadows comes from the arena."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids.arena import ARENA
from irgrad.engine.grids.heap import adopt_memory
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module


def _adopted(text: str) -> tuple[Module, str]:
    module = read(text)
    adopt_memory(module, "f")
    verify_module(module)
    return module, to_text(module)


def test_allocators_and_what_frees() -> None:
    _, text = _adopted("""
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @_Znwm(i64)
declare void @free(ptr)
declare void @irgrad.tape.need(ptr, i1, i64)
define void @f(i64 %n, ptr %arena) {
  %a = call ptr @malloc(i64 %n)
  call void @irgrad.tape.need(ptr %arena, i1 false, i64 8)
  %b = call ptr @calloc(i64 %n, i64 8)
  %c = call ptr @_Znwm(i64 24)
  store ptr %a, ptr %b
  store ptr %b, ptr %c
  call void @free(ptr %a)
  call void @free(ptr %b)
  ret void
}
""")
    body = text[text.index("define") :]
    assert body.count("call ptr @irgrad.tape.alloc(ptr %arena") == 3
    assert body.count("call void @llvm.memset.p0.i64") == 1
    assert not any(f" @{word}" in body for word in ("malloc(", "calloc(", "_Znwm(", "free(", "irgrad.tape.need("))


@pytest.mark.parametrize("restored", [False, True])
def test_arrays_on_the_stack(restored: bool) -> None:
    """One of constant length in a loop is reserved once where the loop gives it back, else it is the arena's."""
    pair = ("%s = call ptr @llvm.stacksave.p0()", "call void @llvm.stackrestore.p0(ptr %s)") if restored else ("", "")
    _, text = _adopted(f"""
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
define void @f(i64 %n, ptr %arena) {{
entry:
  %own = alloca double
  store double 1.0, ptr %own
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  {pair[0]}
  %a = alloca double, i64 4
  store double 2.0, ptr %a
  %b = alloca float, i64 %n
  store float 3.0, ptr %b
  {pair[1]}
  %i1 = add i64 %i, 1
  %go = icmp ult i64 %i1, %n
  br i1 %go, label %loop, label %done
done:
  ret void
}}
""")
    body = text[text.index("define") :]
    assert "stacksave" not in body and "stackrestore" not in body
    assert body.count("alloca") == (2 if restored else 1) and body.index("alloca") < body.index("loop:")
    assert body.count("call ptr @irgrad.tape.alloc(") == (1 if restored else 2)


@pytest.mark.parametrize(("align", "size"), [("", 32), (", align 16", 32), (", align 64", 32 + 63)])
def test_shadows_of_tables_are_of_the_sample(align: str, size: int) -> None:
    module, text = _adopted(f"""
@irgrad.shadow = internal global [4 x double] zeroinitializer{align}
@state = internal global [4 x double] zeroinitializer
define void @f(i64 %n, ptr %arena) {{
  %p = getelementptr double, ptr @irgrad.shadow, i64 %n
  store double 1.0, ptr %p
  %q = getelementptr double, ptr @state, i64 %n
  store double 1.0, ptr %q
  ret void
}}
""")
    assert list(module.globals) == ["state"], "what the program keeps is refused later, not given to each sample"
    assert f"call ptr @irgrad.tape.alloc(ptr %arena, i64 {size})" in text


def test_an_arena_that_a_function_asks_for_is_its_last_argument() -> None:
    _, text = _adopted("""
declare ptr @irgrad.tape.acquire()
declare ptr @irgrad.tape.alloc(ptr, i64)
define void @f(ptr %arena) {
  %t = call ptr @irgrad.tape.acquire()
  %a = call ptr @irgrad.tape.alloc(ptr %t, i64 8)
  store double 1.0, ptr %a
  ret void
}
""")
    assert "@irgrad.tape.alloc(ptr %arena, i64 8)" in text and "call ptr @irgrad.tape.acquire" not in text


@pytest.mark.parametrize(
    ("name", "given"), [("aligned_alloc", "i64 64, i64 %n"), ("_ZnwmSt11align_val_t", "i64 %n, i64 64")]
)
def test_memory_has_the_alignment_that_was_asked_for(name: str, given: str) -> None:
    """An arena's pieces are aligned to 16 bytes: code that relies on more would fail."""
    kinds = given.replace(" 64", "").replace(" %n", "")
    module, _ = _adopted(f"""
declare ptr @{name}({kinds})
define ptr @f(i64 %n, ptr %arena) {{
  %a = call ptr @{name}({given})
  ret ptr %a
}}
""")
    text = to_text(module).replace("declare ptr @irgrad.tape.alloc(ptr, i64)", "")
    compiled = compile_module(ARENA + text, ["f"])
    slab = np.zeros(64)
    for start in range(0, 64, 16):
        arena = np.array([slab.ctypes.data + start, slab.ctypes.data + 512], np.uint64)
        address = compiled.function("f", ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(128, arena.ctypes.data)
        assert address % 64 == 0 and slab.ctypes.data + start <= address < address + 128 <= int(arena[0])
