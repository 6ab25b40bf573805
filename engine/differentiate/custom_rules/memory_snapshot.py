"""What reverse functions in C find behind pointers: the memory as the call left it.

Without a tape they read the memory itself. Where something writes it between the call and its reverse, they get a copy,
if it is known how much that is: arrays of a prototype, numbers by reference, variables and arrays of known size.
Otherwise the call is refused: what they would read is not what the function computed with. So are variables of the
program that the function computed with, where they change.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from irgrad.engine.analyses.memory.bodies import variables
from irgrad.engine.differentiate.shared.refuse import place
from irgrad.engine.ir import types as ty
from irgrad.rules.errors import RuleError

if TYPE_CHECKING:
    from irgrad.engine.analyses.evolution.clobber import Clobber
    from irgrad.engine.differentiate.custom_rules.writer import Writer
    from irgrad.engine.ir.model import Instruction, Value

__all__ = ["After", "as_left", "check_variables"]


class After:
    """What happens to the memory that a call is given, until the reverse sweep has passed."""

    def __init__(self, clobber: Clobber, call: Instruction) -> None:
        self.clobber = clobber
        self.call = call

    def __call__(self, position: int, when: str) -> bool:
        """Whether it may change after ("after") or in ("before") the call."""
        return self.clobber.call_clobbered(self.call, self.call.args[position], itself=when == "before")

    def own(self, position: int) -> int:
        """The objects that an argument may point to."""
        pointers = self.clobber.pointers
        return pointers.expand(pointers.of(self.call.args[position]))

    def below(self, position: int) -> int:
        """The objects that pointers in those lead to."""
        own = self.own(position)
        return self.clobber.pointers.reachable(own) & ~own

    def change(self, objects: int) -> bool:
        """Whether one of them may change after the call."""
        return bool(objects) and self.clobber.changed_after(self.call, objects, itself=False)


def as_left(writer: Writer, position: int, reverse: str, fix: str = "") -> Value:
    """A pointer argument for a reverse function in C that reads it.

    fix: the way out where the memory cannot be kept; "" where the function has a tape and sees to that itself
    """
    after, direct = writer.clobbered, writer.values[position]
    assert isinstance(after, After)
    if fix and after.change(after.below(position)):
        what = f"memory that pointers in `{writer.name(position)}` lead to"
        raise _gone(writer, after.below(position), what, reverse, fix)
    if not after.change(after.own(position)):
        return direct
    count, element = _extent(writer, position)
    if count is not None:
        return writer.contents(position, "after", count, element)
    if fix:
        raise _gone(writer, after.own(position), f"the memory behind `{writer.name(position)}`", reverse, fix)
    return direct


def check_variables(writer: Writer, reverse: str, reads: Collection[str]) -> None:
    """Raise RuleError for a variable of the program that the function reads, that its reverse reads as well, and that
    changes in between. What the function writes itself is its state, not an input."""
    after, unit = writer.clobbered, writer.unit
    assert isinstance(after, After)
    read, written = variables(unit.module, writer.site.callee)
    for name in (name for name in read if name in reads and name not in written):
        objects = after.clobber.pointers.expand(after.clobber.pointers.of(unit.module.globals[name]))
        if after.change(objects):
            raise _gone(writer, objects, f"the variable `{name}`", reverse,
                        f"hand it to `{writer.site.callee.name}` as an argument, or keep it on the tape")


def _extent(writer: Writer, position: int) -> tuple[Any, ty.Type]:
    """How many elements there are, and of which type; None where that is not known."""
    from irgrad.engine.differentiate.custom_rules.arguments import ArrayArgument, Reference

    argument = writer.arguments[position]
    if isinstance(argument, ArrayArgument):
        assert argument.element is not None
        return argument.size, argument.element
    if isinstance(argument, Reference):
        return 1, argument.v.type
    places = writer.unit.types.ranges.places(writer.site.call.args[position])
    objects = writer.unit.pointers.objects
    rooms = {(objects[bit].size or 0) - at.start if at.exact else 0 for bit, at in places.items()}
    size = rooms.pop() if len(rooms) == 1 else 0
    return (size if size > 0 else None), ty.I8


def _gone(writer: Writer, objects: int, what: str, reverse: str, fix: str) -> RuleError:
    after, call = writer.clobbered, writer.site.call
    assert isinstance(after, After)
    by = after.clobber.changing(call, objects)
    return RuleError(f"`{reverse}` would find other values than `{writer.site.callee.name}` did",
                     where=place(writer.unit, call),
                     which=f"{what}; written again in {place(writer.unit, by) if by is not None else 'a caller'}",
                     because="a reverse function reads memory as it is in the reverse sweep, and how much of it to "
                     "keep is not known",
                     fix=fix)  # fmt: skip
