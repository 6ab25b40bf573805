"""Arguments declared `in` that the function writes: what it surely writes is an error, what it may write is copied.

The caller's arrays are passed as they are, under JAX they are XLA's own buffers: nothing may write to them. LLVM's
`readonly` settles nearly every function; our own points-to analysis names the store of the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from irgrad.engine.ir.model import Instruction, Module
from irgrad.engine.prototype import quoted
from irgrad.engine.signature import Parameter, Signature
from irgrad.rules.errors import SignatureError

__all__ = ["extent_text", "perhaps_written"]

_ATTRIBUTES = re.compile(r"\b(readonly|readnone)\b")


def perhaps_written(text: str, name: str, signature: Signature) -> tuple[int, ...]:
    """Array arguments declared `in` that `@name`, in normal form, may write through code that nobody sees.

    Raises SignatureError for one that is certainly written somewhere.
    """
    suspects = [i for i, p in enumerate(signature.parameters) if p.is_array and p.intent == "in"]
    if not suspects:
        return ()
    line = next((x for x in text.splitlines() if x.startswith("define ") and f"@{quoted(name)}(" in x), "")
    params = re.findall(r"ptr ([^%]*)%a(\d+)", line)
    settled = {int(number) for attrs, number in params if _ATTRIBUTES.search(attrs)}
    suspects = [i for i in suspects if i not in settled]
    return _analyse(text, name, signature, suspects) if suspects else ()


def _analyse(text: str, name: str, signature: Signature, suspects: Sequence[int]) -> tuple[int, ...]:
    from irgrad.engine.analyses.modref import own_reads_writes
    from irgrad.engine.analyses.pointers import Pointers
    from irgrad.engine.ir.reader import read

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
    from irgrad.engine.analyses.locations import locate
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


def extent_text(p: Parameter, signature: Signature, label: str) -> tuple[list[str], str]:
    """Instructions that compute the bytes of an array from the scalar arguments `%v0`, `%v1`, ... and their result.

    Raises SignatureError when an extent is no C parameter.
    """
    from irgrad.engine.extents import BinaryExtent, ConstExtent, Extent

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
