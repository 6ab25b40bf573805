"""Block functions: what LLVM makes of scalars, and that a loop calls sample by sample."""

from __future__ import annotations

import re

import pytest
from samples import sample

import irgrad
from irgrad import engine
from irgrad.engine.batches.blocks import BLOCK, loop_text
from irgrad.engine.batches.unit import block_ir, strategy_of
from irgrad.engine.codegen import vector_math
from irgrad.engine.codegen.llvm import parse
from irgrad.engine.codegen.optimise import optimise
from irgrad.engine.runtime.arena import arena_text

MEMORY = "declare i64 @llvm.umax.i64(i64, i64)\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
BLACK_SCHOLES = r"""#include <math.h>
double price(double s, double k, double r, double v, double t) {
    double w = v * sqrt(t), d = (log(s / k) + (r + 0.5 * v * v) * t) / w;
    return 0.5 * (s * erfc(-d * M_SQRT1_2) - k * exp(-r * t) * erfc((w - d) * M_SQRT1_2));
}"""


@pytest.mark.parametrize("tape", [False, True])
@pytest.mark.parametrize("slots", [0, 1, 5])
def test_llvm_accepts_the_loop(slots: int, tape: bool) -> None:
    declared = f"declare void @p({', '.join(['ptr'] * slots)})\n"
    module = parse(declared + (arena_text() if tape else "") + MEMORY * tape + loop_text("p", slots, tape=tape))
    assert BLOCK in {f.name for f in module.functions if not f.is_declaration}


@pytest.mark.parametrize("derivative", [False, True])
def test_scalar_kernels_become_vector_code(derivative: bool) -> None:
    """Price and gradient: one loop, only vector arithmetic, libmvec where it is there."""
    kernel = irgrad.load(BLACK_SCHOLES).kernel("price")
    wrt = tuple(range(5))
    made = engine.batch_value_and_grad(kernel, argnums=wrt) if derivative else engine.batch(kernel)
    program = made.program
    uses = tuple("in each" if s.role == "in" else "one" if s.index == 5 and s.steps else "zero out"
                 for s in program.slots)  # fmt: skip
    strategy = strategy_of(program, uses)
    assert strategy.name == "scalars"
    text = optimise(block_ir(program, strategy, uses), [BLOCK])
    body = re.sub(r"<\d+ x double>", "V", text[text.index("vector.body:") :].split("\n}", 1)[0])
    assert "= load V" in body and not re.search(r"= (tail call|fmul|fadd|fdiv|load)[^\n]*\bdouble [@%]", body)
    assert not vector_math.available() or re.search(r"@_ZGV\w+_(log|exp)\(", body)


@pytest.mark.parametrize("lanes", [2, 8])
def test_lanes_are_one_call(lanes: int) -> None:
    program = sample("cubes").primal
    uses = ("in each", "in one", "in one", "zero out")
    text = block_ir(program, strategy_of(program, uses, lanes), uses)
    assert f"@cubes.normal.lanes{lanes}(" in text.split(f"define ptr @{BLOCK}(")[1]
    assert f"load <{lanes} x double>" in text
