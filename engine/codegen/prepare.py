"""prepare: a linked module as a compiler wrote it -> the optimised, canonical, still scalar module to differentiate.

Optimise first and differentiate afterwards (Moses and Churavy, NeurIPS 2020): the derivative of optimised code is
several times faster than the optimised derivative of unoptimised code. So the O2 pipeline runs, without loop and SLP
vectorisation and without partial unrolling (short loops of constant length are unrolled in full: it turns arrays of
three coordinates into scalars, which need no tape), and then every loop gets a preheader, one latch, dedicated exits
and LCSSA phis, and every function one return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from irgrad.engine.codegen.early_inlining import inline_handed_locals, inline_promises, inline_small
from irgrad.engine.codegen.large_modules import is_large, keep_apart
from irgrad.engine.codegen.llvm import binding, check_text, parse
from irgrad.engine.codegen.masked import masked_memory
from irgrad.engine.codegen.member_arrays import bound_members, drop_looks
from irgrad.engine.codegen.passes import Code, Settings, llvm_pass, run_passes, text_pass
from irgrad.engine.codegen.self_references import hold_self_references
from irgrad.engine.ir.assembly import plain_assembly
from irgrad.engine.ir.text.outline import function_bodies, outline
from irgrad.engine.normalise.byte_copies import copy_at_once
from irgrad.engine.normalise.variadic import fixed_arguments
from irgrad.engine.normalise.x86.lower import PREFIX, lower_vector_intrinsics
from irgrad.engine.support.lines import change_lines, lines_of
from irgrad.rules.errors import LoadError
from irgrad.rules.lookup import float_intrinsics

__all__ = ["PREPARE", "TIDY", "inlined", "out_of_line", "prepare", "strip_target", "tidy"]

# Unrolling in LLVM follows the CPU's loop buffer. This CPU model has none: full unrolling of short loops stays, runtime
# and partial unrolling (which would multiply the derivative's size) do not happen.
_PREPARE_CPU = {"x86_64": "nocona"}

_TARGET_ATTRIBUTES = re.compile(
    r' "(?:target-cpu|target-features|tune-cpu|frame-pointer|min-legal-vector-width|stack-protector-buffer-size'
    r'|no-trapping-math|probe-stack|zero-call-used-regs|no-jump-tables)"(?:="[^"]*")?'
)
_HARDENING = re.compile(r" (?:ssp|sspstrong|sspreq|safestack|sanitize_\w+|optnone)\b")
_GROUP_LINE = re.compile(r"^attributes #(\d+) = \{([^\n]*)\}$", re.M)
_DEFINE_LINE = re.compile(r'^define\b[^\n@]*@(?:"(?P<quoted>[^"\n]*)"|(?P<plain>[-a-zA-Z$._0-9]+))\([^\n]*$', re.M)
_DEBUG_RECORDS = re.compile(r"^ +#dbg_[^\n]*\n", re.M)
_PERSONALITY = re.compile(
    r" personality ptr @__gxx_personality_v0|^declare i32 @__gxx_personality_v0\(\.\.\.\)\n", re.M
)
_ALIAS = re.compile(r'^@(?P<name>"[^"\n]+"|[\w.$-]+) = (?P<words>(?:[a-z_]+ )*)alias ', re.M)
_TRIPLE = "target triple = "

_BYTE_MOVE = re.compile(r"(%\S+) = load i8, [^\n]*\n(?:[^\n]*\n){0,8}?[^\n]* store i8 \1,")
_LINES = r"(?:[ ;][^\n]*\n)*?  "
_BYTE_LOOP = re.compile(rf"^(?P<label>[^\s:]+):[^\n]*\n{_LINES}(?P<value>%\S+) = load i8, [^\n]*\n{_LINES}"
                        rf"store i8 (?P=value), [^\n]*\n{_LINES}br i1 [^\n]*%(?P=label)[,\s]", re.M)  # fmt: skip
_NO_INLINE = re.compile(r"^attributes #\d+ = \{[^\n]* noinline[^\n]*$", re.M)
_SMALL = 60  # instructions of a function that is inlined for its loop over bytes

_DECLARED_LIBM = re.compile(
    r"^declare (?P<head>[^@\n]*?)\b(?P<type>double|float) @(?P<name>[a-z]\w*)\((?P<args>[^)\n]*)\)[^\n]*\n", re.M
)


_CALLED_LIBM = re.compile(r"(?P<head> call (?:[^@\n]*[^@\n\w])?(?P<type>double|float) )@(?P<name>[a-z]\w*)\(")


def strip_target(text: str) -> str:
    """Drop what ties functions to a CPU or keeps LLVM from optimising them; the triple becomes this process's.

    Machine code is made for the host later, with one set of CPU features for every function.
    """
    def clean(line: str) -> str:
        if " optnone" in line:  # clang -O0 says `noinline optnone`; a user's own `noinline` comes without optnone
            line = line.replace(" noinline", "")
        line = _HARDENING.sub("", _TARGET_ATTRIBUTES.sub("", line))
        return line.replace("{ }", '{ "irgrad" }')  # LLVM refuses an empty group

    text = change_lines(text, "attributes #", clean)
    text = _DEBUG_RECORDS.sub("", text) if " #dbg_" in text else text
    triple = f'target triple = "{binding().get_process_triple()}"'
    said = any(lines_of(text, _TRIPLE))
    return change_lines(text, _TRIPLE, lambda _: f"{triple}\n") if said else f"{triple}\n{text}"


def out_of_line(text: str, keep: Callable[[str], bool]) -> str:
    """Functions that are kept lose `alwaysinline`, which no linkage withstands."""
    groups = {m[1]: m[2] for m in _GROUP_LINE.finditer(text)}
    loud = {number: body for number, body in groups.items() if re.search(r"\balwaysinline\b", body)}
    if not loud:
        return text
    fresh = {number: str(1 + max(map(int, groups)) + i) for i, number in enumerate(loud)}

    def changed(match: re.Match[str]) -> str:
        name = match["quoted"] or match["plain"]
        return re.sub(r"#(\d+)", lambda m: f"#{fresh.get(m[1], m[1])}", match[0]) if keep(name) else match[0]

    quiet = [re.sub(r"\balwaysinline\b", "", f"attributes #{fresh[n]} = {{{body}}}") for n, body in loud.items()]
    quiet = [line.replace("{ }", '{ "irgrad" }').replace("{  }", '{ "irgrad" }') for line in quiet]
    return _DEFINE_LINE.sub(changed, text) + "\n" + "\n".join(quiet) + "\n"


def inlined(text: str, name: str) -> str:
    """The module with every function but one marked to be inlined."""
    module = parse(_NO_INLINE.sub(lambda group: group[0].replace(" noinline", ""), text))
    for function in module.functions:
        if not function.is_declaration and function.name != name:
            function.add_function_attribute("alwaysinline")
    marked = str(module)
    module.close()
    return marked


def _pure_libm(text: str) -> str:
    """Calls of libm functions that may write errno (`-fmath-errno`) become the intrinsics, which LLVM understands."""
    wanted: dict[tuple[str, str], str] = {}  # type and name -> arguments
    for declared in _DECLARED_LIBM.finditer(text):
        suffix = "f" if declared["type"] == "float" else ""
        name = declared["name"]
        row = float_intrinsics().get(name.removesuffix("f") if suffix else name)
        kinds = [argument.split()[0] if argument.split() else "" for argument in declared["args"].split(",")]
        if row is None or (suffix and not name.endswith("f")) or kinds != [declared["type"]] * row[1]:
            continue
        wanted[declared["type"], name] = f"llvm.{row[0]}.{'f32' if suffix else 'f64'}({', '.join(kinds)})"
    used: dict[str, str] = {}

    def intrinsic(call: re.Match[str]) -> str:
        made = wanted.get((call["type"], call["name"]))
        if made is None:
            return call[0]
        used[made] = call["type"]
        return f"{call['head']}@{made.partition('(')[0]}("

    if wanted:
        text = _CALLED_LIBM.sub(intrinsic, text)
    for made, type_ in used.items():
        if not re.search(rf"^declare [^@\n]*@{re.escape(made.partition('(')[0])}\(", text, re.M):
            text += f"\ndeclare {type_} @{made}\n"
    return text


def _own_aliases(text: str) -> str:
    """Aliases (constructors that are another one's body) are internal, as functions are."""
    def own(match: re.Match[str]) -> str:
        words = [word for word in match["words"].split() if word in ("dso_local", "unnamed_addr", "local_unnamed_addr")]
        return f"@{match['name']} = {' '.join(['internal', *words])} alias "

    return _ALIAS.sub(own, text)


def _architecture() -> str:
    return str(binding().get_process_triple()).partition("-")[0]


def _expose(module: Any, roots: Sequence[str], keep: Callable[[str], bool] | None) -> None:
    """Roots are external, what has a rule stays out of line, everything else that has a body is internal."""
    wanted = set(roots)
    defined = {function.name for function in module.functions if not function.is_declaration}
    for root in roots:
        if root not in defined:
            raise LoadError(f"`{root}` has no body", because="it is only declared here, or not at all",
                            fix="load the file that defines it as well: load([..., ...])")
    for function in module.functions:
        if function.is_declaration:
            continue
        if function.name in wanted:
            function.linkage = "external"
        elif keep is not None and keep(function.name):
            function.linkage = "weak_any"  # as if another body could take its place: nobody looks into it
            function.add_function_attribute("noinline")
        else:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration and not variable.name.startswith("llvm."):
            variable.linkage = "internal"


def _settle(module: Any, machine: Any, keep: Callable[[str], bool]) -> None:
    """What was kept apart is external again, and what it does to memory is written on it."""
    llvm = binding()
    for function in module.functions:
        if not function.is_declaration and keep(function.name):
            function.linkage = "external"
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_post_order_function_attributes_pass()
    passes.run(module, builder)


def _catches(module: Any) -> bool:
    """Whether some function has a handler: then cleanups on the way to it have to run."""
    return any("@__cxa_begin_catch(" in str(function) for function in module.functions
               if not function.is_declaration and function.name != "__clang_call_terminate")  # fmt: skip


def _drop_cleanup_pads(module: Any, machine: Any) -> None:
    """Invokes whose landing pads only clean up (C++ destructors) become calls.

    An exception that leaves a kernel ends the program, so where nothing catches, what those pads free is of no
    interest, and the code has no unwinding edges.
    """
    llvm = binding()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_function_pass_manager()
    passes.add_lower_invoke_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration and "invoke " in str(function):
            passes.run(function, builder)


def _optimise(module: Any, machine: Any) -> None:
    llvm = binding()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    # What only its wrapper calls has one caller less from then on, so that functions which it alone calls are inlined
    # as in a program of the user's. Not of C++ so far: inlined that far, a vector of vectors is refused, since the
    # types of memory do not tell the pointers to its rows from their elements (tests/cpp_programs.py).
    if not any(function.name.startswith("_Z") for function in module.functions if not function.is_declaration):
        first = llvm.create_new_module_pass_manager()
        first.add_always_inliner_pass()
        first.add_global_dead_code_eliminate_pass()
        first.run(module, builder)
    builder.getModulePassManager().run(module, builder)


def _canonicalise(module: Any, machine: Any, *, inline: bool = False) -> None:
    llvm = binding()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_module_pass_manager()
    if inline:  # the function into its normal form
        passes.add_always_inliner_pass()
    passes.add_loop_rotate_pass()
    passes.add_unify_function_exit_nodes_pass()
    passes.add_loop_simplify_pass()
    passes.add_lcssa_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)


