"""Structural verifier: is this function well-formed SSA? Tests ask after each transform, every derivative once.

`verify_function` returns what is wrong as sentences, an empty list when nothing is. It checks blocks and terminators,
phis against predecessors, that every operand is defined and its definition dominates the use, and the types of the
operands by a table with a row per family of opcodes. Linear but for the dominators, which take a few sweeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import element_type
from irgrad.engine.ir.model import (
    Argument,
    Block,
    Constant,
    Function,
    Instruction,
    MetadataValue,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import CASTS, FLOAT_BINARY, INT_BINARY, OPCODES
from irgrad.engine.ir.printer import Names
from irgrad.engine.ir.types import Type


def verify_module(module: Module) -> list[str]:
    """What is wrong in any function of the module that has been read."""
    return [f"@{f.name}: {p}" for f in module.functions.values() if f.blocks for p in verify_function(f)]


def verify_definitions(module: Module) -> list[str]:
    """What is wrong with blocks, phis and definitions that do not dominate their uses, in any function."""
    return [f"@{f.name}: {p}" for f in module.functions.values() if f.blocks for p in _Verifier(f, types=False).run()]


def verify_function(function: Function) -> list[str]:
    """What is wrong in this function; an empty list when nothing is. A declaration is always right."""
    if not function.blocks:
        return []
    return _Verifier(function).run()


class _Verifier:
    def __init__(self, function: Function, *, types: bool = True) -> None:
        self.function = function
        self.types = types
        self.problems: list[str] = []
        self.names: Names | None = None
        self.place: dict[int, tuple[Block, int]] = {}
        self.predecessors: dict[int, list[Block]] = {id(b): [] for b in function.blocks}
        self.arguments = {id(a) for a in function.args}

    def say(self, problem: str, instr: Instruction | None = None) -> None:
        """Record a problem, with the instruction as printed."""
        if instr is not None:
            if self.names is None:
                self.names = Names(self.function)
            try:
                text = self.names.instruction(instr)
            except Exception:
                text = f"(a `{instr.opcode}` that cannot be printed)"
            problem = f"{problem}: {text}"
        self.problems.append(problem)

    def run(self) -> list[str]:
        """All checks; those that need sound blocks only run on sound blocks."""
        self._blocks()
        if self.problems:
            return self.problems
        for block in self.function.blocks:
            for successor in dict.fromkeys(block.successors):
                self.predecessors[id(successor)].append(block)
        if self.predecessors[id(self.function.entry)]:
            self.say("the entry block has predecessors")
        dominance = _Dominance(self.function)
        for block in self.function.blocks:
            for index, instr in enumerate(block.instructions):
                if self.types:
                    self._types(instr)
                if instr.opcode == "phi":
                    self._phi(block, instr, dominance)
                elif dominance.reachable(block):
                    for operand in _uses(instr):
                        self._use(operand, block, index, instr, dominance)
        return self.problems

    def _blocks(self) -> None:
        for block in self.function.blocks:
            label = block.name or "(unnamed)"
            if block.function is not None and block.function is not self.function:
                self.say(f"block %{label} belongs to another function")
            if not block.instructions or not block.instructions[-1].is_terminator:
                self.say(f"block %{label} does not end with a terminator")
            phis_over = False
            for index, instr in enumerate(block.instructions):
                if id(instr) in self.place:
                    self.say("an instruction stands in two places", instr)
                self.place[id(instr)] = (block, index)
                if instr.is_terminator and index != len(block.instructions) - 1:
                    self.say(f"a terminator in the middle of block %{label}", instr)
                if instr.opcode == "phi" and phis_over:
                    self.say("a phi behind another instruction", instr)
                phis_over = phis_over or instr.opcode != "phi"
                for target in instr.blocks:
                    if id(target) not in self.predecessors:
                        self.say(f"the block %{target.name} is not one of this function", instr)

    def _use(self, operand: Value, block: Block, index: int, instr: Instruction, dominance: _Dominance) -> None:
        if isinstance(operand, Constant):
            return
        if isinstance(operand, Argument):
            if id(operand) not in self.arguments:
                self.say(f"argument %{operand.name} of another function", instr)
            return
        place = self.place.get(id(operand))
        if place is None:
            self.say(f"operand %{operand.name} is not defined in this function", instr)
        elif place[0] is block:
            if place[1] >= index:
                self.say(f"operand %{operand.name} is used before its definition", instr)
        elif not dominance.dominates(place[0], block):
            self.say(f"the definition of %{operand.name} does not dominate this use", instr)

    def _phi(self, block: Block, instr: Instruction, dominance: _Dominance) -> None:
        if len(instr.operands) != len(instr.blocks):
            self.say(f"{len(instr.operands)} values for {len(instr.blocks)} blocks", instr)
            return
        incoming: dict[int, Value] = {}
        for value, source in zip(instr.operands, instr.blocks, strict=True):
            if incoming.setdefault(id(source), value) is not value and not isinstance(value, Constant):
                self.say(f"two values for the edge from %{source.name}", instr)
            if dominance.reachable(source):
                self._use(value, source, len(source.instructions), instr, dominance)
        wanted = {id(b) for b in self.predecessors[id(block)]}
        if set(incoming) != wanted:
            names = ", ".join(f"%{b.name}" for b in self.predecessors[id(block)])
            self.say(f"the incoming blocks are not the predecessors ({names})", instr)

    def _types(self, instr: Instruction) -> None:
        row = OPCODES.get(instr.opcode)
        if row is None:
            self.say(f"`{instr.opcode}` is no opcode of LLVM", instr)
            return
        if row.operands >= 0 and len(instr.operands) != row.operands:
            self.say(f"{len(instr.operands)} operands; `{instr.opcode}` takes {row.operands}", instr)
            return
        check = _TYPE_CHECKS.get(instr.opcode)
        problem = check(instr, self.function) if check is not None else None
        if problem:
            self.say(problem, instr)


def _uses(instr: Instruction) -> Iterator[Value]:
    for operand in instr.operands:
        if isinstance(operand, MetadataValue):
            if operand.value is not None:
                yield operand.value
        else:
            yield operand


class _Dominance:
    """Dominator tree by Cooper, Harvey and Kennedy's iteration, then numbered so that a query takes constant time."""

    def __init__(self, function: Function) -> None:
        order = _reverse_postorder(function)
        self.number = {id(b): i for i, b in enumerate(order)}
        idom = [0] * len(order)
        known = [False] * len(order)
        known[0] = True
        predecessors: list[list[int]] = [[] for _ in order]
        for i, block in enumerate(order):
            for successor in block.successors:
                predecessors[self.number[id(successor)]].append(i)
        changed = True
        while changed:
            changed = False
            for i in range(1, len(order)):
                new = -1
                for p in predecessors[i]:
                    if known[p]:
                        new = p if new < 0 else _intersect(idom, p, new)
                if not known[i] or idom[i] != new:
                    idom[i], known[i], changed = new, True, True
        self.first, self.last = _intervals(idom)

    def reachable(self, block: Block) -> bool:
        """The block can be reached from the entry."""
        return id(block) in self.number

    def dominates(self, a: Block, b: Block) -> bool:
        """Every way to b leads through a (true when b cannot be reached)."""
        j = self.number.get(id(b))
        i = self.number.get(id(a))
        if j is None:
            return True
        return i is not None and self.first[i] <= self.first[j] and self.last[j] <= self.last[i]


