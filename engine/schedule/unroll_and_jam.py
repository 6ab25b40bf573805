"""Nests of a wide derivative run several outer iterations at a time, so that lanes that all of them use are loaded, and
added to, once.

    for (i) { t = a'[i] * f[i] ;                   for (i by 4) { t0 = a'[i] * f[i] ; ... t3 = a'[i + 3] * f[i + 3] ;
        for (j) x'[j] += t * w[i][j] }     ->          for (j) x'[j] += t0 * w[i][j] + ... + t3 * w[i + 3][j] }

The reverse of a matrix times a vector. With W lanes every product of the left side loads and stores a vector, and a
core stores but one in a cycle. Each sum keeps its order: this is an unroll of the outer loop whose copies of the inner
loop run side by side (unroll and jam). It may be done where each access goes to memory that has a name (an argument
that nothing else points to, an allocation), and that of different outer iterations, other than sums in one place of the
inner iteration, keeps out of each other's way: what the inner loop writes nobody else of the nest touches, nor does the
inner loop touch what the rest writes.

Without this, `benchmarks.batch mlp` takes 1.1 and 1.35 of the time with 4 and 16 cotangents, 1.5 with 4 tangents.
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.affine import Affine, Symbol
from irgrad.engine.analyses.evolution.counters import advance, following, only_counters
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.differentiate.primitives.rows import pure_call
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Argument, Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.rewrite import copied

__all__ = ["jam"]

REGISTERS = 24  # vectors of 64 bytes that the copies may keep, of 32
MOST = 4
MOSTLY = 4  # operations for each vector that copies share: with more, time does not go to memory (n-body: 0.8x)
SCOPES = ("noalias", "alias.scope", "llvm.access.group", "llvm.loop")  # what they say holds within one iteration
OTHERS = having("synchronises") | {"alloca"}
WORK = having("float_arithmetic") | {"select", "call"}
NAMED = ("malloc", "calloc", "aligned_alloc", "irgrad.tape.alloc")


def jam(module: Module) -> int:
    """Change the nests of all functions that are worth it; how many there were."""
    count = 0
    for fn in module.functions.values():
        if fn.blocks and any(i.type.is_vector for i in fn.instructions()):
            cfg = get(Cfg, fn)
            induction = Induction(fn, cfg, get(Loops, fn))
            uses = _users(fn)
            nests = [_Nest(fn, induction, loop, uses) for loop in induction.loops.all if _nested(loop)]
            chosen = [nest for nest in nests if nest.possible()]
            for nest in chosen:
                nest.apply()
            count += len(chosen)
    return count


def _users(fn: Function) -> dict[Block, set[Block]]:
    """For each block those that use values of it."""
    users: dict[Block, set[Block]] = {}
    for block in fn.blocks:
        for instr in block.instructions:
            for operand in instr.operands:
                if isinstance(operand, Instruction) and operand.block is not None:
                    users.setdefault(operand.block, set()).add(block)
    return users


def _nested(loop: Loop) -> bool:
    return len(loop.children) == 1 and len(loop.children[0].blocks) == 1


class _Nest:
    """A loop around a loop of one block, with nothing else but straight code in front of it and behind it."""

    def __init__(self, fn: Function, induction: Induction, outer: Loop, users: dict[Block, set[Block]]) -> None:
        self.fn, self.induction, self.outer, self.inner, self.users = fn, induction, outer, outer.children[0], users
        self.block = self.inner.header
        self.front: list[Block] = []
        self.back: list[Block] = []

    # -- whether it may be done ----------------------------------------------------------------------------------------

    def possible(self) -> bool:
        """Whether it may be done, and is worth it."""
        outer, latch = self.outer, self.outer.latch
        if latch is None or outer.preheader is None or not self._straight() or outer.exiting != [latch]:
            return False
        if len(outer.exits) != 1 or self.induction.cfg.preds(outer.exits[0]) != [latch] or outer.exits[0].phis:
            return False
        if not only_counters(outer) or not self._counted() or not self._closed():
            return False
        self.copies = self._copies()
        return self.copies > 1 and self._independent()

    def _straight(self) -> bool:
        """Find the blocks in front of the inner loop, and behind it."""
        block, part = self.outer.header, self.front
        while True:
            if block is self.block:
                part, ways = self.back, self.inner.exits
            else:
                part.append(block)
                if block is self.outer.latch:
                    return part is self.back and len(self.front) + len(self.back) + 1 == len(self.outer.blocks)
                ways = self.induction.cfg.succs(block)
            if len(ways) != 1 or not self.outer.contains(ways[0]) or ways[0] in (*self.front, *self.back):
                return False
            block = ways[0]

    def _counted(self) -> bool:
        """Whether both counts are known in front of the nest."""
        count, inner = self.induction.trip_count(self.outer), self.induction.trip_count(self.inner)
        if count is None or inner is None or not count.certain or not inner.certain:
            return False
        dominates, before = self.induction.loops.dom.dominates, self.outer.preheader
        assert before is not None
        if not all(v.block in self.induction.cfg.reachable and dominates(v.block, before)
                   for v in count.uses if isinstance(v, Instruction)):  # fmt: skip
            return False
        self.count = count
        return all(not isinstance(v, Instruction) or not self.outer.contains(v.block) for v in inner.uses)

    def _closed(self) -> bool:
        """Whether nothing of the nest is used behind it."""
        return all(self.outer.contains(user) for block in self.outer.blocks for user in self.users.get(block, ()))

    def _copies(self) -> int:
        """How many outer iterations at a time: as many as keep their lanes in registers, where time goes to memory."""
        wide = [i for i in self.block.instructions if _lanes(i).is_vector]
        shared = [i for i in wide if i.opcode in ("load", "store") and self._shared(i.operands[-1])]
        work = sum(i.opcode in WORK for i in wide)
        kept: set[Value] = {p for p in self.block.phis if p.type.is_vector}
        for instr in self.block.instructions:
            kept.update(o for o in instr.operands if o.type.is_vector and self._in_front(o))
        vectors = sum(-(-ty.size_of(v.type) // 64) for v in kept)
        copies = MOST
        while copies > 1 and copies * vectors > REGISTERS:
            copies //= 2
        return copies if vectors and 0 < work <= MOSTLY * len(shared) else 1

    def _shared(self, pointer: Value) -> bool:
        """Whether an address is the same in all outer iterations."""
        return self.outer not in self.induction.form(pointer).loops()

    def _in_front(self, value: Value) -> bool:
        return isinstance(value, Instruction) and value.block in self.front

    def _independent(self) -> bool:
        """Whether outer iterations may run side by side."""
        inner, rest = self._accesses([self.block]), self._accesses([*self.front, *self.back])
        if inner is None or rest is None:
            return False
        written = {site for site, _, instr in inner if instr.opcode == "store"}
        around = {site for site, _, instr in rest if instr.opcode == "store"}
        if written & {site for site, _, _ in rest} or around & {site for site, _, _ in inner}:
            return False
        sums = [(site, offset, instr) for site, offset, instr in inner if site in written]
        return self._apart(sums, self.inner, (self.outer,)) and self._apart(
            [(site, offset, instr) for site, offset, instr in rest if site in around], self.outer, ()
        )

    def _accesses(self, blocks: Iterable[Block]) -> list[tuple[Value, Affine, Instruction]] | None:
        """Loads and stores: whose memory, and where; None where that, or something else, is not known."""
        found = []
        for instr in (i for block in blocks for i in block.instructions):
            if instr.opcode in ("load", "store"):
                site, offset = self.induction.address(instr.operands[-1])
                if instr.volatile or instr.ordering or not _named(site):
                    return None
                found.append((site, offset, instr))
            elif instr.opcode in OTHERS or (instr.is_call and not pure_call(instr)):
                return None
        return found

    def _apart(
        self, accesses: list[tuple[Value, Affine, Instruction]], loop: Loop, free: tuple[Loop, ...]
    ) -> bool:  # fmt: skip
        """Whether accesses of different iterations of a loop never meet: each goes to its own element of an array, at
        the same place whatever the counters of `free` are."""
        first: dict[Value, tuple[int, dict[Symbol, int], int]] = {}
        for site, offset, instr in accesses:
            size = offset.coefficient(loop)
            terms = {s: c for s, c in offset.terms.items() if s is not loop}
            if size == 0 or not offset.exact or any(s in offset.loops() for s in free):
                return False
            if any(self._changes(s) for s in terms):
                return False
            if first.setdefault(site, (size, terms, offset.const))[:2] != (size, terms):
                return False
            kind = instr.type if instr.opcode == "load" else instr.operands[0].type
            start = offset.const - first[site][2]
            if start < 0 or start + ty.store_size(kind) > abs(size):
                return False
        return True

    def _changes(self, symbol: Symbol) -> bool:
        """Whether a symbol is another number in another iteration of the nest."""
        if isinstance(symbol, Loop):
            return self.outer.contains(symbol)
        return not isinstance(symbol, Value) or (isinstance(symbol, Instruction) and self.outer.contains(symbol.block))

    # -- the change ----------------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """Put the jammed nest in front of this one, which does what remains of its iterations."""
        before, header, latch = self.outer.preheader, self.outer.header, self.outer.latch
        assert before is not None and latch is not None
        head, middle, tail, rest = (Block() for _ in range(4))
        at = self.fn.blocks.index(header)
        self.fn.blocks[at:at] = [head, middle, tail, rest]
        for block in (head, middle, tail, rest):
            block.function = self.fn
        before.instructions.pop()
        b = Builder(before)
        count = b.add(self.count.emit(b), ConstInt(ty.I64, 1), ())
        groups = b.binary("udiv", count, ConstInt(ty.I64, self.copies))
        remain = b.binary("urem", count, ConstInt(ty.I64, self.copies))
        b.cond_br(b.icmp("eq", groups, ConstInt(ty.I64, 0)), rest, head)
        phis = header.phis
        starts = [phi.operands[phi.blocks.index(before)] for phi in phis]
        b = Builder(head)
        done = b.phi(ty.I64, [(ConstInt(ty.I64, 0), before)])
        now: list[Value] = [b.phi(phi.type, [(start, before)]) for phi, start in zip(phis, starts, strict=True)]
        firsts = now
        tables: list[dict[Value, Value]] = [{} for _ in range(self.copies)]
        for table in tables:
            table.update(zip(phis, now, strict=True))
            advance(b, self.outer, following(self.outer, latch), table)
            now = [table.get(v, v) for v in following(self.outer, latch)]
            self._copy(b, self.front, table)
        b.br(middle)
        self._middle(head, middle, tail, tables)
        b = Builder(tail)
        for table in tables:
            self._copy(b, self.back, table)
        step = b.add(done, ConstInt(ty.I64, 1), ("nuw",))
        b.cond_br(b.icmp("eq", step, groups), rest, head)
        for phi, value in zip((done, *firsts), (step, *now), strict=True):
            assert isinstance(phi, Instruction)
            phi.operands.append(value)
            phi.blocks.append(tail)
        b = Builder(rest)
        ends = [b.phi(p.type, [(s, before), (n, tail)]) for p, s, n in zip(phis, starts, now, strict=True)]
        b.cond_br(b.icmp("eq", remain, ConstInt(ty.I64, 0)), self.outer.exits[0], header)
        for phi, end in zip(phis, ends, strict=True):
            place = phi.blocks.index(before)
            phi.operands[place], phi.blocks[place] = end, rest

    @staticmethod
    def _copy(b: Builder, blocks: Iterable[Block], table: dict[Value, Value]) -> None:
        """The instructions of straight code."""
        for block in blocks:
            for instr in block.instructions[:-1]:
                if instr.opcode == "phi":
                    if instr not in table:  # of one value
                        table[instr] = table.get(instr.operands[0], instr.operands[0])
                elif instr not in table:
                    table[instr] = b.insert(_unscoped(instr, table))

    def _middle(self, head: Block, middle: Block, tail: Block, tables: list[dict[Value, Value]]) -> None:
        """The inner loops, side by side."""
        b, new = Builder(middle), []
        for table in tables:
            copies = []
            for phi in self.block.phis:
                start = next(v for v, from_ in zip(phi.operands, phi.blocks, strict=True) if from_ is not self.block)
                copies.append((phi, b.phi(phi.type, [(table.get(start, start), head)])))
            new.append(copies)
        for table, copies in zip(tables, new, strict=True):
            table.update(copies)
        for table in tables:  # a sum of one copy is what the next one adds to
            for instr in self.block.instructions[len(self.block.phis) : -1]:
                table[instr] = b.insert(_unscoped(instr, table))
        for table, copies in zip(tables, new, strict=True):
            for phi, copy in copies:
                value = phi.operands[phi.blocks.index(self.block)]
                copy.operands.append(table.get(value, value))
                copy.blocks.append(middle)
        last = self.block.terminator
        b.cond_br(tables[0].get(last.operands[0], last.operands[0]),
                  *(middle if to is self.block else tail for to in last.blocks))  # fmt: skip


def _unscoped(instr: Instruction, table: dict[Value, Value]) -> Instruction:
    new = copied(instr, [table.get(o, o) for o in instr.operands])
    new.metadata = {k: v for k, v in new.metadata.items() if k not in SCOPES}
    return new


def _lanes(instr: Instruction) -> ty.Type:
    return instr.operands[0].type if instr.opcode == "store" else instr.type


def _named(site: Value) -> bool:
    """Whether it is memory that no other name leads to."""
    if isinstance(site, Argument):
        return "noalias" in site.attrs.split()
    return isinstance(site, Instruction) and (
        site.opcode == "alloca" or (site.opcode == "call" and site.callee_name in NAMED)
    )
