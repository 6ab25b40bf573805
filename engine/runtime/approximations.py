"""Bodies of `irgrad.rsqrt`, `irgrad.rcp` and their forms of 14 bits: the instructions of x86, for any number of lanes.

The instructions give every lane the same bits, whatever stands in the others, so vectors are cut into those that there
are instructions for, and numbers take lane 0 of one.
"""

from __future__ import annotations

import re

__all__ = ["link_approximations"]

_DECLARED = re.compile(
    r"^declare (?P<type>float|double|<(?P<count>\d+) x (?P<element>float|double)>) "
    r"(?P<name>@irgrad\.(?P<stem>rsqrt|rcp)(?P<digits>14)?\.\w+)\([^\n]*$", re.M
)  # fmt: skip


def link_approximations(text: str) -> str:
    """The module with bodies in place of the declarations."""
    if "@irgrad.rsqrt" not in text and "@irgrad.rcp" not in text:
        return text
    used: dict[str, str] = {}
    linked = _DECLARED.sub(lambda found: _defined(found, used), text)
    return linked + "".join(f"declare {line}\n" for name, line in used.items() if f" @{name}(" not in text)


def _defined(found: re.Match[str], used: dict[str, str]) -> str:
    type_, count = found["type"], int(found["count"] or 1)
    element = found["element"] or type_
    letters, bits = ("ps", "i16") if element == "float" else ("pd", "i8")
    width = 4 if found["digits"] is None else 16 if element == "float" else 8
    vector = f"<{width} x {element}>"
    if found["digits"] is None:
        name, more, types = f"llvm.x86.sse.{found['stem']}.ps", "", ""
    else:
        name = f"llvm.x86.avx512.{found['stem']}14.{letters}.512"
        more, types = f", {vector} zeroinitializer, {bits} -1", f", {vector}, {bits}"
    used[name] = f"{vector} @{name}({vector}{types})"
    lines, whole = [], "poison"
    for at in range(0, count, width):
        part = f"%p{at}"
        if found["count"]:
            lanes = ", ".join(f"i32 {min(at + i, count - 1)}" for i in range(width))
            lines.append(f"  {part} = shufflevector {type_} %x, {type_} poison, <{width} x i32> <{lanes}>")
        else:
            lines.append(f"  {part} = insertelement {vector} zeroinitializer, {type_} %x, i64 0")
        lines.append(f"  %y{at} = call {vector} @{name}({vector} {part}{more})")
        for lane in range(at, min(at + width, count)):
            lines.append(f"  %e{lane} = extractelement {vector} %y{at}, i64 {lane - at}")
            lines.append(f"  %w{lane} = insertelement {type_} {whole}, {element} %e{lane}, i64 {lane}")
            whole = f"%w{lane}"
    lines.append(f"  ret {type_} {whole}" if found["count"] else f"  ret {type_} %e0")
    body = "\n".join(line for line in lines if found["count"] or not line.startswith("  %w"))
    return (f"define internal {type_} {found['name']}({type_} %x) alwaysinline nounwind willreturn memory(none) {{\n"
            f"{body}\n}}")  # fmt: skip
