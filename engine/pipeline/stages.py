"""The stages of the engine and the passes of each, in the order in which a module goes through them.

    prepare        text as a compiler wrote it      -> optimised, scalar, canonical loops          (LLVM's passes)
    exceptions     throws, landing pads             -> ordinary control flow; prepared once more
    normalise      the module as a model            -> one spelling for what means the same
    check          the analysed module              -> refused, or found to have a derivative
    differentiate  the module                       -> the module and its derivative
    schedule       a wide derivative                -> loops cut, jammed, shortened
    link           a derivative                     -> with the bodies of the runtime
    lower          a module with its entry          -> optimised for the machine, ready for code generation

`irgrad opt -p NAME[,NAME] in.ll` runs passes or whole stages on a file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from irgrad.engine.codegen.optimise import LOWER
from irgrad.engine.codegen.passes import Code, Pass, Settings, about, function_pass, model_pass, text_pass
from irgrad.engine.codegen.prepare import PREPARE
from irgrad.engine.ir.assembly import link_assembly
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.normalise.alternating import swap_alternating
from irgrad.engine.normalise.complex_products import join_complex_products
from irgrad.engine.normalise.computed_extrema import repeat_extrema
from irgrad.engine.normalise.demote import close_loops
from irgrad.engine.normalise.desugar import desugar
from irgrad.engine.normalise.equal_phis import merge_alike
from irgrad.engine.normalise.exceptions.unwinding import lower_exceptions
from irgrad.engine.normalise.extrema import address_extrema
from irgrad.engine.normalise.growth import drop_growth
from irgrad.engine.normalise.library import expand_library
from irgrad.engine.normalise.loop_versions import version_loops
from irgrad.engine.normalise.own_memory import separate_calls
from irgrad.engine.normalise.pointer_distances import settle_distances
from irgrad.engine.normalise.reducible import canonicalise, make_reducible
from irgrad.engine.normalise.reinterpret.elements import separate_elements
from irgrad.engine.normalise.reinterpret.mixed import load_members, split_mixed_vectors
from irgrad.engine.normalise.reinterpret.packed import unpack
from irgrad.engine.normalise.reinterpret.pieces import join_pieces
from irgrad.engine.normalise.reinterpret.unions import move_unions
from irgrad.engine.normalise.scratch import reuse_scratch
from irgrad.engine.normalise.short_branches import select_branches
from irgrad.engine.normalise.split_ranges import split_ranges
from irgrad.engine.normalise.steady_phis import drop_steady
from irgrad.engine.normalise.unify_returns import unify_returns
from irgrad.engine.normalise.workspace import cut_workspaces
from irgrad.engine.runtime.approximations import link_approximations
from irgrad.engine.runtime.complex_products import link_complex_parts, link_complex_products
from irgrad.engine.runtime.copies import link_copies
from irgrad.engine.runtime.exceptions import link_exceptions
from irgrad.engine.runtime.helpers import link_arena
from irgrad.engine.runtime.persistent_memory import link_kept
from irgrad.engine.runtime.strong_products import link_strong
from irgrad.engine.runtime.word_sums import link_word_sums
from irgrad.engine.runtime.zero_tests import link_idle
from irgrad.engine.schedule.clears import shorten_clears
from irgrad.engine.schedule.demand import compute_on_demand
from irgrad.engine.schedule.distribute import distribute
from irgrad.engine.schedule.factors import keep_factors
from irgrad.engine.schedule.rare_choices import branch_rarely
from irgrad.engine.schedule.unroll_and_jam import jam

__all__ = ["EXCEPTIONS", "LINK", "LOWER", "NORMALISE", "PREPARE", "SCHEDULE", "STAGES", "find_passes"]


def _alone(function: Callable[[Function], object]) -> Callable[[Module, Function], object]:
    """A pass over a function that needs nothing of its module."""

    @wraps(function)
    def run(module: Module, fn: Function) -> object:
        return function(fn)

    return run


def _lower_exceptions(code: Code, settings: Settings) -> None:
    """Exceptions become ordinary control flow, before anything is differentiated."""
    keep = settings.keep
    module = code.model
    kept = frozenset(name for name in module.functions if keep is not None and keep(name))
    for root in settings.roots:
        lower_exceptions(module, module.functions[root], kept, leaving=settings.leaving)


EXCEPTIONS = (Pass("lower-exceptions", _lower_exceptions, "model", "Exceptions become ordinary control flow."),)


def _rooted(name: str, function: Callable[[Module, Function], object]) -> Pass:
    """A pass over the module of one root, whose arguments are what the analyses of memory take them for."""

    @wraps(function)
    def run(code: Code, settings: Settings) -> None:
        module = code.model
        if len(settings.roots) == 1 and settings.roots[0] in module.functions:
            function(module, module.functions[settings.roots[0]])

    return Pass(name, run, "model", about(function))


NORMALISE = (
    model_pass("expand-library", expand_library),
    _rooted("separate-calls", separate_calls),
    function_pass("desugar", desugar),
    function_pass("join-pieces", join_pieces),
    function_pass("split-mixed-vectors", _alone(split_mixed_vectors)),
    function_pass("load-members", _alone(load_members)),
    function_pass("unpack", unpack),
    function_pass("move-unions", _alone(move_unions)),
    function_pass("separate-elements", _alone(separate_elements)),
    function_pass("join-complex-products", join_complex_products),
    function_pass("merge-equal-phis", _alone(merge_alike)),
    function_pass("unify-returns", _alone(unify_returns)),
    function_pass("make-reducible", _alone(make_reducible)),
    function_pass("canonical-loops", _alone(canonicalise)),
    function_pass("drop-growth", _alone(drop_growth)),
    function_pass("drop-steady", _alone(drop_steady)),
    function_pass("version-loops", _alone(version_loops)),
    function_pass("split-ranges", _alone(split_ranges)),
    function_pass("select-branches", _alone(select_branches)),
    function_pass("settle-distances", _alone(settle_distances)),
    function_pass("cut-workspaces", _alone(cut_workspaces)),
    _rooted("reuse-scratch", reuse_scratch),
    _rooted("swap-alternating", swap_alternating),
    _rooted("address-extrema", address_extrema),
    function_pass("repeat-extrema", _alone(repeat_extrema)),
    function_pass("close-loops", _alone(close_loops)),
)

SCHEDULE = (
    model_pass("shorten-clears", shorten_clears),
    model_pass("keep-factors", keep_factors),
    model_pass("compute-on-demand", compute_on_demand),
    model_pass("unroll-and-jam", jam),
    model_pass("distribute", distribute),
)

LINK = (
    text_pass("branch-rarely", branch_rarely),
    text_pass("link-zero-tests", link_idle),
    text_pass("link-strong-products", link_strong),
    text_pass("link-complex-products", link_complex_products),
    text_pass("link-complex-parts", link_complex_parts),
    text_pass("link-approximations", link_approximations),
    text_pass("link-word-sums", link_word_sums),
    text_pass("link-assembly", link_assembly),
    text_pass("link-persistent-memory", link_kept),
    text_pass("link-copies", link_copies),
    text_pass("link-exceptions", link_exceptions),
    text_pass("link-arena", link_arena),
)

STAGES: dict[str, tuple[Pass, ...]] = {
    "prepare": PREPARE,
    "exceptions": EXCEPTIONS,
    "normalise": NORMALISE,
    "schedule": SCHEDULE,
    "link": LINK,
    "lower": LOWER,
}


def find_passes(names: str) -> tuple[Pass, ...]:
    """The passes and stages of a comma-separated list. Raises IRGradError for a name that is neither."""
    from difflib import get_close_matches

    from irgrad.rules.errors import IRGradError

    known: dict[str, tuple[Pass, ...]] = {step.name: (step,) for passes in STAGES.values() for step in passes}
    known |= STAGES
    found: list[Pass] = []
    for name in filter(None, names.split(",")):
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise IRGradError(f"there is no pass `{name}`", fix=f"`{near[0]}`?" if near else "irgrad opt --list")
        found += known[name]
    return tuple(found)
