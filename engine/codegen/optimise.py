"""optimise: IR text -> IR module ready for code generation on this machine: O3, loop and SLP vectorisation, libmvec."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from irgrad.engine.codegen import vector_math
from irgrad.engine.codegen.comdats import without_own_comdats
from irgrad.engine.codegen.hot_functions import cold_functions
from irgrad.engine.codegen.large_modules import is_large
from irgrad.engine.codegen.llvm import binding
from irgrad.engine.codegen.ordered_sums import has_fused_products, split_products
from irgrad.engine.codegen.passes import Code, Settings, llvm_pass, run_passes, text_pass
from irgrad.engine.codegen.polls import with_polls
from irgrad.engine.codegen.prepare import strip_target
from irgrad.engine.codegen.self_references import hold_self_references
from irgrad.engine.codegen.target import HOST, Target
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.support.lines import change_lines
from irgrad.rules.errors import LoadError

__all__ = ["LOWER", "internalise_except", "is_adjoint", "optimise", "optimised_module"]

ADJOINT = "irgrad-reverse"
"""Function attribute by which derivative code says that it is a reverse sweep."""

_SIZED = frozenset((b"alwaysinline", b"minsize", b"optsize"))  # attributes that `optnone` contradicts


def internalise_except(module: Any, entries: Sequence[str]) -> None:
    """All functions but the entries, and all variables, are the module's own. Raises LoadError for an entry without a
    body."""
    wanted = set(entries)
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name in wanted else "internal"
            wanted.discard(function.name)
    if wanted:
        raise LoadError(f"`{min(wanted)}` has no body", because="it is only declared in this module, or not at all",
                        fix="name a function that the module defines")
    for variable in module.global_variables:
        if not variable.is_declaration and not variable.name.startswith("llvm."):
            variable.linkage = "internal"


@cache
def _switches() -> None:
    """LLVM's own switches, set once per process: they are not in the tuning options.

    hoist-runtime-checks: a vectorised inner loop checks that its arrays are apart; by default once for all runs of the
    loop around it, which gives up when an address moves down from one run to the next. Reverse sweeps always move
    down, so that they never took the vector loop (measured: 1.7x on a stencil, 1.6x on an LSTM).

    extra-vectorizer-passes: a vectorised loop with branches computes both sides for every lane; what the sides share
    is computed once only where common subexpressions are looked for after vectorisation (measured: 1.5x on an LSTM
    cell written with branches, 2 % more time to compile).

    force-ordered-reductions: a loop that adds up in order is vectorised but for the additions themselves, which stay in
    their order, where the cost model finds that worth it (measured: 2.2x on a sum of exp and sin, 1.25x on a
    log-sum-exp with its gradient, 2.2x on forces of bodies; sums keep their bits).
    """
    llvm = binding()
    if llvm.llvm_version_info[0] == 22:  # LLVM ends the process over a switch that it does not know
        llvm.set_option("irgrad", "-hoist-runtime-checks=false")
        llvm.set_option("irgrad", "-extra-vectorizer-passes")
        llvm.set_option("irgrad", "-force-ordered-reductions")


def _run_first_passes(module: Any, machine: Any) -> None:
    """The passes that derivative code cannot do without."""
    llvm = binding()
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)))


def _leave_alone(module: Any, cold: frozenset[str]) -> None:
    """Mark functions that no more passes are to change."""
    for function in module.functions if cold else ():
        if function.name in cold and not _SIZED.intersection(b" ".join(function.attributes).split()):
            function.add_function_attribute("optnone")
            function.add_function_attribute("noinline")


def _run_pipeline(module: Any, machine: Any, level: int, scattered: bool, large: bool = False) -> None:
    # Adjoint code adds to neighbouring elements that the iteration before has just written one by one. Loaded as one
    # vector they miss store forwarding (measured: 3x on a stencil's reverse sweep), so SLP vectorisation stays off
    # there.
    llvm = binding()
    _switches()
    options = llvm.create_pipeline_tuning_options(speed_level=min(level, 1) if large else level)
    options.loop_vectorization = level >= 2
    options.slp_vectorization = level >= 2 and not scattered
    options.loop_interleaving = options.loop_unrolling = level >= 2 and not large
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


# -- the passes -------------------------------------------------------------------------------------------------------


def is_adjoint(text: str) -> bool:
    """Whether the module holds adjoint code."""
    return ADJOINT in outline(text).attributes


def note_adjoint(code: Code, settings: Settings) -> None:
    """Whether the module is adjoint code decides about vectorisation, its size about what makes it larger."""
    code.note("adjoint", is_adjoint(code.text))
    code.note("large", is_large(code.text))


def annotate_math(code: Code, settings: Settings) -> None:
    """Calls of libm may become vector calls."""
    if settings.approximate and settings.level >= 2:
        code.text = vector_math.annotate(code.text, settings.approximate, approximate=True)
    elif not settings.strict_fp and settings.level >= 2 and settings.vector_math:
        code.text = vector_math.annotate(code.text)


def split_sums(code: Code, settings: Settings) -> None:
    """Sums of products that loops carry are told as products and sums, where loops are vectorised."""
    if settings.level >= 2:
        text = code.text
        split = split_products(text, fused=has_fused_products(settings.machine) if settings.strict_fp else None)
        if split is not text:
            code.text = split


def leave_groups(code: Code, settings: Settings) -> None:
    """What is not visible outside is in no group of sections that objects share."""
    text = code.text
    own = without_own_comdats(text, every=bool(settings.roots))
    if own is not text:
        code.text = own


def internalise(code: Code, settings: Settings) -> None:
    """Only entries stay visible."""
    if settings.roots:
        internalise_except(code.llvm, settings.roots)


def optimise_for_machine(code: Code, settings: Settings) -> None:
    """LLVM's pipeline of the level, with loop and SLP vectorisation; of very large modules, without what adds code, and
    for the functions alone that run most often."""
    if "large" in code.notes:
        _run_first_passes(code.llvm, settings.machine)
        cold = cold_functions(code.text, settings.roots)
        _leave_alone(code.llvm, cold)
    _run_pipeline(code.llvm, settings.machine, settings.level, "adjoint" in code.notes, "large" in code.notes)


def generate_all(code: Code, settings: Settings) -> None:
    """The machine code of functions that passes left alone is made like all other: quick code is a fifth slower, and
    saves a third of what the passes save (measured on a library of 10,000 lines)."""
    if "large" in code.notes:
        code.text = change_lines(code.text, "attributes ", lambda line: line.replace(" optnone", ""))


def poll_loops(code: Code, settings: Settings) -> None:
    """Long loops ask whether a signal has come (`polls.py`)."""
    if settings.stoppable:
        optimised = code.text
        polled = with_polls(optimised, settings.roots, settings.stoppable if settings.stoppable is not True else "")
        if polled is not optimised:
            code.text = polled


def rewrite_math(code: Code, settings: Settings) -> None:
    """Vector calls go to the vector library, in small functions that are inlined."""
    if settings.strict_fp or settings.level == 0 or not settings.vector_math:
        return
    optimised = code.text
    rewritten = vector_math.rewrite(optimised)
    if rewritten is optimised:
        return
    code.text = rewritten
    llvm = binding()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_instruction_combine_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=settings.level)
    passes.run(code.llvm, llvm.create_pass_builder(settings.machine, options))


LOWER = (
    text_pass("strip-target", strip_target),
    text_pass("hold-self-references", hold_self_references),
    llvm_pass("note-adjoint", note_adjoint),
    llvm_pass("annotate-math", annotate_math),
    llvm_pass("split-sums", split_sums),
    llvm_pass("leave-groups", leave_groups),
    llvm_pass("internalise", internalise),
    llvm_pass("optimise-for-machine", optimise_for_machine),
    llvm_pass("generate-all", generate_all),
    llvm_pass("poll-loops", poll_loops),
    llvm_pass("rewrite-math", rewrite_math),
)
"""From a module with its entries to one that is ready for code generation on this machine."""


def optimised_module(
    text: str, entries: Sequence[str] | None, machine: Any = None, *, strict_fp: bool = False, level: int = 3,
    target: Target = HOST, approximate: str = "", stoppable: bool | str = False,
) -> Any:  # fmt: skip
    """The optimised llvmlite module of `text`; only `entries` stay visible (None: what the text says). See
    `optimise`; `approximate`, `stoppable`: see `Settings`."""
    if entries is not None and not entries:
        raise LoadError("no entry is named", fix="compile_module(text, entries=[...])")
    code = Code(text)
    machine = machine if machine is not None else target.machine_for(adjoint=is_adjoint(text), opt=level)
    settings = Settings(tuple(entries or ()), level=level, strict_fp=strict_fp, machine=machine,
                        vector_math=target.vector_math, approximate=approximate, stoppable=stoppable)  # fmt: skip
    return run_passes(LOWER, code, settings).take()


def optimise(text: str, entries: Sequence[str], *, strict_fp: bool = False, level: int = 3) -> str:
    """Optimise a module for this CPU and return its text.

    entries:   functions that stay visible; all others are internal
    strict_fp: keep scalar accuracy: vector math goes through scalar libm rather than libmvec (<= 4 ulp)
    level:     0-3, the speed level of LLVM's pipeline

    Raises IRSyntaxError or IRInvalid for text that LLVM refuses, LoadError for an entry without a body.
    """
    module = optimised_module(text, entries, strict_fp=strict_fp, level=level)
    result = str(module)
    module.close()
    return result
