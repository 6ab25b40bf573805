"""Tables of pointers to rows (`double **`) whose rows lie one behind the other, asked when the program runs.

What is read through a table may be anywhere: rows may be each other, so nothing is known of two accesses, and a loop
over rows has no lanes. Most tables lead to one array, row by row. A function that reads its tables and never writes
them is written once more here, over these arrays: row i begins i steps behind row 0. A step is as long as what is
touched of a row, which is a guess; what makes it true is that all pointers of the tables, and those of their shadows,
are compared in front of the call (`chooser_text`).

A comparison reads no pointer that the function would not. The bytes of a table from the first to the last one that is
read are all known to be there, as it lies in one object; that both ends are reached follows from the first and the last
iterations of the loops around a read, and from the conditions on it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution import trips
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.analyses.evolution.trips import Expr, TripCount
from irgrad.engine.enzyme.early_values import EarlyValues, UnknownError
from irgrad.engine.enzyme.reach import Reach
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import uses_of

__all__ = ["SPACED", "Flat", "chooser_text", "flattened"]

_SPACED = "irgrad.rows.spaced"
_MOST = 8  # loops around a read of a table
SPACED = f"""
define linkonce_odr i1 @{_SPACED}(ptr %table, i64 %low, i64 %high, i64 %step, ptr %out) noinline nounwind {{
entry:
  %some = icmp slt i64 %low, %high
  br i1 %some, label %first, label %no
first:
  %at = getelementptr i8, ptr %table, i64 %low
  %row = load ptr, ptr %at, align 8
  %start = ptrtoint ptr %row to i64
  %index = ashr i64 %low, 3
  %back = mul i64 %index, %step
  %zero = sub i64 %start, %back
  %base = inttoptr i64 %zero to ptr
  store ptr %base, ptr %out, align 8
  br label %compare
compare:
  %k = phi i64 [ %low, %first ], [ %next, %more ]
  %wanted = phi i64 [ %start, %first ], [ %following, %more ]
  %place = getelementptr i8, ptr %table, i64 %k
  %found = load i64, ptr %place, align 8
  %same = icmp eq i64 %found, %wanted
  br i1 %same, label %more, label %no
more:
  %next = add i64 %k, 8
  %following = add i64 %wanted, %step
  %on = icmp slt i64 %next, %high
  br i1 %on, label %compare, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


@dataclass(frozen=True, slots=True)
class Flat:
    """A root over the arrays that its tables lead to. tables: the arguments that are such; check: the text of what
    compares them; jumps: whether the innermost loops read pointers of a table, one in each iteration."""

    text: str
    tables: tuple[int, ...]
    check: str
    jumps: bool


@dataclass(slots=True)
class _Table:
    """What reads a table, with the number of the row; and the ends of what is touched of rows."""

    reads: list[tuple[Instruction, list[tuple[Value, int]]]] = field(default_factory=list)
    ends: dict[tuple[int, Expr], None] = field(default_factory=dict)


def flattened(
    module: Module, fn: Function, name: str, check: str, pointers: Sequence[int], shadowed: Sequence[int],
    numbers: frozenset[int], given: str,
) -> Flat | None:  # fmt: skip
    """The function over the arrays that its tables lead to, called `name`, which it becomes; None where it has no
    tables, or where nothing could be compared.

    check: what the comparing function is called; numbers: the arguments that lead to numbers of the call's; given: what
    is said of the arguments in `pointers` (see `root_text`)
    """
    try:
        tables = _tables(fn, pointers)
        if not tables:
            return None
        induction, loops = Induction(fn), get(Loops, fn)
        reach = Reach(fn, induction, loops)
        _touched(fn, tables, reach)
        compared = _comparing(module, fn, check, tables, shadowed, reach, numbers)
    except UnknownError:
        return None
    jumps = any(reach.varies(load) for table in tables.values() for load, _ in table.reads)
    try:
        _rewrite(fn, tables, numbers, reach)
    except UnknownError:
        return None
    for n in pointers:
        fn.args[n].attrs = given
    return Flat(_only(module, fn, name), tuple(tables), compared, jumps)


def _only(module: Module, fn: Function, name: str) -> str:
    """The text of a module with this function under another name."""
    from irgrad.engine.ir.printer import to_text

    del module.functions[fn.name or ""]
    fn.name = name
    module.functions[name] = fn
    return to_text(module)


def _tables(fn: Function, pointers: Sequence[int]) -> dict[int, _Table]:
    """The arguments from which pointers are read. Raises UnknownError for what is no table only."""
    uses, found = uses_of(fn.blocks), dict[int, _Table]()
    for n in pointers:
        table, others = _Table(), False
        work: list[tuple[Value, list[tuple[Value, int]]]] = [(fn.args[n], [])]
        while work:
            address, index = work.pop()
            for user in uses.get(address, ()):
                if user.opcode == "load" and user.type.is_ptr:
                    table.reads.append((user, index))
                elif user.opcode == "getelementptr" and (more := _index(user)) is not None:
                    work.append((user, [*index, *more]))
                else:
                    others = True
        if table.reads and others:
            raise UnknownError
        if table.reads:
            found[n] = table
    return found


def _index(address: Instruction) -> list[tuple[Value, int]] | None:
    """By how many pointers an address is moved, as a sum of numbers and constants."""
    index = address.operands[1] if len(address.operands) == 2 else None
    if index is None or address.elem is None or not isinstance(index.type, ty.IntType):
        return None
    size = ty.size_of(address.elem)
    if isinstance(index, ConstInt):
        moved = index.value * size
        return [(ConstInt(ty.I64, 0), moved // 8)] if moved % 8 == 0 else None
    return [(index, 0)] if size == 8 else None


def _touched(fn: Function, tables: Mapping[int, _Table], reach: Reach) -> None:
    """Note how far accesses through the pointers of tables reach."""
    rows = {load: table for table in tables.values() for load, _ in table.reads}
    for instr in fn.instructions():
        if instr.opcode not in ("load", "store"):
            continue
        base, form = reach.induction.address(instr.operands[-1])
        if not isinstance(base, Instruction) or base not in rows:
            continue
        kind = instr.type if instr.opcode == "load" else instr.operands[0].type
        try:
            _, (high, more) = reach.ends(form, reach.around(instr.block), {})
        except UnknownError:
            continue
        rows[base].ends[high + ty.store_size(kind), more] = None


def _step(b: Builder, table: _Table, known: Callable[[Expr], Expr]) -> Value:
    """How far rows are from each other: the greatest end. Raises UnknownError."""
    greatest: dict[Expr, int] = {}
    for high, more in table.ends:
        greatest[more] = max(high, greatest.get(more, high))
    found: Value | None = None
    for more, high in greatest.items():
        end = TripCount(trips.make("add", known(more), trips.const(high))).emit(b)
        found = end if found is None else b.select(b.icmp("sgt", end, found), end, found)
    if found is None:
        raise UnknownError
    return found


def _comparing(
    module: Module, fn: Function, name: str, tables: Mapping[int, _Table], shadowed: Sequence[int], reach: Reach,
    numbers: frozenset[int],
) -> str:  # fmt: skip
    """The text of `i1 @name(...)`, which takes the arguments, the shadows of those in `shadowed` and room for the
    addresses of row 0, those of the tables and then those of their shadows."""
    from irgrad.engine.ir.printer import to_text

    made = Function(name, ty.function(ty.I1, (ty.PTR,) * (len(fn.args) + len(shadowed) + 1)))
    made.tail = "nounwind"
    block = Block("entry")
    made.blocks = [block]
    b = Builder(block)
    early = EarlyValues(b, made.args, numbers)
    spaced = Function(_SPACED, ty.function(ty.I1, (ty.PTR, ty.I64, ty.I64, ty.I64, ty.PTR)))
    answer: Value = ConstInt(ty.I1, 1)
    asked: list[tuple[Value, Value, Value, Value, Value]] = []
    rows = [n for n in tables if n in shadowed]
    for at, (n, table) in enumerate(tables.items()):
        low, high, sure = _bounds(b, table, reach, early)
        step = _step(b, table, early.expr)
        places = [(made.args[n], at)]
        if n in shadowed:
            places.append((made.args[len(fn.args) + list(shadowed).index(n)], len(tables) + rows.index(n)))
        answer = b.binary("and", answer, sure)
        asked += [(place, low, high, step, b.gep(ty.PTR, made.args[-1], out)) for place, out in places]
    no = Block("no")
    Builder(no).ret(ConstInt(ty.I1, 0))
    for row in asked:
        then = Block(f"then{len(made.blocks)}")
        b.cond_br(answer, then, no)
        made.blocks.append(then)
        b = Builder(then)
        answer = b.call(spaced, row)
    b.ret(answer)
    made.blocks.append(no)
    whole = Module()
    whole.functions[_SPACED], whole.functions[name] = spaced, made
    for callee in [i.callee_name for i in made.instructions() if i.is_call]:
        whole.functions.setdefault(callee or "", module.functions.get(callee or "", spaced))
    whole.datalayout, whole.triple = module.datalayout, module.triple
    return to_text(whole)


def _bounds(b: Builder, table: _Table, reach: Reach, early: EarlyValues) -> tuple[Value, Value, Value]:
    """The first byte of a table that is read, the first that is not, and whether all between them is sure to be there.
    Raises UnknownError."""
    touched, sure, known = _Hull(b), _Hull(b), early.expr
    for load, _ in table.reads:
        loops = reach.around(load.block)
        form = reach.induction.address(load.operands[0])[1]
        if len(loops) > _MOST:
            raise UnknownError
        first, last = reach.ends(form, loops, {})
        touched.widen(_sum(b, known, first), _sum(b, known, last))
        assert load.block is not None
        fixes: list[dict[Loop, bool]] = [{}]
        for depth, loop in enumerate(loops):
            fixes += [{**dict.fromkeys(loops[:depth], False), loop: last} for last in (False, True)]
        for fixed in fixes:
            try:
                runs = reach.runs(early, load.block, loops, fixed)
                ends = reach.ends(form, loops, fixed)
                first_byte, last_byte = _sum(b, known, ends[0]), _sum(b, known, ends[1])
            except UnknownError:
                continue
            sure.widen(first_byte, last_byte, b.insert(Instruction("freeze", ty.I1, [runs or ConstInt(ty.I1, 1)])))
    if touched.low is None or touched.high is None or sure.low is None or sure.high is None:
        raise UnknownError
    there = b.binary("and", b.icmp("sle", sure.low, touched.low), b.icmp("sge", sure.high, touched.high))
    return touched.low, b.add(touched.high, ConstInt(ty.I64, 8), ()), there


class _Hull:
    """The least interval that holds others, some of which count only where a condition holds."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.low: Value | None = None
        self.high: Value | None = None

    def widen(self, low: Value, high: Value, runs: Value | None = None) -> None:
        """Make it hold another interval."""
        b = self.b
        if runs is not None:
            low = b.select(runs, low, ConstInt(ty.I64, 2**63 - 1))
            high = b.select(runs, high, ConstInt(ty.I64, -(2**63)))
        self.low = low if self.low is None else b.select(b.icmp("slt", low, self.low), low, self.low)
        self.high = high if self.high is None else b.select(b.icmp("sgt", high, self.high), high, self.high)


def _sum(b: Builder, known: Callable[[Expr], Expr], end: tuple[int, Expr]) -> Value:
    found = TripCount(trips.make("add", known(end[1]), trips.const(end[0]))).emit(b)
    return b.insert(Instruction("freeze", ty.I64, [found]))


def _rewrite(fn: Function, tables: Mapping[int, _Table], numbers: frozenset[int], reach: Reach) -> None:
    """Compute the pointers to rows in place of reading them."""
    start = Builder(fn.entry, 0)
    known = EarlyValues(start, fn.args, numbers).expr
    replaced: dict[Value, Value] = {}
    for n, table in tables.items():
        step = _step(start, table, known)
        for load, index in table.reads:
            assert load.block is not None
            before, first = reach.first(load.block, index)
            b = Builder(load.block, load.block.instructions.index(load))
            b.metadata = {kind: node for kind, node in load.metadata.items() if kind == "dbg"}
            number: Value = ConstInt(ty.I64, sum(constant for _, constant in index))
            for part, _ in index:
                number = b.add(number, b.to_i64(part, signed=True))
            row: Value = fn.args[n]
            if before is not None:  # what counters add has a form of its own, behind a row that is known before
                row, number = before.gep(ty.I8, row, before.mul(first, step)), b.sub(number, first)
            replaced[load] = b.gep(ty.I8, row, b.mul(number, step))
    replace_uses(fn, replaced)
    for block in fn.blocks:
        block.instructions = [instr for instr in block.instructions if instr not in replaced]
    fn.analyses = None


def chooser_text(
    name: str, flat: Flat, spaced: str, apart: str, made: tuple[str, str], kinds: Sequence[bool]
) -> str:  # fmt: skip
    """The function that calls one of two derivatives.

    spaced, apart: what compares the tables, and then the arrays; made: the derivative for arrays, and that for all
    else; kinds: for each argument of the root whether it has a shadow
    """
    rows = [n for n in flat.tables if kinds[n]]
    own = {f"%a{n}": f"%r{i}" for i, n in enumerate(flat.tables)}
    own |= {f"%d{n}": f"%r{len(flat.tables) + i}" for i, n in enumerate(rows)}
    slots = [slot for n, shadow in enumerate(kinds) for slot in ([f"%a{n}", f"%d{n}"] if shadow else [f"%a{n}"])]
    values = [f"%a{n}" for n in range(len(kinds))]
    order = [*values, *(f"%d{n}" for n, shadow in enumerate(kinds) if shadow)]

    def given(names: Sequence[str], flat: bool = False) -> str:
        return ", ".join(f"ptr {own.get(slot, slot) if flat else slot}" for slot in names)

    loads = "".join(f"  %p{i} = getelementptr ptr, ptr %out, i64 {i}\n  %r{i} = load ptr, ptr %p{i}, align 8\n"
                    for i in range(len(own)))  # fmt: skip
    first, second = made
    return f"""
declare i1 @{quoted_name(spaced)}({', '.join('ptr' for _ in (*order, ''))})
declare i1 @{quoted_name(apart)}({', '.join('ptr' for _ in order)})
declare void @{quoted_name(first)}({', '.join('ptr' for _ in slots)})
declare void @{quoted_name(second)}({', '.join('ptr' for _ in slots)})
define void @{quoted_name(name)}({given(slots)}) {{
  %out = alloca [{len(own)} x ptr], align 8
  %spaced = call i1 @{quoted_name(spaced)}({given(order)}, ptr %out)
  br i1 %spaced, label %rows, label %anything
rows:
{loads}  %apart = call i1 @{quoted_name(apart)}({given(order, True)})
  br i1 %apart, label %disjoint, label %anything
disjoint:
  call void @{quoted_name(first)}({given(slots, True)})
  ret void
anything:
  call void @{quoted_name(second)}({given(slots)})
  ret void
}}
"""
