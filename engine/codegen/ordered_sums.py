"""Sums of products that a loop carries, as products and sums.

LLVM keeps the order of a sum in vector lanes where `-force-ordered-reductions` is set (see `optimise.py`). LLVM 22 ends
the process over some loops then: its two cost models differ over `llvm.fmuladd(a, b, sum)` with factors that the loop
does not change (LoopVectorize.cpp, computeBestVF). Such a loop comes to be within LLVM's passes, so there is no telling
which it is. What `llvm.fmuladd` means is also said by a product and a sum that may be contracted, and of these the
product leaves the loop. Code generation makes one instruction of the two where the processor has it.

Where no operation may change its place (`strict_fp`), whether a product is rounded must not depend on where it is:
there all are what code generation makes of `llvm.fmuladd` for the machine, `llvm.fma` or a rounded product and a sum.
Not those that may be reassociated, which have no order to keep: LLVM sums up products and sums in lanes, `llvm.fma` it
does not (measured: k-means with its gradient by `irgrad cc`, 1.3 of the time).

Not seen here otherwise are sums in memory that LLVM keeps in registers itself, and those that only its inlining makes a
loop's.
"""

from __future__ import annotations

import re
from typing import Any

from irgrad.engine.codegen.llvm import parse

__all__ = ["has_fused_products", "split_products"]

_TYPE = r"<\d+ x (?:double|float)>|double|float"
_NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_PHI = re.compile(rf"  ({_NAME}) = phi (?:{_TYPE}) (.*)")
_CHOICE = re.compile(rf"  ({_NAME}) = select (?:[a-z]+ )*i1 [^,]+, (?:{_TYPE}) ([^,]+), (?:{_TYPE}) ([^,]+)")
_SUM = re.compile(rf"  ({_NAME}) = f(?:add|sub) (?:[a-z]+ )*(?:{_TYPE}) ([^,]+), ([^,]+)")
_PRODUCT = re.compile(
    rf"  (?P<name>{_NAME}) = (?:tail |notail )?call (?P<flags>(?:[a-z]+(?:\([^)]*\))? )*)(?P<type>{_TYPE}) "
    rf"@llvm\.fmuladd\.(?P<suffix>\w+)\((?:{_TYPE}) (?P<a>{_NAME}|[^,<\s]+), (?:{_TYPE}) (?P<b>{_NAME}|[^,<\s]+), "
    rf"(?:{_TYPE}) (?P<sum>{_NAME})\)(?: #\d+)?(?P<rest>(?:, !(?:dbg|fpmath) !\d+)*)"
)
_NAMES = re.compile(_NAME)
_FLAGS = frozenset("reassoc nnan ninf nsz arcp afn fast".split())
"""What else stands before the type of a call says something of its result, as `noundef` does."""
_CALL = "@llvm.fmuladd."
_FUSED = re.compile(rf"call (?:[a-z]+ )*({_TYPE}) (@llvm\.fma\.\w+)\(")
_PROBE = """
define double @f(double %a, double %b, double %c) {
  %d = call double @llvm.fmuladd.f64(double %a, double %b, double %c)
  ret double %d
}
declare double @llvm.fmuladd.f64(double, double, double)
"""


def has_fused_products(machine: Any) -> bool:
    """Whether code generation for an llvmlite target machine makes one instruction of `llvm.fmuladd`."""
    module = parse(_PROBE)
    assembly = str(machine.emit_assembly(module))
    module.close()
    return "fma" in assembly.lower().replace("fmax", "")


def split_products(text: str, *, fused: bool | None = None) -> str:
    """The module with `fmul` and `fadd` in place of `llvm.fmuladd` where the addend is a sum that a loop carries, or
    goes on with one; the same string where there is none. Vectors of constants are left as they are, and calls that say
    more of their operands. fused: that both are one operation, or are not, wherever they are (a loop may come to carry
    a sum that goes through memory or a function); None: as code generation sees fit"""
    if _CALL not in text:
        return text
    pieces: list[str] = []
    done = 0
    begin = text.find("\ndefine ")
    while begin >= 0:
        end = text.find("\n}", begin)
        if text.find(_CALL, begin, end) >= 0:
            changed = _split(text[begin:end], fused)
            pieces += [text[done:begin], changed]
            done = end
        begin = text.find("\ndefine ", end)
    if not pieces:
        return text
    made = "".join([*pieces, text[done:]])
    used = dict.fromkeys(_FUSED.findall(made)) if fused else {}
    missing = [name for name in used if not re.search(rf"^declare [^\n]*{re.escape(name[1])}\(", made, re.M)]
    return "".join([made, *(f"\ndeclare {kind} {name}({kind}, {kind}, {kind})\n" for kind, name in missing)])


def _split(function: str, fused: bool | None) -> str:
    lines = function.split("\n")
    users: dict[str, list[str]] = {}
    products: list[tuple[int, re.Match[str]]] = []
    carried: list[str] = []
    for number, line in enumerate(lines):
        if _CALL in line:
            found = _PRODUCT.fullmatch(line)
            if found is not None:
                products.append((number, found))
                users.setdefault(found["sum"], []).append(found["name"])
        elif " = phi " in line:
            found = _PHI.match(line)
            if found is not None:
                carried.append(found[1])
        elif " = fadd " in line or " = fsub " in line or " = select " in line:
            found = _SUM.match(line) or _CHOICE.match(line)
            for name in _NAMES.findall(f"{found[2]} {found[3]}") if found is not None else ():
                users.setdefault(name, []).append(found[1])  # type: ignore[index]
    seen = set(carried)
    for name in carried:  # grows
        new = [user for user in users.get(name, ()) if user not in seen]
        seen.update(new)
        carried += new
    for number, found in products:
        told = None if "reassoc" in found["flags"].split() else fused
        if told is not None or found["sum"] in seen:
            lines[number] = _told(found, told)
    return "\n".join(lines)


def _told(found: re.Match[str], fused: bool | None) -> str:
    name, kind = found["name"], found["type"]
    words = [word for word in found["flags"].split() if word in _FLAGS]
    if fused:
        flags = "".join(f"{word} " for word in words)
        operands = ", ".join(f"{kind} {found[operand]}" for operand in ("a", "b", "sum"))
        return f"  {name} = call {flags}{kind} @llvm.fma.{found['suffix']}({operands}){found['rest']}"
    flags = "".join(f"{word} " for word in (words if fused is False else [*words, "contract"]))
    product = f'{name[:-1]}.product"' if name.endswith('"') else f'%"{name[1:]}.product"'
    return (f"  {product} = fmul {flags}{kind} {found['a']}, {found['b']}{found['rest']}\n"
            f"  {name} = fadd {flags}{kind} {product}, {found['sum']}{found['rest']}")  # fmt: skip
