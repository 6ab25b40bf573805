"""Loops with independent iterations as calls: for grids of threads.

Such a loop becomes a function, and what one iteration does another function, which that calls for each:

    f:                  r = call @f.loop.0(i64 last, values from outside..., sums so far...)
    f.loop.0:           for k in 0..last:  sum += call @f.iteration.0(k, values from outside...)

So an iteration has a derivative of its own, and a loop that runs it is known by the name of what it calls, whatever
was made of it. A loop is left as it is where its trip count is not known before it, where it ends in other ways, or
where an iteration hands on anything but counters and sums.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.control.never_returning import never_returning
from irgrad.engine.analyses.control.promises import (
    WORKSHARING,
    has_thread_memory,
    is_of_all,
    is_worksharing,
    not_promised,
)
from irgrad.engine.analyses.evolution.affine import Affine
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Block, Constant, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.rewrite import internal_function, replace_uses
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.dead_ends import dead_ends, way_out
from irgrad.engine.normalise.reductions import ADDITION, Reduction, adds_to, reduction_of
from irgrad.rules.effects import facts

__all__ = [
    "CHUNKS", "ITERATION", "LOOP", "OWN_FIELDS", "OWN_PLACES", "READ_FIRST", "THREAD_MEMORY", "UPDATED", "apart",
    "carried_memory", "carried_values", "memory_of_iterations", "outline_iterations", "outline_loop", "promises",
    "scalar_loops", "why_not_outlined", "with_iterations",
]  # fmt: skip

ITERATION, LOOP = ".iteration.", ".loop."
"""What the names of the two functions have in the middle; the names of their derivatives have it as well."""
CHUNKS = 16
"""The most chunks of a loop that threads share (see `threads/chunks.py`)."""
OWN_PLACES = '"irgrad-own-places"'
"""Of an argument of an iteration, and of its shadow: no other iteration touches the same place through it."""
READ_FIRST = '"irgrad-read-first"'
"""Of such arguments: what is read through it no iteration has written before, through whatever address."""
OWN_FIELDS = '"irgrad-own-fields"="'
"""Of such arguments: one of the two holds for each read, by the bytes of a struct (see `threads/own_fields.py`)."""
UPDATED = '"irgrad-updated"'
"""Of such arguments: iterations may add to the same place through it, only that (see `threads/array_updates.py`)."""
THREAD_MEMORY = "irgrad.thread.memory"
"""Names begin so of what stands in an iteration for memory of its chunk (see `threads/thread_memory.py`)."""


def apart(name: str) -> bool:
    """Whether a function is one of the two, or a derivative of it: it stays out of line."""
    return ITERATION in name or LOOP in name


def promises(text: str) -> bool:
    """Whether a module's source promises something of a loop: that it is independent, or worth vector lanes."""
    return any(word in text for word in ("llvm.loop.parallel_accesses", "llvm.loop.vectorize.enable", WORKSHARING))


def scalar_loops(text: str) -> str:
    """The module's loops without the wish to be vectorised, which LLVM would grant: iterations are what is wanted."""
    return text.replace('!{!"llvm.loop.vectorize.enable", i1 true}', '!{!"llvm.loop.vectorize.enable", i1 false}')


def with_iterations(text: str, root: str) -> str:
    """A module with the independent loops of a function outlined; the text as it is where there is none."""
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read(text, roots=[root])
    outline_iterations(module, module.functions[root])
    return to_text(module) if any(map(apart, module.functions)) else text


def outline_iterations(module: Module, fn: Function) -> list[str]:
    """Outline the outermost independent loops of a function; for the other outermost loops, why they stay: lines as
    `file.c:3:5: the reason`."""
    reasons: list[str] = []
    number = 0
    work = list(get(Loops, fn).top)
    while work:
        loop = work.pop(0)
        why = not_promised(module, loop)
        outlined = None if why else _Outlined(module, fn, loop)
        why = why or (outlined.refusal if outlined is not None else "")
        if why:
            reasons.append(f"{_place(module, loop)}: {why}")
            work = [*loop.children, *work]
            continue
        assert outlined is not None
        outlined.move(f"{fn.name}{ITERATION}{number}", f"{fn.name}{LOOP}{number}")
        number += 1
        left = {id(loop.header) for loop in work}  # the analyses are those of the function before
        work = [other for other in get(Loops, fn).all if id(other.header) in left]
    return reasons


