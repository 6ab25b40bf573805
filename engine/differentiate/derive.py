"""Derivatives in one function: both directions, with or without the values of the function's own outputs.

    jvp, jvp_only   each active argument p is followed by the pointer to its tangent
    vjp, pullback   each active argument p is followed by its shadow: on entry the adjoint of the memory after the
                    function, on exit the adjoint of the memory before it
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.objects import BY_VALUE
from irgrad.engine.differentiate.forward.forward import emit_forward
from irgrad.engine.differentiate.layout.lanes import LANES
from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.differentiate.roots import (
    REVERSE_TAIL,
    Derived,
    drain,
    emit_reverse,
    forget_globals,
    root_function,
)
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty

__all__ = ["derive_whole"]


def derive_whole(unit: Unit, abi: Abi) -> Derived:
    """Add the derivative to the module. Raises an IRGradError that names the source line for what has none."""
    root, request = unit.root, unit.request
    shadow = shadow_type(ty.PTR, unit.width)
    params = [kind for s in abi.shadow for kind in ((ty.PTR, shadow) if s else (ty.PTR,))]
    target = root_function(unit.module, request.name(abi.shadow), params)
    for i, arg in enumerate(root.args):
        if BY_VALUE in arg.attrs:
            target.args[i + sum(abi.shadow[:i])].attrs += f" {BY_VALUE}"
    if unit.mode == "forward":
        emit_forward(unit, root, target, abi)
    else:
        target.tail = REVERSE_TAIL
        emit_reverse(unit, root, abi, target, target)
    drain(unit)
    forget_globals(unit, target)
    if unit.width > 1 and unit.plain:
        target.tail += f' "{LANES}"'
    return Derived(str(target.name), tuple(sorted(unit.activity.scratch)), unit.facts)
