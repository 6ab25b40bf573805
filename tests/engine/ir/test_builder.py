"""What the builder makes is accepted by our verifier and by LLVM."""

from __future__ import annotations

import llvmlite.binding as llvm

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import Block, ConstInt, Function, const_float
from irgrad.engine.ir.printer import function_to_text
from irgrad.engine.ir.verify import verify_function


def test_a_loop_built_by_hand_is_well_formed() -> None:
    function = Function("total", ty.function(ty.F64, (ty.PTR, ty.I64)), ["p", "n"])
    entry, head, body, done = blocks = [Block(n) for n in ("entry", "head", "body", "done")]
    for block in blocks:
        block.function = function
        function.blocks.append(block)
    Builder(entry).br(head)
    at_head = Builder(head)
    i = at_head.phi(ty.I64, name="i")
    s = at_head.phi(ty.F64, name="s")
    at_head.cond_br(at_head.icmp("slt", i, function.args[1]), body, done)
    at_body = Builder(body)
    x = at_body.load(ty.F64, at_body.gep(ty.F64, function.args[0], i), align=8)
    t = at_body.select(at_body.fcmp("olt", x, const_float(ty.F64, 0.0)), at_body.fneg(x), x)
    total, following = at_body.binary("fadd", s, t), at_body.add(i, ConstInt(ty.I64, 1))
    at_body.br(head)
    i.operands, i.blocks = [ConstInt(ty.I64, 0), following], [entry, body]
    s.operands, s.blocks = [zero(ty.F64), total], [entry, body]
    Builder(done).ret(s)
    assert verify_function(function) == []
    llvm.parse_assembly(function_to_text(function), llvm.create_context()).verify()


def test_integers_are_folded() -> None:
    build = Builder(Block("entry"))
    one, two = ConstInt(ty.I64, 1), ConstInt(ty.I64, 2)
    folded = build.mul(build.add(one, two), two)
    assert isinstance(folded, ConstInt) and folded.value == 6
    argument = Function("f", ty.function(ty.VOID, (ty.I64,))).args[0]
    assert build.mul(argument, one) is argument and build.add(argument, zero(ty.I64)) is argument
    assert build.block.instructions == []
