"""The graph along which derivatives can flow: from values to values, through memory objects, calls and returns.

Nodes are SSA values, `Object`s and, for what a function returns, the function itself wrapped in `Returned`. An edge
a -> b says that b may depend differentiably on a. Only what can carry floats has edges; integers do where `MemoryTypes`
says so.
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.byte_kinds import CONFLICT, INT
from irgrad.engine.analyses.memory.call_effects import Effect
from irgrad.engine.analyses.memory.objects import Object, bits_of
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.types.memory_types import MemoryTypes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Function, GlobalVariable, Instruction, Value
from irgrad.engine.ir.opcodes import having, of_kind
from irgrad.engine.ir.types import Type
from irgrad.engine.ir.uses import Uses, uses_of
from irgrad.engine.runtime.word_sums import WORD_SUM

_STOPS = having("stops_derivatives")
_INTEGER_STOPS = having("integer_arithmetic")
_COMPUTED = having("number_to_number") & having("integer_arithmetic")
_NUMBERS = having("number_to_number") | of_kind("compare") | {"switch"}


class Returned:
    """What a function returns, as a node."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function


Node = Value | Object | Returned


def may_carry_floats(type_: Type) -> bool:
    """A value of this type is, contains, or (integers of 16 bits or more, several bytes) may carry floats."""
    match type_:
        case ty.FloatType():
            return True
        case ty.IntType(bits=bits):
            return bits >= 16
        case ty.VectorType(count=count, elem=ty.IntType(bits=bits)):
            return bits >= 8 and count * bits >= 16
        case ty.VectorType(elem=elem) | ty.ArrayType(elem=elem):
            return may_carry_floats(elem)
        case ty.StructType(fields=fields):
            return any(map(may_carry_floats, fields or ()))
        case _:
            return False


