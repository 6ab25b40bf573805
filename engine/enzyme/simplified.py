"""Programs made ready for the search for calls of the notation: a function that is passed on is seen at the call.

Local variables become values, and functions around the call (C++ templates, lambdas as pointers) are inlined.
"""

from __future__ import annotations

import re

from irgrad.engine.enzyme.calls import PREFIX
from irgrad.engine.ir.quoting import bare_name
from irgrad.engine.ir.text.entities import cut

__all__ = ["simplified"]

_SYMBOL = re.compile(r'@(?:"[^"]*"|[-\w$.]+)', re.ASCII)
_GIVEN = re.compile(r"call [^@\n]*@[\w.]*__enzyme_\w*\((?:ptr [^,()]*sret[^,%]*%[^,]*, )?ptr (?:noundef )?%")
_NAMES = re.compile(r"\{\n(?:[-\w.$]+:[^\n]*\n)?  ret ptr @[^\n]*\n\}")
_WRAPPERS = 4  # templates around templates around the call


def simplified(text: str, whole: bool, preopt: bool) -> str:
    """The text of the program without local variables and wrappers that hide which function is differentiated; whole,
    preopt: see `lower`."""
    from irgrad.engine.codegen.llvm import binding, parse, target_machine
    from irgrad.engine.codegen.prepare import strip_target

    llvm = binding()
    module = parse(strip_target(text))
    machine, tuning = target_machine(), llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()

    builder = llvm.create_pass_builder(machine, tuning)

    def simplify() -> None:
        for fn in module.functions:
            if not fn.is_declaration and (preopt or PREFIX in str(fn)):
                passes.run(fn, builder)

    simplify()
    for _ in range(_WRAPPERS):
        names = _wrappers(str(module))
        if not names:
            break
        for fn in (fn for fn in module.functions if fn.name in names and not any(map(_apart, fn.attributes))):
            fn.add_function_attribute("alwaysinline")
            if whole or fn.linkage.name.startswith("linkonce"):
                fn.linkage = "internal"
        inline = llvm.create_new_module_pass_manager()
        inline.add_always_inliner_pass()
        inline.add_global_dead_code_eliminate_pass()
        inline.run(module, builder)
        simplify()
    result = str(module)
    module.close()
    return result


def _apart(attributes: bytes) -> bool:
    return b"noinline" in attributes


def _wrappers(text: str) -> set[str]:
    """Functions that differentiate what they are given (C++ templates around the call), and with them those that do
    nothing but name a function (a lambda as a pointer): they have to be inlined."""
    given, names = set(), set()
    for entity in cut(text):
        if entity.body is None or (symbol := _SYMBOL.search(text, entity.start, entity.end)) is None:
            continue
        if text.find(PREFIX, *entity.body) >= 0 and _GIVEN.search(text, *entity.body):
            given.add(bare_name(symbol[0]))
        elif _NAMES.search(text, entity.start, entity.end):
            names.add(bare_name(symbol[0]))
    return (given | names) - {"main"} if given else given
