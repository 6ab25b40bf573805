"""Bodies of products with a strong zero, in LLVM IR (see `differentiate/primitives/strong_zero.py`)."""

from __future__ import annotations

import re

from irgrad.engine.support.lines import change_lines

__all__ = ["STRONG", "link_strong"]

STRONG = ("strong_mul", "strong_mul_both")
"""Keys of their rows."""
_DECLARED = re.compile(r"^declare (?P<type>[^@\n]+?) (?P<name>@irgrad\.strong_mul(?P<both>_both)?\.\w+)\([^\n]*$", re.M)
_BODY = """\
define internal {type} {name}({type} %a, {type} %s) alwaysinline nounwind willreturn memory(none) {{
  %none = fcmp oeq {type} %a, zeroinitializer
{both}  %product = fmul {type} %a, %s
  %result = select {bits} {zero}, {type} zeroinitializer, {type} %product
  ret {type} %result
}}"""
_BOTH = """\
  %flat = fcmp oeq {type} %s, zeroinitializer
  %number = fcmp ord {type} %a, zeroinitializer
  %still = and {bits} %flat, %number
  %either = or {bits} %none, %still
"""


def link_strong(text: str) -> str:
    """The module with bodies in place of the declarations."""
    return change_lines(text, "declare ", lambda line: _DECLARED.sub(_defined, line))


def _defined(found: re.Match[str]) -> str:
    type_ = found["type"]
    count = re.match(r"<(\d+) x ", type_)
    bits = f"<{count[1]} x i1>" if count else "i1"
    both = _BOTH.format(type=type_, bits=bits) if found["both"] else ""
    return _BODY.format(type=type_, name=found["name"], bits=bits, both=both, zero="%either" if both else "%none")
