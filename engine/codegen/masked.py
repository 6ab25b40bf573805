"""Masked vector loads and stores, which `-O3 -march=native` writes, as branches around scalar ones.

LLVM takes them apart for CPUs without them, but only when it generates code. Here they become calls of small functions
that are always inlined: masks that are known leave nothing but the accesses, others one branch per element.

    masked.load, masked.expandload        elements one behind the other; expandload packs those that are wanted
    masked.gather                         a pointer per element
    masked.store, masked.compressstore, masked.scatter   the same for stores
"""

from __future__ import annotations

import re

__all__ = ["masked_memory"]

_NAME = "llvm.masked."
_DECLARED = re.compile(
    r"^declare (?P<ret>void|<\d+ x [^>\n]+>) @(?P<name>llvm\.masked\.(?P<kind>load|store|gather|scatter|expandload"
    r"|compressstore)\.[\w.]+)\((?P<params>[^\n]*?)\)[^\n)]*$", re.M,
)  # fmt: skip
_VECTOR = re.compile(r"<(\d+) x ([^>]+)>")
_SIZES = {"double": 8, "float": 4, "half": 2, "bfloat": 2, "ptr": 8}


def masked_memory(text: str) -> str:
    """The module without masked accesses of memory; `text` is as LLVM prints it (alignments are attributes)."""
    if _NAME not in text:
        return text
    helpers: dict[str, str] = {}
    for declared in list(_DECLARED.finditer(text)):
        text = _replaced(text, declared, helpers)
    return "\n".join([text, *helpers.values()])


def _replaced(text: str, declared: re.Match[str], helpers: dict[str, str]) -> str:
    kind, name = declared["kind"], declared["name"]
    stores = kind in ("store", "scatter", "compressstore")
    types = _VECTOR.findall(declared["params"] if stores else declared["ret"])
    if not types:
        return text  # vectors of no fixed length
    count, element = int(types[0][0]), types[0][1]

    def call(match: re.Match[str]) -> str:
        end = text.find("\n", match.end())
        aligned = re.search(rf"(?:ptr|<{count} x ptr>) (?:[^%@,]*? )?align (\d+)", text[match.end() : end])
        align = min(int(aligned[1]) if aligned else 1, _size(element))
        helper = f"irgrad.{name.removeprefix('llvm.')}.{align}"
        if helper not in helpers:
            helpers[helper] = _helper(helper, kind, count, element, align)
        return f"@{helper}("

    return re.sub(rf"@{re.escape(name)}\(", lambda m: call(m) if _is_call(text, m) else m[0], text)


def _is_call(text: str, match: re.Match[str]) -> bool:
    return not text.startswith("declare ", text.rfind("\n", 0, match.start()) + 1)


def _size(element: str) -> int:
    """Bytes of an element: no access is aligned better."""
    return _SIZES.get(element) or max(1, int(element.removeprefix("i")) // 8)


def _helper(name: str, kind: str, count: int, element: str, align: int) -> str:
    """`name` as a function: a branch per element."""
    vector, mask = f"<{count} x {element}>", f"<{count} x i1>"
    spread = kind in ("gather", "scatter")
    packed = kind in ("expandload", "compressstore")
    stores = kind in ("store", "scatter", "compressstore")
    pointer = f"<{count} x ptr> %p" if spread else "ptr %p"
    params = f"{vector} %v, {pointer}, {mask} %m" if stores else f"{pointer}, {mask} %m, {vector} %v"
    lines = [f"define internal {'void' if stores else vector} @{name}({params}) alwaysinline nounwind {{", "start:"]
    before, value, at = "start", "%v", "0"
    for i in range(count):
        lines += [f"  %m{i} = extractelement {mask} %m, i64 {i}", f"  br i1 %m{i}, label %do{i}, label %on{i}"]
        lines.append(f"do{i}:")
        if spread:
            lines.append(f"  %p{i} = extractelement {pointer}, i64 {i}")
        else:
            lines.append(f"  %p{i} = getelementptr inbounds {element}, ptr %p, i64 {at if packed else i}")
        if stores:
            lines += [f"  %e{i} = extractelement {vector} %v, i64 {i}",
                      f"  store {element} %e{i}, ptr %p{i}, align {align}"]  # fmt: skip
        else:
            lines += [f"  %e{i} = load {element}, ptr %p{i}, align {align}",
                      f"  %w{i} = insertelement {vector} {value}, {element} %e{i}, i64 {i}"]  # fmt: skip
        if packed:
            lines.append(f"  %k{i} = add i64 {at}, 1")
        lines += [f"  br label %on{i}", f"on{i}:"]
        if not stores:
            lines.append(f"  %r{i} = phi {vector} [ {value}, %{before} ], [ %w{i}, %do{i} ]")
            value = f"%r{i}"
        if packed:
            lines.append(f"  %n{i} = phi i64 [ {at}, %{before} ], [ %k{i}, %do{i} ]")
            at = f"%n{i}"
        before = f"on{i}"
    return "\n".join([*lines, "  ret void" if stores else f"  ret {vector} {value}", "}"]) + "\n"
