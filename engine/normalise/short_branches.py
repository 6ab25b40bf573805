"""Short branches of innermost loops become selects (if-conversion), so that the loops of their derivatives vectorise.

    l = a * b <= 0 ? 0 : (|a| < |b| ? a : b);        // a limiter of slopes

LLVM vectorises such a loop as it is: it computes both sides for all lanes. But its reverse hands adjoints on from one
iteration to the next (those of u[i + 1], which are those of u[i] in the next one), through the branches, and a value
that a phi of such a branch hands on LLVM does not take for one of the iteration before (measured: 5.6 times the primal
with branches, 2.3 without; a step of a scheme with limiters, 16 and 6).

Done where it leaves the loop without any branch but that of its end: sides of operations that may run although the
program would not have run them, without calls but those of intrinsics for one operation, a few of them; and where what
the loop hands on to itself goes through the branches as a sum at most, to which the side that is not taken adds -0.0,
which changes no number. (Extrema with their index LLVM knows in the form of branches alone.) Values stay as they are,
to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import Dominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstFloat, Function, Instruction, Value, const_float
from irgrad.engine.ir.opcodes import ACCESSES, SPECULATABLE
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.early_loads import early_loads

__all__ = ["flatten_at", "join", "predecessors", "select_branches"]

_ONE = 24  # operations of the sides of one branch
_ALL = 64  # and of all branches of a loop
_SIMPLE = ("llvm.fabs.", "llvm.sqrt.", "llvm.copysign.", "llvm.fmuladd.", "llvm.fma.", "llvm.minnum.", "llvm.maxnum.",
           "llvm.minimum.", "llvm.maximum.", "llvm.smin.", "llvm.smax.", "llvm.umin.", "llvm.umax.", "llvm.abs.",
           "llvm.floor.", "llvm.ceil.", "llvm.trunc.", "llvm.rint.")  # fmt: skip


def select_branches(fn: Function) -> int:
    """Short branches of innermost loops become selects. Returns how many did."""
    if not any(block.terminator.opcode == "br" and block.terminator.operands for block in fn.blocks):
        return 0
    early = early_loads(fn, lambda loop, loads: _pays(fn, loop, loads))
    loops, dominators = get(Loops, fn), get(Dominators, fn)
    uses: Uses | None = None
    chosen: list[tuple[Loop, set[Instruction]]] = []
    for loop in loops.all:
        latch = loop.latch
        if loop.children or latch is None or loop.exiting != [latch] or len(loop.blocks) < 3:
            continue
        sides = [block for block in loop.blocks if not dominators.dominates(block, latch)]
        costs = [_units(block, early) for block in sides]
        if sides and sum(costs) <= _ALL and max(costs) <= _ONE and not any(map(_calls, loop.blocks)):
            uses = uses or uses_of(fn.blocks)
            sums = _sums(loop, set(sides), uses)
            if sums is not None:
                chosen.append((loop, sums))
    gone, replaced = set[Block](), dict[Value, Value]()
    total = sum(_flatten(loop, sums, gone, replaced, early) for loop, sums in chosen)
    if total:
        fn.blocks[:] = [b for b in fn.blocks if b not in gone]
        replace_uses(fn, {phi: _final(value, replaced) for phi, value in replaced.items()})
        if early:
            _load_once(fn, [block for loop, _ in chosen for block in loop.blocks if block not in gone])
    return total


def _load_once(fn: Function, blocks: Sequence[Block]) -> None:
    """Loads that both sides of a branch had are one."""
    replaced: dict[Value, Value] = {}
    for block in blocks:
        known: dict[tuple[Value, ty.Type], Instruction] = {}
        for instr in block.instructions:
            if instr.opcode == "load" and not instr.volatile and not instr.ordering:
                first = known.setdefault((_final(instr.operands[0], replaced), instr.type), instr)
                if first is not instr:
                    replaced[instr] = first
            elif instr.opcode == "select" and (
                _final(instr.operands[1], replaced) is _final(instr.operands[2], replaced)
            ):
                replaced[instr] = _final(instr.operands[1], replaced)
            elif instr.opcode in ACCESSES or (instr.is_call and not _simple(instr)):
                known.clear()
    if replaced:
        replace_uses(fn, {value: _final(other, replaced) for value, other in replaced.items()})
        for block in blocks:
            block.instructions = [i for i in block.instructions if i not in replaced]


def _pays(fn: Function, loop: Loop, loads: set[Instruction]) -> bool:
    """Whether the branches of a loop become selects where these loads may be made before them. (A loop that sums may
    be summed in another rounding then, product and sum at once or not.)"""
    assert loop.latch is not None
    dominators = get(Dominators, fn)
    sides = [block for block in loop.blocks if not dominators.dominates(block, loop.latch)]
    costs = [_units(block, loads) for block in sides]
    if not sides or sum(costs) > _ALL or max(costs) > _ONE or any(map(_calls, loop.blocks)):
        return False
    return _sums(loop, set(sides), uses_of(fn.blocks)) == set()


def _units(block: Block, early: Set[Instruction] = frozenset()) -> int:
    """Operations of a block that may run although the program would not have run it, `early` loads with them;
    `_ALL` + 1 where one may not."""
    if block.terminator.opcode != "br":
        return _ALL + 1
    own = [i for i in block.instructions[:-1] if i.opcode != "phi"]
    return len(own) if all(i.opcode in SPECULATABLE or _simple(i) or i in early for i in own) else _ALL + 1


def _simple(instr: Instruction) -> bool:
    return instr.opcode == "call" and (instr.callee_name or "").startswith(_SIMPLE)


def _calls(block: Block) -> bool:
    """Whether a block calls what is no intrinsic: such loops rarely vectorise, and wait for the calls."""
    return any(i.is_call and not (i.callee_name or "").startswith("llvm.") for i in block.instructions)


def _sums(loop: Loop, sides: set[Block], uses: Uses) -> set[Instruction] | None:
    """The values of sums that a loop hands on to itself, with their phis; None where something else goes through a
    branch, or is handed on as no sum."""
    found = set[Instruction]()
    for phi in loop.header.phis:
        after, work = set[Instruction](), [phi]
        while work:
            for user in uses.get(work.pop(), ()):
                if user not in after and loop.contains(user.block) and user not in loop.header.phis:
                    after.add(user)
                    work.append(user)
        back: list[Value] = [phi.operands[phi.blocks.index(loop.latch)]]  # type: ignore[arg-type]
        ring = set[Instruction]()
        while back:
            value = back.pop()
            if isinstance(value, Instruction) and value in after and value not in ring:
                ring.add(value)
                back += value.operands
        if phi.type.is_fp:
            ring.add(phi)
            if not all(i.opcode == "phi" or _summed(i, ring) is not None or _extremum(i, sides) for i in ring):
                return None
            found |= ring
        elif any(i.opcode == "phi" or i.block in sides for i in ring):
            return None
    return found


def _summed(instr: Instruction, ring: Set[Instruction]) -> int | None:
    """Which operand of an addition is the sum so far; None for what is no addition to one of these values."""
    if instr.opcode == "fadd":
        found = [k for k in (0, 1) if instr.operands[k] in ring]
    elif instr.opcode == "fsub":
        found = [0] if instr.operands[0] in ring and instr.operands[1] not in ring else []
    elif (instr.callee_name or "").startswith(("llvm.fmuladd.", "llvm.fma.")):
        found = [2] if instr.operands[2] in ring and ring.isdisjoint(instr.operands[:2]) else []
    else:
        return None
    return found[0] if len(found) == 1 else None


def _extremum(instr: Instruction, sides: set[Block]) -> bool:
    names = ("llvm.minnum.", "llvm.maxnum.", "llvm.minimum.", "llvm.maximum.")
    return (instr.callee_name or "").startswith(names) and instr.block not in sides


def _flatten(
    loop: Loop, sums: set[Instruction], gone: set[Block], replaced: dict[Value, Value], early: Set[Instruction]
) -> int:
    """Flatten the branches of a loop, innermost first; the number of them. Blocks that are `gone` stay in the function,
    and phis that are `replaced` in what is outside of the loop, until all loops are done."""
    total = 0
    blocks = list(loop.blocks)
    while True:
        preds = predecessors(blocks)
        sides = next((s for b in blocks if b is not loop.latch
                      and (s := flatten_at(b, preds, _ALL, lambda side: _units(side, early), sums))), [])  # fmt: skip
        if not sides:
            return total
        total += 1
        blocks = [b for b in blocks if b not in sides]
        joined, phis = join(blocks, keep=loop.latch)
        blocks = [b for b in blocks if b not in joined]
        gone.update(sides, joined)
        replaced.update(phis)


def join(blocks: Sequence[Block], keep: Block | None = None) -> tuple[set[Block], dict[Value, Value]]:
    """Blocks that follow each other without a choice become one: those that are gone, and what became of their phis,
    which are replaced in these blocks. `keep`: a block that stays one of its own."""
    preds = predecessors(blocks)
    replaced: dict[Value, Value] = {}
    gone: set[Block] = set()
    for block in blocks:
        while block not in gone and block.terminator.opcode == "br" and not block.terminator.operands:
            after = block.successors[0]
            if preds.get(after) != [block] or after is block or after is keep:
                break
            block.instructions.pop()
            for instr in after.instructions:
                if instr.opcode == "phi":
                    replaced[instr] = instr.operands[0]
                    continue
                instr.block = block
                block.instructions.append(instr)
            for to in block.successors:
                if to in preds:
                    preds[to] = [block if b is after else b for b in preds[to]]
                for phi in to.phis:
                    phi.blocks = [block if b is after else b for b in phi.blocks]
            gone.add(after)
    for block in blocks if replaced else ():
        if block not in gone:
            for instr in block.instructions:
                instr.operands = [_final(v, replaced) for v in instr.operands]
    return gone, replaced


def _final(value: Value, replaced: dict[Value, Value]) -> Value:
    while value in replaced:
        value = replaced[value]
    return value


def predecessors(blocks: Iterable[Block]) -> dict[Block, list[Block]]:
    """The blocks of these from which each of them is reached."""
    out: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in out:
        for to in block.successors:
            if to in out:
                out[to].append(block)
    return out


def flatten_at(
    block: Block, preds: Mapping[Block, list[Block]], limit: int, cost: Callable[[Block], int],
    sums: Set[Instruction] = frozenset(),
) -> list[Block]:  # fmt: skip
    """Make selects of the branch at the end of a block, where its sides cost no more. Returns the sides, which are gone
    then; none where that was not possible.

        p: br %c, a, m      a: %x = ...; br m      m: %y = phi [%x, a], [%z, p]

    becomes `p: %x = ...; %y = select %c, %x, %z; br m`, and the same with two sides. `cost`: of what a side does;
    `sums`: values of sums, to which a side that is not taken adds nothing.
    """
    end = block.terminator
    if end.opcode != "br" or not end.operands:
        return []
    yes, no = end.blocks
    if yes is no:
        return []
    sides = [side if _is_side(side, preds) else None for side in (yes, no)]
    ends = [side.successors[0] if side is not None else to for side, to in zip(sides, (yes, no), strict=True)]
    if ends[0] is not ends[1]:  # a triangle whose other side also looks like one
        for keep in (0, 1):
            if sides[keep] is not None and ends[keep] is (yes, no)[1 - keep]:
                sides[1 - keep], ends[1 - keep] = None, ends[keep]
                break
        else:
            return []
    if sides == [None, None] or sum(cost(side) for side in sides if side is not None) > limit:
        return []
    _merge(block, sides, ends[0], sums)
    return [side for side in sides if side is not None]


def _is_side(block: Block, preds: Mapping[Block, list[Block]]) -> bool:
    alone = len(preds.get(block, ())) == 1 and not block.phis
    return alone and block.terminator.opcode == "br" and len(block.successors) == 1


def _merge(block: Block, sides: list[Block | None], out: Block, sums: Set[Instruction]) -> None:
    branch = block.instructions.pop()
    condition = branch.operands[0]
    came = [side if side is not None else block for side in sides]
    masked = {phi: total for phi in out.phis if phi in sums
              for total in [_masked(phi, came, sides, condition, sums)] if total is not None}  # fmt: skip
    for side in sides:
        if side is not None:
            for instr in side.instructions[:-1]:
                instr.block = block
                block.instructions.append(instr)
    for phi in out.phis:
        values: list[Value] = [phi.operands[phi.blocks.index(source)] for source in came]
        if values[0] is values[1]:
            chosen = values[0]
        elif phi in masked:
            chosen = masked[phi]
        else:
            select = Instruction("select", phi.type, [condition, *values])
            select.block = block
            block.instructions.append(select)
            chosen = select
        rows = [(v, b) for v, b in zip(phi.operands, phi.blocks, strict=True) if b not in came]
        phi.operands = [*(v for v, _ in rows), chosen]
        phi.blocks = [*(b for _, b in rows), block]
    jump = Instruction("br", ty.VOID, blocks=[out])
    jump.block = block
    block.instructions.append(jump)


def _masked(
    phi: Instruction, came: list[Block], sides: list[Block | None], condition: Value, sums: Set[Instruction]
) -> Value | None:
    """The sum to which both sides of a branch add, one after the other, -0.0 where they are not taken; None, and
    nothing has changed, where they do not begin with the same value."""
    chains: list[list[Instruction]] = []
    starts: list[Value] = []
    for source, side in zip(came, sides, strict=True):
        value: Value = phi.operands[phi.blocks.index(source)]
        chain: list[Instruction] = []
        while isinstance(value, Instruction) and value.block is side and side is not None:
            at = _summed(value, sums)
            if at is None:
                return None
            chain.append(value)
            value = value.operands[at]
        chains.append(chain[::-1])
        starts.append(value)
    if starts[0] is not starts[1] or not any(chains):
        return None
    for taken, (side, chain) in enumerate(zip(sides, chains, strict=True)):
        for add in chain:
            assert side is not None
            for place, nothing in _nothing(add, _summed(add, sums)):
                pair = [add.operands[place], const_float(add.type, nothing)]
                select = Instruction("select", add.type, [condition, *(pair[::-1] if taken else pair)])
                select.block = side
                side.instructions.insert(side.instructions.index(add), select)
                add.operands[place] = select
    if all(chains):
        first = chains[1][0]
        first.operands[_summed(first, sums)] = chains[0][-1]  # type: ignore[index]
    return (chains[1] or chains[0])[-1]


def _nothing(add: Instruction, sum_at: int | None) -> list[tuple[int, float]]:
    """Operands of an addition and what they are where it adds nothing: x + -0.0, x - 0.0 and -0.0 * 1.0 + x are x."""
    if add.opcode == "call":
        for at in (0, 1):
            factor = add.operands[at]
            if isinstance(factor, ConstFloat) and math.isfinite(factor.value):
                return [(1 - at, math.copysign(0.0, -factor.value))]
        return [(0, -0.0), (1, 1.0)]
    return [(1, 0.0)] if add.opcode == "fsub" else [(1 if sum_at == 0 else 0, -0.0)]
