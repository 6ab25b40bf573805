"""The driver alone, with a block function that only marks what it sees: every record kind, tails, rows, workers."""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.runtime.batch_driver import FIELDS, HEAD, WORK, driver_text

# slot 0: input, slot 1: what becomes of it (+= 10 * input), for blocks whose samples lie side by side (e = 3 elements)
BLOCK = """
define ptr @block(i64 %count, ptr %p, ptr %s) {
entry:
  %a = load ptr, ptr %p
  %bp = getelementptr ptr, ptr %p, i64 1
  %b = load ptr, ptr %bp
  %as = load i64, ptr %s
  %bsp = getelementptr i64, ptr %s, i64 1
  %bs = load i64, ptr %bsp
  br label %sample
sample:
  %j = phi i64 [ 0, %entry ], [ %j1, %next ]
  %ao = mul i64 %j, %as
  %bo = mul i64 %j, %bs
  %aj = getelementptr i8, ptr %a, i64 %ao
  %bj = getelementptr i8, ptr %b, i64 %bo
  br label %element
element:
  %k = phi i64 [ 0, %sample ], [ %k1, %element ]
  %ak = getelementptr double, ptr %aj, i64 %k
  %bk = getelementptr double, ptr %bj, i64 %k
  %x = load double, ptr %ak
  %y = load double, ptr %bk
  %t = fmul double %x, 10.0
  %z = fadd double %y, %t
  store double %z, ptr %bk
  %k1 = add i64 %k, 1
  %kd = icmp eq i64 %k1, 3
  br i1 %kd, label %next, label %element
next:
  %j1 = add i64 %j, 1
  %jd = icmp eq i64 %j1, %count
  br i1 %jd, label %out, label %sample
out:
  ret ptr null
}
"""
E = 3


@cache
def _native() -> Any:
    compiled = compile_module(BLOCK + driver_text(), ["block", WORK])
    kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return compiled, ctypes.CFUNCTYPE(None, *kinds)(compiled.address(WORK))


def _call(head: dict[str, int], dims: list[int], rows: list[dict[str, int]], outer: list[list[int]], bases: list[Any],
          limit: int = 1 << 40) -> int:  # fmt: skip
    """Run the driver; returns the number of chunks claimed."""
    compiled, work = _native()
    words = [head[name] for name in HEAD] + dims
    for row, strides in zip(rows, outer, strict=True):
        words += [row.get(name, 0) for name in FIELDS] + strides
    meta = np.array(words, np.int64)
    scratch = np.full(head["scratch"] + 64, 77, np.uint8)
    control = np.array([0, scratch.ctypes.data + -scratch.ctypes.data % 64, compiled.address("block"), 0, 0], np.int64)
    addresses = np.array([b.ctypes.data for b in bases], np.int64)
    work(control.ctypes.data, meta.ctypes.data, addresses.ctypes.data, 0, limit)
    assert control[3] == min(int(control[0]), head["rows"] * head["chunks"])
    return int(control[0])


