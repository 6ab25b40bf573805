"""Does each iteration of a loop write memory whole before it reads of it? Then nothing of it goes from one iteration to
the next.

Stores of a nest write all bytes from the least to the greatest where the steps of the nest's loops, in some order, are
no greater than what the loops before have written without a gap,

    dense = size;   for each loop with step <= dense:   dense = dense + step * repetitions

which is asked at run time, of numbers that are known before the loop: sizes are rarely known earlier, and nothing has
to be proven of products of them. Only what runs in every iteration counts, unless a condition that is known before the
loop fails (then nothing counts); whatever may read the memory has to come behind all stores that count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.decisions import decisions
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.control.never_returning import live_exits
from irgrad.engine.analyses.evolution.affine import Affine
from irgrad.engine.analyses.evolution.ahead import Ahead, Writer
from irgrad.engine.analyses.evolution.guards import parts
from irgrad.engine.analyses.evolution.regions import Guard
from irgrad.engine.analyses.evolution.trips import Expr, const, signed
from irgrad.engine.analyses.memory.modref import instr_reads, instr_writes
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Instruction, Value

__all__ = ["Cover", "coverage"]

_MOST = 64  # stores whose regions are joined
_DEEPEST = 6  # loops of a nest


@dataclass(frozen=True, slots=True)
class _Touched:
    """What an access of a nest touches, or several next to one another: `size` bytes from `start` behind the base, and
    again a step farther for each iteration of the loops around it, told by (step, how often it is repeated); where all
    guards have their outcomes."""

    start: Expr
    size: Expr
    steps: tuple[tuple[Expr, Expr], ...]
    guards: frozenset[Guard]

    def emit(self, at: Writer) -> tuple[Value, Value, Value]:
        """Whether it leaves no gaps, its least offset and its end."""
        b, zero, no = at.b, ConstInt(ty.I64, 0), ConstInt(ty.I1, 0)
        length = at.number(self.size)
        low = at.number(self.start)
        high: Value = b.add(low, length, ())
        rows = []
        for step, count in self.steps:
            each, often = at.number(step), at.number(count)
            far = b.mul(each, often, ())
            back = b.icmp("slt", each, zero)
            low = b.select(back, b.add(low, far, ()), low)
            high = b.select(back, high, b.add(high, far, ()))
            rows.append((b.select(back, b.sub(zero, each, ()), each), often))
        done: list[Value] = [b.icmp("eq", often, zero) for _, often in rows]
        for _ in rows:
            for n, (each, often) in enumerate(rows):
                more = b.select(done[n], no, b.icmp("ule", each, length))
                length = b.select(more, b.add(length, b.mul(each, often, ()), ()), length)
                done[n] = b.binary("or", done[n], more)
        dense: Value = ConstInt(ty.I1, 1)
        for condition, outcome in sorted(self.guards, key=lambda row: (row[0].name or "", row[1])):
            holds = at.frozen(at.value(condition))
            dense = b.select(dense, holds if outcome else b.binary("xor", holds, ConstInt(ty.I1, 1)), no)
        for one in done:
            dense = b.select(dense, one, no)
        return dense, low, high


@dataclass(frozen=True, slots=True)
class Cover:
    """What all iterations write before they read. reads: the regions of what they read, None where they may read any of
    the memory."""

    ahead: Ahead
    written: tuple[_Touched, ...]
    reads: tuple[_Touched, ...] | None

    def emit(self, b: Builder, bytes_: Value) -> Value:
        """Before the loop, whether that is all of the bytes behind the base, or all that iterations read of them."""
        if self.reads == ():
            return ConstInt(ty.I1, 1)
        zero, no = ConstInt(ty.I64, 0), ConstInt(ty.I1, 0)
        at = self.ahead.writer(b)
        rows = [each.emit(at) for each in self.written]
        some: Value = no
        low: Value = zero
        high: Value = zero
        for dense, start, end in [*rows, *rows[-2::-1]]:  # up and down: each end may be met first
            meets = b.select(b.icmp("sle", start, high), b.icmp("sge", end, low), no)
            takes = b.select(dense, b.select(some, meets, ConstInt(ty.I1, 1)), no)
            lower = b.select(b.icmp("slt", start, low), start, low)
            upper = b.select(b.icmp("sgt", end, high), end, high)
            low = b.select(takes, b.select(some, lower, start), low)
            high = b.select(takes, b.select(some, upper, end), high)
            some = b.binary("or", some, takes)
        whole = b.select(b.icmp("sle", low, zero), b.icmp("sge", high, bytes_), no)
        if self.reads is not None:
            inside: Value = ConstInt(ty.I1, 1)
            for each in dict.fromkeys(self.reads):
                _, start, end = each.emit(at)
                inside = b.select(b.select(b.icmp("sge", start, low), b.icmp("sle", end, high), no), inside, no)
            whole = b.binary("or", whole, inside)
        return b.select(some, whole, no)


def coverage(regions: Ahead, pointers: Pointers, mask: int, bases: Sequence[Value]) -> Cover | None:
    """Of memory that is reached by these addresses of its begin, and may be read by what reads of `mask`: what may be
    asked before the loop of `regions`; None where iterations may read what they did not write, whatever sizes are."""
    loop = regions.loop
    readers = [i for block in loop.blocks for i in block.instructions if instr_reads(pointers, i) & mask]
    if not readers:
        return Cover(regions, (), ())
    writers = [i for block in loop.blocks for i in block.instructions if instr_writes(pointers, i) & mask]
    for scope in dict.fromkeys((_home(regions, [*readers, *writers]), loop)):
        found = _covered(regions, scope, readers, bases)
        if found:
            return Cover(regions, tuple(found), _reads(regions, scope, readers, bases))
    return None


def _home(regions: Ahead, rows: Sequence[Instruction]) -> Loop:
    """The innermost loop in that of `regions`, or itself, that all instructions are in: where each of its iterations
    writes before it reads, so does each of those around it."""
    loops = regions.induction.loops
    inner = loops.of(rows[0].block) if rows[0].block is not None else None
    for each in inner.ancestors() if inner is not None else ():
        if each is regions.loop or all(each.contains(row.block) for row in rows):
            return each
    return regions.loop


def _covered(regions: Ahead, scope: Loop, readers: Sequence[Instruction], bases: Sequence[Value]) -> list[_Touched]:
    """What each iteration of a loop writes before any of the readers runs."""
    rows = list(_candidates(regions, scope, bases))
    found: list[_Touched] = []
    for group in _groups(rows) if len(rows) <= _MOST else ():
        nest, guards = _nest(regions, scope, group[0].instr), _guards(regions, group[0].instr)[0]
        if all(_behind(scope, regions, group, nest, guards, reader) for reader in readers):
            written = _written(regions, group, nest, guards)
            found += [written] if written is not None else []
    return found


@dataclass(frozen=True, slots=True)
class _Write:
    instr: Instruction
    pointer: Value
    form: Affine
    size: Value


def _candidates(regions: Ahead, loop: Loop, bases: Sequence[Value]) -> Iterator[_Write]:
    """What writes behind one of the bases in every iteration, in a nest of loops that run to their ends."""
    for block in loop.blocks:
        for instr in block.instructions:
            if instr.opcode == "store" and not instr.volatile and not instr.ordering:
                pointer, size = instr.operands[1], ConstInt(ty.I64, ty.store_size(instr.operands[0].type))
            elif instr.opcode == "call" and (instr.callee_name or "").startswith(("llvm.memcpy.", "llvm.memset.")):
                pointer, size = instr.args[0], instr.args[2]  # type: ignore[assignment]
            else:
                continue
            base, form = regions.induction.address(pointer)
            nest = _nest(regions, loop, instr)
            if any(base is each for each in bases) and all(map(regions.whole, nest)) and _guards(regions, instr)[1]:
                yield _Write(instr, pointer, form, size)


def _guards(regions: Ahead, instr: Instruction) -> tuple[frozenset[Guard], bool]:
    """The conditions known before the loop on which an instruction runs, and whether it depends on no others, but for
    what ends the call: an iteration that never returns is followed by none."""
    guards, sure = regions.guards(instr)
    loop, cfg = regions.loop, regions.induction.cfg
    if sure or instr.block is None or len(loop.exits) < 2:
        return guards, sure
    if loop.latch is None or {b for e in live_exits(regions.induction.fn, loop) for b in cfg.preds(e)} != {loop.latch}:
        return guards, False
    rows = decisions(regions.induction.loops, loop, instr.block)
    if rows is None:
        return guards, False
    ends = [block.terminator for block in loop.exiting if block is not loop.latch]
    stays = {(end.operands[0], loop.contains(end.blocks[0])) for end in ends if end.opcode == "br"}
    asked = [row for row in rows if (row.condition, row.holds) not in stays]
    if not all(regions.decided(row.condition) for row in asked):
        return guards, False
    return frozenset((row.condition, row.holds) for row in asked), True


def _nest(regions: Ahead, scope: Loop, instr: Instruction) -> list[Loop]:
    """The loops around an instruction that lie in a loop, innermost first."""
    inner = regions.induction.loops.of(instr.block) if instr.block is not None else None
    return [each for each in (inner.ancestors() if inner is not None else ()) if each is not scope and (
        scope.contains(each.header))]  # fmt: skip


def _groups(rows: Iterable[_Write]) -> Iterator[list[_Write]]:
    """Stores of one block next to one another, from the lowest on; what lies apart is a group of its own."""
    alike: dict[object, list[_Write]] = {}
    for row in rows:
        fixed = isinstance(row.size, ConstInt)
        key = (row.instr.block, frozenset(row.form.terms.items())) if fixed else row.instr
        alike.setdefault(key, []).append(row)
    for each in alike.values():
        each.sort(key=lambda row: signed(row.form.const))
        group = [each[0]]
        for row in each[1:]:
            if signed(row.form.const) > _end(group):
                yield group
                group = []
            group.append(row)
        yield group


def _end(group: Sequence[_Write]) -> int:
    return max(signed(row.form.const) + row.size.value for row in group if isinstance(row.size, ConstInt))


def _written(regions: Ahead, group: Sequence[_Write], nest: list[Loop], guards: frozenset[Guard]) -> _Touched | None:
    first = group[0]
    fixed = isinstance(first.size, ConstInt)
    size = ConstInt(ty.I64, _end(group) - signed(first.form.const)) if fixed else first.size
    return _touched(regions, first.form, size, nest, guards)


def _touched(regions: Ahead, form: Affine, size: Value, nest: list[Loop], guards: frozenset[Guard]) -> _Touched | None:
    found = regions.linear(form, nest)
    length = const(size.value) if isinstance(size, ConstInt) else regions.known(("value", size))
    if found is None or length is None or len(nest) > _DEEPEST:
        return None
    start, steps = found
    rows = []
    for loop, step in steps.items():
        count = regions.induction.trip_count(loop)
        often = regions.known(count.expr) if count is not None and count.certain else None
        if often is None:
            return None
        rows.append((step, often))
    return _Touched(start, length, tuple(rows), guards)


def _behind(
    scope: Loop, regions: Ahead, group: Sequence[_Write], nest: list[Loop], guards: frozenset[Guard],
    reader: Instruction,
) -> bool:  # fmt: skip
    """Whether no iteration comes to a reader before it is through with the stores, where their guards hold."""
    block, home = reader.block, group[0].instr.block
    assert block is not None and home is not None
    if block is home and not nest:
        order = block.instructions
        return all(order.index(row.instr) < order.index(reader) for row in group)
    held = set(nest[-1].blocks) if nest else {home}
    return block not in held and block not in _before(scope, regions, held, guards)


def _before(scope: Loop, regions: Ahead, held: set[Block], guards: frozenset[Guard]) -> set[Block]:
    """The blocks that an iteration may come to without these, where guards hold."""
    cfg: Cfg = regions.induction.cfg
    start = scope.header
    seen = set() if start in held else {start}
    work = list(seen)
    while work:
        block = work.pop()
        end = block.terminator
        for after in cfg.succs(block):
            if after in seen or after in held or after is start or not scope.contains(after):
                continue
            if end.opcode == "br" and len(set(end.blocks)) == 2:
                holds = parts(end.operands[0], end.blocks[0] is after)
                other = parts(end.operands[0], end.blocks[0] is not after)
                if guards.issuperset(other) or any((value, not outcome) in guards for value, outcome in holds):
                    continue
            seen.add(after)
            work.append(after)
    return seen


def _reads(
    regions: Ahead, scope: Loop, readers: Sequence[Instruction], bases: Sequence[Value]
) -> tuple[_Touched, ...] | None:
    """What is read, by what runs in every iteration: it goes through all of that, and nothing wraps around then."""
    found: list[_Touched] = []
    for reader in readers:
        if reader.opcode == "load":
            pointer, size = reader.operands[0], ConstInt(ty.I64, ty.store_size(reader.type))
        elif reader.opcode == "call" and (reader.callee_name or "").startswith("llvm.memcpy."):
            pointer, size = reader.args[1], reader.args[2]  # type: ignore[assignment]
        else:
            return None
        base, form = regions.induction.address(pointer)
        guards, sure = _guards(regions, reader)
        if not sure or not any(base is each for each in bases):
            return None
        touched = _touched(regions, form, size, _nest(regions, scope, reader), guards)
        if touched is None:
            return None
        found.append(touched)
    return tuple(found)
