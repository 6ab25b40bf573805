"""The errors of the engine: what, where (source line), why it is active, the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, PTR, Kind
from irgrad.engine.ir.model import Function, InlineAsm, Instruction, Value
from irgrad.engine.ir.types import F64, Type
from irgrad.rules.errors import MissingRuleError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from irgrad.engine.differentiate.shared.unit import Unit

BITS = "no derivative goes through the bits of a float"
"""Why whatever computes with them is refused."""

_MAX_CHAIN = 16
_MAP = "keep the floats in an array, and their indices in the map"
_INSTEAD = {
    "(std/hash_map.zig:": f"{_MAP}; or std.AutoArrayHashMapUnmanaged",
    "(src/raw/mod.rs:": f"{_MAP}, a HashMap<K, usize>; or sort a Vec of pairs",
}
"""Files of libraries (Zig's and Rust's hash maps): what does the same and is followed."""


def place(unit: Unit, instr: Instruction) -> str:
    """`@kernel (file.c:41:5), block %for.body`; what an optimiser made has the line of what it is made of."""
    block = instr.block
    fn = block.function if block is not None else None
    name = f"@{fn.name}" if fn is not None else "a function"
    line = _nearest_line(unit, instr)
    return f"{name}{f' ({line})' if line else ''}, block %{block.name if block is not None else '?'}"


def _nearest_line(unit: Unit, instr: Instruction) -> str:
    from irgrad.engine.ir.locations import locate

    work = [instr]
    for one in work:  # grows while it runs
        line = locate(unit.module, one)
        if line or len(work) > _MAX_CHAIN:
            return line
        work += [operand for operand in one.operands if isinstance(operand, Instruction) and operand not in work]
    return ""


def refuse(unit: Unit, instr: Instruction, what: str, fix: str = "", because: str = "") -> Unsupported:
    """An Unsupported error about one instruction."""
    from irgrad.engine.ir.printer import instruction_to_text

    where = place(unit, instr)
    fix = next((advice for file, advice in _INSTEAD.items() if file in where), fix)
    return Unsupported(
        what,
        where=where,
        which=instruction_to_text(instr).strip(),
        because=because or unit.activity.why(instr) or "an active value flows through it",
        fix=fix or "compute this part in floating point, or keep it out of what depends on the active arguments",
    )


def refuse_uses(
    unit: Unit, instr: Instruction, addresses: Sequence[Value], *kinds: Kind | None, forward: bool = False,
    casts: Mapping[Kind, Instruction] | None = None,
) -> Unsupported:  # fmt: skip
    """An Unsupported error about memory that is used as two kinds that contradict each other, and where it is: those
    that are given, else any of a float or a pointer. `forward`: forward mode would do; `casts`: uses of registers."""
    from irgrad.engine.ir.locations import locate

    uses = dict(casts or {})
    uses |= {kind: where for address in addresses for kind, where in unit.types.uses(address).items()}
    found = [kind for kind in kinds if kind not in (None, CONFLICT)]
    found += [kind for kind in uses if kind not in found]
    found += [kind for kind in (F64, PTR) if kind not in found and len(found) < 2]
    said = []
    for kind in sorted(found, key=lambda kind: not isinstance(kind, Type))[:2]:
        line = locate(unit.module, uses[kind]) if kind in uses else ""
        said.append(f"`{kind}`" + (f" ({line})" if line else ""))
    return refuse(
        unit, instr, f"the bytes that are moved here are used as {' and as '.join(said)}",
        because="the derivative depends on which of them the bytes hold, and only the program knows that",
        fix="keep floats, pointers and other data in members of their own, and copy structs as structs"
            f"{', or use forward mode' if forward else ''}",
    )  # fmt: skip


def refuse_bits(unit: Unit, instr: Instruction, what: str) -> Unsupported:
    """The same about arithmetic on the bits of a float."""
    return refuse(
        unit, instr, what, because=BITS,
        fix="write it with floating-point operations, such as ldexp, frexp, copysign, fabs or log2; or give it a "
        'function of its own with a rule: @rule(lib.function("name")), or inactive(lib.function("name")); in a program '
        "__enzyme_register_gradient_name, __enzyme_register_derivative_name, or __enzyme_inactivefn_name",
    )  # fmt: skip


def _why(unit: Unit, call: Instruction) -> str:
    """Why a call needs a derivative: its result is active, a number that it takes is, or memory is that it is given."""
    activity = unit.activity
    if not activity.value(call):
        numbers = [arg for arg in call.args if activity.value(arg)]
        given = [str(n) for n, arg in enumerate(call.args) if activity.pointer(arg)]
        if given and not numbers:
            many = len(given) > 1
            return f"argument{'s' * many} {', '.join(given)} point{'s' * (not many)} to active memory"
        if numbers:
            return activity.why(numbers[0])
    return activity.why(call) or "an active value flows through it"


def missing(unit: Unit, instr: Instruction) -> MissingRuleError:
    """An active call to a function with neither body nor rule."""
    from irgrad.engine.ir.printer import instruction_to_text
    callee = instr.callee
    name = callee.name if isinstance(callee, Function) else None
    because = _why(unit, instr)
    if isinstance(callee, InlineAsm):
        return MissingRuleError(
            "inline assembly that active values go through",
            where=place(unit, instr), which=instruction_to_text(instr).strip(), because=because,
            fix='write it in C, or put it into a shared library of its own (link=["./lib.so"]) with a rule, '
            '@rule("name"), or inactive("name"); in a program, into a function with a registered derivative, or '
            '__attribute__((annotate("enzyme_inactive"))) where it carries none',
        )  # fmt: skip
    if name is None:
        return MissingRuleError(
            "an active call through a pointer whose targets are not known",
            where=place(unit, instr), which=instruction_to_text(instr).strip(), because=because,
            fix="take the function from a table in the same program, or call it directly",
        )  # fmt: skip
    if name.startswith("irgrad.host."):
        return MissingRuleError(
            "the derivative of a host rule", where=place(unit, instr), because="its body is Python: nothing follows it",
            fix="partials or a rule with `ctx`, which are differentiated again",
        )  # fmt: skip
    if name.startswith("llvm.x86."):
        return MissingRuleError(
            "an instruction of this CPU that has no derivative here",
            where=place(unit, instr), which=instruction_to_text(instr).strip(),
            because=f"{because}, and `{name}` is not among the intrinsics that become plain arithmetic: it rounds "
            "towards one side, or takes numbers apart",
            fix="round to the nearest, or write this part in plain C, which the compiler vectorises, "
            f'or @rule("{name}")',
        )  # fmt: skip
    return MissingRuleError(
        "no derivative is known for this call",
        where=place(unit, instr),
        which=f"{instruction_to_text(instr).strip()}\n{_prototype(instr, name)}",
        because=f"{because}, and `{name}` has neither a body nor a rule{_types(unit, instr, name)}",
        fix=f"{_template(unit, instr, name)}\nor "
        f'load(..., link=["FILE.c"]) with the source of {name} (a shared library has none), or inactive("{name}")',
    )


def _prototype(instr: Instruction, name: str) -> str:
    from irgrad.engine.ir.c_prototype import c_prototype

    assert instr.call is not None
    return c_prototype(name, instr.call.fn_type, [""] * len(instr.call.fn_type.params))


def _types(unit: Unit, instr: Instruction, name: str) -> str:
    """The activity of each argument, and the rule that fits best."""
    from irgrad.engine.differentiate.shared.rule_sites import call_types
    from irgrad.rules.report import nearest

    rules = unit.rules
    prototype = rules.prototype(name) if rules is not None else None
    types = call_types(unit, instr, prototype, literals=False)
    lines = []
    for i, (kind, value) in enumerate(zip(types[2:], instr.args, strict=True)):
        why = unit.activity.why(value) if str(kind).startswith("Active") else ""
        lines.append(f"  argument {i}: {kind}{f' ({why})' if why else ''}")
    close = nearest([r for t in rules.tables(name) for r in t.rules], types) if rules is not None else None
    if close is not None:
        lines.append(f"the nearest rule is {close[0].signature} at {close[0].place}: {', '.join(close[1])}")
    return "\n" + "\n".join(lines)


def _template(unit: Unit, instr: Instruction, name: str) -> str:
    from irgrad.engine.differentiate.shared.rule_sites import call_types
    from irgrad.rules.report import template

    return template(name, call_types(unit, instr, None, literals=False)[2:])
