"""A derivative as it is planned: the function analysed, and the plan of the tape of each function that has a reverse.

No instruction of the derivative is made: everything is known before (see `differentiate/tape/tape_plan.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.kernel.select import active_outputs, plain_kernel, scalar_output, selected
from irgrad.rules.errors import IRGradError, SignatureError
from irgrad.rules.layers import current
from irgrad.rules.report import Text

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.conventions import Abi
    from irgrad.engine.differentiate.shared.request import Derivative
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
    from irgrad.engine.differentiate.shared.rulebook import Rulebook
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.engine.differentiate.tape.tape_plan import TapePlan
    from irgrad.engine.ir.model import Function, Module
    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.kernel.programs import Program
    from irgrad.engine.signature.parameter import Wrt

__all__ = ["DERIVATIVES", "Derivation", "Planned", "Question", "derivation_of", "explain_plan", "question_of"]

DERIVATIVES: dict[str, Derivative] = {"vjp": "pullback", "grad": "pullback", "value_and_grad": "vjp", "jvp": "jvp"}
"""Derivatives by the names of the functions that make them, and what these ask for (see `Program`)."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for. active: slots of arguments and outputs; wrt: the names of these arguments."""

    kernel: Kernel
    derivative: str
    active: tuple[int, ...]
    wrt: tuple[str, ...]

    @property
    def program(self) -> Program:
        """The program of the derivative: what runs."""
        return self.of(self.kernel.primal)

    def of(self, primal: Program, width: int = 1) -> Program:
        """The same of a program of the kernel, for so many tangents or cotangents at once."""
        made: Program = getattr(primal, DERIVATIVES[self.derivative])(self.active, width)
        return made

    @property
    def forward(self) -> bool:
        """Forward mode: nothing is kept for later."""
        return self.derivative == "jvp"


@dataclass(frozen=True, slots=True)
class Planned:
    """One function with a reverse. plan: None in forward mode, which keeps nothing."""

    fn: Function
    facts: ReverseFacts
    plan: TapePlan | None


@dataclass(frozen=True, slots=True)
class Derivation:
    """The analysed module: the unit of the derivative, the rules in it, its functions, the root first."""

    question: Question
    module: Module
    unit: Unit
    book: Rulebook
    functions: tuple[Planned, ...]


def question_of(kernel: Kernel, derivative: str, wrt: Wrt) -> Question:
    """Check what is asked for. Raises SignatureError, ActivityError."""
    kernel = plain_kernel(kernel)
    if derivative not in DERIVATIVES:
        raise SignatureError(f"derivative={derivative!r} is not known", because=f"known are {', '.join(DERIVATIVES)}",
                             fix='derivative="vjp"')  # fmt: skip
    scalar = derivative in ("grad", "value_and_grad")
    positions, _ = selected(kernel, wrt, None, all_floats=not scalar)
    outputs = (scalar_output(kernel),) if scalar else active_outputs(kernel)
    names = [p.name for p in kernel.signature.parameters]
    return Question(kernel, derivative, tuple(sorted({*positions, *outputs})), tuple(names[i] for i in positions))


def derivation_of(asked: Question) -> Derivation:
    """Analyse the function and plan. Raises, in the user's words, what the derivative itself would raise."""
    from irgrad.engine.kernel.messages import in_users_words
    from irgrad.engine.support.pause import no_collections

    source = asked.kernel.source
    try:
        with no_collections():
            return _derivation(asked)
    except IRGradError as error:
        raise in_users_words(error, source.name, source.signature) from None


def explain_plan(kernel: Kernel) -> Text:
    """What the reverse sweep of a gradient finds where: for each loop the values that are kept, read again and computed
    again, with their bytes and lines, and which instruction's reverse reads them.

    All floating-point arguments count as differentiated. Functions that are called have plans of their own. `explain`
    tells the same as data, with trip counts.

        >>> "0 bytes an iteration" in irgrad.explain_plan(total)
        True
    """
    return Text("\n\n".join(str(planned.plan) for planned in derivation_of(question_of(kernel, "vjp", None)).functions))


def _derivation(asked: Question) -> Derivation:
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts
    from irgrad.engine.differentiate.shared.rulebook import Rulebook
    from irgrad.engine.differentiate.tape.tape_plan import plans_of
    from irgrad.engine.kernel.ways import first_way
    from irgrad.engine.pipeline.derivatives import checked

    program, primal = asked.program, asked.kernel.primal

    def ask(inside: bool, members: str) -> tuple[Module, Rulebook, tuple[Unit, Abi]]:
        module, request, book = program.problem(inside=inside, members=members)
        if book is None:
            book = Rulebook(current(), program.source.digest, module, frozenset(primal.symbols))
        return module, book, checked(module, request, book)

    module, book, (unit, abi) = first_way(primal.stage.text, program.source.plain, ask)
    if not asked.forward:
        found = [Planned(plan.facts.fn, plan.facts, plan) for plan in plans_of(unit, abi)]
    else:
        active = [f for f in unit.pointers.functions if not f.is_declaration and unit.activity.function(f)]
        every = [unit.root, *(f for f in active if f is not unit.root)]
        found = [Planned(f, ReverseFacts(unit, f, unit.abis[f], split=f is not unit.root), None) for f in every]
    return Derivation(asked, module, unit, book, tuple(found))
