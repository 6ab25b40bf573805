"""Pointers that lie where no member would lie: a part of what an object holds, for copies of the text of strings.

The text of a short string of C++ begins between two words of its object, and how long it is only the program knows.
What lies whole beside it, as the address of a long string does, is not a part of it (`text_copies.py`): a copy of such
a text moves those pointers alone that were put between words as well, by copies to or from there, or by stores at
places that are not known. As a rule there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from irgrad.engine.analyses.memory.fields import Cells, Where
from irgrad.engine.analyses.memory.inclusion import Inclusion
from irgrad.engine.analyses.memory.objects import Object, alignment
from irgrad.engine.ir.model import Instruction, Value

__all__ = ["Move", "UnalignedCells", "move_of"]

_WORD = 8
_OWN = ("alloca", "heap")


class Move(NamedTuple):
    """A copy of memory. words: whether target and source are said to be at words. text: characters of a string."""

    target: Value
    source: Value
    words: tuple[bool, bool] = (False, False)
    text: bool = False


def move_of(call: Instruction, target: int, source: int, *, text: bool) -> Move:
    """What a call copies, by the numbers of its arguments."""
    attrs = call.call.arg_attrs if call.call is not None else []
    words = [n < len(attrs) and _at_words(attrs[n]) for n in (target, source)]
    return Move(call.args[target], call.args[source], (words[0], words[1]), text)


def _at_words(attributes: str) -> bool:
    words = attributes.split()
    return any(word == "align" and int(number) % _WORD == 0 for word, number in pairwise(words))


class UnalignedCells:
    """By object number. Only the second solution knows where addresses lead to."""

    def __init__(
        self, graph: Inclusion, cells: Cells, objects: Sequence[Object], content: Sequence[int],
        untyped: Callable[[int], int],
    ) -> None:  # fmt: skip
        """untyped: the part of a node for pointers without a type."""
        self._graph = graph
        self._cells = cells
        self._objects = objects
        self._content = content
        self._untyped = untyped
        self._nodes: dict[int, int] = {}
        self._moved: dict[int, tuple[Move, int]] = {}  # node of what is moved -> the node of this part of it

    def of(self, bit: int) -> int:
        """The node of what an object holds between words; all that it holds, where that is not told apart."""
        if not self._told_apart(bit):
            return self._content[bit]
        if bit not in self._nodes:
            node = self._nodes[bit] = self._graph.new()
            self._graph.edge(node, self._content[bit])
        return self._nodes[bit]

    def moved(self, node: int, move: Move) -> None:
        """Say what copy puts its pointers into a node."""
        self._moved[node] = move, self._graph.new()

    def take(self, bit: int, node: int) -> bool:
        """Let a node have what a copy moves between words. True where that is all of what it takes out of an object."""
        if node not in self._moved:
            return False
        move, part = self._moved[node]
        at_words = move.words[1] or not self._told_apart(bit) or self._aligned(bit, move.source)
        beside = move.text and not at_words
        self._graph.edge(self.of(bit) if at_words or beside else self._content[bit], part)
        if beside:
            self._graph.edge(self.of(bit), self._untyped(node))
        return beside

    def put(self, bit: int, node: int, where: Where | None) -> None:
        """What a store that is not said to be at words, or a copy, puts between the words of an object."""
        if node in self._moved:
            move, part = self._moved[node]
            self._graph.edge(part if move.words[0] or self._aligned(bit, move.target) else node, self.of(bit))
        elif where is None or where[1] is None or not self._aligned(bit, where[0], where[1]):
            self._graph.edge(node, self.of(bit))

    def within(self, bit: int, move: Move) -> None:
        """What a copy within an object puts there."""
        source, target = move.words[1] or self._aligned(bit, move.source), self._aligned(bit, move.target)
        if not (source and (target or move.words[0])) and not (move.text and not source):
            self._graph.edge(self._content[bit], self.of(bit))

    def _told_apart(self, bit: int) -> bool:
        obj = self._objects[bit]
        return obj.kind in _OWN and alignment(obj) % _WORD == 0

    def _aligned(self, bit: int, address: Value, at: int = 0) -> bool:
        places = self._cells.places(address, self._objects[bit].site)
        if places is None:  # it does not lead there
            return True
        return not (places.start + at) % _WORD and not any(stride % _WORD for stride, _ in places.terms)