def outline_loop(
    module: Module, fn: Function, loop: Loop, iteration: str, runner: str, *,
    reductions: list[Reduction] | None = None, any_order: bool = False, vectors: bool = False, memory: bool = False,
    common: Collection[Value] = (),
) -> str:  # fmt: skip
    """Outline a loop that is known to be independent, into functions of these names; why it stays, "" where it went.

    reductions: gets the operation of each value that iterations put something to, in the order of the results; without
    it, these are sums. any_order: the source lets iterations run in any order; vectors: sums may be of vectors; memory:
    the caller sees to memory that goes from iteration to iteration; common: memory before the loop that does not
    """
    outlined = _Outlined(module, fn, loop, reductions is not None, any_order, vectors, memory, common)
    if not outlined.refusal:
        outlined.move(iteration, runner)
        if reductions is not None:
            reductions += [s.how for s in outlined.sums]
    return outlined.refusal


def why_not_outlined(
    module: Module, fn: Function, loop: Loop, common: Collection[Value] = (), *, memory: bool = False
) -> str:  # fmt: skip
    """Why `outline_loop` with reductions would leave a loop where it is; "" where it would not."""
    return _Outlined(module, fn, loop, True, is_worksharing(module, loop), memory=memory, common=common).refusal


def carried_values(module: Module, fn: Function, loop: Loop) -> list[Instruction]:
    """Values of a loop that an iteration hands on, but for sums and counters, or that are used behind it; those of a
    loop of another form are not known."""
    return _Outlined(module, fn, loop, True, is_worksharing(module, loop), memory=True).left


def carried_memory(module: Module, fn: Function, loop: Loop, common: Collection[Value]) -> list[Instruction]:
    """Memory that may go from one iteration of a loop to the next."""
    return _Outlined(module, fn, loop, True, is_worksharing(module, loop), memory=True, common=common).of_threads()


def memory_of_iterations(module: Module, fn: Function, loop: Loop) -> list[Instruction]:
    """Variables that only an iteration of a loop uses, of one that `outline_loop` would not leave where it is, and
    addresses in them that are computed outside of it, each behind what it is computed of."""
    own = _Outlined(module, fn, loop, True, is_worksharing(module, loop), memory=True).private
    return [value for value in own if not loop.contains(value.block)]


def _place(module: Module, loop: Loop) -> str:
    rows = (instr for block in reversed(loop.blocks) for instr in reversed(block.instructions))
    return next(filter(None, (locate(module, instr) for instr in rows)), "a loop")


@dataclass(slots=True)
class _Sum:
    """A value that every iteration adds to, or puts something to in another way. phi: what it is so far; after: what it
    is after an iteration."""

    phi: Instruction
    start: Value
    after: Value
    how: Reduction = ADDITION


@dataclass(slots=True)
class _Counter:
    """A counter or an address that moves by a step. phi: it; form: of the step."""

    phi: Instruction
    start: Value
    step: Affine
    exact: bool


