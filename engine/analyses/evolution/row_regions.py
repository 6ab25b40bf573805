"""The bytes that accesses of a loop touch through addresses in memory: rows of a table, of vectors in a vector.

    u[i][j]:     row = load (table + start + step * i ...) ; an access to row + offset
    u[i][j][k]:  the table is itself the row of another one

Which rows, is a nest of counters over the table, or tables; how far into each, the least and the greatest offset, as in
`regions.py`. Counters of the one must not be those of the other, and every loop has to run as often as is known before:
so what is told is what the loop reaches, row by row, whatever the lengths of the rows are. An access that hangs on what
the loop computes is told where one that does not reaches as far. Where the offset is not told that way, whole rows are
meant: of allocations of one size that is known, to whose begin the table's addresses lead, and of which each is read or
written anyhow. The loop must not change the table: whoever asks looks after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.evolution import trips
from irgrad.engine.analyses.evolution.ahead import Ahead, Writer
from irgrad.engine.analyses.evolution.regions import Guard
from irgrad.engine.analyses.evolution.trips import Expr
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Instruction, Value

__all__ = ["DEEPEST", "RowRegion", "RowRegions", "row_of"]

DEEPEST = 3
"""Loops over the rows of one access."""
_NONE = trips.const(0)

Length = Callable[[Instruction], Expr | None]
"""The bytes of each allocation to whose begin a loaded address leads, None where that is not told."""


@dataclass(frozen=True, slots=True)
class RowRegion:
    """From `low` to `high` bytes behind each address that lies at table + start + the sum of step * [0 .. count], where
    the loop runs more than `after` times and all guards have this outcome. steps: of (step, count, start of the next
    table, which is at the address that lies there, or None where the sum goes on)."""

    table: Value
    start: Expr
    steps: tuple[tuple[Expr, Expr, Expr | None], ...]
    low: tuple[int, Expr]
    high: tuple[int, Expr]
    guards: frozenset[Guard] = frozenset()
    after: int = 0

    def covers(self, other: RowRegion) -> bool:
        """Whether these rows are touched, and no less of each, wherever the other ones may be."""
        rows = (self.table, self.start, self.steps, self.after) == (other.table, other.start, other.steps, other.after)
        same = rows and self.low[1] == other.low[1] and self.high[1] == other.high[1]
        return same and self.guards <= other.guards and self.low[0] <= other.low[0] and self.high[0] >= other.high[0]

    def emit(self, at: Writer, iterations: Value | None) -> list[Value]:
        """Whether there is any, 1 or 0; the address of the first address; DEEPEST times count, step, whether another
        table follows, and its start, without the last two of the last; low, high.

        iterations: of the loop, which is only asked where tables change places
        """
        b, no = at.b, ConstInt(ty.I1, 0)
        runs: Value = ConstInt(ty.I1, 1)
        for condition, outcome in sorted(self.guards, key=lambda row: (row[0].name or "", row[1])):
            holds = at.frozen(at.value(condition))
            runs = b.select(runs, holds if outcome else b.binary("xor", holds, ConstInt(ty.I1, 1)), no)
        if self.after:
            assert iterations is not None
            runs = b.select(runs, b.icmp("ugt", iterations, ConstInt(ty.I64, self.after)), no)
        found: list[Value] = [b.cast("zext", runs, ty.I64), b.gep(ty.I8, self.table, at.number(self.start))]
        for step, count, follows in (*self.steps, *[(_NONE, _NONE, None)] * (DEEPEST - len(self.steps))):
            found += [at.number(count), at.number(step)]
            found += [ConstInt(ty.I64, follows is not None), at.number(follows or _NONE)]
        del found[-2:]
        ends = [trips.make("add", rest, trips.const(known)) for known, rest in (self.low, self.high)]
        return [*found, *map(at.number, ends)]


def row_of(ahead: Ahead, pointer: Value) -> Instruction | None:
    """The load in the loop of the address that a pointer is made of."""
    base, _ = ahead.induction.address(pointer)
    if isinstance(base, Instruction) and base.opcode == "load" and base.type.is_ptr and not ahead.there(base):
        return base if ahead.loop.contains(base.block) else None
    return None


class RowRegions:
    """The row regions of accesses in one loop. Answers are regions, or the reason in words why there are none.

    counted: whether the loop runs as often as is known before it, and ends in no other way
    """

    def __init__(self, ahead: Ahead, length: Length, *, counted: bool) -> None:
        self.ahead, self.length, self.counted = ahead, length, counted
        self._sure: list[RowRegion] | None = None

    def of(self, instr: Instruction, row: Instruction, pointer: Value, size: Value) -> list[RowRegion] | str:
        """Of an access of so many bytes through the address that `row` loads."""
        found = self._of(instr, row, pointer, size)
        if isinstance(found, list) and self.ahead.guards(instr)[1]:
            return found
        if isinstance(found, list) and all(any(other.covers(each) for other in self._certain()) for each in found):
            return found
        length, touched = self.length(row), self._touched(row)
        rows = self._rows(row) if length is not None and touched is not None else ""
        if isinstance(rows, str) or length is None or touched is None:
            return found if isinstance(found, str) else "whether it runs depends on what the loop computes"
        return [replace(each, high=(0, length), guards=touched) for each in rows]

    def _of(self, instr: Instruction, row: Instruction, pointer: Value, size: Value) -> list[RowRegion] | str:
        """As if the access always ran."""
        rows, nest = self._rows(row), self._nest(row)
        ends = self._ends(nest, pointer, size) if not isinstance(rows, str) else ""
        if isinstance(rows, str) or isinstance(ends, str):
            return rows if isinstance(rows, str) else ends  # type: ignore[return-value]
        return [replace(each, low=ends[0], high=ends[1], guards=self.ahead.guards(instr)[0]) for each in rows]

    def tables(self, row: Instruction) -> list[Instruction]:
        """The loads in the loop that lead to an address, and its own, outermost table first."""
        above = row_of(self.ahead, row.operands[0])
        return [*(self.tables(above) if above is not None else ()), row]

    def _nest(self, row: Instruction) -> list[Loop]:
        """The loops over the addresses that are loaded."""
        forms = [self.ahead.induction.address(load.operands[0])[1] for load in self.tables(row)]
        return [loop for form in forms for loop in form.loops() if self.ahead.loop.contains(loop)]

    def _rows(self, row: Instruction) -> list[RowRegion] | str:
        """Which addresses are loaded, with nothing of what lies behind them."""
        loads = self.tables(row)
        table, _ = self.ahead.induction.address(loads[0].operands[0])
        tables = self.ahead.bases(table)
        if tables is None:
            return "the table that its address is read from is another one in each iteration"
        if len(tables) > 1 and not self.counted:
            return "how often tables of addresses change places is not known"
        nest, starts, steps = self._nest(row), list[Expr](), list[tuple[Expr, Expr, Expr | None]]()
        if len(set(nest)) < len(nest):
            return "the rows of its tables move together"
        for load in loads:
            level = self._level(load)
            if level is None:
                return "which addresses of a table it reads is not known before the loop"
            starts.append(level[0])
            if len(starts) > 1:
                steps = steps or [(_NONE, _NONE, None)]
                steps[-1] = *steps[-1][:2], level[0]
            steps += level[1] or ([(_NONE, _NONE, None)] if load is not loads[-1] else [])
        if len(steps) > DEEPEST or (len(steps) == DEEPEST and steps[-1][2] is not None):
            return "it is read from too many tables, one in the other"
        return [RowRegion(t, starts[0], (*steps,), (0, _NONE), (0, _NONE), after=n) for n, t in enumerate(tables)]

    def _level(self, load: Instruction) -> tuple[Expr, list[tuple[Expr, Expr, Expr | None]]] | None:
        """Which addresses of one table are loaded: its start, and the steps."""
        _, at = self.ahead.induction.address(load.operands[0])
        nest = [loop for loop in at.loops() if self.ahead.loop.contains(loop)]
        counts = {loop: self._often(loop) for loop in nest}
        found = self.ahead.linear(at, nest) if None not in counts.values() else None
        if found is None:
            return None
        return found[0], [(found[1][loop], often, None) for loop, often in counts.items()
                          if loop in found[1] and often is not None]  # fmt: skip

    def _certain(self) -> Sequence[RowRegion]:
        """What is touched in every iteration, apart from conditions that are known before the loop."""
        if self._sure is None:
            self._sure = []
            for instr in (i for block in self.ahead.loop.blocks for i in block.instructions):
                if instr.opcode in ("load", "store") and self.ahead.guards(instr)[1]:
                    kind = instr.type if instr.opcode == "load" else instr.operands[0].type
                    row = row_of(self.ahead, instr.operands[-1])
                    size = ConstInt(ty.I64, ty.store_size(kind))
                    found = self._of(instr, row, instr.operands[-1], size) if row is not None else ""
                    self._sure += found if isinstance(found, list) else []
        return self._sure

    def _touched(self, row: Instruction) -> frozenset[Guard] | None:
        """The conditions, known before the loop, on which something is read or written behind each address that is
        loaded: all of them lead to memory then. None where that hangs on other conditions."""
        for instr in (i for block in self.ahead.loop.blocks for i in block.instructions):
            if instr.opcode in ("load", "store") and row_of(self.ahead, instr.operands[-1]) is row:
                guards, sure = self.ahead.guards(instr)
                if sure:
                    return guards
        return None

    def _ends(self, nest: list[Loop], pointer: Value, size: Value) -> tuple[tuple[int, Expr], tuple[int, Expr]] | str:
        """How far an access reaches into each row."""
        ahead = self.ahead
        _, offset = ahead.induction.address(pointer)
        length = trips.const(size.value) if isinstance(size, ConstInt) else ahead.known(("value", size))
        if length is None:
            return "its length is not known before the loop"
        inner = [loop for loop in offset.loops() if ahead.loop.contains(loop)]
        if any(loop in nest for loop in inner):
            return "how far it reaches is another matter for each row"
        if any(self._often(loop) is None for loop in inner):
            return "how far it reaches into a row is not known before the loop"
        ends = ahead.ends(offset)
        if isinstance(ends, str):
            return ends
        low, (high, more) = ends
        return low, (high + length[1], more) if length[0] == "const" else (high, trips.make("add", more, length))

    def _often(self, loop: Loop) -> Expr | None:
        """How often a loop of the nest goes back to its begin: the same each time that it is entered."""
        if loop is self.ahead.loop and not self.counted:
            return None
        count = self.ahead.induction.trip_count(loop)
        return self.ahead.known(count.expr) if count is not None and self.ahead.whole(loop) else None
