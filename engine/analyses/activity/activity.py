"""What a derivative has to follow: active values, memory that needs a shadow, pointers whose shadow is used.

Active = depends on a differentiated argument AND reaches one (the buffers of `dup` arguments are sources and sinks).
Memory that leaves through an open argument (see `objects.OPEN`) counts as such a buffer. Both are reachability in the
graph of `dataflow.py`, over the whole module, flow-insensitive in memory.

Shadows: memory that holds active floats has one. A pointer has one where the derivative goes through it; then all
memory that this pointer may mean has one, so that the shadow pointer always leads somewhere: that is how a `const`
argument can come to need a scratch buffer.
"""

from __future__ import annotations

from collections.abc import Iterable

from irgrad.engine.analyses.activity.dataflow import Dataflow, Node, Returned
from irgrad.engine.analyses.activity.shadows import Shadows
from irgrad.engine.analyses.memory.byte_kinds import CONFLICT
from irgrad.engine.analyses.memory.objects import Object, bits_of, opened
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.types.memory_types import MemoryTypes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Function, Instruction, Value
from irgrad.engine.ir.opcodes import ACCESSES, CHOICES, INT_BINARY, RESIZES


class Activity:
    """Activity of everything reachable from the root, for the arguments whose numbers are in `dup`."""

    def __init__(
        self, pointers: Pointers, types: MemoryTypes, dup: Iterable[int], *, function_shadows: bool = False,
        wanted: Iterable[Value] = (),
    ) -> None:  # fmt: skip
        """wanted: pointers whose shadows are used by more than what handles active floats."""
        self.pointers = pointers
        self.types = types
        self.dup = frozenset(dup)
        self.flow = Dataflow(pointers, types)
        self.sources: list[Object] = []
        for i in sorted(self.dup):
            obj = pointers.object_of.get(pointers.root.args[i])
            if obj is None:
                continue
            self.sources.append(obj)
            inner = pointers.pointee_of.get(obj.index)
            if inner is not None:
                self.sources.append(pointers.objects[inner])
        self._varied = _reach(self.sources, self.flow.successors)
        self._open = 0  # memory that the program goes on using
        for obj in self.sources:
            self._open |= opened(obj) << obj.index
        leaving = [o for o in objects_of(pointers, pointers.reachable(self._open)) if o.kind == "heap"]
        self._useful = _reach([*self.sources, *leaving], self.flow.predecessors)
        floats = 0
        for obj in pointers.objects:
            if obj in self._varied and obj in self._useful:
                floats |= 1 << obj.index
        self.active_objects = floats
        self._shadows = Shadows(pointers, self.flow, self.value, floats, function_shadows, self._open, wanted)
        self.scratch = {
            obj.site.index
            for obj in pointers.objects
            if obj.kind == "argument"
            and isinstance(obj.site, Argument)
            and obj.site.index not in self.dup
            and self.shadowed(obj)
        }
        self._calls, self._functions = self._find_calls()

    # -- what the others ask ------------------------------------------------------------------------------------------

    def varied(self, value: Value) -> bool:
        """The value depends on a differentiated argument."""
        return value in self._varied

    def useful(self, value: Value) -> bool:
        """The value reaches a differentiated argument's buffer."""
        return value in self._useful

    def value(self, value: Value) -> bool:
        """An SSA value that is, or carries, an active float."""
        return value in self._varied and value in self._useful

    def object(self, obj: Object) -> bool:
        """The object may hold active floats."""
        return bool(self.active_objects >> obj.index & 1)

    def shadowed(self, obj: Object) -> bool:
        """The object needs a shadow: for active floats, for pointers whose shadows are used, or as their target."""
        return bool(self._shadows.mask >> obj.index & 1) or obj in self.sources

    @property
    def shadowed_mask(self) -> int:
        """All shadowed objects."""
        mask = self._shadows.mask
        for obj in self.sources:
            mask |= 1 << obj.index
        return mask

    def pointer(self, value: Value) -> bool:
        """A pointer (or an integer or struct that carries one) whose shadow is used."""
        return value in self._shadows.needed or self._constant_needed(value)

    def _constant_needed(self, value: Value) -> bool:
        """Globals and expressions over them have a shadow wherever their memory has one."""
        if isinstance(value, Instruction | Argument | Function):
            return False
        return bool(self.pointers.of(value) & self._shadows.mask & ~1)

    def holds_pointers(self, obj: Object) -> bool:
        """Pointers loaded from this object need their shadows, which its shadow holds."""
        return bool(self._shadows.pointer_mask >> obj.index & 1)

    def call(self, instr: Instruction) -> bool:
        """The call touches something active: it has to be differentiated, not only repeated."""
        return instr in self._calls

    def function(self, fn: Function) -> bool:
        """The function contains something active."""
        return fn in self._functions

    def refusals(self) -> list[tuple[Instruction, str]]:
        """Instructions that no derivative can follow soundly, each with the reason; empty for nearly every program.

        A store of integers over a part of an active float (bytes swapped one by one), and active floats in memory that
        the module does not define: there is no shadow to go with them.
        """
        found = []
        for fn in self.pointers.functions:
            if not self.function(fn):
                continue
            for instr in fn.instructions():
                reason = self._refusal(instr)
                if reason:
                    found.append((instr, reason))
        return found

    def bit_arithmetic(self, fn: Function) -> list[Instruction]:
        """Where integers computed from the bits of an active float (not only moved) become a useful float again."""
        made: dict[Value, bool] = {i: False for i in fn.instructions() if self._reads_bits(i)}
        changed = bool(made)  # integers made of such bits: whether any arithmetic was done
        while changed:
            changed = False
            for instr in fn.instructions():
                if made.get(instr) or not instr.type.scalar.is_int:
                    continue
                arithmetic = instr.opcode in INT_BINARY or instr.is_call
                if arithmetic or instr.opcode in CHOICES | RESIZES:
                    known = [made[o] for o in instr.operands if o in made]
                    state = (arithmetic and not self.flow.carries(instr)) or any(known)
                    if known and made.get(instr) is not state:
                        made[instr] = state
                        changed = True
        found = []
        for instr in fn.instructions():
            if instr.opcode == "bitcast" and instr.type.is_fp and made.get(instr.operands[0]) and self.useful(instr):
                found.append(instr)
            elif instr.opcode == "store" and made.get(value := instr.operands[0]):
                number = self.types.numbers.are(instr)
                floats = not number and self._float_memory(instr.operands[1], ty.store_size(value.type))
                found += [instr] if floats else []
        return found

    def _reads_bits(self, instr: Instruction) -> bool:
        if instr.opcode == "bitcast":
            source = instr.operands[0]
            return instr.type.scalar.is_int and source.type.is_fp and self.varied(source)
        return (
            instr.opcode == "load"
            and instr.type.is_int
            and not self.types.numbers.are(instr)
            and self._float_memory(instr.operands[0], ty.store_size(instr.type))
        )

    def _float_memory(self, address: Value, size: int) -> bool:
        """An access to memory that holds active floats at that place."""
        if not any(o in self._varied or o in self._useful for o in self.flow.objects(address)):
            return False
        return any(isinstance(kind, ty.FloatType) for _, kind in self.types.access(address, size))

    def varied_object(self, obj: Object) -> bool:
        """The object's contents depend on a differentiated argument."""
        return obj in self._varied

    def useful_object(self, obj: Object) -> bool:
        """The object's contents reach a differentiated argument's buffer."""
        return obj in self._useful

    def _refusal(self, instr: Instruction) -> str:
        if instr.opcode == "store":
            value, address = instr.operands
        elif instr.opcode in ACCESSES:
            value, address = instr, instr.operands[0]
        else:
            return ""
        mask = self.pointers.of(address)
        if mask & 1 and self.value(value):
            return "it moves active floats through a pointer of unknown origin"
        if instr.opcode != "store" or not value.type.scalar.is_int or not mask & self.active_objects:
            return ""
        layout = self.types.access(address, ty.store_size(value.type))
        if any(kind is CONFLICT for _, kind in layout):
            return "it writes a part of an active float (or bytes used as two different types) as an integer"
        return ""

    def chains(self, value: Node) -> tuple[list[Node], list[Node]]:
        """For something active: the way to it from a differentiated argument, and from it to one that it reaches; each
        begins or ends with the value itself."""
        return _chain(value, self._varied)[::-1], _chain(value, self._useful)

    def why(self, value: Node) -> str:
        """A short chain: from which argument the value gets its activity, and which it reaches."""
        if value not in self._varied:
            return f"{_name(value)} depends on no differentiated argument"
        if value not in self._useful:
            return f"{_name(value)} reaches no differentiated argument"
        came, goes = _chain(value, self._varied), _chain(value, self._useful)
        first, last = came[-1], goes[-1]
        text = f"{_name(value)} is active: it depends on {_name(first)}"
        if len(came) > 2:
            text += " through " + ", ".join(_name(n) for n in _some(came[1:-1]))
        text += f" and reaches {_name(last)}"
        if len(goes) > 2:
            text += " through " + ", ".join(_name(n) for n in _some(goes[1:-1]))
        return text

    # -- calls --------------------------------------------------------------------------------------------------------

    def _find_calls(self) -> tuple[set[Instruction], set[Function]]:
        calls: set[Instruction] = set()
        functions: set[Function] = {self.pointers.root}
        work: list[Function] = []
        for fn in self.pointers.functions:
            for instr in fn.instructions():
                if self._touches(instr):
                    if instr.is_call:
                        calls.add(instr)
                    if fn not in functions:
                        functions.add(fn)
                        work.append(fn)
            if any(self.value(a) or self.pointer(a) for a in fn.args) and fn not in functions:
                functions.add(fn)
                work.append(fn)
        while work:
            for call in self.pointers.calls.get(work.pop(), ()):
                calls.add(call)
                assert call.block is not None and call.block.function is not None
                caller = call.block.function
                if caller not in functions:
                    functions.add(caller)
                    work.append(caller)
        for call in self.pointers.calls.get(self.pointers.root, ()):
            calls.add(call)
        return calls, functions

    def _reaches(self, call: Instruction) -> bool:
        """Pointers in the memory that an unknown function is given lead to active floats."""
        mask = 0
        for arg in call.args:
            mask |= self.pointers.of(arg)
        return bool(self.pointers.reachable(mask) & ~mask & ~1 & self.active_objects) if mask & ~1 else False

    def _touches(self, instr: Instruction) -> bool:
        """The instruction itself handles active floats or shadows."""
        if self.value(instr) or instr in self._shadows.needed:
            return True
        if instr.opcode == "store":
            return instr.operands[1] in self._shadows.needed or self._constant_needed(instr.operands[1])
        if instr.is_call and self.pointers.effect(instr) is not None:
            effect = self.pointers.effect(instr)
            if effect is not None and effect.inactive:
                return False
            if effect is not None and effect.reads is None and effect.writes is None and self._reaches(instr):
                return True
            return any((self.value(a) and a.type.is_fp and self.value(instr)) or self.pointer(a) for a in instr.args)
        return False


