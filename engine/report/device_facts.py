"""What is known of a derivative on a GPU before it runs there: registers, memory, traffic, where samples part.

The derivative is compiled as one kernel for a batch of samples, one a thread, whose sizes come with the launch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from irgrad.engine.kernel.select import scalar_output
from irgrad.engine.report.facts import DeviceFacts

if TYPE_CHECKING:
    from irgrad.engine.grids.grid_text import GridParameter, GridSlot
    from irgrad.engine.kernel.programs import Program
    from irgrad.engine.report.derivation import Question

__all__ = ["device_facts", "traffic"]

_ACCESS = re.compile(r"^\s+(?:@!?%p\d+ )?(ld|st|atom|red)\.([\w.]+)", re.M)
_BYTES = re.compile(r"(?:v([24])\.)?[bfsu](8|16|32|64|128)$")
_ELSEWHERE = ("param", "const", "shared")


def device_facts(asked: Question, target: str) -> DeviceFacts:
    """What a target of NVIDIA's says of a derivative. Raises Unsupported for what it cannot run, LoadError for an
    architecture that there is not, or without libdevice where that is needed."""
    from irgrad.engine.codegen import nvptx
    from irgrad.engine.grids.grid import open_grid
    from irgrad.engine.grids.occupancy import resident_threads
    from irgrad.engine.grids.threads_of_loops import for_device, shared_loops

    program = asked.of(for_device(asked.kernel).primal)
    nvptx.nvidia(target)
    parameters, slots = _arranged(asked, program)
    code = nvptx.ptx(open_grid(program, "explained", parameters, slots), ["explained"], target)
    used = nvptx.resources(code, target) if nvptx.ptxas() is not None else {}
    loops = shared_loops(asked.kernel)
    return DeviceFacts(
        target=target, registers=used.get("registers"), stack=used.get("stack"),
        spilled=None if not used else used["spilled"] + used["loaded"],
        resident=resident_threads(used["registers"]) if used else None, **traffic(code),
        divergent=_divergent(program, parameters, slots), shared_loops=loops.shared, other_loops=loops.others,
    )  # fmt: skip


def traffic(code: str) -> dict[str, int]:
    """Instructions of PTX that read, write or add to memory of the device, and those that use the thread's own stack;
    bytes of the first two together, each counted once."""
    found = {"loads": 0, "stores": 0, "atomics": 0, "stack_accesses": 0, "bytes_once": 0}
    for word, rest in _ACCESS.findall(code):
        kinds = rest.split(".")
        if any(kind in _ELSEWHERE for kind in kinds):
            continue
        if "local" in kinds:
            found["stack_accesses"] += 1
            continue
        found["loads" if word == "ld" else "stores" if word == "st" else "atomics"] += 1
        size = _BYTES.search(rest)
        if size is not None and word in ("ld", "st"):
            found["bytes_once"] += int(size[1] or 1) * int(size[2]) // 8
    return found


def _arranged(asked: Question, program: Program) -> tuple[list[GridParameter], list[GridSlot]]:
    """The pointers of a program as those of a batch: every array and float has a row for each sample, integers are the
    same for all, and the cotangent of a scalar is 1."""
    from irgrad.engine.grids.export import ONE
    from irgrad.engine.grids.grid_text import GridParameter, GridSlot
    from irgrad.engine.signature.dtypes import DTYPES

    parameters: list[GridParameter] = []
    slots: list[GridSlot] = []
    target = scalar_output(asked.kernel) if asked.derivative in ("grad", "value_and_grad") else None
    for slot in program.slots:
        shape = tuple(slot.parameter.shape or ())
        if slot.role == "scratch":
            slots.append(GridSlot(slot.name, slot.dtype, "zero", shape))
            continue
        if slot.index == target and slot.steps:
            slots.append(GridSlot(slot.name, slot.dtype, "bits", bits=ONE[slot.dtype.name]))
            continue
        whole = slot.role == "in" and not slot.parameter.is_array and not slot.dtype.is_float
        parameters.append(GridParameter(slot.name, slot.dtype, by_value=whole))
        if slot.role == "in":
            slots.append(GridSlot(slot.name, slot.dtype, "in place", shape, slot.name, () if whole else (True,)))
        else:
            slots.append(GridSlot(slot.name, slot.dtype, "keep", shape, target=slot.name))
    said = {p.name for p in parameters if p.by_value}
    sizes = {name for slot in slots for extent in slot.shape for name in extent.names()} - said
    return [*parameters, *(GridParameter(name, DTYPES["i64"], by_value=True) for name in sorted(sizes))], slots


def _divergent(program: Program, parameters: Sequence[GridParameter], slots: Sequence[GridSlot]) -> tuple[str, ...]:
    """Lines with a branch or a loop's end that samples may decide in different ways: the condition depends on what
    differs between them. Loops that a sample's own arrays make, which the source has not, have no lines."""
    from irgrad.engine.grids.grid import sample_module
    from irgrad.engine.ir.locations import locate
    from irgrad.engine.widen.uniformity import Uniformity

    module = sample_module(program, "explained", parameters, slots, [""])
    root = module.functions["explained.sample"]
    vary = [n for n, p in enumerate(parameters) if not p.by_value]
    found = Uniformity(root, vary, [0] * len(root.args), strict=False)
    branches = (block.terminator for block in root.blocks if block.terminator.operands)
    lines = [locate(module, branch) for branch in branches
             if len(branch.blocks) > 1 and branch.operands[0] in found.varying]  # fmt: skip
    return tuple(dict.fromkeys(filter(None, lines)))
