"""Makes control flow reducible, and loops canonical.

`make_reducible` gives every cycle with several entries (a `goto` into a loop) a single one: all edges to its entries go
through one dispatch block that knows by a phi where to go on. Values that cross blocks of such a cycle go through stack
slots first, because the new edges break dominance (LLVM's mem2reg makes them SSA values again). Cycles inside are
treated in turn.

`canonicalise` gives every loop a preheader, a single latch and exit blocks of its own, keeping phis right.

Both change the function in place and report whether they did. Analyses made before are stale afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg, label, strongly_connected
from irgrad.engine.analyses.control.loops import Loops
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, MetadataValue, Value
from irgrad.engine.ir.opcodes import having
from irgrad.rules.errors import Unsupported

_REDIRECTABLE = having("redirectable")


def make_reducible(fn: Function) -> bool:
    """Rewrite irreducible control flow; False when there was none.

    Raises Unsupported where an edge into such a cycle cannot be redirected: to a landing pad, from indirectbr, callbr.
    """
    cfg = get(Cfg, fn)
    if not get(Loops, fn).irreducible:
        return False
    level: list[list[Block]] = [cfg.rpo]
    while level:
        preds = _predecessors(fn)
        below: list[list[Block]] = []
        knots: list[_Knot] = []
        for region in level:
            for part in _cycles(region):
                inside = set(part)
                entries = [b for b in part if any(p not in inside for p in preds[b])]
                if len(entries) > 1:
                    knots.append(_Knot(fn, part, entries))
                else:
                    header = entries[0] if entries else part[0]
                    below.append([b for b in part if b is not header])
        if knots:
            _demote(fn, knots)
            _dispatch(fn, knots)
        level = below + [knot.rest for knot in knots]
    return True


class _Knot:
    """A cycle with several entries, and the blocks made for it: the hub, and those through which it is entered."""

    __slots__ = ("entries", "hub", "number", "part", "selector", "stubs")

    def __init__(self, fn: Function, part: list[Block], entries: list[Block]) -> None:
        self.part = part
        self.entries = entries
        self.number = {entry: i for i, entry in enumerate(entries)}
        self.hub = Block("dispatch")
        self.hub.function = fn
        self.selector = _append(self.hub, Instruction("phi", ty.I32))
        self.stubs: dict[tuple[Block, bool], Block] = {}

    def stub(self, entry: Block, within: bool) -> Block:
        """The block by which edges to an entry reach the hub: edges from outside and from inside have one each."""
        if (entry, within) not in self.stubs:
            new = Block(None if entry.name is None else f"{entry.name}.{'again' if within else 'enter'}")
            new.function = self.hub.function
            _append(new, Instruction("br", ty.VOID, blocks=[self.hub]))
            self.selector.operands.append(ConstInt(ty.I32, self.number[entry]))
            self.selector.blocks.append(new)
            self.stubs[entry, within] = new
        return self.stubs[entry, within]

    @property
    def rest(self) -> list[Block]:
        """The blocks of the cycle without the hub, which is its header."""
        return self.part + [new for (_, within), new in self.stubs.items() if within]


def canonicalise(fn: Function) -> bool:
    """Give every loop a preheader, one latch and dedicated exits; False when all had them.

    Edges that cannot be redirected (to landing pads, from indirectbr or callbr) stay as they are.
    """
    layout: dict[Block, list[Block]] = {}
    loops = get(Loops, fn)
    for loop in loops.all:
        outside = [p for p in loops.cfg.preds(loop.header) if not loop.contains(p)]
        if loop.preheader is None and outside:
            _split(fn, loop.header, outside, "preheader", layout)
        if len(loop.latches) > 1:
            _split(fn, loop.header, loop.latches, "latch", layout)
    changed = bool(layout)
    _lay_out(fn, layout)
    while True:
        layout = {}
        loops = get(Loops, fn)
        for loop in reversed(loops.all):
            for target in loop.exits:
                preds = loops.cfg.preds(target)
                inside = [p for p in preds if loop.contains(p)]
                if target not in layout and len(inside) < len(preds):
                    _split(fn, target, inside, "exit", layout)
        if not layout:
            return changed
        changed = True
        _lay_out(fn, layout)


def split_predecessors(fn: Function, block: Block, preds: Iterable[Block], suffix: str) -> Block | None:
    """Put a new block between some predecessors and `block`; None where one of the edges cannot be redirected."""
    layout: dict[Block, list[Block]] = {}
    new = _split(fn, block, preds, suffix, layout)
    _lay_out(fn, layout)
    return new


def _split(
    fn: Function, block: Block, preds: Iterable[Block], suffix: str, layout: dict[Block, list[Block]]
) -> Block | None:
    """The same, the new block being left to `_lay_out`."""
    chosen = set(preds)
    if any(not _can_redirect(p, block) for p in chosen):
        return None
    new = Block(None if block.name is None else f"{block.name}.{suffix}")
    new.function = fn
    for phi in block.phis:
        pairs = list(zip(phi.operands, phi.blocks, strict=True))
        moved = [(v, b) for v, b in pairs if b in chosen]
        kept = [(v, b) for v, b in pairs if b not in chosen]
        value = moved[0][0]
        if any(v is not value for v, _ in moved):
            value = _append(new, Instruction("phi", phi.type, [v for v, _ in moved], blocks=[b for _, b in moved]))
        phi.operands = [*(v for v, _ in kept), value]
        phi.blocks = [*(b for _, b in kept), new]
    _append(new, Instruction("br", ty.VOID, blocks=[block]))
    for pred in chosen:
        pred.terminator.blocks = [new if b is block else b for b in pred.terminator.blocks]
    layout.setdefault(block, []).append(new)
    return new


# -- dispatch ---------------------------------------------------------------------------------------------------------


def _dispatch(fn: Function, knots: list[_Knot]) -> None:
    """Send every edge to the entries (which have no phis any more) through the hub of their cycle."""
    owner = {entry: knot for knot in knots for entry in knot.entries}
    home = {block: knot for knot in knots for block in knot.part}
    for block in fn.blocks:
        targets = block.successors
        if not any(b in owner for b in targets):
            continue
        for target in targets:
            if target in owner and not _can_redirect(block, target):
                raise Unsupported(
                    "this irreducible control flow cannot be rewritten",
                    where=f"@{fn.name}, block {label(target)}",
                    which=f"a cycle with {len(owner[target].entries)} entries",
                    because=f"block {label(block)} enters it by `{block.terminator.opcode}`: not redirectable",
                    fix="rewrite the jump into the loop in the source, or compile with -fno-exceptions",
                )
        block.terminator.blocks = [owner[b].stub(b, home.get(block) is owner[b]) if b in owner else b for b in targets]
    for knot in knots:
        cases: list[Value] = [ConstInt(ty.I32, i) for i in range(1, len(knot.entries))]
        _append(knot.hub, Instruction("switch", ty.VOID, [knot.selector, *cases], blocks=knot.entries))
    _lay_out(fn, {knot.entries[0]: [*knot.stubs.values(), knot.hub] for knot in knots})


def _lay_out(fn: Function, before: dict[Block, list[Block]]) -> None:
    """Insert new blocks before others (which may be new themselves)."""
    out: list[Block] = []
    for block in fn.blocks:
        stack = [block]
        while stack:
            item = stack.pop()
            new = before.pop(item, None)
            if new:
                stack.extend([item, *reversed(new)])
            else:
                out.append(item)
    fn.blocks = out


def _can_redirect(block: Block, target: Block) -> bool:
    """Can the edges from `block` to `target` be sent elsewhere (to a block that is no landing pad)?"""
    end = block.terminator
    return end.opcode in _REDIRECTABLE and not (end.opcode == "invoke" and end.blocks[1] is target)


def _predecessors(fn: Function) -> dict[Block, list[Block]]:
    preds: dict[Block, list[Block]] = {b: [] for b in fn.blocks}
    for block in get(Cfg, fn).rpo:
        for succ in block.successors:
            preds[succ].append(block)
    return preds


def _cycles(region: list[Block]) -> list[list[Block]]:
    """Strongly connected parts of more than one block of the graph restricted to some blocks."""
    index = {b: i for i, b in enumerate(region)}
    graph = [[index[s] for s in b.successors if s in index] for b in region]
    return [[region[i] for i in sorted(part)] for part in strongly_connected(graph) if len(part) > 1]


# -- values through memory -------------------------------------------------------------------------------------------


def _demote(fn: Function, knots: list[_Knot]) -> None:
    """Let no SSA value of these cycles be used outside its own block, and leave them no phis."""
    for knot in knots:
        knot.part = list(knot.part)
    part = [block for knot in knots for block in knot.part]
    part += _split_invokes(fn, knots)
    slots: list[Instruction] = []
    loads = {}
    before_end: dict[Block, list[Instruction]] = {}
    for block in part:
        phis = block.phis
        fresh = []
        for phi in phis:
            slot = _slot(slots, phi.type)
            for value, source in dict.fromkeys(zip(phi.operands, phi.blocks, strict=True)):
                before_end.setdefault(source, []).append(_store(value, slot))
            loads[phi] = Instruction("load", phi.type, [slot], name=phi.name)
            fresh.append(loads[phi])
        _place(block, fresh, drop=len(phis))
    for source, stores in before_end.items():
        _place_before_end(source, stores)
    _replace(fn, loads)
    _spill(fn, part, slots)
    entry = fn.entry
    for slot in slots:
        slot.block = entry
    entry.instructions[:0] = slots


def _spill(fn: Function, part: list[Block], slots: list[Instruction]) -> None:
    """Store values that other blocks read after their definition, and load them before each such use."""
    inside = set(part)
    crossing: dict[Value, Instruction] = {}
    for user in fn.instructions():
        for operand in user.operands:
            if (
                isinstance(operand, Instruction)
                and operand.block in inside
                and (operand.block is not user.block or user.opcode == "phi")
                and operand not in crossing
            ):
                crossing[operand] = _slot(slots, operand.type)
    for block in fn.blocks:
        before_end: dict[tuple[Block, Value], Instruction] = {}
        out: list[Instruction] = []
        for instr in block.instructions:
            if instr.opcode == "phi":
                for i, operand in enumerate(instr.operands):
                    if operand in crossing:
                        key = (instr.blocks[i], operand)
                        if key not in before_end:
                            before_end[key] = Instruction("load", operand.type, [crossing[operand]])
                        instr.operands[i] = before_end[key]
            else:
                reads = [v for v in dict.fromkeys(instr.operands) if v in crossing and _home(v) is not block]
                for value in reads:
                    load = Instruction("load", value.type, [crossing[value]])
                    load.block = block
                    out.append(load)
                    instr.operands = [load if v is value else v for v in instr.operands]
            out.append(instr)
        block.instructions = out
        for (source, _), load in before_end.items():
            _place_before_end(source, [load])
    after: dict[Instruction, Instruction] = {}
    for value, slot in crossing.items():
        assert isinstance(value, Instruction) and value.block is not None
        if value.opcode == "invoke":
            _place(value.blocks[0], [_store(value, slot)])
        elif value.opcode == "landingpad":
            _place(value.block, [_store(value, slot)])
        else:
            after[value] = _store(value, slot)
    for block in part:
        block.instructions = [i for instr in block.instructions for i in (instr, after.get(instr)) if i is not None]
    for value, store in after.items():
        store.block = value.block


def _split_invokes(fn: Function, knots: list[_Knot]) -> list[Block]:
    """Give invokes in and into these cycles a normal target of their own, where their result can be stored.

    Returns the new blocks that are inside a cycle.
    """
    home = {block: knot for knot in knots for block in knot.part}
    made: list[Block] = []
    layout: dict[Block, list[Block]] = {}
    for block in fn.blocks:
        end = block.terminator
        if end.opcode == "invoke" and end.type is not ty.VOID and (block in home or end.blocks[0] in home):
            target = end.blocks[0]
            new = _split(fn, target, [block], "normal", layout)
            assert new is not None
            if block in home and home.get(target) is home[block]:
                home[block].part.append(new)
                made.append(new)
    _lay_out(fn, layout)
    return made


def _slot(slots: list[Instruction], type_: ty.Type) -> Instruction:
    if type_ is ty.TOKEN:
        raise Unsupported(
            "this irreducible control flow cannot be rewritten",
            because="a token value crosses it, and tokens cannot be stored",
            fix="rewrite the jump into the loop in the source",
        )
    slots.append(Instruction("alloca", ty.PTR, [ConstInt(ty.I32, 1)], elem=type_, align=ty.align_of(type_)))
    return slots[-1]


def _store(value: Value, slot: Instruction) -> Instruction:
    return Instruction("store", ty.VOID, [value, slot])


def _home(value: Value) -> Block | None:
    return value.block if isinstance(value, Instruction) else None


def _append(block: Block, instr: Instruction) -> Instruction:
    instr.block = block
    block.instructions.append(instr)
    return instr


def _place(block: Block, new: list[Instruction], drop: int = 0) -> None:
    """Insert behind phis and landing pad; the first `drop` instructions (phis) go."""
    rest = block.instructions[drop:]
    at = 0
    while rest[at].opcode in ("phi", "landingpad"):
        at += 1
    for instr in new:
        instr.block = block
    block.instructions = [*rest[:at], *new, *rest[at:]]


def _place_before_end(block: Block, new: list[Instruction]) -> None:
    for instr in new:
        instr.block = block
    block.instructions[-1:-1] = new


def _replace(fn: Function, changed: dict[Instruction, Instruction]) -> None:
    """Use other values in place of some, everywhere; debug records, which are text, would name what is gone."""
    for instr in fn.instructions():
        instr.debug_records = []
        instr.operands = [changed.get(v, v) if isinstance(v, Instruction) else v for v in instr.operands]
        for operand in instr.operands:
            if isinstance(operand, MetadataValue) and isinstance(operand.value, Instruction):
                operand.value = changed.get(operand.value, operand.value)