# -- the passes -------------------------------------------------------------------------------------------------------


def fix_arguments(text: str) -> str:
    """Functions with variable arguments become functions of one more pointer."""
    return fixed_arguments(text) if outline(text).has_prefix("llvm.va_start") else text


def lower_x86(code: Code, settings: Settings) -> None:
    """Vector intrinsics of x86 become the generic IR that does the same."""
    if code.has_function(PREFIX):
        for fn in list(code.model.functions.values()):
            lower_vector_intrinsics(code.model, fn)


def lower_masked(code: Code, settings: Settings) -> None:
    """Masked loads and stores become branches around scalar ones."""
    if code.has_function("llvm.masked."):
        text = code.text if code.form == "llvm" else str(parse(code.text))
        code.text = masked_memory(text)
        code.notes.add("masked")


def keep_out_of_line(code: Code, settings: Settings) -> None:
    """Functions that have a rule lose `alwaysinline`, which no linkage withstands."""
    if settings.keep is not None:
        changed = out_of_line(code.text, settings.keep)
        if changed is not code.text:
            code.text = changed


def expose(code: Code, settings: Settings) -> None:
    """Roots are external, what has a rule stays out of line, everything else that has a body is internal."""
    code.forget("masked")
    code.note("matrix", code.has_function("llvm.matrix."))
    code.note("invoke", " invoke " in code.text and "invoke" in outline(code.text).opcodes)
    _expose(code.llvm, settings.roots, settings.keep)


