"""The words of the notation: names of its calls, and the annotations that stand in front of arguments.

The names are recognised inside the callee's name, so that one program may declare several prototypes and C++ may mangle
them. An annotation is a global of which only the name matters (`enzyme_const, n`), or a metadata string in IR.
"""

from __future__ import annotations

import re

from irgrad.engine.ir.model import ConstExpr, GlobalVariable, Instruction, Value
from irgrad.engine.ir.opcodes import having

__all__ = [
    "ACTIVITIES", "BATCH", "DERIVATIVES", "PLAIN", "PREFIX", "ROUNDING", "SPLIT", "SWITCHES", "VALUED", "annotation",
    "family", "spelled_out",
]  # fmt: skip

PREFIX = "__enzyme_"
DERIVATIVES = {
    "__enzyme_autodiff": "reverse",
    "__enzyme_fwddiff": "forward",
    "__enzyme_augmentfwd": "augment",
    "__enzyme_reverse": "sweep",
    "__enzyme_fwdsplit": "tangent",
    "__enzyme_error_estimate": "forward",
}
"""Calls that become calls of a derivative, with its mode; augment and sweep are the halves of split mode, record (an
augmentfwd of which fwdsplit takes the tape) and tangent those of forward mode in split form."""

ROUNDING = "__enzyme_error_estimate"
"""Whose tangents are relative rounding errors."""

SPLIT = frozenset({"augment", "sweep", "record", "tangent"})
"""The modes of one half of a derivative."""

PLAIN = (
    "__enzyme_augmentsize", "__enzyme_batch", "__enzyme_call_inactive", "__enzyme_ignore_derivatives", "__enzyme_iter",
    "__enzyme_virtualreverse",
    "__enzyme_float", "__enzyme_double", "__enzyme_integer", "__enzyme_pointer", "__enzyme_todense",
)  # fmt: skip
"""Calls that need no derivative."""

ACTIVITIES = frozenset({"const", "dup", "dupnoneed", "dupv", "dupnoneedv", "out"})
SWITCHES = frozenset(
    "primal_return noret const_return active_return dup_return nofree strong_zero runtime_activity".split()
)
VALUED = frozenset("width tape allocated byref".split())
"""Annotations that take the argument behind them."""
BATCH = frozenset("scalar vector buffer".split())

_CASTS = having("same_number")
_STRING = re.compile(r'\bmetadata !"(enzyme_\w+)"')


def family(name: str | None) -> str | None:
    """The name of the notation that a callee's name contains: `__enzyme_autodiff` in `_Z17__enzyme_autodiffPvz`."""
    at = name.find(PREFIX) if name else -1
    if at < 0 or name is None:
        return None
    return next((known for known in (*DERIVATIVES, *PLAIN) if name.startswith(known, at)), name[at:])


def spelled_out(text: str) -> str:
    """Metadata strings among arguments (`metadata !"enzyme_const"`) as addresses of globals of that name."""
    names = sorted(set(_STRING.findall(text)))
    missing = [name for name in names if not re.search(rf"^@{name} = ", text, re.M)]
    declared = "".join(f"@{name} = external global i32\n" for name in missing)
    return _STRING.sub(r"ptr @\1", text) + "\n" + declared if names else text


def annotation(value: Value) -> str:
    """`dup` for the global `enzyme_dup`, its value or address, through casts; "" for an ordinary argument."""
    while True:
        opcode = value.opcode if isinstance(value, Instruction | ConstExpr) else ""
        if isinstance(value, Instruction | ConstExpr) and (opcode in _CASTS or opcode == "load"):
            value = value.operands[0]
        else:
            break
    if not isinstance(value, GlobalVariable) or not value.name:
        return ""
    at = value.name.find("enzyme_")
    mangled = value.name.startswith("_Z")
    if at < 0 or (at > 0 and not mangled):
        return ""
    name = value.name[at:]
    if mangled and at > 0:  # a C++ static or inline variable: the length stands before the name
        digits = ""
        while at > len(digits) and value.name[at - 1 - len(digits)].isdigit():
            digits = value.name[at - 1 - len(digits)] + digits
        name = name[: int(digits)] if digits else name
    return name.removeprefix("enzyme_")
