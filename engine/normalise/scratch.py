"""Memory that each iteration of a loop allocates for itself is allocated once, before the loop.

    loop:                                        before:
      p = malloc(n)            ; n invariant       p = malloc(n)
      ... p ...                            ->    loop:
      free(p)                                      ... p ...
      branch loop, done                            branch loop, done
    done:                                        done:
                                                   free(p)

Sound where no iteration can reach what another one allocated: no memory holds the address, and no phi of the loop's
header does. Fresh memory holds nothing that is defined, so what an earlier iteration left there is as good; that of
`calloc` is cleared in its place. An allocation behind conditions, invariant as well, is one of no bytes where they do
not hold. The derivative then has one shadow for all iterations, and not one an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irgrad.engine.analyses.activity.facts import points_to
from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.decisions import Decision, decisions
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.memory.objects import OVERLAPS, Object
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import CallInfo, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.normalise.invariants import leave_loops, may_gain
from irgrad.engine.normalise.iterations import ITERATION
from irgrad.engine.normalise.loop_memory import LoopMemory, may_sink, sink_stores
from irgrad.engine.normalise.preheader import before, can_leave
from irgrad.engine.normalise.repeated_loads import may_repeat, merge_loads
from irgrad.engine.normalise.running_cells import end_cells, may_end
from irgrad.rules.effects import facts

__all__ = ["SIZED", "allocates", "is_plain_release", "normal_form", "reuse_scratch"]

_OTHERS = ("__cxa", "irgrad.")  # freed by those who catch, and with the tape
SIZED = ("_ZdlPvm", "_ZdaPvm")  # operator delete with the bytes
_DEEPEST = 8  # levels of a nest that an allocation leaves


@dataclass(slots=True)
class _Scratch:
    """An allocation that may leave its loop. conditions: under which an iteration makes it; releases: in the loop."""

    call: Instruction
    loop: Loop
    conditions: list[Decision]
    releases: list[Instruction] = field(default_factory=list)


def normal_form(root: Function) -> bool:
    """Whether the memory of the arguments is what the analyses take it for: that of a function in normal form."""
    return all("noalias" in a.attrs or OVERLAPS in a.attrs for a in root.args if a.type.is_ptr)


def reuse_scratch(module: Module, root: Function) -> int:
    """Let allocations leave the loops of which each iteration has its own, and what loops do not change, which their
    bytes may depend on. Returns how much did, loop by loop."""
    count = 0
    shared = any(ITERATION in (name or "") for name in module.functions)
    pointers: Pointers | None = None
    wanted: list[Function] = []
    for _ in range(_DEEPEST):
        wanted = [fn for fn in (wanted if pointers is not None else _bodies(module)) if _may_change(fn)]
        if not wanted or not normal_form(root):
            break
        if pointers is None:
            pointers = points_to(module, root)
            wanted = [fn for fn in pointers.functions if fn in wanted]
        found = [(fn, one) for fn in wanted for one in _found(pointers, fn)]
        for fn, one in found:
            _move(module, fn, one, pointers)
        count += len(found)
        if found:
            continue
        moved = {fn: _leave(pointers, fn, shared=shared) for fn in wanted}
        wanted = [fn for fn, (more, _) in moved.items() if more]  # for the others nothing has changed
        count += sum(more for more, _ in moved.values())
        if any(fewer for _, fewer in moved.values()):
            pointers = None
    return count


def _may_change(fn: Function) -> bool:
    return may_gain(fn) or may_sink(fn) or may_end(fn) or may_repeat(fn) or bool(_candidates(fn))


def _leave(pointers: Pointers, fn: Function, *, shared: bool) -> tuple[int, bool]:
    """How much left its loop, and whether some values lead to less than before.

    shared: iterations run on many threads: their sums to memory stay loads, additions and stores in a row."""
    moved = leave_loops(pointers, fn)
    if shared:
        return moved, False
    moved += sink_stores(LoopMemory(pointers, fn))
    moved += end_cells(LoopMemory(pointers, fn))
    merged = merge_loads(pointers, fn)
    return moved + len(merged), any(pointers.of(load) & ~pointers.of(value) for load, value in merged.items())


def _bodies(module: Module) -> list[Function]:
    return [fn for fn in module.functions.values() if fn.blocks]


def _candidates(fn: Function) -> list[tuple[Instruction, Loop]]:
    """Allocations in loops whose bytes are known before the loop."""
    calls = [i for i in fn.instructions() if i.opcode == "call" and allocates(i)]
    if not calls:
        return []
    loops = get(Loops, fn)
    placed = ((call, loops.of(call.block)) for call in calls if call.block is not None)
    return [(call, loop) for call, loop in placed if loop is not None and loop.preheader is not None
            and all(can_leave(arg, loop) for arg in call.args)]  # fmt: skip


def allocates(call: Instruction) -> bool:
    """Whether a call allocates memory of known bytes, which the program itself frees."""
    name = call.callee_name
    if name is None or name.startswith(_OTHERS):
        return False
    known = facts(name)
    return known is not None and known.allocates and bool(known.sizes) and not known.noreturn


def _found(pointers: Pointers, fn: Function) -> list[_Scratch]:
    found = []
    for call, loop in _candidates(fn):
        obj = pointers.object_of.get(call)
        conditions = _conditions(call, loop, get(Loops, fn))
        if obj is None or conditions is None or not _private(pointers, fn, loop, obj):
            continue
        releases = _releases(pointers, fn, loop, obj)
        if releases is not None:
            found.append(_Scratch(call, loop, conditions, releases))
    return found


def _conditions(call: Instruction, loop: Loop, loops: Loops) -> list[Decision] | None:
    """What decides in an iteration whether the call runs; None where that is not known before the loop."""
    assert call.block is not None
    found = decisions(loops, loop, call.block)
    if found is None or not all(can_leave(decision.condition, loop) for decision in found):
        return None
    return found


def _private(pointers: Pointers, fn: Function, loop: Loop, obj: Object) -> bool:
    """No memory holds the address of the object, no iteration of the loop hands it to the next."""
    bit = 1 << obj.index
    if pointers.escaped_mask & bit or any(pointers.contents(other) & bit for other in pointers.objects):
        return False
    if any(pointers.of(phi) & bit for phi in loop.header.phis):
        return False
    for block in fn.blocks:
        if not loop.contains(block):
            for instr in block.instructions:
                sources = zip(instr.operands, instr.blocks, strict=True) if instr.opcode == "phi" else ()
                through = {id(v) for v, at in sources if loop.contains(at)} if block in loop.exits else set[int]()
                if any(_from(v, loop) and pointers.of(v) & bit and id(v) not in through for v in instr.operands):
                    return False
    outside = [p for exit_ in loop.exits for p in get(Loops, fn).cfg.preds(exit_) if not loop.contains(p)]
    return not outside


def _from(value: Value, loop: Loop) -> bool:
    return isinstance(value, Instruction) and loop.contains(value.block)


def _releases(pointers: Pointers, fn: Function, loop: Loop, obj: Object) -> list[Instruction] | None:
    """The calls in the loop that free the object and nothing else; None where another one may."""
    bit = 1 << obj.index
    found = []
    for other in pointers.functions:
        for instr in other.instructions():
            effect = pointers.effect(instr) if instr.is_call else None
            if effect is None or (effect.frees is None and effect.moves is None):
                continue
            freed = effect.frees if effect.frees is not None else effect.moves
            assert freed is not None
            mask = pointers.expand(pointers.of(instr.args[freed]))
            if not mask & bit:
                continue
            if other is not fn or instr.opcode != "call" or effect.moves is not None:
                return None
            if loop.contains(instr.block):
                if mask != bit or freed != 0 or not is_plain_release(instr):
                    return None
                found.append(instr)
    return found


def is_plain_release(release: Instruction) -> bool:
    """A release of which it is known what it wants besides the address: nothing, the bytes, or a constant alignment."""
    more = release.args[1:]
    return not more or release.callee_name in SIZED or (len(more) == 1 and isinstance(more[0], ConstInt))


def _move(module: Module, fn: Function, one: _Scratch, pointers: Pointers) -> None:
    """The allocation runs before the loop, its release behind it."""
    call, loop = one.call, one.loop
    assert call.block is not None and loop.preheader is not None and call.callee_name is not None
    known = facts(call.callee_name)
    assert known is not None
    place = Builder(loop.preheader, len(loop.preheader.instructions) - 1)
    made: dict[Value, Value] = {}
    at = call.block.instructions.index(call)
    sizes = list(call.args)
    if known.zeroed:
        here = Builder(call.block, at + 1)
        here.metadata = {"dbg": call.metadata["dbg"]} if "dbg" in call.metadata else {}
        clear = declare(module, "llvm.memset.p0.i64", ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
        bytes_: Value = ConstInt(ty.I64, 1)
        for i in known.sizes:
            bytes_ = here.mul(bytes_, sizes[i], ())
        pointers.enter(here.call(clear, [call, ConstInt(ty.I8, 0), bytes_, ConstInt(ty.I1, 0)]))
    call.block.instructions.remove(call)
    for i in range(len(sizes)):
        sizes[i] = before(sizes[i], loop, place, made, runs=not one.conditions)
    for condition, way in one.conditions:
        holds = before(condition, loop, place, made, runs=False)
        zero = ConstInt(sizes[known.sizes[0]].type, 0)
        size = sizes[known.sizes[0]]
        sizes[known.sizes[0]] = place.select(holds, size, zero) if way else place.select(holds, zero, size)
    call.operands = [*sizes, call.callee]
    if call.call is not None and one.conditions:
        call.call.ret_attrs = ""
    place.insert(call)
    _release(fn, one, pointers.object_of[call], pointers, sizes[known.sizes[0]])


def _release(fn: Function, one: _Scratch, obj: Object, pointers: Pointers, size: Value) -> None:
    """Behind the loop, but where the address leaves it: there the program goes on with the memory, and frees it."""
    if not one.releases:
        return
    first = one.releases[0]
    for release in one.releases:
        assert release.block is not None
        release.block.instructions.remove(release)
    for exit_ in one.loop.exits:
        if any(pointers.of(phi) >> obj.index & 1 for phi in exit_.phis):
            continue
        place = Builder(exit_, len(exit_.phis))
        args = [one.call, *((size,) if first.callee_name in SIZED else first.args[1:])]
        info = first.call
        assert info is not None
        new = Instruction("call", ty.VOID, [*args, first.callee], call=CallInfo(info.fn_type, fn_attrs=info.fn_attrs),
                          metadata=dict(first.metadata))  # fmt: skip
        place.insert(new)
        pointers.enter(new)
