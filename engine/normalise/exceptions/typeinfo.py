"""Which `catch` takes which exception: the type descriptors of the Itanium C++ ABI (section 2.9.5), read from a module.

A thrown class is caught as itself and as each of its public bases; where a base lies inside of the object is in the
descriptor, too. Descriptors of the standard library have no body in a program: their bases are in a table.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir.model import (
    ConstAggregate,
    Constant,
    ConstExpr,
    ConstInt,
    GlobalVariable,
    Instruction,
    Module,
    Value,
)
from irgrad.rules.errors import Unsupported

__all__ = ["base_offset", "is_pointer", "symbol", "types_thrown"]

_VIRTUAL, _PUBLIC = 1, 2

_STANDARD = {
    "13runtime_error": "9exception", "11logic_error": "9exception", "9bad_alloc": "9exception",
    "8bad_cast": "9exception", "10bad_typeid": "9exception", "13bad_exception": "9exception",
    "19bad_optional_access": "9exception",
    "18bad_variant_access": "9exception", "17bad_function_call": "9exception", "12bad_weak_ptr": "9exception",
    "20bad_array_new_length": "9bad_alloc", "12bad_any_cast": "8bad_cast", "11range_error": "13runtime_error",
    "14overflow_error": "13runtime_error", "15underflow_error": "13runtime_error", "12system_error": "13runtime_error",
    "12domain_error": "11logic_error", "16invalid_argument": "11logic_error", "12length_error": "11logic_error",
    "12out_of_range": "11logic_error", "12future_error": "11logic_error",
}  # fmt: skip


def symbol(info: Value) -> str:
    """The name of a type descriptor; linking may have given one of two equal ones a number."""
    return (info.name or "").partition(".")[0]


def is_pointer(info: Value) -> bool:
    """The descriptor of a pointer: its handler gets the pointer, not the place it is kept in."""
    return symbol(info).startswith("_ZTIP")


def base_offset(module: Module, thrown: Value, caught: Value) -> int | None:
    """Where in a thrown object the part lies that a handler takes; None when the handler does not take it.

    Raises ValueError for a base whose place only the program knows (a virtual one).
    """
    if symbol(thrown) == symbol(caught):
        return 0
    if is_pointer(thrown):
        return _pointer_offset(module, thrown, caught) if is_pointer(caught) else None
    for base, offset in _bases(module, thrown):
        inner = base_offset(module, base, caught)
        if inner is not None:
            if offset is None:
                raise ValueError(f"`{symbol(caught)}` is a virtual base of `{symbol(thrown)}`")
            return offset + inner
    return None


def _pointer_offset(module: Module, thrown: Value, caught: Value) -> int | None:
    """A pointer is caught as one to const, to void, or to a base of its class."""
    target = symbol(thrown).removeprefix("_ZTIP").removeprefix("K")
    if symbol(caught) in (f"_ZTIPK{target}", "_ZTIPv", "_ZTIPKv"):
        return 0
    ends = [info.init.elems for info in (resolve(thrown), resolve(caught))
            if isinstance(info, GlobalVariable) and isinstance(info.init, ConstAggregate)]  # fmt: skip
    if len(ends) < 2 or len(ends[0]) < 4 or len(ends[1]) < 4:
        return None
    offset = base_offset(module, ends[0][3], ends[1][3])
    if offset:
        raise ValueError(f"`{symbol(caught)}` points into the middle of what `{symbol(thrown)}` points to")
    return offset


def _bases(module: Module, info: Value) -> list[tuple[Value, int | None]]:
    """(descriptor, offset) of the public bases; None for a virtual one."""
    info = resolve(info)
    init = info.init if isinstance(info, GlobalVariable) else None
    if not isinstance(init, ConstAggregate):
        return _standard(module, symbol(info))
    kind = _vtable(init.elems[0])
    if kind.endswith("__si_class_type_infoE"):
        return [(init.elems[2], 0)]
    if not kind.endswith("__vmi_class_type_infoE"):
        return []
    found: list[tuple[Value, int | None]] = []
    for base, flags in zip(init.elems[4::2], init.elems[5::2], strict=True):
        number = flags.value if isinstance(flags, ConstInt) else 0
        if number & _PUBLIC:
            found.append((base, None if number & _VIRTUAL else number >> 8))
    return found


def _standard(module: Module, name: str) -> list[tuple[Value, int | None]]:
    for prefix in ("_ZTISt", "_ZTINSt3__1"):
        base = _STANDARD.get(name.removeprefix(prefix).removesuffix("E" if prefix.startswith("_ZTIN") else ""))
        if base is not None and name.startswith(prefix):
            known = module.globals.get(f"_ZTISt{base}")
            return [(known if known is not None else _named(f"_ZTISt{base}"), 0)]
    return []


def _named(name: str) -> GlobalVariable:
    from irgrad.engine.ir import types as ty

    return GlobalVariable(name, ty.PTR, None, True)


def _vtable(value: Constant) -> str:
    """The name of the vtable that a descriptor begins with: it says of what kind the descriptor is."""
    while isinstance(value, ConstExpr):
        inner = value.operands[0]
        assert isinstance(inner, Constant)
        value = inner
    return value.name or ""


def types_thrown(info: Value, end: Value) -> list[tuple[Value, Value]]:
    """The types that a throw may have, each with its destructor: optimisers make one throw of several.

    Raises Unsupported where it is not known which destructor belongs to which type.
    """
    found: dict[tuple[Value, Value], None] = {}
    seen: set[tuple[Value, Value]] = set()
    work = [(info, end)]
    while work:
        pair = work.pop()
        info, end = (resolve(value) for value in pair)
        if pair in seen:
            continue
        seen.add(pair)
        if isinstance(info, GlobalVariable) and isinstance(end, Constant):
            found[info, end] = None
        elif isinstance(info, Instruction) and info.opcode in ("phi", "select"):
            work += _chosen(info, end)
        else:
            raise Unsupported("the type of an exception is not known", which=f"%{info.name}",
                              because="it is neither a type descriptor nor one of several",
                              fix="throw each type by a `throw` of its own")  # fmt: skip
    return list(found)


def _chosen(info: Instruction, end: Value) -> list[tuple[Value, Value]]:
    """The types that a phi or a select chooses from, with the destructors that are chosen with them."""
    first = 1 if info.opcode == "select" else 0
    if isinstance(end, Instruction) and end.opcode == info.opcode and end.block is info.block:
        if first and end.operands[0] is info.operands[0]:
            return list(zip(info.operands[1:], end.operands[1:], strict=True))
        if not first:
            ends = dict(zip(end.blocks, end.operands, strict=True))
            return [(value, ends[block]) for value, block in zip(info.operands, info.blocks, strict=True)]
    return [(value, end) for value in info.operands[first:]]
