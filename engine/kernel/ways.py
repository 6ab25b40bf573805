"""The ways in which a problem of the differentiator is put: as it is, and where that is refused, otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from irgrad.engine.codegen.member_arrays import perhaps_bounded
from irgrad.engine.kernel.constructors import perhaps_inside

__all__ = ["first_way"]

_Found = TypeVar("_Found")


def first_way(text: str, plain: Callable[[], str], ask: Callable[[bool, str], _Found]) -> _Found:
    """What `ask(inside, members)` makes of the problem of a derivative, see `Program.problem`. Raises the first error
    where all ways are refused. text: of the program before it; plain: gives the function's module before any pass"""
    return perhaps_bounded(lambda members: perhaps_inside(text, lambda inside: ask(inside, members)), plain)
