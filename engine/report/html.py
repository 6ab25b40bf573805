"""A report as a page: the source with the facts beside its lines. It needs no network, and without scripts only the
filters and the switch of colours are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from irgrad.engine.report.facts import ActiveValue, KeptValue, LoopFacts, Place, RecalledValue, Report
from irgrad.engine.report.text import (
    is_number,
    kept_text,
    lanes_text,
    loop_text,
    memory_text,
    passes_text,
    recalled_text,
    threads_text,
)

__all__ = ["to_html"]

_HERE = Path(__file__).parent
_SHORT, _LONG, _AROUND = 30, 400, 10  # lines of a file that is shown as a whole; without facts; around those with facts


def to_html(report: Report) -> str:
    """The page."""
    lines = _Lines(report)
    title = escape(f"{report.derivative} of {report.kernel}")
    body = [_head(report), _tools(report), *lines.sources(), lines.elsewhere(), _loops(report, lines),
            _rules(report, lines), _lanes(report), _device(report), _passes(report)]  # fmt: skip
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{_part("page.css")}</style>
</head>
<body>
<main>
{chr(10).join(filter(None, body))}
</main>
<footer>Made by irgrad. Bytes are those of the tape; formulas hold for counts that are not negative.</footer>
<script>
{_part("page.js")}</script>
</body>
</html>
"""


