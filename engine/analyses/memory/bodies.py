"""What the bodies of single functions do with their parameters: for functions of which the analyses of a program know
nothing, because a rule hides them, or because only derivatives call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.call_effects import effect_of
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir.model import (
    Argument,
    Block,
    ConstExpr,
    Function,
    GlobalVariable,
    Instruction,
    Value,
)
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.text.reader import materialise

if TYPE_CHECKING:
    from irgrad.engine.ir.model import Module

__all__ = ["uses", "variables", "written_through"]

_SAME = having("same_memory")


def uses(module: Module, fn: Function, position: int) -> bool:
    """Whether a function looks at a parameter; yes where its body is not known."""
    blocks = _body(module, fn)
    if blocks is None:
        return True
    return any(fn.args[position] in instr.operands for block in blocks for instr in block.instructions)


def written_through(module: Module, fn: Function) -> frozenset[int] | None:
    """The parameters through which a function may write; None where it may write other memory, or is not known."""
    return _written(module, fn, set())


def variables(module: Module, fn: Function) -> tuple[dict[str, None], set[str]]:
    """The variables that a function and those that it calls read, and those that they write, by name. Addresses that
    are handed about are not followed."""
    read: dict[str, None] = {}
    written: set[str] = set()
    work, seen = [fn], {fn}
    while work:
        for instr in (instr for block in _body(module, work.pop()) or () for instr in block.instructions):
            if instr.opcode in ("load", "store"):
                base = _base(instr.operands[int(instr.opcode == "store")])
                if isinstance(base, GlobalVariable) and not base.constant and base.name:
                    written.add(base.name) if instr.opcode == "store" else read.setdefault(base.name)
            callee = resolve(instr.callee) if instr.is_call else None
            if isinstance(callee, Function) and callee not in seen:
                seen.add(callee)
                work.append(callee)
    return read, written


def _base(address: Value) -> Value:
    while isinstance(address, Instruction | ConstExpr) and address.opcode in ("getelementptr", "bitcast"):
        address = address.operands[0]
    return address


def _written(module: Module, fn: Function, running: set[Function]) -> frozenset[int] | None:
    blocks = _body(module, fn)
    if blocks is None:
        return None
    if fn in running:  # what it writes, the call that is being looked into writes
        return frozenset(i for i, arg in enumerate(fn.args) if arg.type.is_ptr)
    running.add(fn)
    found: set[int] = set()
    for block in blocks:
        for instr in block.instructions:
            targets = _targets(module, instr, running)
            for target in targets if targets is not None else ():
                bases = _bases(target)
                if not all(map(_known, bases)):
                    targets = None
                    break
                found |= {base.index for base in bases if isinstance(base, Argument)}
            if targets is None:
                running.discard(fn)
                return None
    running.discard(fn)
    return frozenset(found)


def _targets(module: Module, instr: Instruction, running: set[Function]) -> list[Value] | None:
    """The addresses that an instruction writes to; None where they are not known."""
    if instr.opcode == "store":
        return [instr.operands[1]]
    if instr.opcode in ("atomicrmw", "cmpxchg"):
        return [instr.operands[0]]
    if not instr.is_call:
        return None if instr.opcode in ("va_arg", "fence") else []
    callee = resolve(instr.callee)
    if not isinstance(callee, Function):
        return None
    if _body(module, callee) is not None:
        through = _written(module, callee, running)
        return None if through is None or len(instr.args) > len(callee.args) else [instr.args[i] for i in through]
    effect = effect_of(module, instr, callee)
    if effect.nothing:
        return []
    if effect.writes is None or effect.frees is not None or effect.deep:
        return None
    return [instr.args[i] for i in effect.writes]


def _bases(address: Value) -> set[Value]:
    """The values that an address is computed from, through everything that stays in one piece of memory."""
    found: set[Value] = set()
    seen, work = {address}, [address]
    while work:
        value = work.pop()
        if not (isinstance(value, Instruction) and value.opcode in _SAME):
            found.add(value)
            continue
        first = {"select": slice(1, 3), "phi": slice(None)}.get(value.opcode, slice(1))
        fresh = [o for o in value.operands[first] if o not in seen]
        seen.update(fresh)
        work += fresh
    return found


def _known(base: Value) -> bool:
    return isinstance(base, Argument) or (isinstance(base, Instruction) and base.opcode == "alloca")


def _body(module: Module, fn: Function) -> list[Block] | None:
    """The blocks of a function, of a hidden one too; None where there are none. The function stays as it is: text that
    was not read counts as a body that no analysis has seen."""
    hidden = module.rules.hidden.get(fn) if module.rules is not None else None
    blocks, lazy = hidden if hidden is not None else (fn.blocks, fn.lazy)
    if lazy is None:
        return blocks or None
    before = fn.blocks, fn.lazy
    fn.blocks, fn.lazy = [], lazy
    try:
        materialise(fn, module)
        return fn.blocks or None
    finally:
        fn.blocks, fn.lazy = before