@dataclass(slots=True)
class _Outlined:
    """A loop on its way out of a function. refusal: why it cannot go; blocks: its own and the dead ends that it has."""

    module: Module
    fn: Function
    loop: Loop
    reductions: bool = False
    any_order: bool = False
    vectors: bool = False
    memory: bool = False
    common: Collection[Value] = ()
    refusal: str = ""
    left: list[Instruction] = field(default_factory=list)
    sums: list[_Sum] = field(default_factory=list)
    counters: list[_Counter] = field(default_factory=list)
    private: list[Instruction] = field(default_factory=list)
    blocks: dict[Block, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.blocks = dict.fromkeys([*self.loop.blocks, *dead_ends(self.fn, self.loop)])
        self.refusal = self._form() or self._carried() or self._values()

    # -- whether it can go -------------------------------------------------------------------------------------------

    def _form(self) -> str:
        loop, induction = self.loop, Induction(self.fn)
        if loop.preheader is None or way_out(self.fn, loop) is None:
            return "it ends in more than one way"
        count = induction.trip_count(loop)
        if count is None or not count.certain:
            return "how often it runs is not known before it"
        if any(isinstance(v, Instruction) and loop.contains(v.block) for v in count.uses):
            return "how often it runs is not known before it"
        return ""

    def _carried(self) -> str:
        induction, why = Induction(self.fn), ""
        for phi in self.loop.header.phis:
            start = next(v for v, block in zip(phi.operands, phi.blocks, strict=True) if not self.loop.contains(block))
            after = next(v for v, block in zip(phi.operands, phi.blocks, strict=True) if self.loop.contains(block))
            found = induction.recurrence(phi)
            if found is not None and all(isinstance(s, Value) and s in _outside(self.loop, [s])
                                         for s in found[1].terms):  # fmt: skip
                self.counters.append(_Counter(phi, found[0], found[1], induction.form(phi).exact))
            elif (phi.type.scalar if self.vectors else phi.type) in (ty.F32, ty.F64) and self._adds(phi, after):
                self.sums.append(_Sum(phi, start, after))
            elif self.reductions and (how := self._reduction(phi, after)) is not None:
                self.sums.append(_Sum(phi, start, after, how))
            else:
                self.left.append(phi)
                why = why or f"each iteration goes on with what the one before it left in `{phi.name or '?'}`"
        return why

    def _adds(self, phi: Instruction, after: Value) -> bool:
        """Whether an iteration does nothing with a value but adding to it: on no way another one takes its place."""
        uses = uses_of(self.blocks)
        work, seen = [phi], {phi}
        while work:
            value = work.pop()
            for user in uses.get(value, ()):
                if user is phi:
                    continue
                if not adds_to(user, value):
                    return False
                if user not in seen:
                    seen.add(user)
                    work.append(user)
        ways = [i.operands[i.opcode == "select" :] for i in seen if i is not phi and i.opcode in ("phi", "select")]
        if any(value not in seen for values in ways for value in values):
            return False
        outer = (o for i in self._behind() for o in i.operands)
        return after in seen and not any(o in seen and o is not after for o in outer)

    def _reduction(self, phi: Instruction, after: Value) -> Reduction | None:
        outside = [o for i in self._behind() for o in i.operands]
        return reduction_of(phi, after, uses_of(self.blocks), outside, any_order=self.any_order)

    def _behind(self) -> list[Instruction]:
        """What does not go with the loop."""
        return [i for block in self.fn.blocks if block not in self.blocks for i in block.instructions]

    def _values(self) -> str:
        """What is used behind the loop are sums; memory that only an iteration uses is its own."""
        known = {s.after for s in self.sums}
        used = (o for i in self._behind() for o in i.operands)
        self.left += dict.fromkeys(
            o for o in used if isinstance(o, Instruction) and self.loop.contains(o.block) and o not in known)
        if self.left:
            return f"what its last iteration leaves in `{self.left[0].name or '?'}` is used behind it"
        return self._own_memory()

    def _own_memory(self) -> str:
        """Variables of an iteration: those whose address, with sums that are made of it, is used in the loop alone."""
        uses = uses_of(self.fn.blocks)
        if not self.memory and self.of_threads():
            return "memory of the thread goes from iteration to iteration"
        for memory in [i for i in self.fn.instructions() if i.opcode == "alloca" and i not in self.common]:
            moved, inside, outside = [memory], False, False
            for value in moved:
                for user in uses.get(value, ()):
                    inside = inside or (user.block in self.blocks and not _chunk_has_its_own(user))
                    if user.block in self.blocks or _marks_lifetime(user) or user in moved:
                        continue
                    outside = outside or user.opcode != "getelementptr"
                    moved.append(user)
            if not inside or (outside and not any(self._begins(u) for u in uses.get(memory, ()))):
                continue
            if outside or not isinstance(memory.operands[0], ConstInt):
                return "memory of an iteration is used outside of it, or has no constant length"
            order = {i: n for n, i in enumerate(self.fn.instructions())}
            self.private += sorted(moved, key=order.__getitem__)
        return ""

    def of_threads(self) -> list[Instruction]:
        """Memory of a thread that goes from iteration to iteration."""
        threads = is_worksharing(self.module, self.loop) and has_thread_memory(self.module, self.loop)
        uses = uses_of(self.fn.blocks) if threads else {}
        return [i for i in self._reserved() if not self._each_its_own(i, uses)] if threads else []

    def _reserved(self) -> list[Instruction]:
        """Memory that the function reserves before the loop, but what it is known to be of all threads or only read."""
        last = never_returning(self.fn)
        found = [i for i in self._behind() if not is_of_all(i) and i.block not in last]
        return [i for i in found if i not in self.common and (
            i.opcode == "alloca" or (i.is_call and _kind(i) == "allocator"))]  # fmt: skip

    def _each_its_own(self, memory: Instruction, uses: Uses) -> bool:
        """Whether memory is one iteration's, or iterations only read it, or each has a part of it. What a thread has
        for itself cannot be told from what all of them share: what iterations have together may be the former."""
        induction, work, handed = Induction(self.fn), [memory], False
        accesses: list[Instruction] = []
        outside = False
        for value in work:
            for user in uses.get(value, ()):
                inside = self.loop.contains(user.block)
                known = _marks_lifetime(user) or (user.is_call and _kind(user) == "deallocator")
                if user.opcode == "getelementptr":
                    work.append(user)
                elif inside and not known:
                    accesses.append(user)
                elif not known and user.opcode != "icmp":
                    outside = True
                    name = user.callee_name or "" if user.is_call else ""
                    handed = handed or not (user.opcode == "load" or name.startswith("llvm.mem") or (
                        user.opcode == "store" and user.operands[0] is not value))  # fmt: skip
        if memory.opcode == "alloca" and (not outside or any(map(self._begins, uses.get(memory, ())))):
            return True
        if handed or all(user.opcode == "load" for user in accesses):
            return not handed
        for user in accesses:
            if user.opcode not in ("load", "store") or (user.opcode == "store" and user.operands[0].type.is_ptr):
                return False
            kind = user.type if user.opcode == "load" else user.operands[0].type
            step = induction.address(user.operands[user.traits.address])[1].stride(self.loop)
            if not step.is_const or abs(step.const) < ty.size_of(kind):
                return False
        return True

    def _begins(self, user: Instruction) -> bool:
        """Whether the life of a variable begins in the loop."""
        return (user.callee_name or "").startswith("llvm.lifetime.start") if user.is_call and self.loop.contains(
            user.block) else False  # fmt: skip

    def _outer(self) -> list[Value]:
        """Values from outside that the loop uses, without constants."""
        found: dict[Value, None] = {}
        for instr in (i for block in self.blocks for i in block.instructions):
            found |= dict.fromkeys(v for v in _outside(self.loop, instr.operands) if not (
                isinstance(v, Instruction) and v.block in self.blocks))
        return list(found)

    # -- its way out ---------------------------------------------------------------------------------------------------

    def move(self, iteration: str, runner: str) -> None:
        """Move the loop into its two functions of these names, and call the second in its place."""
        loop, exit_ = self.loop, way_out(self.fn, self.loop)
        assert loop.preheader is not None
        given = [o for i in self.private for o in i.operands if isinstance(o, Argument | Instruction)]
        inner = [v for v in (*self._outer(), *given) if v not in self.private]
        starts = [c.start for c in self.counters if not isinstance(c.start, Constant)]
        steps = [s for c in self.counters for s in c.step.terms if isinstance(s, Value)]
        firsts = [s.start for s in self.sums if s.how.idempotent and not isinstance(s.start, Constant)]
        inner = list(dict.fromkeys([*inner, *starts, *steps, *firsts]))
        count = Induction(self.fn).trip_count(loop)
        assert count is not None and exit_ is not None
        body = self._body(iteration, inner)
        whole_loop = self._runner(runner, body, inner)
        before = loop.preheader
        before.instructions.pop()
        at = Builder(before)
        at.metadata = _debug(body)
        last = count.emit(at)
        call = at.call(whole_loop, [last, *inner, *(s.start for s in self.sums)])
        whole = len(self.sums) == 1
        results: dict[Value, Value] = {
            s.after: call if whole else at.extractvalue(call, n) for n, s in enumerate(self.sums)
        }
        at.br(exit_)
        for phi in exit_.phis:
            phi.blocks = [before if block is loop.latch else block for block in phi.blocks]
        moved = set(self.blocks)
        self.fn.blocks = [block for block in self.fn.blocks if block not in moved]
        for block in self.fn.blocks:
            block.instructions = [i for i in block.instructions if i not in self.private and not (
                _marks_lifetime(i) and any(o in self.private for o in i.operands))]  # fmt: skip
        replace_uses(self.fn, results)

    def _body(self, name: str, inner: Sequence[Value]) -> Function:
        """One iteration, of the loop's own blocks."""
        loop = self.loop
        result = _together([s.phi.type for s in self.sums])
        fn = internal_function(self.fn, self.module, name, result, [ty.I64, *(v.type for v in inner)])
        arguments: list[Argument] = fn.args
        replaced: dict[Value, Value] = dict(zip(inner, arguments[1:], strict=True))
        start = Block("iteration")
        at = Builder(start)
        for memory in self.private:
            at.insert(memory)
        for counter in self.counters:
            replaced[counter.phi] = _counted(at, counter, arguments[0], replaced)
        for sum_ in self.sums:
            first = replaced.get(sum_.start, sum_.start)
            replaced[sum_.phi] = first if sum_.how.idempotent else sum_.how.neutral(sum_.phi.type)
        latch, header = loop.latch, loop.header
        assert latch is not None
        at.br(header)
        header.instructions = header.instructions[len(header.phis) :]
        latch.instructions.pop()
        end = Builder(latch)
        end.metadata = _debug_of(latch)
        values = [s.after for s in self.sums]
        end.ret(end.aggregate(fn.ftype.ret, values) if len(values) > 1 else values[0] if values else None)
        fn.blocks = [start, *self.blocks]
        for block in fn.blocks:
            block.function = fn
        replace_uses(fn, replaced)
        return fn

    def _runner(self, name: str, body: Function, inner: Sequence[Value]) -> Function:
        """The loop that calls the iterations one after the other."""
        kinds = [s.phi.type for s in self.sums]
        fn = internal_function(self.fn, self.module, name, _together(kinds), [ty.I64, *(v.type for v in inner), *kinds])
        entry, turn, done = Block("entry"), Block("turn"), Block("done")
        last, given, starts = fn.args[0], fn.args[1 : 1 + len(inner)], fn.args[1 + len(inner) :]
        Builder(entry).br(turn)
        at = Builder(turn)
        number = at.phi(ty.I64, [(ConstInt(ty.I64, 0), entry)])
        so_far = [at.phi(kind, [(start, entry)]) for kind, start in zip(kinds, starts, strict=True)]
        at.metadata = _debug(body)
        result = at.call(body, [number, *given])
        parts = [result] if len(kinds) == 1 else [at.extractvalue(result, n) for n in range(len(kinds))]
        sums: list[Value] = []
        if kinds:
            rows = zip(self.sums, so_far, parts, strict=True)
            sums = [s.how.put(at, old, part) for s, old, part in rows]
        more = at.add(number, ConstInt(ty.I64, 1), ("nuw", "nsw"))
        at.cond_br(at.icmp("eq", number, last), done, turn)
        for phi, value in zip([number, *so_far], [more, *sums], strict=True):
            phi.operands.append(value)
            phi.blocks.append(turn)
        end = Builder(done)
        sums = [end.phi(value.type, [(value, turn)]) for value in sums]
        end.ret(end.aggregate(fn.ftype.ret, sums) if len(sums) > 1 else sums[0] if sums else None)
        fn.blocks = [entry, turn, done]
        for block in fn.blocks:
            block.function = fn
        return fn


def _outside(loop: Loop, operands: Sequence[Value]) -> Iterator[Value]:
    """Those of some values that come from outside a loop, without constants and blocks."""
    for value in operands:
        if isinstance(value, Argument) or (isinstance(value, Instruction) and not loop.contains(value.block)):
            yield value


def _marks_lifetime(instr: Instruction) -> bool:
    return instr.is_call and (instr.callee_name or "").startswith("llvm.lifetime.")


def _chunk_has_its_own(instr: Instruction) -> bool:
    return instr.is_call and (instr.callee_name or "").startswith(THREAD_MEMORY)


def _kind(call: Instruction) -> str:
    known = facts(call.callee_name or "")
    return known.kind if known is not None else ""


def _together(kinds: Sequence[ty.Type]) -> ty.Type:
    return ty.VOID if not kinds else kinds[0] if len(kinds) == 1 else ty.struct(tuple(kinds))


def _counted(at: Builder, counter: _Counter, number: Value, replaced: dict[Value, Value]) -> Value:
    """What a counter is in an iteration: start + number * step."""
    kind, flags = counter.phi.type, ("nsw",) if counter.exact else ()
    start = replaced.get(counter.start, counter.start)
    unit: ty.Type = ty.I64 if kind.is_ptr else kind
    step: Value = ConstInt(unit, counter.step.const)
    for symbol, coefficient in counter.step.terms.items():
        assert isinstance(symbol, Value)
        value = _resized(at, replaced.get(symbol, symbol), unit)
        step = at.add(step, at.mul(value, ConstInt(unit, coefficient), ()), ())
    moved = at.mul(_resized(at, number, unit), step, flags if not kind.is_ptr else ())
    return at.gep(ty.I8, start, moved, flags=()) if kind.is_ptr else at.add(start, moved, flags)


def _resized(at: Builder, value: Value, kind: ty.Type) -> Value:
    assert isinstance(kind, ty.IntType) and isinstance(value.type, ty.IntType)
    return at.cast("trunc" if value.type.bits > kind.bits else "sext", value, kind)


def _debug_of(block: Block) -> dict[str, str]:
    rows = [i.metadata["dbg"] for i in block.instructions if "dbg" in i.metadata]
    return {"dbg": rows[-1]} if rows else {}


def _debug(fn: Function) -> dict[str, str]:
    """The place in the source of a function's last instruction that has one."""
    return next(filter(None, map(_debug_of, reversed(fn.blocks))), {})
