"""optimise: IR text -> IR module ready for code generation on this machine: O3, loop and SLP vectorisation, libmvec."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from irgrad.engine.codegen import vector_math
from irgrad.engine.codegen.llvm import binding, host_cpu, host_features, parse
from irgrad.engine.codegen.prepare import strip_target
from irgrad.rules.errors import LoadError

__all__ = ["ADJOINT", "host_machine", "machine_for", "optimise", "optimised_module"]

ADJOINT = '"irgrad-reverse"'
"""Function attribute by which derivative code says that it is a reverse sweep."""


def host_machine(*, opt: int = 3, reloc: str = "pic", gathers: bool = True) -> Any:
    """A target machine for this CPU with all its features; code is position-independent in the small code model."""
    llvm = binding()
    features = host_features()
    if not gathers and "+avx2" in features:
        features += ",+prefer-no-gather"
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=host_cpu(), features=features, opt=opt, reloc=reloc, codemodel="small"
    )


def machine_for(text: str, *, opt: int = 3) -> Any:
    """The host machine for a module. Loops over arrays of structs are not vectorised through gathers (measured: 1.9x on
    tangents of a skinned mesh, hardware gathers load lane by lane), except in adjoint code, where they won (1.4x on
    bundle adjustment)."""
    return host_machine(opt=opt, gathers=ADJOINT in text)


def optimised_module(
    text: str, entries: Sequence[str] | None, machine: Any, *, strict_fp: bool = False, level: int = 3
) -> Any:
    """The optimised llvmlite module of `text`; only `entries` stay visible (None: what the text says). See
    `optimise`."""
    text = strip_target(text)
    module = parse(text if strict_fp or level < 2 else vector_math.annotate(text))
    if entries is not None:
        _internalise(module, entries)
    _run_pipeline(module, machine, level, ADJOINT in text)
    if strict_fp or level == 0:
        return module
    optimised = str(module)
    rewritten = vector_math.rewrite(optimised)
    if rewritten is optimised:
        return module
    module.close()
    module = parse(rewritten)
    llvm = binding()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level)))
    return module


def optimise(text: str, entries: Sequence[str], *, strict_fp: bool = False, level: int = 3) -> str:
    """Optimise a module for this CPU and return its text.

    entries:   functions that stay visible; all others are internal
    strict_fp: keep scalar accuracy: vector math goes through scalar libm rather than libmvec (<= 4 ulp)
    level:     0-3, the speed level of LLVM's pipeline

    Raises IRSyntaxError or IRInvalid for text that LLVM refuses, LoadError for an entry without a body.
    """
    module = optimised_module(text, entries, machine_for(text, opt=level), strict_fp=strict_fp, level=level)
    result = str(module)
    module.close()
    return result


def _internalise(module: Any, entries: Sequence[str]) -> None:
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
    """
    llvm = binding()
    if llvm.llvm_version_info[0] == 22:  # LLVM ends the process over a switch that it does not know
        llvm.set_option("irgrad", "-hoist-runtime-checks=false")


def _run_pipeline(module: Any, machine: Any, level: int, scattered: bool) -> None:
    # Adjoint code adds to neighbouring elements that the iteration before has just written one by one. Loaded as one
    # vector they miss store forwarding (measured: 3x on a stencil's reverse sweep), so SLP vectorisation stays off
    # there.
    llvm = binding()
    _switches()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = level >= 2
    options.slp_vectorization = level >= 2 and not scattered
    options.loop_interleaving = options.loop_unrolling = level >= 2
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
