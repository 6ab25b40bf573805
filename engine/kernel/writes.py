"""What a signature says of its arrays, against what the function does with them: intents and element types.

Arguments declared `in` that the function writes: what it surely writes is an error, what it may write is copied.

The caller's arrays are passed as they are, under JAX they are XLA's own buffers: nothing may write to them. LLVM's
`readonly` settles nearly every function; our own points-to analysis names the store of the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from irgrad.engine.analyses.memory.byte_kinds import Kind
from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.ir.types import Type
from irgrad.engine.signature.parameter import Parameter
from irgrad.engine.signature.prototype import quoted
from irgrad.engine.signature.signature import Signature
from irgrad.rules.errors import SignatureError

__all__ = ["check_elements", "extent_text", "perhaps_written"]

_ATTRIBUTES = re.compile(r"\b(readonly|readnone)\b")


def perhaps_written(text: str, name: str, signature: Signature) -> tuple[int, ...]:
    """Array arguments declared `in` that `@name`, in normal form, may write through code that nobody sees.

    Raises SignatureError for one that is certainly written somewhere, and for an `out` array that is only read.
    """
    if not any(p.is_array for p in signature.parameters):
        return ()
    line = next((x for x in text.splitlines() if x.startswith("define ") and f"@{quoted(name)}(" in x), "")
    said = {int(number): _ATTRIBUTES.findall(attrs) for attrs, number in re.findall(r"ptr ([^%]*)%a(\d+)", line)}
    for i, p in enumerate(signature.parameters):
        if p.intent == "out" and p.is_array and "readonly" in said.get(i, ()):
            raise SignatureError(f"`{p.name}` is declared `out`, and the function only reads it",
                                 where=f"`{signature}`", because="an `out` array starts from zeros and is returned",
                                 fix=f"declare it `{str(p).removeprefix('out ')}`")  # fmt: skip
    suspects = [i for i, p in enumerate(signature.parameters) if p.is_array and p.intent == "in" and not said.get(i)]
    return _analyse(text, name, signature, suspects) if suspects else ()


def _analyse(text: str, name: str, signature: Signature, suspects: Sequence[int]) -> tuple[int, ...]:
    from irgrad.engine.analyses.memory.modref import own_reads_writes
    from irgrad.engine.analyses.memory.points_to import Pointers
    from irgrad.engine.ir.text.reader import read

    module = read(text, roots=[name])
    root = module.functions[name]
    pointers = Pointers(module, root)
    bits = {i: 1 << pointers.object_of[root.args[i]].index for i in suspects if root.args[i] in pointers.object_of}
    every = sum(bits.values())
    perhaps: set[int] = set()
    for fn in pointers.functions:
        for instr in fn.instructions():
            mask = own_reads_writes(pointers, instr)[1]
            if not mask & every:
                continue
            hit = [i for i, bit in bits.items() if mask & bit]
            effect = pointers.effect(instr) if instr.is_call else None
            known = not instr.is_call or (effect is not None and bool(effect.copy or effect.fill))
            if known and not mask & ~every:
                raise _error(module, instr, signature, signature.parameters[hit[0]])
            perhaps.update(hit)
    return tuple(sorted(perhaps))


def _error(module: Module, instr: Instruction, signature: Signature, p: Parameter) -> SignatureError:
    from irgrad.engine.ir.locations import locate
    from irgrad.engine.ir.printer import instruction_to_text

    at = locate(module, instr)
    fn = instr.block.function if instr.block is not None else None
    place = f"@{(fn.name or '').removesuffix('.normal')}" if fn is not None else "the function"
    return SignatureError(
        f"`{p.name}` is declared `in`, and the function writes to it",
        where=f"{place} ({at})" if at else f"{place}, called as `{signature}`",
        which=instruction_to_text(instr).strip(),
        because="an `in` argument is the caller's own array, which a call never changes",
        fix=f"declare it `inout {p}` in the signature (its new contents are returned), or write to a copy",
    )  # fmt: skip


def check_elements(module: Module, name: str, signature: Signature) -> None:
    """Raise SignatureError, with the line, for an array whose elements `@name`, in normal form and not optimised yet,
    takes for something else than the signature says; where they are used as both, they are what the caller says."""
    from irgrad.engine.analyses.types.argument_accesses import accesses

    for index, p in enumerate(signature.parameters):
        if not p.is_array or p.dtype.name in ("i8", "u8"):  # bytes may be anything
            continue
        wrong = None
        for instr, type_, kind in accesses(module, module.functions[name].args[index]):
            fits = _fits(p, type_, kind)
            if fits:
                break
            if fits is False and wrong is None:
                wrong = instr, type_
        else:
            if wrong is not None:
                raise _other_elements(module, *wrong, signature, p)


def _fits(p: Parameter, type_: Type, kind: Kind | None) -> bool | None:
    """Whether an access of this type, which the source calls so, is one of an element; None where that is open."""
    if str(type_) == p.dtype.memory:
        return not isinstance(kind, Type) or str(kind) == p.dtype.memory
    if type_.is_int and kind is None:
        return None  # a copy of bytes
    return str(kind) == p.dtype.memory


def _other_elements(
    module: Module, instr: Instruction, type_: Type, signature: Signature, p: Parameter
) -> SignatureError:
    from irgrad.engine.ir.locations import locate
    from irgrad.engine.ir.printer import instruction_to_text
    from irgrad.engine.signature.dtypes import DTYPES

    own = next((d for d in DTYPES.values() if d.memory == str(type_) and d.kind != "b"), None)
    fn = instr.block.function if instr.block is not None else None
    at = locate(module, instr)
    place = f"@{fn.name or ''}" if fn is not None else f"`{signature}`"
    fix = "hand it an array of another type in C"
    if own is not None:
        fix = f"declare it `{str(p).replace(p.dtype.name, own.name, 1)}`"
    return SignatureError(
        f"the elements of `{p.name}` are no `{p.dtype}`", where=f"{place} ({at})" if at else place,
        which=instruction_to_text(instr).strip(),
        because=f"the function uses them as `{own or type_}`, the signature says `{p.dtype}`", fix=fix,
    )  # fmt: skip


def extent_text(p: Parameter, signature: Signature, label: str) -> tuple[list[str], str]:
    """Instructions that compute the bytes of an array from the scalar arguments `%v0`, `%v1`, ... and their result.

    Raises SignatureError when an extent is no C parameter.
    """
    from irgrad.engine.signature.extents import BinaryExtent, ConstExtent, Extent

    lines: list[str] = []
    index = {q.name: i for i, q in enumerate(signature.parameters) if not q.is_array and not q.dtype.is_float}

    def emit(text: str) -> str:
        lines.append(f"  %{label}.{len(lines)} = {text}")
        return f"%{label}.{len(lines) - 1}"

    def value(extent: Extent) -> str:
        if isinstance(extent, ConstExtent):
            return str(extent.number)
        if isinstance(extent, BinaryExtent):
            op = {"+": "add", "-": "sub", "*": "mul", "/": "sdiv", "%": "srem"}[extent.op]
            return emit(f"{op} i64 {value(extent.left)}, {value(extent.right)}")
        name = str(extent)
        if name not in index:
            raise SignatureError(
                f"the function may write to `{p.name}`, which is declared `in`", where=f"`{signature}`",
                because=f"it is handed on to code without a body, and cannot be copied: `{name}` is no C parameter",
                fix=f"declare it `inout {p}`, or load(..., link=[...]) what it is handed to",
            )  # fmt: skip
        dtype = signature.parameters[index[name]].dtype
        number = f"%v{index[name]}"
        cast = "zext" if dtype.kind in "ub" else "sext"
        return number if dtype.size == 8 else emit(f"{cast} {dtype.ir} {number} to i64")

    total = str(p.dtype.size)
    for extent in p.shape or ():
        total = emit(f"mul i64 {total}, {value(extent)}")
    return lines, total
