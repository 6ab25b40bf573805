"""Which row an instruction or call has: that of a rule of the user, or of the tables."""

from __future__ import annotations

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.primitives.rows import Application
from irgrad.engine.differentiate.shared.rule_sites import Site, operand_types, site_of
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Instruction
from irgrad.rules import lookup
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.expr import ZERO, Arg, Const, Expr, Op
from irgrad.rules.expressions.row import Row
from irgrad.rules.keys import opcode

__all__ = ["application", "gives_row"]


def application(unit: Unit, instr: Instruction) -> Application | None:
    """The row of an opcode or of a direct call to a known function; None when there is none."""
    if unit.rules is not None:
        ruled = _ruled_row(unit, instr)
        if ruled is not None:
            return ruled
    if instr.opcode == "call":
        callee = resolve(instr.callee)
        if not isinstance(callee, Function) or callee.name is None or not callee.is_declaration:
            return None
        match = lookup.find(callee.name)
        if match is None or match.packed:  # two places of the signature in one <2 x float>: `desugar` takes it apart
            return None
        parts = any(isinstance(o, tuple) and o[0] == "ret" for o in match.row.outputs)
        type_ = instr.type.elem if parts and isinstance(instr.type, ty.VectorType) else None
        return Application(match.row, instr, instr.args[: len(match.row.signature)], type_)
    row = lookup.opcode_row(instr.opcode)
    return Application(row, instr, instr.operands) if row is not None else None


def gives_row(site: Site) -> bool:
    """Whether the rule of a call is a row of partial derivatives, like those of the tables."""
    form = site.rule.form
    return form in ("partials", "linear") or (form == "stop" and not any(a.type.is_ptr for a in site.call.args))


def _ruled_row(unit: Unit, instr: Instruction) -> Application | None:
    """The row that a rule of the user gives for an instruction."""
    assert unit.rules is not None
    if not instr.is_call:
        return _opcode_row(unit, instr)
    site = site_of(unit, instr)
    if site is None or not gives_row(site):
        return None
    letters = "".join(_letter(a.type, site) for a in instr.args)
    if site.rule.form == "stop":
        return Application(Row(str(site.rule.key), letters, ((ZERO,) * len(letters),)), instr, instr.args)
    if site.rule.form == "linear":
        return Application(_linear(site, letters), instr, instr.args)
    return Application(site.rule.partials(letters), instr, instr.args)


def _linear(site: Site, letters: str) -> Row:
    """Partials of a linear function: its values at the unit vectors."""
    def partial(of: int) -> Expr:
        operands = [Arg(i) if c != "f" else Const(1.0 if i == of else 0.0) for i, c in enumerate(letters)]
        return Op(f"call:{site.callee.name}", tuple(operands))

    partials = tuple(partial(i) if c == "f" else ZERO for i, c in enumerate(letters))
    return Row(str(site.rule.key), letters, (partials,), linear=True)


def _opcode_row(unit: Unit, instr: Instruction) -> Application | None:
    assert unit.rules is not None
    key = opcode(instr.opcode)
    for frozen in unit.rules.snapshot.layers:
        if key in frozen.rules:
            for table in frozen.tables((key,), ""):
                rule = table.resolve(operand_types(unit, instr))
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
