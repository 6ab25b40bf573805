"""Whether a kernel is linear in some of its arguments: whether its derivative in their direction reads their values.

The derivative is optimised first, so that what it would only have read for the function's own results is gone.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from weakref import WeakKeyDictionary

from irgrad.engine.kernel.programs import Program

__all__ = ["values_read"]

_UNREAD = re.compile(r"\breadnone\b")
_LOCK = threading.Lock()
_FOUND: WeakKeyDictionary[Program, frozenset[int]] = WeakKeyDictionary()


def values_read(program: Program, arguments: Collection[int], outputs: Collection[int]) -> frozenset[int]:
    """Those of the arguments (C parameters, of a program without derivatives) whose values the derivative of the
    outputs in their direction depends on, as far as LLVM can tell. None: the function is linear in them together, apart
    from a constant."""
    tangent = program.jvp_only({*arguments, *outputs})
    with _LOCK:
        found = _FOUND.get(tangent)
    if found is None:
        found = _read_slots(tangent)
        with _LOCK:
            _FOUND[tangent] = found
    return found & frozenset(arguments)


def _read_slots(program: Program) -> frozenset[int]:
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.ir.text.reader import read

    name = program.stage.name
    function = read(prepare(program.stage.text, [name]), roots=[name]).functions[name]
    used = {id(operand) for instr in function.instructions() for operand in instr.operands}
    return frozenset(
        slot.index for slot, argument in zip(program.slots, function.args, strict=True)
        if not slot.steps and id(argument) in used and not _UNREAD.search(argument.attrs)
    )  # fmt: skip
