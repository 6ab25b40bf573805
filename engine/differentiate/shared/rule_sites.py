"""Which rule a call gets: the types of its arguments as dispatch sees them, and the rule that they choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.differentiate.shared.rulebook import NAMES, Rulebook
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstFloat, ConstInt, Function, Instruction, Value
from irgrad.rules.definitions.types import (
    SCALARS,
    Active,
    Array,
    Batched,
    Const,
    Duplicated,
    DuplicatedNoNeed,
    Element,
    Kind,
    Ptr,
    literal,
    mode_type,
)
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.rules.definitions.definition import Rule
    from irgrad.rules.definitions.prototype import Prototype

__all__ = ["Site", "call_types", "operand_types", "scalar_of", "site_of"]


@dataclass(frozen=True, slots=True)
class Site:
    """A call together with its rule and the types by which that was chosen: (mode, result, *arguments)."""

    call: Instruction
    callee: Function
    rule: Rule
    types: tuple[Kind, ...]
    prototype: Prototype | None


class _Sites:
    """The rules that were found for the calls of a derivation."""

    def __init__(self, unit: Unit) -> None:
        self.found: dict[Instruction, Site | None] = {}


def site_of(unit: Unit, call: Instruction) -> Site | None:
    """The rule for an active call, None when none fits. Raises AmbiguousRuleError."""
    if unit.rules is None:
        return None
    sites = unit.get(_Sites).found
    if call not in sites:
        sites[call] = _site(unit, unit.rules, call)
    return sites[call]


def _site(unit: Unit, rules: Rulebook, call: Instruction) -> Site | None:
    callee = resolve(call.callee)
    if not isinstance(callee, Function) or not callee.name:
        return None
    tables = rules.tables(callee.name)
    if not tables:
        return None
    prototype = rules.prototype(callee.name)
    if prototype is not None and len(prototype.params) != len(call.args):
        prototype = None
    types = call_types(unit, call, prototype, any(t.wants_literals for t in tables))
    for table in tables:
        rule = table.resolve(types)
        if rule is not None:
            return None if rule.form == "opt_out" else Site(call, callee, rule, types, prototype)
    alone = next((rule for table in tables for rule in table.rules if rule.batched and _single(rule, types)), None)
    if alone is not None:
        raise RuleError(f"`{callee.name}` has a rule for whole batches and none for one sample", where=alone.place,
                        which=str(alone.signature), because="a derivative is made for one sample, then for a batch",
                        fix="a rule for one sample as well, with the same types without Batched")  # fmt: skip
    return None


def operand_types(unit: Unit, instr: Instruction) -> tuple[Kind, ...]:
    """(mode, result, *operands) of an instruction on floats."""
    mode = mode_type(unit.mode, unit.width)
    return (mode, _result(unit, instr), *(_argument(unit, o, None, False) for o in instr.operands))


def call_types(
    unit: Unit, call: Instruction, prototype: Prototype | None, literals: bool = True
) -> tuple[Kind, ...]:
    """(mode, result, *arguments) of a call."""
    kinds = [mode_type(unit.mode, unit.width), _result(unit, call)]
    for i, arg in enumerate(call.args):  # a call may have more arguments than the prototype
        known = prototype.params[i] if prototype is not None and i < len(prototype.params) else None
        kinds.append(_argument(unit, arg, known, literals))
    return tuple(kinds)


def _single(rule: Rule, types: tuple[Kind, ...]) -> bool:
    """Whether a rule for batches fits a call of one sample, but for the batch."""
    wanted = [t.parameters[0] if issubclass(t, Batched) else t for t in rule.types]
    return len(wanted) == len(types) and all(issubclass(t, w) for t, w in zip(types, wanted, strict=True))


def scalar_of(type_: ty.Type) -> Kind:
    """The element of a type by value."""
    name = str(type_)
    return SCALARS.get(NAMES.get(name, name), Element)


def _result(unit: Unit, call: Instruction) -> Kind:
    if call.type is ty.VOID:
        return Const
    if call.type.is_ptr:
        return Duplicated[Ptr] if unit.activity.pointer(call) else Const[Ptr]
    base = Active if unit.differentiable(call) else Const
    return base[scalar_of(call.type)]


def _argument(unit: Unit, arg: Value, param: object, literals: bool) -> Kind:
    if arg.type.is_ptr:
        element = _pointer_element(unit, arg, param)
        if not unit.activity.pointer(arg):
            return Const[element]
        return (DuplicatedNoNeed if unit.discarded(arg) else Duplicated)[element]
    element = scalar_of(arg.type)
    if unit.differentiable(arg):
        return Active[element]
    if literals and isinstance(arg, ConstInt):
        return Const[literal(arg.value, element)]
    if literals and isinstance(arg, ConstFloat):
        from irgrad.engine.ir.model import bits_to_float

        return Const[literal(bits_to_float(arg.type, arg.bits), element)]
    return Const[element]


def _pointer_element(unit: Unit, arg: Value, param: object) -> Kind:
    from irgrad.rules.definitions.prototype import Param

    if isinstance(param, Param):
        element = SCALARS.get(param.dtype)
        if param.kind == "array" and element is not None:
            return Array[element, len(param.extents)]
        return Ptr[element] if element is not None else Ptr
    for _, kind in unit.types.access(arg, 8):
        if isinstance(kind, ty.FloatType):
            return Ptr[scalar_of(kind)]
        break
    return Ptr
