"""The loops of a program that a grid of threads runs: found, cut out, and what they add up arranged.

In a program of outlined loops (`normalise/iterations.py`) and in its derivatives, a loop that calls an iteration, or a
derivative of one, has independent iterations: the source promised it, and the additions of a reverse sweep commute. It
becomes a call of a function without a body, `NAME.region.N`, beside a function of one of its iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.grids.accumulations import handed_on, make_plain, only_added_to, thread_local
from irgrad.engine.grids.heap import adopt_memory
from irgrad.engine.grids.pieces import WARP, lay_out, on_stack
from irgrad.engine.grids.static_tape import place_tape
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, ConstInt, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.engine.normalise.iterations import ITERATION, LOOP, outline_loop
from irgrad.engine.threads.ownership import UNKNOWN, root_of
from irgrad.rules.errors import Unsupported

__all__ = ["Column", "Region", "cut_regions", "fix_constants", "settle"]

_ROW = 4096  # bytes of a row: larger memory that all iterations add to gets atomic additions
_TAPE = 1 << 34  # bytes of what all iterations of a loop keep


@dataclass(frozen=True, slots=True)
class Column:
    """Floats of a thread's row: a sum, or (argument > 0) the memory behind that argument of the region's call."""

    dtype: ty.Type
    count: int = 1
    argument: int = 0


@dataclass(slots=True)
class Region:
    """A loop that a grid runs. name: of its call and of one iteration with `.one` behind; given: types of the call's
    arguments before the sums: how often less one, then what each iteration gets; columns: what a thread adds up; tape:
    bytes that an iteration keeps, whose address is then the last of the given."""

    name: str
    given: list[ty.Type]
    columns: list[Column] = field(default_factory=list)
    tape: bool = False

    @property
    def row(self) -> int:
        """Bytes of a thread's row."""
        return sum(-(-ty.size_of(c.dtype) * c.count // 8) * 8 for c in self.columns)


def cut_regions(module: Module, name: str) -> list[str]:
    """Cut the loops that call iterations out of the functions that have them: the names of the calls in their place.

    Raises Unsupported where one cannot be.
    """
    made: list[str] = []
    for fn in [f for f in module.functions.values() if LOOP in (f.name or "") and f.blocks]:
        while loop := _calling(fn):
            _check_accesses(module, fn, loop)
            region = f"{name}.region.{len(made)}"
            why = outline_loop(module, fn, loop, f"{region}.one", region)
            if why:
                raise Unsupported("a loop cannot run on many threads", where=_place(module, loop), because=why,
                                  fix="batch over the loop with jax.vmap, or leave its promise out")  # fmt: skip
            _check_variables(module, fn, region)
            runner, body = module.functions[region], module.functions[f"{region}.one"]
            runner.blocks, runner.head, runner.tail = [], "", "noduplicate nounwind"
            body.head, body.tail = "", "nounwind"
            made.append(region)
    return made


def _check_variables(module: Module, fn: Function, region: str) -> None:
    """A variable of the function that the loop is in would be one for all threads."""
    for call in [i for i in fn.instructions() if i.is_call and i.callee_name == region]:
        for value in call.args:
            root = root_of(value) if value.type.is_ptr else value
            if isinstance(root, Instruction) and root.opcode == "alloca":
                raise Unsupported("a loop cannot run on many threads", where=locate(module, call),
                                  because="its iterations have a variable together",
                                  fix="batch over the loop with jax.vmap")  # fmt: skip


def _calling(fn: Function) -> Loop | None:
    """An innermost loop that calls an iteration."""
    loops = get(Loops, fn)
    for block in fn.blocks:
        if any(i.is_call and ITERATION in (i.callee_name or "") for i in block.instructions):
            loop = loops.of(block)
            if loop is not None:
                return loop
    return None


def _place(module: Module, loop: Loop) -> str:
    return next(filter(None, (locate(module, i) for block in loop.blocks for i in block.instructions)), "")


def _check_accesses(module: Module, fn: Function, loop: Loop) -> None:
    """What the loop reads and writes besides calling (pieces of the tape) has a place for each iteration."""
    induction = Induction(fn)
    writes = any(i.opcode == "store" for block in loop.blocks for i in block.instructions)
    for block in loop.blocks:
        for instr in block.instructions:
            if instr.opcode not in ("load", "store") or (instr.opcode == "load" and not writes):
                continue
            kind = instr.type if instr.opcode == "load" else instr.operands[0].type
            step = induction.address(instr.operands[instr.traits.address])[1].stride(loop)
            if not step.is_const or abs(step.const) < ty.size_of(kind):
                raise Unsupported("a loop cannot run on many threads", where=locate(module, instr) or f"@{fn.name}",
                                  because="its derivative hands something on from iteration to iteration in memory",
                                  fix="batch over the loop with jax.vmap")  # fmt: skip


def fix_constants(module: Module, name: str, names: Sequence[str]) -> None:
    """Numbers that a function gives a region in each of its calls are constants of the region's iterations."""
    given: dict[str, list[list[Value]]] = {}
    for call in module.functions[name].instructions():
        if call.is_call and call.callee_name in names:
            given.setdefault(call.callee_name or "", []).append(call.args)
    for region, calls in given.items():
        body = module.functions[f"{region}.one"]
        for n, argument in enumerate(body.args[1:], start=1):
            first = calls[0][n]
            if isinstance(first, ConstInt) and all(
                isinstance(args[n], ConstInt) and args[n].value == first.value for args in calls  # type: ignore[attr-defined]
            ):
                replace_uses(body, {argument: first})


# -- in the function of all: its calls of regions ---------------------------------------------------------------------


def settle(module: Module, fn: Function, names: Sequence[str], sizes: dict[str, int]) -> dict[Instruction, Region]:
    """The calls of regions that a function makes. Each has its columns, its additions by class, its iterations' tape.

    fn: the program with all that it calls inside, whose last argument is its arena; sizes: bytes of the arrays behind
    its other arguments
    """
    rows = [i for i in fn.instructions() if i.is_call and i.callee_name in names]
    made: dict[str, Region] = {}
    handed = _handed_on(module, fn, rows)
    bodies = {name: module.functions[f"{name}.one"] for name in dict.fromkeys(call.callee_name or "" for call in rows)}
    for name, body in bodies.items():
        calls = [call for call in rows if call.callee_name == name]
        count = len(body.args)
        made[name] = Region(name, [a.type for a in calls[0].args[:count]])
        made[name].columns = [Column(value.type) for value in calls[0].args[count:]]
        _adopt(module, fn, calls, body)
    on_stack(module, fn, bodies)
    for name, body in bodies.items():
        _classify([call for call in rows if call.callee_name == name], body, made[name], sizes, handed)
    widths = lay_out(fn, bodies)
    for name, body in bodies.items():
        _keep(module, fn, [call for call in rows if call.callee_name == name], body, made[name], widths)
    return {call: made[call.callee_name or ""] for call in rows}


def _handed_on(module: Module, fn: Function, rows: Sequence[Instruction]) -> set[Value]:
    """Arrays whose addresses may come from elsewhere as well (out of memory), in the function or in its regions."""
    names = {call.callee_name or "" for call in rows}
    roots = {root_of(v) for call in rows for v in call.args if v.type.is_ptr}
    found = {root for root in roots if handed_on(fn, root, names)}
    for call in rows:
        body = module.functions[f"{call.callee_name}.one"]
        for value, argument in zip(call.args, body.args, strict=False):
            if value.type.is_ptr and root_of(value) not in found and handed_on(body, argument):
                found.add(root_of(value))
    return found


def _classify(
    calls: Sequence[Instruction], body: Function, region: Region, sizes: dict[str, int], handed: set[Value]
) -> None:
    """Which memory is a row of the thread, and of which arrays an iteration has its own part: in all of the calls.
    handed: arrays that an address of unknown origin may lead to."""
    roots = [{n: root_of(v) for n, v in enumerate(call.args[: len(region.given)]) if v.type.is_ptr} for call in calls]
    whole = [n for n in roots[0] if all(
        found[n] is call.args[n] and list(found.values()).count(found[n]) == 1
        and not (UNKNOWN in found.values() and found[n] in handed)
        for call, found in zip(calls, roots, strict=True))]  # fmt: skip
    make_plain(body, [body.args[n] for n in whole], body.args[0])
    for n in whole:
        room, kind = {_bytes(found[n], sizes) for found in roots}, _added(body, body.args[n])
        size = room.pop() if len(room) == 1 else 0
        if 0 < size <= _ROW and kind is not None and only_added_to(body, body.args[n]):
            thread_local(body, body.args[n])
            region.columns.append(Column(kind, size // ty.size_of(kind), n))


def _bytes(root: Value, sizes: dict[str, int]) -> int:
    if isinstance(root, Instruction):
        count = root.operands[0] if root.opcode == "alloca" else None
        return ty.size_of(root.elem or ty.I8) * count.value if isinstance(count, ConstInt) else 0
    return sizes.get(root.name or "", 0)


def _added(body: Function, root: Value) -> ty.Type | None:
    """The type of all that is added to the memory behind an argument."""
    kinds = {i.type for i in body.instructions() if i.opcode == "atomicrmw" and root_of(i.operands[0]) is root}
    return kinds.pop() if len(kinds) == 1 else None


def _adopt(module: Module, fn: Function, calls: Sequence[Instruction], body: Function) -> None:
    """What iterations reserve comes out of an arena of theirs."""
    arena = Argument(ty.PTR, "arena", len(body.args))
    arena.function = body
    for n, argument in enumerate(body.args):
        if all(call.args[n] is fn.args[-1] for call in calls):
            replace_uses(body, {argument: arena})
            for call in calls:
                call.operands[n] = ConstZero(ty.PTR)
    body.args.append(arena)
    body.ftype = ty.function(body.ftype.ret, (*body.ftype.params, ty.PTR))
    adopt_memory(module, body.name or "")
    body.tail = "nounwind"
    for argument in body.args:
        argument.attrs = ""  # what was found out is about other memory


def _keep(
    module: Module, fn: Function, calls: Sequence[Instruction], body: Function, region: Region,
    widths: Mapping[Instruction, int],
) -> None:  # fmt: skip
    """The arena of iterations is memory with a piece for each of them, see `pieces.py`."""
    region.tape = any(i.is_call and i.callee_name == "irgrad.tape.alloc" for i in body.instructions())
    size = place_tape(module, body.name or "", _TAPE, widths)
    if not region.tape:
        return
    tape, thread, threads = body.args[-3:]
    at, number = Builder(body.entry, 0), body.args[0]
    shift = ConstInt(ty.I64, WARP.bit_length() - 1)
    block = at.binary("lshr", number, shift)
    lane = at.binary("and", number, ConstInt(ty.I64, WARP - 1))
    begin = at.gep(ty.I8, tape, at.mul(block, ConstInt(ty.I64, size * WARP), ()), flags=())
    head = set(body.entry.instructions[: at.at])
    inside: dict[Value, Value] = {tape: begin, thread: lane, threads: ConstInt(ty.I64, WARP)}
    for instr in body.instructions():
        if instr not in head:
            instr.operands = [inside.get(o, o) for o in instr.operands]
    region.given.append(ty.PTR)
    alloc = declare(module, "irgrad.tape.alloc", ty.PTR, (ty.PTR, ty.I64))
    for call in calls:
        block_of_call = call.block
        assert block_of_call is not None
        at = Builder(block_of_call, block_of_call.instructions.index(call))
        blocks = at.binary("lshr", at.add(call.args[0], ConstInt(ty.I64, WARP), ()), shift)
        memory = at.call(alloc, [fn.args[-1], at.mul(blocks, ConstInt(ty.I64, size * WARP), ())])
        call.operands.insert(len(region.given) - 1, memory)
