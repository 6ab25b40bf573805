"""The ways in which a problem of the differentiator is put: as it is, and where that is refused, otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from irgrad.engine.codegen.member_arrays import perhaps_bounded
from irgrad.engine.kernel.constructors import perhaps_inside

if TYPE_CHECKING:
    from irgrad.engine.kernel.programs import Program

__all__ = ["first_way"]

_Found = TypeVar("_Found")


def first_way(program: Program, ask: Callable[[bool, str], _Found]) -> _Found:
    """What `ask(inside, members)` makes of the problem of a derivative, see `Program.problem`. Raises the first error
    where all ways are refused."""
    parent, source = program.parent, program.source
    assert parent is not None
    text = parent.stage.text

    def plain() -> str:
        return "" if parent.parent is not None else source.plain() if source.plain is not None else source.text

    return perhaps_bounded(lambda members: perhaps_inside(text, lambda inside: ask(inside, members)), plain)