def keep_long_apart(code: Code, settings: Settings) -> None:
    """Of a large module, what would make its caller very long stays a function of its own."""
    if settings.preopt and is_large(code.text):
        keep_apart(code.llvm, code.text)


def copy_bytes(code: Code, settings: Settings) -> None:
    """Loops that copy byte by byte become memcpy where the places do not overlap; small functions of them are inlined.

    Later they would be unrolled, and what they copy would be taken apart."""
    if not settings.preopt or " load i8, " not in code.text:
        return
    moving = {name for name, body in function_bodies(code.text).items()
              if " load i8, " in body and " store i8 " in body and _BYTE_MOVE.search(body)}  # fmt: skip
    if not moving:
        return
    llvm = binding()
    builder = llvm.create_pass_builder(_machine(code), llvm.create_pipeline_tuning_options(speed_level=2))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_rotate_pass()
    passes.add_loop_simplify_pass()
    passes.add_lcssa_pass()
    for function in code.llvm.functions:
        if function.name in moving:
            passes.run(function, builder)
    bodies = function_bodies(code.text)
    names = [name for name in sorted(moving) if _BYTE_LOOP.search(bodies.get(name, ""))]
    if not names:
        return
    changed = [fn for name in names if copy_at_once(code.model, fn := code.model.functions[name])]
    small = {fn.name for fn in changed if sum(1 for _ in fn.instructions()) < _SMALL}
    for function in code.llvm.functions if small else ():
        if function.name in small and function.linkage.name == "internal" and b"noinline" not in function.attributes:
            function.add_function_attribute("alwaysinline")
    if small:
        inline = llvm.create_new_module_pass_manager()
        inline.add_always_inliner_pass()
        inline.run(code.llvm, builder)


