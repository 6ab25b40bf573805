"""Pieces of memory, sets of them, and small questions about sites and types that the points-to analysis asks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from irgrad.engine.analyses.memory.call_effects import Effect
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Argument,
    ConstAggregate,
    ConstData,
    ConstExpr,
    ConstInt,
    Function,
    GlobalAlias,
    GlobalVariable,
    Instruction,
    Module,
    Value,
    is_zero,
)
from irgrad.engine.ir.opcodes import BITWISE, CHOICES, SHIFTS, having
from irgrad.engine.ir.types import may_hold_pointer
from irgrad.engine.runtime.arena import CONSTANT_SHADOW
from irgrad.rules.effects import STREAMS, facts

OVERLAPS = '"irgrad-overlaps"'
"""Attribute of a root's argument whose memory may be that of another argument, or of a variable."""

RESTRICT = '"irgrad-restrict"'
"""The same, of one that the source says is the only way to what it leads to and is changed (`restrict`)."""

OPEN = '"irgrad-open"'
"""Attribute of a root's argument whose memory a program goes on using: what pointers stored there lead to leaves the
function, its shadow too."""

FOUND, TABLE = "irgrad_found_memory", "irgrad_found_table"
"""(address, bytes, call, group, name) -> the allocation that a variable leads into when a program calls; the pointers
in it may lead anywhere, or have been asked for too (a table)."""

NUMBER = '"irgrad-number"'
FLOAT = '"irgrad-float"'
"""Attribute of a root's argument whose memory is a number of the user's, or numbers: no address comes in there."""

BY_VALUE = '"irgrad-by-value"'
"""Attribute of a root's argument whose memory is an integer that is handed over by value."""

COMPUTES_BITS = BITWISE | SHIFTS | having("resizes")

COPIES = having("carries_pointers")
"""Operations whose result carries the pointers of their operands."""


def takes_low_bits(instr: Instruction) -> bool:
    """A mask keeps a few low bits, of an address its alignment or a tag: nothing of it is an address."""
    mask = instr.operands[-1] if instr.opcode == "and" else None
    return isinstance(mask, ConstInt) and 0 <= mask.value < 1 << 16


class Object:
    """A piece of memory: `kind` is argument, pointee, alloca, heap, global, function or unknown.

    `site` is the value that names it (argument, alloca, allocating call, global, function), None for `unknown`; `size`
    is in bytes where it is known when compiling; `index` is its bit in the masks.
    """

    __slots__ = ("function", "index", "kind", "site", "size")

    def __init__(self, kind: str, site: Value | None, size: int | None, index: int, function: Function | None) -> None:
        self.kind = kind
        self.site = site
        self.size = size
        self.index = index
        self.function = function

    def __str__(self) -> str:
        name = self.site.name if self.site is not None and self.site.name else ""
        where = f" in @{self.function.name}" if self.function is not None and self.kind in ("alloca", "heap") else ""
        sigil = "@" if self.kind in ("global", "function") else "%"
        return f"{self.kind} {sigil}{name}{where}" if name else f"{self.kind}{where}"

    __repr__ = __str__


class PointsTo(Protocol):
    """What the analyses of one module ask of its points-to sets. A mask has a bit for each object (see `Pointers`)."""

    module: Module
    root: Function
    objects: list[Object]
    functions: list[Function]
    object_of: dict[Value, Object]
    pointee_of: dict[int, int]

    @property
    def escaped_mask(self) -> int: ...
    def of(self, value: Value) -> int: ...
    def contents(self, obj: Object) -> int: ...
    def callees(self, call: Instruction) -> list[Function] | None: ...
    def expand(self, mask: int) -> int: ...
    def reachable(self, mask: int) -> int: ...
    def effect(self, call: Instruction) -> Effect | None: ...
    def reads(self, fn: Function) -> int: ...
    def writes(self, fn: Function) -> int: ...


def overlaps(obj: Object) -> bool:
    """A marked argument of the root, or what pointers in it lead to."""
    return isinstance(obj.site, Argument) and OVERLAPS in obj.site.attrs


def may_be_addresses(obj: Object) -> bool:
    """An argument of the root whose memory may hold addresses, as pointers or as integers."""
    return obj.kind == "argument" and isinstance(obj.site, Argument) and NUMBER not in obj.site.attrs


def is_said_to_be_floats(obj: Object) -> bool:
    """An argument of the root that the signature calls one of floats: addresses are there if nowhere else."""
    return obj.kind == "argument" and isinstance(obj.site, Argument) and FLOAT in obj.site.attrs


def overlap_mask(objects: Sequence[Object]) -> int:
    """All objects that may lie in one another's memory: the marked ones, variables (their address may have been
    passed), and what is not known; 0 where none is marked."""
    mask = 0
    for obj in objects:
        if overlaps(obj) or (isinstance(obj.site, GlobalVariable) and not obj.site.constant):
            mask |= 1 << obj.index
    return mask | 1 if any(map(overlaps, objects)) else 0


def opened(obj: Object) -> bool:
    """An argument of the root that is marked as open, or what pointers in it lead to."""
    return isinstance(obj.site, Argument) and OPEN in obj.site.attrs


