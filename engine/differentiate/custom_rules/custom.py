"""Derivatives of calls that a rule with `ctx` gives, as functions of the same shape as those of callees with a body.

    forward     {T, T'} f.fwd(args, tangents)                    the call, then what the body emits
    augmented   {T, tape} f.aug(args, arena)                     the call, and a record of what the body wants kept
    reverse     {adjoints} f.rev(args, shadows, t^, tape)        what the body emits

The body runs once, to write the reverse function; what it asked for is then saved by the augmented one. Counts of what
is saved are computed from the arguments: their instructions are copied from the one function to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irgrad.engine.differentiate.custom_rules.context import Context
from irgrad.engine.differentiate.custom_rules.fixed import foreign_augmented, run_fixed
from irgrad.engine.differentiate.custom_rules.hosted import run_host
from irgrad.engine.differentiate.custom_rules.rule_arguments import make_argument, make_result
from irgrad.engine.differentiate.custom_rules.rule_batches import mark, taped
from irgrad.engine.differentiate.custom_rules.rule_lanes import each_lane
from irgrad.engine.differentiate.custom_rules.symbols import Code
from irgrad.engine.differentiate.custom_rules.writer import (
    Kept,
    Shape,
    Writer,
    clone,
    own_arguments,
    plain_call_of,
    shape_of,
)
from irgrad.engine.differentiate.shared.conventions import pair
from irgrad.engine.differentiate.shared.rule_sites import Site
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Argument,
    ConstInt,
    ConstUndef,
    ConstZero,
    Function,
    Instruction,
    Value,
)

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.unit import Unit

__all__ = ["BodyWriter", "Pair", "forward_of", "reverse_of"]


@dataclass(slots=True)
class Pair:
    """The two functions of a call in reverse mode; `used`: arguments of the call that the reverse one reads."""

    shape: Shape
    augmented: Function
    reverse: Function
    used: frozenset[int]
    shadows: frozenset[int]
    tape: bool
    takes_shadows: bool  # the augmented one


class BodyWriter(Writer):
    """Writes one derived function by running the body of a rule."""

    def seen(self, value: Value) -> Any:
        """The result of the call as bodies see it."""
        return make_result(self, value)

    # -- running the body ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the body, for all lanes or in a loop over them."""
        self._loads: dict[Any, Value] = {}
        one = self.width == 1 or self.lanes or (self.site.rule.form == "stop" and not self.unit.memory.separate)
        if one:
            self._run()
        else:
            each_lane(self, self._run)

    def _run(self) -> None:
        """Bind the arguments and run the body."""
        rule, prototype = self.site.rule, self.site.prototype
        for i, type_ in enumerate(self.params):
            param = prototype.params[i] if prototype is not None else None
            self.arguments.append(make_argument(self, i, type_, param))
        if rule.form == "calls":
            assert rule.body is not None
            options = {"y": self.result()} if rule.takes_result else {}
            rule.body(Context(self), *self.arguments, **options)
        elif rule.form == "host":
            run_host(self)
        else:
            run_fixed(self)
        if self.mode == "reverse":
            self._clear_outputs()

    def _clear_outputs(self) -> None:
        prototype = self.site.prototype
        for i, argument in enumerate(self.arguments):
            if prototype is not None and prototype.params[i].intent == "out" and i in self.shadows:
                if prototype.params[i].kind == "array":
                    Context(self).zero(argument.shadow, argument.shadow.size)
                elif prototype.params[i].kind == "reference":
                    argument.clear()


# -- forward -----------------------------------------------------------------------------------------------------------


def forward_of(unit: Unit, site: Site) -> tuple[Function, Shape]:
    """The forward derivative of a call."""
    shape = shape_of(site)
    params: list[ty.Type] = []
    writer = BodyWriter(unit, site, lambda *_: True, "forward")
    for i, type_ in enumerate(writer.params):
        params += [type_, unit.wide(type_)] if shape.adjoint[i] or shape.shadow[i] else [type_]
    ret = writer.fn_type.ret
    both = pair(ret, unit.width)
    fn = unit.new_function(f"fwd.{site.callee.name}", ty.function(both if shape.active else ret, tuple(params)))
    code = writer.code = Code(unit, fn)
    new = iter(fn.args)
    for i in range(len(writer.params)):
        writer.values[i] = next(new)
        if shape.adjoint[i] or shape.shadow[i]:
            writer.shadows[i] = next(new)
    primal = Instruction("call", ret, [*writer.values.values(), site.callee], call=plain_call_of(site))
    if ret is not ty.VOID:
        writer._result = make_result(writer, primal)
    writer.run()
    if writer.replaced is None:
        code.before.insert(primal)
    code.before.br(_body(code))
    code.close_scope()
    if ret is ty.VOID:
        code.b.ret()
    elif shape.active:
        code.b.ret(code.b.aggregate(both, [writer.replaced or primal, writer.tangent()]))
    else:
        code.b.ret(writer.replaced or primal)
    mark(unit, site, shape, fn)
    return fn, shape


def _body(code: Code) -> Any:
    return code.fn.blocks[1]


# -- reverse -----------------------------------------------------------------------------------------------------------


