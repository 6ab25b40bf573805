"""Calls of Python bodies on whole buffers: what a rule with `host=True` writes.

    irgrad.host.DIGEST(frame, description)

The frame holds the bits of numbers and the addresses of arrays, eight bytes each; the description says in JSON which is
which. `engine/kernel/host.py` is the other side.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.differentiate.custom_rules.arguments import ArrayArgument, Number, Reference
from irgrad.engine.differentiate.custom_rules.symbols import Scalar
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import ConstData, Function, GlobalVariable, Instruction, Value
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Writer
    from irgrad.rules.definitions.definition import Rule

__all__ = ["PREFIX", "host_symbol", "refuse_loops", "run_host"]

PREFIX = "irgrad.host."


def host_symbol(rule: Rule) -> str:
    """The name under which compiled code calls the body."""
    import hashlib

    return PREFIX + hashlib.sha256(rule.digest.encode()).hexdigest()[:24]


def refuse_loops(writer: Writer) -> None:
    """Raise RuleError for a call inside of a loop, unless the rule allows it."""
    from irgrad.engine.analyses.control.loops import Loops

    call, rule = writer.site.call, writer.site.rule
    assert call.block is not None and call.block.function is not None
    if rule.options.get("host") == "loops" or get(Loops, call.block.function).of(call.block) is None:
        return
    from irgrad.engine.differentiate.shared.refuse import place

    raise RuleError(f"the host rule of `{writer.site.callee.name}` is called inside a loop",
                    where=place(writer.unit, call), which=f"the rule at {rule.place}",
                    because="each call of Python costs as much as thousands of instructions",
                    fix='partials, a rule with `ctx`, or host="loops"')  # fmt: skip


class _Frame:
    """Eight bytes for each thing that Python gets."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.values: list[Value] = []

    def put(self, value: Value) -> int:
        """The number of the slot of a value."""
        self.values.append(value)
        return len(self.values) - 1

    def emit(self) -> Value:
        """The frame in memory."""
        b = self.writer.code.b
        place = self.writer.code.stack(ty.array(max(1, len(self.values)), ty.I64))
        for number, value in enumerate(self.values):
            b.store(value, b.gep(ty.I64, place, number), align=8)
        return place


def run_host(writer: Writer) -> None:
    """Write the call of the Python body."""
    refuse_loops(writer)
    code, rule, frame = writer.code, writer.site.rule, _Frame(writer)
    described = [_argument(writer, frame, i, argument) for i, argument in enumerate(writer.arguments)]
    description: dict[str, Any] = {"mode": writer.mode, "arguments": described}
    slot: Instruction | None = None
    ret = writer.fn_type.ret
    if ret is not ty.VOID and ret.is_fp:
        result = writer.result()
        row: dict[str, Any] = {"value": frame.put(result.v), "dtype": result.dtype}
        if writer.mode == "reverse":
            row["d"] = frame.put(result.d.v)
        elif writer.shape.active:
            slot = code.stack(ret)
            code.b.store(code.number(0.0, ret).v, slot)
            row["d"] = frame.put(slot)
        description["result"] = row
    fn = writer.unit.declare(host_symbol(rule), ty.function(ty.VOID, (ty.PTR, ty.PTR)), "nounwind")
    code.b.call(fn, [frame.emit(), _text(writer, fn, json.dumps(description))])
    if slot is not None:
        writer.result().tangent = Scalar(code, code.b.load(ret, slot))


def _argument(writer: Writer, frame: _Frame, i: int, argument: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"name": writer.name(i), "active": bool(argument.active)}
    if isinstance(argument, Reference):
        row |= {"kind": "number", "dtype": argument.dtype, "value": frame.put(argument.v)}
        if argument.shadow is not None:
            row["d"] = frame.put(argument.shadow.v if writer.mode == "reverse" else argument.d.v)
    elif isinstance(argument, Number):
        row |= {"kind": "number", "dtype": argument.dtype, "value": frame.put(argument.v)}
        if argument._adjoint is not None:
            row["d"] = frame.put(argument._adjoint.slot)
        elif argument.active:
            row["d"] = frame.put(argument.d.v)
    elif isinstance(argument, ArrayArgument):
        row |= {"kind": "array", "dtype": Scalar.dtype.fget(_Like(argument.element))}  # type: ignore[attr-defined]
        row["shape"] = [frame.put(extent.v) for extent in argument.shape]
        row["value"] = frame.put(argument.v)
        if argument.shadow is not None:
            row["d"] = frame.put(argument.shadow.v)
        param = writer.site.prototype.params[i] if writer.site.prototype is not None else None
        if param is None or param.reads:
            row["saved"] = frame.put(argument.saved.v)
        if param is None or param.writes:
            row["result"] = frame.put(argument.result.v)
    else:
        raise RuleError(f"the extents of `{writer.name(i)}` are not known", where=writer.site.rule.place,
                        because="a host rule gets NumPy arrays",
                        fix=f'extern("{writer.site.callee.name}", "void(f64[n] x, ..., i64 n)")')  # fmt: skip
    return row


class _Like:
    """Something with the type of an element, for its name."""

    def __init__(self, type_: Any) -> None:
        self.v = self
        self.type = type_


def _text(writer: Writer, fn: Function, text: str) -> GlobalVariable:
    data = text.encode() + b"\0"
    module, number = writer.unit.module, 0
    while (name := f"{fn.name}.{number}") in module.globals:
        number += 1
    type_ = ty.array(len(data), ty.I8)
    module.globals[name] = GlobalVariable(name, type_, ConstData(type_, data), True, "internal", ", align 1")
    return module.globals[name]
