"""Rules with `ctx` or in C in derivatives of several lanes (tangents or cotangents at once).

A rule that says `width=` gets all lanes: shadow memory as it is, where the W lanes of an element are side by side, and
for numbers, W values in memory. Any other body takes one lane at a time. It is run in a loop over lanes, on copies of
the shadows of the lane where these are side by side; so extents have to be known, and shadows must not overlap. Where
shadows lie apart (`separate_shadows.py`) each lane has pointers of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from irgrad.engine.differentiate.custom_rules.held import Held
from irgrad.engine.differentiate.custom_rules.registered import writes_nothing
from irgrad.engine.differentiate.custom_rules.rule_arguments import extent_of
from irgrad.engine.differentiate.custom_rules.symbols import Code, Pointer, Scalar, ir_type
from irgrad.engine.differentiate.custom_rules.views import View, for_range
from irgrad.engine.differentiate.layout.shadow_types import Apart
from irgrad.engine.differentiate.shared.refuse import refuse
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Value
from irgrad.rules.definitions.types import Active, Duplicated
from irgrad.rules.errors import OneAtATime

if TYPE_CHECKING:
    from irgrad.engine.differentiate.custom_rules.writer import Writer
    from irgrad.engine.differentiate.shared.rule_sites import Site
    from irgrad.engine.differentiate.shared.unit import Unit
    from irgrad.engine.ir.model import Instruction

__all__ = ["check_lanes", "each_lane"]


class LaneByLane(RuntimeWarning):
    """Lanes share no run of a function, because its derivative takes one at a time."""


def check_lanes(unit: Unit, instr: Instruction, site: Site) -> None:
    """Raises Unsupported for a rule that cannot be used in a derivative of this width."""
    rule, width = site.rule, unit.width
    if width == 1:
        return
    if rule.lanes:
        if _long_double(site):
            raise refuse(unit, instr, "a rule for all lanes with a long double",
                         because="the lanes of long doubles do not lie side by side", fix="width=1")  # fmt: skip
        if isinstance(width, Apart):
            raise refuse(unit, instr, "a rule for all lanes where shadows lie apart",
                         because=f"the rule at {rule.place} wants the lanes of an element side by side",
                         fix="a rule without `width` as well: it takes one lane after the other")  # fmt: skip
        return
    why = _one_only(unit, site)
    if not why and rule.form == "registered":
        name = site.callee.name
        warnings.warn(f"`{name}` and its derivative ({rule.place}) run once for each of the {int(width)} lanes of "
                      "enzyme_width: what is registered takes one at a time", LaneByLane, stacklevel=2)  # fmt: skip
    if why:
        raise OneAtATime(
            f"a rule that writes calls in a derivative of width {int(width)}", which=str(rule.signature),
            because=f"the rule at {rule.place} works on one tangent or cotangent at a time, and {why}",
            fix="one call for each lane, without enzyme_width" if rule.form == "registered" else
            'width=1, or a rule for all lanes: width="any" (docs/rules.md)',
        )  # fmt: skip


def _one_only(unit: Unit, site: Site) -> str:
    """Why the body of a rule cannot be run lane after lane, "" where it can."""
    rule, args = site.rule, site.call.args
    if rule.form == "registered" and unit.memory.separate:
        return "" if writes_nothing(unit, site.callee) else "it runs the function, which stores something, in each lane"
    if rule.form not in ("calls", "foreign", "stop"):
        return "it makes the call of the function itself" if rule.form == "registered" else "it runs Python"
    prototype = site.prototype
    if _long_double(site):
        return "a long double has no lanes that lie side by side"
    if rule.form == "foreign" and unit.mode == "forward":
        return "its function in C makes the call as well"
    shadows = [i for i, kind in enumerate(site.types[2:]) if issubclass(kind, Duplicated)]
    if shadows and "augmented" in rule.options:
        return "its augmented function in C gets the shadows of one"
    if unit.memory.separate:
        return ""
    for number, i in enumerate(shadows):
        param = prototype.params[i] if prototype is not None else None
        if param is None or param.kind not in ("array", "reference"):
            return f"the extent of argument {i} is not known"
        if any(unit.pointers.may_alias(args[i], args[j]) for j in shadows[:number]):
            return f"argument {i} may share memory with another"
    return ""


def _long_double(site: Site) -> bool:
    numbers = zip((site.call, *site.call.args), site.types[1:], strict=True)
    return any(n.type is ty.F80 and issubclass(t, Active) for n, t in numbers)


def each_lane(writer: Writer, body: Callable[[], None]) -> None:
    """Run the body, which takes one lane, in a loop over lanes."""
    code, width, shape, reverse = writer.code, writer.width, writer.shape, writer.mode == "reverse"
    given, shadows = dict(writer.shadows), [i for i, has in enumerate(shape.shadow) if has]
    numbers = {i: Held(code, writer.params[i], width, given.get(i)) for i, has in enumerate(shape.adjoint) if has}
    result = Held(code, writer.fn_type.ret, width, writer._cotangent) if shape.active else None
    own = {} if isinstance(width, Apart) else {i: _memory(writer, i) for i in shadows}
    apart = {i: _pointers(code, given[i], width) for i in shadows if i not in own}
    with for_range(code, 0, int(width)) as lane:
        for i, view in own.items():
            _move(view, given[i], lane, width, out=False)
        of_lane = {i: view.v for i, view in own.items()} | {i: pointers[lane].v for i, pointers in apart.items()}
        cotangent = result.view[lane].v if reverse and result is not None else writer._cotangent
        if not reverse:
            of_lane |= {i: held.view[lane].v for i, held in numbers.items()}
        writer.begin_lane(lane, of_lane, cotangent)
        body()
        for i, view in own.items():
            _move(view, given[i], lane, width, out=True)
        for i, held in numbers.items() if reverse else ():
            held.view[lane] = Scalar(code, writer.arguments[i].adjoint)
        if not reverse and result is not None:
            result.view[lane] = writer.result().d
    writer.end_lanes(given, numbers, result)


def _memory(writer: Writer, position: int) -> View:
    """Memory for one lane of the shadow of an argument, until the function ends."""
    code, prototype = writer.code, writer.site.prototype
    assert prototype is not None
    param = prototype.params[position]
    array = View(code, writer.values[position], ir_type(param.dtype), [extent_of(writer, e) for e in param.extents])
    memory = code.allocate(code.b, array.size.v, ir_type(param.dtype))
    code.scopes[-1].append(memory)
    return View(code, memory, array.element, (array.size,))


def _pointers(code: Code, pointers: Value, width: int) -> Pointer:
    """The shadow pointers of all lanes in memory."""
    slot = code.stack(ty.array(int(width), ty.PTR))
    code.b.store(pointers, slot)
    return Pointer(code, slot, ty.PTR)


def _move(view: View, whole: Value, lane: Scalar, width: int, *, out: bool) -> None:
    """Copy one lane from shadow memory, or out to it."""
    with for_range(view.code, 0, view.size) as i:
        lanes_of = Pointer(view.code, whole, view.element)
        if out:
            lanes_of[i * int(width) + lane] = view[i]
        else:
            view[i] = lanes_of[i * int(width) + lane]
