"""Places and names of what the analyses speak of: IR values, memory, loops, in the words of the user's source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from irgrad.engine.analyses.activity.dataflow import Returned
from irgrad.engine.analyses.control.places import loop_places
from irgrad.engine.analyses.memory.objects import Object
from irgrad.engine.ir.locations import function_location, locate
from irgrad.engine.ir.model import Argument, Block, Function, Instruction, Module, Value
from irgrad.engine.report.facts import Place, Step

if TYPE_CHECKING:
    from irgrad.engine.analyses.activity.dataflow import Node
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.kernel.kernel import Kernel

__all__ = ["Words", "place_of"]

_PLACE = re.compile(r"(.*?):(\d+)(?::(\d+))?(?: \(inlined at .*\))?$")
_NORMAL = ".normal"


def place_of(text: str) -> Place:
    """A place from `file:line:column`, as `locate` gives it; no place for line 0, which the compiler made up."""
    found = _PLACE.match(text)
    if found is None or found[2] == "0":
        return Place()
    return Place(found[1], int(found[2]), int(found[3] or 0))


class Words:
    """Names for one kernel and one module."""

    def __init__(self, kernel: Kernel, module: Module, root: Function) -> None:
        self.kernel = kernel
        self.module = module
        self.root = root
        self.names = [slot.name for slot in kernel.primal.slots]

    # -- functions and arguments ---------------------------------------------------------------------------------

    def function(self, fn: Function) -> str:
        """The name of the C function."""
        return (fn.name or "").removesuffix(_NORMAL)

    def defined(self, fn: Function) -> Place:
        """Where a function is defined; that of the kernel, whose body is inlined, is not told."""
        return place_of(function_location(self.module, fn))

    def argument(self, arg: Argument) -> str:
        """The user's name of an argument."""
        if arg in self.root.args:
            return self.names[arg.index] if arg.index < len(self.names) else "return"
        return arg.name or f"argument {arg.index}"

    def scalar(self, value: Value) -> str | None:
        """The name of the integer argument that a value is, None where it is none."""
        if isinstance(value, Argument):
            return self.argument(value) if value.type.is_int and value not in self.root.args else None
        if not isinstance(value, Instruction) or value.opcode != "load" or not value.type.is_int or value.volatile:
            return None
        source = value.operands[0]
        if not isinstance(source, Argument) or source not in self.root.args:
            return None
        slots = self.kernel.primal.slots
        slot = slots[source.index] if source.index < len(slots) else None
        return slot.name if slot is not None and slot.role == "in" and not slot.parameter.is_array else None

    # -- values --------------------------------------------------------------------------------------------------

    def place(self, instr: Instruction) -> Place:
        """Where an instruction stands in the source."""
        return place_of(locate(self.module, instr))

    def value_place(self, value: object, loop: Loop | None = None) -> Place:
        """Where a value comes from; of one that an iteration hands on to the next, which has no line, that loop."""
        found = self.place(value) if isinstance(value, Instruction) else Place()
        if found or loop is None or not isinstance(value, Instruction) or value.opcode != "phi":
            return found
        return self.loop_place(loop)[0] if value.block is loop.header else found

    def opcode(self, value: Instruction) -> str:
        """What computes a value; the name of the function for a call, of intrinsics the part that tells them apart."""
        if not value.is_call:
            return value.opcode
        name = value.callee_name or "call through a pointer"
        return name.split(".")[1] if name.startswith("llvm.") else name

    def instruction(self, value: Instruction) -> str:
        """An instruction in a few words, with its line."""
        name = f" %{value.name}" if value.name else ""
        place = self.place(value)
        return f"{self.opcode(value)}{name}" + (f" (line {place.line})" if place else "")

    def step(self, node: Node) -> Step:
        """A station of a chain of the activity analysis."""
        if isinstance(node, Returned):
            return Step("argument", f"the result of {self.function(node.function)}", Place())
        if isinstance(node, Object):
            if isinstance(node.site, Argument):
                return Step("argument", self.argument(node.site), Place())
            at = self.place(node.site) if isinstance(node.site, Instruction) else Place()
            return Step("memory", f"memory `{node}`", at)
        if isinstance(node, Argument):
            return Step("argument", self.argument(node), Place())
        if isinstance(node, Instruction):
            return Step("value", self.instruction(node), self.place(node))
        return Step("value", f"`{node.name}`" if isinstance(node, Value) and node.name else "a constant", Place())

    # -- loops ---------------------------------------------------------------------------------------------------

    def loop_place(self, loop: Loop) -> tuple[Place, int]:
        """Where a loop begins, and its last line (0 where that is not known)."""
        found = [place_of(text) for text in loop_places(self.module, loop)]
        return (found[0] if found else Place()), (found[1].line if len(found) > 1 else 0)

    def block(self, block: Block) -> str:
        """A block in words."""
        return f"block {block.name or '?'}"