class Dataflow:
    """`successors` and `predecessors` of every node."""

    def __init__(self, pointers: Pointers, types: MemoryTypes) -> None:
        self.pointers = pointers
        self.types = types
        self.successors: dict[Node, list[Node]] = {}
        self.predecessors: dict[Node, list[Node]] = {}
        self.home: dict[Value, Function] = {}
        self._carries: dict[Value, bool] = {}
        self._uses: dict[Function, Uses] = {}
        self._floats: dict[int, bool] = {}
        self._returned: dict[Function, Returned] = {}
        rules = pointers.module.rules
        self._inactive: frozenset[str] = rules.inactive_globals if rules is not None else frozenset()
        for fn in pointers.functions:
            for instr in fn.instructions():
                self._visit(instr)
        self._outside()

    def returned(self, fn: Function) -> Returned:
        """The node of a function's return value."""
        if fn not in self._returned:
            self._returned[fn] = Returned(fn)
        return self._returned[fn]

    def carries(self, value: Value) -> bool:
        """The value is a float or carries floats (integers: unless they are known to be numbers or pointers)."""
        if not isinstance(value, Instruction | Argument):
            return False
        known = self._carries.get(value)
        if known is None:
            known = may_carry_floats(value.type)
            if known and value.type.scalar.is_int:
                kind = self.types.carries(value)
                known = kind is not INT and kind is not ty.PTR and not (kind is CONFLICT and self._number(value))
            self._carries[value] = known
        return known

    def _number(self, value: Value) -> bool:
        """Whether an integer from bytes that hold several kinds (the members of a union) is computed, or only computed
        with. What arithmetic on the bits of a float would do is looked for elsewhere (`bits.py`)."""
        if not isinstance(value, Instruction) or self.types.carriers.floats(value):
            return False
        if value.opcode in _COMPUTED:
            return True
        fn = value.block.function if value.opcode == "load" and value.block is not None else None
        if fn is None:
            return False
        users = self._uses.get(fn) or self._uses.setdefault(fn, uses_of(fn.blocks))
        return all(user.opcode in _NUMBERS for user in users.get(value, ()))

    def objects(self, pointer: Value) -> list[Object]:
        """The objects behind a pointer that may hold floats."""
        return self.objects_in(self.pointers.of(pointer))

    def objects_in(self, mask: int) -> list[Object]:
        """The objects of a mask that may hold floats."""
        out = []
        for bit in bits_of(mask):
            if bit not in self._floats:
                obj = self.pointers.objects[bit]
                site = obj.site
                fixed = isinstance(site, GlobalVariable) and (site.constant or site.name in self._inactive)
                self._floats[bit] = obj.kind != "function" and not fixed and self.types.may_hold_floats(obj)
            if self._floats[bit]:
                out.append(self.pointers.objects[bit])
        return out

    def edge(self, source: Node, target: Node) -> None:
        """`target` may depend on `source`."""
        self.successors.setdefault(source, []).append(target)
        self.predecessors.setdefault(target, []).append(source)

    def _visit(self, instr: Instruction) -> None:
        op = instr.opcode
        if op == "load":
            self._from_memory(instr.operands[0], instr)
        elif op == "store":
            self._to_memory(instr.operands[0], instr.operands[1])
        elif op in ("atomicrmw", "cmpxchg"):
            self._from_memory(instr.operands[0], instr)
            self._to_memory(instr.operands[-1], instr.operands[0])
        elif op == "ret":
            if instr.operands and self.carries(instr.operands[0]):
                assert instr.block is not None and instr.block.function is not None
                self.edge(instr.operands[0], self.returned(instr.block.function))
        elif instr.is_call:
            self._call(instr)
        elif op == "extractvalue" and self.carries(instr) and self._of_unknown_kind(instr):
            for origin in self.types.carriers.origins(instr):  # not from the floats beside it
                self.edge(origin, instr)
        elif op not in _STOPS and not (op in _INTEGER_STOPS and self._is_number(instr)) and self.carries(instr):
            for operand in instr.operands[1:] if op == "select" else instr.operands:
                if self.carries(operand):
                    self.edge(operand, instr)

    def _of_unknown_kind(self, instr: Instruction) -> bool:
        return instr.type.scalar.is_int and not self.types.carriers.floats(instr)

    def _is_number(self, instr: Instruction) -> bool:
        return self.types.carries(instr) is INT

    def _from_memory(self, pointer: Value, value: Value) -> None:
        if self.carries(value):
            for obj in self.objects(pointer):
                self.edge(obj, value)

    def _to_memory(self, value: Value, pointer: Value) -> None:
        if self.carries(value):
            for obj in self.objects(pointer):
                self.edge(value, obj)

    def _call(self, call: Instruction) -> None:
        effect = self.pointers.effect(call)
        if call.callee_name == WORD_SUM:
            for word in call.args:
                if self.carries(word):
                    self.edge(word, call)
        elif effect is not None:
            self._external(call, effect)
        for fn in self.pointers.callees(call) or ():
            if not fn.blocks:
                continue
            for actual, formal in zip(call.args, fn.args, strict=False):
                if self.carries(formal) and self.carries(actual):
                    self.edge(actual, formal)
            if self.carries(call):
                self.edge(self.returned(fn), call)

    def _external(self, call: Instruction, effect: Effect) -> None:
        if effect.copy is not None:
            for source in self.objects(call.args[effect.copy[1]]):
                for target in self.objects(call.args[effect.copy[0]]):
                    self.edge(source, target)
        elif effect.moves is not None:
            for source in self.objects(call.args[effect.moves]):
                for target in self.objects(call):
                    self.edge(source, target)
        elif not (effect.inactive or effect.allocates or effect.frees is not None or effect.fill is not None):
            self._opaque(call, effect)

    def _opaque(self, call: Instruction, effect: Effect) -> None:
        """A callee without body: its results depend on all floats it is given and on all floats it may read."""
        sources: list[Node] = [a for a in call.args if a.type.is_fp and self.carries(a)]
        sources += [a for a in call.args if a.type.is_aggregate and self.carries(a)]
        results: list[Node] = [call] if call.type is not ty.VOID and self.carries(call) else []
        if not effect.nothing:
            from irgrad.engine.analyses.memory.modref import own_reads_writes

            reads, writes = own_reads_writes(self.pointers, call)
            sources += self.objects_in(reads)
            results += self.objects_in(writes)
        for source in sources:
            for result in results:
                if source is not result:
                    self.edge(source, result)

    def _outside(self) -> None:
        """Escaped memory and the unknown object are one piece of memory."""
        unknown = self.pointers.unknown
        for obj in self.objects_in(self.pointers.escaped_mask & ~1):
            self.edge(obj, unknown)
            self.edge(unknown, obj)
