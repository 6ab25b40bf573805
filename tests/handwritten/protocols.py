"""Whether an object has what a protocol names: every attribute, and every method with the same parameters."""

from __future__ import annotations

import inspect
from typing import Any


def members(protocol: type) -> set[str]:
    """Names of the attributes, properties and methods of a protocol and of those that it extends."""
    found: set[str] = set()
    for base in protocol.__mro__:
        if getattr(base, "_is_protocol", False) and base.__module__ != "typing":
            found |= set(inspect.get_annotations(base))
            found |= {name for name in vars(base) if not name.startswith("_")}
    return found


def lacks(made: Any, protocol: type) -> list[str]:
    """What the object lacks of the protocol: names, and names of methods that take something else."""
    wrong = []
    for name in sorted(members(protocol)):
        wanted = inspect.getattr_static(protocol, name, None)
        if not hasattr(made, name):
            wrong.append(name)
        elif inspect.isfunction(wanted):
            _, *names = inspect.signature(wanted).parameters.values()
            has = list(inspect.signature(getattr(made, name)).parameters.values())
            alike = [(a.name, a.kind) == (b.name, b.kind) for a, b in zip(names, has, strict=False)]
            more = [p for p in has[len(names) :] if p.default is p.empty]
            if not all(alike) or len(has) < len(names) or more:
                wrong.append(f"{name}{tuple(p.name for p in has)}")
    return wrong
