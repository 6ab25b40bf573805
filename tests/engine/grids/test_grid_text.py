"""Kernels over batches, on the host: the row of each sample, how its memory starts, and that a wrong row is seen."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.grids import grid_text
from irgrad.engine.grids.arena import ARENA
from irgrad.engine.grids.grid_text import GridParameter, GridSlot, kernel_text, sample_text
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.signature.dtypes import DTYPES
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import Unsupported

F64, I32 = DTYPES["f64"], DTYPES["i32"]
PROGRAM = """
define internal void @p(ptr %x, ptr %a, ptr %y) {
  %v = load double, ptr %x
  %s = load double, ptr %a
  %o = load double, ptr %y
  %m = fmul double %v, %s
  %r = fadd double %m, %o
  store double %r, ptr %y
  ret void
}
"""


def _run(text: str, arrays: list[Any], *numbers: int) -> None:
    compiled = compile_module(text, ["k"], strict_fp=True)
    *first, threads = numbers
    kinds = [*[ctypes.c_void_p] * len(arrays), *[ctypes.c_int64] * (len(numbers) + 1)]
    function = compiled.function("k", None, *kinds)
    for thread in range(threads):
        function(*(a.ctypes.data for a in arrays), *first, thread, threads)


def _text(slots: list[GridSlot], batch: list[str], *, samples: str, program: str = PROGRAM) -> str:
    parameters = [GridParameter(name, F64) for name in ("x", "a", "y")]
    body = sample_text("p", "k", parameters, slots, batch)
    body = body.replace("declare ptr @irgrad.tape.alloc(ptr, i64)\n", "")
    return joined(program + ARENA + body, kernel_text("k", parameters, samples, device=False, slab=None))


def _slots(axes: tuple[bool, ...], start: str) -> list[GridSlot]:
    alone = (False,) * len(axes)
    return [GridSlot("x", F64, "in place", (), "x", axes), GridSlot("a", F64, "in place", (), "a", alone),
            GridSlot("y", F64, start, target="y")]  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3, 64])
@pytest.mark.parametrize(("axes", "shape"), [((True, True, True), (2, 3, 4)), ((False, True, False), (3,)),
                                             ((True, False, True), (2, 4)), ((False, False, False), ())])  # fmt: skip
def test_samples_find_their_rows(threads: int, axes: tuple[bool, ...], shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, a, y, tape = rng.normal(size=shape), np.array(3.0), np.full((2, 3, 4), np.nan), np.zeros(1)
    _run(_text(_slots(axes, "zero"), ["2", "3", "4"], samples="24"), [x, a, y, tape], 0, threads)
    row = x.reshape([n if own else 1 for n, own in zip((2, 3, 4), axes, strict=True)])
    assert np.array_equal(y, np.broadcast_to(3 * row, (2, 3, 4)))


def test_a_target_may_keep_what_it_holds() -> None:
    x, a, y, tape = np.arange(5.0), np.array(2.0), np.full(5, 10.0), np.zeros(1)
    text = _text(_slots((True,), "keep"), [""], samples="5")
    _run(text, [x, a, y, tape], 0, 2)
    assert np.array_equal(y, 10 + 2 * np.arange(5.0))


@pytest.mark.parametrize("planted", [False, True])
def test_a_planted_wrong_row_is_seen(monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    """What the comparisons here and in the tests of the bridge rely on: another index gives other numbers."""
    if planted:
        monkeypatch.setattr(grid_text, "_row", lambda w, digits, axes: "1" if any(axes) else "")
    x, a, y, tape = np.arange(5.0), np.array(2.0), np.zeros(5), np.zeros(1)
    _run(_text(_slots((True,), "zero")[:1] + _slots((False,), "zero")[1:], ["5"], samples="5"), [x, a, y, tape], 0, 2)
    assert np.array_equal(y, 2 * np.arange(5.0)) != planted


def test_scratch_memory_and_bits() -> None:
    slots = [GridSlot("x", F64, "bits", bits=int(np.float64(4.0).view(np.int64))),
             GridSlot("a", F64, "copy", (), "x", (True,)), GridSlot("y", F64, "zero", target="y")]  # fmt: skip
    x, a, y, tape = np.arange(5.0), np.zeros(1), np.full(5, np.nan), np.zeros(1)
    _run(_text(slots, ["5"], samples="5"), [x, a, y, tape], 0, 2)
    assert np.array_equal(y, 4 * np.arange(5.0)) and np.array_equal(x, np.arange(5.0))


def _size(extent: str, n: int) -> int:
    """Bytes of an array of this extent, which a kernel writes to its target."""
    shape = Signature(f"void(out f64[{extent}] y, i32 n)").parameters[0].shape
    parameters = [GridParameter("y", F64), GridParameter("n", I32, by_value=True)]
    slots = [GridSlot("y", F64, "zero", tuple(shape or ()), target="y")]
    program = "define internal void @p(ptr %y) {\n  store double 7.0, ptr %y\n  ret void\n}\n"
    body = sample_text("p", "k", parameters, slots, [""]).replace("declare ptr @irgrad.tape.alloc(ptr, i64)\n", "")
    text = joined(program + ARENA + body, kernel_text("k", parameters, "", device=False, slab=None))
    compiled = compile_module(text, ["k"], strict_fp=True)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    function = compiled.function("k", None, pointer, ctypes.c_int32, number, pointer, number, number, number)
    y = np.full(256, np.nan)
    function(y.ctypes.data, n, 2, None, 0, 0, 1)
    assert y[0] == 7
    return int(np.flatnonzero(y == 7)[1])


@pytest.mark.parametrize(("extent", "n", "size"), [("n", 5, 5), ("2*n+1, 3", 2, 15), ("(n-5)/2+9", 2, 7),
                                                   ("n%4+1", 6, 3), ("n, 4", 3, 12)])  # fmt: skip
def test_sizes_from_what_the_launch_says(extent: str, n: int, size: int) -> None:
    assert _size(extent, n) == size


def test_a_size_that_no_parameter_says() -> None:
    shape = Signature("void(out f64[n] y, i64 n)").parameters[0].shape
    slot = GridSlot("y", F64, "zero", tuple(shape or ()), target="y")
    with pytest.raises(Unsupported, match="the size of `y` is not known to a launch"):
        sample_text("p", "k", [GridParameter("y", F64)], [slot], [""])


def test_a_failed_sample_becomes_nan() -> None:
    """A kernel of a device cannot raise: the results of a sample with a status are NaN, those of others stay."""
    program = """
