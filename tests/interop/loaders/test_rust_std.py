"""Locks, variables of threads and what is made once, in functions of Rust."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import fast
from toolchains import needs_rustc

import irgrad
from irgrad import engine
from irgrad.interop.loaders.rust_std import one_thread

FILE = Path(__file__).with_name("shared.rs")
X = np.random.default_rng(0).uniform(0.2, 1, 7)
KEYS = np.array([3, 1, 3, 2, 1, 1, 9], np.int32)
PROGRAMS: list[tuple[str, str | None, tuple[Any, ...], Any]] = [
    ("mutex", "f64(f64[n] x)", (X,), (X**2).sum() ** 2),
    ("rw", "f64(f64[n] x)", (X,), (X[::3] ** 2).sum() * (X[1::3] ** 2).sum() + (X[2::3] ** 2).sum()),
    ("once", None, (1.2,), np.polyval([0, 1, 2, 3, 4], 1.2)),
    ("lazy", None, (1.2,), np.polyval([0, 1, 4, 9, 16], 1.2)),
    ("tls", None, (1.3,), 2 * 1.3**2),
    ("indexed", "f64(f64[n] x, i32[n] k)", (X, KEYS), sum((X[k == KEYS] ** 2).sum() ** 2 * (k == KEYS).sum()
                                                         for k in (1, 2, 3, 9))),
    ("sorted_tree", "f64(f64[n] x)", (X,), None),
    ("hashset", "f64(f64[n] x, i32[n] k)", (X, KEYS), (X[[0, 1, 3, 6]] ** 2).sum()),
]


@needs_rustc
@pytest.mark.parametrize(("name", "signature", "args", "expected"), fast(2, PROGRAMS))
def test_programs(name: str, signature: str | None, args: tuple[Any, ...], expected: float | None) -> None:
    kernel = irgrad.load(FILE).kernel(name, signature)
    if expected is not None:
        np.testing.assert_allclose([kernel(*args), kernel(*args)], expected, rtol=1e-12)
    assert engine.check(kernel, *args).ok


@needs_rustc
def test_a_hash_map_of_floats() -> None:
    with pytest.raises(irgrad.Unsupported, match=r"(?s)src/raw/mod\.rs.*HashMap<K, usize>"):
        engine.grad(irgrad.load(FILE).kernel("hashmap", "f64(f64[n] x, i32[n] k)"))(X, KEYS)


@needs_rustc
def test_a_lock_that_is_never_let_go() -> None:
    with pytest.raises(irgrad.KernelError, match="a lock is taken that is held already"):
        engine.grad(irgrad.load(FILE).kernel("held"))(1.2)


def test_variables_of_a_thread_are_those_of_the_module() -> None:
    text = ("@a.b = internal thread_local global i64 3, align 8\n"
            "@seed = external thread_local global %S, align 8\n"
            "define ptr @f() {\n  %p = call ptr @llvm.threadlocal.address.p0(ptr @a.b)\n  ret ptr %p\n}\n")  # fmt: skip
    made = one_thread(text)
    assert "@a.b = internal global i64 3, align 8" in made and "%p = getelementptr i8, ptr @a.b, i64 0" in made
    assert "@seed = internal global %S zeroinitializer, align 8" in made and "thread_local" not in made


def test_functions_of_the_library_by_the_ends_of_their_paths() -> None:
    wake = "declare void @_RNvMNtNtNtNtCs1_3std3sys4sync5mutex5futexNtB2_5Mutex4wake(ptr noundef nonnull align 4) #14\n"
    made = one_thread(wake)
    assert re.search(r"define internal void @\w+4wake\(ptr noundef nonnull align 4\) \{\n  ret void", made)
    other = wake.replace("3std", "3abc")
    assert one_thread(other) == other
    once = ("declare void @_RNvMs0_NtCs1_3std3sys4sync4once5futexNtB5_4Once4call(ptr align 4, i1, ptr, ptr, ptr) #1\n"
            '!0 = !DICompileUnit(producer: "clang LLVM (rustc version 1.{} (x))")\n')  # fmt: skip
    assert one_thread(once.format(80)) == once.format(80)
    assert "call void %run(ptr %a2, ptr %state)" in one_thread(once.format(95))
