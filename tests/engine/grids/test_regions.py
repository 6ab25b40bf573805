"""Loops for a grid in a program of outlined loops: cut out, their columns, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from irgrad.engine.grids.regions import Column, Region, cut_regions, fix_constants, settle
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_module
from irgrad.rules.errors import Unsupported

TEXT = """
declare double @f.iteration.0(i64, ptr, i64)
define double @f.loop.0(i64 %last, ptr %x, i64 %n, double %start) {
entry:
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %k1, %turn ]
  %s = phi double [ %start, %entry ], [ %s1, %turn ]
  MORE
  %r = call double @f.iteration.0(i64 %k, ptr %x, i64 %n)
  %s1 = fadd double %s, %r
  %k1 = add nuw nsw i64 %k, 1
  %c = icmp eq i64 %k, %last
  br i1 %c, label %done, label %turn
done:
  %t = phi double [ %s1, %turn ]
  ret double %t
}
"""


def test_a_loop_that_calls_iterations_is_cut_out() -> None:
    module = read(TEXT.replace("MORE", ""))
    assert cut_regions(module, "k") == ["k.region.0"]
    runner, body = module.functions["k.region.0"], module.functions["k.region.0.one"]
    assert runner.is_declaration and runner.ftype.ret is ty.F64 and verify_module(module) == []
    assert [i.callee_name for i in body.instructions() if i.is_call] == ["f.iteration.0"]
    assert not [b for b in module.functions["f.loop.0"].blocks if b.name == "turn"]


def test_other_loops_stay() -> None:
    module = read(TEXT.replace("MORE", "").replace("f.iteration.0", "f.other"))
    assert cut_regions(module, "k") == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("store double %start, ptr %x, align 8", "hands something on from iteration to iteration in memory"),
        ("%p = getelementptr float, ptr %x, i64 %k\n  store double %start, ptr %p, align 8", "hands something on"),
        ("%g = load double, ptr %x, align 8\n  %q = getelementptr double, ptr %x, i64 %k\n"
         "  store double %g, ptr %q, align 8", "hands something on"),
    ],
)  # fmt: skip
def test_memory_that_iterations_have_together_is_refused(more: str, why: str) -> None:
    with pytest.raises(Unsupported, match="a loop cannot run on many threads") as caught:
        cut_regions(read(TEXT.replace("MORE", more)), "k")
    assert why in caught.value.because


def test_pieces_of_the_tape_may_be_written() -> None:
    more = "%p = getelementptr double, ptr %x, i64 %k\n  store double %start, ptr %p, align 8"
    assert cut_regions(read(TEXT.replace("MORE", more)), "k") == ["k.region.0"]


CALLER = """
declare double @k.region.0(i64, ptr, ptr, i64, double)
define double @k.region.0.one(i64 %i, ptr %a, ptr %b, i64 %n) {
  %j = mul i64 %i, %n
  %p = getelementptr double, ptr %a, i64 %j
  %u = atomicrmw fadd ptr %p, double 1.0 monotonic, align 8
  %v = atomicrmw fadd ptr %b, double 2.0 monotonic, align 8
  ret double 3.0
}
define void @k.sample(ptr %big, ptr %small, ptr %arena) {
  %r = call double @k.region.0(i64 9, ptr %big, ptr %small, i64 2, double 0.0)
  store double %r, ptr %big, align 8
  ret void
}
"""


def _settled(sizes: dict[str, int]) -> tuple[Any, Region]:
    module = read(CALLER)
    fix_constants(module, "k.sample", ["k.region.0"])
    ((_, region),) = settle(module, module.functions["k.sample"], ["k.region.0"], sizes).items()
    return module.functions["k.region.0.one"], region


def test_additions_by_class() -> None:
    """The large array has a part for each iteration (the step is a constant of the call), the small one is a row."""
    body, region = _settled({"big": 160, "small": 16})
    assert region.columns == [Column(ty.F64), Column(ty.F64, 2, 2)] and region.row == 24
    assert not [i for i in body.instructions() if i.opcode == "atomicrmw"]


def test_large_memory_that_all_add_to_is_atomic() -> None:
    body, region = _settled({"big": 160, "small": 1 << 20})
    assert region.columns == [Column(ty.F64)]
    assert [i.operands[0].name for i in body.instructions() if i.opcode == "atomicrmw"] == ["b"]


def test_numbers_are_constants_of_the_iterations() -> None:
    module = read(CALLER)
    fix_constants(module, "k.sample", ["k.region.0"])
    (product,) = [i for i in module.functions["k.region.0.one"].instructions() if i.opcode == "mul"]
    assert isinstance(product.operands[1], ConstInt) and product.operands[1].value == 2