def _reach(sources: Iterable[Node], edges: dict[Node, list[Node]]) -> dict[Node, Node | None]:
    """Nodes reachable from the sources, each with the node it was first reached from."""
    found: dict[Node, Node | None] = dict.fromkeys(sources)
    work = list(found)
    for node in work:  # grows while it runs: breadth first, so that chains are short
        for target in edges.get(node, ()):
            if target not in found:
                found[target] = node
                work.append(target)
    return found


def _chain(node: Node, parents: dict[Node, Node | None]) -> list[Node]:
    out: list[Node] = [node]
    while (up := parents[out[-1]]) is not None:
        out.append(up)
    return out


def _some(nodes: list[Node]) -> list[Node]:
    return nodes if len(nodes) <= 4 else [*nodes[:2], *nodes[-2:]]


def _name(node: Node) -> str:
    if isinstance(node, Returned):
        return f"the result of `@{node.function.name}`"
    if isinstance(node, Object):
        if node.kind == "argument" and node.site is not None:
            return f"argument `%{node.site.name}`"
        return f"memory `{node}`"
    if isinstance(node, Instruction) and node.name is None:
        return f"`{node.opcode} {node.type}`"
    return f"`%{node.name}`"


def objects_of(pointers: Pointers, mask: int) -> list[Object]:
    """The objects of a mask."""
    return [pointers.objects[i] for i in bits_of(mask)]
