"""Which pointers need a shadow pointer, and which memory a shadow because of it: a closure against pointer flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from irgrad.engine.analyses.activity.dataflow import Dataflow
from irgrad.engine.analyses.activity.numbers import Numbers
from irgrad.engine.analyses.memory.byte_kinds import INT, PTR
from irgrad.engine.analyses.memory.objects import bits_of
from irgrad.engine.analyses.memory.points_to import Pointers
from irgrad.engine.analyses.memory.tbaa import NO_POINTER
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Argument, Function, Instruction, Value
from irgrad.engine.ir.opcodes import of_kind
from irgrad.engine.ir.types import may_hold_pointer

_STOPS = of_kind("compare") | {"alloca"}


class Shadows:
    """`needed`: pointer values whose shadow is used; `mask`: objects with a shadow; `pointer_mask`: those whose shadow
    holds shadow pointers."""

    def __init__(
        self,
        pointers: Pointers,
        flow: Dataflow,
        active: Callable[[Value], bool],
        floats: int,
        function_shadows: bool,
        opened: int = 0,
        wanted: Iterable[Value] = (),
    ) -> None:
        """opened: memory that a program goes on using: the shadow pointers that belong into its shadow are stored.
        wanted: pointers whose shadows are used besides."""
        self._pointers = pointers
        self._flow = flow
        self._active = active
        self._floats = floats
        self._function_shadows = function_shadows
        self._opened = opened
        self.mask = floats
        self.pointer_mask = 0
        self._functions = 0  # functions whose addresses have shadows: descriptors of their derivatives
        if function_shadows:
            self._functions = sum(1 << o.index for o in pointers.objects if o.kind == "function")
        self.needed: set[Value] = set()
        self._numbers = Numbers(pointers, flow.types)
        self._added = 0  # memory from which integers are loaded that become addresses
        self._work: list[Value] = []
        self._pointer_stores: list[tuple[Value, Value]] = []  # (pointer value, address)
        self._copies: list[tuple[Value, Value]] = []  # (target, source)
        self._watched: list[Value] = []  # addresses of floats beside which no shadow pointer is to lie
        self._returns: dict[Function, list[Value]] = {}
        self._frees: list[Value] = []
        self._fills: list[Value] = []
        for fn in pointers.functions:
            for instr in fn.instructions():
                self._seed(instr)
        for value in wanted:
            self._need(value)
        self._close()

    def _need(self, value: Value) -> None:
        if isinstance(value, Instruction | Argument) and value not in self.needed and self._pointers.of(value):
            if value.type.is_int and self._numbers.computed(value):
                return
            self.needed.add(value)
            self._work.append(value)
        elif not isinstance(value, Instruction | Argument):
            self._cover(self._pointers.of(value))

    def _cover(self, mask: int) -> None:
        """Memory that a needed shadow pointer may mean has a shadow."""
        for bit in bits_of(mask & ~self.mask):
            if self._pointers.objects[bit].kind != "function":
                self.mask |= 1 << bit

    def _seed(self, instr: Instruction) -> None:
        op = instr.opcode
        if op == "load":
            if NO_POINTER in instr.metadata:
                self._watched.append(instr.operands[0])
            if self._active(instr):
                self._need(instr.operands[0])
        elif op == "store":
            value, address = instr.operands
            if self._flow_into(value, address):
                self._need(address)
            if may_hold_pointer(value.type) and self._pointers.of(value):
                self._pointer_stores.append((value, address))
        elif op in ("atomicrmw", "cmpxchg"):
            if self._active(instr) or self._flow_into(instr.operands[-1], instr.operands[0]):
                self._need(instr.operands[0])
            if self._pointers.of(instr.operands[-1]):
                self._pointer_stores.append((instr.operands[-1], instr.operands[0]))
        elif op == "ret" and instr.operands and may_hold_pointer(instr.operands[0].type):
            assert instr.block is not None and instr.block.function is not None
            self._returns.setdefault(instr.block.function, []).append(instr.operands[0])
        elif instr.is_call:
            self._seed_call(instr)

    def _flow_into(self, value: Value, address: Value) -> bool:
        """A store of floats into memory that may hold active ones: its shadow is written too (perhaps with zero)."""
        if not self._pointers.of(address) & self._floats:
            return False
        from irgrad.engine.analyses.activity.dataflow import may_carry_floats

        if not may_carry_floats(value.type):
            return False
        if isinstance(value, Instruction | Argument) and self._flow.carries(value):
            return True
        return self._stores_float(value, address)

    def _stores_float(self, value: Value, address: Value) -> bool:
        """A constant or a computed integer is stored: it may be the bits of a float, whose shadow then becomes zero."""
        if not value.type.scalar.is_int:
            return True

        layout = self._flow.types.ended(address, ty.store_size(value.type))
        return any(kind is not INT and kind is not PTR for _, kind in layout)

    def _seed_call(self, call: Instruction) -> None:
        effect = self._pointers.effect(call)
        if self._function_shadows and not isinstance(call.callee, Function) and self._inside(call.callee):
            self._need(call.callee)
        if effect is None or effect.inactive:
            return
        if effect.copy is not None:
            target, source = call.args[effect.copy[0]], call.args[effect.copy[1]]
            self._copies.append((target, source))
            if self._pointers.of(target) & self._floats:
                self._need(target)
                if self._pointers.of(source) & self._floats:
                    self._need(source)
            return
        if effect.fill is not None:
            self._fills.append(call.args[effect.fill[0]])
            if self._pointers.of(call.args[effect.fill[0]]) & self._floats:
                self._need(call.args[effect.fill[0]])
            return
        if effect.moves is not None:
            self._copies.append((call, call.args[effect.moves]))
            self._frees.append(call)
            self._frees.append(call.args[effect.moves])
        elif effect.frees is not None:
            self._frees.append(call.args[effect.frees])
        elif not effect.nothing and not effect.allocates:
            self._seed_external(call)

    def _inside(self, callee: Value) -> bool:
        """A call through this pointer may reach a function of the module: it is called through its descriptor."""
        sites = (self._pointers.objects[bit].site for bit in bits_of(self._pointers.of(callee)))
        return any(isinstance(site, Function) and bool(site.blocks) for site in sites)

    def _seed_external(self, call: Instruction) -> None:
        for arg in call.args:
            if may_hold_pointer(arg.type) and self._pointers.of(arg) & self._floats:
                self._need(arg)
        rules = self._pointers.module.rules
        wanted = rules.shadows_wanted(call) if rules is not None else ()
        if wanted and (self._active(call) or any(self._leads_to_floats(arg) for arg in call.args)):
            for arg in wanted:
                if not self._integers(arg):
                    self._need(arg)
                    self._follow(self._pointers.of(arg))

    def _leads_to_floats(self, arg: Value) -> bool:
        mask = self._pointers.of(arg) if may_hold_pointer(arg.type) else 0
        return bool(mask & ~1 and self._pointers.reachable(mask & ~1) & self._floats)

    def _follow(self, mask: int) -> None:
        """The shadows of this memory hold shadow pointers wherever the memory holds pointers, and so on."""
        for bit in bits_of(self._pointers.reachable(mask & ~1) & ~1):
            contents = self._pointers.contents(self._pointers.objects[bit]) & ~1
            if contents:
                self.pointer_mask |= 1 << bit
                self._cover(contents)

    def _integers(self, pointer: Value) -> bool:
        """Memory that holds integers, as far as is known."""
        layout = self._flow.types.access(pointer, 8)
        return bool(layout) and all(kind is INT for _, kind in layout)

    # -- closure ------------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        while True:
            while self._work:
                self._back(self._work.pop())
            before = (len(self.needed), self.mask, self.pointer_mask, self._added)
            for value, address in self._pointer_stores:
                if self._pointers.of(address) & self._opened and self._pointers.of(value) & self.mask:
                    self.pointer_mask |= self._pointers.of(address) & self._opened
                if self._pointers.of(address) & self.pointer_mask:
                    self._need(address)
                    spare = (value, address) in self._numbers.measured and not self._pointers.of(address) & self._added
                    if self._pointers.of(value) & (self.mask | self._functions) and not spare:
                        self._need(value)
            for address in self._watched:
                self._close_watched(address)
            for target, source in self._copies:
                self._close_copy(target, source)
            for target in self._fills:
                if self._pointers.of(target) & self.pointer_mask:
                    self._need(target)
            for value in self._frees:
                if self._pointers.of(value) & self.mask:
                    self._need(value)
            if not self._work and before == (len(self.needed), self.mask, self.pointer_mask, self._added):
                return

    def _close_watched(self, address: Value) -> None:
        """Shadow pointers are stored wherever one would be taken for a float."""
        for bit in bits_of(self._pointers.of(address)):
            contents = self._pointers.contents(self._pointers.objects[bit]) & ~1
            if contents:
                self.pointer_mask |= 1 << bit
                self._cover(contents)
                self._need(address)

    def _close_copy(self, target: Value, source: Value) -> None:
        """Shadows are copied along with floats, and along with pointers whose shadows are read from the target."""
        into, out_of = self._pointers.of(target), self._pointers.of(source)
        if into & self._added:
            self._added |= out_of
        if into & self._opened and self._leads_to_shadows(out_of):
            self.pointer_mask |= into & self._opened
        if into & (self.pointer_mask | self._floats):
            self._need(target)
            if out_of & self.mask:
                self._need(source)
        if into & self.pointer_mask:
            for bit in bits_of(out_of):
                if self._pointers.contents(self._pointers.objects[bit]) & (self.mask | self._functions):
                    self.pointer_mask |= 1 << bit
                    self._need(source)

    def _leads_to_shadows(self, mask: int) -> bool:
        contents = (self._pointers.contents(self._pointers.objects[bit]) for bit in bits_of(mask))
        return any(found & self.mask for found in contents)

    def _back(self, value: Value) -> None:
        """The shadow of `value` is computed from the shadows of what it was computed from."""
        self._cover(self._pointers.of(value))
        if isinstance(value, Argument):
            if value.function is not None:
                for call in self._pointers.calls.get(value.function, ()):
                    if value.index < len(call.args):
                        self._need(call.args[value.index])
            return
        assert isinstance(value, Instruction)
        op = value.opcode
        if op == "load" or op in ("atomicrmw", "cmpxchg"):
            self.pointer_mask |= self._pointers.of(value.operands[0])
            if not isinstance(value.type.scalar, ty.PtrType):
                self._added |= self._pointers.of(value.operands[0])
            self._need(value.operands[0])
        elif value.is_call:
            for fn in self._pointers.callees(value) or ():
                for result in self._returns.get(fn, ()):
                    self._need(result)
            effect = self._pointers.effect(value)
            if effect is not None and effect.returns is not None:
                self._need(value.args[effect.returns])
        elif op == "getelementptr":
            self._need(value.operands[0])
        elif op not in _STOPS:
            for operand in value.operands[1:] if op == "select" else value.operands:
                if may_hold_pointer(operand.type):
                    self._need(operand)
