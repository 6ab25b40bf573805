"""The entrance of the differentiator: a function in normal form and a mode give its derivative in normal form.

    J (forward)  each active argument p is followed by the pointer to its tangent
    V (reverse)  each active argument p is followed by its shadow: on entry the adjoint of the memory after the
    function, on exit the
                 adjoint of the memory before it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import ConstInt, Function, Module
from irgrad.engine.transforms import lanes
from irgrad.engine.transforms.apart import Apart
from irgrad.engine.transforms.canonical import canonicalise_function
from irgrad.engine.transforms.distribute import LANES
from irgrad.engine.transforms.partial import refuse_parts
from irgrad.engine.transforms.pieces import refuse_pieces
from irgrad.engine.transforms.puns import refuse_puns
from irgrad.engine.transforms.retype import retype
from irgrad.engine.transforms.screen import screen
from irgrad.engine.transforms.undecidable import refuse_undecidable
from irgrad.engine.transforms.unit import Abi, Unit
from irgrad.rules.errors import Unsupported

if TYPE_CHECKING:
    from irgrad.engine.analyses.facts import Facts
    from irgrad.engine.analyses.rulebook import Rulebook


@dataclass(frozen=True, slots=True)
class Derived:
    """Name of the derivative's function; `scratch`: arguments that were not asked for but need zeroed scratch
    shadows; `facts`: what the analyses found."""

    name: str
    scratch: tuple[int, ...]
    facts: Facts


def derive(
    module: Module, fname: str, mode: str, args: Sequence[str], *, buffers: Sequence[str] = (),
    strict_fp: bool = False, discard: Sequence[int] = (), width: int = 1, rules: Rulebook | None = None,
    strong_zero: bool = False, zero_slopes: bool = False, runtime_activity: bool = False,
) -> Derived:  # fmt: skip
    """Add the derivative of `fname` to `module`.

    `mode` is "forward" or "reverse"; `args[i]` is "dup" for the arguments that are differentiated, else "const".
    `buffers[i]` names the float type that argument i holds all over ("double", ...), "" where that is not known.
    `discard`: arguments whose final contents nobody asks for. `width`: tangents or cotangents at once; shadow memory
    then holds that many lanes for each element, side by side (see lanes.py); with an `Apart` width each shadow is an
    array of pointers to memories of their own (see apart.py). `strong_zero`: a zero tangent or adjoint times an
    infinite slope is zero; `zero_slopes`: so is an infinite one times a zero slope. `runtime_activity`: a shadow that
    is its argument's own memory means that it has no derivative (see aliased.py). Raises an IRGradError that names
    the source line for what has no derivative.
    """
    unit, abi = prepared(module, fname, mode, args, buffers, strict_fp, discard, width, rules)
    unit.strong_zero, unit.zero_slopes, unit.runtime_activity = strong_zero, zero_slopes, runtime_activity
    root, shadowed = unit.root, abi.shadow
    scratch = tuple(sorted(unit.activity.scratch))
    letter = ("T" if discard else "J") if mode == "forward" else "R" if discard else "V"
    strip = f"{width}{'a' if isinstance(width, Apart) else 'x'}" if width > 1 else ""
    name = f"{fname}.{letter}{strip}{''.join('1' if s else '0' for s in shadowed)}"
    shadow = lanes.wide(ty.PTR, width)
    params = [kind for s in shadowed for kind in ((ty.PTR, shadow) if s else (ty.PTR,))]
    target = root_function(module, name, params)
    if mode != "forward":
        target.tail = REVERSE_TAIL
    if mode == "forward":
        _forward_root(unit, root, target, abi)
    else:
        _reverse_root(unit, root, target, abi)
    drain(unit)
    forget_globals(unit, target)
    if width > 1 and unit.plain:
        target.tail += f" {LANES}"
    if rules is not None:
        rules.restore()
    return Derived(name, scratch, unit.facts)


def prepared(
    module: Module, fname: str, mode: str, args: Sequence[str], buffers: Sequence[str] = (), strict_fp: bool = False,
    discard: Sequence[int] = (), width: int = 1, rules: Rulebook | None = None,
) -> tuple[Unit, Abi]:  # fmt: skip
    """The module ready for its derivative: canonical, analysed, and found to have one; the convention of the root."""
    from irgrad.engine.transforms.canonical import canonicalise_module

    root = module.functions[fname]
    if rules is not None:
        module.rules = rules
        rules.hide()
    canonicalise_module(module, root)
    dup = {i for i, a in enumerate(args) if a == "dup"}
    unit = analysed(module, root, dup, buffers, mode, strict_fp, discard, width)
    refuse_undecidable(unit)
    refuse_pieces(unit)
    screen(unit)
    refuse_puns(unit, buffers)
    refuse_parts(unit)
    abi = Abi(root)
    abi.shadow = [a == "dup" or i in unit.activity.scratch for i, a in enumerate(args)]
    unit.abis[root] = abi
    return unit, abi


def analysed(
    module: Module, root: Function, dup: set[int], buffers: Sequence[str], mode: str, strict_fp: bool,
    discard: Sequence[int], width: int,
) -> Unit:  # fmt: skip
    """The analysed module. Ruled functions of which an active call has no rule for its types get their bodies back."""
    from irgrad.engine.analyses.facts import Facts
    from irgrad.engine.transforms.ruled import without_rule

    while True:
        facts = Facts(module, root, dup, buffers)
        if retype(facts):
            facts = Facts(module, root, dup, buffers)
        unit = Unit(module, root, facts, mode, strict_fp, width)
        unit.discard(discard)
        wanted = without_rule(unit)
        if not wanted:
            return unit
        for fn in wanted:
            module.rules.show(fn)
            canonicalise_function(module, fn)


def root_function(module: Module, name: str, params: Sequence[ty.Type]) -> Function:
    """An empty function of pointers that do not overlap."""
    target = Function(name, ty.function(ty.VOID, tuple(params)))
    for arg in target.args:
        arg.attrs = "noalias" if arg.type is ty.PTR else ""
    target.tail = "nounwind"
    module.functions[name] = target
    return target


REVERSE_TAIL = 'nounwind "irgrad-reverse"'  # tells the optimiser that this is adjoint code


def _forward_root(unit: Unit, root: Function, target: Function, abi: Abi) -> None:
    from irgrad.engine.analyses.cfg import Cfg
    from irgrad.engine.transforms.forward import Forward

    Forward(unit, root, target, abi).generate(Cfg(root).rpo)


def _reverse_root(unit: Unit, root: Function, target: Function, abi: Abi) -> None:
    from irgrad.engine.transforms.reverse import Reverse

    Reverse(unit, root, abi, target, target).generate()


def drain(unit: Unit) -> None:
    """Generate what is queued, then fill the descriptors of functions whose address is taken, until nothing is left."""
    filled = 0
    while unit.queue or filled < len(unit.addressed):
        while unit.queue:
            unit.queue.pop()()
        while filled < len(unit.addressed):
            fill_descriptor(unit, unit.addressed[filled])
            filled += 1


def fill_descriptor(unit: Unit, fn: Function) -> None:
    """The descriptor of a function: {forward, augmented, reverse} entry points of this unit's mode."""
    from irgrad.engine.ir.model import ConstAggregate, Constant, ConstZero
    from irgrad.engine.transforms.forward import forward_function
    from irgrad.engine.transforms.split import split_functions

    null: Constant = ConstZero(ty.PTR)
    entries: list[Constant] = [null, null, null]
    if fn in unit.abis and not fn.is_declaration:
        if unit.mode == "forward":
            entries[0] = forward_function(unit, fn)
        else:
            entries[1], entries[2] = split_functions(unit, fn)
    elif unit.indirectly_active(fn):
        raise Unsupported(
            f"the address of `{fn.name}` is taken and it may be called with active arguments",
            because="it has no body in this module",
            fix=f'load(..., link=["the file that defines {fn.name}"])',
        )
    var = unit.descriptors[fn]
    var.init = ConstAggregate(var.value_type, entries)


def forget_globals(unit: Unit, target: Function) -> None:
    """Derivatives of mutable globals start from zero in every call."""
    b = Builder(target.blocks[0], at=0)
    ftype = ty.function(ty.VOID, (ty.PTR, ty.I8, ty.I64, ty.I1))
    for var in unit.mutable_float_shadows():
        fn = unit.declare("llvm.memset.p0.i64", ftype)
        b.call(fn, [var, ConstInt(ty.I8, 0), ConstInt(ty.I64, ty.size_of(var.value_type)), ConstInt(ty.I1, 0)])
