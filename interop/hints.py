"""`irgrad hints FILE`, `irgrad rules list|show`: what a file calls that has no derivative, and what rules there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from irgrad.rules.effects import facts
from irgrad.rules.layers import current
from irgrad.rules.lookup import find, reduction

if TYPE_CHECKING:
    from irgrad.interop.loaders.library import Library
    from irgrad.rules.definitions.types import Kind

__all__ = ["hints", "import_rules", "unknown_callees"]

_DECLARE = re.compile(r'^declare\b[^\n@]*@(?:"([^"\n]*)"|([-a-zA-Z$._0-9]+))\(', re.M)


def unknown_callees(library: Library) -> Iterator[tuple[str, str]]:
    """Functions without body, rule or entry in the tables that the library declares, with their IR prototypes."""
    rules = current()
    for match in _DECLARE.finditer(library.text):
        name = match[1] or match[2]
        if name.startswith("llvm.") or find(name) is not None or reduction(name) is not None:
            continue
        if facts(name) is None and not rules.find(name, library.digest):
            line = library.text[match.start() : library.text.index("\n", match.start())]
            yield name, line.partition(" #")[0].removeprefix("declare ").strip()


def hints(library: Library) -> str:
    """The lines to paste for every callee of a file that lacks a derivative."""
    from irgrad.engine.ir.c_prototype import c_prototype
    from irgrad.engine.ir.text.reader import read
    from irgrad.rules.report import template

    missing = dict(unknown_callees(library))
    if not missing:
        return "every function that is called has a body, a rule or an entry in the tables"
    module = read(library.text, roots=[])
    parts = []
    for name in missing:
        ftype = module.functions[name].ftype
        names = [f"a{i}" for i in range(len(ftype.params))]
        kinds = [_kind(str(p)) for p in ftype.params]
        parts.append(f"# {c_prototype(name, ftype, names)}\n{template(name, kinds)}\n# or   inactive(\"{name}\")")
    return "\n\n".join(parts)


def _kind(type_: str) -> Kind:
    from irgrad.rules.definitions.types import SCALARS, Activity, Element, Ptr

    if type_ == "ptr":
        return Activity[Ptr]
    name = {"double": "f64", "float": "f32", "half": "f16"}.get(type_, type_)
    return Activity[SCALARS.get(name, Element)]


def import_rules(modules: list[str]) -> None:
    """Import Python modules or files that define rules. Raises LoadError."""
    import importlib
    import runpy

    from irgrad.rules.errors import LoadError

    for module in modules:
        try:
            if module.endswith(".py"):
                runpy.run_path(module)
            else:
                importlib.import_module(module)
        except (ImportError, OSError) as error:
            raise LoadError(f"cannot import the rules `{module}`", because=str(error),
                            fix="a module, or a file.py") from None
