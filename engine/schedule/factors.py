"""Lanes that a loop keeps are multiplied by what else it keeps before it starts.

    lanes' = lanes * f;  for (j ...) y[j] += lanes' * w[j]

LLVM sees two products with one number each and makes a single one of them, `lanes * (f * w[j])`: fewer instructions in
a straight line, but here the first product left the loop, and now each iteration multiplies one number more and spreads
the result over the lanes, where it could have spread w[j] as it loads it (measured: 1.25x on a layer's reverse sweep).
So after LLVM's first passes such products are taken apart again, and may not be joined any more. Others may: where no
product could be, pair forces with 4 and 16 cotangents took 1.08 of the time (`benchmarks.batch nbody`).

Without this, `benchmarks.batch mlp` (vjp) takes 1.05 to 1.09 with 2 to 16 cotangents; nothing else takes longer.
"""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.differentiate.layout.lanes import splat
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstAggregate, ConstInt, ConstZero, Instruction, Module, Value

__all__ = ["keep_factors"]


def keep_factors(module: Module) -> int:
    """Take products of lanes apart in all loops; the number of products that were."""
    count = 0
    for fn in module.functions.values():
        products = [i for i in fn.instructions() if _product(i)]
        if not products:
            continue
        loops = get(Loops, fn)
        for product in products:
            assert product.block is not None
            loop = loops.of(product.block)
            if loop is not None and loop.preheader is not None:
                count += _take_apart(loop, product)
    return count


def _product(instr: Instruction) -> bool:
    return instr.opcode == "fmul" and instr.type.is_vector and "reassoc" in instr.flags


def _take_apart(loop: Loop, product: Instruction) -> bool:
    """Multiply by what the loop keeps in front of it, where that is lanes and a factor of the number they meet. Whether
    there is such a factor."""
    block, before = product.block, loop.preheader
    assert block is not None and before is not None and isinstance(product.type, ty.VectorType)
    for lanes, spread in (product.operands, product.operands[::-1]):
        number = None if _inside(lanes, loop) else _spread(spread)
        kept, changing = (None, None) if number is None else _parts(number, loop)
        if kept is None or changing is None:
            continue
        count, flags = product.type.count, tuple(f for f in product.flags if f != "reassoc")
        b = Builder(before, at=len(before.instructions) - 1)
        outer = b.insert(Instruction("fmul", product.type, [lanes, splat(b, kept, count)], flags=flags))
        b = Builder(block, at=block.instructions.index(product))
        product.operands = [outer, splat(b, changing, count)]
        product.flags = flags
        return True
    return False


def _parts(number: Value, loop: Loop) -> tuple[Value | None, Value | None]:
    """A product of a number that the loop keeps, and one that changes."""
    if not isinstance(number, Instruction) or number.opcode != "fmul" or "reassoc" not in number.flags:
        return None, None
    first, second = number.operands
    if _inside(first, loop) == _inside(second, loop):
        return None, None
    return (second, first) if _inside(first, loop) else (first, second)


def _inside(value: Value, loop: Loop) -> bool:
    return isinstance(value, Instruction) and loop.contains(value.block)


def _spread(value: Value) -> Value | None:
    """The number that all lanes of a vector hold."""
    if not isinstance(value, Instruction) or value.opcode != "shufflevector":
        return None
    source, _, mask = value.operands
    first = isinstance(mask, ConstZero) or (
        isinstance(mask, ConstAggregate) and all(isinstance(e, ConstInt) and e.value == 0 for e in mask.elems)
    )
    if not first or not isinstance(source, Instruction) or source.opcode != "insertelement":
        return None
    at = source.operands[2]
    return source.operands[1] if isinstance(at, ConstInt) and at.value == 0 else None
