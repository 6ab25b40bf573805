"""Where the derivative of each call of a kernel comes from: `explain_rules`, and the same as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irgrad.engine.report.facts import Place, RuleUse
from irgrad.rules.layers import current
from irgrad.rules.report import Text

if TYPE_CHECKING:
    from irgrad.engine.ir.model import Instruction
    from irgrad.engine.kernel.kernel import Kernel

__all__ = ["analysed_calls", "explain_rules", "rule_uses"]

_MARKS = ("llvm.lifetime", "llvm.dbg", "llvm.assume", "llvm.experimental.noalias")


def explain_rules(kernel: Kernel, mode: str = "reverse") -> Text:
    """One line for each function that the kernel calls: its rule and where that stands, its body, the tables, nothing.

    mode: "forward" or "reverse". All floating-point arguments count as differentiated. Functions without a rule are
    inlined before, and not listed. Raises what differentiating raises.

        >>> f = irgrad.load("double sin(double); double f(double x) { return sin(x); }").kernel("f")
        >>> print(irgrad.explain_rules(f))
        llvm.sin.f64: by the tables
    """
    from irgrad.engine.kernel.select import plain_kernel

    kernel = plain_kernel(kernel)
    unit, book = analysed_calls(kernel, mode, [n for n, slot in enumerate(kernel.primal.slots) if slot.differentiable])
    lines = {f"{use.callee}: {use.text}": None for use in rule_uses(kernel, unit, book)}
    return Text("\n".join(lines) or "no calls are left: everything was inlined")


def rule_uses(
    kernel: Kernel, unit: Any, book: Any, place: Callable[[Instruction], Place] = lambda _: Place()
) -> tuple[RuleUse, ...]:
    """The functions that an analysed kernel calls, one row for each way in which their calls are differentiated; place:
    of a call. Rules of functions that nothing calls come last."""
    from irgrad.engine.analyses.memory.call_effects import facts_of
    from irgrad.engine.analyses.memory.objects import resolve
    from irgrad.engine.ir.model import Function

    found: dict[RuleUse, dict[Place, None]] = {}
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            callee = resolve(instr.callee) if instr.is_call else None
            if isinstance(callee, Function) and callee.name and not callee.name.startswith(_MARKS):
                use = _use(unit, book, instr, callee, facts_of(book.module, callee))
                places = found.setdefault(use, {})
                if at := place(instr):
                    places[at] = None
    rows = [replace(use, calls=tuple(places)) for use, places in found.items()]
    called = {use.callee for use in rows}
    for missed in sorted(kernel.primal.kept(current()) - called):
        rows.append(RuleUse(missed, "unused", defined=str(book.tables(missed)[0].rules[0].place)))
    return tuple(rows)

def analysed_calls(kernel: Kernel, mode: str, active: Iterable[int], width: int = 1) -> tuple[Any, Any]:
    """The kernel analysed for a derivative of these slots, with every function that has a rule out of line: the unit
    and the rulebook; the rule of each call is `rule_sites.site_of(unit, instr)`."""
    from irgrad.engine.codegen.passes import Code, Settings, run_passes
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.differentiate.shared.request import Request
    from irgrad.engine.differentiate.shared.rulebook import Rulebook
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.kernel.normal_form import normal_name, normal_text
    from irgrad.engine.pipeline.derivatives import analysed
    from irgrad.engine.pipeline.stages import NORMALISE

    program, source, rules = kernel.primal, kernel.source, current()
    kept = program.kept(rules)
    name = normal_name(source.name)
    _ = program.stage  # validates the text
    text = source.text + "\n" + normal_text(source.name, source.signature, inline=False)
    module = read(prepare(text, [name], kept.__contains__), roots=[name])
    book = module.rules = Rulebook(rules, source.digest, module, frozenset(program.symbols))
    book.hide()
    run_passes(NORMALISE, Code(model=module), Settings((name,)))
    chosen = set(active)
    request = Request(
        name, "jvp" if mode == "forward" else "vjp", width=width,
        activity=tuple("dup" if n in chosen else "const" for n in range(len(program.slots))),
        elements=tuple(slot.dtype.memory if slot.dtype.is_float else "" for slot in program.slots),
    )  # fmt: skip
    return analysed(module, module.functions[name], request), book


def _use(unit: Any, book: Any, instr: Any, callee: Any, known: Any) -> RuleUse:
    from irgrad.engine.differentiate.shared.rule_sites import call_types, site_of
    from irgrad.rules.lookup import find
    from irgrad.rules.report import nearest

    name = callee.name
    if known is not None and known.inactive:
        return RuleUse(name, "inactive")
    if not unit.activity.call(instr):
        return RuleUse(name, "repeated")
    site = site_of(unit, instr)
    types = call_types(unit, instr, book.prototype(name), literals=False)
    shown = tuple(map(str, types[2:]))
    if site is not None:
        rule = site.rule
        return RuleUse(name, "rule", shown, str(rule.signature), str(rule.place), str(rule.layer))
    rules = [rule for table in book.tables(name) for rule in table.rules]
    close = nearest(rules, types)
    missed = f"{close[0].signature} at {close[0].place} does not fit: {', '.join(close[1])}" if close else ""
    if not callee.is_declaration:
        return RuleUse(name, "body", shown, missed=missed)
    if (known is not None and not rules) or find(name) is not None:
        return RuleUse(name, "tables")
    return RuleUse(name, "nothing", shown, missed=missed)
