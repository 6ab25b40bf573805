"""Throwing, catching and destroying exceptions, as instructions on the exception object and its header.

See `unwinding.py` for the layout of the header and of the place in flight. An exception lives until its last handler
ends and it was not thrown again there; a handler that begins while it is the innermost one already is counted only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.analyses.memory.tbaa import MEMBERS
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Block,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.rewrite import declare, scalar_tag, text_constant
from irgrad.engine.normalise.exceptions import kept
from irgrad.engine.normalise.exceptions.typeinfo import base_offset, is_pointer, symbol, types_thrown
from irgrad.engine.normalise.exceptions.uncaught import fail, place_of, text_offset, type_name
from irgrad.rules.effects import EXCEPTION_HEADER
from irgrad.rules.errors import Unsupported

TYPE, _RUNNING, _NEXT, _AGAIN, _ADJUST, _PLACE = range(-48, 0, 8)  # and before them the words of `kept.py`
_CLAUSE = re.compile(r'catch ptr (?:(null)|@"?([\w.$]+)"?)')
_END, _RELEASE = "irgrad.exception.end", "irgrad.exception.release"
_DONE = ConstUndef(ty.I64)

# libstdc++ throws from functions of its own, so that its headers need not: class thrown by `std::__throw_<class>`.
_STANDARD = {
    f"_ZSt{len('__throw_' + name[2:])}__throw_{name[2:]}PKc": name
    for name in ("11logic_error", "12length_error", "12out_of_range", "16invalid_argument", "12domain_error",
                 "13runtime_error", "11range_error", "14overflow_error", "15underflow_error")
} | {"_ZSt24__throw_out_of_range_fmtPKcz": "12out_of_range"}  # fmt: skip


class Pad:
    """The clauses of a landing pad, in order."""

    __slots__ = ("catches", "takes_all")

    def __init__(self, text: str) -> None:
        self.catches: list[str | None] = [name or None for _, name in _CLAUSE.findall(text)]  # None: catch (...)
        first = text.split(None, 1)[0] if text.split() else ""
        self.takes_all = first == "cleanup" or None in self.catches or "filter" in text


class Handlers:
    """The exception types of a module, and the code for what happens to an exception."""

    def __init__(
        self, module: Module, functions: Sequence[Function], *, leaving: bool = False, failing: bool = False
    ) -> None:
        self.module = module
        self.failing = failing  # where they are thrown is kept in them
        self.leaving = leaving  # the C++ runtime may get them
        self.throwers = {name: cls for name, cls in _STANDARD.items() if name in module.functions}
        self.thrown: list[Value] = []  # type descriptors; a type's number is its place here
        self._destroy: dict[int, Value] = {}
        self._numbers: dict[str, int] = {}
        self.keeps = kept.holds_exceptions(functions)
        if self.keeps:
            kept.adopt_helpers(module)
        self._moves = False  # some handler takes a part of an object that does not begin where the object does
        for fn in functions:
            for instr in fn.instructions():
                if instr.is_call and instr.callee_name in ("__cxa_throw", kept.INIT):
                    for info, end in types_thrown(instr.args[1], instr.args[2]):
                        self._destroy.setdefault(self._thrown(info), end)
                elif instr.is_call and instr.callee_name in self.throwers:
                    cls = self.throwers[instr.callee_name or ""]
                    number = self._thrown(self._external(f"_ZTISt{cls}"))
                    end = declare(module, f"_ZNSt{cls}D1Ev", ty.VOID, (ty.PTR,), "nounwind")
                    self._destroy.setdefault(number, end)

    def _thrown(self, info: Value) -> int:
        for number, known in enumerate(self.thrown):
            if symbol(known) == symbol(info):
                return number
        self.thrown.append(resolve(info))
        return len(self.thrown) - 1

    def _number_of(self, b: Builder, info: Value) -> Value:
        """The number of a type, asked for when this runs where several throws have become one."""
        first, *others = dict.fromkeys(type_ for type_, _ in types_thrown(info, ConstZero(ty.PTR)))
        number: Value = ConstInt(ty.I64, self._thrown(first))
        for other in others:
            number = b.select(b.icmp("eq", info, other), ConstInt(ty.I64, self._thrown(other)), number)
        return number

    def types(self) -> list[tuple[Value, Value]]:
        """Each type of exception with its destructor, a null pointer where it has none."""
        return [(info, resolve(self._destroy[number])) for number, info in enumerate(self.thrown)]

    def _external(self, name: str) -> GlobalVariable:
        if name not in self.module.globals:
            self.module.globals[name] = GlobalVariable(name, ty.PTR, None, True, "external")
        return self.module.globals[name]

    def number(self, catch: str | None) -> int:
        """What the selector is when a clause takes the exception; `llvm.eh.typeid.for` says the same."""
        name = (catch or "").partition(".")[0]
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    # -- landing pads -------------------------------------------------------------------------------------------------

    def selector(self, b: Builder, thing: Value, pad: Pad) -> Value:
        """The number of the clause that takes the exception, 0 when none does."""
        result: Value = ConstInt(ty.I32, 0)
        adjust: Value = ConstInt(ty.I64, 0)
        number = self._word(b, thing, TYPE)
        for kind, info in enumerate(self.thrown):
            taken, offset = self._taken(info, pad)
            if taken == 0 and offset == 0:
                continue
            this = b.icmp("eq", number, ConstInt(ty.I64, kind))
            result = b.select(this, ConstInt(ty.I32, taken), result)
            if offset:
                self._moves = True
                adjust = b.select(this, ConstInt(ty.I64, offset), adjust)
        if self._moves:
            self._set_word(b, thing, _ADJUST, adjust)
        return result

    def _taken(self, info: Value, pad: Pad) -> tuple[int, int]:
        """(selector, offset of the part that the handler takes) for one type of exception."""
        for catch in pad.catches:
            if catch is None:
                return self.number(None), 0
            known = self.module.globals.get(catch)
            caught = known if known is not None else GlobalVariable(catch, ty.PTR, None, True)
            try:
                offset = base_offset(self.module, info, caught)
            except ValueError as error:
                raise Unsupported("an exception is caught as a part of itself", because=str(error),
                                  fix="catch the class that is thrown") from None
            if offset is not None:
                return self.number(catch), offset
        return 0, 0

    # -- calls of the runtime -----------------------------------------------------------------------------------------

    def throw(self, b: Builder, call: Instruction, name: str, state: Value) -> None:
        """Put an exception in flight."""
        if name in kept.RETHROWS:
            thing = self._dependent(b, b.load(ty.PTR, call.args[0], align=8))
        elif name == "__cxa_rethrow":
            thing = b.load(ty.PTR, b.gep(ty.I8, state, 8), align=8)
            self._set_word(b, thing, _AGAIN, ConstInt(ty.I64, 1))
        else:
            if name in self.throwers:
                thing, info = self._standard(b, call, self.throwers[name])
            else:
                thing, info = call.args[0], call.args[1]
            self._begun(b, thing, self._number_of(b, info), 1)
        if self.failing and name != "__cxa_rethrow":
            b.store(place_of(self.module, call), b.gep(ty.I8, thing, _PLACE), align=8)
        b.store(thing, state, align=8)

    def _begun(self, b: Builder, thing: Value, number: Value, count: int, thing_of: Value | None = None) -> None:
        """The header of an exception that nobody handles yet; `thing_of`: where its object is, if not in it."""
        self._set_word(b, thing, TYPE, number)
        for at in (_RUNNING, _AGAIN):
            self._set_word(b, thing, at, ConstInt(ty.I64, 0))
        if self.keeps:
            self._set_word(b, thing, kept.COUNT, ConstInt(ty.I64, count))
            b.store(thing_of or thing, b.gep(ty.I8, thing, kept.OBJECT), align=8)

    def _dependent(self, b: Builder, thing: Value) -> Value:
        """Another exception with the object of one that is kept."""
        b.call(self.module.functions[kept.HOLD], [thing])
        other = self._allocate(b, ConstInt(ty.I64, kept.SIZE))
        self._begun(b, other, self._word(b, thing, TYPE), 0, thing)
        return other

    def _standard(self, b: Builder, call: Instruction, cls: str) -> tuple[Value, Value]:
        thing = self._allocate(b, ConstInt(ty.I64, 16))
        make = declare(self.module, f"_ZNSt{cls}C1EPKc", ty.VOID, (ty.PTR, ty.PTR))
        b.call(make, [thing, call.args[0]])
        return thing, self._external(f"_ZTISt{cls}")

    def expand(self, b: Builder, call: Instruction, name: str, state: Callable[[], Value]) -> Value | None:
        """The value of a call of the exception runtime; None when it is none of those."""
        if name in kept.OPERATIONS:
            operation = kept.OPERATIONS[name]
            function = self.module.functions[f"irgrad.exception.{operation}"]
            b.call(function, kept.operands(operation, call.args, state()))
            return call.args[0] if call.args else _DONE
        if name == kept.INIT:
            self._begun(b, call.args[0], self._number_of(b, call.args[1]), 0)
            return call.args[0]
        if name == "__cxa_allocate_exception":
            return self._allocate(b, call.args[0])
        if name == "__cxa_free_exception":
            self._free(b, call.args[0])
            return _DONE
        if name == "__cxa_begin_catch":
            return self._begin(b, call.args[0], state())
        if name == "__cxa_get_exception_ptr":
            return self._adjusted(b, call.args[0])
        if name == "__cxa_end_catch":
            b.call(declare(self.module, _END, ty.VOID, (ty.PTR,)), [state()])
            return _DONE
        if name.startswith("llvm.eh.typeid.for"):
            return ConstInt(ty.I32, self.number(resolve(call.args[0]).name))
        return None

    def _allocate(self, b: Builder, size: Value) -> Value:
        if self.leaving:
            return b.call(declare(self.module, "__cxa_allocate_exception", ty.PTR, (ty.I64,)), [size])
        whole = b.add(size, ConstInt(ty.I64, EXCEPTION_HEADER))
        memory = b.call(declare(self.module, "malloc", ty.PTR, (ty.I64,)), [whole])
        return b.gep(ty.I8, memory, EXCEPTION_HEADER)

    def _free(self, b: Builder, thing: Value) -> None:
        if self.leaving:
            b.call(declare(self.module, "__cxa_free_exception", ty.VOID, (ty.PTR,)), [thing])
            return
        b.call(declare(self.module, "free", ty.VOID, (ty.PTR,)), [b.gep(ty.I8, thing, -EXCEPTION_HEADER)])

    def _begin(self, b: Builder, thing: Value, state: Value) -> Value:
        last, after = b.gep(ty.I8, state, 8), b.gep(ty.I8, thing, _NEXT)
        top = b.load(ty.PTR, last, align=8)
        again = b.icmp("eq", top, thing)
        self._set_word(b, thing, _RUNNING, b.add(self._word(b, thing, _RUNNING), ConstInt(ty.I64, 1)))
        b.store(b.select(again, b.load(ty.PTR, after, align=8), top), after, align=8)
        b.store(thing, last, align=8)
        self._set_word(b, thing, _AGAIN, ConstInt(ty.I64, 0))
        return self._adjusted(b, thing)

    def _adjusted(self, b: Builder, thing: Value) -> Value:
        """What the handler sees: the object, a part of it, or the pointer that was thrown."""
        object_ = b.load(ty.PTR, b.gep(ty.I8, thing, kept.OBJECT), align=8) if self.keeps else thing
        result = object_
        if self._moves:
            result = b.gep(ty.I8, object_, self._word(b, thing, _ADJUST))
        pointers = [kind for kind, info in enumerate(self.thrown) if is_pointer(info)]
        if pointers:
            number = self._word(b, thing, TYPE)
            inner = b.load(ty.PTR, object_, align=8)
            for kind in pointers:
                result = b.select(b.icmp("eq", number, ConstInt(ty.I64, kind)), inner, result)
        return result

    def fail(self, b: Builder, thing: Value) -> None:
        """End the call with an exception."""
        number = self._word(b, thing, TYPE)
        none: Value = ConstZero(ty.PTR)
        object_, release = thing, none
        if self.keeps:
            object_ = b.load(ty.PTR, b.gep(ty.I8, thing, kept.OBJECT), align=8)
        else:
            release = self._releaser()
        type_, offset = none, none
        for kind, info in enumerate(self.thrown):
            name = text_constant(self.module, type_name(info))
            at: Value = ConstInt(ty.I64, text_offset(self.module, info))
            this = b.icmp("eq", number, ConstInt(ty.I64, kind))
            type_, offset = (b.select(this, name, type_), b.select(this, at, offset)) if kind else (name, at)
        where = b.load(ty.PTR, b.gep(ty.I8, thing, _PLACE), align=8)
        fail(b, self.module, type_, object_, offset, none, release, where)
        b.unreachable()

    def _releaser(self) -> Function:
        """What gives the memory of an exception back."""
        if _RELEASE not in self.module.functions:
            fn = declare(self.module, _RELEASE, ty.VOID, (ty.PTR,))
            _, b = _started(fn, ("entry", "out"))
            self._free(b, fn.args[0])
            b.br(fn.blocks[-1])
        return self.module.functions[_RELEASE]

    # -- the end of a handler -----------------------------------------------------------------------------------------

    def define_end(self, throwing: set[Function]) -> None:
        """`irgrad.exception.end(place)`: one handler of the innermost exception ends; the last one destroys it, or,
        where pointers may hold it too, lets it go."""
        if self.keeps:
            self._define_drop(throwing)
        fn = self.module.functions.get(_END)
        if fn is None:
            return
        blocks, b = _started(fn, ("entry", "some", "last", "gone", "freed", "out"))
        (state,) = fn.args
        place = b.gep(ty.I8, state, 8)
        thing = b.load(ty.PTR, place, align=8)
        b.cond_br(b.icmp("eq", thing, ConstZero(ty.PTR)), blocks["out"], blocks["some"])
        b = Builder(blocks["some"])
        self._less(b, thing, _RUNNING, blocks["last"], blocks["out"])
        b = Builder(blocks["last"])
        b.store(b.load(ty.PTR, b.gep(ty.I8, thing, _NEXT), align=8), place, align=8)
        again = self._word(b, thing, _AGAIN)
        b.cond_br(b.icmp("eq", again, ConstInt(ty.I64, 0)), blocks["gone"], blocks["out"])
        if self.keeps:
            b = Builder(blocks["gone"])
            b.call(self.module.functions[kept.DROP], [self.alone(b, thing), state])
            b.br(blocks["out"])
            fn.blocks.remove(blocks["freed"])
        else:
            self._destroyed(fn, blocks, thing, state, throwing)

    def alone(self, b: Builder, thing: Value) -> Value:
        """The exception that something was thrown from, the header of which is freed; others as they are."""
        return b.call(self.module.functions[kept.ALONE], [thing]) if self.keeps else thing

    def _define_drop(self, throwing: set[Function]) -> None:
        """`irgrad.exception.drop(exception, place)`: one less holds it; the last one destroys it."""
        free = self.module.functions[kept.FREE]
        _, b = _started(free, ("entry", "out"))
        self._free(b, free.args[0])
        b.br(free.blocks[-1])
        fn = self.module.functions[kept.DROP]
        blocks, b = _started(fn, ("entry", "some", "gone", "freed", "out"))
        thing, state = fn.args
        b.cond_br(b.icmp("eq", thing, ConstZero(ty.PTR)), blocks["out"], blocks["some"])
        b = Builder(blocks["some"])
        self._less(b, thing, kept.COUNT, blocks["gone"], blocks["out"])
        self._destroyed(fn, blocks, thing, state, throwing)

    def _less(self, b: Builder, thing: Value, at: int, none: Block, some: Block) -> None:
        """Count down in the header."""
        left = b.sub(self._word(b, thing, at), ConstInt(ty.I64, 1))
        self._set_word(b, thing, at, left)
        b.cond_br(b.icmp("eq", left, ConstInt(ty.I64, 0)), none, some)

    def _word(self, b: Builder, thing: Value, at: int) -> Value:
        """A number in the header. It is named as one: no pointer beside it is read so."""
        return b.load(ty.I64, b.gep(ty.I8, thing, at), align=8, tags=self._number_tag)

    def _set_word(self, b: Builder, thing: Value, at: int, number: Value) -> None:
        b.store(number, b.gep(ty.I8, thing, at), align=8, tags=self._number_tag)

    @cached_property
    def _number_tag(self) -> dict[str, str]:
        return {"tbaa": scalar_tag(self.module, f"{MEMBERS} of exceptions", "long")}

    def _destroyed(
        self, fn: Function, blocks: dict[str, Block], thing: Value, state: Value, throwing: set[Function]
    ) -> None:
        cases: list[tuple[ConstInt, Block]] = []
        for kind, destructor in self._destroy.items():
            end = resolve(destructor)
            if not isinstance(end, Function):
                continue
            block = Block(f"type.{kind}")
            block.function = fn
            fn.blocks.append(block)
            b = Builder(block)
            b.call(end, [thing, state] if end in throwing else [thing])
            b.br(blocks["freed"])
            cases.append((ConstInt(ty.I64, kind), block))
        b = Builder(blocks["gone"])
        number = self._word(b, thing, TYPE)
        b.switch(number, blocks["freed"], cases)
        b = Builder(blocks["freed"])
        self._free(b, thing)
        b.br(blocks["out"])


def _started(fn: Function, names: Sequence[str]) -> tuple[dict[str, Block], Builder]:
    """Blocks of a function of ours, the last of which returns."""
    fn.head, fn.tail = "internal", "nounwind"
    blocks = {name: Block(name) for name in names}
    for block in blocks.values():
        block.function = fn
        fn.blocks.append(block)
    Builder(blocks["out"]).ret()
    return blocks, Builder(fn.blocks[0])
