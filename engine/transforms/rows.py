"""Rules applied to instructions: which row one has, its tangent, and what it adds to the adjoints of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Function, Instruction, Value
from irgrad.engine.ir.types import Type
from irgrad.engine.transforms import lanes
from irgrad.engine.transforms.emit import Emitter
from irgrad.engine.transforms.leaves import add, zero_of
from irgrad.rules.expr import ZERO, Arg, Const, Expr, Op, Result, Where, emit, needs, nodes

if TYPE_CHECKING:
    from irgrad.engine.transforms.unit import Unit
    from irgrad.rules.row import Row

Fetch = Callable[[int], Value]


class Application:
    """A row together with the operands of one instruction."""

    __slots__ = ("instr", "operands", "row", "type")

    def __init__(self, row: Row, instr: Instruction, operands: Sequence[Value]) -> None:
        self.row = row
        self.instr = instr
        self.operands = list(operands)
        self.type = result_type(instr.type)

    # -- forward ---------------------------------------------------------------------------------------------

    def tangent(
        self, unit: Unit, b: Builder, operands: Sequence[Value], result: Value, tangents: Sequence[Value | None]
    ) -> Value:
        """Tangent of the whole result: for each float result, the sum of partial x tangent."""
        b.flags = unit.flags
        needed = [self._results(b, result)]
        memo: dict[Expr, Value] = {}
        parts = []
        for j in range(len(self.row.outputs)):
            total: Value | None = None
            for i, tangent in enumerate(tangents):
                partial = self.row.partials[j][i]
                if tangent is None or partial is ZERO:
                    continue
                term = self._times(unit, b, partial, tangent, operands.__getitem__, needed[0].__getitem__, memo)
                total = term if total is None else add(b, total, term)
            parts.append(total if total is not None else zero_of(unit.wide(self.type)))
        shadow = self._assemble(unit, b, parts)
        b.flags = ()
        return shadow

    def _results(self, b: Builder, result: Value) -> list[Value]:
        if self.row.outputs == ("ret",):
            return [result]
        return [self._part(b, result, out) for out in self.row.outputs if isinstance(out, tuple) and out[0] == "ret"]

    def _part(self, b: Builder, result: Value, out: object, width: int = 1) -> Value:
        if out == "ret":
            return result
        assert isinstance(out, tuple)
        if result.type.is_vector:
            return lanes.extract(b, result, out[1], width)
        return b.extractvalue(result, out[1])

    def _assemble(self, unit: Unit, b: Builder, parts: list[Value]) -> Value:
        if self.row.outputs == ("ret",):
            return parts[0]
        whole: Value = zero_of(unit.wide(self.instr.type))
        for out, part in zip(self.row.outputs, parts, strict=True):
            if isinstance(out, tuple) and out[0] == "ret":
                if whole.type.is_vector:
                    whole = lanes.insert(b, whole, part, out[1], unit.width)
                else:
                    whole = b.insertvalue(whole, part, out[1])
        return whole

    # -- reverse ---------------------------------------------------------------------------------------------

    def adjoints(
        self,
        unit: Unit,
        b: Builder,
        cotangent: Value,
        active: Sequence[bool],
        operand: Fetch,
        result: Callable[[], Value],
    ) -> list[Value | None]:
        """What each operand's adjoint receives. `operand(i)` and `result()` fetch primal values on demand."""
        b.flags = unit.flags
        out: list[Value | None] = []
        memo: dict[Expr, Value] = {}
        for i in range(len(self.operands)):
            total: Value | None = None
            for j, where in enumerate(self.row.outputs):
                partial = self.row.partials[j][i] if active[i] else ZERO
                if partial is ZERO or (isinstance(where, tuple) and where[0] == "ptr"):
                    continue
                part = self._part(b, cotangent, where, unit.width)
                term = self._times(unit, b, partial, part, operand, lambda k: self._results(b, result())[k], memo)
                total = term if total is None else add(b, total, term)
            out.append(total)
        b.flags = ()
        return out

    def needs_of(self, active: Sequence[bool]) -> frozenset[Arg | Result]:
        """Primal values that the adjoints of the active operands read."""
        wanted: list[Expr] = []
        for of_result in self.row.partials:
            wanted += [p for i, p in enumerate(of_result) if i < len(active) and active[i]]
        return needs(*wanted)

    def _times(
        self, unit: Unit, b: Builder, partial: Expr, factor: Value, operand: Fetch, result: Fetch,
        memo: dict[Expr, Value],
    ) -> Value:  # fmt: skip
        if isinstance(partial, Const):
            if partial.value == 1.0:
                return factor
            if partial.value == -1.0:
                return b.fneg(factor)
        if isinstance(partial, Where) and ZERO in partial.children:  # on the other piece there is nothing to multiply
            condition, *pieces = partial.children
            parts = [zero_of(factor.type) if piece is ZERO
                     else self._times(unit, b, piece, factor, operand, result, memo) for piece in pieces]  # fmt: skip
            chosen = self._emitted(unit, b, condition, operand, result, memo)
            return b.select(lanes.condition(b, chosen, factor.type, unit.width), *parts)
        slope = lanes.splat(b, self._emitted(unit, b, partial, operand, result, memo), unit.width)
        product = b.binary("fmul", factor, slope)
        if not unit.strong_zero:
            return product
        nothing = zero_of(factor.type)
        zero = b.fcmp("oeq", factor, nothing)
        if unit.zero_slopes:
            flat = b.fcmp("oeq", slope, nothing)
            zero = b.binary("or", zero, b.binary("and", flat, b.fcmp("ord", factor, nothing)))
        return b.select(zero, nothing, product)

    def _emitted(
        self, unit: Unit, b: Builder, partial: Expr, operand: Fetch, result: Fetch, memo: dict[Expr, Value]
    ) -> Value:
        leaves = sorted(needs(partial), key=lambda leaf: leaf.index)  # a set's order is that of addresses in memory
        args: dict[int, Value] = {leaf.index: operand(leaf.index) for leaf in leaves if isinstance(leaf, Arg)}
        results: dict[int, Value] = {leaf.index: result(leaf.index) for leaf in leaves if isinstance(leaf, Result)}
        emitter = Emitter(unit, b, self.type)
        if unit.flags:
            self._share_reciprocal(partial, emitter, args, results, memo)
        return emit(partial, emitter, args, results, memo)

    def _share_reciprocal(
        self, partial: Expr, emitter: Emitter, args: dict[int, Value], results: dict[int, Value],
        memo: dict[Expr, Value],
    ) -> None:  # fmt: skip
        """x / d in a partial is x times the 1/d that is another partial, if that one is there already: where it
        overflows, one adjoint is infinite anyway. A division costs as much as six products."""
        for node in nodes(partial):
            if not isinstance(node, Op) or node.name != "div" or node in memo:
                continue
            x, d = node.children
            reciprocal = 1.0 / d
            if reciprocal in memo and any(reciprocal in of_result for of_result in self.row.partials):
                memo[node] = emitter.op("mul", emit(x, emitter, args, results, memo), memo[reciprocal])


