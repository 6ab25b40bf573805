"""An interpreter of LLVM IR over a number type (see numbers.py).

    machine = Machine(module, DualDomain())
    x = machine.array(ty.F64, [Dual(1.0, 1.0), 2.0])     an address
    result = machine.call("f", [x, 2])                   a number, an integer, a tuple, or None
    machine.read(x, ty.F64, 2)                           the numbers there now

Integers are Python ints without sign (masked to their width), pointers are ints (see memory.py), vectors, arrays and
structs are tuples. Every instruction is compiled once to a closure over a list of registers. `Fault` is raised for
undefined behaviour that is noticed, for traps, and when the step limit is passed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from irgrad.engine.ir import model as ir
from irgrad.engine.ir import types as ty

from .externals import external
from .memory import Fault, Memory
from .operations import Code, Operations

__all__ = ["Fault", "Machine"]


def zero(t: ty.Type, domain: Any) -> Any:
    """The value with all bits zero."""
    if isinstance(t, ty.FloatType):
        return domain.lift(0.0)
    if isinstance(t, ty.VectorType | ty.ArrayType):
        return (zero(t.elem, domain),) * t.count
    if isinstance(t, ty.StructType):
        return tuple(zero(f, domain) for f in t.fields or ())
    return 0


class Compiled:
    """A function ready to run."""

    __slots__ = ("args", "blocks", "template")

    def __init__(self) -> None:
        self.template: list[Any] = [None, None]  # slot 0: return value, slot 1: blocks of the frame's allocas
        self.args: list[int] = []
        self.blocks: list[list[Code]] = []  # the last closure of a block returns (block, copies) or None


class Machine(Operations):
    """One run of a module: its memory and its globals."""

    def __init__(self, module: ir.Module, domain: Any, limit: int = 20_000_000) -> None:
        self.module = module
        self.domain = domain
        self.memory = Memory(domain)
        self.limit = limit
        self.steps = 0
        self.depth = 0
        self.compiled: dict[str, Compiled] = {}
        self.addresses: dict[str, int] = {}
        self.at: dict[int, ir.Function] = {}
        self.natives: dict[str, Any] = {}
        self._place_globals()

    # ------------------------------------------------------------ memory for the caller
    def array(self, t: ty.Type, values: Sequence[Any]) -> int:
        """A new object that holds these values of type `t`."""
        size = ty.size_of(t)
        address = self.memory.allocate(size * len(values))
        for i, v in enumerate(values):
            self.memory.store(address + i * size, t, v)
        return address

    def read(self, address: int, t: ty.Type, count: int) -> list[Any]:
        """`count` values from an address."""
        size = ty.size_of(t)
        return [self.load(address + i * size, t) for i in range(count)]

    def _place_globals(self) -> None:
        block = self.memory.blocks[0]
        offset = 8192
        for f in self.module.functions.values():
            assert f.name is not None
            self.addresses[f.name] = offset
            self.at[offset] = f
            offset += 16
        for g in self.module.globals.values():
            align = 64
            offset = (offset + align - 1) // align * align
            assert g.name is not None
            self.addresses[g.name] = offset
            offset += ty.size_of(g.value_type) + 16
        block.size = offset + 64
        for g in self.module.globals.values():
            if g.init is not None and not (g.name or "").startswith("llvm."):
                self.store(self.addresses[g.name or ""], g.value_type, self.constant(g.init))

    def constant(self, c: ir.Value) -> Any:
        """The value of a constant."""
        t = c.type
        match c:
            case ir.ConstInt():
                assert isinstance(t, ty.IntType)
                return c.value & ((1 << t.bits) - 1)
            case ir.ConstFloat():
                return self.domain.lift(c.value)
            case ir.ConstZero() | ir.ConstUndef():
                return zero(t, self.domain)
            case ir.ConstAggregate():
                return tuple(map(self.constant, c.elems))
            case ir.ConstData():
                return tuple(c.data)
            case ir.GlobalVariable() | ir.Function():
                return self.addresses[c.name or ""]
            case ir.GlobalAlias():
                return self.constant(c.target)
            case ir.ConstExpr():
                regs = [self.constant(o) for o in c.operands]
                fake = ir.Instruction(c.opcode, t, c.operands, flags=c.flags, elem=c.elem)
                return self._evaluator(fake)(regs, *range(len(regs)))
            case ir.MetadataValue():
                return None
        raise Fault(f"constant {type(c).__name__} of type {t}")

    def _evaluator(self, instr: ir.Instruction) -> Callable[..., Any]:
        def run(regs: list[Any], *slots: int) -> Any:
            out: list[Any] = [*regs, None]
            self._lower(instr, list(slots), len(regs))(out)
            return out[len(regs)]

        return run

    def load(self, address: int, t: ty.Type) -> Any:
        """A value of any type from memory."""
        if isinstance(t, ty.VectorType | ty.ArrayType):
            step = ty.size_of(t.elem) if isinstance(t, ty.ArrayType) else ty.store_size(t.elem)
            if isinstance(t, ty.VectorType) and isinstance(t.elem, ty.IntType) and t.elem.bits % 8:
                packed = self.memory.load(address, ty.int_(ty.store_size(t) * 8))
                return tuple(packed >> (i * t.elem.bits) & ((1 << t.elem.bits) - 1) for i in range(t.count))
            return tuple(self.load(address + i * step, t.elem) for i in range(t.count))
        if isinstance(t, ty.StructType):
            return tuple(self.load(address + o, f) for o, f in zip(ty.field_offsets(t), t.fields or (), strict=False))
        return self.memory.load(address, t)

    def store(self, address: int, t: ty.Type, value: Any) -> None:
        """Store a value of any type."""
        if isinstance(t, ty.VectorType | ty.ArrayType):
            step = ty.size_of(t.elem) if isinstance(t, ty.ArrayType) else ty.store_size(t.elem)
            if isinstance(t, ty.VectorType) and isinstance(t.elem, ty.IntType) and t.elem.bits % 8:
                packed = sum(int(v) << (i * t.elem.bits) for i, v in enumerate(value))
                self.memory.store(address, ty.int_(ty.store_size(t) * 8), packed)
                return
            for i, v in enumerate(value):
                self.store(address + i * step, t.elem, v)
        elif isinstance(t, ty.StructType):
            for o, f, v in zip(ty.field_offsets(t), t.fields or (), value, strict=False):
                self.store(address + o, f, v)
        else:
            self.memory.store(address, t, value)

    # ------------------------------------------------------------ running
    def call(self, name: str, args: Sequence[Any]) -> Any:
        """Run a function of the module."""
        old = sys.getrecursionlimit()
        sys.setrecursionlimit(max(old, 20_000))
        try:
            return self.invoke(self.module.functions[name], list(args))
        finally:
            sys.setrecursionlimit(old)

    def invoke(self, f: ir.Function, args: list[Any]) -> Any:
        """Run a function, with or without a body."""
        name = f.name or ""
        if not f.blocks:
            native = self.natives.get(name)
            if native is None:
                native = self.natives[name] = external(name)
                if native is None:
                    raise Fault(f"call to `{name}`, which has no body here")
            return native(self, f, args)
        code = self.compiled.get(name)
        if code is None:
            code = self.compiled[name] = self._compile(f)
        self.depth += 1
        if self.depth > 2000:
            raise Fault("recursion too deep")
        regs = code.template.copy()
        regs[1] = frame = []
        for slot, a, formal in zip(code.args, args, f.args, strict=False):
            if "byval(" in formal.attrs and formal.type.is_ptr:
                block, offset = self.memory.find(a)
                copy = self.memory.allocate(block.size - offset)
                self.memory.copy(copy, a, block.size - offset)
                frame.append(copy)
                a = copy  # noqa: PLW2901
            regs[slot] = a
        blocks = code.blocks
        edge: Any = (0, None)
        while edge is not None:
            index, copies = edge
            if copies:
                values = [regs[s] for _, s in copies]
                for (d, _), v in zip(copies, values, strict=True):
                    regs[d] = v
            body = blocks[index]
            self.steps += len(body)
            if self.steps > self.limit:
                raise Fault("step limit")
            for op in body[:-1]:
                op(regs)
            edge = body[-1](regs)
        for address in frame:
            block = self.memory.blocks[address >> 32]
            block.alive = False
            block.cells = {}
        self.depth -= 1
        return regs[0]

    def call_pointer(self, address: int, args: list[Any]) -> Any:
        """Call through a function pointer."""
        f = self.at.get(address)
        if f is None:
            raise Fault(f"call through {address:#x}, which is no function")
        return self.invoke(f, args)

    # ------------------------------------------------------------ compiling
    def _compile(self, f: ir.Function) -> Compiled:
        code = Compiled()
        slots: dict[int, int] = {}
        keep: list[ir.Value] = []

        def slot(v: ir.Value) -> int:
            s = slots.get(id(v))
            if s is None:
                s = slots[id(v)] = len(code.template)
                keep.append(v)
                known = isinstance(v, ir.Constant | ir.MetadataValue) and not isinstance(v, ir.InlineAsm)
                code.template.append(self.constant(v) if known else None)
            return s

        code.args = [slot(a) for a in f.args]
        index = {id(b): i for i, b in enumerate(f.blocks)}
        for block in f.blocks:
            body: list[Code] = []
            for instr in block.instructions[len(block.phis) : -1]:
                inputs = [slot(o) for o in instr.operands if not isinstance(o, ir.Block)]
                body.append(self._lower(instr, inputs, slot(instr)))
            body.append(self._terminator(block, slot, index))
            code.blocks.append(body)
        return code

    def _terminator(self, block: ir.Block, slot: Callable[[ir.Value], int], index: dict[int, int]) -> Code:
        term = block.terminator
        edges = []
        for to in term.blocks:
            copies = []
            for phi in to.phis:
                at = next(i for i, b in enumerate(phi.blocks) if b is block)
                copies.append((slot(phi), slot(phi.operands[at])))
            edges.append((index[id(to)], copies))
        op = term.opcode
        if op == "br":
            if not term.operands:
                only = edges[0]
                return lambda r: only
            cond, yes, no = slot(term.operands[0]), edges[0], edges[1]
            return lambda r: yes if r[cond] else no
        if op == "ret":
            if not term.operands:
                return lambda r: None
            value = slot(term.operands[0])

            def ret(r: list[Any]) -> None:
                r[0] = r[value]

            return ret
        if op == "switch":
            on = slot(term.operands[0])
            table = {self.constant(c): e for c, e in zip(term.operands[1:], edges[1:], strict=True)}
            default = edges[0]
            return lambda r: table.get(int(r[on]), default)
        if op == "invoke":
            call = self._lower(term, [slot(o) for o in term.operands], slot(term))
            normal = edges[0]

            def invoke(r: list[Any]) -> Any:
                call(r)
                return normal

            return invoke

        def stop(r: list[Any]) -> Any:
            raise Fault(f"`{op}` was reached")

        return stop

    def _lower(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        op = instr.opcode
        if op in ir.CALLS:
            return self._call(instr, s, d)
        method = getattr(self, "_op_" + op, None)
        if method is not None:
            return method(instr, s, d)
        if op in ir.FLOAT_BINARY or op == "fneg":
            f = self._float_op(op, instr.type.scalar)
        elif op in ir.INT_BINARY:
            f = self._int_op(op, instr.type.scalar, instr.flags)
        elif op in ("icmp", "fcmp"):
            t = instr.operands[0].type.scalar
            f = self._icmp(instr.pred, t) if op == "icmp" else self._fcmp(instr.pred)
        elif op in ir.CASTS:
            f = self._cast(op, instr.operands[0].type.scalar, instr.type.scalar)
        else:
            raise Fault(f"opcode `{op}` is not interpreted")
        return self._apply(f, s, d, instr.operands[0].type.is_vector)

    @staticmethod
    def _apply(f: Callable[..., Any], s: list[int], d: int, vector: bool) -> Code:
        if len(s) == 1:
            (a,) = s
            if vector:
                def one_v(r: list[Any]) -> None:
                    r[d] = tuple(map(f, r[a]))
                return one_v

            def one(r: list[Any]) -> None:
                r[d] = f(r[a])
            return one
        a, b = s
        if vector:
            def two_v(r: list[Any]) -> None:
                r[d] = tuple(map(f, r[a], r[b]))
            return two_v

        def two(r: list[Any]) -> None:
            r[d] = f(r[a], r[b])
        return two

    # ------------------------------------------------------------ calls
    def _call(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        args, target = s[:-1], s[-1]
        callee = instr.callee
        while isinstance(callee, ir.GlobalAlias):
            callee = callee.target
        if isinstance(callee, ir.InlineAsm):
            if "asm" in callee.text and '""' in callee.text:
                return lambda r: None  # an empty barrier
            raise Fault("inline assembly")
        if isinstance(callee, ir.Function):
            f = callee

            def direct(r: list[Any]) -> None:
                if f.name == "llvm.stacksave.p0":
                    r[d] = 0
                    return
                r[d] = self.invoke(f, [r[a] for a in args])
            return direct

        def indirect(r: list[Any]) -> None:
            r[d] = self.call_pointer(r[target], [r[a] for a in args])
        return indirect