def optimise_scalar(code: Code, settings: Settings) -> None:
    """LLVM's O2 without vectorisation and without partial unrolling."""
    if settings.preopt or "matrix" in code.notes:  # (the pipeline lowers matrices when it is nearly through)
        _optimise(code.llvm, _machine(code))


def optimise_again(code: Code, settings: Settings) -> None:
    """The same once more, where masked accesses or matrices were lowered in between."""
    if settings.preopt and code.notes & {"matrix", "masked"}:
        _optimise(code.llvm, _machine(code))


def inline_locals(code: Code, settings: Settings) -> None:
    """Short functions that are handed variables of their callers become parts of them, and all is optimised again."""
    if settings.preopt and not is_large(code.text) and inline_handed_locals(code, settings):
        _optimise(code.llvm, _machine(code))


def lower_late_masked(code: Code, settings: Settings) -> None:
    """What intrinsics of a CPU have become: masked accesses."""
    if settings.preopt:
        lower_masked(code, settings)


def settle(code: Code, settings: Settings) -> None:
    """What was kept apart is external again, and what it does to memory is written on it."""
    if settings.keep is not None:
        _settle(code.llvm, _machine(code), settings.keep)


def drop_cleanup(code: Code, settings: Settings) -> None:
    """Landing pads that only clean up go, where nothing catches."""
    if "invoke" in code.notes and not settings.leaving and not _catches(code.llvm):
        _drop_cleanup_pads(code.llvm, _machine(code))


def simplify_loops(code: Code, settings: Settings) -> None:
    """Loops get a preheader, one latch, exits of their own and LCSSA phis; functions one return."""
    _canonicalise(code.llvm, _machine(code), inline=not settings.preopt)


def drop_personality(code: Code, settings: Settings) -> None:
    """Functions without landing pads have no personality."""
    if "__gxx_personality_v0" in code.text and "landingpad" not in outline(code.text).opcodes:
        code.text = _PERSONALITY.sub("", code.text)


