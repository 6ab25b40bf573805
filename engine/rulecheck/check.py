"""`check_rule`: whether a rule is used, is right, and keeps what a rule promises. docs/rules.md lists the promises.

Values are compared with the derivative of the function's own body where the module has one, else with mpmath or with
five-point differences, (f(x-2h) - 8 f(x-h) + 8 f(x+h) - f(x+2h)) / 12 h (Abramowitz and Stegun 25.3.6), entry by entry.
Forward and reverse mode are compared by the adjoint identity <w, J v> = <J'w, v>.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irgrad.engine.rulecheck.measure import Checker, Line
from irgrad.engine.rulecheck.subjects import Reference, Subject, subject_of
from irgrad.rules.definitions.types import Kind
from irgrad.rules.errors import RuleError

__all__ = ["RuleCheckFailed", "RuleReport", "check_rule"]

Batch = int | tuple[int, Kind] | None
_NO_DERIVATIVE = ("inactive", "opt_out", "stop", "allocator")


@dataclass(frozen=True)
class RuleReport:
    """What `check_rule` found. `str(report)` is the table; `bool(report)` the verdict.

    lines: one per combination of activities, mode, width or batch; kinks: where the function has no derivative;
    notes: what was not checked, and why
    """

    title: str
    rule: str
    reference: str
    lines: tuple[Line, ...]
    kinks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        head = [f"check of the rule for {self.title}", f"  rule       {self.rule}"]
        head.append(f"  against    {self.reference}")
        width = max([8, *(len(line.case) for line in self.lines)])
        rows = []
        for line in self.lines:
            mark = "ok" if line.ok else "WRONG"
            rows.append(f"  {line.case:<{width}}  error {line.error:.1e} of {line.tolerance:.0e}  {mark}")
        tail = [f"  kink       {kink}" for kink in self.kinks] + [f"  not done   {note}" for note in self.notes]
        tail += [f"  FAILED     {failure}" for failure in self.failures]
        verdict = "the rule keeps its promises" if self.ok else "the rule is WRONG"
        return "\n".join([*head, *rows, *tail, f"  verdict: {verdict}"])


class RuleCheckFailed(RuleError, AssertionError):
    """What `check_rule` raises; `report` has the details."""

    def __init__(self, report: RuleReport) -> None:
        super().__init__(str(report))
        self.report = report


def check_rule(
    what: Any, *, widths: Sequence[int] = (1, 3), batches: Sequence[Batch] = (None,), kernel: Any = None,
    args: Sequence[Any] | None = None, dtype: str = "f64", modes: Sequence[str] = ("forward", "reverse"),
    activities: str = "every", reference: Reference | None = None, points: int = 8, seed: int = 0,
) -> RuleReport:  # fmt: skip
    """Assert that the rule for a function is the one that is used, is right, and keeps what rules promise.

    what:      a symbol, a Kernel, `extern(...)`, `opcode(...)`: any key of a rule
    widths:    tangents or cotangents at once;  modes: "forward", "reverse"
    batches:   None: one sample; 4: four samples in each layout; (4, SoA): in one layout
    kernel:    a kernel that calls the function, for a symbol whose prototype does not tell how to call it
    args:      arguments of that kernel; without any, random ones (`points` times)
    dtype:     "f64" or "f32": the spelling of a function of the tables
    activities: "every" combination of active arguments, or "all" of them active
    reference: arguments -> for each output a list with the derivative by each floating-point argument, entries by
               entries. Without one: the derivative of the function's body, mpmath, or five-point differences

    In every combination of active arguments that the rule claims: the derivatives entry by entry; shadows start from
    random values and are added to; shadows of overwritten outputs are zero afterwards; inputs and primal results are
    those of the function; <w, J v> = <J'w, v>; a second run gives the same bits; canary words around every buffer
    stay. Where left and right derivative differ, a value between them is reported as a kink and is no failure.

    Returns the report. Raises RuleCheckFailed (an AssertionError) when anything fails, RuleError when there is no rule
    or too little is known to call the function, and what differentiating raises.

        >>> bool(irgrad.check_rule("hypot"))
        True
    """
    subject = subject_of(what, kernel=kernel, args=args, dtype=dtype, points=points, seed=seed, reference=reference)
    plain = [rule for rule in subject.rules if rule.form in _NO_DERIVATIVE]
    if plain:
        raise RuleError(f"`{subject.key}` has no derivative to check", where=plain[0].place,
                        because=f"it is declared {plain[0].form}", fix="check rules that give derivatives")  # fmt: skip
    checker = Checker(subject, np.random.default_rng(seed))
    tried = _combinations(checker.inputs)[: 1 if activities == "all" else None]
    claimed = {mode: _claimed(checker, mode, tried) for mode in modes}
    if not any(claimed.values()):
        checker.failures.append(f"the rule was never selected: {checker.why_not()}")
    for point, case in enumerate(subject.points):
        checker.at(case)
        for mode, combinations in claimed.items():
            for inputs in combinations if point == 0 else combinations[:1]:
                for width in widths:
                    checker.measure(mode, inputs, width)
        for inputs in claimed.get("forward", [])[: None if point == 0 else 1]:
            if inputs in claimed.get("reverse", []):
                for width in widths:
                    checker.adjoint(inputs, width)
    if any(claimed.values()):
        _batched(checker, batches, [mode for mode in modes if claimed[mode]])
        checker.documented_kinks()
    report = _report(subject, checker)
    if not report.ok:
        raise RuleCheckFailed(report)
    return report


def _claimed(checker: Checker, mode: str, tried: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The combinations of active arguments for which the rule is the one that is chosen, all of them first."""
    found = []
    for inputs in tried:
        if checker.selected(mode, inputs):
            found.append(inputs)
        else:
            checker.notes.append(f"{mode} in {checker.names(inputs)}: the rule does not claim it")
    return found


def _combinations(inputs: tuple[int, ...]) -> list[tuple[int, ...]]:
    if len(inputs) <= 4:
        sizes = range(len(inputs), 0, -1)
        return [c for size in sizes for c in itertools.combinations(inputs, size)]
    return [inputs, *(tuple(i for i in inputs if i != left) for left in inputs), *((i,) for i in inputs)]


def _batched(checker: Checker, batches: Sequence[Batch], modes: Sequence[str]) -> None:
    from irgrad.rules.definitions.types import AoS, SoA

    for batch in batches:
        if batch is None:
            continue
        count, layouts = (batch, (SoA, AoS)) if isinstance(batch, int) else (batch[0], (batch[1],))
        for layout in layouts:
            for mode in modes:
                checker.batch(mode, count, layout)


def _report(subject: Subject, checker: Checker) -> RuleReport:
    failures = [*checker.failures, *(f"{line.case}: {line.worst}" for line in checker.lines if not line.ok)]
    return RuleReport(subject.title, subject.rule_text, checker.against, tuple(checker.lines),
                      tuple(dict.fromkeys(checker.kinks)), tuple(dict.fromkeys(checker.notes)),
                      tuple(dict.fromkeys(failures)))  # fmt: skip
