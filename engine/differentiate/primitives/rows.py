"""Rules applied to instructions: which row one has, its tangent, and what it adds to the adjoints of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.layout import lanes
from irgrad.engine.differentiate.layout.leaves import add, zero_of
from irgrad.engine.differentiate.primitives.emit import Emitter
from irgrad.engine.differentiate.primitives.strong_zero import multiply
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import Function, Instruction, Value
from irgrad.engine.ir.types import Type
from irgrad.engine.runtime.strong_products import STRONG
from irgrad.rules import effects
from irgrad.rules.expressions.costs import SHIPPED, Costs
from irgrad.rules.expressions.expr import ZERO, Arg, Const, Expr, Op, Result, Where, emit, needs, nodes

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.rules.expressions.row import Row

Fetch = Callable[[int], Value]


class Application:
    """A row together with the operands of one instruction."""

    __slots__ = ("instr", "operands", "row", "type")

    def __init__(
        self, row: Row, instr: Instruction, operands: Sequence[Value], type_: Type | None = None
    ) -> None:  # fmt: skip
        """type_: of one result, where the type of the instruction does not tell."""
        self.row = row
        self.instr = instr
        self.operands = list(operands)
        self.type = result_type(instr.type) if type_ is None else type_

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
        *,
        strong: bool = False,
    ) -> list[Value | None]:
        """What each operand's adjoint receives. `operand(i)` and `result()` fetch primal values on demand.

        strong: the cotangent may be zero by structure
        """
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
                term = self._times(unit, b, partial, part, operand, lambda k: self._results(b, result())[k], memo,
                                   strong=strong)  # fmt: skip
                total = term if total is None else add(b, total, term)
            out.append(total)
        b.flags = ()
        return out

    def linear(self, i: int) -> bool:
        """Whether the slopes in an operand are numbers."""
        return all(isinstance(of_result[i], Const) for of_result in self.row.partials)

    def receiving(self, active: Sequence[bool]) -> list[int]:
        """The operands whose adjoints receive something."""
        return [i for i in range(len(self.operands)) if active[i] and self._slopes(i)]

    def reads(self, active: Sequence[bool]) -> tuple[list[int], bool]:
        """The operands that the adjoints of the active ones read, and whether they read the result."""
        slopes = [p for i in range(len(self.operands)) if active[i] for p in self._slopes(i)]
        leaves = needs(*slopes)
        arguments = sorted(leaf.index for leaf in leaves if isinstance(leaf, Arg))
        return arguments, any(isinstance(leaf, Result) for leaf in leaves)

    def _slopes(self, i: int) -> list[Expr]:
        """The partials of the results in an operand, where they are not zero; what is stored is no result."""
        row = self.row
        return [of_result[i] for of_result, where in zip(row.partials, row.outputs, strict=True)
                if of_result[i] is not ZERO and not (isinstance(where, tuple) and where[0] == "ptr")]  # fmt: skip

    def _times(
        self, unit: Unit, b: Builder, partial: Expr, factor: Value, operand: Fetch, result: Fetch,
        memo: dict[Expr, Value], *, strong: bool = False,
    ) -> Value:  # fmt: skip
        if isinstance(partial, Const):
            if partial.value == 1.0:
                return factor
            if partial.value == -1.0:
                return b.fneg(factor)
        if isinstance(partial, Where) and ZERO in partial.children:  # on the other piece there is nothing to multiply
            condition, *pieces = partial.children
            parts = [zero_of(factor.type) if piece is ZERO else
                     self._times(unit, b, piece, factor, operand, result, memo, strong=strong)
                     for piece in pieces]  # fmt: skip
            chosen = self._emitted(unit, b, condition, operand, result, memo)
            if strong:  # the operands may be poison where nobody asked for the result
                chosen = b.insert(Instruction("freeze", chosen.type, [chosen]))
            return b.select(lanes.condition(b, chosen, factor.type, unit.width), *parts)
        slope = lanes.splat(b, self._emitted(unit, b, partial, operand, result, memo), unit.width)
        own = self.row.key if self.row.key in STRONG else ""
        if not (own or strong or unit.strong_zero) or isinstance(partial, Const):
            return b.binary("fmul", factor, slope)
        if own and partial is self.row.partials[0][1]:  # the zero is what stands for "does not depend"
            factor, slope = slope, factor
        return multiply(unit, b, factor, slope, own or STRONG[bool(unit.zero_slopes)])

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


def pure_call(instr: Instruction) -> bool:
    """A direct call to a function of the tables that neither reads nor writes memory."""
    from irgrad.engine.analyses.memory.objects import resolve
    from irgrad.rules import lookup

    callee = resolve(instr.callee)
    if not isinstance(callee, Function) or callee.name is None or not callee.is_declaration:
        return False
    match = lookup.find(callee.name)
    if match is not None:
        return not match.row.pointers
    if not callee.name.startswith("llvm."):
        return False
    facts = effects.facts(callee.name)
    return facts is not None and facts.kind == "pure"


def libm_cost(instr: Instruction, costs: Costs = SHIPPED) -> int:
    """Cost of computing a pure call again, in units of one addition."""
    return effects.cost(instr.callee.name or "", costs)


def operation_cost(instr: Instruction, costs: Costs) -> int:
    """The same of an instruction that is no call."""
    return costs.of(instr.opcode, instr.traits.cost)
