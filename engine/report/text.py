"""A report as text, for a terminal: by function, loop and source line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irgrad.engine.report.facts import (
    ActiveValue,
    FunctionFacts,
    KeptValue,
    LaneFacts,
    LoopFacts,
    Place,
    RecalledValue,
    Report,
)

__all__ = [
    "is_number", "kept_text", "lanes_text", "loop_text", "memory_text", "passes_text", "reader_text", "recalled_text",
    "threads_text", "to_text",
]  # fmt: skip

_WIDTH = 78  # of quoted source lines
_VALUES = 6  # named of a line


def to_text(report: Report) -> str:
    """The whole report."""
    parts = [_head(report), _active(report), _functions(report), _rules(report), _lanes(report), _device(report),
             _passes(report)]
    return "\n\n".join("\n".join(part) for part in map(list, parts) if part)


def _head(report: Report) -> Iterator[str]:
    yield f"{report.derivative} of {report.signature}"
    wrt = [a.name for a in report.arguments if a.role == "differentiated"]
    outputs = [a.name for a in report.arguments if a.output]
    yield f"  differentiated: {', '.join(wrt) or 'nothing'}; outputs: {', '.join(outputs) or 'none'}"
    scratch = [a.name for a in report.arguments if a.role == "scratch"]
    if scratch:
        yield f"  shadows besides: {', '.join(scratch)} (active values pass through their memory)"
    if report.derivative != "jvp":
        yield f"  tape of a call: {memory_text(report)}"
    if report.one_thread:
        yield f"  OpenMP: {threads_text(report)}"
    if report.team is not None:
        yield f"  threads: shared by a team: {', '.join(report.team[0]) or 'no loop'}"
        yield from (f"  threads: one runs {reason}" for reason in report.team[1])
    yield from (f"  pointers: a cheaper analysis, {row}" for row in report.pointers)
    if report.looks:
        yield f"  indices: compared with their arrays in structs: {', '.join(report.looks)}"
    if report.optimised:
        yield f"  passes: {passes_text(report.optimised)}"
    if report.refusal:
        yield from (f"  {row}" for row in f"refused: {report.refusal}".splitlines())
    if not report.debug:
        yield "  no source lines: the module has no debug locations (compile it with -g or -gline-tables-only)"


def threads_text(report: Report) -> str:
    """On how many threads parallel regions run, in words."""
    lines = ", ".join(str(line) for line in report.one_thread if line)
    return f"one thread runs the parallel regions{f' at lines {lines}' if lines else ''}"


def passes_text(optimised: tuple[int, int]) -> str:
    """Of how many lines LLVM optimises all that it can, in words."""
    lines, most = optimised
    return f"all of LLVM's for {most:,} of {lines:,} lines of IR, of what runs most often (IRGRAD_MAX_OPTIMISED)"


def memory_text(report: Report) -> str:
    """The bytes of a call in words."""
    text = report.total
    if any(not function.root for function in report.functions) and report.sizes is None:
        text += " (functions that are called keep some for each call)"
    own = [place for function in report.functions for place in function.own_memory]
    if own:
        lines = ", ".join(dict.fromkeys(str(place.line) for place in own if place))
        text += f", and the shadows of memory that the function allocates{f' (lines {lines})' if lines else ''}"
    return text


def _quoted(report: Report, place: Place) -> str:
    for source in report.sources:
        if source.name == place.file and 0 < place.line <= len(source.lines):
            line = source.lines[place.line - 1].strip()
            return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."
    return ""


# -- activity ------------------------------------------------------------------------------------------------------


def _active(report: Report) -> Iterator[str]:
    yield "active values"
    lines: dict[tuple[str, str, int], list[ActiveValue]] = {}
    for value in report.active:
        lines.setdefault((value.function, value.place.file, value.place.line), []).append(value)
    if not lines:
        yield "  none: the derivative is zero"
    for (function, _, _), values in lines.items():
        place = values[0].place
        code = _quoted(report, place)
        where = f"{place}" if report.debug and place else f"in {function}"
        yield f"  {where}{':  ' + code if code else ''}"
        yield f"    {_listed(values)}"
        yield f"    because {values[-1].why}"


def _listed(values: list[ActiveValue]) -> str:
    names = [f"{value.opcode}{f' %{value.name}' if value.name else ''}" for value in values]
    more = len(names) - _VALUES
    return ", ".join(names[:_VALUES]) + (f" and {more} more" if more > 0 else "")


# -- loops ---------------------------------------------------------------------------------------------------------


def _functions(report: Report) -> Iterator[str]:
    reverse = report.derivative != "jvp"
    yield "loops and the tape" if reverse else "loops"
    for function in report.functions:
        if function.segments:
            yield f"  loop at {function.place or function.name}: {function.segments}"
            continue
        if not function.root:
            each = f": {function.bytes} bytes of tape in each call" if function.bytes else ""
            each = ": no tape, it is run again in the reverse sweep" if function.repeated else each
            yield f"  function {function.name}{f' ({function.place})' if function.place else ''}{each}"
        yield from _outside(report, function)
        for loop in function.loops:
            pad = "  " * loop.depth
            code = _quoted(report, loop.place)
            yield f"{pad}{loop_text(loop)}{':  ' + code if code else ''}"
            yield f"{pad}  {loop.carries}"
            if reverse:
                yield f"{pad}  {_bytes(loop)}"
                yield from (f"{pad}  {row}" for row in _rows(loop.kept, loop.recalled))
                yield from (f"{pad}  choice      {row}" for row in loop.choices)
    if not report.loops:
        yield "  no loops"
    numbered = {str(atom): loop for loop in report.loops for atom in (f"i{loop.place.line}",)}
    used = [n for n in numbered if any(n in loop.trips + loop.total for loop in report.loops)]
    for name in used:
        yield f"  {name}: the iteration of the loop at {numbered[name].place}, from 0"


def _outside(report: Report, function: FunctionFacts) -> Iterator[str]:
    if function.kept or function.recalled:
        yield "  outside of loops"
        yield from (f"    {row}" for row in _rows(function.kept, function.recalled))


def loop_text(loop: LoopFacts) -> str:
    """A loop in words: its place and its iterations."""
    where = f"loop at {loop.place}" if loop.place else f"loop {loop.number + 1}"
    last = f"-{loop.last_line}" if loop.last_line > loop.place.line else ""
    count = "iterations are not known before it runs" if loop.iterations is None else f"{loop.trips} iterations"
    return f"{where}{last}, depth {loop.depth}, {count}"


def _bytes(loop: LoopFacts) -> str:
    if not loop.bytes and not loop.kept:
        return "keeps nothing"
    return f"keeps {loop.bytes} bytes an iteration, in a call {loop.total}"


def _rows(kept: Iterable[KeptValue], recalled: Iterable[RecalledValue]) -> Iterator[str]:
    for value in kept:
        yield f"kept        {kept_text(value)}; {reader_text(value)}"
    others = 0
    for again in recalled:
        if is_number(again) or again.how == "stepped back":
            yield f"{again.how:<11} {_named(again)}; {reader_text(again)}"
        else:
            others += 1
    if others:
        yield f"recomputed  {others} counters, addresses and conditions" if others > 1 else (
            "recomputed  a counter, address or condition")


def is_number(value: RecalledValue) -> bool:
    """A floating-point value, not what leads to one."""
    return value.type.lstrip("<0123456789 x").startswith(("double", "float", "half", "bfloat", "x86_fp80", "fp128"))


def _named(value: KeptValue | RecalledValue) -> str:
    name = f"{value.opcode}{f' %{value.name}' if value.name else ''}"
    return name + (f" ({value.place})" if value.place else "")


def kept_text(value: KeptValue) -> str:
    """What is kept and where."""
    what = {
        "value": "", "shadow": "shadow of ", "address": "address of the array of ", "count": "iterations of ",
        "path": "the way into ", "link": "the last record of ", "rule": "what is handed to the reverse of ",
    }[value.what]  # fmt: skip
    if value.where == "array":
        numbers = [str(line) for line in value.over if line]
        several = "s" if len(numbers) > 1 else ""
        known = f" over the loop{several} at line{several} {' and '.join(numbers)}" if numbers else ""
        size = f", {value.size} bytes in a call" if value.size is not None else ""
        where = f"array of {value.type}{known}{size}"
    else:
        where = f"{value.type}, {'in a record of each iteration' if value.where == 'record' else 'once'}"
    return f"{what}{_named(value)}: {where}"


def recalled_text(value: RecalledValue) -> str:
    """What is had again."""
    return f"{value.how}: {_named(value)}"


def reader_text(value: KeptValue | RecalledValue) -> str:
    """Who reads it."""
    return f"read by the reverse of {value.reader}"


# -- the rest ------------------------------------------------------------------------------------------------------


def _rules(report: Report) -> Iterator[str]:
    yield "rules of calls"
    if not report.rules:
        yield "  no calls are left: everything was inlined"
    for use in report.rules:
        at = ", ".join(dict.fromkeys(str(place.line) for place in use.calls))
        lines = f" (line{'s' if ',' in at else ''} {at})" if at else ""
        yield f"  {use.callee}{lines}: {use.text}"


def _lanes(report: Report) -> Iterator[str]:
    if report.lanes:
        yield "vector lanes"
    for facts in report.lanes:
        yield f"  {facts.what}: {lanes_text(facts)}"
        yield f"    because {facts.why}"


def lanes_text(facts: LaneFacts) -> str:
    """How many run side by side."""
    if facts.refused:
        return "one after the other"
    return f"{facts.lanes} side by side" if facts.lanes else "a loop over samples, which LLVM turns into vector code"


def _device(report: Report) -> Iterator[str]:
    facts = report.device
    if facts is None:
        return
    yield f"on {facts.target}, one sample a thread"
    if facts.registers is None:
        yield "  registers are not known: ptxas is not installed"
    else:
        yield (f"  {facts.registers} registers, {facts.stack} bytes of stack, {facts.spilled} bytes spilled; a "
               f"multiprocessor holds {facts.resident} threads")  # fmt: skip
    yield f"  the kernel has {facts.loads} loads and {facts.stores} stores of device memory ({facts.bytes_once} bytes"
    yield f"    where each runs once), {facts.atomics} atomic additions, {facts.stack_accesses} accesses to the stack"
    if report.derivative != "jvp":
        yield f"  tape of a sample: {memory_text(report)}, for each thread of a launch"
    yield f"  samples part at: {', '.join(facts.divergent) or 'no branch'}"
    yield f"  without a batch many threads share the loops at: {', '.join(facts.shared_loops) or 'none'}"
    yield from (f"    one thread runs {row}" for row in facts.other_loops)


def _passes(report: Report) -> Iterator[str]:
    if report.passes:
        yield "passes"
        wide = max(len(row.name) for row in report.passes)
        for row in report.passes:
            count = f"{row.instructions:>9} instructions" if row.instructions else ""
            yield f"  {row.name:<{wide}}  {row.seconds * 1e3:9.2f} ms  {count}".rstrip()
        yield f"  {'together':<{wide}}  {sum(row.seconds for row in report.passes) * 1e3:9.2f} ms"
