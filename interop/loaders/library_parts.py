"""Functions of a library that a module declares, with all that they need, linked into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.engine.codegen.llvm import binding, parse, target_machine

__all__ = ["declared", "with_parts"]

_MOST_ROUNDS = 4
_DECLARED = re.compile(r'^declare [^@\n]*@"?([\w$.]+)"?\(|^@"?([\w$.]+)"? = external ', re.M)


def declared(text: str) -> list[str]:
    """The functions and variables that a module declares and does not define."""
    return [found[1] or found[2] for found in _DECLARED.finditer(text)]


def with_parts(text: str, source_of: Callable[[str], str | None], compiled: Callable[[str], str]) -> str:
    """The module with the library functions it declares, internal to it.

    source_of: the source that defines a symbol, None for what is not of the library; compiled: the IR of a source.
    Raises IRSyntaxError or IRInvalid when LLVM refuses `text`.
    """
    context = binding().create_context()
    module = parse(text, context)
    asked: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        wanted: dict[str, set[str]] = {}
        for value in (*module.functions, *module.global_variables):
            source = source_of(value.name) if value.is_declaration and value.name not in asked else None
            if source is not None:
                wanted.setdefault(source, set()).add(value.name)
        if not wanted:
            break
        asked.update(*wanted.values())
        for source, symbols in sorted(wanted.items()):
            module.link_in(parse(_kept_part(compiled(source), symbols), context))
    for value in (*module.functions, *module.global_variables):
        if value.name in asked and not value.is_declaration:
            value.linkage = "internal"
    result = str(module)
    module.close()
    return result


def _kept_part(whole: str, symbols: Iterable[str]) -> str:
    """What some functions of a module need of it, through the disk cache."""
    wanted = sorted(symbols)
    store, key = default_cache(), fingerprint("library-part-1", whole, *wanted)
    kept = store.get("ir", key)
    if kept is None:
        kept = _extract(whole, set(wanted)).encode("utf-8", "surrogateescape")
        store.put("ir", key, kept)
    return kept.decode("utf-8", "surrogateescape")


def _extract(text: str, wanted: set[str]) -> str:
    """A module with only these functions and globals, and what they reach."""
    llvm = binding()
    module = parse(text)
    for value in (*module.functions, *module.global_variables):
        if value.is_declaration or value.name.startswith("llvm.") or value.name in wanted:
            continue
        if value.is_global and not value.is_function and value.linkage.name == "weak_any":
            value.linkage = "linkonce_any"  # one for all objects of a program, where it is used
        elif value.linkage.name in ("external", "weak_odr", "weak_any"):
            value.linkage = "internal"
    passes: Any = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    builder = llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options(speed_level=0))
    passes.run(module, builder)
    result = str(module)
    module.close()
    return result
