"""Reverse mode in two functions, with the tape between them in memory of the caller."""

from __future__ import annotations

import hashlib
import json

from irgrad.engine.differentiate.layout.lanes import LANES
from irgrad.engine.differentiate.reverse.reverse import Reverse
from irgrad.engine.differentiate.roots import REVERSE_TAIL, Derived, drain, forget_globals, root_function
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.tape.taped import Taped, Untapeable
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function
from irgrad.engine.ir.printer import function_to_text

__all__ = ["derive_with_tape", "reverse_name"]


def derive_with_tape(unit: Unit, abi: Abi) -> Derived:
    """Add the two halves to the module. The name is that of the first; the note is JSON:

    reverse: the name of the second one; room: bytes of the tape; layout: a digest, equal for tapes that can be
    exchanged; or, where the tape cannot be the caller's, because: why, and where: the place (the name is empty and the
    module is left in no state).
    """
    if unit.request.checkpoint:
        because = {"because": "its loops run backwards in segments", "where": ""}
        return Derived("", (), None, json.dumps(because))
    try:
        forward, made = _halves(unit, abi)
        room = made.room()
    except Untapeable as refused:
        return Derived("", (), None, json.dumps({"because": refused.because, "where": refused.where}))
    texts = "\n".join(map(function_to_text, [forward, *made.chunks()]))
    layout = hashlib.sha256(texts.encode("utf-8", "surrogateescape")).hexdigest()
    note = {"reverse": made.owner.target.name, "room": room.to_text(), "layout": layout}
    return Derived(str(forward.name), tuple(sorted(unit.activity.scratch)), unit.facts, json.dumps(note))


def _halves(unit: Unit, abi: Abi) -> tuple[Function, Taped]:
    assert not unit.memory.separate
    request, shadowed = unit.request, abi.shadow
    mask = "".join("1" if s else "0" for s in shadowed)
    # Tapes do not depend on the width: the first half is the same for all, to its name.
    forward = root_function(unit.module, f"{request.function}.{request.derivative}.{mask}",
                            [ty.PTR] * (len(shadowed) + 2))  # fmt: skip
    count = len(shadowed) - len(request.outputs) + sum(shadowed) + 1
    reverse = root_function(unit.module, request.name(shadowed, "reverse_from_tape"), [ty.PTR] * count)
    reverse.tail = REVERSE_TAIL
    made = Reverse(unit, unit.root, abi, forward, reverse).generate()
    drain(unit)
    assert made.on_tape is not None
    made.on_tape.verify()
    forget_globals(unit, reverse)
    if unit.width > 1 and unit.plain:
        reverse.tail += f' "{LANES}"'
    return forward, made.on_tape


def reverse_name(note: str) -> str:
    """The name of the second function, from the note of the first."""
    return str(json.loads(note)["reverse"])
