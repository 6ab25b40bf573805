"""What the iterations of a loop add to memory that they share, in an order of their own: by class.

    own           an address that moves with the iteration: load, add, store
    same for all  small memory to which iterations only add: each thread has a row, and the rows are added up in order
    indirect      all others: atomic additions, whose order, and so whose last bits, differ from run to run

Before anything is optimised every addition to memory in the derivative of an iteration becomes atomic, which is right
in any case (`make_atomic`); those of the first two classes become plain again when it is known what they are. The
primal's own stores are to places that no other iteration touches: that is what the source promises, and with it the
adjoint of such a place is taken by one iteration alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from irgrad.engine.analyses.evolution.affine import Affine, Symbol
from irgrad.engine.analyses.evolution.induction import Induction
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Argument, Block, Function, Instruction, Module, Value, is_zero
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.normalise.iterations import ITERATION
from irgrad.engine.threads.ownership import UNKNOWN, base_of, made_of, own_addresses, root_of
from irgrad.rules.effects import facts
from irgrad.rules.errors import Unsupported

__all__ = ["handed_on", "make_atomic", "make_plain", "only_added_to", "thread_local"]

_ADJOINT = (".rev.", ".vjp.")
_ACCESSES = (having("reads") | having("writes")) - having("calls")
_ORDER = "monotonic"
_LINKS = 6  # additions in a row


# -- before anything is optimised -------------------------------------------------------------------------------------


def make_atomic(module: Module) -> None:
    """Additions to memory in reverse derivatives of iterations become atomic. Raises Unsupported for what such a
    derivative writes otherwise, except to memory of its own, and zeros."""
    own = own_addresses(module)
    for fn in _reached(module):
        uses = uses_of(fn.blocks)
        for block in fn.blocks:
            for instr in list(block.instructions):
                if instr.opcode == "store" and not _alone(instr.operands[1], own):
                    if not _added(block, instr, uses, own) and not is_zero(instr.operands[0]):
                        raise _refused(module, instr, "an iteration's derivative writes what is no sum to memory")
                elif instr.is_call:
                    _check_call(module, instr)


def _alone(pointer: Value, own: Collection[Value]) -> bool:
    """Whether an address leads to memory of the iteration: of the function, or of its primal sweep."""
    return isinstance(root_of(pointer), Instruction) or made_of(pointer) in own


def _reached(module: Module) -> list[Function]:
    """The reverse derivatives of iterations, and what they call."""
    work = [f for name, f in module.functions.items() if ITERATION in name and any(w in name for w in _ADJOINT)]
    found: dict[Function, None] = {}
    while work:
        fn = work.pop()
        if fn in found or not fn.blocks:
            continue
        found[fn] = None
        work += [i.callee for i in fn.instructions() if i.is_call and isinstance(i.callee, Function)]
    return list(found)


def _added(block: Block, store: Instruction, uses: Uses, alone: Collection[Value]) -> bool:
    """Make `*p = *p + x` atomic, if that is what a store does; x may be several terms, and vectors of such."""
    total, pointer = store.operands
    found = _terms(block, total, pointer, uses)
    if found is None or total.type.scalar not in (ty.F32, ty.F64):
        return False
    old, terms, links = found
    row = block.instructions
    between = row[row.index(old) + 1 : row.index(store)]
    if any(_meets(i, pointer, alone) for i in between) or old.ordering or old.volatile or not terms:
        return False
    at = Builder(block, row.index(store))
    at.metadata = {k: v for k, v in store.metadata.items() if k == "dbg"}
    more: Value | None = None
    for term, less in terms:
        if more is None:
            more = at.fneg(term) if less else term
        else:
            more = at.binary("fsub" if less else "fadd", more, term, ("reassoc", "nsz", "contract"))
    assert more is not None
    lanes = total.type.count if isinstance(total.type, ty.VectorType) else 1
    for lane in range(lanes):
        value = more if lanes == 1 else at.extractelement(more, lane)
        place = pointer if lanes == 1 else at.gep(total.type.scalar, pointer, lane, flags=())
        at.insert(Instruction("atomicrmw", value.type, [place, value], pred="fadd", align=ty.size_of(value.type),
                              ordering=_ORDER))  # fmt: skip
    gone = {store, old, *links}
    block.instructions = [i for i in block.instructions if i not in gone]
    return True


def _terms(
    block: Block, total: Value, pointer: Value, uses: Uses
) -> tuple[Instruction, list[tuple[Value, bool]], list[Instruction]] | None:
    """A sum that has what was at an address as one term: that, the other terms and whether they are subtracted, and the
    instructions of the sum; None where it is no such sum, or used otherwise."""
    terms: list[tuple[Value, bool]] = []
    links: list[Instruction] = []
    work = [(total, terms, links)]
    while work:
        value, terms, links = work.pop()
        if not isinstance(value, Instruction) or value.block is not block or len(uses.get(value, ())) != 1:
            continue
        if value.opcode == "load" and value.operands[0] is pointer:
            return value, terms, links
        if value.opcode in ("fadd", "fsub") and len(links) < _LINKS:
            left, right = value.operands
            work.append((left, [*terms, (right, value.opcode == "fsub")], [*links, value]))
            if value.opcode == "fadd":
                work.append((right, [*terms, (left, False)], [*links, value]))
    return None


def _meets(instr: Instruction, pointer: Value, alone: Collection[Value]) -> bool:
    """Whether an instruction may write to the array that an address is in. What two arguments lead to are two arrays,
    or parts of one that the function adds to each for itself. alone: addresses of memory of the iteration, in which
    that of the others is not"""
    if instr.opcode not in ("store", "atomicrmw"):
        return instr.is_call and not _quiet(instr.callee_name or "")
    target = instr.operands[1 if instr.opcode == "store" else 0]
    own, other = root_of(pointer), root_of(target)
    return made_of(target) not in alone and (own is other or UNKNOWN in (own, other))


def _quiet(name: str) -> bool:
    known = facts(name) if name else None
    return known is not None and known.kind == "pure" and not known.writes


def _check_call(module: Module, call: Instruction) -> None:
    name, callee = call.callee_name or "", call.callee
    if isinstance(callee, Function) and callee.blocks:
        return
    if name.startswith("llvm.memset.") and is_zero(call.operands[1]):
        return
    known = facts(name)
    if name.startswith(("llvm.lifetime.", "llvm.assume", "irgrad.tape.")) or (known is not None and not known.writes):
        return
    if known is not None and known.pointer >= 0 and isinstance(root_of(call.operands[known.pointer]), Instruction):
        return
    raise _refused(module, call, f"an iteration's derivative calls `{name or 'through a pointer'}`")


def _refused(module: Module, instr: Instruction, what: str) -> Unsupported:
    return Unsupported(f"a loop cannot run on many threads: {what}", where=locate(module, instr),
                       because="other iterations may do the same to the same memory",
                       fix="batch over the loop with jax.vmap, or leave its promise out")  # fmt: skip


# -- when it is known what they are -----------------------------------------------------------------------------------


def make_plain(fn: Function, roots: Iterable[Value], number: Value) -> None:
    """Atomic additions to a thread's own memory, and to arrays of which each iteration has its own part, become loads,
    additions and stores.

    roots: arguments that are addresses of arrays which no other argument leads to; number: the iteration
    """
    induction, found = Induction(fn), dict[Value, list[Instruction]]()
    for instr in fn.instructions():
        if instr.opcode == "atomicrmw" and instr.pred == "fadd" and instr.ordering == _ORDER:
            found.setdefault(root_of(instr.operands[0]), []).append(instr)
    alone = set(roots)
    for root, rows in found.items():
        own = isinstance(root, Instruction) or (root in alone and _apart(induction, rows, number))
        for instr in rows if own else ():
            _plain(instr)


def only_added_to(fn: Function, root: Value) -> bool:
    """Whether a function only adds to the memory that an argument leads to, one float a time."""
    for instr in fn.instructions():
        for n, operand in enumerate(instr.operands):
            if not operand.type.is_ptr or root_of(operand) is not root:
                continue
            if base_of(instr) is operand:
                continue
            if not (instr.opcode == "atomicrmw" and instr.pred == "fadd" and n == 0):
                return False
    return True


def handed_on(fn: Function, root: Value, silent: Collection[str] = ()) -> bool:
    """Whether an address in the memory that a value leads to may come from somewhere else: it is stored, chosen, made a
    number, or given to a call. silent: functions that do nothing of that with it."""
    uses, work = uses_of(fn.blocks), [root]
    while work:
        value = work.pop()
        for user in uses.get(value, ()):
            name = user.callee_name or "" if user.is_call else ""
            if base_of(user) is value:
                work.append(user)
            elif user.opcode == "store" and user.operands[0] is value:
                return True
            elif user.opcode in _ACCESSES or name in silent or name.startswith(("llvm.mem", "llvm.lifetime.")):
                continue
            else:
                return True
    return False


def thread_local(fn: Function, root: Value) -> None:
    """Additions to memory that a thread has alone become plain."""
    for instr in list(fn.instructions()):
        if instr.opcode == "atomicrmw" and root_of(instr.operands[0]) is root:
            _plain(instr)


def _plain(instr: Instruction) -> None:
    block = instr.block
    assert block is not None
    at = Builder(block, block.instructions.index(instr))
    pointer, more = instr.operands
    total = at.binary("fadd", at.load(instr.type, pointer, instr.align), more, ("reassoc", "nsz", "contract"))
    store = at.store(total, pointer, instr.align)
    store.metadata = dict(instr.metadata)
    block.instructions.remove(instr)


def _apart(induction: Induction, rows: list[Instruction], number: Value) -> bool:
    """Whether the places that one iteration adds to are those of no other one: within a step of the iteration."""
    step, rest, low, high = 0, None, math.inf, -math.inf
    for instr in rows:
        base, offset = induction.address(instr.operands[0])
        form = Affine(64, offset.const, dict(offset.terms), offset.exact, offset.rising)
        own = form.terms.pop(number, 0)
        loops: dict[Symbol, int] = {s: c for s, c in form.terms.items() if s in form.loops()}
        fixed = {s: c for s, c in form.terms.items() if s not in loops} | {base: 1}
        if not own or (step and own != step) or (rest is not None and rest != fixed):
            return False
        if any(not isinstance(s, Argument) for s in fixed):
            return False
        least, most = induction.bounds(Affine(64, form.const, loops))
        step, rest, low, high = own, fixed, min(low, least), max(high, most)
    sizes = [ty.size_of(instr.type) for instr in rows]
    return high + max(sizes) - low <= abs(step)
