"""Memory, aggregates and vectors of the interpreter: one method per opcode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irgrad.engine.ir import model as ir
from irgrad.engine.ir import types as ty

from .externals import external
from .memory import bits, scalar_bytes, scalar_from
from .scalars import M64, Scalars, signed
from .undefined import POISON, Fault, Undefined, Used, filled, frozen, guarded, meet, undefined_in

Code = Callable[[list[Any]], Any]


class Operations(Scalars):
    """Lowers instructions to closures over a list of registers."""

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
        inside = self._inside if "inbounds" in instr.flags else None
        if instr.type.is_vector:
            return self._vector_gep(instr, base, offset, terms, d)
        if not terms:
            def plain(r: list[Any]) -> None:
                p = r[base]
                try:
                    to = (p + offset) & M64
                except Used:
                    to = POISON
                r[d] = to if inside is None else inside(p, to)
            return plain
        if len(terms) == 1:
            (i, scale1, _width1), half, full = terms[0], 1 << (terms[0][2] - 1), 1 << terms[0][2]

            def one(r: list[Any]) -> None:
                p, k = r[base], r[i]
                try:
                    to = (p + offset + (k - full if k >= half else k) * scale1) & M64
                except Used:
                    to = meet(p, k)
                r[d] = to if inside is None else inside(p, to)
            return one

        def run(r: list[Any]) -> None:
            p = r[base]
            try:
                to = (p + offset + sum(signed(r[i], w) * sc for i, sc, w in terms)) & M64
            except Used:
                to = meet(p, *(r[i] for i, _, _ in terms))
            r[d] = to if inside is None else inside(p, to)
        return run

    def _inside(self, base: Any, address: Any) -> Any:
        """An address computed with `inbounds`: poison where it or the base is in no object, or in another one."""
        if type(address) is Undefined or base == address:
            return address
        blocks, n = self.memory.blocks, base >> 32
        if n != address >> 32 or n >= len(blocks) or base < 4096 or not blocks[n].alive:
            return POISON
        return address if max(base, address) & 0xFFFFFFFF <= blocks[n].size else POISON

    def _vector_gep(self, instr: ir.Instruction, base: int, offset: int, terms: list[Any], d: int) -> Code:
        n = instr.type.count  # type: ignore[attr-defined]
        inbounds = "inbounds" in instr.flags

        def one(p: Any, *indices: Any) -> Any:
            to = (p + offset + sum(signed(k, w) * sc for k, (_, sc, w) in zip(indices, terms, strict=True))) & M64
            return self._inside(p, to) if inbounds else to

        safe = guarded(one)

        def run(r: list[Any]) -> None:
            columns = [v if isinstance(v, tuple) else (v,) * n for v in (r[base], *(r[i] for i, _, _ in terms))]
            r[d] = tuple(map(safe, *columns))
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
        f = guarded(f)

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
        (c, x, y), t = s, instr.type
        allowed = self._allowed(instr)
        if instr.operands[0].type.is_vector:
            choose = guarded(lambda k, a, b: a if k else b, lambda k, a, b: k)

            def lanes(r: list[Any]) -> None:
                out = tuple(map(choose, r[c], r[x], r[y]))
                r[d] = out if allowed is None else allowed(out)
            return lanes

        def run(r: list[Any]) -> None:
            try:
                out = r[x] if r[c] else r[y]
            except Used:
                out = filled(t, r[c])
            r[d] = out if allowed is None else allowed(out)
        return run

    def _allowed(self, instr: ir.Instruction) -> Callable[[Any], Any] | None:
        """The value that a select or a call hands on, by its flags; None where they allow every value."""
        same: Callable[[Any], Any] = lambda v: v  # noqa: E731
        one = self._within(same, instr.flags) if instr.type.is_fp else same
        if one is same:
            return None
        lane = guarded(one)
        return lambda v: tuple(map(lane, v)) if isinstance(v, tuple) else lane(v)

    def _op_freeze(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        (a,), t = s, instr.type

        def run(r: list[Any]) -> None:
            v = r[a]
            r[d] = v if undefined_in(v) is None else frozen(t, v, self.domain)
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
            k = r[i]
            r[d] = POISON if type(k) is Undefined or k >= len(r[a]) else r[a][k]
        return run

    def _op_insertelement(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        a, v, i = s

        def run(r: list[Any]) -> None:
            k = r[i]
            if type(k) is Undefined or k >= len(r[a]):
                r[d] = (POISON,) * len(r[a])
            else:
                r[d] = (*r[a][:k], r[v], *r[a][k + 1 :])
        return run

    def _op_shufflevector(self, instr: ir.Instruction, s: list[int], d: int) -> Code:
        a, b, m = s

        def run(r: list[Any]) -> None:
            both = r[a] + r[b]
            r[d] = tuple(POISON if type(k) is Undefined else both[k] for k in r[m])
        return run

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
                if undefined_in(value) is not None:
                    return [meet(*value)] * ty.store_size(t)
                packed = sum(int(v) << (i * t.elem.bits) for i, v in enumerate(value))
                return list(packed.to_bytes(ty.store_size(t), "little"))
            return [b for v in value for b in scalar_bytes(t.elem, v)]
        return scalar_bytes(t, value)

    def from_bytes(self, t: ty.Type, items: list[Any]) -> Any:
        """A scalar or vector from its bytes."""
        if isinstance(t, ty.VectorType):
            if isinstance(t.elem, ty.IntType) and t.elem.bits % 8:
                whole = bits(items, self.domain)
                if type(whole) is Undefined:
                    return (meet(whole),) * t.count
                packed = int(whole)
                return tuple(packed >> (i * t.elem.bits) & ((1 << t.elem.bits) - 1) for i in range(t.count))
            n = ty.store_size(t.elem)
            return tuple(scalar_from(t.elem, items[i * n : i * n + n], self.domain) for i in range(t.count))
        return scalar_from(t, items, self.domain)
