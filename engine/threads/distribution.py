"""Loops as two: what threads do at once for all iterations, then what has to stay in the order of the iterations.

    for (...) {                                 kept = calloc(iterations, 8); if there is memory for them:
        v = heavy(x[i]);                            for (...) kept[i] = heavy(x[i]);           in chunks, on threads
        #pragma omp critical                        for (...) if (kept[i] > m) m = kept[i];    on one thread
        if (v > m) m = v;                       else: the loop as it is
    }

So critical sections, atomic operations with other operators than those that copies are made of, what they
capture, reductions of arrays and by operators of the user: whatever is done there is done as one thread does it, with
the same bits on any number of threads, and has the derivative that it has on one. What such a section does one thread
does at a time in any case. What goes where: `iteration_parts.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.dominators import PostDominators
from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Argument,
    Block,
    CallInfo,
    ConstInt,
    ConstZero,
    Function,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.rewrite import declare, note_instructions, replace_uses
from irgrad.engine.runtime.copies import OWN_MEMORY, most_bytes, tell
from irgrad.engine.threads.iteration_parts import Parts, between, is_silent

__all__ = ["distributed", "of_parts"]

_EVEN = 16


_TAGS = {
    "irgrad.parts.whole": "only where what its iterations keep for one thread would take more than IRGRAD_MAX_COPIES",
    "irgrad.parts.second": "this part of it, which has to stay in the order of the iterations",
}
"""What instructions of such loops are marked with, and what is said of them."""


def of_parts(loop: Loop) -> str:
    """Why one thread runs a loop that is one of two, or the loop as it was; "" of others."""
    marks = {key for block in loop.blocks for i in block.instructions for key in i.metadata.keys() & _TAGS.keys()}
    return _TAGS[min(marks)] if marks else ""


def distributed(
    module: Module, fn: Function, turn: Function, turns: Function, parts: Parts, place: str
) -> list[Value]:  # fmt: skip
    """Make two loops of one that is outlined: `turn` and `turns` become those of the first part, and the second part
    runs behind their call. Returns the addresses of what goes from one to the other, given to `turns`.

    turn, turns: one iteration, and the function that calls it for each (`normalise/iterations.py`); place: of the loop
    """
    call = next(i for i in fn.instructions() if i.is_call and i.callee is turns)
    own = _Copies(turn)
    whole = own.copy(module, f"{turn.name}.whole")
    loop = _copy(module, turns, f"{turns.name}.whole", {turn: whole})
    step = own.copy(module, f"{turn.name}.step")
    second = {own.of(step, i) for i in (*parts.ordered, *parts.again)}
    common = {own.of(step, i) for i in turn.blocks[0].instructions}
    values, memory = list(parts.kept), list(parts.memory)
    lists = [_with_places(turn, len(values) + len(memory)), _with_places(step, len(values) + len(memory))]
    for number, variable in enumerate(memory, len(values)):
        for function, given, row in ((turn, lists[0], variable), (step, lists[1], own.of(step, variable))):
            _in_place(function, given[number], row, _bytes(variable))
    for number, value in enumerate(values):
        _store(turn, lists[0][number], value)
    kept = {i for i in turn.instructions() if i not in parts.ordered}
    _straighten(turn, kept)
    _leave_only(turn, kept)
    _straighten(step, second)
    for number, value in enumerate(values):
        _load(step, lists[1][number], own.of(step, value), second)
    _leave_only(step, second | common | own.added(step))
    _with_more(turns, turn, lists[0])
    steps = _steps(module, step, f"{turns.name}.step", turns)
    for function, mark in zip((whole, step), _TAGS, strict=True):
        marked = (i for i in function.instructions() if i.opcode != "phi" and not i.traits.has("terminator"))
        note_instructions(module, marked, mark)
    for made in (whole, loop, step, steps):
        made.tail = "alwaysinline nounwind"
    sizes = [*(_width(v) for v in values), *map(_bytes, memory)]
    return _before_and_behind(module, fn, call, (turns, loop, steps), sizes, place)


# -- copies of a function ---------------------------------------------------------------------------------------------


def _copy(module: Module, fn: Function, name: str, replaced: Mapping[Value, Value]) -> Function:
    return _Copies(fn).copy(module, name, replaced)


class _Copies:
    """Copies of a function, and what of its instructions is what there."""

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.same: dict[Function, dict[Value, Value]] = {}

    def copy(self, module: Module, name: str, replaced: Mapping[Value, Value] | None = None) -> Function:
        fn = self.fn
        made = Function(name, fn.ftype)
        made.head, made.tail = fn.head, fn.tail
        module.functions[name] = made
        same: dict[Value, Value] = {**(replaced or {}), **dict(zip(fn.args, made.args, strict=True))}
        blocks = {block: Block(block.name) for block in fn.blocks}
        for block, other in blocks.items():
            for i in block.instructions:
                one = Instruction(
                    i.opcode, i.type, i.operands, name=i.name, flags=i.flags, pred=i.pred, elem=i.elem, align=i.align,
                    blocks=[blocks[b] for b in i.blocks], indices=i.indices, call=i.call, volatile=i.volatile,
                    ordering=i.ordering, clauses=i.clauses, metadata=dict(i.metadata),
                )  # fmt: skip
                same[i] = Builder(other).insert(one)
            other.function = made
        for one in (i for block in blocks.values() for i in block.instructions):
            one.operands = [same.get(o, o) for o in one.operands]
        made.blocks = list(blocks.values())
        self.same[made] = same
        return made

    def of(self, copy: Function, instr: Instruction) -> Instruction:
        """What an instruction is in a copy."""
        found = self.same[copy][instr]
        assert isinstance(found, Instruction)
        return found

    def added(self, copy: Function) -> set[Instruction]:
        """The instructions of a copy that were put there."""
        known = set(self.same[copy].values())
        return {i for i in copy.instructions() if i not in known}


# -- the two parts ----------------------------------------------------------------------------------------------------


def _straighten(fn: Function, kept: Collection[Instruction]) -> None:
    """Leave out branches of a function of one iteration that decide about nothing that is kept."""
    after = get(PostDominators, fn)
    joins = {block: after.ipdom(block) for block in fn.blocks if len(block.successors) > 1}
    kept = {i for i in kept if not is_silent(i) and not i.traits.has("terminator")}
    idle = [(block, join) for block, join in joins.items() if join is not None and not any(
            i in kept for i in (*(i for b in between(block, join) for i in b.instructions), *join.phis))]  # fmt: skip
    for block, join in idle:
        end = block.terminator
        block.instructions.remove(end)
        at = Builder(block)
        at.metadata = {"dbg": end.metadata["dbg"]} if "dbg" in end.metadata else {}
        at.br(join)
    reached, work = {fn.entry}, [fn.entry]
    while work:
        more = [b for b in work.pop().successors if b not in reached]
        reached.update(more)
        work += more
    fn.blocks = [block for block in fn.blocks if block in reached]
    for block in fn.blocks:
        for phi in block.phis:
            rows = [(v, b) for v, b in zip(phi.operands, phi.blocks, strict=True) if b in reached]
            phi.operands, phi.blocks = [v for v, _ in rows], [b for _, b in rows]


def _leave_only(fn: Function, kept: Collection[Instruction]) -> None:
    for block in fn.blocks:
        block.instructions = [i for i in block.instructions
                              if i.traits.has("terminator") or (i in kept and not is_silent(i))]  # fmt: skip


def _with_places(fn: Function, count: int) -> list[Argument]:
    """More arguments of a function: addresses."""
    made = [Argument(ty.PTR, f"kept{n}", len(fn.args) + n) for n in range(count)]
    for argument in made:
        argument.function = fn
    fn.args += made
    fn.ftype = ty.function(fn.ftype.ret, tuple(a.type for a in fn.args))
    return made


def _width(value: Value) -> int:
    return max(1, ty.size_of(value.type))


def _bytes(variable: Instruction) -> int:
    length = variable.operands[0]
    assert isinstance(length, ConstInt) and variable.elem is not None
    return -(-max(1, ty.size_of(variable.elem) * length.value) // _EVEN) * _EVEN


def _held(kind: ty.Type) -> ty.Type:
    """How a number is in memory."""
    return kind if not kind.is_int or ty.size_of(kind) * 8 == getattr(kind, "bits", 0) else ty.int_(
        8 * ty.size_of(kind))  # fmt: skip


def _place(at: Builder, fn: Function, memory: Value, kind: ty.Type) -> Value:
    return at.gep(kind, memory, fn.args[0])


def _store(fn: Function, memory: Value, value: Instruction) -> None:
    block, held = value.block, _held(value.type)
    assert block is not None
    phis = len(block.phis)
    at = Builder(block, max(phis, block.instructions.index(value) + 1))
    at.metadata = {"dbg": value.metadata["dbg"]} if "dbg" in value.metadata else {}
    number: Value = value if held is value.type else at.cast("zext", value, held)
    at.store(number, _place(at, fn, memory, held), ty.size_of(held))


def _load(fn: Function, memory: Value, value: Instruction, users: Collection[Instruction]) -> None:
    """Use what is kept of a value, in place of it."""
    held = _held(value.type)
    for block in fn.blocks:
        for user in [i for i in block.instructions if i in users or i.traits.has("terminator")]:
            for n, operand in enumerate(user.operands):
                if operand is not value:
                    continue
                where = user.blocks[n] if user.opcode == "phi" else block
                place = len(where.instructions) - 1 if user.opcode == "phi" else block.instructions.index(user)
                at = Builder(where, place)
                at.metadata = {"dbg": value.metadata["dbg"]} if "dbg" in value.metadata else {}
                number: Value = at.load(held, _place(at, fn, memory, held), ty.size_of(held))
                user.operands[n] = number if held is value.type else at.cast("trunc", number, value.type)


def _in_place(fn: Function, memory: Value, variable: Instruction, size: int) -> None:
    """Have a variable of an iteration in memory that outlives it."""
    block = variable.block
    assert block is not None
    at = Builder(block, block.instructions.index(variable))
    place = at.gep(ty.I8, memory, at.mul(fn.args[0], ConstInt(ty.I64, size), ("nuw", "nsw")))
    block.instructions.remove(variable)
    replace_uses(fn, {variable: place})


def _with_more(turns: Function, turn: Function, places: Collection[Argument]) -> None:
    """Hand more addresses on to the iterations; they stand before the sums so far."""
    call = next(i for i in turns.instructions() if i.is_call and i.callee is turn)
    first = len(call.args)
    made = [Argument(ty.PTR, a.name, 0) for a in places]
    turns.args = [*turns.args[:first], *made, *turns.args[first:]]
    for number, argument in enumerate(turns.args):
        argument.index, argument.function = number, turns
    turns.ftype = ty.function(turns.ftype.ret, tuple(a.type for a in turns.args))
    block = call.block
    assert block is not None
    at = Builder(block, block.instructions.index(call))
    at.metadata = {"dbg": call.metadata["dbg"]} if "dbg" in call.metadata else {}
    other = at.call(turn, [*call.args, *made])
    block.instructions.remove(call)
    replace_uses(turns, {call: other})


def _steps(module: Module, step: Function, name: str, turns: Function) -> Function:
    """`@NAME(last, values from outside..., addresses...)`: the second part of all iterations."""
    step.ftype = ty.function(ty.VOID, step.ftype.params)
    for block in step.blocks:
        if block.terminator.opcode == "ret":
            block.terminator.operands = []
    fn = Function(name, ty.function(ty.VOID, tuple(a.type for a in step.args)))
    fn.head = "internal"
    module.functions[name] = fn
    entry, turn, done = Block("entry"), Block("turn"), Block("done")
    Builder(entry).br(turn)
    at = Builder(turn)
    number = at.phi(ty.I64, [(ConstInt(ty.I64, 0), entry)])
    at.metadata = next(({"dbg": i.metadata["dbg"]} for i in turns.instructions() if "dbg" in i.metadata), {})
    at.call(step, [number, *fn.args[1:]])
    more = at.add(number, ConstInt(ty.I64, 1), ("nuw", "nsw"))
    at.cond_br(at.icmp("eq", number, fn.args[0]), done, turn)
    number.operands.append(more)
    number.blocks.append(turn)
    Builder(done).ret(None)
    fn.blocks = [entry, turn, done]
    for block in fn.blocks:
        block.function = fn
    return fn


def _before_and_behind(
    module: Module, fn: Function, call: Instruction, functions: tuple[Function, Function, Function],
    sizes: Collection[int], where: str,
) -> list[Value]:  # fmt: skip
    """Memory before the call of the first loop and the second loop behind it, or the loop as it is."""
    turns, loop, steps = functions
    block = call.block
    assert block is not None
    position = block.instructions.index(call)
    rest = block.instructions[position + 1 :]
    block.instructions = block.instructions[:position]
    two, one, join = Block("two"), Block("one"), Block("joined")
    debug = {"dbg": call.metadata["dbg"]} if "dbg" in call.metadata else {}
    at = Builder(block)
    at.metadata = debug
    last = call.args[0]
    trips = at.add(last, ConstInt(ty.I64, 1), ())
    most = at.binary("udiv", most_bytes(module, at), ConstInt(ty.I64, max(1, sum(sizes))))
    good: Value = at.icmp("ult", last, most)
    count = at.select(good, trips, ConstInt(ty.I64, 0))
    make, release = declare(module, "calloc", ty.PTR, (ty.I64, ty.I64)), declare(module, "free", ty.VOID, (ty.PTR,))
    memory = [at.call(make, [count, ConstInt(ty.I64, size)]) for size in sizes]
    for value in memory:
        good = at.binary("and", good, at.icmp("ne", value, ConstZero(ty.PTR)))
    at.cond_br(good, two, one)
    given = len(steps.args) - len(sizes)
    at = Builder(two)
    at.metadata = debug
    at.insert(call)
    before = call.args
    call.operands = [*before[:given], *memory, *before[given:], turns]
    call.call = CallInfo(turns.ftype)
    at.call(steps, [*before[:given], *memory])
    at.br(join)
    at = Builder(one)
    at.metadata = debug
    tell(module, at, where, f"what its iterations keep {OWN_MEMORY}")
    plain = at.call(loop, before)
    at.br(join)
    at = Builder(join)
    if call.type is not ty.VOID:
        result = at.phi(call.type, [(call, two), (plain, one)])
        for user in (i for b in (*fn.blocks, join) for i in b.instructions if i is not result):
            user.operands = [result if o is call else o for o in user.operands]
        for user in rest:
            user.operands = [result if o is call else o for o in user.operands]
    at.metadata = debug
    for value in memory:
        at.call(release, [value])
    for instr in rest:
        at.insert(instr)
    for after in dict.fromkeys(join.successors):
        for phi in after.phis:
            phi.blocks = [join if b is block else b for b in phi.blocks]
    position = fn.blocks.index(block) + 1
    fn.blocks[position:position] = [two, one, join]
    for made in (two, one, join):
        made.function = fn
    return list(memory)
