"""What is refused before a derivative is made, in the order in which it is looked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.legality.partial_stores import refuse_parts
from irgrad.engine.legality.printed_numbers import refuse_printed
from irgrad.engine.legality.relocations import refuse_relocations
from irgrad.engine.legality.screen import screen
from irgrad.engine.legality.split_pointers import refuse_pieces
from irgrad.engine.legality.type_punning import refuse_puns
from irgrad.engine.legality.undecidable import refuse_undecidable
from irgrad.engine.legality.unseen_numbers import refuse_unseen

__all__ = ["CHECKS", "Check"]


@dataclass(frozen=True, slots=True)
class Check:
    """run raises Unsupported where the program has no derivative that is known to be right; what: what it looks for."""

    name: str
    run: Callable[[Unit], None]
    what: str


CHECKS = (
    Check("undecidable", refuse_undecidable, "memory and integers of which it is not known whether they are floats"),
    Check("unseen-numbers", refuse_unseen, "copies of the caller's memory, of which nobody says where its numbers lie"),
    Check("printed-numbers", refuse_printed, "numbers that are printed into memory, and read from that text again"),
    Check("split-pointers", refuse_pieces, "pointers that are copied in pieces smaller than an address"),
    Check("relocations", refuse_relocations, "pointers that move by the distance of two allocations"),
    Check("screen", screen, "instructions and calls that active values go through and that have no derivative"),
    Check("type-punning", refuse_puns, "floats that are read as floats of another type"),
    Check("partial-stores", refuse_parts, "stores that replace a part of an active float"),
)
