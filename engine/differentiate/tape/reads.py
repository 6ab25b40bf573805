"""What the reverse of each instruction reads of the primal sweep, and to which values it hands an adjoint.

The counterpart of `adjoints.py` and `backward.py` without an instruction being made: the reverse sweep is walked block
by block in the order in which it runs. A handler here says in the same order what the handler of that name there asks
of `Recall` (a value, the shadow of a pointer, the tape of a call) and which operands it gives an adjoint to; an
instruction that nothing has given an adjoint reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from irgrad.engine.analyses.control.loops import Loop
from irgrad.engine.analyses.memory.call_effects import effect_of
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.custom_rules.ruled import reverse_pair, ruled_site
from irgrad.engine.differentiate.layout.leaves import has_float, has_pointer
from irgrad.engine.differentiate.primitives.application import application
from irgrad.engine.differentiate.primitives.rows import Application
from irgrad.engine.differentiate.shadow import persistent_memory
from irgrad.engine.differentiate.shadow.carried import BITS, taken_sign
from irgrad.engine.differentiate.shadow.copies import floats_ended, layout_of_copy, only_ends
from irgrad.engine.differentiate.shadow.runtime_activity import asked
from irgrad.engine.differentiate.shadow.tagged_words import Either
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import mask_lanes
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Value
from irgrad.engine.runtime.persistent_memory import CLEAR

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
    from irgrad.engine.differentiate.shared.rule_sites import Site
    from irgrad.engine.differentiate.tape.combined_calls import CombinedCalls
    from irgrad.engine.schedule.loop_schedule import Group, LoopSchedule

Where = tuple[int, int, int]  # numbers of a call's arguments: target, source, size


class Read(NamedTuple):
    """Something that the reverse sweep reads.

    what: "value", "shadow" or "tape" of an instruction; "count" of a loop's iterations; "from": the block that control
    came from
    """

    what: str
    subject: Instruction | Loop | Block


class Reads:
    """Everything that the reverse sweep of one function reads, in order, and for which instruction first."""

    def __init__(self, facts: ReverseFacts, schedule: LoopSchedule, combined: CombinedCalls) -> None:
        self.facts = facts
        self.combined = combined
        self.unit = facts.unit
        self.either = facts.unit.get(Either)
        self.schedule = schedule
        self.items: dict[Read, Instruction] = {}
        self.given: set[Value] = set(facts.carried)  # values with an adjoint
        self._started: set[Group] = set()
        self._applications: dict[Instruction, Application | None] = {}
        self._by: Instruction | None = None
        self._write_pairs()
        if facts.caller_tape:
            self._own_memory()
        for block in reversed(facts.cfg.rpo):
            if block in facts.live:
                self._block(block)

    def _write_pairs(self) -> None:
        """The functions of calls with a rule: what the rule writes decides what the reverse sweep reads."""
        if self.unit.rules is None:
            return
        for block in self.facts.cfg.rpo:
            for instr in block.instructions:
                if instr.is_call and not self._moves_memory(instr) and self.unit.activity.call(instr):
                    site = ruled_site(self.unit, instr)
                    if site is not None:
                        reverse_pair(self.unit, self.facts.clobber, instr, site)

    def _moves_memory(self, instr: Instruction) -> bool:
        callee = resolve(instr.callee)
        if not isinstance(callee, Function) or not callee.is_declaration:
            return False
        effect = effect_of(self.unit.module, instr, callee)
        found = (effect.frees, effect.copy, effect.fill)
        return bool(effect.allocates) or any(part is not None for part in found)

    def _own_memory(self) -> None:
        """The reverse sweep of a tape of the caller's allocates the shadows itself."""
        for instr in self.facts.own_memory:
            self._by = instr
            for size in instr.operands if instr.opcode == "alloca" else instr.args:
                self.value(size)

    def application(self, instr: Instruction) -> Application | None:
        """The row of an instruction."""
        if instr not in self._applications:
            self._applications[instr] = application(self.unit, instr)
        return self._applications[instr]

    # -- what handlers say -----------------------------------------------------------------------------------

    def active(self, value: Value) -> bool:
        """Whether a value has an adjoint."""
        return self.facts.active(value)

    def take(self, value: Value) -> bool:
        """Whether something has been added to adjoint(value), which is cleared."""
        if value not in self.given:
            return False
        if value in self.facts.one_block:
            self.given.discard(value)
        return True

    def give(self, value: Value) -> None:
        """Something is added to adjoint(value)."""
        if self.active(value):
            self.given.add(value)

    def value(self, value: Value) -> None:
        """A value of the primal sweep is read."""
        if isinstance(value, Instruction):
            self._note("value", value)

    def shadow(self, value: Value) -> None:
        """The shadow of a pointer is read."""
        if isinstance(value, Instruction):
            self._note("shadow", value)

    def tape(self, call: Instruction) -> None:
        """What the primal sweep of a call left is read."""
        self._note("tape", call)

    def _note(self, what: str, subject: Instruction | Loop | Block) -> None:
        assert self._by is not None
        self.items.setdefault(Read(what, subject), self._by)

    # -- control ---------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        facts = self.facts
        for instr in reversed(block.instructions):
            if instr.opcode == "phi":
                break
            self._by = instr
            if instr.opcode == "ret":
                if instr.operands and facts.abi.ret_adjoint:
                    self.give(instr.operands[0])
                continue
            self.instruction(instr)
        self._by = block.terminator
        phis = [p for p in block.phis if self.active(p) and self.take(p) and not self.in_window(p)]
        loop = facts.loops.of(block)
        if loop is not None and loop.header is block:
            self._window_cells(loop)
        preds = facts.cfg.preds(block)
        if not phis and preds and facts.one_way(block, preds):
            preds = preds[:1]
        if len(preds) > 1 and not (loop is not None and loop.header is block):
            branch = facts.branch_of(block, preds)
            if branch is None:
                self._note("from", block)
            else:
                self.value(branch[0])
        for pred in preds:
            self._edge(block, pred, phis)

    def _edge(self, block: Block, pred: Block, phis: list[Instruction]) -> None:
        self._by = pred.terminator
        for loop in reversed(self.facts.left_by(block, pred)[0]):
            self._note("count", loop)
        for phi in phis:
            self.give(phi.operands[phi.blocks.index(pred)])

    def instruction(self, instr: Instruction) -> None:
        """What the reverse of one instruction reads."""
        handler = READS.get(instr.opcode)
        if handler is not None:
            handler(self, instr)
        elif instr.type is not ty.VOID and self.active(instr) and self.take(instr):
            (bits if instr.opcode in BITS else by_row)(self, instr)

    def in_window(self, instr: Instruction) -> bool:
        """Whether an adjoint waits in the sums of a window of neighbours."""
        group = self.schedule.window(instr)
        if group is not None:
            self._started.add(group)
        return group is not None

    def _window_cells(self, loop: Loop) -> None:
        for group in self.schedule.windows(loop):
            if group in self._started:
                self._by = group.highest
                self.shadow(group.highest.operands[0])


