"""Calls whose derivative comes from a rule of the user.

Partials become a row like those of the tables, and take the same way. The other forms become functions of the same
shape as the derivatives of a callee with a body (`custom.py`), so that sweeps call them like those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.differentiate.custom_rules.custom import Pair, reverse_of
from irgrad.engine.differentiate.custom_rules.memory_snapshot import After
from irgrad.engine.differentiate.custom_rules.rule_lanes import check_lanes
from irgrad.engine.differentiate.primitives.application import gives_row
from irgrad.engine.differentiate.shadow.runtime_activity import refuse_rule
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.differentiate.shared.rule_sites import Site, site_of
from irgrad.engine.ir.model import Function, Instruction, Value

if TYPE_CHECKING:
    from irgrad.engine.analyses.evolution.clobber import Clobber
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["reverse_pair", "ruled_site", "without_rule"]


def ruled_site(unit: Unit, instr: Instruction) -> Site | None:
    """The rule for an active call if it is none that gives a row."""
    site = site_of(unit, instr)
    if site is None or gives_row(site):
        return None
    refuse_rule(unit, instr)
    check_lanes(unit, instr, site)
    if site.rule.layer == "blas":
        _refuse_overlap(unit, site)
    return site


def _refuse_overlap(unit: Unit, site: Site) -> None:
    """BLAS and LAPACK do not allow an argument that is written to overlap another: adjoints would be lost. Raises
    Unsupported where two arguments are seen to be one and the same place."""
    facts = unit.rules.facts(site.callee) if unit.rules is not None else None
    args = site.call.args
    places = {i: _place(unit, arg) for i, arg in enumerate(args) if arg.type.is_ptr}
    for written in (facts.writes or ()) if facts is not None else ():
        for other, place in places.items():
            if other != written and (args[other] is args[written] or (place and place == places.get(written))):
                names = site.rule.names
                raise refuse(
                    unit, site.call, f"`{names[other]}` and `{names[written]}` are the same memory",
                    because=f"`{site.callee.name}` writes to `{names[written]}`, which must overlap no other argument",
                    fix="copy one of them, or leave the call out where nothing is to be done",
                )  # fmt: skip


def _place(unit: Unit, pointer: Value) -> tuple[int, int] | None:
    """(object, offset) where both are known."""
    spots = unit.types.ranges.places(pointer)
    if len(spots) != 1:
        return None
    ((bit, offsets),) = spots.items()
    known = unit.pointers.objects[bit].kind in ("alloca", "global", "argument")
    return (bit, offsets.start) if bit and known and offsets.exact else None


def reverse_pair(unit: Unit, clobber: Clobber, instr: Instruction, site: Site) -> Pair:
    """The functions of a ruled call in reverse mode, written on first use."""
    pairs = unit.get(_Pairs).made
    if instr not in pairs:
        pairs[instr] = reverse_of(unit, site, After(clobber, instr))
    return pairs[instr]


class _Pairs:
    """The functions of the ruled calls of a derivation."""

    def __init__(self, unit: Unit) -> None:
        self.made: dict[Instruction, Pair] = {}


def without_rule(unit: Unit) -> list[Function]:
    """Functions with a body of which an active call has no rule: they are differentiated. Raises MissingRuleError."""
    rules = unit.rules
    if rules is None or not rules.hidden:
        return []
    found: dict[Function, None] = {}
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            if not instr.is_call or not unit.activity.call(instr):
                continue
            for callee in unit.pointers.callees(instr) or ():
                if callee not in rules.hidden:
                    continue
                facts = rules.facts(callee)
                settled = facts is not None and (facts.inactive or facts.kind in ("allocator", "deallocator"))
                direct = instr.callee is callee or len(unit.pointers.callees(instr) or ()) == 1
                if not settled and (not direct or site_of(unit, instr) is None):
                    found[callee] = None
    return list(found)
