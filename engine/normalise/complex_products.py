"""Complex products of C and C++ become one operation.

Annex G of the C standard recovers infinities that the plain formula loses. Compilers write the formula, and go another
way where both of its parts are NaN:

    r = a c - b d, i = a d + b c
    if r != r and i != i:  r, i = __muldc3(a, b, c, d)      ->      r, i = irgrad.complex_product.f64(a, b, c, d)

The derivative is the same either way, so nothing has to be known of the way: no branch is recorded, and a loop over
products is one block. The function gets its body, which is what stood here, when machine code is made
(`runtime/complex_products.py`).

Source: ISO/IEC 9899:2018, Annex G.5.1.
"""

from __future__ import annotations

from collections import Counter

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstFloat, ConstInt, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.engine.runtime.complex_products import ATTRIBUTES, HELPERS, product_name

__all__ = ["join_complex_products"]

Term = tuple[bool, frozenset[Value]]
"""A product of two values, and whether it is subtracted."""


def join_complex_products(module: Module, fn: Function) -> int:
    """Make one operation of each complex product that was compiled with its test. Returns how many there were."""
    if HELPERS.isdisjoint(module.functions):
        return 0
    calls = [i for i in fn.instructions() if i.opcode == "call" and i.callee_name in HELPERS]
    return sum(_join(module, fn, call) for call in calls)


def _join(module: Module, fn: Function, call: Instruction) -> bool:
    """Do so where `call` is the other way of a product."""
    slow, cfg = call.block, get(Cfg, fn)
    if slow is None or slow not in cfg.reachable or len(slow.successors) != 1 or len(call.args) != 4:
        return False
    after = slow.successors[0]
    tests = _tests(slow, after, cfg)
    parts = _parts(tests, slow, call) if set(cfg.preds(after)) == {slow, *tests} else None
    taken = None if parts is None else _phis(after, tests[0], slow, call, parts)
    if taken is None:
        return False
    first = tests[0]
    at = Builder(first, len(first.instructions) - 1)
    scalar = call.args[0].type
    function = declare(module, product_name(scalar), ty.struct((scalar, scalar)), (scalar,) * 4, ATTRIBUTES)
    product = at.call(function, call.args)
    product.metadata.update(call.metadata)
    new = [at.extractvalue(product, 0), at.extractvalue(product, 1)]
    _absorb(fn, first, after, {slow, *tests[1:]})
    replace_uses(fn, {phi: new[value] if isinstance(value, int) else value for phi, value in taken.items()})
    return True


def _tests(slow: Block, after: Block, cfg: Cfg) -> list[Block]:
    """The block of the product, and behind it the one that only tests the second part where that has its own."""
    tests: list[Block] = []
    block = slow
    while not tests or (len(tests) == 1 and len(block.instructions) == 2):
        before = cfg.preds(block)
        if len(before) != 1 or set(before[0].successors) != {block, after}:
            break
        block = before[0]
        tests.insert(0, block)
    return tests


def _parts(tests: list[Block], slow: Block, call: Instruction) -> tuple[Value, Value] | None:
    """The real and the imaginary part by the formula, when `slow` is reached where both are NaN and nowhere else."""
    found: list[Value] = []
    for block, onward in zip(tests, [*tests[1:], slow], strict=True):
        values = _all_nan(block.terminator.operands[0], block.terminator.blocks[0] is onward)
        if values is None:
            return None
        found += values
    real, imaginary = _formula(call.args)
    for one, other in (found, found[::-1]) if len(found) == 2 else ():
        if _sum(one) == real and _sum(other) == imaginary:
            return one, other
    return None


def _all_nan(condition: Value, holds: bool) -> list[Value] | None:
    """The values that are all NaN exactly where a condition holds, or where it does not."""
    if not isinstance(condition, Instruction):
        return None
    first, *rest = condition.operands
    if condition.opcode == "fcmp" and condition.pred == ("uno" if holds else "ord"):
        plain = rest[0] is first or isinstance(rest[0], ConstZero) or (
            isinstance(rest[0], ConstFloat) and rest[0].value == rest[0].value)  # fmt: skip
        return [first] if plain else None
    if condition.opcode == "select" and condition.type is ty.I1:
        idle = rest.pop(1 if holds else 0)
        if not isinstance(idle, ConstInt) or bool(idle.value) is holds:
            return None
    elif condition.opcode != ("and" if holds else "or"):
        return None
    both = [_all_nan(first, holds), _all_nan(rest[0], holds)]
    return None if None in both else [value for values in both for value in values or ()]


def _formula(args: list[Value]) -> tuple[Counter[Term], Counter[Term]]:
    """a c - b d and a d + b c."""
    a, b, c, d = args
    minus = _term(b, d)
    return (Counter([_term(a, c), (not minus[0], minus[1])]), Counter([_term(a, d), _term(b, c)]))


def _sum(value: Value) -> Counter[Term] | None:
    """The two products that a value is the sum or difference of; rounding knows neither order nor sign."""
    if not isinstance(value, Instruction) or value.opcode not in ("fadd", "fsub") or value.flags:
        return None
    products = [(_stripped(o), value.opcode == "fsub" and n == 1) for n, o in enumerate(value.operands)]
    terms = []
    for (product, negated), subtracted in products:
        if not isinstance(product, Instruction) or product.opcode != "fmul" or product.flags:
            return None
        sign, factors = _term(*product.operands)
        terms.append((sign ^ negated ^ subtracted, factors))
    return Counter(terms)


def _term(a: Value, b: Value) -> Term:
    (a, minus_a), (b, minus_b) = _stripped(a), _stripped(b)
    return minus_a ^ minus_b, frozenset((a, b))


def _stripped(value: Value) -> tuple[Value, bool]:
    """A value without its change of sign, and whether it had one."""
    if isinstance(value, Instruction) and value.opcode == "fneg":
        inner, minus = _stripped(value.operands[0])
        return inner, not minus
    return value, False


def _phis(
    after: Block, first: Block, slow: Block, call: Instruction, parts: tuple[Value, Value]
) -> dict[Value, Value | int] | None:
    """What each phi of `after` is: a part of the product by its number, or a value from before. None where one is
    anything else, or `slow` does more than call."""
    taken: dict[Value, Value | int] = {}
    for instr in slow.instructions[:-1]:
        if instr is not call and _number(instr, call) is None:
            return None
    for phi in after.phis:
        values = dict(zip(phi.blocks, phi.operands, strict=True))
        last = values.pop(slow)
        number = _number(last, call)
        if set(values.values()) != {values[first]} or last is not (values[first] if number is None else last):
            return None
        if number is not None and values[first] is not parts[number]:
            return None
        taken[phi] = values[first] if number is None else number
    return taken


def _number(value: Value, call: Instruction) -> int | None:
    """Which part of the call's result a value is."""
    if not isinstance(value, Instruction) or not value.operands or value.operands[0] is not call:
        return None
    if value.opcode == "extractvalue":
        return value.indices[0]
    at = value.operands[1] if value.opcode == "extractelement" else None  # <2 x float> is how x86 returns two floats
    return at.value if isinstance(at, ConstInt) else None


def _absorb(fn: Function, first: Block, after: Block, gone: set[Block]) -> None:
    """Let `first` go on as `after`, without what was between them."""
    rest = after.instructions[len(after.phis) :]
    first.instructions[-1:] = rest
    for instr in rest:
        instr.block = first
    for block in first.successors:
        for phi in block.phis:
            phi.blocks = [first if b is after else b for b in phi.blocks]
    fn.blocks = [b for b in fn.blocks if b is not after and b not in gone]
