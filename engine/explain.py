"""`explain_rules`: where the derivative of each call of a kernel comes from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from irgrad.engine.kernel import Kernel
from irgrad.rules.layers import current
from irgrad.rules.report import Text

__all__ = ["analysed_calls", "explain_rules"]

_MARKS = ("llvm.lifetime", "llvm.dbg", "llvm.assume", "llvm.experimental.noalias")


def explain_rules(kernel: Kernel, mode: str = "reverse") -> Text:
    """One line for each function that the kernel calls: its rule and where that stands, its body, the tables, nothing.

    All floating-point arguments count as differentiated. Functions without a rule are inlined before, and not listed.
    """
    from irgrad.engine.analyses.effects import facts_of
    from irgrad.engine.analyses.objects import resolve
    from irgrad.engine.ir.model import Function

    unit, book = analysed_calls(kernel, mode, [n for n, slot in enumerate(kernel.primal.slots) if slot.differentiable])
    lines: dict[str, None] = {}
    for fn in unit.pointers.functions:
        for instr in fn.instructions():
            callee = resolve(instr.callee) if instr.is_call else None
            if isinstance(callee, Function) and callee.name and not callee.name.startswith(_MARKS):
                lines[f"{callee.name}: {_why(unit, book, instr, callee, facts_of(book.module, callee))}"] = None
    called = {line.partition(":")[0] for line in lines}
    for missed in sorted(kernel.primal.kept(current()) - called):
        first = book.tables(missed)[0].rules[0]
        note = "the file may have been compiled with inlining before: load the source, or declare it noinline"
        lines[f"{missed}: the rule at {first.place} is not used: nothing calls it ({note})"] = None
    return Text("\n".join(lines) or "no calls are left: everything was inlined")


def analysed_calls(kernel: Kernel, mode: str, active: Iterable[int], width: int = 1) -> tuple[Any, Any]:
    """The kernel analysed for a derivative of these slots, with every function that has a rule out of line: the unit
    and the rulebook, which knows the rule of each call (`book.site(unit, instr)`)."""
    from irgrad.engine.analyses.rulebook import Rulebook
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.ir.reader import read
    from irgrad.engine.normal import normal_name, normal_text
    from irgrad.engine.transforms.canonical import canonicalise_module
    from irgrad.engine.transforms.derive import analysed

    program, source, rules = kernel.primal, kernel.source, current()
    kept = program.kept(rules)
    name = normal_name(source.name)
    _ = program.stage  # validates the text
    text = source.text + "\n" + normal_text(source.name, source.signature, inline=False)
    module = read(prepare(text, [name], kept.__contains__), roots=[name])
    book = module.rules = Rulebook(rules, source.digest, module, frozenset(program.symbols))
    book.hide()
    root = module.functions[name]
    canonicalise_module(module, root)
    buffers = [slot.dtype.memory if slot.dtype.is_float else "" for slot in program.slots]
    return analysed(module, root, set(active), buffers, mode, False, (), width), book


def _why(unit: Any, book: Any, instr: Any, callee: Any, known: Any) -> str:
    from irgrad.rules.lookup import find
    from irgrad.rules.report import nearest

    if known is not None and known.inactive:
        return "inactive"
    if not unit.activity.call(instr):
        return "repeated (all its arguments are Const, or its result is not used)"
    site = book.site(unit, instr)
    types = book.types(unit, instr, book.prototype(callee.name), literals=False)
    shown = ", ".join(map(str, types[2:]))
    if site is not None:
        return f"({shown}) by the rule {site.rule.signature} at {site.rule.place}, layer {site.rule.layer}"
    rules = [rule for table in book.tables(callee.name) for rule in table.rules]
    close = nearest(rules, types)
    missed = f"; {close[0].signature} at {close[0].place} does not fit: {', '.join(close[1])}" if close else ""
    if not callee.is_declaration:
        return f"({shown}) by its body{missed}"
    if (known is not None and not rules) or find(callee.name) is not None:
        return "by the tables"
    return f"({shown}) by nothing: it has neither a body nor a rule{missed}"