define internal void @p(ptr %x, ptr %status, ptr %y) {
  %v = load double, ptr %x
  %bad = fcmp ogt double %v, 2.5
  %s = zext i1 %bad to i32
  store i32 %s, ptr %status
  store double %v, ptr %y
  ret void
}
"""
    parameters = [GridParameter("x", F64), GridParameter("y", F64)]
    slots = [GridSlot("x", F64, "in place", (), "x", (True,)), GridSlot("s", I32, "zero"),
             GridSlot("y", F64, "zero", target="y")]  # fmt: skip
    body = sample_text("p", "k", parameters, slots, ["5"], status=1)
    body = body.replace("declare ptr @irgrad.tape.alloc(ptr, i64)\n", "")
    text = joined(program + ARENA + body, kernel_text("k", parameters, "5", device=False, slab=None))
    x, y, tape = np.arange(5.0), np.zeros(5), np.zeros(1)
    _run(text, [x, y, tape], 0, 2)
    assert np.array_equal(y, [0, 1, 2, np.nan, np.nan], equal_nan=True)


def test_a_kernel_of_a_device_asks_for_its_thread() -> None:
    text = kernel_text("k", [GridParameter("x", F64, alone=False)], "7", device=True, slab=0)
    assert "define ptx_kernel void @k(ptr %x, ptr %tape)" in text
    assert text.count("@llvm.nvvm.read.ptx.sreg") == 8


@pytest.mark.parametrize("threads", [1, 3, 4, 7, 30])
@pytest.mark.parametrize("groups", [2, 4, 6])
def test_groups_of_samples_have_rows_of_their_own(threads: int, groups: int) -> None:
    """Each row has a part of the samples of one group, all rows of a group have them together."""
    x, tape, each = np.arange(1.0, 25.0), np.zeros(1), max(1, threads // groups)
    y = np.full(groups * each, np.nan)
    parameters = [GridParameter(name, F64) for name in ("x", "a", "y")]
    slots = [GridSlot("x", F64, "in place", (), "x", (True,)), GridSlot("a", F64, "in place", (), "a", (False,)),
             GridSlot("y", F64, "keep", target="y", per_thread=True)]  # fmt: skip
    body = sample_text("p", "k", parameters, slots, ["24"]).replace("declare ptr @irgrad.tape.alloc(ptr, i64)\n", "")
    kernel = kernel_text("k", parameters, "24", device=False, slab=None, rows=slots[2:], groups=groups)
    _run(joined(PROGRAM + ARENA + body, kernel), [x, np.array(1.0), y, tape], 0, threads)
    assert np.array_equal(y.reshape(groups, each).sum(axis=1), x.reshape(groups, -1).sum(axis=1))