def _reverse_postorder(function: Function) -> list[Block]:
    seen = {id(function.entry)}
    out: list[Block] = []
    stack: list[tuple[Block, Iterator[Block]]] = [(function.entry, iter(function.entry.successors))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:
            if id(successor) not in seen:
                seen.add(id(successor))
                stack.append((successor, iter(successor.successors)))
                break
        else:
            out.append(block)
            stack.pop()
    return out[::-1]


def _intersect(idom: list[int], a: int, b: int) -> int:
    while a != b:
        while a > b:
            a = idom[a]
        while b > a:
            b = idom[b]
    return a


def _intervals(idom: list[int]) -> tuple[list[int], list[int]]:
    """Preorder number and last preorder number below, per node (children have larger numbers than parents)."""
    size = [1] * len(idom)
    for i in range(len(idom) - 1, 0, -1):
        size[idom[i]] += size[i]
    first, free = [0] * len(idom), [1] * len(idom)
    for i in range(1, len(idom)):
        parent = idom[i]
        first[i] = first[parent] + free[parent]
        free[parent] += size[i]
    return first, [f + s - 1 for f, s in zip(first, size, strict=True)]


# -- the table of types --------------------------------------------------------------------------------------------


def _lanes(type_: Type) -> int:
    return type_.count if isinstance(type_, ty.VectorType) else 0


def _binary(instr: Instruction, _: Function) -> str | None:
    a, b = instr.operands
    if a.type is not b.type or instr.type is not a.type:
        return f"operands of types `{a.type}` and `{b.type}` for a result of type `{instr.type}`"
    wants_float = instr.opcode in FLOAT_BINARY
    if wants_float != a.type.is_fp or not (wants_float or isinstance(a.type.scalar, ty.IntType)):
        return f"operands of type `{a.type}`"
    return None


def _fneg(instr: Instruction, _: Function) -> str | None:
    return None if instr.type.is_fp and instr.type is instr.operands[0].type else "operand and result differ"


def _compare(instr: Instruction, _: Function) -> str | None:
    a, b = instr.operands
    lanes = _lanes(a.type)
    wanted: Type = ty.vector(lanes, ty.I1) if lanes else ty.I1
    if a.type is not b.type or instr.type is not wanted:
        return f"operands of types `{a.type}` and `{b.type}` for a result of type `{instr.type}`"
    return None if (instr.opcode == "fcmp") == a.type.is_fp else f"operands of type `{a.type}`"


_CAST_KINDS: dict[str, tuple[type[Type], type[Type]]] = {
    **dict.fromkeys(("trunc", "zext", "sext"), (ty.IntType, ty.IntType)),
    **dict.fromkeys(("fptrunc", "fpext"), (ty.FloatType, ty.FloatType)),
    **dict.fromkeys(("fptoui", "fptosi"), (ty.FloatType, ty.IntType)),
    **dict.fromkeys(("uitofp", "sitofp"), (ty.IntType, ty.FloatType)),
    **dict.fromkeys(("ptrtoint", "ptrtoaddr"), (ty.PtrType, ty.IntType)),
    "inttoptr": (ty.IntType, ty.PtrType),
    "addrspacecast": (ty.PtrType, ty.PtrType),
}


def _cast(instr: Instruction, _: Function) -> str | None:
    source, target = instr.operands[0].type, instr.type
    text = f"a cast from `{source}` to `{target}`"
    if instr.opcode == "bitcast":
        if source.is_aggregate or target.is_aggregate or ty.store_size(source) != ty.store_size(target):
            return text
        return None if source.scalar.is_ptr == target.scalar.is_ptr else text
    kinds = _CAST_KINDS[instr.opcode]
    if not isinstance(source.scalar, kinds[0]) or not isinstance(target.scalar, kinds[1]):
        return text
    if _lanes(source) != _lanes(target):
        return text
    if instr.opcode in ("trunc", "fptrunc", "zext", "sext", "fpext"):
        before, after = source.scalar, target.scalar
        assert isinstance(before, ty.IntType | ty.FloatType) and isinstance(after, ty.IntType | ty.FloatType)
        narrows = instr.opcode in ("trunc", "fptrunc")
        if (before.bits <= after.bits) if narrows else (before.bits >= after.bits):
            return text
    return None


def _select(instr: Instruction, _: Function) -> str | None:
    condition, a, b = instr.operands
    if a.type is not b.type or instr.type is not a.type:
        return f"branches of types `{a.type}` and `{b.type}`"
    if condition.type is ty.I1:
        return None
    vector = _lanes(condition.type) == _lanes(a.type) and condition.type.scalar is ty.I1 and condition.type.is_vector
    return None if vector else f"a condition of type `{condition.type}`"


def _phi_types(instr: Instruction, _: Function) -> str | None:
    wrong = next((v for v in instr.operands if v.type is not instr.type), None)
    return None if wrong is None else f"an incoming value of type `{wrong.type}`"


def _load(instr: Instruction, _: Function) -> str | None:
    return None if instr.operands[0].type.is_ptr else f"an address of type `{instr.operands[0].type}`"


def _store(instr: Instruction, _: Function) -> str | None:
    if instr.type is not ty.VOID:
        return "a store with a result"
    return None if instr.operands[1].type.is_ptr else f"an address of type `{instr.operands[1].type}`"


def _atomic(instr: Instruction, _: Function) -> str | None:
    if not instr.operands[0].type.is_ptr:
        return f"an address of type `{instr.operands[0].type}`"
    if instr.opcode == "atomicrmw" and instr.type is not instr.operands[1].type:
        return "value and result differ"
    if instr.opcode == "cmpxchg" and instr.operands[1].type is not instr.operands[2].type:
        return "the expected and the new value differ in type"
    return None if instr.ordering else "no ordering"


def _alloca(instr: Instruction, _: Function) -> str | None:
    if instr.elem is None or not instr.type.is_ptr:
        return "no allocated type"
    return None if instr.operands[0].type.is_int else f"a count of type `{instr.operands[0].type}`"


def _gep(instr: Instruction, _: Function) -> str | None:
    if instr.elem is None or not instr.operands or not instr.operands[0].type.scalar.is_ptr:
        return "no source type, or no base pointer"
    wrong = next((v for v in instr.operands[1:] if not v.type.scalar.is_int), None)
    if wrong is not None:
        return f"an index of type `{wrong.type}`"
    return None if instr.type.scalar.is_ptr else f"a result of type `{instr.type}`"


def _extractelement(instr: Instruction, _: Function) -> str | None:
    vector = instr.operands[0].type
    return None if isinstance(vector, ty.VectorType) and vector.elem is instr.type else f"a vector of type `{vector}`"


def _insertelement(instr: Instruction, _: Function) -> str | None:
    vector, value = instr.operands[0].type, instr.operands[1].type
    if isinstance(vector, ty.VectorType) and vector.elem is value and instr.type is vector:
        return None
    return f"a value of type `{value}` put into `{vector}`"


def _shuffle(instr: Instruction, _: Function) -> str | None:
    a, b, mask = (v.type for v in instr.operands)
    if a is not b or not isinstance(a, ty.VectorType) or not isinstance(mask, ty.VectorType):
        return f"operands of types `{a}`, `{b}`, `{mask}`"
    return None if instr.type is ty.vector(mask.count, a.elem) else f"a result of type `{instr.type}`"


def _part_type(type_: Type, indices: tuple[int, ...]) -> Type | None:
    for index in indices:
        if isinstance(type_, ty.StructType):
            if type_.fields is None or index >= len(type_.fields):
                return None
        elif not isinstance(type_, ty.ArrayType) or index >= type_.count:
            return None
        type_ = element_type(type_, index)
    return type_


def _extractvalue(instr: Instruction, _: Function) -> str | None:
    part = _part_type(instr.operands[0].type, instr.indices)
    return None if part is instr.type else f"a part of type `{part}` for a result of type `{instr.type}`"


def _insertvalue(instr: Instruction, _: Function) -> str | None:
    aggregate, value = instr.operands[0].type, instr.operands[1].type
    part = _part_type(aggregate, instr.indices)
    ok = part is value and instr.type is aggregate
    return None if ok else f"a value of type `{value}` put where `{part}` is"


def _call(instr: Instruction, _: Function) -> str | None:
    if instr.call is None or not instr.operands:
        return "a call without its function type or callee"
    kind = instr.call.fn_type
    given, callee = instr.operands[:-1], instr.operands[-1]
    if isinstance(callee, Function) and callee.ftype is not kind and callee.name and callee.name.startswith("llvm."):
        return f"an intrinsic of type `{callee.ftype}` called as `{kind}`"
    if len(given) < len(kind.params) or (len(given) > len(kind.params) and not kind.vararg):
        return f"{len(given)} arguments; `{kind}` takes {len(kind.params)}"
    for i, (arg, param) in enumerate(zip(given, kind.params, strict=False)):
        if arg.type is not param:
            return f"argument {i} has type `{arg.type}`, not `{param}`"
    return None if instr.type is kind.ret else f"a result of type `{instr.type}`, not `{kind.ret}`"


def _br(instr: Instruction, _: Function) -> str | None:
    if len(instr.operands) + 1 != len(instr.blocks) or len(instr.operands) > 1:
        return f"{len(instr.operands)} conditions for {len(instr.blocks)} targets"
    return None if not instr.operands or instr.operands[0].type is ty.I1 else "a condition that is not i1"


def _switch(instr: Instruction, _: Function) -> str | None:
    if len(instr.operands) != len(instr.blocks):
        return f"{len(instr.operands) - 1} cases for {len(instr.blocks) - 1} targets"
    wrong = next((v for v in instr.operands if v.type is not instr.operands[0].type), None)
    return None if wrong is None else f"a case of type `{wrong.type}`"


def _ret(instr: Instruction, function: Function) -> str | None:
    got = instr.operands[0].type if instr.operands else ty.VOID
    return None if got is function.ftype.ret else f"a return of `{got}`, not `{function.ftype.ret}`"


_TYPE_CHECKS: dict[str, Callable[[Instruction, Function], str | None]] = {
    **dict.fromkeys(INT_BINARY | FLOAT_BINARY, _binary),
    **dict.fromkeys(CASTS, _cast),
    **dict.fromkeys(("icmp", "fcmp"), _compare),
    **dict.fromkeys(("call", "invoke", "callbr"), _call),
    **dict.fromkeys(("atomicrmw", "cmpxchg"), _atomic),
    "fneg": _fneg,
    "select": _select,
    "phi": _phi_types,
    "load": _load,
    "store": _store,
    "alloca": _alloca,
    "getelementptr": _gep,
    "extractelement": _extractelement,
    "insertelement": _insertelement,
    "shufflevector": _shuffle,
    "extractvalue": _extractvalue,
    "insertvalue": _insertvalue,
    "br": _br,
    "switch": _switch,
    "ret": _ret,
}
