"""`explain`: what irgrad knows about a derivative before it runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgrad.engine.codegen.hot_functions import optimised_lines
from irgrad.engine.codegen.member_arrays import places_of_looks
from irgrad.engine.grids.threads_of_loops import for_device
from irgrad.engine.ir.text.entities import restrict
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.parallel.regions import lines_on_one_thread
from irgrad.engine.report.activity_facts import active_values, argument_facts
from irgrad.engine.report.calls import rule_uses
from irgrad.engine.report.derivation import Derivation, derivation_of, question_of
from irgrad.engine.report.device_facts import device_facts
from irgrad.engine.report.facts import Report
from irgrad.engine.report.lane_facts import lane_facts
from irgrad.engine.report.loop_facts import function_facts
from irgrad.engine.report.passes import passes_of
from irgrad.engine.report.sources import source_texts
from irgrad.engine.report.words import Words
from irgrad.engine.support.axes import axes
from irgrad.rules.errors import IRGradError

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.report.derivation import Question
    from irgrad.engine.signature.parameter import Wrt

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Report):
    """What `explain` found, as data (see `Report`); it prints, makes a page, and draws its tape and its time."""

    question: Question | None = field(default=None, compare=False)

    def __str__(self) -> str:
        from irgrad.engine.report.text import to_text

        return to_text(self)

    __repr__ = __str__

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that needs nothing else: the source with the facts beside its lines. Written to `path` where one is
        given."""
        from irgrad.engine.report.html import to_html

        page = to_html(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def tape_by_line(self, **sizes: int) -> dict[str, int]:
        """The bytes of tape of a call for these integer arguments by source line: arrays count where the value is
        computed, all else where its loop begins. Loops whose bytes only the run tells are left out. Raises KeyError
        for an argument that is missing."""
        lines: dict[str, int] = {}
        for loop in self.loops:
            left = loop.tape_bytes(sizes)
            if left is None:
                continue
            for value in loop.kept:
                if value.size is not None:
                    bytes_ = min(left, value.size.evaluate(sizes))
                    place = str(value.place or loop.place)
                    lines[place] = lines.get(place, 0) + bytes_
                    left -= bytes_
            if left:
                lines[str(loop.place)] = lines.get(str(loop.place), 0) + left
        return lines

    def time_by_line(self, *args: Any, seconds: float = 1.0) -> dict[str, float]:
        """Seconds of a call of the derivative at these arguments by source line: it runs, with cotangents or tangents
        of ones, for so long, and a thousand times a second the loop is noted that is reached next. What is in no long
        loop counts for the one after it. Empty where nothing loops; call it on the main thread. Raises as the kernel
        does, IRGradError for a derivative that was refused or is not for this CPU."""
        from irgrad.engine.codegen.interrupts import sampled
        from irgrad.engine.kernel.run import Run

        asked = self.question
        if asked is None or self.refusal or self.device is not None:
            raise IRGradError("there is nothing to run", which=f"`{self.derivative}` of `{self.kernel}`",
                              because="it was refused" if self.refusal else "it was explained for another device",
                              fix="explain(kernel) of one that runs on this CPU")  # fmt: skip
        program = asked.program
        seeds = (program.find(index, 0) for index in asked.active)
        found, taken = sampled(
            Run(program, asked.kernel.bind(args, {}), {seed: 1.0 for seed in seeds if seed is not None}), seconds
        )
        total = sum(found.values())
        times: dict[str, float] = {}
        for where, count in sorted(found.items(), key=lambda row: _number(row[0])):
            line = f"line {_number(where)}"
            if where:
                times[line] = times.get(line, 0.0) + taken * count / total
        return times

    def plot(self, ax: Any = None, args: Sequence[Any] = (), **sizes: int) -> Any:
        """Draw `tape_by_line` for these integer arguments, on axes given or new ones, which are returned. With `args`,
        arguments of the kernel, the sizes are theirs, and a second pair of axes has `time_by_line`. Raises IRGradError
        without matplotlib."""
        ax = axes(ax)
        times: dict[str, float] = {}
        if args and self.question is not None:
            times = self.time_by_line(*args)
            sizes = {**self.question.kernel.bind(tuple(args), {}).sizes, **sizes}
        tape = self.tape_by_line(**sizes)
        lines = sorted({*tape, *times}, key=_number) if times else list(tape)
        places = range(len(lines))
        ax.barh(places, [tape.get(line, 0) / 1e6 for line in lines], height=0.4 if times else 0.8, label="tape")
        if times:
            other = ax.twiny()
            other.barh([place + 0.4 for place in places], [1e3 * times.get(line, 0.0) for line in lines], height=0.4,
                       color="tab:orange", label="time")  # fmt: skip
            other.set(xlabel="time of a call, ms")
            other.xaxis.label.set_color("tab:orange")
        ax.set_yticks([place + (0.2 if times else 0.0) for place in places], lines)
        ax.invert_yaxis()
        ax.set(xlabel="tape of a call, MB")
        ax.set_title(f"{self.derivative} of {self.kernel}")
        return ax


def _number(place: str) -> int:
    """The line of a place, as `heat.c:12` or `line 12`."""
    digits = re.search(r"(?::|line )(\d+)(?::\d+)?$", place)
    return int(digits[1]) if digits else 0


def explain(
    kernel: Kernel, derivative: str = "vjp", wrt: Wrt = None, *, lanes: bool = True, passes: bool = False,
    target: str = "",
) -> Explanation:  # fmt: skip
    """What irgrad knows about a derivative of a kernel before it runs; nothing runs here.

    kernel:     of `lib.kernel(...)`; of a function with structs or trees, its attribute `kernel`
    derivative: "vjp" (the reverse sweep of `vjp`), "grad", "value_and_grad" or "jvp"
    wrt:        argument names or positions, one or several, as for these functions; by default all floating-point
                arguments, for "grad" and "value_and_grad" the first argument
    lanes:      tell too whether samples and directions share runs, for which the derivative is made
    passes:     tell the passes with their times, for which the derivative is made anew
    target:     tell what a GPU makes of it, an architecture as "sm_90", with the tape as it is planned for one; ptxas
                says registers where it is installed

    The result tells which values are active and why, how often loops run, what is kept on the tape, reloaded and
    recomputed in them and how many bytes that takes, as formulas over the integer arguments, which rules are used, and
    what is refused vector lanes. `print(explain(kernel))` shows it by source line, `.to_html("page.html")` beside the
    source, `.tape_bytes(n=1000)` gives a number; the fields are data (see `irgrad.engine.report.facts`). Without debug
    locations there are no lines, the rest is the same.

    A derivative that is refused where it is made (a call without a rule) is explained as far as it goes, with the error
    as `refusal`; what the analyses refuse is raised. Raises LoadError (no such target), SignatureError (unknown
    argument or derivative) and ActivityError (no floating-point argument, no scalar output).

        >>> irgrad.explain(total, derivative="grad").tape_bytes(n=1000)
        0
    """
    asked = question_of(kernel, derivative, wrt)
    if target:
        from irgrad.engine.codegen.nvptx import nvidia

        nvidia(target)
    found = derivation_of(replace(asked, kernel=for_device(asked.kernel)) if target else asked)
    words = Words(asked.kernel, found.module, found.unit.root)
    parts = _parts(found, words)
    parts["lanes"], parts["passes"] = (), ()
    parts["pointers"] = found.unit.types.ranges.cheaper
    parts["looks"] = places_of_looks(found.module)
    try:
        parts["lanes"] = lane_facts(asked) if lanes else ()
        parts["passes"] = passes_of(asked) if passes else ()
        parts["optimised"] = optimised_lines(asked.program.ir) if lanes else None
        parts["device"] = device_facts(asked, target) if target else None
    except IRGradError as error:  # after all that is known of it: told with it
        parts["refusal"] = error.render()
    if kernel.options.threads:
        parts["team"] = _team(asked)
        parts["one_thread"] = ()
    else:
        parts["one_thread"] = tuple(lines_on_one_thread(restrict(kernel.source.text, [kernel.source.name])))
    parts["sources"] = source_texts(asked.kernel, _places(parts))
    return Explanation(**parts, question=asked)


def _team(asked: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The loops that threads share, and the others with the reason."""
    from irgrad.engine.kernel.shared_loops import shared_loops

    program = asked.kernel.primal
    active = [n for n, slot in enumerate(program.slots) if slot.differentiable]
    made = program.jvp(active) if asked.derivative == "jvp" else program.vjp(active)
    found = shared_loops(made)
    return found.shared, found.others


def _parts(found: Derivation, words: Words) -> dict[str, Any]:
    asked = found.question
    root = found.unit.root
    functions = tuple(function_facts(planned, words, root=planned.fn is root) for planned in found.functions)
    return {
        "kernel": asked.kernel.name,
        "signature": str(asked.kernel.signature),
        "derivative": asked.derivative,
        "wrt": asked.wrt,
        "debug": "llvm.dbg.cu" in outline(asked.kernel.source.text).metadata,
        "arguments": argument_facts(found),
        "functions": functions,
        "active": active_values(found, words),
        "rules": rule_uses(asked.kernel, found.unit, found.book, words.place),
    }


def _places(parts: dict[str, Any]) -> Any:
    for value in parts["active"]:
        yield value.place
    for function in parts["functions"]:
        for part in (function, *function.loops):
            yield part.place
            for row in (*part.kept, *part.recalled):
                yield row.place
    for use in parts["rules"]:
        yield from use.calls


