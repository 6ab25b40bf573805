"""Modules of Julia and of Swift that come as `.ll` or `.bc`: what they want of run-time libraries that are not there.

Blocks that end by throwing, or by a trap, are failures of the kernel (`irgrad.panic`), with the source line. A
function of Julia goes by its name (`energy` for `julia_energy_37`); the function beside it that takes boxed values is
dropped, and points at which Julia may collect garbage are nothing. Modules of other languages stay as they are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from irgrad.engine.signature.prototype import quoted
from irgrad.interop.loaders.rust_panics import Panics

__all__ = ["adapted"]

_JULIA = re.compile(r'^define [^@\n]*@"?julia_', re.M)
_SWIFT = re.compile(r"^!swift\.module\.flags\b|^@__swift_reflection_version\b", re.M)
_BOXED = re.compile(r'^define [^@\n]*@"?jfptr_[^\n]*\{\n.*?^\}\n', re.M | re.S)
_NAMED = re.compile(r'^define [^@\n]*@("?)(julia_([^\n"]*?)_\d+)\1\(', re.M)
_STACK = re.compile(r"call ptr (?:@julia\.get_pgcstack|@ijl_get_pgcstack|@jl_get_pgcstack)\(\)")
_SAFEPOINT = re.compile(
    r'^  (?:(?:tail )?call void @julia\.safepoint\(|fence syncscope\("singlethread"\))[^\n]*\n', re.M
)
_UNUSED = re.compile(r'^declare [^@\n]*@("?)((?:julia|i?jl)[_.][^\n"(]*|j_[^\n"(]*|\$ss[^\n"(]*)\1\([^\n]*\n', re.M)
_BODY = re.compile(r"^define [^\n]*\{\n(.*?)^\}\n", re.M | re.S)
_LABEL = re.compile(r'^(?:[-\w$.]+|"[^"\n]*"):', re.M)
_FATAL = re.compile(
    r'^  (?:(?:tail|musttail|notail) )?call (?:swiftcc )?void '
    r'(?:@"?(?P<name>i?jl_\w*(?:throw|error)\w*|j_[^"(\n]+|\$ss[^"(\n]*)"?\(|@(?P<trap>llvm\.trap)\(\))'
    r"(?P<rest>[^\n]*)\n  unreachable", re.M,
)  # fmt: skip
_TEXT = re.compile(r'@"\.str\.\d+\.([^"\n]*)"')
_NODE = re.compile(r"^(!\d+) = (?:distinct )?!DI(\w+)\((.*)\)$", re.M)
_RING = "@irgrad.julia.stack"


def adapted(text: str) -> str:
    """The module without what only the run-time libraries of Julia or Swift could give."""
    julia = _JULIA.search(text) is not None
    if not julia and not _SWIFT.search(text):
        return text
    if julia:
        text = _named(_BOXED.sub("", text))
    panics, nodes = Panics(), {row[0]: (row[1], row[2]) for row in _NODE.findall(text)}
    text = _BODY.sub(lambda row: row[0].replace(row[1], "".join(_reported(row[1], panics, nodes))), text)
    text = _SAFEPOINT.sub("", text)
    if _STACK.search(text):
        # Code that asks for its task reads addresses from there, which lead nowhere else.
        ring = f"{_RING} = internal global [64 x ptr] [{', '.join([f'ptr {_RING}'] * 64)}]\n"
        text = _STACK.sub(f"getelementptr i8, ptr {_RING}, i64 0", text) + ring
    text = _UNUSED.sub(lambda row: row[0] if text.count(f"@{row[1]}{row[2]}{row[1]}") > 1 else "", text)
    if panics.text():
        text += "\ndeclare void @irgrad.panic(ptr) noreturn nounwind cold\n" + panics.text()
    return text


def _named(text: str) -> str:
    """The module in which functions of Julia go by the names of the source, where these are theirs alone."""
    found = _NAMED.findall(text)
    names = [name for _, _, name in found]
    for quote, symbol, name in found:
        taken = re.search(rf'^(?:define|declare) [^@\n]*@"?{re.escape(name)}"?\(', text, re.M)
        if names.count(name) == 1 and not taken:
            shown = f"@{quoted(name)}".replace("\\", "\\\\")
            text = re.sub(rf"@{quote}{re.escape(symbol)}{quote}(?![-\w$.])", shown, text)
    return text


def _reported(body: str, panics: Panics, nodes: dict[str, tuple[str, str]]) -> Iterator[str]:
    """The blocks of a function; one that ends by throwing only says so: what it computes is for the exception."""
    starts = [0, *(row.start() for row in _LABEL.finditer(body) if row.start() > 0), len(body)]
    for start, end in itertools.pairwise(starts):
        block = body[start:end]
        fatal = _FATAL.search(block)
        if fatal is None:
            yield block
            continue
        label = _LABEL.match(block)
        where = re.search(r"!dbg (!\d+)", fatal["rest"])
        message = _said(fatal["name"] or "", block) + (_place(where[1], nodes) if where else "")
        head = block[: block.index("\n") + 1] if label else ""
        debug = f", !dbg {where[1]}" if where else ""
        yield (f"{head}  call void @irgrad.panic(ptr {panics.name(message)}) noreturn nounwind{debug}\n"
               "  unreachable\n\n")  # fmt: skip


def _said(name: str, block: str) -> str:
    """What a block that ends says of why."""
    texts = [row for row in _TEXT.findall(block) if row not in ("Fatal error", "") and not row.endswith(".swift")]
    if texts:
        return str(texts[-1])
    if not name or name.startswith("$ss"):
        return "a trap of Swift: an overflow, an index out of bounds, or a condition that does not hold"
    if "bounds_error" in name:
        return "BoundsError: an index out of bounds"
    thrown = re.sub(r"_\d+$", "", name.removeprefix("j_")) if name.startswith("j_") else ""
    kind = re.search(r'@"\+\w+\.(\w+)#', block)
    return f"{kind[1]} is thrown" if kind else f"`{thrown}` throws" if thrown else "an exception is thrown"


def _place(ref: str, nodes: dict[str, tuple[str, str]]) -> str:
    """` at FILE:LINE` of a debug location, with the outermost function's where the code is inlined."""

    def field(node: str, key: str) -> str:
        found = re.search(rf'\b{key}: ("[^"]*"|[^,()]+)', nodes.get(node, ("", ""))[1])
        return found[1].strip('"') if found else ""

    while inlined := field(ref, "inlinedAt"):
        ref = inlined
    line, scope = field(ref, "line"), field(ref, "scope")
    while scope in nodes and not field(scope, "file"):
        scope = field(scope, "scope")
    file = field(field(scope, "file"), "filename")
    return f" at {file}:{line}" if file and line not in ("", "0") else ""