def checked(text: str) -> str:
    """The text is not too long and not too deep for LLVM's parser."""
    check_text(text)
    return text


PREPARE = (
    text_pass("check-text", checked),
    text_pass("strip-target", strip_target),
    text_pass("own-aliases", _own_aliases),
    text_pass("hold-self-references", hold_self_references),
    text_pass("plain-assembly", plain_assembly),
    text_pass("fix-arguments", fix_arguments),
    llvm_pass("lower-x86", lower_x86),
    llvm_pass("lower-masked", lower_masked),
    llvm_pass("keep-out-of-line", keep_out_of_line),
    text_pass("pure-libm", _pure_libm),
    llvm_pass("expose", expose),
    llvm_pass("keep-long-apart", keep_long_apart),
    llvm_pass("bound-members", bound_members),
    llvm_pass("copy-bytes", copy_bytes),
    llvm_pass("optimise-scalar", optimise_scalar),
    llvm_pass("lower-late-masked", lower_late_masked),
    llvm_pass("optimise-again", optimise_again),
    llvm_pass("inline-locals", inline_locals),
    llvm_pass("settle", settle),
    llvm_pass("drop-cleanup", drop_cleanup),
    llvm_pass("simplify-loops", simplify_loops),
    llvm_pass("drop-personality", drop_personality),
    text_pass("drop-looks", drop_looks),
)
"""From a linked module as a compiler wrote it to the optimised, canonical, still scalar module to differentiate."""


def use_registers(code: Code, settings: Settings) -> None:
    """Variables are values, and what is always inlined is; loops that run once, as those that ask OpenMP for the next
    iterations on one thread, are none."""
    llvm = binding()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_rotate_pass()
    passes.add_sccp_pass()
    passes.add_simplify_cfg_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes.run(code.llvm, llvm.create_pass_builder(_machine(code), options))


_FIRST = [step.name for step in PREPARE].index("expose") + 1
TIDY = (
    *PREPARE[:_FIRST],
    llvm_pass("inline-promises", inline_promises),
    llvm_pass("inline-small", inline_small),
    llvm_pass("use-registers", use_registers),
    llvm_pass("inline-small", inline_small),
    llvm_pass("use-registers", use_registers),
    llvm_pass("drop-cleanup", drop_cleanup),
    next(step for step in PREPARE if step.name == "simplify-loops"),
)
"""To canonical loops as the source has them: before anything moves values from one iteration to the next."""


def tidy(
    text: str, roots: Sequence[str], keep: Callable[[str], bool] | None = None, *, small: bool = False
) -> str:  # fmt: skip
    """A module in canonical form with nothing else optimised: the passes of `TIDY`. Raises what `prepare` raises.

    small: small functions become parts of their callers, so that what loops do is seen in them
    """
    code = Code(text)
    passes = [step for step in TIDY if small or step.name not in ("inline-small", "drop-cleanup")]
    run_passes(passes, code, Settings(tuple(roots), keep))
    result = code.text
    code.close()
    return result


def prepare(
    text: str, roots: Sequence[str], keep: Callable[[str], bool] | None = None, *, preopt: bool = True,
    leaving: bool = False, members: bool = False,
) -> str:
    """Optimise a module for differentiation and bring it into canonical form: the passes of `PREPARE`.

    roots: names of the functions that stay visible; everything else becomes internal and may be inlined or dropped
    keep:  functions for which it is true (they have a rule) are neither inlined nor specialised, nor do their callers
           learn what they do with their arguments: a rule may read what the body does not
    preopt: False for the passes that canonical form needs, and no others: for measuring what the others are worth
    leaving: whether exceptions that leave a root reach its caller: then what they pass on the way cleans up
    members: whether indices of arrays that are members of structs are bounded by the arrays

    Returns the module's text; debug locations are kept, debug variables are not. Raises LoadError when a root has no
    body, IRSyntaxError or IRInvalid when LLVM refuses the text.
    """
    code = Code(text)
    run_passes(PREPARE, code, Settings(tuple(roots), keep, preopt, leaving, members))
    result = code.text
    code.close()
    return result


def _machine(code: Code) -> Any:
    return code.machine(_PREPARE_CPU.get(_architecture(), ""), 2)
