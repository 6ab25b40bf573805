"""Loops that fill an array of which a later loop gathers some elements compute those only.

    for (v = 0; v < vertices; v++) posed'[v] = ...        needed[] = 0 ; for (i ...) needed[nearest[i]] = 1
    for (i = 0; i < n; i++) e'[i] = -posed'[nearest[i]]   for (v ...) if (needed[v]) posed'[v] = ...

The primal's author need not care; W lanes make it worth it, and so does an iteration of much work (`worth`). A loop may
leave iterations out when all that they do is to fill their own element of memory that was allocated here, besides
variables that live within one, and whatever else reads that memory is a gather of which the indices are known
beforehand: computed from arguments that nothing writes, once or in a counted loop, which is sure to run where its
conditions, which are asked beforehand as well, hold. Anything else leaves the loop alone: a pointer to the array that
goes elsewhere, another read of it, sums over iterations, a call with effects. Where there are as many gathers as
iterations, or no memory for the marks, every iteration runs.

Without this, `benchmarks.run hand` takes 4.1 times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.control.dominators import PostDominators
from irgrad.engine.analyses.control.loops import Loop, Loops
from irgrad.engine.analyses.evolution.affine import Affine, Symbol
from irgrad.engine.analyses.evolution.earlier import Earlier, Numbers, never_written
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.differentiate.primitives.rows import pure_call
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, Module, Value
from irgrad.engine.ir.uses import uses_of
from irgrad.engine.schedule.marks import Marks

__all__ = ["compute_on_demand", "filled_on_demand"]

WORTH = 64  # vectors of 64 bytes in an iteration, for it to be worth a question (a mispredicted branch costs some 20)
INNER = 8  # assumed iterations of inner loops
FAR = 1 << 60  # bytes; no object is as large
ALLOCATES = frozenset(("malloc", "calloc", "aligned_alloc"))
HARMLESS = ("llvm.lifetime.", "llvm.memset.", "llvm.assume", "llvm.experimental.noalias.scope.decl")


def compute_on_demand(module: Module) -> int:
    """Skip what nobody reads in all functions; the number of loops that ask."""
    return sum(_Demand(module, fn, _wide).run() for fn in list(module.functions.values()) if fn.blocks)


def filled_on_demand(
    module: Module, fn: Function, worth: Callable[[Function, Loop], bool], constant: Callable[[Value], bool]
) -> int:  # fmt: skip
    """Skip what nobody reads in the loops of a function that are worth it; the number of loops that ask.

    constant: whether nothing writes to the memory behind an address
    """
    return _Demand(module, fn, worth, constant).run()


def _wide(fn: Function, loop: Loop) -> bool:
    """Whether an iteration is so many vectors that it is worth a question."""
    vectors, loops = 0, get(Loops, fn)
    for block in loop.blocks:
        wide = sum(-(-ty.size_of(i.type) // 64) for i in block.instructions if i.type.is_vector)
        vectors += wide * INNER ** (loops.depth(block) - loop.depth)
    return vectors >= WORTH


class _Demand:
    """The loops of one function."""

    def __init__(
        self, module: Module, fn: Function, worth: Callable[[Function, Loop], bool],
        constant: Callable[[Value], bool] = never_written,
    ) -> None:  # fmt: skip
        self.module, self.fn, self.worth, self.constant = module, fn, worth, constant
        self.uses = uses_of(fn.blocks)

    def run(self) -> int:
        """Change the loops; how many there were."""
        if not any(self._allocates(i) for i in self.fn.instructions()):
            return 0
        cfg = get(Cfg, self.fn)
        self.loops = get(Loops, self.fn)
        if not any(self.worth(self.fn, loop) for loop in self.loops.top):
            return 0
        self.cfg, self.after = cfg, get(PostDominators, self.fn)
        self.induction = Induction(self.fn, cfg, self.loops)
        reads = {site: self._reads(site) for site in self.fn.instructions() if self._allocates(site)}
        self.arrays = {site: loads for site, loads in reads.items() if loads is not None}
        found = [marks for loop in self.loops.top if (marks := self._marks(loop)) is not None]
        for marks in found:
            marks.skip()
        return len(found)

    # -- what may be left out ------------------------------------------------------------------------------------------

    def _allocates(self, instr: Instruction) -> bool:
        return instr.opcode == "alloca" or (instr.opcode == "call" and instr.callee_name in ALLOCATES)

    def _returns(self, call: Instruction) -> bool:
        """Whether a call comes back, so that what stands behind it is sure to run."""
        name = call.callee_name or ""
        known = name in ALLOCATES or name == "free" or name.startswith(HARMLESS) or name.startswith("llvm.mem")
        return call.opcode == "call" and (known or pure_call(call))

    def _reads(self, site: Instruction) -> list[Instruction] | None:
        """All loads from an array that is allocated in front of all loops; None if its address goes elsewhere."""
        if site.block is None or self.loops.of(site.block) is not None:
            return None
        found, pending = [], [site]
        while pending:
            pointer = pending.pop()
            for user in dict.fromkeys(self.uses.get(pointer, ())):
                if user.opcode == "getelementptr" and user.operands[0] is pointer and user.type.is_ptr:
                    pending.append(user)
                elif user.opcode == "load" and not _effects(user):
                    found.append(user)
                elif user.opcode == "store" and user.operands[0] is not pointer and not _effects(user):
                    continue
                elif not self._cleared_or_freed(user, pointer):
                    return None
        return found

    def _cleared_or_freed(self, user: Instruction, pointer: Value) -> bool:
        """Whether it does nothing with the memory but to clear or to free it, outside of loops."""
        name = (user.callee_name or "") if user.opcode == "call" else ""
        outside = user.block is not None and self.loops.of(user.block) is None
        return outside and (name == "free" or (name.startswith(HARMLESS) and user.args.count(pointer) == 1))

    def _marks(self, loop: Loop) -> Marks | None:
        """Which iterations of a loop are needed, where some may not be."""
        latch, count = loop.latch, self.induction.trip_count(loop)
        if latch is None or loop.preheader is None or not self.worth(self.fn, loop):
            return None
        if count is None or not count.certain:
            return None
        if loop.exiting != [latch] or len(loop.exits) != 1 or self.cfg.preds(loop.exits[0]) != [latch]:
            return None
        if not all(self._returns(i) for block in self._from(loop) for i in block.instructions if i.is_call):
            return None
        filled = self._filled(loop)
        earlier = Earlier(self.induction, self.after, loop.preheader, self.constant)
        if filled is None or not self._closed(loop) or not earlier.known(count.expr):
            return None
        numbers: dict[Numbers, None] = {}
        for site, (size, shift) in filled.items():
            for load in self.arrays[site]:
                if not loop.contains(load.block):
                    read = self._gather(load, site, size, shift, earlier)
                    if read is None:
                        return None
                    numbers[read] = None
        marks = Marks(self.module, self.fn, loop, count.expr, earlier, list(numbers))
        return marks if marks.possible() else None

    def _filled(self, loop: Loop) -> dict[Instruction, tuple[int, int]] | None:
        """The arrays that the loop fills: bytes of an element, and which element the first iteration fills; None where
        it does anything else, or an iteration needs what another does."""
        found: dict[Instruction, tuple[int, int]] = {}
        own = {row for memory in self._variables(loop) for row in self._uses(memory)}
        inside = [i for block in loop.blocks for i in block.instructions if i not in own]
        if any(i.is_call and not pure_call(i) for i in inside) or any(map(_effects, inside)):
            return None
        for store in (i for i in inside if i.opcode == "store"):
            site, size, place = self._place(store, loop)
            if site is None or place is None or found.setdefault(site, (size, place)) != (size, place):
                return None
        for load in (i for i in inside if i.opcode == "load"):
            site, size, place = self._place(load, loop)
            if site in found and found[site] != (size, place):
                return None
        return found or None

    def _variables(self, loop: Loop) -> list[Instruction]:
        """Variables that live within one iteration, of which no other has the address."""
        found = list[Instruction]()
        for memory in (i for i in self.fn.instructions() if i.opcode == "alloca"):
            users = self._uses(memory)
            starts = [u for u in users if u.is_call and (u.callee_name or "").startswith("llvm.lifetime.start")]
            begin = starts[0].block if len(starts) == 1 else None
            if begin is None or not loop.contains(begin) or not all(_within(u, memory, users) for u in users):
                continue
            if all(self._comes_first(starts[0], u) for u in users if u.opcode != "getelementptr"):
                found.append(memory)
        return found

    def _uses(self, memory: Instruction) -> list[Instruction]:
        """What uses an address, or one that is made of it."""
        found, work = dict[Instruction, None](), [memory]
        while work:
            more = [u for u in self.uses.get(work.pop(), ()) if u not in found]
            found.update(dict.fromkeys(more))
            work += [u for u in more if u.opcode == "getelementptr"]
        return list(found)

    def _comes_first(self, first: Instruction, second: Instruction) -> bool:
        assert first.block is not None and second.block is not None
        if first.block is second.block:
            return first.block.instructions.index(first) <= first.block.instructions.index(second)
        return self.loops.dom.dominates(first.block, second.block)

    def _from(self, loop: Loop) -> list[Block]:
        """The blocks that may run from the beginning of a loop on."""
        found, work = {loop.header: None}, [loop.header]
        while work:
            more = [b for b in work.pop().successors if b not in found]
            found.update(dict.fromkeys(more))
            work += more
        return list(found)

    def _place(self, access: Instruction, loop: Loop) -> tuple[Instruction | None, int, int | None]:
        """The array that an access of the loop goes to, bytes of an element, and which element from the counter."""
        site, offset = self.induction.address(access.operands[-1])
        size = offset.coefficient(loop)
        if not isinstance(site, Instruction) or site not in self.arrays:
            return None, size, None
        return site, size, self._element(offset, loop, size, access)

    def _element(self, offset: Affine, symbol: Symbol, size: int, access: Instruction) -> int | None:
        """Which element, from `symbol`, an access lies in when an element has so many bytes; None: not in a single one.

        Modulo 2^64 / size where the size is a power of two: then an offset that wraps still meets whole elements.
        """
        if size <= 0 or offset.coefficient(symbol) != size:
            return None
        terms = {s: c for s, c in offset.terms.items() if s is not symbol}
        low, high = self.induction.bounds(Affine(64, offset.const, terms))
        kind = access.type if access.opcode == "load" else access.operands[0].type
        if not (low > -FAR and high < FAR):
            return None
        if not offset.exact and size & (size - 1):
            least, most = self._range(symbol)
            if not (size * least > -FAR and size * most < FAR):
                return None
        first, last = int(low) // size, (int(high) + ty.store_size(kind) - 1) // size
        return first if first == last else None

    def _range(self, symbol: Symbol) -> tuple[float, float]:
        """Least and greatest number that a symbol may be."""
        if isinstance(symbol, Instruction) and symbol.opcode == "sext":
            return self.induction.bounds(Affine(64, 0, {symbol.operands[0]: 1}))
        return self.induction.bounds(Affine(64, 0, {symbol: 1}))

    def _gather(
        self, load: Instruction, site: Instruction, size: int, shift: int, earlier: Earlier
    ) -> Numbers | None:
        """Which iterations a load outside of the loop needs."""
        base, offset = self.induction.address(load.operands[0])
        assert load.block is not None
        inner = self.loops.of(load.block)
        where = load.block if inner is None else inner.ancestors()[-1]
        indices = [s for s, c in offset.terms.items() if isinstance(s, Instruction) and c == size]
        if base is site and offset.is_const:  # the same element whenever it is read
            first, last = offset.const // size, (offset.const + ty.store_size(load.type) - 1) // size
            return earlier.numbers(where, ConstInt(ty.I64, 0), first - shift, 64) if first == last else None
        if base is not site or len(indices) != 1:
            return None
        place = self._element(offset, indices[0], size, load)
        if place is None:
            return None
        bits = 64 if size & (size - 1) else 65 - size.bit_length()
        return earlier.numbers(where, indices[0], place - shift, bits)

    def _closed(self, loop: Loop) -> bool:
        """Whether no value of the loop is used behind it."""
        for block in loop.blocks:
            for instr in block.instructions:
                if any(not loop.contains(user.block) for user in self.uses.get(instr, ())):
                    return False
        return True


def _within(user: Instruction, memory: Instruction, users: Collection[Instruction]) -> bool:
    """Whether an instruction that uses an address of a variable does so for the memory behind it alone."""
    addresses = [n for n, o in enumerate(user.operands) if o is memory or o in users]
    if user.is_call:
        return (user.callee_name or "").startswith(("llvm.lifetime.", "llvm.memset.", "llvm.memcpy."))
    if user.opcode == "getelementptr":
        return addresses == [0] and user.type.is_ptr
    return user.opcode in ("load", "store") and addresses == [user.traits.address] and not _effects(user)


def _effects(instr: Instruction) -> bool:
    return instr.volatile or bool(instr.ordering) or instr.traits.has("synchronises")
