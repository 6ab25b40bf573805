"""Induction variables: linear forms of integers and addresses over loop counters, trip counts.

A light scalar evolution. A header phi `i = phi [start, outside], [i + step, latch]` with an invariant step is
start + counter * step; everything computed from such phis by additions, subtractions, products with invariants, shifts,
extensions and address arithmetic is a form again (`affine.py` says what a form promises). What cannot be expressed is a
symbol of its own. Forms of nests use the counters of all loops around. Trip counts are solved in `counting.py`.

All walks are iterative; each value is visited once per scope (the function, or one loop whose outside is opaque).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution import counting
from irgrad.engine.analyses.evolution.affine import Affine, Scaled, Symbol, constant_value, symbol_range, width
from irgrad.engine.analyses.evolution.trips import TripCount
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Argument,
    Block,
    Constant,
    ConstExpr,
    ConstUndef,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import PURE, having

MAX_TERMS = 12  # a longer form becomes a symbol of its own: keeps everything linear
_SAME_BITS = PURE - {"freeze"}  # of equal operands; a freeze may choose others each time
_ARITHMETIC = having("affine")


_Get: TypeAlias = Callable[[Value], Affine]


class _Step(NamedTuple):
    """One link from a header phi to its next value: `instr` adds `sign` * amount (None: a gep's offset)."""

    instr: Instruction
    amount: Value | None
    sign: int


class Induction:
    """Forms, recurrences and trip counts of one function. A snapshot, like the analyses it is built on."""

    def __init__(self, fn: Function, cfg: Cfg | None = None, loops: Loops | None = None) -> None:
        self.fn = fn
        self.cfg = cfg if cfg is not None else loops.cfg if loops is not None else get(Cfg, fn)
        self.loops = loops if loops is not None else get(Loops, fn) if cfg is None else Loops(cfg)
        self._forms: dict[Loop | None, dict[Value, Affine]] = {}
        self._chains: dict[Instruction, tuple[Loop, Value, list[_Step]] | None] = {}
        self._scaled: dict[tuple[Loop, Value], Scaled] = {}
        self._invariant: dict[Loop, dict[Value, bool]] = {}
        self._trips: dict[Loop, TripCount | None] = {}
        self._max_trips: dict[Loop, TripCount | None] = {}
        self._solving: set[Loop] = set()

    # -- questions ----------------------------------------------------------------------------------------------------

    def affine(self, value: Value, where: Loop | Block | None = None) -> Affine | None:
        """The form of an integer or pointer.

        Without `where`: as of its definition, over any SSA symbols. With a loop (or a block: its innermost loop): None
        unless all SSA symbols are invariant in that loop; a value of a loop that is over by then is a symbol.
        Also None for other types.
        """
        if width(value) is None:
            return None
        if where is None:
            return self.form(value)
        scope = self.loops.of(where) if isinstance(where, Block) else where
        own = self._loop_of(value)
        over = own is not None and not own.contains(scope) and (scope is None or not scope.contains(own))
        form = _symbol(value) if over else self.form(value)
        if scope is not None and any(_inside(v, scope) for v in form.values()):
            return None
        return form

    def recurrence(self, phi: Instruction) -> tuple[Value, Affine] | None:
        """(start, step) of a header phi that is an induction variable; the step is a form without loop counters."""
        chain = self._chain(phi)
        if chain is None:
            return None
        loop, start, _ = chain
        # In the scope of the loop itself the start is one symbol, so the stride always is expressible.
        form = self.form(phi, loop)
        return (start, form.stride(loop)) if loop in form.loops() else None

    def address(self, pointer: Value) -> tuple[Value, Affine]:
        """(base, byte offset) of a pointer, through address arithmetic and pointers that loops advance.

        The base is the pointer itself where nothing is known. `offset.exact`: base + offset does not wrap.
        """
        form = self.form(pointer)
        bases = [s for s in form.terms if isinstance(s, Value) and s.type.is_ptr]
        if len(bases) != 1 or form.terms[bases[0]] != 1:
            return pointer, Affine(64, 0)
        terms = {s: c for s, c in form.terms.items() if s is not bases[0]}
        return bases[0], Affine(64, form.const, terms, form.exact, form.rising)

    def invariant(self, value: Value, loop: Loop) -> bool:
        """Has the value the same bits in every iteration of the loop? (Loads and calls inside: not claimed.)"""
        memo = self._invariant.setdefault(loop, {})
        stack = [value]
        while stack:
            item = stack[-1]
            if item in memo:
                stack.pop()
                continue
            if isinstance(item, ConstUndef) or not _inside(item, loop):
                memo[item] = isinstance(item, Constant | Argument | Instruction) and not isinstance(item, ConstUndef)
            elif not isinstance(item, Instruction) or item.opcode not in _SAME_BITS:
                memo[item] = False
            else:
                missing = [v for v in item.operands if v not in memo]
                if missing:
                    stack.extend(missing)
                    continue
                memo[item] = all(memo[v] for v in item.operands)
        return memo[value]

    def trip_count(self, loop: Loop) -> TripCount | None:
        """How often the back edge is taken each time the loop is entered; None where that is not provable before it."""
        if loop not in self._trips:
            self._solve(loop)
        return self._trips[loop]

    def max_trip_count(self, loop: Loop) -> TripCount | None:
        """An upper bound of that, for loops with other exits as well."""
        if loop not in self._max_trips:
            self._solve(loop)
        return self._max_trips[loop]

    def _solve(self, loop: Loop) -> None:
        self._solving.add(loop)
        self._trips[loop], self._max_trips[loop] = counting.solve(self, loop)
        self._solving.discard(loop)

    def bounds(self, form: Affine) -> tuple[float, float]:
        """Least and greatest number the form can take over the integers (infinite where nothing is known)."""
        low: float = form.const
        high: float = form.const
        for symbol, coefficient in form.terms.items():
            if isinstance(symbol, Loop):
                least, most = 0.0, self._last_iteration(symbol)
            elif isinstance(symbol, Scaled):
                return -math.inf, math.inf
            else:
                least, most = symbol_range(symbol)
            if coefficient < 0:
                least, most = most, least
            low += coefficient * least
            high += coefficient * most
        return low, high

    def _last_iteration(self, loop: Loop) -> float:
        if loop in self._solving:
            return math.inf
        count = self.max_trip_count(loop)
        return math.inf if count is None or count.const is None else count.const

    # -- forms --------------------------------------------------------------------------------------------------------

    def form(self, value: Value, scope: Loop | None = None) -> Affine:
        """The form of a value of integer or pointer type; with a scope, values from outside that loop are symbols."""
        memo = self._forms.setdefault(scope, {})
        stack = [value]
        while stack:
            item = stack[-1]
            if item in memo:
                stack.pop()
                continue
            missing = [v for v in self._needs(item, scope) if v not in memo]
            if missing:
                stack.extend(missing)
                continue
            form = self._combine(item, scope, memo)
            memo[item] = form if form is not None and len(form.terms) <= MAX_TERMS else _symbol(item)
        return memo[value]

    def _loop_of(self, value: Value) -> Loop | None:
        return self.loops.of(value.block) if isinstance(value, Instruction) and value.block is not None else None

    def _opaque(self, value: Value, scope: Loop | None) -> bool:
        """Is the value a symbol whatever computes it?"""
        if isinstance(value, ConstExpr):
            return value.opcode != "getelementptr" or scope is not None or not value.type.is_ptr
        if not isinstance(value, Instruction) or value.block not in self.cfg.reachable or width(value) is None:
            return True
        if scope is not None and not scope.contains(value.block):
            return True
        return value.opcode != "phi" and value.opcode not in _ARITHMETIC

    def _over(self, operand: Value, user: Value) -> bool:
        """Does `operand` come from a loop that is over where `user` stands?"""
        own = self._loop_of(operand)
        return own is not None and isinstance(user, Instruction) and not own.contains(user.block)

    def _needs(self, value: Value, scope: Loop | None) -> list[Value]:
        if self._opaque(value, scope):
            return []
        assert isinstance(value, Instruction | ConstExpr)
        operands: list[Value]
        if value.opcode != "phi":
            operands = list(value.operands)
        else:
            assert isinstance(value, Instruction)
            chain = self._chain(value)
            if chain is not None:
                operands = [chain[1]]
                for step in chain[2]:
                    operands.extend([step.amount] if step.amount is not None else step.instr.operands[1:])
            else:
                only = self._only_incoming(value)
                operands = [] if only is None else [only]
        return [v for v in operands if width(v) is not None and not self._over(v, value)]

    def _only_incoming(self, phi: Instruction) -> Value | None:
        """What a phi of one distinct value passes on (never around a loop)."""
        loop = self._loop_of(phi)
        if len(set(phi.operands)) != 1 or (loop is not None and loop.header is phi.block):
            return None
        only = phi.operands[0]
        return None if only is phi or self._over(only, phi) else only

    def _combine(self, value: Value, scope: Loop | None, memo: dict[Value, Affine]) -> Affine | None:
        known = constant_value(value)
        bits = width(value)
        if known is not None and bits is not None:
            return Affine(bits, known)
        if bits is None or self._opaque(value, scope):
            return None
        assert isinstance(value, Instruction | ConstExpr)

        def get(operand: Value) -> Affine:
            return _symbol(operand) if self._over(operand, value) or operand not in memo else memo[operand]

        flags = value.flags
        match value.opcode:
            case "add" | "sub" | "or":
                if value.opcode == "or" and "disjoint" not in flags:
                    return None
                x, y = get(value.operands[0]), get(value.operands[1])
                form = x.plus(y, -1 if value.opcode == "sub" else 1)
                exact = form.exact and ("nsw" in flags or "disjoint" in flags)
                return _flag(form, exact, x.rising and y.rising and ("nuw" in flags or "disjoint" in flags))
            case "mul":
                return self._product(get(value.operands[0]), get(value.operands[1]), flags)
            case "shl":
                amount = constant_value(value.operands[1])
                if amount is None or not 0 <= amount < bits:
                    return None
                x = get(value.operands[0])
                return _flag(x.times(1 << amount), x.exact and "nsw" in flags, x.rising and "nuw" in flags)
            case "xor":
                if constant_value(value.operands[1]) != -1:
                    return None
                x = get(value.operands[0])
                return _flag(Affine(bits, -1).plus(x, -1), x.exact, x.rising)  # ~x = -1 - x
            case "trunc":
                x = get(value.operands[0])
                return x.flagged(x.exact and "nsw" in flags, (x.rising and "nuw" in flags) or not x.loops(), bits)
            case "sext" | "zext":
                return self._extension(value.opcode, get(value.operands[0]), bits, flags)
            case "ptrtoint":
                x = get(value.operands[0])
                return x.flagged(False, x.rising and bits == 64, bits) if bits <= 64 else None
            case "getelementptr":
                return self._gep(value, get)
            case _:
                assert isinstance(value, Instruction)
                return self._phi(value, get)

    def _product(self, x: Affine, y: Affine, flags: tuple[str, ...]) -> Affine | None:
        if x.is_const:
            x, y = y, x
        exact = x.exact and y.exact and "nsw" in flags
        if y.is_const:
            return _flag(x.times(y.const), exact, x.rising and y.const > 0 and "nuw" in flags)
        if y.loops():
            x, y = y, x
        if y.loops() or x.values():
            return None
        # (c + sum a*counter) * (d + sum b*value)
        terms: dict[Symbol, int] = {}
        for value, b in y.terms.items():
            assert isinstance(value, Value)
            if x.const:
                terms[value] = x.const * b
            for loop, a in x.terms.items():
                assert isinstance(loop, Loop)
                if _inside(value, loop):
                    return None
                terms[self.scaled(loop, value)] = a * b
        if y.const:
            for symbol, a in x.terms.items():
                terms[symbol] = a * y.const
        return _flag(Affine(x.bits, x.const * y.const, terms), exact, False)

    def scaled(self, loop: Loop, value: Value) -> Scaled:
        """The symbol of a product."""
        key = (loop, value)
        if key not in self._scaled:
            self._scaled[key] = Scaled(loop, value)
        return self._scaled[key]

    def _extension(self, opcode: str, x: Affine, bits: int, flags: tuple[str, ...]) -> Affine | None:
        """An extension passes the form on where the reading it takes is the form over the integers."""
        low, high = 0, 1 << x.bits
        if opcode == "sext":
            if x.exact:
                return _flag(x.flagged(True, False, bits), True, False)
            low, high = -(high >> 1), high >> 1
        elif (x.exact and "nneg" in flags) or (x.rising and not x.values() and 0 <= x.const < high):
            return x.flagged(True, True, bits)
        least, most = self.bounds(x)
        if x.exact and opcode == "zext" and least >= 0:
            return x.flagged(True, True, bits)
        if least >= low and most < high:
            return x.flagged(True, least >= 0, bits)
        return None

    def _gep(self, value: Instruction | ConstExpr, get: _Get) -> Affine | None:
        offset = self._gep_offset(value, get)
        if offset is None:
            return None
        base = get(value.operands[0])
        steady = "inbounds" in value.flags or "nusw" in value.flags
        # No unsigned wrap of the address: it moves exactly as its base and its offset do, over the integers.
        return _flag(base.plus(offset), base.exact and offset.exact and steady, base.rising and offset.exact and steady)

    def _gep_offset(self, value: Instruction | ConstExpr, get: _Get) -> Affine | None:
        """Byte offset that a getelementptr adds to its base."""
        assert value.elem is not None
        total = Affine(64, 0)
        type_: ty.Type = value.elem
        for position, index in enumerate(value.operands[1:]):
            bits = width(index)
            if bits is None:
                return None
            if position and isinstance(type_, ty.StructType):
                field = constant_value(index)
                if field is None or type_.fields is None:
                    return None
                total = total.moved(ty.field_offsets(type_)[field])
                type_ = type_.fields[field]
                continue
            if position:
                assert isinstance(type_, ty.ArrayType | ty.VectorType)
                type_ = type_.elem
            if isinstance(type_, ty.StructType) and type_.fields is None:
                return None
            form = get(index)
            if not form.exact and bits < 64:
                form = _symbol(index)
            total = total.plus(form, ty.size_of(type_))
        return total

    # -- recurrences --------------------------------------------------------------------------------------------------

    def _chain(self, phi: Instruction) -> tuple[Loop, Value, list[_Step]] | None:
        """Loop, start and steps of a header phi that adds invariants to itself around the loop."""
        if phi not in self._chains:
            self._chains[phi] = self._find_chain(phi)
        return self._chains[phi]

    def _find_chain(self, phi: Instruction) -> tuple[Loop, Value, list[_Step]] | None:
        loop = self._loop_of(phi)
        if phi.opcode != "phi" or loop is None or loop.header is not phi.block or width(phi) is None:
            return None
        starts: list[Value] = []
        nexts: list[Value] = []
        for value, block in zip(phi.operands, phi.blocks, strict=True):
            if block in self.cfg.reachable:
                (nexts if loop.contains(block) else starts).append(value)
        if not starts or any(not _equal(v, starts[0]) for v in starts) or any(v is not nexts[0] for v in nexts):
            return None
        steps: list[_Step] = []
        current = nexts[0]
        while current is not phi:
            if not isinstance(current, Instruction) or not loop.contains(current.block):
                return None
            found = _step(current, loop)
            if found is None:
                return None
            step, current = found
            steps.append(step)
        return loop, starts[0], steps

    def _phi(self, phi: Instruction, get: _Get) -> Affine | None:
        chain = self._chain(phi)
        if chain is None:
            only = self._only_incoming(phi)
            return None if only is None else get(only)
        loop, first, steps = chain
        start = get(first)
        if not start.exact and not start.loops() and not first.type.is_ptr:
            start = _symbol(first)  # exactness is worth more than the inside of an invariant
        exact, rising = start.exact, start.rising
        step = Affine(start.bits, 0)
        for instr, amount, sign in steps:
            if amount is None:
                part = self._gep_offset(instr, lambda v: _steady(get(v), v))
                if part is None:
                    return None
                steady = part.exact and ("inbounds" in instr.flags or "nusw" in instr.flags)
                exact, rising = exact and steady, rising and steady
            else:
                part = _steady(get(amount), amount)
                disjoint = "disjoint" in instr.flags
                exact = exact and ("nsw" in instr.flags or disjoint)
                # The unsigned amount is the signed one only where that is known not to be negative.
                rising = rising and ("nuw" in instr.flags or disjoint) and part.is_const and part.const >= 0
            step = step.plus(part, sign)
        terms = dict(start.terms)
        for symbol, coefficient in step.terms.items():
            assert isinstance(symbol, Value)
            terms[self.scaled(loop, symbol)] = coefficient
        if step.const:
            terms[loop] = step.const
        return Affine(start.bits, start.const, terms, exact, rising)

    def __str__(self) -> str:
        lines = [f"induction in @{self.fn.name}"]
        for loop in self.loops.all:
            pad = "  " * loop.depth
            count, most = self.trip_count(loop), self.max_trip_count(loop)
            text = f"back edge taken {count} times" if count is not None else "trip count unknown"
            if count is None and most is not None:
                text = f"back edge taken at most {most} times"
            lines.append(f"{pad}{loop!r}: {text}")
            for phi in loop.header.phis:
                found = self.recurrence(phi)
                if found is not None:
                    lines.append(f"{pad}  %{phi.name} = {self.form(phi)}")
        return "\n".join(lines)


def _inside(value: Value, loop: Loop) -> bool:
    return isinstance(value, Instruction) and value.block is not None and loop.contains(value.block)


def _symbol(value: Value) -> Affine:
    return Affine(width(value) or 64, 0, {value: 1})


def _steady(form: Affine, value: Value) -> Affine:
    """The form of a step: without counters and exact, or else the value as one symbol."""
    return form if form.exact and not form.loops() else _symbol(value)


def _flag(form: Affine, exact: bool, rising: bool) -> Affine:
    return form.said(exact, rising or not form.loops())


def _equal(a: Value, b: Value) -> bool:
    if a is b:
        return True
    known = constant_value(a)
    return known is not None and known == constant_value(b)


def _step(instr: Instruction, loop: Loop) -> tuple[_Step, Value] | None:
    """The step an instruction of the loop makes, and the value it makes it from."""
    ops = instr.operands
    match instr.opcode:
        case "add" | "or":
            if instr.opcode == "or" and "disjoint" not in instr.flags:
                return None
            for kept, amount in ((ops[0], ops[1]), (ops[1], ops[0])):
                if not _inside(amount, loop):
                    return _Step(instr, amount, 1), kept
        case "sub":
            if not _inside(ops[1], loop):
                return _Step(instr, ops[1], -1), ops[0]
        case "getelementptr":
            if not any(_inside(v, loop) for v in ops[1:]):
                return _Step(instr, None, 1), ops[0]
        case _:
            pass
    return None
