"""Rules for whole batches: functions in C that are called once for all samples of a block.

    foreign("solve", Batched[Duplicated[Ptr[f64]], SoA], ..., primal="solve_all", reverse="solve_reverse_all")

A derivative is made for one sample, with the rule for one sample. The functions that it calls for the ruled one are
marked with what a batch may call in their place (`mark`). Where the derivative is widened over samples, a call of a
marked function becomes one call of the function in C (`widen/twins.py`), if the arguments that differ between samples
are those that the rule's types say; otherwise it is refused, and samples run one after the other.

    void f_all(A *x, const T *a, T *y, long samples)                                  primal, or:
    void f_augmented_all(A *x, const T *a, T *y, void **tape, long samples)
    void f_reverse_all(A *x, A *x_d, const T *a, T *a_d, const T *y_d, [void *tape,] long samples)
    void f_forward_all(A *x, A *x_d, const T *a, const T *a_d, T *y, T *y_d, long samples)

The samples of an element are side by side; numbers that differ, all results, adjoints and tangents are in memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from irgrad.engine.ir.model import Function
from irgrad.engine.widen.twins import ATTRIBUTE, MARK, Twin
from irgrad.rules.definitions.types import Batched, Kind, SoA
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Shape
    from irgrad.engine.differentiate.shared.rule_sites import Site
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.rules.definitions.dispatch import Table

__all__ = ["mark", "taped"]

_PLAIN = re.compile(r"[-\w.$]+")
_PLACE = re.compile(r"((?:local_)?unnamed_addr\s*)?")


# -- when a derivative is made -----------------------------------------------------------------------------------------


def taped(unit: Unit, site: Site) -> bool:
    """Whether a batch may call a function that makes a tape."""
    if unit.rules is None or unit.width != 1 or unit.mode != "reverse":
        return False
    return any("augmented" in options for options in _choices(unit.rules.tables(site.callee.name or ""), site).values())


def mark(
    unit: Unit, site: Site, shape: Shape, derived: Function, primal: Function | None = None, *, copies: bool = False
) -> bool:
    """Note on the function that derives a call, and on that which makes it, what a batch may call in their place;
    returns whether there is anything.

    copies: the tape of one sample holds more than the result: functions without a tape of their own do not fit
    """
    if unit.rules is None or unit.width != 1:
        return False
    sizes = _sizes(unit, site)
    chosen = _choices(unit.rules.tables(site.callee.name or ""), site) if sizes is not None else {}
    if copies:
        chosen = {mask: options for mask, options in chosen.items() if "augmented" in options}
    if not chosen or sizes is None:
        return False
    kinds = "".join("s" if s else "a" if a else "." for s, a in zip(shape.shadow, shape.adjoint, strict=True))
    facts = unit.rules.facts(site.callee)
    written = None if facts is None else facts.writes
    writes = "".join("w" if size and (written is None or i in written) else "." for i, size in enumerate(sizes))
    inner = "shadowed" if "augmented" in site.rule.options else "augmented"
    making = [] if primal is None else [("primal" if primal is site.callee else inner, primal)]
    for role, fn in ((unit.mode, derived), *making):
        names: dict[str, str] = {}
        for mask, options in chosen.items():
            tape = "augmented" in options and role != "forward"
            name = options.get(role if role in ("reverse", "forward") else "augmented" if tape else "primal")
            if name is not None:
                unit.rules.want(name)
                names[mask] = f"+{name}" if tape else name
        _attach(fn, Twin(role, kinds, writes, sizes, shape.active, names).text)
    return True


def _choices(tables: list[Table], site: Site) -> dict[str, dict[str, str]]:
    """The rule that a batch gets for each set of arguments that may differ between samples: its functions."""
    found: dict[str, dict[str, str]] = {}
    for table in tables:
        for rule in table.rules:
            if not rule.batched or len(rule.types) != len(site.types):
                continue
            mask = "".join("B" if issubclass(t, Batched) else "." for t in rule.types[2:])
            asked = (Batched[t, SoA] if m == "B" else t for t, m in zip(site.types[2:], mask, strict=True))
            best = table.resolve((*site.types[:2], *asked)) if mask not in found else None
            if best is not None and best.batched:
                found[mask] = {k: v for k, v in best.options.items() if isinstance(v, str)}
                bad = [name for name in found[mask].values() if not _PLAIN.fullmatch(name)]
                if bad:
                    raise RuleError(f"`{bad[0]}` is no name of a function in C", where=best.place)
    return found


def _sizes(unit: Unit, site: Site) -> tuple[int, ...] | None:
    """Bytes of an element behind each pointer, 0 for numbers; None where one is not known."""
    found: list[int] = []
    for arg, kind in zip(site.call.args, site.types[2:], strict=True):
        element = next(iter(kind.parameters), None)
        inner = next(iter(getattr(element, "parameters", ())), None)
        name = inner.__name__ if isinstance(inner, Kind) else ""
        size = int(name[1:]) // 8 if re.fullmatch(r"[fi](8|16|32|64)", name) else 0
        if arg.type.is_ptr and not size:
            return None
        found.append(size if arg.type.is_ptr else 0)
    return tuple(found)


def _attach(fn: Function, text: str) -> None:
    place = _PLACE.match(fn.tail)
    at = place.end() if place is not None else 0
    rest = ATTRIBUTE.sub("", fn.tail[at:])
    fn.tail = f'{fn.tail[:at]}noinline "{MARK}"="{text}" {rest}'.strip()
