"""An interpreter of LLVM IR over a number type (see numbers.py).

    machine = Machine(module, DualDomain())
    x = machine.array(ty.F64, [Dual(1.0, 1.0), 2.0])     an address
    result = machine.call("f", [x, 2])                   a number, an integer, a tuple, or None
    machine.read(x, ty.F64, 2)                           the numbers there now

Integers are Python ints without sign (masked to their width), pointers are ints (see memory.py), vectors, arrays and
structs are tuples. Every instruction is compiled once to a closure over a list of registers. `Fault` is raised for
undefined behaviour that is noticed, for traps, and when the step limit is passed.

Poison and undef are values (see undefined.py). They may be computed, stored, and thrown away; `UndefinedUse` is raised
where they decide a branch, are an address, a size or a divisor, go into a `noundef` argument or to the system, and
where the caller gets one as a result or reads one from memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from irgrad.engine.ir import model as ir
from irgrad.engine.ir import opcodes
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.printer import instruction_to_text

from .externals import external
from .memory import Memory
from .operations import Code, Operations
from .undefined import POISON, UNDEF, Fault, Misused, Undefined, UndefinedUse, Used, filled, guarded, meet, undefined_in

__all__ = ["Fault", "Machine", "UndefinedUse"]


def zero(t: ty.Type, domain: Any) -> Any:
    """The value with all bits zero."""
    if isinstance(t, ty.FloatType):
        return domain.lift(0.0)
    if isinstance(t, ty.VectorType | ty.ArrayType):
        return (zero(t.elem, domain),) * t.count
    if isinstance(t, ty.StructType):
        return tuple(zero(f, domain) for f in t.fields or ())
    return 0


def _defined(value: Any, what: str) -> Any:
    """The value, which must have no undefined part."""
    found = undefined_in(value)
    if found is not None:
        raise UndefinedUse(f"{what} is {found!r}")
    return value


class Compiled:
    """A function ready to run."""

    __slots__ = ("args", "blocks", "strict", "template")

    def __init__(self) -> None:
        self.template: list[Any] = [None, None]  # slot 0: return value, slot 1: blocks of the frame's allocas
        self.args: list[int] = []
        self.strict: list[int] = []  # numbers of the `noundef` arguments
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
        self.arenas: dict[int, list[tuple[str, Any]]] = {}  # of the tape (see tape.py)
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
        """`count` values from an address, all of them defined."""
        size = ty.size_of(t)
        return [_defined(self.load(address + i * size, t), f"element {i} of a result in memory") for i in range(count)]

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
            if g.init is None:
                self.memory.forget(self.addresses[g.name or ""], ty.size_of(g.value_type))
            elif not (g.name or "").startswith("llvm."):
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
            case ir.ConstZero():
                return zero(t, self.domain)
            case ir.ConstUndef():
                return filled(t, POISON if c.poison else UNDEF)
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
                lanes = self.memory.whole(address, t)
                if lanes is not None:
                    return lanes
                packed = self.memory.load(address, ty.int_(ty.store_size(t) * 8))
                if type(packed) is Undefined:
                    return (meet(packed),) * t.count
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
                if undefined_in(value) is not None:  # lanes stay apart, as where LLVM forwards what is stored
                    self.memory.store(address, t, value)
                    return
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
            return _defined(self.invoke(self.module.functions[name], list(args)), f"the result of `{name}`")
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
        for n in code.strict:
            _defined(args[n], f"argument {n} of `{name}`, which is noundef,")
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
            try:
                for op in body:
                    edge = op(regs)
            except (Used, Misused) as e:
                raise UndefinedUse(self._told(f, index, next(i for i, o in enumerate(body) if o is op), e)) from None
        for address in frame:
            block = self.memory.blocks[address >> 32]
            block.alive = False
            block.cells = {}
        self.depth -= 1
        return regs[0]

    @staticmethod
    def _told(f: ir.Function, index: int, number: int, error: Exception) -> str:
        block = f.blocks[index]
        instr = block.instructions[len(block.phis) + number]
        role = str(error) or "a defined value"
        return f"poison or undef is used as {role} in `{instruction_to_text(instr)}` of `{f.name}`"

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
        code.strict = [n for n, a in enumerate(f.args) if "noundef" in a.attrs.split()]
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
        lost: Callable[..., Any] = meet
        t = instr.operands[0].type.scalar
        if op in opcodes.FLOAT_BINARY or op == "fneg":
            f = self._within(self._float_op(op, t), instr.flags)
        elif op in opcodes.INT_BINARY:
            f, lost = self._int_op(op, t, instr.flags), self._lost(op, t)
        elif op == "icmp":
            f = self._icmp(instr.pred, t, instr.flags)
        elif op == "fcmp":
            f = self._within(self._fcmp(instr.pred), instr.flags)
        elif op in opcodes.CASTS:
            f = self._cast(op, t, instr.type.scalar, instr.flags)
            if op in ("trunc", "zext", "ptrtoint", "inttoptr", "addrspacecast", "ptrtoaddr"):
                lost = self._resized(t, instr.type.scalar)
        else:
            raise Fault(f"opcode `{op}` is not interpreted")
        return self._apply(f, lost, s, d, instr.operands[0].type.is_vector)

    @staticmethod
    def _apply(f: Callable[..., Any], lost: Callable[..., Any], s: list[int], d: int, vector: bool) -> Code:
        lane = guarded(f, lost)
        if len(s) == 1:
            (a,) = s
            if vector:
                def one_v(r: list[Any]) -> None:
                    r[d] = tuple(map(lane, r[a]))
                return one_v

            def one(r: list[Any]) -> None:
                try:
                    r[d] = f(r[a])
                except Used:
                    r[d] = lost(r[a])
            return one
        a, b = s
        if vector:
            def two_v(r: list[Any]) -> None:
                r[d] = tuple(map(lane, r[a], r[b]))
            return two_v

        def two(r: list[Any]) -> None:
            try:
                r[d] = f(r[a], r[b])
            except Used:
                r[d] = lost(r[a], r[b])
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
            f, allowed = callee, self._allowed(instr)
            floats = [a for a, value in zip(args, instr.args, strict=True) if value.type.is_fp] if allowed else []

            def direct(r: list[Any]) -> None:
                if f.name == "llvm.stacksave.p0":
                    r[d] = 0
                    return
                out = self.invoke(f, [r[a] for a in args])
                if allowed is not None:
                    lost = undefined_in(tuple(allowed(r[a]) for a in floats))
                    out = allowed(out) if lost is None or instr.type.is_vector else meet(lost)
                r[d] = out
            return direct

        def indirect(r: list[Any]) -> None:
            r[d] = self.call_pointer(r[target], [r[a] for a in args])
        return indirect
