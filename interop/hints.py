"""`irgrad hints FILE`, `irgrad rules list|show`: what a file calls that has no derivative, where it tests floats for
equality, and what rules there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from irgrad.rules.effects import facts
from irgrad.rules.layers import current
from irgrad.rules.lookup import find, reduction

if TYPE_CHECKING:
    from irgrad.engine.ir.model import Module
    from irgrad.interop.loaders.library import Library
    from irgrad.rules.definitions.types import Kind

EQUALITY = "# floats are compared for equality: where they are equal, the derivative is that of the special case"
"""What stands above the lines of the source that do so."""

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
    """The lines to paste for every callee of a file that lacks a derivative, and the lines of the source where floats
    are compared for equality."""
    from irgrad.engine.functions.special_cases import equality_tests
    from irgrad.engine.ir.text.reader import read

    module = read(library.text)
    parts = _templates(module, [name for name, _ in unknown_callees(library)])
    tests = equality_tests(module)
    if tests:
        parts.append("\n".join([EQUALITY, *(f"#   {where}  in @{name}" for name, where in tests)]))
    return "\n\n".join(parts)


def _templates(module: Module, missing: list[str]) -> list[str]:
    from irgrad.engine.ir.c_prototype import c_prototype
    from irgrad.rules.report import template

    parts = []
    for name in missing:
        ftype = module.functions[name].ftype
        names = [f"a{i}" for i in range(len(ftype.params))]
        kinds = [_kind(str(p)) for p in ftype.params]
        parts.append(f"# {c_prototype(name, ftype, names)}\n{template(name, kinds)}\n# or   inactive(\"{name}\")   "
                     f"or the file with its source: --link FILE.c, load(..., link=[\"FILE.c\"])")
    return parts or ["every function that is called has a body, a rule or an entry in the tables"]


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
