"""Calls whose derivative comes from a rule of the user.

Partials become a row like those of the tables, and take the same way. The other forms become functions of the same
shape as the derivatives of a callee with a body (`custom.py`), so that sweeps call them like those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Instruction
from irgrad.engine.transforms.aliased import refuse_rule
from irgrad.engine.transforms.left import After
from irgrad.engine.transforms.rows import Application
from irgrad.engine.transforms.rule_lanes import check_lanes
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.engine.analyses.rulebook import Site
    from irgrad.engine.transforms.custom import Pair
    from irgrad.engine.transforms.reverse import Reverse
    from irgrad.engine.transforms.unit import Unit
    from irgrad.rules.expr import Expr
    from irgrad.rules.row import Row

__all__ = ["reverse_pair", "ruled_row", "ruled_site", "without_rule"]


def ruled_site(unit: Unit, instr: Instruction) -> Site | None:
    """The rule for an active call if it is none that gives a row."""
    if unit.rules is None:
        return None
    site = unit.rules.site(unit, instr)
    if site is None or _is_row(site):
        return None
    refuse_rule(unit, instr)
    check_lanes(unit, instr, site)
    return site


def reverse_pair(r: Reverse, instr: Instruction, site: Site) -> Pair:
    """The functions of a ruled call in reverse mode, written on first use."""
    from irgrad.engine.transforms.custom import reverse_of

    unit = r.unit
    if instr not in unit.pairs:
        unit.pairs[instr] = reverse_of(unit, site, After(r.clobber, instr))
    return unit.pairs[instr]


def _is_row(site: Site) -> bool:
    form = site.rule.form
    return form in ("partials", "linear") or (form == "stop" and not any(a.type.is_ptr for a in site.call.args))


def ruled_row(unit: Unit, instr: Instruction) -> Application | None:
    """The row that a rule of the user gives for an instruction."""
    assert unit.rules is not None
    if not instr.is_call:
        return _opcode_row(unit, instr)
    site = unit.rules.site(unit, instr)
    if site is None or not _is_row(site):
        return None
    letters = "".join(_letter(a.type, site) for a in instr.args)
    if site.rule.form == "stop":
        from irgrad.rules.expr import ZERO
        from irgrad.rules.row import Row

        return Application(Row(str(site.rule.key), letters, ((ZERO,) * len(letters),)), instr, instr.args)
    if site.rule.form == "linear":
        return Application(_linear(site, letters), instr, instr.args)
    return Application(site.rule.partials(letters), instr, instr.args)


def _linear(site: Site, letters: str) -> Row:
    """Partials of a linear function: its values at the unit vectors."""
    from irgrad.rules.expr import ZERO, Arg, Const, Op
    from irgrad.rules.row import Row

    def partial(of: int) -> Expr:
        operands = [Arg(i) if c != "f" else Const(1.0 if i == of else 0.0) for i, c in enumerate(letters)]
        return Op(f"call:{site.callee.name}", tuple(operands))

    partials = tuple(partial(i) if c == "f" else ZERO for i, c in enumerate(letters))
    return Row(str(site.rule.key), letters, (partials,), linear=True)


def _opcode_row(unit: Unit, instr: Instruction) -> Application | None:
    from irgrad.rules.keys import opcode

    assert unit.rules is not None
    key = opcode(instr.opcode)
    for frozen in unit.rules.snapshot.layers:
        if key in frozen.rules:
            for table in frozen.tables((key,), ""):
                rule = table.resolve(unit.rules.operand_types(unit, instr))
                if rule is not None:
                    return Application(rule.partials("f" * len(instr.operands)), instr, instr.operands)
    return None


def _letter(type_: ty.Type, site: Site) -> str:
    if type_.is_fp:
        return "f"
    if type_.is_int:
        return "i"
    if type_.is_ptr:
        return "p"
    raise RuleError(
        f"the rule for `{site.rule.key}` gives partials, the call has an argument of type `{type_}`",
        where=site.rule.place,
        because="partials are expressions of single numbers",
        fix="pass the numbers one by one, or write a rule with `ctx`",
    )


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
                if not settled and (not direct or rules.site(unit, instr) is None):
                    found[callee] = None
    return list(found)