def bits_of(mask: int) -> Iterator[int]:
    """Numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low




def has_pointer(type_: ty.Type) -> bool:
    """The type is, or contains, a real pointer."""
    match type_:
        case ty.PtrType():
            return True
        case ty.VectorType(elem=elem) | ty.ArrayType(elem=elem):
            return has_pointer(elem)
        case ty.StructType(fields=fields):
            return any(map(has_pointer, fields or ()))
        case _:
            return False


def holds_address(value: Value | None) -> bool:
    """A constant that is, or contains, the address of a global or function, also as an integer: a pointer to a member
    function is a struct of two integers."""
    if isinstance(value, GlobalVariable | GlobalAlias | Function):
        return True
    if isinstance(value, ConstExpr):
        return any(map(holds_address, value.operands))
    return isinstance(value, ConstAggregate) and any(map(holds_address, value.elems))


def pointer_places(type_: ty.Type) -> tuple[int, ...]:
    """Where in a value of this type pointers may be, in bytes; a wide integer may hold one in each of its words."""
    match type_:
        case ty.PtrType():
            return (0,)
        case ty.IntType(bits=bits):
            return tuple(range(0, bits // 8 - 7, 8))
        case ty.VectorType(elem=ty.IntType(bits=bits)) if bits < 64:  # memory is copied through vectors of bytes
            return tuple(range(0, ty.store_size(type_) - 7, 8))
        case ty.VectorType(count=count, elem=elem):
            step, inner = ty.store_size(type_) // (count or 1), pointer_places(elem)
            return tuple(i * step + at for i in range(count) for at in inner) if inner else ()
        case ty.ArrayType(count=count, elem=elem):
            step, inner = ty.size_of(elem), pointer_places(elem)
            return tuple(i * step + at for i in range(count) for at in inner) if inner else ()
        case ty.StructType(fields=fields) if fields:
            parts = zip(fields, ty.field_offsets(type_), strict=False)
            return tuple(offset + at for field, offset in parts for at in pointer_places(field))
        case _:
            return ()


def initial_pointers(value: Value, at: int = 0) -> Iterator[tuple[int, Value]]:
    """(offset, value) of what may lead somewhere in the initial value of a variable."""
    if isinstance(value, ConstAggregate):
        type_ = value.type
        if isinstance(type_, ty.StructType):
            places: Sequence[int] = ty.field_offsets(type_)
        else:
            step = ty.store_size(type_) // (len(value.elems) or 1)
            places = range(0, step * len(value.elems), step or 1)
        for part, offset in zip(value.elems, places, strict=False):
            yield from initial_pointers(part, at + offset)
    elif may_hold_pointer(value.type) and not is_zero(value):
        yield at, value


def holds_nothing(obj: Object) -> bool:
    """Code, or a constant text: neither floats nor pointers are there, wherever an address may seem to lead."""
    site = obj.site
    text = isinstance(site, GlobalVariable) and site.constant and isinstance(site.init, ConstData)
    return obj.kind == "function" or text


def is_tape(obj: Object) -> bool:
    """What the reverse sweep of a derivative reads again."""
    site = obj.site
    return isinstance(site, Instruction) and site.is_call and (site.callee_name or "").startswith("irgrad.tape.")


def alignment(obj: Object) -> int:
    """Bytes to which an object is aligned; 1 where that is not known. An allocation is so for any number or pointer."""
    site = obj.site
    if obj.kind == "alloca" and isinstance(site, Instruction) and site.elem is not None:
        return site.align or ty.align_of(site.elem)
    if obj.kind == "global" and isinstance(site, GlobalVariable):
        said = re.search(r"\balign (\d+)", site.tail)
        return int(said[1]) if said else ty.align_of(site.value_type)
    return 8 if obj.kind == "heap" else 1


def said_alignment(call: Instruction, argument: Value) -> int:
    """What a call says of the address of its argument."""
    said = call.call.arg_attrs if call.call is not None else ()
    for arg, attrs in zip(call.args, said, strict=False):
        if arg is argument and (found := re.search(r"\balign (\d+)", attrs)):
            return int(found[1])
    return 1


def resolve(value: Value) -> Value:
    """The function or global behind aliases and casts of a constant callee; else the value itself."""
    while True:
        if isinstance(value, GlobalAlias) and value.kind != "ifunc":
            value = value.target
        elif isinstance(value, ConstExpr) and value.opcode in ("bitcast", "addrspacecast"):
            value = value.operands[0]
        else:
            return value


def start_of(address: Value) -> Value:
    """The pointer from which an address in the same object is computed."""
    while isinstance(address, Instruction) and address.opcode in ("getelementptr", "bitcast"):
        address = address.operands[0]
    return address


def is_address(value: Value) -> bool:
    """An integer that is not made of some bits of an address: what is left of one less those is an address again."""
    seen, work = {value}, [value]
    for one in work:  # grows while it runs
        if isinstance(one, Instruction | ConstExpr) and one.opcode in COMPUTES_BITS:
            return False
        if isinstance(one, Instruction) and one.opcode in CHOICES:
            fresh = [operand for operand in one.operands if operand not in seen]
            seen.update(fresh)
            work += fresh
    return True


def reads_bits_of_address(cast: Instruction, points: PointsTo) -> bool:
    """A float that is all the bits of an address of memory that is made here: what a variant is read as where it holds
    another, on a way that only the optimiser sees. A number that depends on no other."""
    number = cast.operands[0]
    if not (isinstance(number, Instruction | ConstExpr) and number.opcode == "ptrtoint" and cast.type.is_fp):
        return False
    obj = points.object_of.get(resolve(start_of(number.operands[0])))
    return obj is not None and obj.kind in ("alloca", "heap", "global", "function")


def same_object(a: Value, b: Value) -> bool:
    """Two addresses that are computed from one pointer lie in one object, whichever that is."""
    return start_of(a) is start_of(b)


def function_of(instr: Instruction) -> Function:
    """The function that an instruction stands in."""
    assert instr.block is not None and instr.block.function is not None
    return instr.block.function


def fits(call: Instruction, fn: Function) -> bool:
    """An indirect call can reach a function only with the right number of arguments and the same kind of result."""
    wanted, given = len(fn.args), len(call.args)
    if fn.ftype.vararg:
        return given >= wanted
    return (
        wanted == given
        and (fn.ftype.ret is call.type or (call.type.is_ptr and fn.ftype.ret in (ty.PTR, ty.I64)))
        and all(a.type is b.type for a, b in zip(call.args, fn.args, strict=True))
    )


def alloca_size(instr: Instruction) -> int | None:
    """Bytes of an alloca with a constant count."""
    count = instr.operands[0] if instr.operands else None
    if instr.elem is None or not (count is None or isinstance(count, ConstInt)):
        return None
    return ty.size_of(instr.elem) * (1 if count is None else count.value)


def heap_size(call: Instruction, effect: Effect) -> int | None:
    """Bytes that an allocating call returns, when its arguments are constants and nothing of it lies before."""
    if header_size(call):
        return None
    size = 1
    for i in effect.sizes:
        arg = call.args[i] if i < len(call.args) else None
        if not isinstance(arg, ConstInt):
            return None
        size *= arg.value
    return size if effect.sizes and size >= 0 else None


def header_size(call: Instruction) -> int:
    """Bytes in front of what a call returns or frees that belong to it."""
    known = facts(call.callee_name or "")
    return known.header if known is not None else 0


def describes_types(var: GlobalVariable) -> bool:
    """A type descriptor of C++, or the vtable of such: only the runtime looks into it, and nothing is stored there."""
    return (var.name or "").startswith(("_ZTVN10__cxxabiv1", "_ZTI"))


def found_group(call: Instruction) -> int | None:
    """Which memory of a program a call finds behind its variables; None for other calls."""
    if call.callee_name not in (FOUND, TABLE) or not isinstance(call.args[3], ConstInt):
        return None
    return call.args[3].value


def is_never_written(obj: Object) -> bool:
    """Constants, type descriptors, functions, and the streams of the C library: no store of a program goes there."""
    var = obj.site
    fixed = isinstance(var, GlobalVariable) and (var.constant or describes_types(var) or is_stream(var))
    return obj.kind == "function" or fixed


def is_stream(var: GlobalVariable) -> bool:
    """A variable of the C library that leads to memory of its own (`stderr`): nothing of a program is there."""
    return var.init is None and var.name in STREAMS


def keeps_its_pointers(obj: Object) -> bool:
    """No pointer is stored there but those that it begins with: the same of the shadow of a constant, whatever is added
    to the adjoints in it."""
    name = obj.site.name or "" if isinstance(obj.site, GlobalVariable) else ""
    return is_never_written(obj) or (name.startswith("irgrad.") and CONSTANT_SHADOW in name)


def is_closed(module: Module, var: GlobalVariable) -> bool:
    """All pointers that a variable may ever hold for the program are in the functions that were read."""
    if var.init is None:
        return describes_types(var)
    room = has_pointer(var.value_type) or _has_bytes(var.value_type)
    return var.constant or not room or not used_elsewhere(module, var)


def _has_bytes(type_: ty.Type) -> bool:
    """Room for a pointer in bytes that have no type: LLVM makes such variables of what a constructor allocates."""
    if isinstance(type_, ty.ArrayType):
        return _has_bytes(type_.elem) or (type_.elem is ty.I8 and type_.count >= 8)
    return isinstance(type_, ty.StructType) and any(map(_has_bytes, type_.fields or ()))


def filled_elsewhere(module: Module, obj: Object) -> bool:
    """A variable, of numbers by its type perhaps, in which a function that was not read may keep a pointer."""
    var = obj.site
    return isinstance(var, GlobalVariable) and not var.constant and var.init is not None and used_elsewhere(module, var)


def used_elsewhere(module: Module, var: GlobalVariable) -> bool:
    """A function that is not reachable from the root mentions the variable: it may have stored into it."""
    needle = f"@{var.name}"
    return any(f.lazy is not None and needle in f.lazy for f in module.functions.values())
