"""Derivatives of functions in normal form: a module and a `Request` in, the module with the derivative out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.codegen.passes import Code, Settings, defined, observed, run_passes
from irgrad.engine.codegen.prepare import prepare
from irgrad.engine.differentiate.custom_rules.ruled import without_rule
from irgrad.engine.differentiate.derive import derive_whole
from irgrad.engine.differentiate.forward.forward import emit_forward
from irgrad.engine.differentiate.layout.lanes import LANES
from irgrad.engine.differentiate.roots import Derived, emit_reverse
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.request import Derivative, Request
from irgrad.engine.differentiate.shared.rulebook import Rulebook
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.differentiate.shared.untold import approximate_calls
from irgrad.engine.differentiate.split import derive_split
from irgrad.engine.differentiate.split_forward import derive_split_forward
from irgrad.engine.differentiate.tape.long_tapes import Warned, WholeTape
from irgrad.engine.differentiate.with_tape import derive_with_tape
from irgrad.engine.ir.model import Function, Module, Value
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.legality.checks import CHECKS
from irgrad.engine.legality.library_code import refuse_libraries
from irgrad.engine.legality.relocations import Relocations
from irgrad.engine.normalise.constant_arguments import separate_constants
from irgrad.engine.normalise.exceptions.unwinding import THROWS, has_exceptions, lower_exceptions
from irgrad.engine.normalise.fused import fused_loops, not_fused, outline_fused
from irgrad.engine.normalise.iteration_scopes import without_scopes
from irgrad.engine.normalise.known_cotangents import Activity
from irgrad.engine.normalise.lost_pointers import watch_lost
from irgrad.engine.normalise.reinterpret.retype import loosen, retype
from irgrad.engine.normalise.reinterpret.words import Moves, move_words
from irgrad.engine.normalise.segments import EVERY, Choice, Segments, outline_segments
from irgrad.engine.normalise.variadic import drop_other_targets
from irgrad.engine.pipeline import stages
from irgrad.engine.pipeline.worth_fusing import worth_fusing
from irgrad.engine.runtime.helpers import link_arena
from irgrad.rules.errors import Unsupported

__all__ = ["Thrown", "analysed", "checked", "derive", "examined", "link_runtime", "ready", "scheduled"]

Thrown = Sequence[tuple[Value, Value]]
"""Types of exceptions that leave a root, and their destructors."""

_EMIT: dict[Derivative, Callable[[Unit, Abi], Derived]] = {
    "jvp": derive_whole,
    "jvp_only": derive_whole,
    "vjp": derive_whole,
    "pullback": derive_whole,
    "forward_with_tape": derive_with_tape,
    "split_reverse": derive_split,
    "split_forward": derive_split_forward,
}


def ready(
    text: str, name: str, keep: Callable[[str], bool] | None = None, *, preopt: bool = True, leaving: bool = False,
    failing: bool = False, fresh: bool = True, members: bool = False,
) -> tuple[str, Thrown]:  # fmt: skip
    """The module ready to be normalised: optimised (`prepare`) and without exceptions; what leaves the root.

    failing: what would end the program ends the call with an error; fresh: False for a text that `prepare` has
    made already; members: see `prepare`
    """
    if fresh:
        text = prepare(without_scopes(text), [name], keep, preopt=preopt, leaving=leaving, members=members)
    if not has_exceptions(text) and not (leaving and not THROWS.isdisjoint(outline(text).functions)):
        return text, ()
    code = Code(text, roots=[name])
    module = code.model
    kept = frozenset(n for n in module.functions if keep is not None and keep(n))
    with observed("lower-exceptions", code):
        thrown = lower_exceptions(module, module.functions[name], kept, leaving=leaving, failing=failing)
    return prepare(code.text, [name], keep, preopt=preopt), thrown


def derive(
    module: Module, request: Request, rules: Rulebook | None = None, *, analysed: Callable[[Facts], None] | None = None
) -> Derived:
    """Add the derivative to `module`; `analysed` is told what was found before. Raises an IRGradError that names the
    source line for what has no derivative."""
    unit, abi = checked(module, request, rules)
    if analysed is not None:
        analysed(unit.facts)
    if request.approximate:
        approximate_calls(unit)
    code = Code(model=module)
    with observed(request.derivative, code):
        derived = _EMIT[request.derivative](unit, abi)
        derived = replace(derived, warned=tuple(unit.get(Warned).rows))
        if not derived.name:  # there is none, and what was begun of it is nothing to look at
            code.text = ""
    if rules is not None:
        rules.restore()
    return derived


def checked(module: Module, request: Request, rules: Rulebook | None = None) -> tuple[Unit, Abi]:
    """The module normalised, analysed and found to have the derivative; the convention of its root. Raises Unsupported
    where it has none."""
    moves = Moves()
    unit = examined(module, request, rules, moves)
    try:
        _check(unit)
    except Unsupported as error:
        alone = request.derivative in ("vjp", "pullback") and not request.runtime_activity
        if unit.segments or not alone or not moves.undo(module):  # what became functions of its own keeps its words
            raise
        unit = analysed(module, unit.root, request, None, unit.left, moves)
        try:
            _check(unit)
        except Unsupported:
            raise error from None
    abi = _convention(unit)
    defined(module)
    return unit, abi


def _check(unit: Unit) -> None:
    for check in CHECKS:
        check.run(unit)


def _convention(unit: Unit) -> Abi:
    """The convention of the root."""
    shadow = [kind == "dup" or i in unit.activity.scratch for i, kind in enumerate(unit.request.activity)]
    unit.abis[unit.root] = Abi(unit.root, shadow=shadow)
    return unit.abis[unit.root]


def examined(module: Module, request: Request, rules: Rulebook | None = None, moves: Moves | None = None) -> Unit:
    """The module normalised and analysed; `moves` is told what may be undone."""
    refuse_libraries(module)
    if rules is not None:
        module.rules = rules
        rules.hide()
    run_passes(stages.NORMALISE, Code(model=module), Settings((request.function,)))
    root = module.functions[request.function]
    choices = dict(segmented(request))
    if not choices:
        unit = analysed(module, root, request, moves=moves)
        loops = worth_fusing(unit, _convention(unit)) if _may_fuse(request) else {}
        if not loops:
            return unit
        return analysed(module, root, request, outline_fused(module, root, loops, request.bytes_of), moves=moves)
    fused: dict[Function, Segments] = {}
    if any(choice.fused or place == EVERY for place, choice in choices.items()):
        fused = _fused(analysed(module, root, request, moves=moves), choices)
    segments, left = outline_segments(module, root, choices, request.bytes_of, fused)
    return analysed(module, root, request, segments, left, moves)


def _fused(unit: Unit, choices: dict[str, Choice]) -> dict[Function, Segments]:
    """The loops of a root whose primal sweep runs the reverse one as well; their places are taken out of `choices`."""
    module, request = unit.module, unit.request
    why = "`runtime_activity` asks when it runs what has a derivative" if request.runtime_activity else ""
    if request.strong_zero or request.zero_slopes:
        why = "`strong_zero` looks for zeros in each product, and here factors are multiplied before the loop"
    if why:
        for place in [place for place, choice in choices.items() if choice.fused]:
            raise not_fused(unit.pointers, place, why)
        return {}
    active = Activity(unit.activity.value, unit.activity.object)
    loops = fused_loops(module, unit.pointers, choices, request.bytes_of, active)
    for place in [place for place, choice in choices.items() if choice.fused]:
        del choices[place]
    return outline_fused(module, unit.root, loops, request.bytes_of)


def _may_fuse(request: Request) -> bool:
    exact = request.runtime_activity or request.strong_zero or request.zero_slopes
    return request.fuse and request.derivative in ("vjp", "pullback") and request.width == 1 and not exact


def segmented(request: Request) -> tuple[tuple[str, Choice], ...]:
    """The loops that a request has in segments; a split derivative hands its tape to the program."""
    if request.checkpoint and request.derivative == "split_reverse":
        warnings.warn(WholeTape("a derivative in two halves hands its tape to the program"), stacklevel=2)
    return request.checkpoint if request.derivative in ("vjp", "pullback") else ()


def analysed(
    module: Module, root: Function, request: Request, segments: Mapping[Function, Segments] | None = None,
    left: Mapping[tuple[Function, str], str] | None = None, moves: Moves | None = None,
) -> Unit:  # fmt: skip
    """The analysed module; `segments`, `left`: its loops in segments, and why others are not. Ruled functions of which
    an active call has no rule for its types get their bodies back."""
    dup = set(request.active)
    while True:
        facts = Facts(module, root, dup, request.elements)
        if drop_other_targets(facts):
            facts = Facts(module, root, dup, request.elements)
        if loosen(facts):
            facts = Facts(module, root, dup, request.elements)
        if retype(facts):
            facts = Facts(module, root, dup, request.elements)
        while move_words(facts, moves or Moves()):
            facts = Facts(module, root, dup, request.elements)
        while not segments and separate_constants(facts):
            facts = Facts(module, root, dup, request.elements)
        if watch_lost(facts):
            facts = Facts(module, root, dup, request.elements)
        unit = Unit(module, root, facts, request, segments, left)
        while not unit.facts.checked.issuperset(unit.get(Relocations).checked):
            facts.check(unit.get(Relocations).checked)
            unit = Unit(module, root, facts, request, segments, left)
        unit.emit_with(forward=emit_forward, reverse=emit_reverse)
        wanted = without_rule(unit)
        if not wanted:
            return unit
        for fn in wanted:
            module.rules.show(fn)
        shown = frozenset(str(fn.name) for fn in wanted)
        run_passes(stages.NORMALISE[1:], Code(model=module), Settings((str(root.name),), functions=shown))


def scheduled(text: str, name: str) -> str:
    """The module of a wide derivative with its loops cut in two or jammed, products of lanes moved out of them, less
    shadow memory cleared and less computed; as it is when nothing of that is worth it."""
    if LANES not in outline(text).attributes:
        return text
    code = run_passes(stages.SCHEDULE, Code(prepare(text, [name]), roots=[name]), Settings((name,)))
    return code.text if code.changes else text


def link_runtime(text: str, *, whole: bool = False, arena: bool = True) -> str:
    """The module with the bodies of the runtime in place of their declarations.

    whole: nobody calls in to empty the arena, so that several such modules may be linked into one program; arena: False
    where that of the host is not wanted.
    """
    code = Code(text)
    run_passes(stages.LINK[:-1], code, Settings())
    if not arena:
        return code.text
    linked = link_arena(code.text, whole=whole)
    with observed(stages.LINK[-1].name, Code(linked)):
        return linked
