"""Functions that fill memory of their callers with addresses of new memory become functions of each of their calls.

    M a(n), b(n), c(n);      // one constructor that stays a function: three vectors of vectors, one `new` in the source

What a function allocates and hands out is one object to the analyses of memory, whoever calls it: the rows of `a`, `b`
and `c` might be the same memory, so that nothing leaves loops, and what one of them holds is kept for each store to
another. A copy of the function for each call tells them apart, through as many functions as lie between the call and
the allocation. A small module at most doubles by it, a larger one grows by a tenth, since all that comes behind takes
as much longer; what calls itself stays as it is. So does what only returns new memory (a `malloc` that stops the
program when there is none): what callers have in it, floats and integers, may go through one function for both, which
needs to see what may be either.

Functions that link elements (turn a tree, put something into a list) are such as well, within room of their own: to
the analyses each tree would hold the nodes of all that the one function turns.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir.model import Function, Instruction, Module, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.parallel.copies import copied_function
from irgrad.rules.effects import facts

__all__ = ["CALLS", "CallGraph", "room_in", "separate_calls", "size_of"]

_LITTLE, _MOST = 400, 2_000  # instructions that are copied
CALLS = 8  # of one function
_DERIVED = having("carries_pointers") | {"select", "getelementptr"}


def separate_calls(module: Module, root: Function) -> int:
    """Give calls of functions that hand out memory a copy of their own; how many."""
    graph = CallGraph(root)
    linkers = {fn for fn in graph.order if graph.may_copy(fn) and _links(fn)}
    whole = sum(map(size_of, graph.order))
    makers = _makers(graph)
    return _copy_calls(module, graph, makers, room_in(graph)) + _copy_calls(
        module, graph, linkers - makers, min(_MOST, max(_LITTLE, whole // 4)))


def _copy_calls(module: Module, graph: CallGraph, wanted: set[Function], room: int) -> int:
    """Copies of some functions for each call, as far as there is room, in instructions; how many."""
    made = 0
    for fn in graph.order:
        sites = graph.sites[fn]
        own = sites[fn not in graph.named :]
        size = size_of(fn)
        if fn in wanted and own and len(sites) <= CALLS and len(own) * size <= room:
            for call in own:
                call.operands[-1] = graph.copied(module, fn)
            made += len(own)
            room -= len(own) * size
    return made


def room_in(graph: CallGraph) -> int:
    """How many instructions may be copied: no more than there are, in a large program a tenth."""
    whole = sum(map(size_of, graph.order))
    return min(_MOST, whole, max(_LITTLE, whole // 10))


def size_of(fn: Function) -> int:
    """Instructions of a function."""
    return sum(len(block.instructions) for block in fn.blocks)


def _makers(graph: CallGraph) -> set[Function]:
    """The functions that hand out memory behind an argument."""
    makers: set[Function] = set()
    for fn in reversed(graph.order):
        if graph.may_copy(fn) and _makes(fn, makers):
            makers.add(fn)
    return makers


def _makes(fn: Function, makers: set[Function]) -> bool:
    """Whether a function stores, for its caller, addresses of memory which it, or what it calls, has allocated."""
    if not any(block.terminator.opcode == "ret" for block in fn.blocks):
        return False
    fresh: set[Value] = set()
    for instr in fn.instructions():
        callee = instr.callee if instr.is_call else None
        if callee in makers:
            if any(a.type.is_ptr and not _own(a) for a in instr.args):
                return True
        elif isinstance(callee, Function) and callee.is_declaration:
            known = facts(callee.name or "")
            if known is not None and known.allocates:
                fresh.add(instr)
    return bool(fresh) and _leaves(fn, fresh)


def _links(fn: Function) -> bool:
    """Whether a function stores addresses that it finds in memory of its callers in such memory: it turns a tree, or
    puts an element into a list, and so might each list hold the elements of all others."""
    loads = (i for i in fn.instructions() if i.opcode == "load" and i.type.is_ptr)
    found: set[Value] = {load for load in loads if not _own(load.operands[0])}
    return bool(found) and _leaves(fn, found)


class CallGraph:
    """The functions that a root calls, callers first. sites: the direct calls of each; named: those whose address is
    used otherwise."""

    def __init__(self, root: Function) -> None:
        self.sites: dict[Function, list[Instruction]] = {}
        self.named: set[Function] = set()
        self.order: list[Function] = []
        self._again: set[Function] = set()  # functions that call themselves, perhaps through others
        self._visit(root)
        self.order.reverse()
        self._root = root

    def may_copy(self, fn: Function) -> bool:
        """Whether nothing outside of the module calls a function, and it does not call itself."""
        return fn is not self._root and fn not in self._again and "internal" in fn.head.split()

    def _visit(self, root: Function) -> None:
        """Depth first; `order` has what is called before what calls it."""
        self.sites[root] = []
        path, done = {root: iter(self._called(root))}, set[Function]()
        while path:
            fn = next(reversed(path))
            called = next(path[fn], None)
            if called is None:
                del path[fn]
                self.order.append(fn)
                done.add(fn)
            elif called in path:
                self._again |= {*list(path)[list(path).index(called):]}
            elif called not in done:
                path[called] = iter(self._called(called))

    def _called(self, fn: Function) -> list[Function]:
        found: dict[Function, None] = {}
        for instr in fn.instructions():
            named = [resolve(o) for o in instr.operands]
            direct = instr.opcode == "call" and instr.operands[-1] is named[-1]
            for value in named:
                if isinstance(value, Function) and value.blocks:
                    found[value] = None
                    self.sites.setdefault(value, [])
            if direct and isinstance(callee := named[-1], Function) and callee.blocks:
                self.sites[callee].append(instr)
                named.pop()
            self.named.update(value for value in named if isinstance(value, Function))
        return list(found)

    def copied(self, module: Module, fn: Function) -> Function:
        """A copy of a function, whose calls are calls like others."""
        number = next(n for n in range(1, len(module.functions) + 2) if f"{fn.name}.own{n}" not in module.functions)
        copy = copied_function(module, fn, f"{fn.name}.own{number}")
        for instr in copy.instructions():
            if instr.opcode == "call" and isinstance(callee := instr.callee, Function) and callee in self.sites:
                self.sites[callee].append(instr)
        return copy


def _own(pointer: Value) -> bool:
    """Whether a pointer leads to a variable of the function."""
    while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr":
        pointer = pointer.operands[0]
    return isinstance(pointer, Instruction) and pointer.opcode == "alloca"


def _leaves(fn: Function, fresh: set[Value]) -> bool:
    """Whether an address in `fresh`, or one computed from it, is stored elsewhere than in variables."""
    before = -1
    while len(fresh) > before:
        before = len(fresh)
        fresh |= {i for i in fn.instructions() if i.opcode in _DERIVED and fresh.intersection(i.operands)}
    stores = (i for i in fn.instructions() if i.opcode == "store")
    return any(i.operands[0] in fresh and not _own(i.operands[1]) for i in stores)
