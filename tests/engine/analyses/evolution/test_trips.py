"""Expressions of trip counts: evaluated, folded, printed, and emitted as machine code, all the same."""

from __future__ import annotations

import ctypes
import random

from irgrad.engine.analyses.evolution.trips import MASK, Expr, TripCount, const, evaluate, make, show
from irgrad.engine.codegen.jit import compile_module
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, Function, Module
from irgrad.engine.ir.printer import to_text

OPS = ("add", "sub", "mul", "udiv", "udiv_ceil", "umax", "umin", "smax", "lshr", "zext", "sext")
NUMBERS = (0, 1, 2, 3, 7, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, MASK - 1, MASK)


def random_expr(rng: random.Random, args: list[Argument], depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.1:
        return ("value", rng.choice(args)) if rng.random() < 0.7 else const(rng.choice(NUMBERS))
    op = rng.choice(OPS)
    a = random_expr(rng, args, depth - 1)
    if op in ("lshr", "zext", "sext"):
        return make(op, a, rng.choice((1, 3, 8, 32, 63)))
    b = random_expr(rng, args, depth - 1)
    if op.startswith("udiv"):
        b = make("umax", b, const(1))
    return make(op, a, b)


def test_emitted_code_computes_what_evaluate_says() -> None:
    rng = random.Random(5)
    module, counts = Module(), []
    for k in range(40):
        fn = Function(f"f{k}", ty.function(ty.I64, (ty.I64, ty.I32, ty.PTR)), ["a", "b", "p"])
        block = Block("entry")
        block.function = fn
        fn.blocks.append(block)
        count = TripCount(random_expr(rng, fn.args, 4))
        builder = Builder(block)
        builder.ret(count.emit(builder))
        module.functions[f"f{k}"] = fn
        counts.append((fn, count))
    unit = compile_module(to_text(module), list(module.functions))
    for fn, count in counts:
        call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64)(
            unit.address(fn.name or "")
        )
        assert set(count.uses) <= set(fn.args)
        for _ in range(30):
            numbers = [rng.choice(NUMBERS), rng.choice(NUMBERS) & 0xFFFFFFFF, rng.choice(NUMBERS)]
            assert call(*numbers) == count.evaluate(dict(zip(fn.args, numbers, strict=True))), str(count)


def test_folding_keeps_the_number() -> None:
    rng = random.Random(6)
    for _ in range(500):
        op, a, b = rng.choice(OPS[:8]), rng.choice(NUMBERS), rng.choice(NUMBERS[1:])
        folded = make(op, const(a), const(b))
        assert folded[0] == "const" and folded[1] == evaluate((op, const(a), const(b)), lambda _: 0)


def test_constants_uses_and_text() -> None:
    n = Argument(ty.I32, "n", 0)
    count = TripCount(make("udiv_ceil", make("sub", ("value", n), const(1)), const(3)), certain=False)
    assert count.const is None and count.uses == [n]
    assert str(count) == "udiv_ceil((%n - 1), 3) (if it ends there)"
    assert count.evaluate({n: 11}) == 4
    assert TripCount(const(7)).const == 7 and show(const(-1)) == "-1"
