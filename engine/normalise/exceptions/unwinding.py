"""Exceptions as ordinary control flow, before anything is differentiated.

Unwinding has no reverse of its own, but a return has one. So every function that an exception may leave gets one more
parameter, the place where the exception in flight stands, and returns early with something in it; its callers look
there after the call. `throw` stores and returns, a landing pad is a branch, and which handler takes an exception is
decided by a number that stands before the exception object:

    place in flight:  { exception object, the handled exceptions (a list through their headers) }
    exception:        { number of its type, handlers that run, next handled, rethrown?, adjustment, - } object

Types are numbered and matched when this runs (`typeinfo.py`): all of them are in the module. What leaves the root ends
the program, or (`failing`) the call with an error, or (`leaving`) stands in the place in flight that the root gets as
its last argument, in memory from which its caller can throw it. Exceptions that code without a body throws are not seen
here.

A panic (`irgrad.panic(where a number stands)`, what loaders make of the failures of their languages) flies the same way
and is caught by nothing: the root writes its number, a status, and returns.

Method: the two-level protocol of the Itanium C++ ABI for exceptions (sections 2.2 to 2.5), without its first phase.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from irgrad.engine.analyses.memory.call_effects import attribute_text
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import (
    Argument,
    Block,
    ConstAggregate,
    ConstExpr,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    GlobalAlias,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.rewrite import declare, replace_uses
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.normalise.exceptions import kept as kept_pointers
from irgrad.engine.normalise.exceptions.handlers import Handlers, Pad
from irgrad.engine.runtime.exceptions import ENDS, NOTE
from irgrad.rules.errors import Unsupported

__all__ = ["PANIC", "THROWS", "Lowering", "has_exceptions", "lower_exceptions"]

PANIC = "irgrad.panic"
"""A function without a body: its caller fails, with the status to which the argument points."""
THROWS = frozenset(("__cxa_throw", "__cxa_rethrow", PANIC)) | kept_pointers.RETHROWS
"""Functions that put an exception in flight."""
_PERSONALITY = re.compile(r"\s*\bpersonality ptr @[\w.$]+")
_GROUP = re.compile(r"#\d+")
_UNWRITTEN = re.compile(r"\b(?:readnone|readonly)\b")
_PROMISES = re.compile(r"\bno(?:unwind|return)\b")


def has_exceptions(text: str) -> bool:
    """Whether the IR has a place where exceptions arrive."""
    return "landingpad" in outline(text).opcodes


def lower_exceptions(
    module: Module,
    root: Function,
    kept: Container[str] = (),
    *,
    leaving: bool = False,
    failing: bool = False,
    status: Value | None = None,
) -> list[tuple[Value, Value]]:
    """Rewrite all functions that were read. Nothing leaves those in `kept`, which are called as they are written.

    leaving: exceptions may leave the root, which gets the place in flight as one more parameter if some do
    failing: what would end the program ends the call with an error
    status:  where the root, which returns nothing, writes the number of a panic

    Returns the types of exceptions that leave the root and their destructors, at their numbers. Raises Unsupported
    where an exception is kept beyond the call, where there are both panics and exceptions, and where a function in
    `kept` may panic.
    """
    lowering = Lowering(module, root, kept, leaving=leaving, failing=failing, status=status)
    lowering.run()
    return lowering.handlers.types() if root in lowering.throwing else []


class Lowering:
    """The functions of one module; `state` is the place in flight in each."""

    def __init__(
        self, module: Module, root: Function, kept: Container[str], *, leaving: bool = False,
        failing: bool = False, status: Value | None = None,
    ) -> None:  # fmt: skip
        self.module = module
        self.root = root
        self.closed = kept
        self.status = status
        self.functions = [fn for fn in module.functions.values() if fn.blocks]
        self.handlers = Handlers(module, self.functions, leaving=leaving, failing=failing)
        self.ends: Container[Function] = () if leaving and self.handlers.thrown else (root,)  # nothing leaves them
        self.addressed = self._addressed()
        self.throwing: set[Function] = set()
        self.indirect = False  # a call through a pointer may throw
        self.states: dict[Function, Value] = {}

    def run(self) -> None:
        """All of it."""
        if self.status is not None and self.handlers.thrown:
            raise Unsupported("exceptions of C++ beside panics", where=f"@{self.root.name}",
                              because="one function may end in both, and a handler would take a panic",
                              fix="catch exceptions in functions that return an error code")
        if self.handlers.keeps:
            kept_pointers.check_places(self.functions, self.root)
            closed = {fn for fn in self.functions if fn in self.ends or str(fn.name) in self.closed}
            self.throwing |= kept_pointers.askers(self.functions) - closed
        self._find_throwing()
        for fn in self.functions if self.status is not None else ():
            if str(fn.name) in self.closed and any(self._leaves(instr) for instr in fn.instructions()):
                raise Unsupported(f"`{fn.name}` has a rule, and may panic", where=f"@{fn.name}",
                                  because="it is called as it is written, and a panic would end the program",
                                  fix="check its arguments before it is called, and write it without panics")
        for fn in self.functions:
            self._sign(fn)
        for fn in self.functions:
            _Body(self, fn).lower()
        self.handlers.define_end(self.throwing)

    # -- which functions an exception may leave ---------------------------------------------------------------------

    def _addressed(self) -> set[Function]:
        """Functions with a body that calls through pointers may reach. Those given to code without a body are left
        out: they are called as they were written, so nothing may leave them."""
        found: set[Function] = set()
        callbacks: set[Function] = set()
        for var in self.module.globals.values():
            if var.init is not None:
                found.update(_functions_in(var.init))
        for fn in self.functions:
            for instr in fn.instructions():
                callee = resolve(instr.callee) if instr.is_call else None
                outside = isinstance(callee, Function) and callee.is_declaration
                for operand in instr.args if instr.is_call else instr.operands:
                    if callee is None or callee.name not in ("__cxa_throw", kept_pointers.INIT):
                        (callbacks if outside else found).update(_functions_in(operand))
        return {fn for fn in found - callbacks if str(fn.name) not in self.closed}

    def _find_throwing(self) -> None:
        """A fixed point over the calls; what promises not to throw ends the program instead."""
        changed = True
        while changed:
            changed = False
            for fn in self.functions:
                if fn in self.throwing or fn in self.ends or str(fn.name) in self.closed or self._promises(fn.tail):
                    continue
                if any(self._leaves(instr) for instr in fn.instructions()):
                    self.throwing.add(fn)
                    changed = True
            if not self.indirect and self.throwing & self.addressed:
                self.indirect = changed = True
        if self.indirect:
            self.throwing |= {fn for fn in self.addressed if fn not in self.ends}
        for fn in self.throwing:
            if fn.ftype.vararg:
                raise Unsupported(f"`{fn.name}` has variable arguments and throws", where=f"@{fn.name}",
                                  because="there is no place for the exception among its arguments",
                                  fix="give it a fixed prototype")

    def _leaves(self, instr: Instruction) -> bool:
        return instr.opcode == "resume" or (instr.opcode == "call" and self.may_throw(instr))

    def _promises(self, text: str) -> bool:
        """Not to throw; where panics leave a function as exceptions do, nothing promises that."""
        return self.status is None and bool(re.search(r"\bnounwind\b", attribute_text(self.module, text)))

    def may_throw(self, call: Instruction) -> bool:
        """An exception may come out of this call."""
        callee = resolve(call.callee)
        if isinstance(callee, Function):
            return callee in self.throwing or callee.name in THROWS or callee.name in self.handlers.throwers
        return self.indirect and not self._promises(call.call.fn_attrs if call.call else "")

    def takes_state(self, call: Instruction) -> bool:
        """The call passes the place in flight."""
        callee = resolve(call.callee)
        return callee in self.throwing if isinstance(callee, Function) else self.indirect

    # -- signatures ---------------------------------------------------------------------------------------------------

    def _sign(self, fn: Function) -> None:
        """One more parameter, and no promise that no longer holds."""
        fn.tail = _PERSONALITY.sub("", fn.tail)
        if fn is self.root and self.status is not None:
            fn.tail = self.kept(fn.tail)  # one that always fails was found never to return, nor to write a status
            if isinstance(self.status, Argument):
                self.status.attrs = _UNWRITTEN.sub("", self.status.attrs)
        if fn not in self.throwing:
            return
        arg = Argument(ty.PTR, "in.flight", len(fn.args), "noalias")
        arg.function = fn
        fn.args.append(arg)
        fn.ftype = ty.function(fn.ftype.ret, (*fn.ftype.params, ty.PTR))
        fn.tail = self.kept(fn.tail)
        fn.ret_attrs = ""
        self.states[fn] = arg

    def kept(self, text: str) -> str:
        """Attributes without `nounwind` and `noreturn`, their groups written out where they had one."""
        if not _PROMISES.search(attribute_text(self.module, text)):
            return text

        def written(match: re.Match[str]) -> str:
            inner = self.module.attribute_groups.get(match[0], "").strip().removeprefix("{").removesuffix("}")
            return _PROMISES.sub("", inner).strip()

        return " ".join(_PROMISES.sub("", _GROUP.sub(written, text)).split())

    def state(self, fn: Function) -> Value:
        """The place in flight of a function: its parameter, or a variable of its own."""
        if fn not in self.states:
            b = Builder(fn.entry, at=0)
            place = b.alloca(ty.array(2, ty.PTR), align=8, name="in.flight")
            b.store(ConstZero(ty.PTR), place, align=8)
            b.store(ConstZero(ty.PTR), b.gep(ty.I8, place, 8), align=8)
            self.states[fn] = place
        return self.states[fn]


def _functions_in(value: Value) -> Iterator[Function]:
    """The functions with a body that a constant mentions."""
    match value:
        case Function() if value.blocks:
            yield value
        case GlobalAlias():
            yield from _functions_in(value.target)
        case ConstAggregate(elems=parts) | ConstExpr(operands=parts):
            for part in parts:
                yield from _functions_in(part)


class _Body:
    """Rewrites one function."""

    def __init__(self, owner: Lowering, fn: Function) -> None:
        self.owner = owner
        self.fn = fn
        self.module = owner.module
        self._out: Block | None = None
        self.replaced: dict[Value, Value] = {}
        self.names = {block.name for block in fn.blocks}

    def lower(self) -> None:
        """Blocks are split where an exception may come; the order of the others stays."""
        work = list(self.fn.blocks)
        for block in work:
            self._block(block)
        if self.replaced:
            replace_uses(self.fn, self.replaced)
        _drop_unreachable(self.fn)

    def _state(self) -> Value:
        return self.owner.state(self.fn)

    def _new(self, name: str) -> Block:
        number, wanted = 0, name
        while wanted in self.names:
            number += 1
            wanted = f"{name}.{number}"
        self.names.add(wanted)
        block = Block(wanted)
        block.function = self.fn
        self.fn.blocks.append(block)
        return block

    def out(self) -> Block:
        """Where an exception leaves the function."""
        if self._out is None:
            self._out = self._new("thrown")
            b = Builder(self._out)
            owner = self.owner
            if owner.status is not None and self.fn is owner.root:
                b.store(b.load(ty.I32, b.load(ty.PTR, self._state(), align=8), align=4), owner.status, align=4)
                b.ret()
            elif self.fn in owner.throwing:
                if self.fn is owner.root and owner.handlers.keeps:
                    b.store(owner.handlers.alone(b, b.load(ty.PTR, self._state(), align=8)), self._state(), align=8)
                result = self.fn.ftype.ret
                b.ret(None if result is ty.VOID else zero(result))
            elif owner.handlers.failing and owner.handlers.thrown:
                owner.handlers.fail(b, b.load(ty.PTR, self._state(), align=8))
            else:
                b.call(declare(self.module, "_ZSt9terminatev", ty.VOID, (), "noreturn nounwind"), [])
                b.unreachable()
        return self._out

    def _block(self, block: Block) -> None:
        """One block, then what was split off it."""
        current: Block | None = block
        while current is not None:
            current = self._first(current)

    def _first(self, block: Block) -> Block | None:
        """Rewrite up to the first split; returns the block with the rest."""
        old, block.instructions = block.instructions, []
        b = Builder(block)
        for at, instr in enumerate(old):
            rest = old[at + 1 :]
            dbg = instr.metadata.get("dbg")
            b.metadata = {"dbg": dbg} if dbg else {}
            if instr.opcode == "landingpad":
                return self._pad(b, instr, rest)
            if instr.opcode == "resume":
                self._throw_again(b, instr)
                return None
            if instr.opcode in ("call", "invoke"):
                done, follow = self._call(b, instr, rest)
                if done:
                    return follow
                continue
            block.instructions.append(instr)
        return None

    # -- landing pads and what leaves them --------------------------------------------------------------------------

    def _pad(self, b: Builder, pad: Instruction, rest: list[Instruction]) -> Block:
        """The exception is taken out of its place when a clause takes it; otherwise it flies on."""
        here = b.block
        state = self._state()
        thing = b.load(ty.PTR, state, align=8)
        clauses = Pad(pad.clauses)
        selector = self.owner.handlers.selector(b, thing, clauses)
        inside = self._split(here, rest, "caught")
        if clauses.takes_all:
            b.br(inside)
        else:
            b.cond_br(b.icmp("ne", selector, ConstInt(ty.I32, 0)), inside, self.out())
        inner = Builder(inside, at=0)
        inner.store(ConstZero(ty.PTR), state, align=8)
        pair: Value = inner.insertvalue(ConstUndef(pad.type, poison=True), thing, 0)
        self.replaced[pad] = inner.insertvalue(pair, selector, 1)
        return inside

    def _throw_again(self, b: Builder, resume: Instruction) -> None:
        b.store(b.extractvalue(resume.operands[0], 0), self._state(), align=8)
        b.br(self.out())

    def _split(self, block: Block, rest: list[Instruction], name: str) -> Block:
        """Move `rest` to a block of its own; phis behind it know it by its new name."""
        new = self._new(name)
        new.instructions = rest
        for instr in rest:
            instr.block = new
        for after in dict.fromkeys(new.successors):
            for phi in after.phis:
                phi.blocks = [new if b is block else b for b in phi.blocks]
        return new

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call(self, b: Builder, call: Instruction, rest: list[Instruction]) -> tuple[bool, Block | None]:
        """(whether the block ends here, the block with the rest)."""
        callee = resolve(call.callee)
        name = callee.name or "" if isinstance(callee, Function) else ""
        handlers = self.owner.handlers
        if name == NOTE:  # each exception keeps it here
            return False, None
        if name == ENDS:
            handlers.fail(b, call.args[0])
            return True, None
        unwind = call.blocks[1] if call.opcode == "invoke" else None
        if name in THROWS or name in handlers.throwers:
            if name == PANIC:
                b.store(call.args[0], self._state(), align=8)
            else:
                handlers.throw(b, call, name, self._state())
            self._leave(b, unwind, call.blocks[0] if unwind is not None else None)
            return True, None
        ours = name.startswith(("__cxa_", "llvm.eh.")) or name in kept_pointers.OPERATIONS
        expanded = handlers.expand(b, call, name, self._state) if ours else None
        if expanded is not None:
            if call.type is not ty.VOID:
                self.replaced[call] = expanded
            if unwind is not None:
                self._go_on(b, call.blocks[0], unwind)
            return unwind is not None, None
        throws = self.owner.may_throw(call)
        self._plain(b, call)
        if not throws:
            if unwind is not None:
                self._go_on(b, call.blocks[0], unwind)
            return unwind is not None, None
        follow = None if unwind is not None else self._split(b.block, rest, "returned")
        inside = call.blocks[0] if unwind is not None else follow
        assert inside is not None
        flying = b.icmp("ne", b.load(ty.PTR, self._state(), align=8), ConstZero(ty.PTR))
        b.cond_br(flying, unwind if unwind is not None else self.out(), inside)
        return True, follow

    def _plain(self, b: Builder, call: Instruction) -> Instruction:
        """The call itself, never an invoke; it passes the place in flight where the callee wants it."""
        assert call.call is not None
        operands = list(call.operands)
        info = call.call
        if self.owner.takes_state(call):
            operands.insert(-1, self._state())
            info.fn_type = ty.function(info.fn_type.ret, (*info.fn_type.params, ty.PTR))
            info.fn_attrs = self.owner.kept(info.fn_attrs)
            info.ret_attrs = ""
        if self.owner.may_throw(call):
            info.tail = ""
        if call.opcode == "call":
            call.operands = operands
            b.block.instructions.append(call)
            return call
        new = Instruction("call", call.type, operands, name=call.name, call=info, metadata=dict(call.metadata))
        b.insert(new)
        self.replaced[call] = new
        return new

    def _go_on(self, b: Builder, normal: Block, unwind: Block) -> None:
        """No exception comes: the edge to the landing pad is gone."""
        b.br(normal)
        if unwind is not normal:
            _forget(unwind, b.block)

    def _leave(self, b: Builder, unwind: Block | None, normal: Block | None) -> None:
        """An exception is in flight for sure."""
        b.br(unwind if unwind is not None else self.out())
        if normal is not None and normal is not unwind:
            _forget(normal, b.block)


def _forget(target: Block, block: Block) -> None:
    """Phis of `target` lose what came from `block`."""
    for phi in target.phis:
        kept = [(v, b) for v, b in zip(phi.operands, phi.blocks, strict=True) if b is not block]
        phi.operands, phi.blocks = [v for v, _ in kept], [b for _, b in kept]


def _drop_unreachable(fn: Function) -> None:
    """Blocks that no path leads to any more."""
    reached = {fn.entry}
    work = [fn.entry]
    while work:
        for following in work.pop().successors:
            if following not in reached:
                reached.add(following)
                work.append(following)
    for block in fn.blocks:
        if block not in reached:
            for following in dict.fromkeys(block.successors):
                _forget(following, block)
    fn.blocks = [block for block in fn.blocks if block in reached]