def reverse_of(unit: Unit, site: Site, clobbered: Callable[[int, str], bool]) -> Pair:
    """The augmented and the reverse function of a call."""
    shape = shape_of(site)
    writer = BodyWriter(unit, site, clobbered, "reverse")
    params: list[ty.Type] = []
    results: list[ty.Type] = []
    for i, type_ in enumerate(writer.params):
        params += [type_, unit.wide(type_)] if shape.shadow[i] else [type_]
        results += [unit.wide(type_)] if shape.adjoint[i] else []
    ret = writer.fn_type.ret
    whole = ty.struct(tuple(results))
    params += [unit.wide(ret)] if shape.active else []
    fn = unit.new_function(f"rev.{site.callee.name}", ty.function(whole if results else ty.VOID, (*params, ty.PTR)))
    code = writer.code = Code(unit, fn)
    new = iter(fn.args)
    for i in range(len(writer.params)):
        writer.values[i] = next(new)
        if shape.shadow[i]:
            writer.shadows[i] = next(new)
    writer._cotangent = next(new) if shape.active else None
    writer._tape = next(new)
    writer.run()
    code.before.br(_body(code))
    code.close_scope()
    if results:
        adjoints = [writer.adjoint(i) for i, active in enumerate(shape.adjoint) if active]
        code.b.ret(code.b.aggregate(whole, adjoints))
    else:
        code.b.ret()
    copies = any(request.kind != "result" for request in writer.requests)
    if not writer.requests and taped(unit, site):
        writer.requests.append(Kept("nothing", -1, ty.PTR, None, 0))
    augmented = _augmented(writer) if writer.requests else None
    together = mark(unit, site, shape, fn, augmented or site.callee, copies=copies)
    read = {o for instr in fn.instructions() for o in instr.operands if isinstance(o, Argument)}
    used = frozenset(i for i, v in writer.values.items() if together or v in read)
    shadows = frozenset(i for i, v in writer.shadows.items() if together or v in read)
    return Pair(shape, augmented if augmented is not None else site.callee, fn, used, shadows, augmented is not None,
                "augmented" in site.rule.options)  # fmt: skip


def _augmented(writer: Writer) -> Function:
    """The call, with copies of what the reverse function reads."""
    unit, site = writer.unit, writer.site
    ret = writer.fn_type.ret
    fields = [ret] if ret is not ty.VOID else []
    inner = "augmented" in site.rule.options
    params = list(writer.params)
    if inner:  # a function in C that gets the shadows as well
        has = writer.shape.shadow
        params = [t for i, t in enumerate(writer.params) for t in (t, *([unit.wide(t)] if has[i] else []))]
    params.append(ty.PTR)
    fn = unit.new_function(f"aug.{site.callee.name}", ty.function(ty.struct((*fields, ty.PTR)), tuple(params)))
    code = Code(unit, fn)
    b = code.before
    *every, arena = fn.args
    values = [v for v, own in zip(every, own_arguments(writer), strict=True) if own] if inner else every
    known: dict[Value, Value] = {writer.values[i]: v for i, v in enumerate(values)}
    alloc = unit.runtime("irgrad.tape.alloc")
    tape = b.call(alloc, [arena, ConstInt(ty.I64, 8 * len(writer.requests))])
    made: dict[int, Value] = {r.slot: ConstZero(ty.PTR) for r in writer.requests if r.kind == "nothing"}
    for request in writer.requests:
        if request.kind == "value":
            made[request.slot] = b.load(request.type, values[request.position])
    for instr in writer.code.fn.blocks[0].instructions:  # loads from the tape of what is loaded here
        slot = _slot_of(instr, writer)
        if slot is not None and slot in made:
            known[instr] = made[slot]
    primal: Value | None = None
    for when in ("before", "after"):
        for request in writer.requests:
            if request.kind == when:
                assert request.bytes is not None
                size = clone(request.bytes, known, b, set(), site)
                made[request.slot] = b.call(alloc, [arena, size])
                writer.copy_memory(b, made[request.slot], values[request.position], size)
        if when == "before":
            if site.rule.form == "registered":
                from irgrad.engine.differentiate.custom_rules.registered import call_augmented_lanes

                room = lambda size: b.call(alloc, [arena, ConstInt(ty.I64, size)])  # noqa: E731
                primal, kept = call_augmented_lanes(writer, code, every, room)
                made |= {request.slot: kept for request in writer.requests if request.kind == "tape"}
            elif inner:
                primal = foreign_augmented(writer, code, every, made)
            else:
                primal = b.insert(Instruction("call", ret, [*values, site.callee], call=plain_call_of(site)))
    for request in writer.requests:
        value = primal if request.kind == "result" else made[request.slot]
        assert value is not None
        b.store(value, b.gep(ty.I8, tape, 8 * request.slot), align=8)
    b.br(_body(code))
    parts: list[Value] = [primal] if fields and primal is not None else []
    code.b.ret(code.b.aggregate(fn.ftype.ret, [*parts, tape]))
    return fn


def _slot_of(instr: Instruction, writer: Writer) -> int | None:
    """The slot of the tape that an instruction of the reverse function loads."""
    if instr.opcode != "load":
        return None
    address = instr.operands[0]
    if address is writer._tape:
        return 0
    if isinstance(address, Instruction) and address.operands[0] is writer._tape:
        offset = address.operands[1]
        return offset.value // 8 if isinstance(offset, ConstInt) else None
    return None


__all__ += ["ConstUndef", "ConstZero"]