def _part(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _head(report: Report) -> str:
    wrt = ", ".join(a.name for a in report.arguments if a.role == "differentiated")
    outputs = ", ".join(a.name for a in report.arguments if a.output)
    rows = [("signature", report.signature), ("differentiated", wrt or "nothing"), ("outputs", outputs or "none")]
    if report.derivative != "jvp":
        rows.append(("tape of a call", memory_text(report)))
    if report.one_thread:
        rows.append(("OpenMP", threads_text(report)))
    rows += [("pointers", f"a cheaper analysis, {row}") for row in report.pointers]
    rows += [("passes", passes_text(report.optimised))] if report.optimised else []
    rows += [("indices", f"compared with their arrays in structs: {', '.join(report.looks)}")] if report.looks else []
    facts = "".join(f"<dt>{escape(name)}</dt><dd><code>{escape(text)}</code></dd>" for name, text in rows)
    notice = "" if report.debug else (
        '<p class="notice">There are no source lines: the module has no debug locations. Compile it with '
        "<code>-g</code> or <code>-gline-tables-only</code>.</p>")  # fmt: skip
    if report.refusal:
        notice = f'<div class="notice">refused: <pre>{escape(report.refusal)}</pre></div>{notice}'
    return (f"<h1>{escape(report.derivative)} of <code>{escape(report.kernel)}</code></h1>"
            f'<dl class="facts">{facts}</dl>{notice}')  # fmt: skip


def _tools(report: Report) -> str:
    if not report.sources:
        return '<p class="tools"><button id="open-all" hidden></button><button id="theme">dark or light</button></p>'
    names = [("active", "active"), ("looped", "loops"), ("kept", "kept on the tape"), ("again", "had again")]
    buttons = "".join(f'<button data-filter="{key}" aria-pressed="false">{text}</button>' for key, text in names)
    return (f'<p class="tools">{buttons}<button id="open-all">open or close all</button>'
            '<button id="theme">dark or light</button></p>')  # fmt: skip


class _Lines:
    """The facts by line."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.files = {source.name: number for number, source in enumerate(report.sources)}
        self.active: dict[tuple[str, int], list[ActiveValue]] = {}
        self.loops: dict[tuple[str, int], list[LoopFacts]] = {}
        self.kept: dict[tuple[str, int], list[KeptValue]] = {}
        self.again: dict[tuple[str, int], list[RecalledValue]] = {}
        for value in report.active:
            self.active.setdefault(_key(value.place), []).append(value)
        for loop in report.loops:
            self.loops.setdefault(_key(loop.place), []).append(loop)
        for kept in report.kept:
            if kept.where != "variable":
                self.kept.setdefault(_key(kept.place), []).append(kept)
        for again in report.recalled:
            if is_number(again):
                self.again.setdefault(_key(again.place), []).append(again)

    def link(self, place: Place) -> str:
        """A place, as a link where its line is shown."""
        text = escape(str(place))
        if not place or place.file not in self.files:
            return text
        first, last = self._range(place.file, len(self.report.sources[self.files[place.file]].lines))
        return f'<a href="#{self._id(place.file, place.line)}">{text}</a>' if first <= place.line <= last else text

    def _id(self, file: str, line: int) -> str:
        number = self.files[file]
        return f"L{line}" if number == 0 else f"L{number}-{line}"

    def sources(self) -> Iterator[str]:
        """Every file that is known."""
        for source in self.report.sources:
            first, last = self._range(source.name, len(source.lines))
            rows = "\n".join(self._line(source.name, n, source.lines[n - 1]) for n in range(first, last + 1))
            part = f", lines {first} to {last}" if last - first + 1 < len(source.lines) else ""
            yield f'<h2>Source <code>{escape(source.name)}</code>{part}</h2>\n<div class="source">\n{rows}\n</div>'

    def _range(self, file: str, count: int) -> tuple[int, int]:
        """The lines to show: all of a short file, of a long one those around facts."""
        named = [n for table in (self.active, self.loops, self.kept, self.again) for name, n in table if name == file]
        if count <= _SHORT or not named:
            return 1, min(count, _LONG)
        return max(1, min(named) - _AROUND), min(count, max(named) + _AROUND)

    def _line(self, file: str, number: int, code: str) -> str:
        key = (file, number)
        classes = [name for name, table in (("active", self.active), ("looped", self.loops), ("kept", self.kept),
                                            ("again", self.again)) if key in table]  # fmt: skip
        row = (f'<span class="number">{number}</span><span class="code">{escape(code) or " "}</span>'
               f'<span class="chips">{"".join(self._chips(key))}</span>')  # fmt: skip
        head = f'<div class="{" ".join(["line", *classes])}" id="{self._id(file, number)}">'
        if not classes:
            return f'{head}<div class="row">{row}</div></div>'
        inside = "".join(self._details(key))
        return (f'{head}<details><summary><span class="row">{row}</span></summary>'
                f'<div class="detail">{inside}</div></details></div>')  # fmt: skip

    def _chips(self, key: tuple[str, int]) -> Iterator[str]:
        loops = self.loops.get(key, [])  # several where a function was inlined several times
        counts = [f"{loop.trips} iterations" if loop.iterations is not None else "iterations: not known"
                  for loop in loops]  # fmt: skip
        tapes = [f"tape {loop.bytes} B each, {loop.total}" for loop in loops if loop.bytes]
        yield from (_chip("loop", text) for text in dict.fromkeys(counts))
        yield from (_chip("kept", text) for text in dict.fromkeys(tapes))
        kept = [value for value in self.kept.get(key, []) if value.what == "value"]
        if kept:
            yield _chip("kept", f"kept {sum(value.bytes for value in kept)} B")
        for how in ("reloaded", "recomputed", "stepped back"):
            found = sum(value.how == how for value in self.again.get(key, []))
            if found:
                yield _chip("again", f"{how} {found}")
        if key in self.active:
            yield _chip("value", f"active {len(self.active[key])}")

    def _details(self, key: tuple[str, int]) -> Iterator[str]:
        loops, active = self.loops.get(key, []), self.active.get(key, [])
        kept, again = self.kept.get(key, []), self.again.get(key, [])
        for loop in loops:
            yield f"<p>{escape(loop_text(loop))}; tape of a call: {escape(loop.total)}</p>"
        if active:
            yield "<strong>active</strong>" + _list(
                f"<code>{escape(_name(value))}</code> <code>{escape(value.type)}</code>: {escape(value.why)}"
                for value in active
            )
        if kept:
            yield "<strong>kept</strong>" + _list(self._reads(kept_text(value), value) for value in kept)
        if again:
            yield "<strong>had again</strong>" + _list(self._reads(recalled_text(value), value) for value in again)

    def _reads(self, text: str, value: KeptValue | RecalledValue) -> str:
        return f"{escape(text)}; read by the reverse of {escape(value.reader)}"

    def elsewhere(self) -> str:
        """Facts about no line that is shown."""
        keys = {*self.active, *self.loops, *self.kept, *self.again}
        rest = sorted(key for key in keys if key[0] not in self.files)
        if not rest:
            return ""
        rows = "".join(
            f"<tr><td>{escape(f'{file}:{line}' if line else '(no line)')}</td>"
            f"<td><p>{' '.join(self._chips((file, line)))}</p>{''.join(self._details((file, line)))}</td></tr>"
            for file, line in rest
        )
        title = "Made by the compiler" if self.files else "By line"
        return f"<h2>{title}</h2>\n<table><tr><th>line</th><th>facts</th></tr>{rows}</table>"


def _key(place: Place) -> tuple[str, int]:
    return place.file, place.line


def _name(value: ActiveValue) -> str:
    return f"{value.opcode}{f' %{value.name}' if value.name else ''}"


def _chip(kind: str, text: str) -> str:
    return f'<span class="chip {kind}">{escape(text)}</span>'


def _list(rows: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{row}</li>' for row in rows)}</ul>"


def _table(title: str, name: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; cells are written already."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<h2>{escape(title)}</h2>\n<table id="{name}"><tr>{head}</tr>\n{body}</table>' if body else ""


def _loops(report: Report, lines: _Lines) -> str:
    rows = [
        (escape(loop.function), lines.link(loop.place), str(loop.depth), f"<code>{escape(loop.trips)}</code>",
         str(loop.bytes), f"<code>{escape(loop.total)}</code>",
         str(len(loop.kept)), str(len(loop.reloaded)), str(len(loop.recomputed)))
        for loop in report.loops
    ]  # fmt: skip
    heads = ("function", "loop", "depth", "iterations", "tape bytes an iteration", "tape of a call", "kept", "reloaded",
             "recomputed")  # fmt: skip
    return _table("Loops", "loops", heads, rows)


def _rules(report: Report, lines: _Lines) -> str:
    rows = [(f"<code>{escape(use.callee)}</code>", ", ".join(map(lines.link, use.calls)), escape(use.text))
            for use in report.rules]  # fmt: skip
    return _table("Rules of calls", "rules", ("function", "called at", "derivative"), rows)


def _lanes(report: Report) -> str:
    rows = [(escape(facts.what), escape(lanes_text(facts)), escape(facts.why)) for facts in report.lanes]
    return _table("Vector lanes", "lanes", ("runs", "how", "because"), rows)


def _device(report: Report) -> str:
    facts = report.device
    if facts is None:
        return ""
    rows = [("registers of a thread", facts.registers), ("bytes of its stack", facts.stack),
            ("bytes spilled", facts.spilled), ("threads that a multiprocessor holds", facts.resident),
            ("loads of device memory", facts.loads), ("stores", facts.stores), ("atomic additions", facts.atomics),
            ("bytes where each runs once", facts.bytes_once), ("accesses to the stack", facts.stack_accesses),
            ("tape of a thread", None if report.derivative == "jvp" else memory_text(report)),
            ("samples part at", ", ".join(facts.divergent) or "no branch"),
            ("without a batch many threads share the loops at", ", ".join(facts.shared_loops) or "none"),
            *(("one thread runs", row) for row in facts.other_loops)]  # fmt: skip
    return _table(f"On {facts.target}, one sample a thread", "device", ("what", "found"),
                  [(escape(name), escape(str(value))) for name, value in rows if value is not None])


def _passes(report: Report) -> str:
    rows = [(escape(row.name), f"{row.seconds * 1e3:.2f} ms", str(row.instructions or "")) for row in report.passes]
    return _table("Passes", "passes", ("pass", "time", "instructions after it"), rows)
