"""What the reverse sweep of an outermost loop may keep: a tape of all, or states and runs again; bytes and work."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING, Any

from irgrad.engine.ir.model import Argument, Function
from irgrad.engine.kernel.checkpoints import bytes_of
from irgrad.engine.normalise.known_cotangents import Activity, Unknown, known_cotangents
from irgrad.engine.normalise.repeatable import Repeatable
from irgrad.engine.normalise.segments import what_states_hold
from irgrad.engine.report.formulas import Formula, Symbol, apply, constant, of_atom
from irgrad.engine.report.sizes import Size, total_of

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.engine.normalise.repeatable import Bytes, Memory
    from irgrad.engine.report.facts import Place
    from irgrad.engine.report.words import Words

__all__ = ["choices_of"]

_STATES = 16  # of the example with a bound


def choices_of(
    unit: Unit, fn: Function, loop: Loop, words: Words, place: Place, sizes: Sequence[Size] | None,
    work: Sequence[Size] | None, *, calls: bool,
) -> tuple[str, ...]:
    """The choices for an outermost loop, a line each: first the tape of all, as it is without another word.

    sizes: of the tape of the loop and of those in it, None where its bytes are not known before it runs; work:
    additions of all its iterations, None likewise; calls: whether functions that it calls keep and do some more
    """
    whole = "bytes that are not known before it runs" if sizes is None else total_of(sizes)
    more = " and what functions that it calls keep" if calls else ""
    rows = [f"a tape of all iterations: {whole}{more}; nothing runs again"]
    done = "as many additions as is not known before it runs" if work is None else f"{_additions(work)} additions"
    beside = " and what functions that it calls do" if calls else ""
    known = bytes_of(words.kernel.primal.slots)
    name = f'"{place.file.rpartition("/")[2]}:{place.line}"' if place else '"*"'
    found = what_states_hold(unit.module, unit.pointers, fn, loop, known)
    again = Repeatable(unit.pointers, fn, loop, known)
    if not again.refusal:
        rows.append(_fused(unit, again, name))
    if isinstance(found, str):
        return (*rows, f"no states: {found}")
    held, memory, rows_of = found
    state = _state(held, memory, known, words)
    state += " and what lies behind addresses in tables" if rows_of else ""
    few, some = comb(_STATES + 1, 1), comb(_STATES + 2, 2)
    return (
        *rows,
        f"to run all iterations once more: about {done}{beside}, where 8 bytes of tape cost {unit.request.costs.tape}",
        f"checkpoint={{{name}: 1}}: a state each iteration of {state}, and the tape of one; each runs once more",
        f'checkpoint={{{name}: "binomial:{_STATES}"}}: {_STATES} such states, and the tape of one iteration; each runs '
        f"once more up to {few} iterations, twice up to {some}",
        'tape_memory="512MB": as many states as fit in half of it, and tapes of as many iterations as fit in the other',
    )


def _fused(unit: Unit, again: Repeatable, name: str) -> str:
    try:
        known_cotangents(again, Activity(unit.activity.value, unit.activity.object))
    except Unknown as reason:
        return f"not fused: {reason}"
    return f'checkpoint={{{name}: "fused"}}: the tape of one iteration, both of whose sweeps run; nothing runs again'


def _additions(work: Sequence[Size]) -> str:
    return total_of(work).removesuffix(" bytes").removeprefix("at most ")


def _state(held: int, memory: Sequence[Memory], sizes: Sequence[Bytes | None], words: Words) -> str:
    total, more, unknown = constant(held), constant(0), 0
    for piece in memory:
        size = _bytes_of(piece, sizes, words)
        if size is None:
            unknown += 1
        elif piece.cover is None:
            total = total + size
        else:
            more = more + size
    text = f"{total} bytes"
    text = f"{text} and {unknown} piece{'s' if unknown > 1 else ''} of memory" if unknown else text
    rest = f"{more} bytes"
    return text if rest == "0 bytes" else f"{text} (and {rest} unless iterations write all that they read of these)"


def _bytes_of(piece: Memory, sizes: Sequence[Bytes | None], words: Words) -> Formula | None:
    obj = piece.object
    if obj is None:
        return None
    site: Any = obj.site
    if isinstance(site, Argument) and site in words.root.args:
        size = sizes[site.index] if site.index < len(sizes) else None
        return None if size is None else _formula(size, words)
    return constant(obj.size) if obj.size is not None else None


def _formula(size: Bytes, words: Words) -> Formula | None:
    if isinstance(size, int):
        return constant(size)
    if isinstance(size[0], int):
        return of_atom(Symbol(words.names[size[0]]))
    op, left, right = size[0], _formula(size[1], words), _formula(size[2], words)
    if left is None or right is None:
        return None
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return apply("//", left, right)
        case _:
            return None
