"""Which memory each pointer may point to: inclusion-based points-to analysis of a whole module.

Method: L. O. Andersen, "Program Analysis and Specialization for the C Programming Language" (1994), context- and
flow-insensitive, objects without fields, solved with difference propagation on bit masks (one Python integer per
set). The call graph is built while solving, from direct calls and from the functions that reach indirect calls.

The root is in normal form: each of its arguments points to a buffer of its own. Pointers may travel as integers of 64
bits or more, in vectors, in structs and through copied memory. Where a pointer is made from an integer that no pointer
flowed into, or read from memory that the module does not define, it points to the one `unknown` object; memory handed
to an unknown function belongs to it.

Where the source names the types of pointers (`!tbaa`), one that is read from memory of the function's own is one that
was stored as such, or copied there: what follows the head of a tree in a struct is not the parent of its last node.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from irgrad.engine.analyses.memory.access_paths import UNNAMED, AccessPath, AccessPaths, unnamed
from irgrad.engine.analyses.memory.call_constraints import CallConstraints, Sort
from irgrad.engine.analyses.memory.call_effects import Effect
from irgrad.engine.analyses.memory.fields import Cells, Where
from irgrad.engine.analyses.memory.handed_back import HandedBack
from irgrad.engine.analyses.memory.inclusion import Inclusion
from irgrad.engine.analyses.memory.object_cells import ObjectCells
from irgrad.engine.analyses.memory.objects import (
    COPIES,
    Object,
    alloca_size,
    bits_of,
    filled_elsewhere,
    function_of,
    has_pointer,
    initial_pointers,
    is_address,
    is_closed,
    is_said_to_be_floats,
    is_stream,
    keeps_its_pointers,
    may_be_addresses,
    overlap_mask,
    overlaps,
    same_object,
    takes_low_bits,
)
from irgrad.engine.analyses.memory.receivers import Chosen, filled_here
from irgrad.engine.analyses.memory.solution import made_values
from irgrad.engine.analyses.memory.tbaa import AccessTypes
from irgrad.engine.analyses.memory.text_copies import hashes_text
from irgrad.engine.analyses.memory.unaligned_cells import Move
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    ConstAggregate,
    ConstExpr,
    ConstInt,
    Function,
    GlobalAlias,
    GlobalVariable,
    InlineAsm,
    Instruction,
    MetadataValue,
    Module,
    Value,
    is_zero,
)
from irgrad.engine.ir.opcodes import CALLS
from irgrad.engine.ir.types import may_hold_pointer

_COPIED = AccessPath("copy", None)  # in place of a path, of a store: what is stored is what it was before
_BETWEEN = AccessPath("between words", None)  # the same: where a store may put it
_NUMBER = AccessPath("number", None)  # the same: addresses that are kept as integers

class Pointers(CallConstraints):
    """The points-to sets of every value reachable from `root`. `paths`: given where types are believed."""

    def __init__(
        self, module: Module, root: Function, cells: Cells | None = None, paths: AccessPaths | None = None
    ) -> None:
        self._cells = cells
        self._named = unnamed if paths is None else paths.member_of if cells is None else paths.of
        self._untyped = unnamed if paths is None else paths.of_bits
        self.module = module
        self.root = root
        self.objects: list[Object] = []
        self.functions: list[Function] = []  # with bodies, reachable from the root, the root first
        self.object_of: dict[Value, Object] = {}  # site -> object
        self.pointee_of: dict[int, int] = {}  # argument object -> its pointee object
        self.calls: dict[Function, list[Instruction]] = {}  # function -> calls of it that were found
        self.effects: dict[Instruction, Effect] = {}  # calls that may leave the module
        self._kept = {}
        self._node: dict[Value, int] = {}
        self._ret: dict[Function, int] = {}
        self._graph = graph = Inclusion()
        self._new_node, self._add, self._edge = graph.new, graph.add, graph.edge
        self._points, self._done, self._work = graph.points, graph.done, graph.work
        self._held_in = ObjectCells(graph, cells, self.objects, paths or AccessPaths(module))
        self._content, self._between = self._held_in.content, self._held_in.between
        self._loads: dict[int, list[tuple[int, Sort, Where | None, AccessPath]]] = {}
        self._stores: dict[int, list[tuple[int, Where | None, AccessPath]]] = {}
        self._calls: dict[int, list[Instruction]] = {}
        self._chosen = Chosen(module, graph, self.objects, self._held)
        self._queue, self._seen = list[Function](), set[Function]()
        self._inttoptr: list[Instruction] = []
        self._distances: list[Instruction] = []  # of which it is open whether they lead anywhere
        self._within: dict[int, list[tuple[Where | None, Where | None, Move]]] = {}  # what is moved in its object
        self._handed = HandedBack()
        self._found: dict[int, Object] = {}
        self._shared = self._new_node()  # pointers stored in one of the arguments that overlap
        self._said = AccessTypes(module)
        self.unknown = self._object("unknown", None, None, None)
        self._unknown_node = self._content[0]
        self._add(self._unknown_node, 1)
        for arg in (a for a in root.args if isinstance(a.type, ty.PtrType)):
            self._add(self.node(arg), 1 << self._object("argument", arg, None, root).index)
        self._reach(root)
        self._solve()
        self.overlapping = overlap_mask(self.objects)  # objects that may lie in one another's memory

    # -- nodes and objects --------------------------------------------------------------------------------------------

    def node(self, value: Value) -> int:
        """The number of the points-to set of a value, made on first use."""
        found = self._node.get(value)
        if found is not None:
            return found
        fresh = self._node[value] = self._new_node()
        match value:
            case InlineAsm():
                self._add(fresh, 1)
            case Function():
                self._add(fresh, 1 << self._object("function", value, None, value).index)
            case GlobalVariable():
                self._add(fresh, 1 << self._global(value).index)
            case GlobalAlias():
                self._edge(self.node(value.target), fresh)
            case ConstExpr(operands=parts) | ConstAggregate(elems=parts):
                for part in parts:
                    self._copy(part, fresh)
        return fresh

    def _object(self, kind: str, site: Value | None, size: int | None, function: Function | None) -> Object:
        obj = Object(kind, site, size, len(self.objects), function)
        self.objects.append(obj)
        if site is not None and kind != "pointee":
            self.object_of[site] = obj
        self._held_in.add(obj)
        if overlaps(obj):
            self._edge(self._shared, self._content[obj.index])
        return obj

    def _global(self, var: GlobalVariable) -> Object:
        opaque = isinstance(var.value_type, ty.StructType) and var.value_type.fields is None
        size = None if opaque else ty.size_of(var.value_type)
        obj = self._object("global", var, size, None)
        (content,) = self._held_in.into(obj.index)
        for at, value in initial_pointers(var.init) if var.init is not None else ():
            self._edge(self.node(value), self._held_in.initial(obj.index, at))
            if not has_pointer(value.type):
                self._edge(self.node(value), self._held_in.number(obj.index))
        if is_stream(var):
            self._add(content, 1 << obj.index)  # to memory of the C library, which is one with the variable here
        elif var.told or (var.init is None and not var.constant and not is_closed(self.module, var)):
            self._add(self._unknown_node, 1 << obj.index)
        elif not is_closed(self.module, var):
            self._add(content, 1)
        return obj

    def learn(self, value: Instruction) -> int:
        """Copies, selects and phis that a pass made get the sets of what they are made of; those of others stay, since
        nothing leads to more than before. What is no such value, or of no function that is reached, leads nowhere."""
        fresh = made_values(value, self._node, self._seen)
        for one in fresh:
            self._constrain(one)
        if fresh:
            self._solve()
        return self._points[self._node[value]] if value in self._node else 0

    def enter(self, call: Instruction) -> None:
        """A call that a pass made: of values that have their sets, in a function that is reached."""
        self._constrain(call)
        self._solve()
        self.forget_effects()

    # -- constraints --------------------------------------------------------------------------------------------------

    def _reach(self, fn: Function) -> None:
        if fn not in self._seen and fn.blocks:
            self._seen.add(fn)
            self.functions.append(fn)
            self._queue.append(fn)

    def _constrain(self, instr: Instruction) -> None:
        op = instr.opcode
        if op in CALLS:
            self._call(instr)
        elif op == "store":
            if may_hold_pointer(instr.operands[0].type):
                named = self._named(instr)
                for where in self._held_in.wheres(instr.operands[1], instr.operands[0].type):
                    self._store(self.node(instr.operands[1]), self.node(instr.operands[0]), where, named, instr.align)
                if self._said.keeps_number(instr):
                    self._store(self.node(instr.operands[1]), self.node(instr.operands[0]), None, _NUMBER, 8)
                for load in self._said.copied(instr):
                    self._copy_numbers(load.operands[0], instr.operands[1])
        elif op == "ret":
            if instr.operands and may_hold_pointer(instr.operands[0].type):
                self._edge(self.node(instr.operands[0]), self._return(function_of(instr)))
        elif not may_hold_pointer(instr.type):
            if op == "atomicrmw" and may_hold_pointer(instr.operands[1].type):
                self._store_any(instr.operands[0], instr.operands[1])
        elif op == "load" and not hashes_text(self.module, instr):
            sort: Sort = "pointer" if has_pointer(instr.type) else "number" if self._is_number(instr) else "bits"
            named = self._named(instr) if sort == "pointer" else self._untyped(instr)
            for where in self._held_in.wheres(instr.operands[0], instr.type):
                self._load(self.node(instr.operands[0]), self.node(instr), sort, where, named)
        elif op == "alloca":
            obj = self._object("alloca", instr, alloca_size(instr), function_of(instr))
            self._add(self.node(instr), 1 << obj.index)
        elif op != "load":
            self._flow(instr)

    def _store_any(self, address: Value, value: Value) -> None:
        for path in (UNNAMED, _NUMBER):
            self._store(self.node(address), self.node(value), None, path)

    def _is_number(self, load: Instruction) -> bool:
        return self._said.is_number(load) or (self._cells is not None and self._cells.is_number(load))

    def _flow(self, instr: Instruction) -> None:
        op, node = instr.opcode, self.node(instr)
        if op == "getelementptr":
            base = instr.operands[0]
            number = is_zero(base) and "inbounds" not in instr.flags  # null has no inside
            for operand in instr.operands if number else (base,):
                self._copy(operand, node)
        elif op == "select" or (op in COPIES and not takes_low_bits(instr)):
            for operand in instr.operands[op == "select" :]:
                self._copy(operand, node)
            if op == "inttoptr":
                self._inttoptr.append(instr)
        elif op == "sub" and may_hold_pointer(instr.type):
            self._distances.append(instr)
        elif op in ("lshr", "shl") and isinstance(instr.type, ty.IntType) and instr.type.bits > 64:
            self._copy(instr.operands[0], node)
        elif op in ("atomicrmw", "cmpxchg"):
            pointer = self.node(instr.operands[0])
            self._load(pointer, node, "pointer" if has_pointer(instr.type) else "bits")
            self._store_any(instr.operands[0], instr.operands[-1])
        elif has_pointer(instr.type):  # va_arg, landingpad and whatever else makes pointers
            self._add(node, 1)

    def _copy(self, value: Value, node: int) -> None:
        if may_hold_pointer(value.type) and not isinstance(value, MetadataValue):
            self._edge(self.node(value), node)

    # -- solving ------------------------------------------------------------------------------------------------------

    def _copy_memory(self, move: Move, length: Value) -> None:
        """memcpy. What is more than one pointer, whose type may be changed so, stays what it is (ISO C 6.5, effective
        types); what is moved from one place of an object to another stays in it."""
        one = isinstance(length, ConstInt) and length.value <= 8
        target, source, *_ = move
        node = self.node(source)
        if not same_object(target, source):
            self._copy_numbers(source, target, move)
        for places in self._held_in.steps(target, source, length):
            if same_object(target, source):
                self._within.setdefault(node, []).append((*places, move))
                for bit in bits_of(self._done[node]):
                    self._held_in.move_within(bit, *places, move)
                continue
            middle = self._new_node()
            if self._between is not None:
                self._between.moved(middle, move)
            self._load(node, middle, "bits" if one else "copy", places[0])
            self._store(self.node(target), middle, places[1], UNNAMED if one else _COPIED)

    def _copy_numbers(self, source: Value, target: Value, move: Move | None = None) -> None:
        """Addresses that one object holds as integers come to another, which it is copied to."""
        middle = self._new_node()
        if self._between is not None and move is not None:
            self._between.moved(middle, move)
        self._load(self.node(source), middle, "number")
        self._store(self.node(target), middle, None, _NUMBER, 8)

    def _load(self, pointer: int, to: int, sort: Sort, where: Where | None = None, path: AccessPath = UNNAMED) -> None:
        self._loads.setdefault(pointer, []).append((to, sort, where, path))
        for bit in bits_of(self._done[pointer]):
            self._load_from(bit, to, sort, where, path)

    def _load_from(self, bit: int, target: int, sort: Sort, where: Where | None, named: AccessPath) -> None:
        obj, kind = self.objects[bit], self.objects[bit].kind
        if self._between is not None and self._between.take(bit, target):
            return
        if sort == "pointer" and (kind == "pointee" or (may_be_addresses(obj) and not is_said_to_be_floats(obj))):
            self._open(bit)
        if sort == "pointer" and kind == "global" and filled_elsewhere(self.module, self.objects[bit]):
            self._add(target, 1)
        if sort == "copy":
            self._held_in.copy_out_of(bit, where, target)
            return
        number = sort == "number" and self._held_in.typed(bit) and not filled_elsewhere(self.module, obj)
        for node in [self._held_in.number(bit)] if number else self._held_in.out_of(bit, where, named):
            self._edge(node, target)

    def _open(self, bit: int) -> None:
        """Pointers are read from the buffer of an argument: they lead to memory that the caller provided."""
        if bit in self.pointee_of:
            return
        obj = self.objects[bit]
        inner = obj if obj.kind == "pointee" else self._object("pointee", obj.site, None, obj.function)
        self.pointee_of[bit] = inner.index
        self._edge(self._content[bit], self._held_in.number(bit))
        self._add(self._content[bit], 1 << inner.index | (not overlaps(obj)))  # overlapping ones come with all shadows

    def _store(
        self, pointer: int, source: int, where: Where | None = None, path: AccessPath = UNNAMED, align: int = 0
    ) -> None:
        for sort in (path,) if align >= 8 or self._between is None else (path, _BETWEEN):
            self._stores.setdefault(pointer, []).append((source, where, sort))
            for bit in bits_of(self._done[pointer]):
                self._store_to(bit, source, where, sort)

    def _store_to(self, bit: int, source: int, where: Where | None, named: AccessPath) -> None:
        if keeps_its_pointers(self.objects[bit]):
            return
        if named is _NUMBER:
            self._edge(source, self._held_in.number(bit))
            return
        if named is _BETWEEN and self._between is not None:
            self._between.put(bit, source, where)
            return
        if named is _COPIED:
            self._held_in.copy_into(bit, where, source)
        for node in self._held_in.into(bit, where, named) if named is not _COPIED else ():
            self._edge(source, node)
        if overlaps(self.objects[bit]):
            self._edge(source, self._shared)

    def _solve(self) -> None:
        while True:
            while self._queue or self._work:
                while self._queue:
                    for instr in self._queue.pop().instructions():
                        self._constrain(instr)
                self._propagate()
            if not (self._displace() or self._chosen.settle() or self._held_in.mistaken() or self._settle()):
                return

    def _displace(self) -> bool:
        """What is left of an address less another leads to where it led, unless both are in one object of the
        function's own: what is moved by their distance is in that already."""
        for instr in tuple(self._distances):
            a, b = (self._points[self.node(o)] if may_hold_pointer(o.type) else 0 for o in instr.operands)
            one = (a | b).bit_count() == 1 and self.objects[a.bit_length() - 1].kind in ("alloca", "heap", "global")
            if a and not (b and one and all(map(is_address, instr.operands))):
                self._edge(self.node(instr.operands[0]), self.node(instr))
                self._distances.remove(instr)
        return bool(self._work)

    def _held(self, bit: int, address: Value) -> int:
        """What an object holds at an address in it, as far as that is known by now; -1 where it may be anything."""
        if not filled_here(self.module, self.objects[bit]):
            return -1
        held = reduce(or_, (self._points[node] for node in self._held_in.out_of(bit, (address, 0))), 0)
        return -1 if held & 1 else held

    def _propagate(self) -> None:
        while self._work:
            node = self._work.pop()
            delta = self._points[node] & ~self._done[node]
            if not delta:
                continue
            self._done[node] |= delta
            loads, stores = self._loads.get(node, ()), self._stores.get(node, ())
            calls, within = self._calls.get(node, ()), self._within.get(node, ())
            if loads or stores or calls or within:
                for bit in bits_of(delta):
                    for move in tuple(within):
                        self._held_in.move_within(bit, *move)
                    for target, sort, where, named in tuple(loads):
                        self._load_from(bit, target, sort, where, named)
                    for source, where, named in tuple(stores):
                        self._store_to(bit, source, where, named)
                    for call in tuple(calls):
                        self._indirect(call, bit)
            if node == self._unknown_node:
                for bit in bits_of(delta & ~1):  # memory that outsiders reach holds what they may store there
                    self._edge(self._content[bit], node)
                    self._edge(node, self._held_in.into(bit)[0])
                    self._edge(self._held_in.number(bit), self._held_in.number(0))
                    self._edge(self._held_in.number(0), self._held_in.number(bit))
                    if self._between is not None:
                        self._between.put(bit, node, None)
            for target in self._graph.successors[node]:
                if delta & ~self._points[target]:
                    self._points[target] |= delta
                    self._work.append(target)

    def _settle(self) -> bool:
        """Pointers made from integers that carry none: first from argument memory read as integers, else unknown."""
        empty = [i for i in self._inttoptr if not self._points[self.node(i)]]
        empty = [i for i in empty if not is_zero(i.operands[0]) and not _aligned(i.operands[0])]
        untyped = {t for ts in self._loads.values() for t, sort, *_ in ts if sort == "pointer" and not self._points[t]}
        wanted = untyped.union(map(self.node, empty))
        changed = False
        for obj in tuple(self.objects) if wanted else ():
            if may_be_addresses(obj) and obj.index not in self.pointee_of and (
                any(self._points[p] >> obj.index & 1 for p in self._loads)
                and self._graph.flows(self._content[obj.index], wanted)
            ):
                self._open(obj.index)
                changed = True
        if not changed:
            for instr in empty:
                self._add(self.node(instr), 1)
        return changed or bool(empty)


def _aligned(word: Value) -> bool:
    """An address rounded to a multiple: it leads where the pointer led, nowhere when that was only ever null."""
    if not (isinstance(word, Instruction) and word.opcode == "and"):
        return False
    address = word.operands[0]
    return isinstance(address, Instruction) and address.opcode == "ptrtoint"