def result_type(type_: Type) -> Type:
    """Float type in which a row computes: the result's, or that of the elements of a struct or pair of results."""
    if isinstance(type_, ty.StructType):
        return next(f for f in type_.fields or () if f.is_fp)
    return type_


def application(unit: Unit, instr: Instruction) -> Application | None:
    """The row of an opcode or of a direct call to a known function; None when there is none."""
    from irgrad.rules import lookup

    if unit.rules is not None:
        from irgrad.engine.transforms.ruled import ruled_row

        ruled = ruled_row(unit, instr)
        if ruled is not None:
            return ruled
    if instr.opcode == "call":
        from irgrad.engine.analyses.objects import resolve

        callee = resolve(instr.callee)
        if not isinstance(callee, Function) or callee.name is None or not callee.is_declaration:
            return None
        match = lookup.find(callee.name)
        if match is None or match.packed:  # two places of the signature in one <2 x float>: not taken apart yet
            return None
        result = Application(match.row, instr, instr.args[: len(match.row.signature)])
        outputs = match.row.outputs
        if any(isinstance(o, tuple) and o[0] == "ret" for o in outputs) and instr.type.is_vector:
            assert isinstance(instr.type, ty.VectorType)
            result.type = instr.type.elem
        return result
    row = lookup.opcode_row(instr.opcode)
    return Application(row, instr, instr.operands) if row is not None else None


def pure_call(instr: Instruction) -> bool:
    """A direct call to a function of the tables that neither reads nor writes memory."""
    from irgrad.engine.analyses.objects import resolve
    from irgrad.rules import lookup

    callee = resolve(instr.callee)
    if not isinstance(callee, Function) or callee.name is None or not callee.is_declaration:
        return False
    match = lookup.find(callee.name)
    if match is not None:
        return not match.row.pointers
    if not callee.name.startswith("llvm."):
        return False
    from irgrad.rules import effects

    facts = effects.facts(callee.name)
    return facts is not None and facts.kind == "pure"


CHEAP_CALLS = ("llvm.fabs", "llvm.fma", "llvm.min", "llvm.max", "llvm.copysign", "llvm.floor", "llvm.ceil",
               "llvm.smax", "llvm.smin", "llvm.umax", "llvm.umin", "llvm.abs", "llvm.rint", "llvm.trunc",
               "llvm.fmuladd")  # fmt: skip


def libm_cost(instr: Instruction) -> int:
    """Cost of computing a pure call again, in flops-like units."""
    name = instr.callee.name or ""
    if name.startswith(CHEAP_CALLS):
        return 1
    return 5 if name.startswith("llvm.sqrt") else 20
