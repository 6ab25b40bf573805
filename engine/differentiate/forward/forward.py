"""Forward mode: a function that computes values and tangents side by side.

    T f(A a, B b)   becomes   {T, T} f.fwd(A a, A a', B b, B b')

with a primed parameter for each argument that has a tangent (active float) or a shadow (pointer to tangents).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.analyses.memory.call_effects import Effect, effect_of
from irgrad.engine.analyses.memory.objects import header_size, resolve
from irgrad.engine.differentiate.custom_rules.ruled import ruled_site
from irgrad.engine.differentiate.forward.sweep import Sweep, bind_arguments
from irgrad.engine.differentiate.layout import lanes, separate_shadows
from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.differentiate.primitives.application import application
from irgrad.engine.differentiate.shadow import persistent_memory, runtime_activity, zero_adjoint_skip
from irgrad.engine.differentiate.shadow.allocations import allocation_alignment, allocation_bytes
from irgrad.engine.differentiate.shared.conventions import Abi, pair
from irgrad.engine.differentiate.shared.copying import clean_call
from irgrad.engine.differentiate.shared.derived_functions import keep_own_places
from irgrad.engine.differentiate.shared.refuse import missing, refuse
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Argument,
    Block,
    CallInfo,
    ConstInt,
    Function,
    Instruction,
    Value,
)
from irgrad.engine.ir.types import Type
from irgrad.engine.runtime.persistent_memory import CLEAR
from irgrad.engine.runtime.word_sums import WORD_SUM
from irgrad.engine.runtime.zero_tests import PREFIX as ZERO_TEST

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.rule_sites import Site

_ALIGNED = re.compile(r"\balign (\d+)")


def forward_type(fn_type: ty.FunctionType, abi: Abi, width: int = 1) -> ty.FunctionType:
    """Type of the forward derivative."""
    params: list[Type] = []
    for i, param in enumerate(fn_type.params):
        params.append(param)
        if i < len(abi.adjoint) and (abi.adjoint[i] or abi.shadow[i]):
            params.append(shadow_type(param, width))
    twofold = abi.ret_adjoint or abi.ret_shadow
    return ty.function(pair(fn_type.ret, width) if twofold else fn_type.ret, tuple(params), fn_type.vararg)


class Forward(Sweep):
    """Generates the forward derivative of one function."""

    def __init__(self, unit: Unit, fn: Function, target: Function, abi: Abi) -> None:
        super().__init__(unit, fn, target, tangents=True)
        self.abi = abi

    def generate(self, order: list[Block]) -> None:
        """Fill the target."""
        pairs: list[tuple[Argument, Argument, Argument | None]] = []
        new = iter(self.target.args)
        for i, old in enumerate(self.fn.args):
            primal = next(new)
            primal.name = old.name
            shadow = next(new) if self.abi.adjoint[i] or self.abi.shadow[i] else None
            pairs.append((old, primal, shadow))
        bind_arguments(self, pairs)
        self.make_blocks(order)
        self.run(order)

    def ret(self, instr: Instruction) -> None:
        """Return the value, with its shadow where the convention has one."""
        if instr.operands and (self.abi.ret_adjoint or self.abi.ret_shadow):
            value = instr.operands[0]
            both = self.b.aggregate(pair(value.type, self.unit.width), [self.value(value), self.shadow(value)])
            self.b.ret(both)
        else:
            self.copy(instr)

    # -- calls -----------------------------------------------------------------------------------------------

    def call(self, instr: Instruction) -> None:
        """Copy inactive calls, differentiate the others by body, row or kind."""
        callee = resolve(instr.callee)
        name = callee.name if isinstance(callee, Function) else None
        if name is not None and name.startswith(("llvm.lifetime.", "llvm.dbg.")):
            return
        if isinstance(callee, Function) and callee.is_declaration:
            effect = effect_of(self.unit.module, instr, callee)
            if effect.allocates or effect.frees is not None or effect.copy is not None or effect.fill is not None:
                self.memory_call(instr, effect)
                return
        if name == CLEAR:
            self.copy(instr)
            persistent_memory.clear(self.unit, self.b, instr)
            return
        if name is not None and name.startswith(ZERO_TEST):
            self._ask(instr)
            return
        if name == WORD_SUM:
            self.copy(instr)
            if self.shadowed(instr):
                self.shadows[instr] = self.like_call(instr, [self.shadow(a) for a in instr.args])
            return
        if not self.activity.call(instr):
            self.copy(instr)
            return
        site = ruled_site(self.unit, instr)
        if site is not None:
            self.ruled_call(instr, site)
            return
        if self.unit.call_targets(instr):
            self.derived_call(instr)
            return
        applied = application(self.unit, instr)
        if applied is None:
            raise missing(self.unit, instr)
        self.copy(instr)
        if instr.type is not ty.VOID and self.activity.value(instr):
            self.tangent_of_row(instr, applied)

    def _ask(self, instr: Instruction) -> None:
        """Whether an adjoint is zero is asked of its tangent too; several tangents at once are not looked at."""
        amount = instr.args[0]
        self.copy(instr)
        if self.unit.differentiable(amount):
            if self.unit.width > 1:
                self.values[instr] = ConstInt(ty.I1, 0)
            else:
                asked = zero_adjoint_skip.ask(self.unit, self.b, self.shadow(amount))
                self.values[instr] = self.b.binary("and", self.values[instr], asked)

    def ruled_call(self, instr: Instruction, site: Site) -> None:
        """Call the derivative that a rule of the user writes."""
        if self.unit.request.rounding:
            raise refuse(self.unit, instr, "an estimate of rounding errors goes through a rule for a call",
                         because="the rule says how tangents move, not how the call rounds",
                         fix="estimate the errors of the code around it, or link the callee's own body")
        from irgrad.engine.differentiate.custom_rules.custom import forward_of

        fn, shape = forward_of(self.unit, site)
        args: list[Value] = []
        for i, arg in enumerate(instr.args):
            args.append(self.value(arg))
            if shape.adjoint[i] or shape.shadow[i]:
                args.append(self.shadow(arg))
        call = self.b.call(fn, args)
        if shape.active:
            self.values[instr] = self.b.extractvalue(call, 0)
            self.shadows[instr] = self.b.extractvalue(call, 1)
        else:
            self.values[instr] = call

    def memory_call(self, instr: Instruction, effect: Effect) -> None:
        """Allocation, release, copy and fill: the same on the shadow memory."""
        new = self.copy(instr)
        if effect.allocates:
            self._allocation(instr, new)
            return
        args = [self.value(a) for a in instr.args]
        where = effect.copy or effect.fill or (effect.frees, effect.frees, effect.frees)
        target = where[0]
        assert target is not None
        pointer = instr.args[target]
        if not self.activity.pointer(pointer):
            return
        if effect.frees is not None and persistent_memory.outlives(self.unit, pointer):
            persistent_memory.forget(self, pointer, args[0] if target else None)
            return
        args[target] = self.shadow(pointer)
        if before := header_size(instr) * (self.unit.memory.scale - 1):
            args[target] = self.b.gep(ty.I8, args[target], -before)
        if effect.copy is not None:
            source = instr.args[effect.copy[1]]
            if not self.activity.pointer(source):
                size = self.b.to_i64(args[effect.copy[2]])
                if runtime_activity.asked(self.unit, pointer):
                    runtime_activity.clear(self.unit, self.b, self.value(pointer), args[target], size)
                    return
                self.zero_memory(args[target], self.unit.memory.scaled(self.b, size))
                return
            args[effect.copy[1]] = self.shadow(source)
        elif effect.fill is not None:
            byte = args[effect.fill[1]]
            args[effect.fill[1]] = ConstInt(byte.type, 0)
        if runtime_activity.asked(self.unit, pointer):
            runtime_activity.memory_call(self, instr, effect, args)
            return
        length = effect.copy or effect.fill
        if self.unit.memory.separate:
            places = [target, effect.copy[1]] if effect.copy is not None else [target]
            each = [separate_shadows.each(self.b, args[i], self.unit.width) for i in places]
            for pointers in zip(*each, strict=True):
                own = dict(zip(places, pointers, strict=True))
                self.like_call(instr, [own.get(i, arg) for i, arg in enumerate(args)])
            return
        if length is not None and self.unit.width > 1:
            self._scaled_call(instr, args, length[2])
            return
        self.like_call(instr, args)

    def _scaled_call(self, instr: Instruction, args: list[Value], length: int) -> None:
        """A copy or a fill of W times as many bytes; an intrinsic that counts in 32 bits becomes the one of 64."""
        args[length] = self.unit.memory.scaled(self.b, args[length])
        self.unit.swept(args[length], copied=True)
        name = instr.callee_name or ""
        if name.startswith("llvm.") and instr.args[length].type is not ty.I64:
            ftype = ty.function(ty.VOID, tuple(a.type for a in args))
            fn = self.unit.declare(name.rpartition(".")[0] + ".i64", ftype)
            self.b.call(fn, args)
        else:
            self.like_call(instr, args)

    def _allocation(self, instr: Instruction, new: Instruction) -> None:
        if not self.shadowed(instr):
            return
        size = allocation_bytes(self, new)
        if size is None:
            raise refuse(self.unit, instr, "the size of this allocation is not known")
        size = self.unit.memory.scaled(self.b, size)
        if persistent_memory.outlives(self.unit, instr):
            self.shadows[instr] = persistent_memory.new(self, instr, size, allocation_alignment(self, instr))
            return
        if self.unit.memory.scale > 1 and instr.callee_name in ("malloc", "calloc"):
            self.shadows[instr] = self._aligned(size)
            self.zero_memory(self.shadows[instr], size)
            return
        args = self._sizes(instr, [self.value(a) for a in instr.args])
        if instr.callee_name == "malloc":
            args = [size]
        elif instr.callee_name == "calloc":
            args = [size, ConstInt(ty.I64, 1)]
        more = header_size(instr) * (self.unit.memory.scale - 1)  # what the header's lanes need beyond the runtime's
        if more:
            args = [self.b.add(size, ConstInt(ty.I64, more))]
        if self.unit.memory.separate:
            twins = [self.like_call(instr, args) for _ in range(self.unit.width)]
            twin: Value = separate_shadows.join(self.b, ty.PTR, twins)
        else:
            twin = self.like_call(instr, args)
        if more:
            twin = self.b.gep(ty.I8, twin, more)
        self.shadows[instr] = twin
        self.zero_memory(twin, size)

    def _aligned(self, size: Value) -> Value:
        """Memory for lanes, to be freed like any other: a vector of lanes should not lie across two cache lines."""
        align = ConstInt(ty.I64, lanes.ALIGN)
        fn = self.unit.declare("aligned_alloc", ty.function(ty.PTR, (ty.I64, ty.I64)), "nounwind", "noalias")
        whole = self.b.add(size, ConstInt(ty.I64, lanes.ALIGN - 1), ())
        return self.b.call(fn, [align, self.b.binary("and", whole, ConstInt(ty.I64, -lanes.ALIGN))])

    def _sizes(self, instr: Instruction, args: list[Value]) -> list[Value]:
        """The arguments of an allocation of W times as many bytes."""
        from irgrad.rules import effects

        facts = effects.facts(instr.callee_name or "")
        if self.unit.memory.scale > 1 and facts is not None:
            at = facts.sizes[0]
            args[at] = self.unit.memory.scaled(self.b, args[at])
        return args

    def like_call(self, instr: Instruction, args: list[Value]) -> Instruction:
        """The same call on shadows. Not aligned as a program may have aligned its pointers by hand: they are as far
        from the beginnings of blocks that begin elsewhere."""
        info = clean_call(instr.call)
        if info is not None:
            info.arg_attrs = [_ALIGNED.sub(lambda m: f"align {min(int(m[1]), 8)}", text) for text in info.arg_attrs]
        new = Instruction("call", instr.type, [*args, self.value(instr.callee)], call=info, flags=instr.flags)
        self.b.insert(new)
        return new

    def derived_call(self, instr: Instruction) -> None:
        """Call the forward derivative of the callee, directly or through the descriptor."""
        assert instr.call is not None
        abi = self.unit.call_abi(instr)
        args: list[Value] = []
        for i, arg in enumerate(instr.args):
            args.append(self.value(arg))
            if i < len(abi.adjoint) and (abi.adjoint[i] or abi.shadow[i]):
                args.append(self.shadow(arg))
        callee = resolve(instr.callee)
        ftype = forward_type(instr.call.fn_type, abi, self.unit.width)
        if isinstance(callee, Function):
            entry: Value = forward_function(self.unit, callee)
        else:
            entry = self.b.load(ty.PTR, separate_shadows.first(self.b, self.shadow(instr.callee), self.unit.width))
        call = self.b.insert(Instruction("call", ftype.ret, [*args, entry], call=CallInfo(ftype)))
        if abi.ret_adjoint or abi.ret_shadow:
            self.values[instr] = self.b.extractvalue(call, 0)
            if self.shadowed(instr):
                self.shadows[instr] = self.b.extractvalue(call, 1)
        else:
            self.values[instr] = call


def emit_forward(unit: Unit, fn: Function, target: Function, abi: Abi) -> None:
    """Fill the forward derivative of `fn`."""
    Forward(unit, fn, target, abi).generate(get(Cfg, fn).rpo)


def forward_function(unit: Unit, fn: Function) -> Function:
    """The forward derivative of `fn`, queued for generation on first use."""
    key = (fn, "forward")
    if key in unit.derived:
        return unit.derived[key]
    abi = unit.abis[fn]
    target = unit.new_function(f"fwd.{fn.name}", forward_type(fn.ftype, abi, unit.width))
    unit.derived[key] = target
    keep_own_places(fn, target, [a or s for a, s in zip(abi.adjoint, abi.shadow, strict=True)])

    def generate() -> None:
        assert unit.forward is not None, "no emitter of forward derivatives"
        unit.forward(unit, fn, target, abi)

    unit.queue.append(generate)
    return target