# -- arithmetic ------------------------------------------------------------------------------------------------------


def by_row(r: Reads, instr: Instruction) -> None:
    """Arithmetic and calls to known functions: what the partials of the active operands read."""
    applied = r.application(instr)
    if applied is None:  # refused in emission
        return
    active = [r.active(o) for o in applied.operands]
    arguments, result = applied.reads(active)
    for i in arguments:
        r.value(applied.operands[i])
    if result:
        r.value(instr)
    for i in applied.receiving(active):
        r.give(applied.operands[i])


def bits(r: Reads, instr: Instruction) -> None:
    """Integers that carry floats."""
    op, first = instr.opcode, instr.operands[0]
    signed = taken_sign(r.unit, instr)
    if signed is not None:
        for value in [signed[1]] if op == "xor" else [signed[0], instr]:
            r.value(value)
        r.give(signed[0])
    elif op == "or" and not isinstance(instr.operands[1], ConstInt):
        for operand in instr.operands:
            r.give(operand)
    else:
        if op in ("and", "or") and isinstance(instr.operands[1], ConstInt):
            r.value(first)
        r.give(first)


# -- moving values ---------------------------------------------------------------------------------------------------


def select(r: Reads, instr: Instruction) -> None:
    """c ? a : b reads c."""
    if r.active(instr) and r.take(instr):
        r.value(instr.operands[0])
        r.give(instr.operands[1])
        r.give(instr.operands[2])


