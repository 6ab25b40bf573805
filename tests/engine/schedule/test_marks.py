"""Loops that skip unmarked iterations: counters, phis behind the loop, memory for the marks."""

from __future__ import annotations

from typing import Any

import pytest
from oracle.interpreter import Machine
from oracle.numbers import FloatDomain

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.schedule.demand import compute_on_demand

LANES = 512  # one vector of them is worth a mark
TEXT = """
declare noalias ptr @malloc(i64)
declare void @free(ptr)
define void @f(ptr noalias readonly %x, ptr noalias readonly %k, ptr noalias %y, ptr noalias %z, i64 %m, i64 %n) {
entry:
  %bytes = mul i64 %m, 4096
  %t = call noalias ptr @malloc(i64 %bytes)
  br label %fill
fill:
  %v = phi i64 [ %v1, %last ], [ 0, %entry ]
  %left = phi i64 [ %m, %entry ], [ %left1, %last ]
  %small = phi i32 [ 7, %entry ], [ %small1, %last ]
  %p = getelementptr inbounds [512 x double], ptr %x, i64 %v
  %a = load <512 x double>, ptr %p, align 8
  %left1 = add nsw i64 %left, -1
  %even = icmp eq i64 %left, 3
  br i1 %even, label %other, label %last
other:
  %b = fneg <512 x double> %a
  br label %last
last:
  %c = phi <512 x double> [ %a, %fill ], [ %b, %other ]
  %s = fmul <512 x double> %c, %a
  %q = getelementptr inbounds [512 x double], ptr %t, i64 %v
  store <512 x double> %s, ptr %q, align 8
  %v1 = add nuw nsw i64 %v, 1
  %small1 = add i32 %small, 3
  %done = icmp slt i64 %left1, 1
  br i1 %done, label %mid, label %fill
mid:
  %amount = phi i64 [ %n, %last ]
  store i64 %amount, ptr %z, align 8
  br label %gather
gather:
  %i = phi i64 [ 0, %mid ], [ %i1, %gather ]
  %kp = getelementptr inbounds i32, ptr %k, i64 %i
  %j = load i32, ptr %kp, align 4
  %jj = sext i32 %j to i64
  %r = getelementptr inbounds [512 x double], ptr %t, i64 %jj
  %g = load double, ptr %r, align 8
  %yp = getelementptr inbounds double, ptr %y, i64 %i
  store double %g, ptr %yp, align 8
  %i1 = add nuw nsw i64 %i, 1
  %end = icmp uge i64 %i1, %n
  br i1 %end, label %out, label %gather
out:
  call void @free(ptr %t)
  ret void
}
"""
SINGLE = (
    TEXT.replace("%last ]", "%fill ]").replace("  br i1 %even, label %other, label %last\nother:\n", "")
    .replace("  br label %last\nlast:\n  %c = phi <512 x double> [ %a, %fill ], [ %b, %other ]\n", "")
    .replace("fmul <512 x double> %c", "fmul <512 x double> %b")
)  # fmt: skip
VALUES = [0.5, 1.5, -2.0, 3.0, 4.0, 0.25]


def _run(module: Module, index: list[int], *, short: bool = False) -> tuple[list[float], int, int]:
    """What y and z become, the instructions that ran, and the blocks of memory that were not freed."""
    machine = Machine(module, FloatDomain())
    blocks: set[int] = set()

    def calloc(m: Any, _f: Any, args: list[int]) -> int:
        if short:
            return 0
        blocks.add(address := m.memory.allocate(args[0] * args[1], 0, heap=True))
        return int(address)

    def free(m: Any, _f: Any, args: list[int]) -> None:
        blocks.discard(args[0])
        if args[0]:
            m.memory.free(args[0])

    machine.natives.update(calloc=calloc, free=free)
    x = machine.array(ty.F64, [v for v in VALUES for _ in range(LANES)])
    k, y = machine.array(ty.I32, index), machine.array(ty.F64, [0.0] * len(index))
    z = machine.array(ty.I64, [0])
    machine.call("f", [x, k, y, z, len(VALUES), len(index)])
    assert machine.read(z, ty.I64, 1) == [len(index)]
    return machine.read(y, ty.F64, len(index)), machine.steps, len(blocks)


@pytest.mark.parametrize("text", [TEXT, SINGLE], ids=["blocks", "single"])
@pytest.mark.parametrize("index", [[2], [5], [0, 0], [4, 1, 2], [5, 4, 3, 2, 1, 0], [1] * 9])
def test_the_same_results_in_fewer_steps(text: str, index: list[int]) -> None:
    module = read(text, roots=["f"])
    before = _run(module, index)
    assert compute_on_demand(module) == 1
    after = _run(read(to_text(module), roots=["f"]), index)
    assert after[0] == before[0] == [_expected(v, text is SINGLE) for v in index]
    assert after[2] == 0, "the marks are freed"


def _expected(v: int, single: bool) -> float:
    return VALUES[v] ** 2 * (-1 if single or len(VALUES) - v == 3 else 1)


@pytest.mark.parametrize("text", [TEXT, SINGLE], ids=["blocks", "single"])
def test_iterations_are_skipped(text: str) -> None:
    """One of six iterations runs its vectors; all do when there is no memory for marks or more to read than to fill."""
    module = read(text, roots=["f"])
    vectors = _vectors(module)
    assert compute_on_demand(module) == 1
    assert _vectors(module) == vectors
    cases = (([3], False, 1), ([3, 3], False, 1), ([1, 0], False, 2), ([3], True, 6), ([3] * 6, False, 6))
    for index, short, runs in cases:
        counted = _stores(module, index, short)
        assert counted == runs, (index, short)


def _vectors(module: Module) -> int:
    return sum(i.type.is_vector for i in module.functions["f"].instructions())


def _stores(module: Module, index: list[int], short: bool) -> int:
    """How many elements are filled."""
    from unittest.mock import patch

    filled = 0
    store = Machine.store

    def counting(self: Machine, address: int, t: Any, value: Any) -> None:
        nonlocal filled
        filled += t.is_vector
        store(self, address, t, value)

    with patch.object(Machine, "store", counting):
        _run(module, index, short=short)
    return filled


def test_counters_that_need_what_the_iteration_computes() -> None:
    """The next iteration would not know where it is."""
    found = "%f = extractelement <512 x double> %s, i32 0\n  %fi = fptosi double %f to i32\n  "
    found += "%small1 = add i32 %small, %fi"
    text = TEXT.replace("%small1 = add i32 %small, 3", found)
    assert compute_on_demand(read(text, roots=["f"])) == 0
    assert compute_on_demand(read(TEXT, roots=["f"])) == 1
