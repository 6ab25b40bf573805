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

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from irgrad.engine.ir import model as ir
from irgrad.engine.ir import types as ty

from .externals import external
from .memory import Bits, Fault, Memory, bits, combine, scalar_bytes, scalar_from

__all__ = ["Fault", "Machine"]

M64 = (1 << 64) - 1
Code = Callable[[list[Any]], Any]


def signed(value: int, width: int) -> int:
    """The signed reading of a masked integer."""
    return int(value) - (1 << width) if value >> (width - 1) else int(value)


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


class Machine:
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

    # ------------------------------------------------------------ scalar operations
    def _float_op(self, op: str, t: ty.Type) -> Callable[..., Any]:
        domain = self.domain
        base: Callable[..., Any] = {
            "fadd": operator.add, "fsub": operator.sub, "fmul": operator.mul, "fneg": operator.neg,
            "fdiv": domain.div, "frem": lambda x, y: domain.remainder(x, y, "trunc"),
        }[op]  # fmt: skip
        rounder = domain.rounder(t)
        if rounder is None or op == "fneg":
            return base
        return lambda *a: rounder(base(*a))

    def _int_op(self, op: str, t: ty.Type, flags: tuple[str, ...]) -> Callable[..., Any]:
        assert isinstance(t, ty.IntType)
        width = t.bits
        mask = (1 << width) - 1
        domain = self.domain
        if op in ("and", "or", "xor"):
            plain = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[op]
            if width % 8:
                return plain
            return lambda a, b: (
                combine(op, a, b, width, domain) if type(a) is Bits or type(b) is Bits else plain(a, b)
            )
        if op in ("shl", "lshr", "ashr"):
            return lambda a, b: self._shift(op, a, int(b), width)
        if op in ("udiv", "urem", "sdiv", "srem"):
            def divide(a: int, b: int) -> int:
                if not b:
                    raise Fault("integer division by zero")
                if op[0] == "u":
                    return a // b if op == "udiv" else a % b
                x, y = signed(a, width), signed(b, width)
                q = abs(x) // abs(y)
                q = -q if (x < 0) != (y < 0) else q
                return (q if op == "sdiv" else x - q * y) & mask
            return divide
        plain = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[op]
        if op == "add":
            return lambda a, b: (
                combine("or", a, b, width, domain) if type(a) is Bits or (type(b) is Bits and not a & b)
                else (a + b) & mask
            )
        return lambda a, b: plain(a, b) & mask

    def _shift(self, op: str, a: int, b: int, width: int) -> int:
        if b >= width:
            return 0
        if type(a) is Bits and b % 8 == 0 and width % 8 == 0 and op != "ashr":
            n, k = width // 8, b // 8
            items = (a.items + [0] * n)[:n]
            return bits(([0] * k + items)[:n] if op == "shl" else items[k:] + [0] * k, self.domain)
        if op == "shl":
            return (int(a) << b) & ((1 << width) - 1)
        if op == "lshr":
            return int(a) >> b
        return (signed(a, width) >> b) & ((1 << width) - 1)

    def _icmp(self, pred: str, t: ty.Type) -> Callable[[int, int], int]:
        width = t.bits if isinstance(t, ty.IntType) else 64
        compare = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
                   "gt": operator.gt, "ge": operator.ge}[pred if pred in ("eq", "ne") else pred[1:]]  # fmt: skip
        if pred[0] == "s":
            return lambda a, b: int(compare(signed(a, width), signed(b, width)))
        return lambda a, b: int(compare(a, b))

    def _fcmp(self, pred: str) -> Callable[[Any, Any], int]:
        if pred in ("true", "false"):
            return lambda a, b: int(pred == "true")
        real = self.domain.real
        if pred in ("ord", "uno"):
            return lambda a, b: int((real(a) != real(a) or real(b) != real(b)) == (pred == "uno"))
        compare = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
                   "gt": operator.gt, "ge": operator.ge}[pred[1:]]  # fmt: skip
        unordered = int(pred[0] == "u")

        def run(a: Any, b: Any) -> int:
            x, y = real(a), real(b)
            if x != x or y != y:
                return unordered
            return int(compare(x, y))

        return run

    def _cast(self, op: str, s: ty.Type, t: ty.Type) -> Callable[[Any], Any]:
        domain = self.domain
        width = t.bits if isinstance(t, ty.IntType) else 64
        mask = (1 << width) - 1
        if op in ("trunc", "ptrtoint", "inttoptr", "addrspacecast", "ptrtoaddr", "zext"):
            def resize(a: int) -> int:
                if type(a) is Bits and width % 8 == 0:
                    n = width // 8
                    return bits((a.items + [0] * n)[:n], domain)
                return int(a) & mask
            return resize
        if op == "sext":
            assert isinstance(s, ty.IntType)
            return lambda a: signed(a, s.bits) & mask
        if op in ("fptoui", "fptosi"):
            def to_int(x: Any) -> int:
                r = float(domain.real(x))
                if r != r or r in (float("inf"), float("-inf")):
                    return 0
                return int(r) & mask
            return to_int
        rounder = domain.rounder(t)
        if op in ("uitofp", "sitofp"):
            assert isinstance(s, ty.IntType)
            def from_int(a: int) -> Any:
                x = domain.lift(signed(a, s.bits) if op == "sitofp" else int(a))
                return x if rounder is None else rounder(x)
            return from_int
        if op in ("fptrunc", "fpext"):
            return rounder if rounder is not None and op == "fptrunc" else lambda x: x
        raise Fault(f"cast `{op}`")

    def _op_bitcast(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        source, target = instr.operands[0].type, instr.type
        (a,) = s
        if source is target or (source.is_ptr and target.is_ptr):
            def same(r: list[Any]) -> None:
                r[d] = r[a]
            return same

        def run(r: list[Any]) -> None:
            r[d] = self.from_bytes(target, self.to_bytes(source, r[a]))
        return run

    def to_bytes(self, t: ty.Type, value: Any) -> list[Any]:
        """Bytes of a scalar or vector."""
        if isinstance(t, ty.VectorType):
            if isinstance(t.elem, ty.IntType) and t.elem.bits % 8:
                packed = sum(int(v) << (i * t.elem.bits) for i, v in enumerate(value))
                return list(packed.to_bytes(ty.store_size(t), "little"))
            return [b for v in value for b in scalar_bytes(t.elem, v)]
        return scalar_bytes(t, value)

    def from_bytes(self, t: ty.Type, items: list[Any]) -> Any:
        """A scalar or vector from its bytes."""
        if isinstance(t, ty.VectorType):
            if isinstance(t.elem, ty.IntType) and t.elem.bits % 8:
                packed = int(bits(items, self.domain))
                return tuple(packed >> (i * t.elem.bits) & ((1 << t.elem.bits) - 1) for i in range(t.count))
            n = ty.store_size(t.elem)
            return tuple(scalar_from(t.elem, items[i * n : i * n + n], self.domain) for i in range(t.count))
        return scalar_from(t, items, self.domain)

    # ------------------------------------------------------------ memory
    def _op_load(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        (p,), t = s, instr.type
        load = self.load if t.is_aggregate or t.is_vector else self.memory.load

        def run(r: list[Any]) -> None:
            r[d] = load(r[p], t)
        return run

    def _op_store(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        (v, p), t = s, instr.operands[0].type
        store = self.store if t.is_aggregate or t.is_vector else self.memory.store

        def run(r: list[Any]) -> None:
            store(r[p], t, r[v])
        return run

    def _op_alloca(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        assert instr.elem is not None
        size = ty.size_of(instr.elem)
        count = s[0] if s else None
        allocate = self.memory.allocate

        def run(r: list[Any]) -> None:
            r[d] = address = allocate(size * (1 if count is None else int(r[count])))
            r[1].append(address)
        return run

    def _op_getelementptr(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        assert instr.elem is not None
        base, offset = s[0], 0
        terms: list[tuple[int, int, int]] = []
        t: ty.Type = instr.elem
        for k, index in enumerate(instr.operands[1:]):
            if k == 0:
                scale = ty.size_of(t)
            elif isinstance(t, ty.StructType):
                field = index.elems[0] if isinstance(index, ir.ConstAggregate) else index
                n = field.value if isinstance(field, ir.ConstInt) else 0
                offset += ty.field_offsets(t)[n]
                t = (t.fields or ())[n]
                continue
            else:
                assert isinstance(t, ty.ArrayType | ty.VectorType)
                t = t.elem
                scale = ty.size_of(t)
            it = index.type.scalar
            width = it.bits if isinstance(it, ty.IntType) else 64
            if isinstance(index, ir.ConstInt):
                offset += index.value * scale
            else:
                terms.append((s[k + 1], scale, width))
        if instr.type.is_vector:
            return self._vector_gep(instr, base, offset, terms, d)
        if not terms:
            def plain(r: list[Any]) -> None:
                r[d] = (r[base] + offset) & M64
            return plain
        if len(terms) == 1:
            (i, scale1, _width1), half, full = terms[0], 1 << (terms[0][2] - 1), 1 << terms[0][2]

            def one(r: list[Any]) -> None:
                k = r[i]
                r[d] = (r[base] + offset + (k - full if k >= half else k) * scale1) & M64
            return one

        def run(r: list[Any]) -> None:
            r[d] = (r[base] + offset + sum(signed(r[i], w) * sc for i, sc, w in terms)) & M64
        return run

    @staticmethod
    def _vector_gep(instr: ir.Instruction, base: int, offset: int, terms: list[Any], d: int) -> Code:
        n = instr.type.count  # type: ignore[attr-defined]

        def run(r: list[Any]) -> None:
            out = []
            for lane in range(n):
                def pick(v: Any, lane: int = lane) -> int:
                    return v[lane] if isinstance(v, tuple) else v
                out.append((pick(r[base]) + offset + sum(signed(pick(r[i]), w) * sc for i, sc, w in terms)) & M64)
            r[d] = tuple(out)
        return run

    def _op_atomicrmw(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        (p, v), t, op = s, instr.operands[1].type, instr.pred
        f: Callable[[Any, Any], Any]
        if op == "xchg":
            f = lambda old, new: new  # noqa: E731
        elif op in ("add", "sub", "and", "or", "xor"):
            f = self._int_op(op, t, ())
        elif op in ("fadd", "fsub"):
            f = self._float_op(op, t)
        elif op in ("fmax", "fmin"):
            name = "fmax" if op == "fmax" else "fmin"
            f = lambda old, new: external(name)(self, None, [old, new])  # noqa: E731
        elif op in ("max", "min", "umax", "umin"):
            better = self._icmp(("s" if op[0] == "m" else "u") + ("gt" if op.endswith("max") else "lt"), t)
            f = lambda old, new: old if better(old, new) else new  # noqa: E731
        else:
            raise Fault(f"atomicrmw {op}")

        def run(r: list[Any]) -> None:
            old = self.memory.load(r[p], t)
            r[d] = old
            self.memory.store(r[p], t, f(old, r[v]))
        return run

    def _op_cmpxchg(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        (p, e, n), t = s, instr.operands[1].type

        def run(r: list[Any]) -> None:
            old = self.memory.load(r[p], t)
            same = int(old) == int(r[e])
            if same:
                self.memory.store(r[p], t, r[n])
            r[d] = (old, int(same))
        return run

    def _op_fence(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        return lambda r: None

    # ------------------------------------------------------------ values
    def _op_select(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        c, x, y = s
        if instr.operands[0].type.is_vector:
            def lanes(r: list[Any]) -> None:
                r[d] = tuple(a if k else b for k, a, b in zip(r[c], r[x], r[y], strict=True))
            return lanes

        def run(r: list[Any]) -> None:
            r[d] = r[x] if r[c] else r[y]
        return run

    def _op_freeze(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        (a,) = s

        def run(r: list[Any]) -> None:
            r[d] = r[a]
        return run

    def _op_extractvalue(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        (a,), path = s, instr.indices

        def run(r: list[Any]) -> None:
            v = r[a]
            for i in path:
                v = v[i]
            r[d] = v
        return run

    def _op_insertvalue(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        (a, v), path = s, instr.indices

        def put(agg: Any, path: tuple[int, ...], value: Any) -> Any:
            i = path[0]
            inner = value if len(path) == 1 else put(agg[i], path[1:], value)
            return (*agg[:i], inner, *agg[i + 1 :])

        def run(r: list[Any]) -> None:
            r[d] = put(r[a], path, r[v])
        return run

    def _op_extractelement(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        a, i = s

        def run(r: list[Any]) -> None:
            r[d] = r[a][r[i]]
        return run

    def _op_insertelement(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        a, v, i = s

        def run(r: list[Any]) -> None:
            k = r[i]
            r[d] = (*r[a][:k], r[v], *r[a][k + 1 :])
        return run

    def _op_shufflevector(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        a, b, m = s

        def run(r: list[Any]) -> None:
            both = r[a] + r[b]
            # a poison lane of the mask reads as 0: any value will do
            r[d] = tuple(both[k] for k in r[m])
        return run

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