def first_operand(r: Reads, instr: Instruction) -> None:
    """freeze, casts, extractvalue: nothing is read."""
    if r.active(instr) and r.take(instr):
        r.give(instr.operands[0])


def insertvalue(r: Reads, instr: Instruction) -> None:
    """Aggregate with one part replaced."""
    if r.active(instr) and r.take(instr):
        for operand in instr.operands:
            r.give(operand)


def extractelement(r: Reads, instr: Instruction) -> None:
    """Lane of a vector."""
    if r.active(instr) and r.take(instr):
        r.value(instr.operands[1])
        r.give(instr.operands[0])


def insertelement(r: Reads, instr: Instruction) -> None:
    """Vector with one lane replaced."""
    if r.active(instr) and r.take(instr):
        vector, part, lane = instr.operands
        r.value(lane)
        r.give(part)
        r.give(vector)


def shufflevector(r: Reads, instr: Instruction) -> None:
    """The vectors that lanes come from."""
    if r.active(instr) and r.take(instr):
        first, second, mask = instr.operands
        assert isinstance(first.type, ty.VectorType) and isinstance(instr.type, ty.VectorType)
        sources = [lane for lane in mask_lanes(mask, instr.type.count) if lane is not None]
        for side, operand in enumerate((first, second)):
            if any(lane // first.type.count == side for lane in sources):
                r.give(operand)


# -- memory ----------------------------------------------------------------------------------------------------------


def load(r: Reads, instr: Instruction) -> None:
    """The shadow of the address."""
    if not (r.active(instr) and r.take(instr)):
        return
    address = instr.operands[0]
    if instr in r.either.values:
        r.shadow(address)
        if r.facts.shadowed(instr):
            r.shadow(instr)
        return
    if r.in_window(instr):
        return
    r.shadow(address)
    if r.unit.runtime_activity:
        r.value(address)


def store(r: Reads, instr: Instruction) -> None:
    """The shadow of the address, where the place holds floats."""
    unit, (value, target) = r.unit, instr.operands
    if not unit.activity.pointer(target):
        return
    if value in r.either.values:
        r.shadow(target)
        if r.facts.shadowed(value):
            r.shadow(value)
        r.give(value)
        return
    if r.either.cleared(instr) and not r.active(value):
        r.shadow(target)
        return
    numbers = has_float(value.type) or r.active(value)
    if has_pointer(value.type) and not r.active(value):
        if numbers:
            r.shadow(target)
        return
    if not numbers and not unit.runtime_activity:
        if floats_ended(unit.types.ended(target, ty.store_size(value.type)), value.type):
            r.shadow(target)
            if asked(unit, target):
                r.value(target)
        return
    r.shadow(target)
    if asked(unit, target, value):
        r.value(target)
    r.give(value)


def call(r: Reads, instr: Instruction) -> None:
    """Calls: memory operations, derived functions, rows."""
    callee = resolve(instr.callee)
    if instr.callee_name == CLEAR:
        return
    if isinstance(callee, Function) and callee.is_declaration:
        effect = effect_of(r.unit.module, instr, callee)
        if effect.copy is not None:
            copy(r, instr, effect.copy)
            return
        if effect.fill is not None:
            fill(r, instr, effect.fill)
            return
        if effect.allocates and effect.zeroed and r.unit.between and r.facts.shadowed(instr):
            for i in effect.sizes:
                r.value(instr.args[i])
            r.shadow(instr)
        if effect.allocates or effect.frees is not None:
            return
    if not r.unit.activity.call(instr):
        return
    site = ruled_site(r.unit, instr)
    if site is not None:
        ruled_call(r, instr, site)
    elif r.unit.call_targets(instr):
        derived_call(r, instr)
    elif r.active(instr) and r.take(instr):
        by_row(r, instr)


def copy(r: Reads, instr: Instruction, where: Where) -> None:
    """memcpy and memmove: the size, and the shadows of both ends."""
    unit, (target, source, size) = r.unit, (instr.args[i] for i in where)
    if not unit.activity.pointer(target):
        return
    if only_ends(unit, instr, where):
        fill(r, instr, where)
        return
    if instr in r.either.copies:
        r.shadow(target)
        r.value(size)
        if not (unit.discarded(target) and instr.type is ty.VOID):
            r.shadow(source)
            r.tape(instr)
        return
    _, fields = layout_of_copy(unit, instr, where)
    if not any(isinstance(kind, ty.FloatType) for _, kind in fields):
        return
    r.value(size)
    for end in (target, source):
        r.shadow(end)
        if asked(unit, target):
            r.value(end)


def fill(r: Reads, instr: Instruction, where: Where) -> None:
    """memset: the size, and the shadow of the target."""
    unit, target = r.unit, instr.args[where[0]]
    if not unit.activity.pointer(target):
        return
    r.value(instr.args[where[2]])
    if persistent_memory.lasts(unit, target) and unit.holds_pointers(target):
        _, fields = layout_of_copy(unit, instr, where)
        if any(isinstance(kind, ty.FloatType) for _, kind in fields):
            r.shadow(target)
        return
    r.shadow(target)
    if asked(unit, target):
        r.value(target)


def ruled_call(r: Reads, instr: Instruction, site: Site) -> None:
    """What the reverse function of a rule takes."""
    pair = reverse_pair(r.unit, r.facts.clobber, instr, site)
    if instr.type is not ty.VOID and r.active(instr):
        r.take(instr)
    for i, arg in enumerate(instr.args):
        if i in pair.used:
            r.value(arg)
        if pair.shape.shadow[i] and i in pair.shadows:
            r.shadow(arg)
    if pair.tape:
        r.tape(instr)
    for i, active in enumerate(pair.shape.adjoint):
        if active:
            r.give(instr.args[i])


def derived_call(r: Reads, instr: Instruction) -> None:
    """All arguments, the shadows of pointers, and the tape of this very call if it leaves one."""
    abi = r.unit.call_abi(instr)
    if instr.type is not ty.VOID and r.active(instr):
        r.take(instr)
    for i, arg in enumerate(instr.args):
        r.value(arg)
        if i < len(abi.shadow) and abi.shadow[i]:
            r.shadow(arg)
    if not r.combined.runs(instr):
        r.tape(instr)
    if not isinstance(resolve(instr.callee), Function):
        r.shadow(instr.callee)
    for i, arg in enumerate(instr.args):
        if i < len(abi.adjoint) and abi.adjoint[i]:
            r.give(arg)


READS: dict[str, Callable[[Reads, Instruction], None]] = {
    "select": select, "freeze": first_operand, "bitcast": first_operand, "fptrunc": first_operand,
    "fpext": first_operand, "extractvalue": first_operand, "insertvalue": insertvalue,
    "extractelement": extractelement, "insertelement": insertelement, "shufflevector": shufflevector, "load": load,
    "store": store, "call": call,
}  # fmt: skip

__all__ = ["READS", "Read", "Reads"]
