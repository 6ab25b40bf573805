"""Allocators of Zig's library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shares import fast

import irgrad
from irgrad import engine
from irgrad.interop.loaders.zig_memory import by_malloc

X = np.random.default_rng(0).uniform(0.2, 1.5, 7)


@pytest.mark.parametrize("name", fast(2, "arena_sum tree used_again page smp debug".split()))
def test_programs(name: str) -> None:
    kernel = irgrad.load(Path(__file__).with_name("memory.zig")).kernel(name, "f64(f64[n] x, i64 n)")
    expected = {"arena_sum": (X**3 * np.sin(X)).sum(), "used_again": 3 * (X**3 * np.sin(X)).sum()}
    if name != "tree":
        np.testing.assert_allclose(kernel(X), expected.get(name, 2 * (X**3).sum()), rtol=1e-13)
    assert engine.check(kernel, X).ok


def test_hash_maps() -> None:
    """Of indices; one of floats is refused, and the message says what is not."""
    lib, keys = irgrad.load(Path(__file__).with_name("memory.zig")), np.array([3, 1, 3, 2, 1, 1, 9], np.int32)
    kernel = lib.kernel("indexed", "f64(f64[n] x, i32[n] keys, i64 n)")
    np.testing.assert_allclose(kernel(X, keys), sum((X[keys == k] ** 2).sum() ** 2 for k in (1, 2, 3, 9)), rtol=1e-13)
    assert engine.check(kernel, X, keys).ok
    with pytest.raises(irgrad.Unsupported, match=r"(?s)std/hash_map\.zig.*keep the floats in an array"):
        engine.grad(lib.kernel("histogram", "f64(f64[n] x, i32[n] keys, i64 n)"))(X, keys)


def test_only_those_of_the_library() -> None:
    text = ("%heap.ArenaAllocator.State = type { ptr, ptr }\n"
            "%heap.ArenaAllocator = type { %mem.Allocator, %heap.ArenaAllocator.State }\n"
            "define internal fastcc void @heap.ArenaAllocator.free(ptr %0, ptr %1, i64 %2) #0 !dbg !7 {\n"
            "  call void @own()\n  ret void\n}\n")  # fmt: skip
    made = by_malloc(text, {"7"})
    assert "@own" not in made and "i64 %2) #0 alwaysinline !dbg !7 {\nEntry:\n  ret void\n}" in made
    assert by_malloc(text, {"8"}) == text
    assert by_malloc(text.replace("%mem.Allocator, ", ""), {"7"}) == text.replace("%mem.Allocator, ", "")
