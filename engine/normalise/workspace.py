"""A workspace that a function cuts in pieces becomes an allocation for each piece.

    w = malloc(8 * (2 * d + k))                      w = malloc(8 * d)
    a = w, b = w + d, c = w + 2 * d         ->       a = w, b = malloc(8 * d), c = malloc(...)
    ... a[i], b[i], c[j] ...                         ... a[i], b[i], c[j] ...
    free(w)                                          free(w), free(b), free(c)

One object to all analyses, of which each piece seems to be written where another one is read: nothing of it is read
again in reverse, sums in it stay in memory, and no loop over it becomes a vector loop. It is cut where every access
through a piece is proved to stay in front of the next piece, by the greatest offset over the loops around it; the last
piece ends where the allocation does. No pointer to the memory is kept or given away, or compared but with null.

Where the proof wants what is known at run time alone (a layer that reads as many numbers as the layer before it has
written: two fields of a struct), the loop that all accesses are in has a version, in which each piece has memory of its
own while the loop runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.affine import Affine
from irgrad.engine.analyses.evolution.guards import parts
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.regions import Regions
from irgrad.engine.analyses.evolution.trips import Expr, signed
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import Block, CallInfo, ConstInt, Function, Instruction, Value, is_zero
from irgrad.engine.ir.opcodes import SPECULATABLE
from irgrad.engine.ir.rewrite import copied, replace_uses
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.normalise.loop_parts import choose, may_be_cut
from irgrad.rules.effects import facts

__all__ = ["cut_workspaces"]

_MOST = 8  # pieces
_ASKED = 12  # comparisons for a version
_LONGEST = 400  # instructions of a loop that has one
_OTHERS = ("__cxa", "irgrad.")  # freed by those who catch, and with the tape
_SIZED = ("_ZdlPvm", "_ZdaPvm")  # operator delete with the bytes
_FILLS = ("llvm.memset.", "llvm.memcpy.", "llvm.memmove.")
Linear = dict[object, int]  # symbol -> coefficient; None: the constant


@dataclass(slots=True)
class _Piece:
    """A piece: where it begins, its accesses, and how far they reach, in bytes from the begin of the allocation."""

    start: Value
    offset: Linear
    accesses: list[tuple[Instruction, Value, Value]] = field(default_factory=list)  # instruction, address, bytes
    reach: list[tuple[Linear, Linear]] = field(default_factory=list)
    derived: list[Instruction] = field(default_factory=list)  # addresses within the piece


def cut_workspaces(fn: Function) -> int:
    """Give pieces of an allocation memory of their own. Returns how many there were, the first ones apart."""
    return sum(_cut(fn, call) for call in _workspaces(fn))


def _workspaces(fn: Function) -> list[Instruction]:
    """Allocations of which a pointer goes on at a distance that is no constant, outside of loops around it."""
    found = [instr for instr in fn.instructions() if instr.opcode == "call" and _allocates(instr)]
    if not found:
        return []
    uses, loops = uses_of(fn.blocks), get(Loops, fn)
    return [call for call in found if any(_begins(use, call, loops) for use in uses.get(call, ()))]


def _allocates(call: Instruction) -> bool:
    name = call.callee_name or ""
    known = facts(name) if not name.startswith(_OTHERS) else None
    return known is not None and known.allocates and known.sizes == (0,) and len(call.args) == 1


def _begins(instr: Instruction, call: Instruction, loops: Loops) -> bool:
    """Whether a piece begins here: an address at a distance from the allocation that its loop does not change."""
    if instr.opcode != "getelementptr" or len(instr.operands) != 2 or instr.operands[0] is not call:
        return False
    index = instr.operands[1]
    return isinstance(index, Instruction) and loops.of(instr.block) is loops.of(call.block)  # type: ignore[arg-type]


def _cut(fn: Function, call: Instruction) -> int:
    cutter = _Cutter(fn, call)
    if not cutter.collect() or not all(map(cutter.bound, cutter.pieces)):
        return 0
    order = cutter.order()
    return cutter.rewrite(order) if order is not None else cutter.version()


class _Cutter:
    """The pieces of one allocation."""

    def __init__(self, fn: Function, call: Instruction) -> None:
        self.fn = fn
        self.call = call
        self.loops = get(Loops, fn)
        self.dom = get(Dominators, fn)
        self.induction = Induction(fn)
        self.regions: dict[Loop, Regions] = {}
        self.releases: list[Instruction] = []
        self.tests: list[Instruction] = []  # whether there was memory
        self.pieces: list[_Piece] = [_Piece(call, {})]

    def collect(self) -> bool:
        """Find the pieces, and what goes through each of them. False where something else is done with an address."""
        uses = uses_of(self.fn.blocks)
        for use in uses.get(self.call, ()):
            if _begins(use, self.call, self.loops):
                offset = self._offset(use)
                if offset is None or len(self.pieces) == _MOST:
                    return False
                self.pieces.append(_Piece(use, offset))
        starts = {piece.start for piece in self.pieces}
        for piece in self.pieces:
            work = [piece.start]
            while work:
                address = work.pop()
                for use in uses.get(address, ()):
                    if use in starts:
                        continue
                    if use.opcode == "getelementptr" and use.operands[0] is address and use.type is ty.PTR:
                        work.append(use)
                        piece.derived.append(use)
                    elif not self._use(piece, use, address):
                        return False
        return len(self.pieces) > 1

    def _offset(self, start: Instruction) -> Linear | None:
        base, form = self.induction.address(start)
        return self._linear(form) if base is self.call else None

    def _use(self, piece: _Piece, use: Instruction, address: Value) -> bool:
        """Note one use of an address: an access or the release; False for anything else."""
        if use.opcode in ("load", "store"):
            value = use if use.opcode == "load" else use.operands[0]
            if value is address or (use.opcode == "store" and use.operands[0] is address):
                return False
            piece.accesses.append((use, address, ConstInt(ty.I64, ty.store_size(value.type))))
            return True
        if use.opcode == "icmp" and address is self.call and is_zero(use.operands[1]):
            self.tests.append(use)
            return True
        if use.opcode != "call":
            return False
        name = use.callee_name or ""
        if name.startswith(_FILLS):
            piece.accesses.append((use, address, use.args[2]))
            return True
        known = facts(name)
        frees = known is not None and known.frees == 0 and known.moves is None and address is self.call
        if frees and (len(use.args) == 1 or (name in _SIZED and len(use.args) == 2)):
            self.releases.append(use)
            return True
        return name.startswith(("llvm.lifetime.", "llvm.assume", "llvm.dbg."))

    # -- how far -----------------------------------------------------------------------------------------------------

    def bound(self, piece: _Piece) -> bool:
        """Find the least and the greatest byte that the accesses of a piece touch; False where they are not known."""
        for instr, address, size in piece.accesses:
            assert instr.block is not None
            around = self.loops.of(instr.block)
            outer = None
            while around is not None and not around.contains(self.call.block):
                outer, around = around, around.parent
            ends = self._straight(address, size) if outer is None else None
            if outer is not None:
                if outer not in self.regions:
                    self.regions[outer] = Regions(self.fn, outer)
                found = self.regions[outer].reach(address, size)
                if isinstance(found, str) or len(found) != 1:
                    return False
                start = Linear() if found[0].base is self.call else self._from(found[0].base)
                if start is None:
                    return False
                low, high = (self._plus(end, start) for end in (found[0].low, found[0].high))
                ends = None if low is None or high is None else (low, high)
            if ends is None:
                return False
            piece.reach.append((self._signed(ends[0], instr.block), self._signed(ends[1], instr.block)))
        return True

    def _from(self, base: Value) -> Linear | None:
        found, form = self.induction.address(base)
        return self._linear(form) if found is self.call else None

    def _straight(self, address: Value, size: Value) -> tuple[Linear, Linear] | None:
        base, form = self.induction.address(address)
        low = self._linear(form) if base is self.call else None
        length = self._linear(self.induction.form(size))
        return None if low is None or length is None else (low, _sum(low, length))

    def _plus(self, end: tuple[int, Expr], start: Linear) -> Linear | None:
        found = self._expression(end[1])
        return None if found is None else _sum(_sum(found, {None: end[0]}), start)

    def _signed(self, ends: Linear, block: Block) -> Linear:
        """The same with what is extended without its sign as the number itself, where the block runs for numbers that
        are not negative only."""
        total: Linear = {}
        for symbol, coefficient in ends.items():
            number = symbol
            if isinstance(symbol, Instruction) and symbol.opcode == "zext":
                form = self.induction.form(symbol.operands[0])
                if set(form.terms.values()) == {1} and not form.const and self._natural(symbol.operands[0], block):
                    (number,) = form.terms
            total = _sum(total, {number: coefficient})
        return total

    def _natural(self, number: Value, block: Block) -> bool:
        """Whether a branch above a block tells that a number is not negative."""
        here: Block | None = block
        while here is not None and (above := self.dom.idom(here)) is not None:
            end = above.terminator
            if end.opcode == "br" and end.operands and self.loops.cfg.preds(here) == [above]:
                for test, holds in parts(end.operands[0], end.blocks[0] is here):
                    if isinstance(test, Instruction) and test.opcode == "icmp" and _tells(test, holds, number):
                        return True
            here = above
        return False

    def _linear(self, form: Affine) -> Linear | None:
        """A form of values, without counters."""
        if form.bits != 64 and not form.exact:
            return None
        if not all(isinstance(symbol, Value) for symbol in form.terms):
            return None
        terms: Linear = dict(form.terms.items())
        return _sum(terms, {None: signed(form.const)})

    def _expression(self, expr: Expr) -> Linear | None:
        match expr[0]:
            case "const":
                return {None: signed(expr[1])}
            case "value":
                return self._linear(self.induction.form(expr[1]))
            case "add" | "sub":
                left, right = self._expression(expr[1]), self._expression(expr[2])
                return None if left is None or right is None else _sum(left, right, 1 if expr[0] == "add" else -1)
            case "mul":
                for one, other in ((expr[1], expr[2]), (expr[2], expr[1])):
                    by = self._expression(one)
                    if by is not None and not set(by) - {None}:
                        found = self._expression(other)
                        return None if found is None else _sum({}, found, by.get(None, 0))
        return None

    # -- a version ---------------------------------------------------------------------------------------------------

    def version(self) -> int:
        """Have the loop twice that all accesses are in, once with the pieces in memory of their own, where it turns out
        that no piece reaches into another one. Returns how many pieces there are then."""
        loop, order = self._only_loop(), self._by_offset()
        asked = None if order is None else _questions(order)
        if loop is None or loop.preheader is None or order is None or not asked or not self.releases:
            return 0
        place = loop.preheader
        rows = [*(piece.offset for piece in order), *(end for pair in asked for end in pair)]
        outside = [address for piece in order for address in piece.derived if not loop.contains(address.block)]
        needed = [v for row in rows for v in row] + [v for address in outside for v in address.operands[1:]]
        if not all(self.dom.dominates(v.block, place) for v in needed if isinstance(v, Instruction) and v.block):
            return 0
        b = Builder(place, len(place.instructions) - 1)
        b.metadata = {"dbg": self.call.metadata["dbg"]} if "dbg" in self.call.metadata else {}
        offsets = [_emit(b, piece.offset) for piece in order]
        ends = [*offsets[1:], self.call.args[0]]
        sizes = [self._size(b, start, end, least=1) for start, end in zip(offsets, ends, strict=True)]
        memory = [b.insert(copied(self.call, [size, self.call.callee])) for size in sizes]
        known: dict[Value, Value] = {piece.start: new for piece, new in zip(order, memory, strict=True)}
        for address in outside:
            known[address] = b.insert(copied(address, [known[address.operands[0]], *address.operands[1:]]))
        tests = [b.icmp("sle", _emit(b, low), _emit(b, high)) for low, high in asked]
        tests += [b.icmp("ne", new, zero(ty.PTR)) for new in memory]
        apart = tests[0]
        for test in tests[1:]:
            apart = b.binary("and", apart, test, ())
        leave = loop.exits[0]
        choose(self.fn, loop, b.insert(Instruction("freeze", ty.I1, [apart])), known, {})
        self._free(Builder(leave, len(leave.phis)), self.releases[0], memory, sizes)
        return len(order)

    def _only_loop(self) -> Loop | None:
        """The outermost loop behind the allocation that all accesses are in, if it may be had twice."""
        found = set[Loop | None]()
        for instr in (access[0] for piece in self.pieces for access in piece.accesses):
            assert instr.block is not None
            loop = self.loops.of(instr.block)
            while loop is not None and loop.parent is not None and not loop.parent.contains(self.call.block):
                loop = loop.parent
            found.add(None if loop is None or loop.contains(self.call.block) else loop)
        (loop,) = found if len(found) == 1 else (None,)
        uses = uses_of(self.fn.blocks)
        return loop if loop is not None and may_be_cut(loop, self.loops, uses, _LONGEST) else None

    def _by_offset(self) -> list[_Piece] | None:
        """The pieces in the order in which they begin, if no number in their offsets is negative."""
        order = sorted(self.pieces, key=lambda piece: sum(_rises(p.offset, piece.offset) for p in self.pieces))
        ordered = all(_rises(a.offset, b.offset) for a, b in pairwise(order))
        return order if ordered else None

    # -- the cut -----------------------------------------------------------------------------------------------------

    def order(self) -> list[_Piece] | None:
        """The pieces one behind the other, where each is proved to end before the next one begins."""
        found, rest = [self.pieces[0]], self.pieces[1:]
        while rest:
            following = [p for p in rest if found[-1].reach and all(_least(h, p.offset) for _, h in found[-1].reach)]
            following = [p for p in following if all(_least(p.offset, low) for low, _ in p.reach)]
            if len(following) > 1:  # the nearest: in front of whatever the others begin at
                following = [p for p in following if all(q is p or _ends_before(p, q) for q in following)]
            if len(following) != 1:
                return None
            found.append(following[0])
            rest.remove(following[0])
        return found

    def rewrite(self, order: list[_Piece]) -> int:
        """Allocations, uses and releases of the pieces."""
        block = self.call.block
        assert block is not None
        b = Builder(block, block.instructions.index(self.call))
        b.metadata = {"dbg": self.call.metadata["dbg"]} if "dbg" in self.call.metadata else {}
        made: dict[Value, Value] = {}
        offsets: list[Value] = [ConstInt(ty.I64, 0)]
        for piece in order[1:]:
            start = piece.start
            assert isinstance(start, Instruction) and start.elem is not None
            index = self._ahead(start.operands[1], b, made)
            if index is None:
                return 0
            offsets.append(b.mul(b.to_i64(index), ConstInt(ty.I64, ty.size_of(start.elem)), ()))
        ends = [*offsets[1:], self.call.args[0]]
        least = 1 if self.tests else 0  # where the program asks whether there is memory
        sizes = [self._size(b, start, end, least) for start, end in zip(offsets, ends, strict=True)]
        self.call.operands[0] = sizes[0]
        b.at = block.instructions.index(self.call) + 1
        replaced: dict[Value, Value] = {}
        for piece, size in zip(order[1:], sizes[1:], strict=True):
            replaced[piece.start] = new = copied(self.call, [size, self.call.callee])
            new.name = piece.start.name
            b.insert(new)
        if self.tests:
            there: Value = self.call
            for memory in replaced.values():
                there = b.select(b.icmp("eq", memory, zero(ty.PTR)), memory, there)
            for test in self.tests:
                test.operands[0] = there
        for release in self.releases:
            assert release.block is not None
            if len(release.args) == 2:
                release.operands[1] = sizes[0]
            at = Builder(release.block, release.block.instructions.index(release) + 1)
            self._free(at, release, replaced.values(), sizes[1:])
        replace_uses(self.fn, replaced)
        for piece in order[1:]:
            assert isinstance(piece.start, Instruction) and piece.start.block is not None
            piece.start.block.instructions.remove(piece.start)
        return len(replaced)

    def _size(self, b: Builder, start: Value, end: Value, least: int = 0) -> Value:
        """Bytes between two places, `least` where they come in another order, as they do where nothing is accessed."""
        whole = end if is_zero(start) else b.sub(end, start, ())
        return b.select(b.icmp("slt", whole, ConstInt(ty.I64, least)), ConstInt(ty.I64, least), whole)

    def _free(self, b: Builder, release: Instruction, pieces: Iterable[Value], sizes: list[Value]) -> None:
        """Free pieces as the allocation is freed."""
        assert release.call is not None
        for memory, size in zip(pieces, sizes, strict=True):
            args = [memory, size] if len(release.args) == 2 else [memory]
            new = Instruction("call", ty.VOID, [*args, release.callee], metadata=dict(release.metadata),
                              call=CallInfo(release.call.fn_type, fn_attrs=release.call.fn_attrs))  # fmt: skip
            b.insert(new)

    def _ahead(self, value: Value, b: Builder, made: dict[Value, Value]) -> Value | None:
        """A value at the allocation: it is there, or it is computed from such values by what may run anywhere."""
        if not isinstance(value, Instruction):
            return value
        here = self.call.block
        assert here is not None and value.block is not None
        if value.block is here:
            if here.instructions.index(value) < here.instructions.index(self.call):
                return value
        elif self.dom.dominates(value.block, here):
            return value
        if value in made:
            return made[value]
        if value.opcode not in SPECULATABLE or value.opcode in ("phi", "freeze") or len(made) > 32:
            return None
        parts = [self._ahead(operand, b, made) for operand in value.operands]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        new = copied(value, known)
        new.flags = ()
        made[value] = b.insert(new)
        return made[value]


def _sum(a: Linear, b: Linear, factor: int = 1) -> Linear:
    total = dict(a)
    for symbol, coefficient in b.items():
        total[symbol] = total.get(symbol, 0) + factor * coefficient
    return {symbol: coefficient for symbol, coefficient in total.items() if coefficient}


def _least(a: Linear, b: Linear) -> bool:
    """Whether a <= b for sure: they differ by a constant."""
    gap = _sum(b, a, -1)
    return not set(gap) - {None} and gap.get(None, 0) >= 0


def _tells(test: Instruction, holds: bool, number: Value) -> bool:
    """Whether a comparison of a number with a constant, that holds or fails, tells that it is not negative."""
    limit = test.operands[1]
    if test.operands[0] is not number or not isinstance(limit, ConstInt):
        return False
    least = {("sgt", True): 1, ("sge", True): 0, ("slt", False): 0, ("sle", False): 1}.get((test.pred, holds))
    if least is None:
        return test.pred == "eq" and holds and limit.value >= 0
    return limit.value + least >= 0


def _ends_before(piece: _Piece, other: _Piece) -> bool:
    return bool(piece.reach) and all(_least(high, other.offset) for _, high in piece.reach)


def _rises(a: Linear, b: Linear) -> bool:
    """Whether a <= b where no number in them is negative."""
    return a is b or all(coefficient >= 0 for coefficient in _sum(b, a, -1).values())


def _questions(order: list[_Piece]) -> list[tuple[Linear, Linear]] | None:
    """What is to be asked for each piece to be apart from the one behind it: pairs of which the first is no larger.
    None where one of them never holds, or there are too many."""
    found = dict[tuple[frozenset[tuple[object, int]], frozenset[tuple[object, int]]], tuple[Linear, Linear]]()
    for piece, following in zip(order, [*order[1:], None], strict=True):
        pairs = [(piece.offset, low) for low, _ in piece.reach]
        pairs += [(high, following.offset) for _, high in piece.reach] if following is not None else []
        for low, high in pairs:
            if _least(low, high):
                continue
            if not set(_sum(high, low, -1)) - {None}:
                return None
            found[frozenset(low.items()), frozenset(high.items())] = (low, high)
    return list(found.values()) if len(found) <= _ASKED else None


def _emit(b: Builder, row: Linear) -> Value:
    """A form as a number of 64 bits."""
    total: Value = ConstInt(ty.I64, row.get(None, 0))
    for symbol, coefficient in row.items():
        if isinstance(symbol, Value):
            total = b.add(total, b.mul(b.to_i64(symbol), ConstInt(ty.I64, coefficient), ()), ())
    return total