def _head(n: int, chunk: int, block: int, rows: int = 1, axes: int = 0, lead: int = 0) -> dict[str, int]:
    chunks = -(-(n + lead) // chunk)
    return {"samples": n, "rows": rows, "chunk": chunk, "chunks": chunks, "block": block, "scratch": 4096,
            "axes": axes, "slots": 2, "lanes": 0, "lead": lead}  # fmt: skip


COMMON = {"count": E, "size": 8, "block_sample": 8 * E, "block_element": 8}


def _strides(layout: str, n: int) -> tuple[int, int]:
    return (8 * E, 8) if layout == "aos" else (8, 8 * n)


@pytest.mark.parametrize(("n", "chunk", "block"), [(1, 1, 1), (7, 3, 2), (10, 10, 4), (9, 4, 64)])
@pytest.mark.parametrize("layouts", list(product(("aos", "soa"), repeat=2)))
def test_layouts_and_starts(n: int, chunk: int, block: int, layouts: tuple[str, str]) -> None:
    x = np.arange(1.0, 1 + n * E).reshape(n, E)
    source = np.ascontiguousarray(x if layouts[0] == "aos" else x.T)
    target = np.full((n, E) if layouts[1] == "aos" else (E, n), 5.0)
    s, t = _strides(layouts[0], n), _strides(layouts[1], n)
    first = {**COMMON, "source": 0, "source_sample": s[0], "source_element": s[1], "offset": 64,
             **({"place": 1} if layouts[0] == "aos" else {"start": 2})}  # fmt: skip
    ends = {"target": 1, "target_sample": t[0], "target_element": t[1], "offset": 2048, "finish": 1,
            "place": 2 if layouts[1] == "aos" else 0}  # fmt: skip
    initial = {1: np.zeros((n, E)), 2: x, 3: np.broadcast_to(x[0], (n, E))}
    for start, begin in initial.items():
        second = {**COMMON, **ends, "start": start, "source": 0, "source_element": s[1],
                  "source_sample": s[0] if start == 2 else 0}  # fmt: skip
        assert _call(_head(n, chunk, block), [], [first, second], [[], []], [source, target]) > n // chunk
        assert np.array_equal(target if layouts[1] == "aos" else target.T, begin + 10 * x)


@pytest.mark.parametrize("place", [0, 4])
def test_sums_go_to_the_accumulator_of_the_chunk(place: int) -> None:
    n, chunk = 11, 4
    x = np.arange(1.0, 1 + n * E).reshape(n, E)
    sums = np.zeros((3, E))
    first = {**COMMON, "place": 1, "source_sample": 8 * E, "source_element": 8}
    second = {**COMMON, "place": place, "start": 1, "finish": 0 if place == 4 else 2, "target": 1, "offset": 2048,
              "target_sample": 8 * E}  # fmt: skip
    _call(_head(n, chunk, 3), [], [first, second], [[], []], [x, sums])
    assert np.array_equal(sums, [10 * x[i : i + 4].sum(0) for i in (0, 4, 8)])


def test_outer_axes_and_shared_sources() -> None:
    """Two outer axes (2 x 3 rows) over 5 samples; the source is shared along the first axis and all samples."""
    x = np.arange(1.0, 10).reshape(3, E)
    target = np.zeros((2, 3, 5, E))
    first = {**COMMON, "place": 3, "source_sample": 0, "source_element": 8}
    second = {**COMMON, "place": 2, "start": 1, "finish": 1, "target": 1, "target_sample": 8 * E, "target_element": 8}
    outer = [[0, 8 * E, 0, 0], [0, 0, 8 * E * 15, 8 * E * 5]]
    _call(_head(5, 2, 2, rows=6, axes=2), [2, 3], [first, second], outer, [x, target])
    assert np.array_equal(target, np.broadcast_to(10 * x[None, :, None, :], target.shape))


def test_a_limit_stops_in_time() -> None:
    x, target = np.ones((8, E)), np.zeros((8, E))
    first = {**COMMON, "place": 1, "source_sample": 8 * E, "source_element": 8}
    second = {**COMMON, "place": 2, "start": 1, "finish": 1, "target": 1, "target_sample": 8 * E, "target_element": 8}
    assert _call(_head(8, 2, 2), [], [first, second], [[], []], [x, target], limit=3) == 3
    assert target[:6].all() and not target[6:].any()


@pytest.mark.parametrize(("n", "lead"), [(9, 1), (9, 3), (12, 2), (2, 3), (13, 3)])
def test_chunks_that_begin_earlier(n: int, lead: int) -> None:
    """Every sample belongs to one chunk, which begins `lead` samples before a multiple of four."""
    x, sums = np.arange(1.0, 1 + n * E).reshape(n, E), np.zeros((-(-(n + lead) // 4), E))
    first = {**COMMON, "place": 1, "source_sample": 8 * E, "source_element": 8}
    second = {**COMMON, "place": 4, "target": 1, "target_sample": 8 * E}
    _call(_head(n, 4, 64, lead=lead), [], [first, second], [[], []], [x, sums])
    assert np.array_equal(sums, [10 * x[max(4 * c - lead, 0) : 4 * c + 4 - lead].sum(0) for c in range(len(sums))])


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_transposing_copies_of_every_element_size(size: int) -> None:
    """A padded block of 4 lanes with a tail: copied in lane by lane, the last sample repeated, copied out."""
    kind = np.dtype(f"u{size}")
    n, lanes = 6, 4
    x = np.arange(n * E, dtype=kind).reshape(n, E)
    target = np.zeros_like(x)
    seen = np.zeros((8, E, lanes), kind)
    row = {"count": E, "size": size, "start": 2, "finish": 1, "source_sample": E * size, "source_element": size,
           "target": 1, "target_sample": E * size, "target_element": size, "block_sample": size,
           "block_element": lanes * size, "offset": 64}  # fmt: skip
    compiled, work = _native()
    head = {**_head(n, 8, lanes), "slots": 1, "lanes": lanes}
    meta = np.array([head[k] for k in HEAD] + [row.get(k, 0) for k in FIELDS], np.int64)
    scratch = np.zeros(4096 + 64, np.uint8)
    start = scratch.ctypes.data + -scratch.ctypes.data % 64
    calls: list[int] = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    def block(count: int, pointers: int, strides: int) -> None:
        pointer = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))[0]
        assert pointer is not None
        data = np.frombuffer((ctypes.c_char * (E * lanes * size)).from_address(pointer), kind).reshape(E, lanes)
        seen[len(calls)] = data
        calls.append(count)

    control = np.array([0, start, ctypes.cast(block, ctypes.c_void_p).value, 0, 0], np.int64)
    bases = np.array([x.ctypes.data, target.ctypes.data], np.int64)
    work(control.ctypes.data, meta.ctypes.data, bases.ctypes.data, 0, 9)
    assert calls == [4, 4] and np.array_equal(target, x)
    assert np.array_equal(seen[0], x[:4].T) and np.array_equal(seen[1], x[[4, 5, 5, 5]].T)
    assert compiled
