"""Rules of the engine, broken on purpose: the suite has to notice each. A pytest plugin (`-p mutations`) that breaks
the one that IRGRAD_MUTATION names, before anything else is imported."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["MUTATIONS", "Mutation"]


@dataclass(frozen=True)
class Mutation:
    """`target` (module:attribute) becomes what `broken` makes of it; `noticed_by` are tests that then have to fail."""

    target: str
    broken: Callable[[Any], Any]
    noticed_by: tuple[str, ...]


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda _: lambda *args, **kwargs: value


def _every_lane(_: Any) -> Any:
    """Adjoints of all lanes may be anything."""
    return lambda self, value: (1 << value.type.count) - 1 if hasattr(value.type, "count") else 1


_ZEROS = "irgrad.engine.analyses.activity.structural_zeros:StructuralZeros"
_KEPT = "tests/engine/analyses/activity/test_structural_zeros.py"

_POISON = "tests/fuzz/test_poison.py"
_WRITES = "tests/engine/kernel/test_writes.py"

MUTATIONS = {
    "lanes that nothing uses have adjoints": Mutation(
        f"{_ZEROS}.given", _every_lane, (f"{_POISON}::test_zeros_that_meet_poison",)
    ),
    "lanes that nothing uses are multiplied": Mutation(
        f"{_ZEROS}.lacking", _always(False), (f"{_POISON}::test_products_of_lanes",)
    ),
    "values thrown away are multiplied": Mutation(
        f"{_ZEROS}.conditional", _always(False), (f"{_KEPT}::test_what_is_thrown_away_has_no_part_in_the_gradient",)
    ),
    "element types are not looked at": Mutation(
        "irgrad.engine.kernel.writes:check_elements", _always(None), (f"{_WRITES}::test_elements_of_another_type",)
    ),
    "arguments that are written are not looked for": Mutation(
        "irgrad.engine.kernel.writes:perhaps_written", _always(()),
        (f"{_WRITES}::test_a_store_is_an_error_that_names_it",)
    ),
    "weak bodies are believed": Mutation(
        "irgrad.engine.enzyme.interposable:interposable", _always(frozenset()),
        ("tests/engine/enzyme/test_interposable.py",),
    ),
    "modules for other machines are loaded": Mutation(
        "irgrad.interop.loaders.loading:check_target", _always(None), ("tests/interop/loaders/test_link.py",)
    ),
    "variables that change are read in reverse": Mutation(
        "irgrad.engine.differentiate.custom_rules.memory_snapshot:check_variables", _always(None),
        ("tests/engine/differentiate/custom_rules/test_memory_snapshot.py",)
    ),
    "exports are not checked": Mutation(
        "irgrad.interop.jax.exporting:_digest", _always(b""), ("tests/interop/jax/test_exporting.py",)
    ),
}  # fmt: skip
"""By what is broken."""


def pytest_configure() -> None:
    """Break the rule."""
    name = os.environ.get("IRGRAD_MUTATION")
    if name:
        mutation = MUTATIONS[name]
        module, _, path = mutation.target.partition(":")
        holder = importlib.import_module(module)
        *outer, last = path.split(".")
        for part in outer:
            holder = getattr(holder, part)
        setattr(holder, last, mutation.broken(getattr(holder, last)))
