"""Where an address of `__enzyme_todense` goes in a function (see `todense.py`).

In a function of the program it may be moved, and handed to functions. In a wrapper, which has the whole derivative in
it, it may also be kept in memory, as in a tape: from then on any pointer that is loaded may be one, or may not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import ConstUndef, ConstZero, Function, Instruction, Module, Value
from irgrad.engine.ir.printer import instruction_to_text
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.rules.errors import IRGradError, Unsupported

__all__ = ["AddressFlow", "accessed", "address", "moves_memory", "refused"]

_MOVING = ("llvm.memset.", "llvm.memcpy.", "llvm.memmove.")
_NO_ACCESS = ("llvm.lifetime.", "llvm.dbg.", "llvm.assume", "llvm.invariant.")
_KEPT = "it is kept in memory, returned, or made into another value"


@dataclass(slots=True)
class AddressFlow:
    """The values that are addresses, each with the instruction that gave it, or None where it may be any or none; and
    the uses that count. `whole`: the function is a wrapper."""

    module: Module
    fn: Function
    origins: dict[Value, Instruction | None] = field(default_factory=dict)
    accesses: dict[Instruction, None] = field(default_factory=dict)
    calls: dict[Instruction, None] = field(default_factory=dict)
    whole: bool = False
    kept: bool = False
    users: Uses = field(default_factory=dict)

    def follow(self, gives: Callable[[Instruction], bool], skipped: str) -> AddressFlow:
        """Start from what `gives` addresses; calls of functions whose names begin with `skipped` do not count.

        Raises Unsupported where an address goes where it cannot be followed."""
        self.users = uses_of(self.fn.blocks)
        self.origins = {instr: instr for instr in self.fn.instructions() if gives(instr)}
        work: list[Value] = list(self.origins)
        while work:
            while work:
                value = work.pop()
                for user in self.users.get(value, []):
                    self._use(value, user, work, skipped)
            for value, origin in list(self.origins.items()):
                if origin is not None and self._mixed(value, origin):
                    self._set(value, None, work)
        return self

    def _set(self, value: Value, origin: Instruction | None, work: list[Value]) -> None:
        known = self.origins.get(value, value)
        joined = origin if known is value or known is origin else None
        if value not in self.origins or joined is not known:
            if joined is None and not self.whole and isinstance(value, Instruction):
                raise refused(self.module, value, "it may be one of several such addresses, or one of ordinary memory")
            self.origins[value] = joined
            work.append(value)

    def _mixed(self, value: Value, origin: Instruction) -> bool:
        """Whether a choice may give something else, or is made where its memory's arguments are not known."""
        if not isinstance(value, Instruction) or value.opcode not in ("phi", "select"):
            return False
        given = [o for o in value.operands if o.type.is_ptr and not isinstance(o, ConstUndef | ConstZero)]
        return origin.block is not self.fn.entry or any(self.origins.get(o) is not origin for o in given)

    def _use(self, value: Value, user: Instruction, work: list[Value], skipped: str) -> None:
        if user.is_call:
            self._call(value, user, skipped)
        elif user.opcode == "load" or (user.opcode == "store" and user.operands[0] is not value):
            if user.ordering:
                raise refused(self.module, user, "the access is atomic")
            self.accesses[user] = None
        elif user.type.is_ptr and user.traits.has("same_memory"):
            self._set(user, self.origins[value], work)
        elif user.opcode not in ("icmp", "ptrtoint"):
            self._keep(user, work)

    def _keep(self, user: Instruction, work: list[Value]) -> None:
        if not self.whole or user.opcode not in ("store", "insertvalue"):
            raise refused(self.module, user, _KEPT)
        if not self.kept:
            self.kept = True
            for instr in self.fn.instructions():
                fresh = instr.is_call or instr.opcode == "alloca"
                if instr.type.is_ptr and not fresh and not instr.traits.has("same_memory"):
                    self._set(instr, None, work)

    def _call(self, value: Value, user: Instruction, skipped: str) -> None:
        callee = resolve(user.callee)
        name = callee.name or "" if isinstance(callee, Function) else ""
        body = isinstance(callee, Function) and not callee.is_declaration and not callee.ftype.vararg
        sure = self.origins[value] is not None
        if name.startswith((*_NO_ACCESS, skipped)) or not (sure or body):
            return
        if not body and not moves_memory(user):
            raise refused(self.module, user, f"it is handed to `{name}`, which has no body here" if name else
                          "it is handed to a function that is only known when the program runs")
        self.calls[user] = None

    def stays(self, value: Value, origin: Instruction) -> bool:
        """Whether what is computed from a value only goes into the memory of that address."""
        work, seen = [value], {value}
        while work:
            for user in self.users.get(work.pop(), []):
                if user.opcode == "store" and self.origins.get(user.operands[1]) is origin:
                    continue
                if user.is_call or user.is_terminator or user.type is ty.VOID or user.type.is_ptr:
                    return False
                if user not in seen:
                    seen.add(user)
                    work.append(user)
        return True


def moves_memory(call: Instruction) -> bool:
    """Whether it is a copy or a fill."""
    return (call.callee_name or "").startswith(_MOVING)


def accessed(access: Instruction) -> ty.Type:
    """What is loaded or stored."""
    return access.type if access.opcode == "load" else access.operands[0].type


def address(access: Instruction) -> Value:
    """Where."""
    return access.operands[access.traits.address]


def refused(module: Module, instr: Instruction, because: str) -> IRGradError:
    """The error for one use of an address."""
    line = locate(module, instr)
    fn = instr.block.function if instr.block is not None else None
    name = fn.name or "" if fn is not None and not (fn.name or "").startswith("irgrad.") else ""
    where = f"@{name}{f' ({line})' if line else ''}" if name else line
    return Unsupported("an address of __enzyme_todense cannot be followed", where=where,
                       which=instruction_to_text(instr).strip(), because=because,
                       fix="hand it to the derivative directly, as the shadow or the value of a pointer argument, and "
                       "let the differentiated function only load and store numbers through it")
