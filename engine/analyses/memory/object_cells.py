"""The sets of pointers that objects hold: one for an object, or one for each of its cells (`fields.py`), and in memory
of the function's own one for each access path by which they were stored (`inclusion.ByType`)."""

from __future__ import annotations

from collections.abc import Sequence

from irgrad.engine.analyses.memory.access_paths import UNNAMED, AccessPath, AccessPaths
from irgrad.engine.analyses.memory.fields import MOST_PLACES, REST, WHOLE, Cells, Where, residues
from irgrad.engine.analyses.memory.inclusion import ByType, Inclusion
from irgrad.engine.analyses.memory.objects import Object, pointer_places
from irgrad.engine.analyses.memory.unaligned_cells import Move, UnalignedCells
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Value

Steps = tuple[int, ...] | None  # distances from the start of a copy; None: not known

_OWN = ("alloca", "heap", "global")


class ObjectCells:
    """By object number. Without `cells`, in the first solution, each object has one set."""

    def __init__(
        self, graph: Inclusion, cells: Cells | None, objects: Sequence[Object], paths: AccessPaths
    ) -> None:
        self._graph = graph
        self._cells = cells
        self._objects = objects
        self._split: dict[int, tuple[int, dict[int, int], int]] = {}  # object -> period, place -> node, all of them
        self._types = ByType(graph, paths)
        self._mixed: dict[int, int] = {}  # object -> a node of what is moved in it, from places that are not known
        self._numbers: dict[int, int] = {}
        self.content: list[int] = []
        """The node of all that an object holds."""
        self.mistaken = self._types.mistaken
        self.between: UnalignedCells | None = None
        """What lies between words, where texts are copied."""
        if cells is not None and cells.texts:
            self.between = UnalignedCells(graph, cells, objects, self.content, self._types.stored)

    def add(self, obj: Object) -> None:
        """The next object."""
        self.content.append(self._graph.new())
        split = None if self._cells is None or obj.site is None else self._cells.of.get(obj.site)
        if split is None or obj.kind not in _OWN:
            return
        new, edge, content = self._graph.new, self._graph.edge, self.content[obj.index]
        every, nodes = new(), {at: new() for at in (*split[1], REST)}
        edge(every, content)
        for node in nodes.values():
            edge(every, self._types.stored(node))
            edge(node, content)
        self._split[obj.index] = split[0], nodes, every

    def number(self, bit: int) -> int:
        """The node of addresses that are stored in an object where the source says that an integer is."""
        return self._numbers[bit] if bit in self._numbers else self._numbers.setdefault(bit, self._graph.new())

    def typed(self, bit: int) -> bool:
        """Whether pointers in an object are told apart by what they lead to."""
        return self._objects[bit].kind in _OWN

    def into(self, bit: int, where: Where | None = None, path: AccessPath = UNNAMED) -> list[int]:
        """The nodes that a store to these places of an object, by an access path, adds to."""
        named = path is not UNNAMED and self.typed(bit)
        if bit in self._split and not named and self._residues(bit, where) is None:
            return [self._split[bit][2]]
        cells = self.at(bit, where)
        return [self._types.stored(cell, path) for cell in cells] if self.typed(bit) else cells

    def out_of(self, bit: int, where: Where | None, path: AccessPath = UNNAMED) -> list[int]:
        """The nodes that a load from these places of an object, by an access path, takes from."""
        typed = path is not UNNAMED and self.typed(bit)
        if bit in self._split and not typed and self._residues(bit, where) is None:
            return [self.content[bit]]
        cells = self.at(bit, where)
        return [self._types.read(cell, path) for cell in cells] if typed else cells

    def initial(self, bit: int, at: int) -> int:
        """The cell of a place at which a variable has a pointer from the start."""
        if bit not in self._split:
            return self.into(bit)[0]
        period, cells, _ = self._split[bit]
        return self._types.stored(cells.get(at % period, cells[REST]))

    def at(self, bit: int, where: Where | None) -> list[int]:
        """The cells of these places of an object, all of them where they are not known."""
        if bit not in self._split:
            return [self.content[bit]] if self._leads_to(where, bit) else []
        nodes, found = self._split[bit][1], self._residues(bit, where)
        return [nodes[at] for at in (nodes if found is None else found)]

    def _leads_to(self, where: Where | None, bit: int) -> bool:
        """Whether an address may lead to an object, as far as the first solution tells."""
        obj = self._objects[bit]
        if where is None or self._cells is None or obj.kind not in _OWN:
            return True  # memory behind arguments is known by its argument
        return self._cells.places(where[0], obj.site) is not None

    def _residues(self, bit: int, where: Where | None) -> set[int] | None:
        """The cells that an access means in one of its objects; None when they are not known."""
        if where is None or self._cells is None:
            return None
        period, nodes, _ = self._split[bit]
        site = self._objects[bit].site
        places = self._cells.places(where[0], site)
        if places is None:
            return set()
        found = residues(places.shift(where[1] or 0), period, self._objects[bit].size)
        if found is None or where[1] is None:
            return None if found is None else {REST}
        return {at if at in nodes else REST for at in found if period != WHOLE or not self._cells.outside(site, at)}

    def wheres(self, address: Value, type_: ty.Type) -> list[Where | None]:
        """Where an access goes, pointer by pointer; None for very wide values, and while objects are not split."""
        places = () if self._cells is None else pointer_places(type_)
        return [(address, at) for at in places] if 0 < len(places) <= MOST_PLACES else [None]

    def steps(self, target: Value, source: Value, length: Value) -> list[tuple[Where | None, Where | None]]:
        """The places of a copy, source and target: cell by cell where both are known, else everything to everywhere."""
        steps = None if self._cells is None else self._cells.steps(source, target, length)
        if steps is None:
            return [(None, None)]
        return [((source, step), (target, step)) for step in (*steps, None)]  # None: what lies beside the cells

    def copy_out_of(self, bit: int, where: Where | None, node: int) -> None:
        """What an object holds goes to a node as what it was stored, where that is known."""
        for cell in self.at(bit, where) if self.typed(bit) else ():
            self._types.copied(cell, node)
        for cell in () if self.typed(bit) else self.out_of(bit, where):
            self._graph.edge(cell, self._types.stored(node))

    def copy_into(self, bit: int, where: Where | None, node: int) -> None:
        """What a node holds goes into an object as what it was stored."""
        for cell in self.at(bit, where) if self.typed(bit) else ():
            self._types.copied(node, cell)
        for cell in () if self.typed(bit) else self.into(bit, where):
            self._graph.edge(node, cell)

    def move_within(self, bit: int, source: Where | None, target: Where | None, move: Move) -> None:
        """What is moved in an object stays in it."""
        if self.between is not None:
            self.between.within(bit, move)
        link = self._types.copied if self.typed(bit) else self._graph.edge
        cells, others = self.at(bit, source), self.at(bit, target)
        if len(cells) > 1 < len(others):
            cells, parts = [self._mixed.setdefault(bit, self._graph.new())], cells
            for cell in parts:
                link(cell, cells[0])
        for cell in cells:
            for other in others:
                link(cell, other)
