"""Calls through pointers that come from a program's own memory: which functions they may reach.

A struct that a program hands over holds a pointer to a function, or an object's table of virtual functions: no analysis
of the differentiated function alone can tell where it leads. But the program is all there is: the call can only reach
a function of its type of which the address is taken somewhere. It becomes a comparison with each of those addresses
(with that of the copy in the derivative too, which objects point to that are made there); what is called is what the
program's own pointer says, not its shadow. Anything else stops the program; but exceptions of the C++ library also say
`what` they are, from functions that no text of the program holds: those are called as they are, and are constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from zlib import crc32

from irgrad.engine.analyses.memory.call_effects import INACTIVE
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.enzyme.names import PREFIX
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import CallInfo, Function, InlineAsm, Instruction, Module
from irgrad.engine.ir.quoting import bare_name, quoted_name
from irgrad.engine.ir.text.entities import restrict
from irgrad.engine.ir.text.load_time import ABI_WORDS

__all__ = ["ADDRESS", "addresses", "dispatched", "taken"]

ADDRESS = "irgrad.address."
"""Variables that hold the addresses of functions: a derivative has copies of them, which lie elsewhere."""
_TAKEN = re.compile(r'\bptr (@(?:"[^"\n]*"|[-\w$.]+))(?=[,)\s}\]])', re.ASCII)
_MOST = 64
_LIBRARY = re.compile(r"_ZNKSt\d+\w+4whatEv")
_TOLD = "irgrad: a pointer leads to a function that this program does not contain"


def taken(text: str) -> list[str]:
    """The functions of which a program takes the address, in its code or in what its variables begin with."""
    return list(dict.fromkeys(map(bare_name, _TAKEN.findall(text))))


def dispatched(
    outside: str, prepared: str, roots: list[str], body: str = "", held: Iterable[str] = ()
) -> tuple[str, list[str]] | None:
    """The functions of `roots`, `body`, and what they need, with such calls resolved, and the functions that these may
    reach; None where there is no such call. `prepared`: the same functions, optimised. `held`: functions that the
    program's variables hold."""
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    wanted = {str(instr.call.fn_type) for instr in _indirect(_whole(prepared)) if instr.call is not None}
    if not wanted:
        return None
    program = read(outside, [])
    every = dict.fromkeys([*taken(outside), *held])
    addressed = [fn for name in every if (fn := program.functions.get(name)) is not None
                 and PREFIX not in (fn.lazy or "") and not name.startswith(("llvm.", "irgrad."))]  # fmt: skip
    found = [fn for fn in addressed if str(fn.ftype) in wanted]
    if not found or len(found) > _MOST:
        return None
    while True:  # what they reach may call through pointers of other types
        module = _whole(restrict(outside, [*roots, *(fn.name or "" for fn in found)]) + body)
        wanted |= {str(instr.call.fn_type) for instr in _indirect(module) if instr.call is not None}
        more = [fn for fn in addressed if str(fn.ftype) in wanted]
        if len(more) == len(found) or len(more) > _MOST:
            break
        found = more
    parts: dict[str, str] = {}
    for instr in list(_indirect(module)):
        own = str(instr.call.fn_type) if instr.call is not None else ""
        _retarget(instr, [fn for fn in found if str(fn.ftype) == own], parts)
    names = [fn.name or "" for fn in found]
    missing = [name for name in names if ADDRESS + name not in module.globals]
    declared = "".join(f"@{quoted_name(ADDRESS + name)} = external constant ptr\n" for name in missing)
    for name, prototype in (("write", "i64 @write(i32, ptr, i64)"), ("abort", "void @abort()")):
        declared += f"declare {prototype}\n" if name not in module.functions else ""
    declared += f'@irgrad.dispatch.told = private constant [{len(_TOLD) + 1} x i8] c"{_TOLD}\\0A"\n'
    return "\n".join([to_text(module), declared, *parts.values()]), names


def addresses(names: Iterable[str]) -> str:
    """Definitions of the variables with the addresses of functions."""
    return "".join(f"@{quoted_name(ADDRESS + name)} = constant ptr @{quoted_name(name)}\n" for name in names)


def _whole(text: str) -> Module:
    from irgrad.engine.ir.text.reader import materialise, read

    module = read(text, [])
    for fn in module.functions.values():
        if fn.lazy is not None:
            materialise(fn, module)
    return module


def _indirect(module: Module) -> Iterable[Instruction]:
    for fn in module.functions.values():
        for instr in fn.instructions():
            if instr.is_call and not isinstance(resolve(instr.callee), Function | InlineAsm):
                yield instr


def _retarget(instr: Instruction, candidates: list[Function], parts: dict[str, str]) -> None:
    info = instr.call
    if info is None or not candidates or info.fn_type.vararg:
        return
    kept = [" ".join(ABI_WORDS.findall(attrs)) for attrs in info.arg_attrs]
    kept += [""] * (len(info.fn_type.params) - len(kept))
    name = f"irgrad.dispatch.{crc32(repr((str(info.fn_type), kept)).encode()):x}"
    parts[name] = _text(name, info.fn_type, kept, candidates)
    ftype = ty.function(info.fn_type.ret, (ty.PTR, *info.fn_type.params))
    instr.operands = [instr.callee, *instr.args, Function(name, ftype)]
    instr.call = CallInfo(ftype, ret_attrs="", arg_attrs=["", *kept])


def _text(name: str, ftype: ty.FunctionType, kept: list[str], candidates: list[Function]) -> str:
    typed = [f"{type_} {attrs} %a{i}" for i, (type_, attrs) in enumerate(zip(ftype.params, kept, strict=True))]
    lines = [f"define internal {ftype.ret} @{name}({', '.join(['ptr %f', *typed])}) alwaysinline {{"]
    for i, fn in enumerate(candidates):
        own = quoted_name(fn.name or "")
        call = f"call {ftype.ret} @{own}({', '.join(typed)})"
        lines += [
            f"  %p{i} = load ptr, ptr @{quoted_name(ADDRESS + (fn.name or ''))}, align 8",
            f"  %theirs{i} = icmp eq ptr %f, %p{i}", f"  %ours{i} = icmp eq ptr %f, @{own}",
            f"  %c{i} = or i1 %theirs{i}, %ours{i}", f"  br i1 %c{i}, label %call{i}, label %next{i}", f"call{i}:",
            f"  {'' if ftype.ret is ty.VOID else f'%r{i} = '}{call}",
            f"  ret {ftype.ret}{'' if ftype.ret is ty.VOID else f' %r{i}'}",
            f"next{i}:",
        ]  # fmt: skip
    if any(_LIBRARY.match(fn.name or "") for fn in candidates):
        result = "" if ftype.ret is ty.VOID else "%r = "
        lines += [f"  {result}call {ftype.ret} %f({', '.join(typed)}) {INACTIVE}",
                  f"  ret {ftype.ret}{'' if ftype.ret is ty.VOID else ' %r'}", "}"]  # fmt: skip
        return "\n".join(lines) + "\n"
    told = f"  %told = call i64 @write(i32 2, ptr @irgrad.dispatch.told, i64 {len(_TOLD) + 1})"
    lines += [told, "  call void @abort()", "  unreachable", "}"]
    return "\n".join(lines) + "\n"
