"""The objects that a body of a rule gets for its arguments, by their types and the rule's prototype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.custom_rules import views
from irgrad.engine.differentiate.custom_rules.arguments import (
    ArrayArgument,
    Nothing,
    Number,
    PointerArgument,
    Reference,
    Result,
)
from irgrad.engine.differentiate.custom_rules.held import Held, lane_view
from irgrad.engine.differentiate.custom_rules.symbols import Code, Scalar, comparison, ir_type, select
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstInt, Value
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.tracing import innermost_line

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Writer

__all__ = ["LaneNumber", "LaneResult", "extent_of", "make_argument", "make_result"]


class LaneNumber(Number):
    """A number argument of a rule for all lanes: `x.d` is an array, with one element per lane."""

    __slots__ = ("held",)

    def __init__(self, code: Code, v: Value, name: str, mode: str, held: Held | None) -> None:
        Scalar.__init__(self, code, v)
        self._name, self._mode, self._active = name, mode, held is not None
        self._adjoint = self._tangent = None
        self.held = held

    @property
    def place(self) -> Value:
        assert self.held is not None
        return self.held.slot

    @property
    def adjoint(self) -> Value:
        assert self.held is not None
        return self.held.value

    @property
    def d(self) -> Any:
        """Its adjoints, to add to (reverse), or its tangents (forward)."""
        if self.held is None:
            return Nothing() if self._mode == "reverse" else self.code.number(0.0, self.v.type)
        return self.held.view

    @d.setter
    def d(self, value: Any) -> None:
        same = self.held is None or (isinstance(value, views.View) and value.v is self.held.slot)
        if not (self._mode == "reverse" and same):
            raise RuleError(f"the derivative of `{self._name}` is assigned", which=innermost_line(),
                            because="reverse bodies accumulate; tangents of arguments are given",
                            fix=f"{self._name}.d += value")  # fmt: skip


class LaneResult(Result):
    """The result of the function for a rule for all lanes: `d` is an array, with one element per lane."""

    __slots__ = ("held",)

    def __init__(self, code: Code, v: Value, held: Held, mode: str) -> None:
        super().__init__(code, v, held.slot, mode)
        self.held = held

    @property
    def d(self) -> Any:
        """The cotangents (reverse); the tangents as set so far (forward)."""
        return self.held.view

    @d.setter
    def d(self, value: Any) -> None:
        if self._mode == "reverse":
            raise RuleError("the cotangent of the result is assigned", which=innermost_line(),
                            because="a reverse body reads it", fix="x.d += ctx.result.d * ...")  # fmt: skip
        if not (isinstance(value, views.View) and value.v is self.held.slot):
            self.held.view.assign(value)


def make_result(writer: Writer, value: Value) -> Result:
    """The object that a body gets for the result."""
    wanted = writer.shape.active or writer.mode == "forward"  # what a body sets is read where it is active
    if writer.lanes and wanted and isinstance(value.type, ty.FloatType):
        held = Held(writer.code, value.type, writer.width, writer._cotangent)
        return LaneResult(writer.code, value, held, writer.mode)
    return Result(writer.code, value, writer._cotangent, writer.mode)


def make_argument(writer: Writer, i: int, type_: ty.Type, param: Any) -> Any:
    """The object that a body gets for an argument."""
    code, mode, name, value, shadow = writer.code, writer.mode, writer.name(i), writer.values[i], writer.shadows.get(i)
    if type_.is_ptr and param is not None and param.kind == "array":
        shape = [extent_of(writer, e) for e in param.extents]
        return ArrayArgument(writer, i, name, value, shadow, ir_type(param.dtype), shape)
    if type_.is_ptr and param is not None and param.kind == "reference":
        element = ir_type(param.dtype)
        lanes = lane_view(code, shadow, element, (), writer.width) if writer.lanes and shadow is not None else None
        return Reference(code, writer.referenced(i, element), name, mode, value, shadow, lanes)
    if type_.is_ptr:
        known = ir_type(param.dtype) if param is not None and param.dtype != "ptr" else _element(writer, i)
        return PointerArgument(writer, i, name, value, shadow, known)
    literal = writer.site.call.args[i]
    value = literal if isinstance(literal, ConstInt) else value
    if writer.lanes:
        held = Held(code, type_, writer.width, shadow) if writer.shape.adjoint[i] else None
        return LaneNumber(code, value, name, mode, held)
    tangent = Scalar(code, shadow) if mode == "forward" and shadow is not None else None
    return Number(code, value, name, mode, writer.shape.adjoint[i], tangent)


def _element(writer: Writer, i: int) -> ty.Type | None:
    for _, kind in writer.unit.types.access(writer.site.call.args[i], 8):
        return kind if isinstance(kind, ty.FloatType) else None
    return None


def extent_of(writer: Writer, text: str) -> Scalar:
    """An extent of a prototype as a number of the kernel."""
    return writer.code.number(_evaluate(writer, ast.parse(text, mode="eval").body))


def _evaluate(writer: Writer, node: ast.expr) -> Any:
    code = writer.code
    if isinstance(node, ast.Constant):
        return code.number(node.value)
    if isinstance(node, ast.Name):
        value = writer.named(node.id)
        return Scalar(code, code.cast(value, ty.I64))
    if isinstance(node, ast.UnaryOp):
        return 0 - _evaluate(writer, node.operand)
    if isinstance(node, ast.IfExp):
        return select(code, _evaluate(writer, node.test), _evaluate(writer, node.body), _evaluate(writer, node.orelse))
    if isinstance(node, ast.Compare):
        names = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
        left, right = _evaluate(writer, node.left), _evaluate(writer, node.comparators[0])
        return comparison(code, names[type(node.ops[0])], left, right)
    assert isinstance(node, ast.BinOp)
    left, right = _evaluate(writer, node.left), _evaluate(writer, node.right)
    match node.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Mod():
            return left % right
        case _:
            return left // right

