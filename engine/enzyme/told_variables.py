"""Variables of which more than the functions that name them know the address.

    double state[4], *where = state;                 /* another variable keeps it, so any pointer may lead there */
    double total; extern double read_total(void);    /* a library may name it */

What is written through a pointer that nobody knows may be in such a variable, and what code without a body reads may be
too. Found in the whole program: the variable in the first contents of others, stored, returned, or handed to a function
that may keep it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from re import compile as pattern

from irgrad.engine.analyses.memory.objects import COPIES, initial_pointers
from irgrad.engine.enzyme.names import PREFIX
from irgrad.engine.ir.model import ConstExpr, Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import ACCESSES
from irgrad.engine.ir.quoting import bare_name
from irgrad.engine.ir.uses import uses_of
from irgrad.rules.effects import facts

__all__ = ["Defined", "libraries_called", "told_variables"]

_SYMBOL = pattern(r'@(?:"[^"\n]*"|[-\w$.]+)')
_HARMLESS = ("llvm.", "irgrad", PREFIX)
_MOVES = COPIES | {"getelementptr"}
_KEPT_NOT = ("captures(none)", "nocapture")


class Defined(dict[str | None, bool]):
    """The variables that a program defines, and whether each holds addresses from the start. told: those whose address
    is known elsewhere; own: those that no other file may name."""

    def __init__(self, rows: Mapping[str | None, bool], told: Container[str | None], own: Container[str | None]):
        super().__init__(rows)
        self.told = told
        self.own = own


def told_variables(text: str, names: Container[str | None]) -> frozenset[str | None]:
    """Those of these variables of a program whose address it keeps or hands on. Constants are left out: nothing is
    written there. Only functions that name one of the others are read."""
    from irgrad.engine.ir.text.reader import materialise, read

    module = read(text, [])
    wanted = {var for name, var in module.globals.items() if name in names and not var.constant}
    told: set[Value] = set()
    for var in module.globals.values():
        if var.init is not None and not (var.name or "").startswith("llvm."):
            told |= {_base(value) for _, value in initial_pointers(var.init)} & wanted
    known: dict[tuple[Function, int], bool] = {}
    for fn in list(module.functions.values()):
        named = {bare_name(found) for found in _SYMBOL.findall(fn.lazy or "")}
        here = [var for var in wanted - told if var.name in named]
        if not here:
            continue
        materialise(fn, module)
        uses = uses_of(fn.blocks)
        for var in here:
            starts = [value for value in uses if value is var or (isinstance(value, ConstExpr) and _base(value) is var)]
            if any(_told(module, uses, value, known) for value in starts):
                told.add(var)
    return frozenset(var.name for var in told)


def _base(value: Value) -> Value:
    while isinstance(value, ConstExpr):
        value = value.operands[0]
    return value


def _told(
    module: Module, uses: Mapping[Value, list[Instruction]], address: Value, known: dict[tuple[Function, int], bool]
) -> bool:
    """Whether a function tells an address to others."""
    work, seen = [address], {address}
    while work:
        value = work.pop()
        for user in uses.get(value, ()):
            found: list[Instruction] | None = []
            if user.opcode in _MOVES:
                found = [user]
            elif user.is_call:
                if any(_keeps(module, user, n, known) for n, arg in enumerate(user.args) if arg is value):
                    return True
            elif user.opcode in ACCESSES:
                if any(operand is value and n != user.traits.address for n, operand in enumerate(user.operands)):
                    found = _read_again(uses, user.operands[1]) if user.opcode == "store" else None
            elif user.opcode != "icmp":
                return True
            if found is None:
                return True
            work += [more for more in found if more not in seen]
            seen.update(found)
    return False


def _read_again(uses: Mapping[Value, list[Instruction]], memory: Value) -> list[Instruction] | None:
    """What is loaded from a local variable that is only stored and loaded; None for other memory."""
    if not isinstance(memory, Instruction) or memory.opcode != "alloca":
        return None
    others = [user for user in uses.get(memory, ()) if user.opcode != "load"]
    if any(user.operands[0] is memory for user in others if user.opcode == "store"):
        return None
    if not all(user.opcode == "store" or (user.callee_name or "").startswith("llvm.") for user in others):
        return None
    return [user for user in uses[memory] if user.opcode == "load"]


def _keeps(module: Module, call: Instruction, number: int, known: dict[tuple[Function, int], bool]) -> bool:
    """Whether a call may keep one of its arguments."""
    from irgrad.engine.ir.text.reader import materialise

    said = call.call.arg_attrs[number] if call.call is not None and number < len(call.call.arg_attrs) else ""
    callee = call.callee
    name = call.callee_name or ""
    if any(words in said for words in _KEPT_NOT) or name.startswith(_HARMLESS) or PREFIX in name:
        return False
    if not isinstance(callee, Function):
        return True
    if callee.is_declaration:
        stated = facts(name)
        return stated is None or stated.captures is None or number in stated.captures or stated.returns == number
    if number >= len(callee.args):
        return True
    if (callee, number) not in known:
        known[callee, number] = False  # of calls of itself
        materialise(callee, module)
        attrs = callee.args[number].attrs
        kept = not any(words in attrs for words in _KEPT_NOT)
        known[callee, number] = kept and _told(module, uses_of(callee.blocks), callee.args[number], known)
    return known[callee, number]


def libraries_called(module: Module) -> bool:
    """Whether functions call code that nothing is known of, which may name what it likes."""
    for fn in module.functions.values():
        for instr in fn.instructions():
            callee = instr.callee if instr.is_call else None
            if isinstance(callee, Function) and callee.is_declaration and facts(callee.name or "") is None:
                stated = module.rules is not None and module.rules.tables(callee.name or "")
                if not stated and not (callee.name or "").startswith(_HARMLESS):
                    return True
    return False
