"""Dependence: may two iterations of a loop touch the same bytes, one of them writing, and how far are they apart?

Accesses of which the source promises it (`control/promises.py`) do not. For a loop, and two others in it, the answer is
a `Relation`: never, or an interval of distances, the iteration of the second access minus that of the first. The
iterations of loops around it are the same, those of loops inside are free.

Method: the difference of the two addresses as a linear form (`affine.py`),

    difference = c + s * d + inner,    inner between lo and hi,

where d is the distance and every other symbol cancels: they touch only where it lies between -size and size. Bounds and
strides may hold values that the loop does not change; they are compared as forms, which is what tells the rows
`a[i * n + j]`, j < n, apart. Whatever is not of this form has any distance, with the reason in words: the analysis errs
on this side only. See U. Banerjee, "Dependence Analysis for Supercomputing" (1988).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.control.promises import promised_accesses
from irgrad.engine.analyses.evolution.affine import Affine, Scaled, Symbol
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.overwrites import Overwrites
from irgrad.engine.analyses.evolution.trips import signed
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, Function, Instruction, Value
from irgrad.engine.ir.opcodes import PURE
from irgrad.rules.effects import facts

__all__ = ["NEVER", "Access", "Dependence", "Relation"]

_FEASIBLE = 1 << 61  # more iterations than this no machine runs
_MANY = 400
_STEP = 1 << 16  # bytes: with smaller steps no subscript that runs wraps around 64 bits


@dataclass(frozen=True, slots=True)
class Access:
    """A load, a store, or a call that touches memory. pointer: None for a call; size: in bytes."""

    instr: Instruction
    writes: bool
    pointer: Value | None
    size: int
    objects: int


@dataclass(frozen=True, slots=True)
class Relation:
    """Distances at which two accesses may meet: from `low` to `high`, where high < low for never; because: in words;
    promise: what the source can say to promise that they do not, "" where they do or that is known."""

    low: float
    high: float
    because: str
    promise: str = ""

    @property
    def never(self) -> bool:
        """They never meet in one entry of the loop, not in one iteration either."""
        return self.high < self.low

    @property
    def carried(self) -> bool:
        """They may meet in two different iterations."""
        return not self.never and (self.low, self.high) != (0, 0)


NEVER = Relation(1, 0, "different memory")


class Dependence:
    """Answers for one function. A snapshot, like the analyses that it is built on."""

    def __init__(self, fn: Function, pointers: Pointers, induction: Induction) -> None:
        self.fn = fn
        self.pointers = pointers
        self.induction = induction
        self._accesses: dict[Loop, list[Access]] = {}
        self._seen: dict[Function, bool] = {}
        self._overwrites = Overwrites(induction)

    def accesses(self, loop: Loop) -> list[Access]:
        """What the loop does to memory, in order."""
        if loop not in self._accesses:
            found = (self._access(i) for block in loop.blocks for i in block.instructions)
            self._accesses[loop] = [access for access in found if access is not None]
        return self._accesses[loop]

    def pairs(self, loop: Loop) -> Iterable[tuple[Access, Access, Relation]]:
        """All pairs of which one writes, an access with itself too, that may meet in two iterations of the loop, and
        of which no promise says that they do not."""
        every = self.accesses(loop)
        if len(every) > _MANY:
            yield every[0], every[-1], _any(f"the loop has more than {_MANY} accesses, which are not compared")
            return
        kept = promised_accesses(self.pointers.module, loop)
        for number, a in enumerate(every):
            for b in every[number:]:
                if (a.writes or b.writes) and not (a.instr in kept and b.instr in kept):
                    relation = self.relation(loop, a, b)
                    if relation.carried:
                        yield a, b, relation
        for block in loop.blocks:
            for call in (i for i in block.instructions if i.is_call and self._ordered(i)):
                alone = Access(call, True, None, 0, 0)
                yield alone, alone, _any(f"calls of {_callee(alone)} keep their order", "")

    def _ordered(self, call: Instruction) -> bool:
        """Whether a call does more than its result and memory show: it prints, draws a number, or is not known."""
        return any(map(self._observable, self.pointers.callees(call) or (None,)))

    def _observable(self, fn: Function | None) -> bool:
        if fn is None:
            return True
        if fn not in self._seen:
            self._seen[fn] = False  # of what calls itself the rest decides
            if fn.is_declaration:
                known = facts(fn.name or "")
                self._seen[fn] = known is None or (known.kind == "inactive" and not known.reads
                                                   and not (fn.name or "").startswith("llvm."))  # fmt: skip
            else:
                self._seen[fn] = any(i.is_call and self._ordered(i) for i in fn.instructions())
        return self._seen[fn]

    def relation(self, loop: Loop, a: Access, b: Access) -> Relation:
        """The distances at which a and b may meet, iteration of b minus that of a."""
        if a.objects and b.objects and not a.objects & b.objects:
            return NEVER
        if a.pointer is None or b.pointer is None:
            return _any(f"of a call of {_callee(a if a.pointer is None else b)}")
        (base, first), (other, second) = self.induction.address(a.pointer), self.induction.address(b.pointer)
        if base is not other:
            return _any("they may be the same memory, by different pointers", _APART)
        if isinstance(base, Instruction) and loop.contains(base.block):
            return _any("the pointer is another one in each iteration")
        if self._between(loop, first, second, a.size, b.size):
            return NEVER
        whole = all(_unwrapped(loop, form) or self._runs(access, loop) for form, access in ((first, a), (second, b)))
        found = _any("a subscript may wrap around")
        if whole:
            found = self._distances(loop, first, second, a.size, b.size)
        if found.low == -math.inf and found.high == math.inf and found.promise and self._overwrites.rows_apart(
                a.instr, b.instr, loop, whole=whole):  # fmt: skip
            return Relation(0, 0, "rows do not overlap")
        return found

    def _between(self, loop: Loop, a: Affine, b: Affine, a_size: int, b_size: int) -> bool:
        """Whether two accesses never meet, for what moves by unknown numbers moves both by a step in which they are
        apart: two fields of structs in an array, whichever structs these are."""
        steps: list[int] = []
        spans: list[tuple[int, int]] = []  # coefficient, most
        terms = [(symbol, signed(c), sign) for form, sign in ((a, -1), (b, 1)) for symbol, c in form.terms.items()]
        same: dict[Symbol, int] = {}
        for symbol, c, sign in terms:
            own = symbol if isinstance(symbol, Loop) else symbol.loop if isinstance(symbol, Scaled) else None
            inside = own is not None and (own is loop or loop.contains(own))
            bound = self.induction.max_trip_count(own) if own is symbol and inside and own is not None else None
            if not inside and _steady(loop, [symbol]):
                same[symbol] = same.get(symbol, 0) + sign * c
            elif bound is not None and bound.certain and bound.const is not None and bound.const < _STEP:
                spans.append((sign * c, bound.const))
            else:
                steps.append(c)
        step = math.gcd(*steps, *same.values())
        if not (a.exact and b.exact):  # modulo 2**64, which only powers of two divide
            step &= -step
        low = high = signed((b.const - a.const) % (1 << 64))
        for c, most in spans:
            if step and c % step:
                low, high = low + min(c * most, 0), high + max(c * most, 0)
        return step > 0 and (high + b_size - 1) // step * step <= low - a_size

    def _runs(self, access: Access, loop: Loop) -> bool:
        """Whether the access runs in every iteration or in none, and so in the loops between. Then its addresses go
        through memory step by step, and would leave it before a subscript of 64 bits wraps around."""
        block, loops = access.instr.block, self.induction.loops
        inner = loops.of(block) if block is not None else None
        while inner is not None and block is not None:
            while not all(loops.dom.dominates(block, latch) for latch in inner.latches):
                above = self._guard(block, loop)
                if above is None or not inner.contains(above):
                    return False
                block = above
            if inner is loop:
                return True
            block, inner = inner.header, inner.parent
        return False

    def _guard(self, block: Block, loop: Loop) -> Block | None:
        """The block that always or never leads to this one, by a condition that the loop does not change."""
        before = [b for b in get(Cfg, self.fn).preds(block) if not self.induction.loops.dom.dominates(block, b)]
        if len(before) != 1 or before[0].terminator.opcode != "br":
            return None
        conditions = [o for o in before[0].terminator.operands if not isinstance(o, Block)]
        return before[0] if all(_unchanged(loop, condition) for condition in conditions) else None

    def _access(self, instr: Instruction) -> Access | None:
        pointers = self.pointers
        if instr.opcode == "load" and not instr.volatile and not instr.ordering:
            objects = pointers.expand(pointers.of(instr.operands[0]))
            return Access(instr, False, instr.operands[0], ty.store_size(instr.type), objects)
        if instr.opcode == "store" and not instr.volatile and not instr.ordering:
            objects = pointers.expand(pointers.of(instr.operands[1]))
            return Access(instr, True, instr.operands[1], ty.store_size(instr.operands[0].type), objects)
        reads, writes = pointers.instr_reads(instr), pointers.instr_writes(instr)
        return Access(instr, bool(writes), None, 0, reads | writes) if reads | writes else None

    def _distances(self, loop: Loop, a: Affine, b: Affine, a_size: int, b_size: int) -> Relation:
        stride, rest, inner = _parted(loop, a)
        stride_b, rest_b, inner_b = _parted(loop, b)
        if not (_same(stride, stride_b) and _steady(loop, (*rest, *rest_b, *stride))):
            return _any("their subscripts move differently, or in no way that is known")
        gap = _minus(rest_b, rest)
        if any(isinstance(symbol, Value | Loop | Scaled) for symbol in gap):
            return _any("the distance of their subscripts is not known")
        spans = [self._span(loop, part) for part in (inner, inner_b)]
        if spans[0] is None or spans[1] is None:
            return _any("how far an inner loop goes is not known before it")
        const = b.const - a.const
        low, high = _minus(spans[1][0], spans[0][1]), _minus(spans[1][1], spans[0][0])
        return self._solve(loop, stride, const, low, high, a_size, b_size)

    def _solve(
        self, loop: Loop, stride: _Form, const: int, low: _Form, high: _Form, a_size: int, b_size: int
    ) -> Relation:
        """Distances d with  -b_size < const + stride * d + inner < a_size,  inner between low and high."""
        if _constant(low) and _constant(high) and _constant(stride):
            least, most = -b_size + 1 - const - high.get(None, 0), a_size - 1 - const - low.get(None, 0)
            step = stride.get(None, 0)
            if step == 0:
                return _any("the address stays the same", "") if least <= 0 <= most else NEVER
            bounds = sorted((least / step, most / step)) if max(map(abs, (least, most))) < 1 << 50 else None
            if bounds is None:
                return _any("their distance is very large")
            first, last = math.ceil(bounds[0]), math.floor(bounds[1])
            trips = self.induction.max_trip_count(loop)
            end = math.inf if trips is None or trips.const is None else trips.const
            if first > last or first > end or last < -end:
                return NEVER
            return Relation(max(first, -end), min(last, end), f"distances of {step} bytes an iteration")
        for sign in (1, -1):  # the stride is at least what all else can make up for: only the same iteration
            up = {symbol: sign * c for symbol, c in stride.items()}
            over, under = _minus(up, high), _plus(up, low)
            apart = over.get(None, 0) - const >= b_size and under.get(None, 0) + const >= a_size
            if apart and _constant(over) and _constant(under):
                return Relation(0, 0, "rows do not overlap")
        return _any("rows may overlap: their length is not compared")

    def _span(self, loop: Loop, inner: dict[Symbol, int]) -> tuple[_Form, _Form] | None:
        """Least and greatest value of the parts that move in inner loops."""
        low: _Form = {}
        high: _Form = {}
        for symbol, coefficient in inner.items():
            if not isinstance(symbol, Loop):
                return None
            trips, bound = self.induction.trip_count(symbol), self.induction.max_trip_count(symbol)
            if bound is not None and bound.certain and bound.const is not None:
                trips = bound  # (as a sum of values only the count itself is known to be a number that loops reach)
            known = trips is not None and trips.certain and self._overwrites.ceilings.form(trips.expr, symbol)
            most = _form_of(known) if known else None
            if most is None or not _steady(loop, most):
                return None
            if coefficient > 0:
                high = _plus(high, most, coefficient)
            else:
                low = _plus(low, most, coefficient)
        return low, high


_Form = dict[Symbol | None, int]
"""A sum of coefficients times symbols; that of None is the constant."""


def _parted(loop: Loop, form: Affine) -> tuple[_Form, _Form, dict[Symbol, int]]:
    """What the form grows by per iteration of the loop, what it does not change, what moves in inner loops."""
    stride: _Form = {}
    rest: _Form = {}
    inner: dict[Symbol, int] = {}
    for symbol, whole in form.terms.items():
        coefficient = signed(whole)  # addresses are modulo 2**64: a step of that much is none
        if not coefficient:
            continue
        own = symbol if isinstance(symbol, Loop) else symbol.loop if isinstance(symbol, Scaled) else None
        if own is loop:
            stride[symbol.value if isinstance(symbol, Scaled) else None] = coefficient
        elif own is not None and loop.contains(own):
            inner[symbol] = coefficient
        else:
            rest[symbol] = coefficient
    return stride, rest, inner


def _steady(loop: Loop, symbols: Iterable[Symbol | None]) -> bool:
    """Whether the loop changes none of the values."""
    values = (s.value if isinstance(s, Scaled) else s for s in symbols)
    return not any(isinstance(v, Instruction) and loop.contains(v.block) for v in values)


def _unchanged(loop: Loop, value: Value) -> bool:
    """Whether a value is the same in all iterations."""
    if not isinstance(value, Instruction) or not loop.contains(value.block):
        return True
    plain = value.opcode in PURE and value.opcode != "phi"
    return plain and all(_unchanged(loop, operand) for operand in value.operands)


def _unwrapped(loop: Loop, form: Affine) -> bool:
    """Whether what moves in the loop holds over the integers for all iterations that a machine can run."""
    stride, _, inner = _parted(loop, form)
    moving = [*stride.items(), *inner.items()]
    return form.exact or all((s is None or isinstance(s, Loop)) and abs(c) <= _STEP for s, c in moving)


def _form_of(count: Affine) -> _Form | None:
    """A trip count as a sum of values; None where it is something else. The count of a loop that ends is a number that
    a machine counts to, so that the sum, which is computed modulo 2**64, is the same over the integers."""
    if not all(isinstance(symbol, Value) for symbol in count.terms) or abs(signed(count.const)) >= _FEASIBLE:
        return None
    return _plus({None: signed(count.const)} if count.const else {}, {s: signed(c) for s, c in count.terms.items()})


def _plus(a: _Form, b: _Form, factor: int = 1) -> _Form:
    total = dict(a)
    for symbol, coefficient in b.items():
        total[symbol] = total.get(symbol, 0) + factor * coefficient
        if not total[symbol]:
            del total[symbol]
    return total


def _minus(a: _Form, b: _Form) -> _Form:
    return _plus(a, b, -1)


def _same(a: _Form, b: _Form) -> bool:
    return not _minus(a, b)


def _constant(form: _Form) -> bool:
    return all(symbol is None for symbol in form)


_INDEPENDENT = "`#pragma omp simd` (with -fopenmp-simd) says that iterations are independent"
_APART = f"`restrict`, or buffers of a signature, say that they are not; {_INDEPENDENT}"


def _any(because: str, promise: str = _INDEPENDENT) -> Relation:
    return Relation(-math.inf, math.inf, because, promise)


def _callee(access: Access) -> str:
    name = access.instr.callee_name if access.instr.is_call else None
    return f"`{name}`" if name else f"`{access.instr.opcode}`"
