"""What a call to a function without a body does to memory.

Two sources: the table of `irgrad.rules.effects`, then the attributes that LLVM's own passes leave on declarations and
calls (`memory(...)`, `captures(none)`, `readonly`, ...). What neither tells is assumed: any memory that the callee can
reach may be read, written and kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from irgrad.engine.ir.model import Function, GlobalVariable, InlineAsm, Instruction, Module, Value
from irgrad.engine.ir.types import may_hold_pointer
from irgrad.rules.effects import CallFacts, facts

_MEMORY = re.compile(r"memory\(([^)]*)\)")
_GROUP = re.compile(r"#\d+")


class Effect:
    """The memory behaviour of one external callee. Sets of argument numbers; `None` is all memory it can reach."""

    __slots__ = (
        "allocates", "captures", "copy", "deep", "fill", "frees", "inactive", "keeps", "moves", "nothing", "reads",
        "returns", "sizes", "stores_fresh", "writes", "zeroed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        reads: Iterable[int] | None = (),
        writes: Iterable[int] | None = (),
        captures: Iterable[int] | None = (),
        allocates: bool = False,
        stores_fresh: int | None = None,
        frees: int | None = None,
        moves: int | None = None,
        copy: tuple[int, int, int] | None = None,
        fill: tuple[int, int, int] | None = None,
        sizes: tuple[int, ...] = (),
        zeroed: bool = False,
        returns: int | None = None,
        keeps: tuple[int, int] | None = None,
        inactive: bool = False,
        nothing: bool = False,
        deep: bool = False,
    ) -> None:
        self.reads = None if reads is None else frozenset(reads)  # pointer arguments it reads through
        self.writes = None if writes is None else frozenset(writes)  # pointer arguments it writes through
        self.captures = None if captures is None else frozenset(captures)  # arguments that it may keep or hand back
        self.allocates = allocates  # returns fresh memory
        self.stores_fresh = stores_fresh  # stores a pointer to fresh memory through this argument
        self.frees = frees  # frees this argument
        self.moves = moves  # realloc: returns fresh memory that holds the contents of this argument
        self.copy = copy  # (destination, source, bytes)
        self.fill = fill  # (destination, byte value, bytes)
        self.sizes = sizes  # arguments whose product is the number of bytes allocated
        self.zeroed = zeroed  # the fresh memory is zero
        self.returns = returns  # returns this argument (perhaps displaced)
        self.keeps = keeps  # (a, b): stores argument b (perhaps displaced) through argument a
        self.inactive = inactive  # no derivative flows through it
        self.deep = deep  # reads and writes mean also what pointers in that memory lead to, and so on
        self.nothing = nothing  # neither reads nor writes memory that a program can see


OPAQUE = Effect(reads=None, writes=None, captures=None)
COMPARES = '"irgrad-compares"'
"""Attribute of a call of a comparison (of qsort, bsearch): it reads what it is given, and its result is an order."""
INACTIVE = '"irgrad-inactive"'
"""Attribute of a call through a pointer: no derivative flows through it, whatever it reaches."""
_COMPARISON = Effect(reads=(0, 1), inactive=True)
_METHOD = Effect(reads=None, writes=(0,), inactive=True)
_LIBRARY = ("_ZSt", "_ZNSt", "_ZNKSt", "_ZNSo", "_ZNKSo")
_LONGEST_PATH = 16


def effect_of_assembly(call: Instruction) -> Effect:
    """What inline assembly does to memory, from its operands: that which `prepare` has not understood (ir/assembly.py).

    It may compute what it wants from its inputs (values flow from its float operands to its results), and change memory
    that it is given the address of. A "memory" clobber without an address is a fence.
    """
    pointers = [i for i, arg in enumerate(call.args) if may_hold_pointer(arg.type)]
    return Effect(reads=pointers, writes=pointers)


def of_unknown(module: Module, call: Instruction) -> Effect:
    """The effect of a call through a pointer that may mean any function."""
    if isinstance(call.callee, InlineAsm):
        return effect_of_assembly(call)
    if call.call is not None and COMPARES in call.call.fn_attrs:
        return _COMPARISON
    stated = call.call is not None and INACTIVE in attribute_text(module, call.call.fn_attrs)
    return _METHOD if stated or _of_library(call.callee) else OPAQUE


def _of_library(value: Value) -> bool:
    """Whether a function comes from the table of an object of the C++ library: one that an inactive function of the
    library returns (a facet of a stream's locale), or a variable of the library leads to (`std::cout`). Such a method
    is as inactive as the functions that the program calls by name."""
    for _ in range(_LONGEST_PATH):
        if isinstance(value, GlobalVariable):
            return value.init is None and (value.name or "").startswith(_LIBRARY)
        if not isinstance(value, Instruction):
            return False
        if value.opcode == "call":
            callee = value.callee
            known = facts(callee.name or "") if isinstance(callee, Function) and callee.is_declaration else None
            return known is not None and known.inactive and (value.callee_name or "").startswith(_LIBRARY)
        if value.opcode not in ("load", "getelementptr"):
            return False
        value = value.operands[0]
    return False


def effect_of(module: Module, call: Instruction, callee: Function) -> Effect:
    """The effect of calling the declaration `callee` from `call`."""
    if module.rules is not None and module.rules.registered(callee):
        return _handed_over(_from_attributes(module, call, callee), call)
    known = facts_of(module, callee)
    return _from_facts(known) if known is not None else _from_attributes(module, call, callee)


def facts_of(module: Module, callee: Function) -> CallFacts | None:
    """What is stated about a callee: by the user's rules, else by the tables of `irgrad.rules.effects`."""
    if module.rules is not None and module.rules.tables(callee.name or ""):
        stated: CallFacts | None = module.rules.facts(callee)
        return stated
    return facts(callee.name or "")


def _from_facts(known: CallFacts) -> Effect:
    quiet = known.kind in ("pure", "inactive") and known.reads == () and known.writes == ()
    return Effect(
        reads=known.reads,
        writes=known.writes,
        captures=known.captures,
        allocates=known.allocates,
        stores_fresh=known.pointer if known.kind == "allocator_out" else None,
        frees=known.frees,
        moves=known.moves,
        copy=known.copy,
        fill=known.fill,
        sizes=known.sizes,
        zeroed=known.zeroed,
        returns=known.returns,
        keeps=known.keeps,
        inactive=known.inactive,
        nothing=quiet,
    )


def _handed_over(effect: Effect, call: Instruction) -> Effect:
    """A callee whose derivative is registered: that deals with what it is handed, and with all that this leads to."""
    pointers = [i for i, arg in enumerate(call.args) if arg.type.is_ptr]
    reads, writes = effect.reads, effect.writes
    return Effect(reads=pointers if reads is None else reads, writes=pointers if writes is None else writes,
                  nothing=effect.nothing, deep=True)  # fmt: skip


def attribute_text(module: Module, text: str) -> str:
    """Attributes with the groups they name (`#3`) written out."""
    groups = _GROUP.findall(text)
    return " ".join([text, *(module.attribute_groups.get(g, "") for g in groups)]) if groups else text


def _from_attributes(module: Module, call: Instruction, callee: Function) -> Effect:
    info = call.call
    text = attribute_text(module, callee.tail) + " " + attribute_text(module, info.fn_attrs if info else "")
    anywhere_read, anywhere_write, arg_read, arg_write = True, True, True, True
    for match in _MEMORY.finditer(text):
        other, arg = _memory_clause(match.group(1))
        anywhere_read, anywhere_write = anywhere_read and other[0], anywhere_write and other[1]
        arg_read, arg_write = arg_read and arg[0], arg_write and arg[1]
    reads: set[int] = set()
    writes: set[int] = set()
    captures: set[int] = set()
    for i, value in enumerate(call.args):
        if not _holds_pointer(value.type.text):
            continue
        attrs = (callee.args[i].attrs if i < len(callee.args) else "") + " "
        attrs += info.arg_attrs[i] if info and i < len(info.arg_attrs) else ""
        if arg_read and "writeonly" not in attrs and "readnone" not in attrs:
            reads.add(i)
        if arg_write and "readonly" not in attrs and "readnone" not in attrs:
            writes.add(i)
        if "captures(none)" not in attrs and "nocapture" not in attrs:
            captures.add(i)
    pure = not (anywhere_read or anywhere_write)
    nothing = pure and not reads and not writes
    return Effect(
        reads=None if anywhere_read else reads,
        writes=None if anywhere_write else writes,
        captures=_captured(captures, pure, nothing and not _holds_pointer(call.type.text)),
        nothing=nothing,
    )


def _captured(captures: set[int], pure: bool, silent: bool) -> set[int] | None:
    """What a callee keeps: nothing when it has no way to, what is not marked when it touches only its arguments."""
    if silent or not captures:
        return set()
    return captures if pure else None


def _holds_pointer(type_text: str) -> bool:
    return "ptr" in type_text or type_text == "i64"


def _memory_clause(text: str) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """(reads, writes) of other memory and of argument memory, from the inside of `memory(...)`."""
    default, arg = (False, False), None
    for part in text.split(","):
        where, _, how = part.strip().rpartition(":")
        can = ("read" in how, "write" in how)
        if where == "":
            default = can
        elif where.strip() == "argmem":
            arg = can
        elif where.strip() in ("errnomem", "inaccessiblemem", "target_mem0", "target_mem1"):
            continue  # memory that no pointer of the program reaches (errno is not a float)
        else:
            default = (default[0] or can[0], default[1] or can[1])
    return default, arg if arg is not None else default
