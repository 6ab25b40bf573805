"""All that the analyses found about one function to differentiate, in one object that prints itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from irgrad.engine.analyses.activity.activity import Activity
from irgrad.engine.analyses.memory.access_paths import AccessPaths
from irgrad.engine.analyses.memory.byte_kinds import Kind, Layout
from irgrad.engine.analyses.memory.fields import Cells
from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.value_ranges import Ranges
from irgrad.engine.analyses.types.memory_types import MemoryTypes
from irgrad.engine.analyses.types.records import Pattern
from irgrad.engine.ir.locations import function_location, locate
from irgrad.engine.ir.model import Function, Instruction, Module

_MAX_LINES = 400
_MOST_TRIES = 4  # solutions until members are told apart no more


def points_to(module: Module, root: Function) -> Pointers:
    """The points-to sets of a root: solved without fields, then again with the fields and the
    receivers of methods that the first solution shows; with strings in it once more, since fields
    show only where what lies beside a text is told from it."""
    paths = AccessPaths(module)
    found, ranges = _without_fields(module, root, paths)
    for more in (True, False):
        cells = Cells(found, ranges)
        if cells.worth:
            found = Pointers(module, root, cells, paths)
        if not cells.texts or not more:
            break
        ranges = found.kept(Ranges)
    return found


def _without_fields(module: Module, root: Function, paths: AccessPaths) -> tuple[Pointers, Ranges]:
    """The first solution: by the members that the source names, as far as offsets do not contradict it."""
    tries = 1
    while True:
        found = Pointers(module, root, paths=paths)
        ranges = found.kept(Ranges)
        if not paths.punned(found, ranges):
            return found, ranges
        tries += 1
        paths.tell_members(tries < _MOST_TRIES)


class Facts:
    """`pointers`, `types` and `activity` of `root` (in normal form), differentiated in the arguments `dup`.

    `buffers[i]` names the float type of the elements that argument i points to ("" or missing: not known).
    """

    __slots__ = ("activity", "checked", "dup", "module", "pointers", "root", "types")

    def __init__(self, module: Module, root: Function, dup: Iterable[int], buffers: Sequence[str] = ()) -> None:
        self.module = module
        self.root = root
        self.dup = frozenset(dup)
        self.pointers = points_to(module, root)
        self.types = MemoryTypes(self.pointers, buffers)
        self.activity = Activity(self.pointers, self.types, self.dup, function_shadows=True)
        self.checked: frozenset[Instruction] = frozenset()

    def check(self, distances: Iterable[Instruction]) -> None:
        """Derivatives look, where these distances of two addresses are computed, whether the shadows of the two are as
        far apart: so both have shadows."""
        self.checked |= frozenset(distances)
        wanted = [operand.operands[0] for distance in self.checked for operand in distance.operands
                  if isinstance(operand, Instruction)]  # fmt: skip
        self.activity = Activity(self.pointers, self.types, self.dup, function_shadows=True, wanted=wanted)

    def layout(self, obj: Object) -> Pattern | Layout:
        """What is known of an object: its repeating pattern, or its fields."""
        return self.types.object_layout(obj)

    def report(self, instructions: bool = True) -> str:
        """A readable summary with source lines: memory, functions, active instructions and calls."""
        lines = [f"root @{self.root.name}, differentiated: {self._arguments()}", "", "memory"]
        lines += [f"  {self._object(obj)}" for obj in self.pointers.objects if obj.kind != "function"]
        if self.activity.scratch:
            lines.append(f"  scratch shadows: {self._names(self.activity.scratch)}")
        for fn in self.pointers.functions:
            lines += self._function(fn, instructions)
        if len(lines) > _MAX_LINES:
            lines = [*lines[:_MAX_LINES], f"... {len(lines) - _MAX_LINES} more lines"]
        return "\n".join(lines)

    __str__ = report

    def _names(self, indices: Iterable[int]) -> str:
        return ", ".join(f"%{self.root.args[i].name or i}" for i in sorted(indices))

    def _arguments(self) -> str:
        return self._names(self.dup) or "nothing"

    def _object(self, obj: Object) -> str:
        marks = []
        if self.activity.object(obj):
            marks.append("active")
        if self.activity.shadowed(obj):
            marks.append("shadowed")
        if self.activity.holds_pointers(obj):
            marks.append("holds shadow pointers")
        if self.pointers.escaped(obj):
            marks.append("escapes")
        size = f" ({obj.size} bytes)" if obj.size is not None else ""
        where = locate(self.module, obj.site) if isinstance(obj.site, Instruction) else ""
        return f"{obj}{size}{' at ' + where if where else ''}: {self._layout(obj)}; {', '.join(marks) or 'inactive'}"

    def _layout(self, obj: Object) -> str:
        layout = self.layout(obj)
        if isinstance(layout, Pattern):
            return "layout unknown" if not layout.period else str(layout)
        return "[" + ", ".join(f"{at}: {kind}" for at, kind in layout) + "]" if layout else "layout unknown"

    def _function(self, fn: Function, instructions: bool) -> Iterator[str]:
        at = function_location(self.module, fn)
        activity = self.activity
        yield ""
        state = "active" if activity.function(fn) else "inactive"
        yield f"function @{fn.name}{' (' + at + ')' if at else ''}: {state}"
        for title, mask in (("reads", self.pointers.reads(fn)), ("writes", self.pointers.writes(fn))):
            if mask:
                yield f"  {title} {self.pointers.names(mask)}"
        if not instructions or not activity.function(fn):
            return
        for instr in fn.instructions():
            note = self._note(instr)
            if note:
                where = locate(self.module, instr)
                yield f"  %{instr.name} = {instr.opcode} {instr.type}: {note}{'  ' + where if where else ''}"

    def _note(self, instr: Instruction) -> str:
        notes = []
        if self.activity.value(instr):
            notes.append("active")
        if self.activity.pointer(instr):
            notes.append("shadow pointer")
        if instr.is_call and self.activity.call(instr):
            notes.append(f"differentiated call of {instr.callee_name or 'a function pointer'}")
        if instr.type.scalar.is_int and self.activity.value(instr):
            kind: Kind | Layout | None = self.types.carries(instr)
            notes.append(f"carries {kind}")
        return ", ".join(notes)
