"""Widening first, differentiating then: for derivatives that cannot be widened themselves.

Where samples leave loops at different times, the function of one sample runs until the last has left
(`widen.loop_masks`), and is then an ordinary function of vectors with one control flow, which is differentiated
like any other. A derivative made first has a tape of another length for each sample, and goes back from another end.

Lanes also compute sides of branches that their samples do not take. What is infinite there meets an adjoint that is
zero: such products are zero (`strong_zero`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from irgrad.engine.kernel.programs import Program
from irgrad.rules.errors import Unsupported

__all__ = ["widened_first"]


def widened_first(program: Program, uses: Sequence[str], lanes: int, *, paying: bool) -> tuple[str, str]:
    """Name and IR of the derivative of the widened function, with slots as `program` has them.

    uses: of the program's slots (see `blocks`). Raises Unsupported, or what differentiation raises.
    """
    from irgrad.engine.codegen.prepare import prepare
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.widen.widening import widen

    chain = _chain(program)
    root = chain[0]
    _check(program, chain, uses)
    varying = [n for n, slot in enumerate(root.slots) if _use(program, uses, slot.index) != "in one"]
    module = read(root.stage.text, roots=[root.stage.name])
    name = widen(module, root.stage.name, varying, [s.dtype.size for s in root.slots], lanes, paying=paying)
    text = to_text(module)
    for parent, child in pairwise(chain):
        name, text = _derived(parent, child, name, prepare(text, [name]))
    return name, text


def _chain(program: Program) -> list[Program]:
    """The program and what it is derived from, the function itself first."""
    out = [program]
    while out[-1].parent is not None:
        out.append(out[-1].parent)
    return out[::-1]


def _use(program: Program, uses: Sequence[str], index: int) -> str:
    number = program.find(index)
    return "in one" if number is None else uses[number]


def _check(program: Program, chain: Sequence[Program], uses: Sequence[str]) -> None:
    for parent, child in pairwise(chain):
        step = child.word[-1]
        if step.width > 1 or child.rules is not None:
            raise _refused("it has several directions at once, or rules of the user")
        for number in step.active:
            slot = parent.slots[number]
            if not slot.steps and _use(program, uses, slot.index) == "in one":
                raise _refused(f"`{slot.name}` is differentiated and the same for all samples")


def _derived(parent: Program, child: Program, name: str, text: str) -> tuple[str, str]:
    from irgrad.engine.differentiate.shared.request import Request
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read
    from irgrad.engine.pipeline.derivatives import derive

    step = child.word[-1]
    module = read(text, roots=[name])
    outputs = tuple(n for n, s in enumerate(parent.slots) if s.role != "in" and n != parent.status_slot)
    request = Request(
        name, step.derivative,
        activity=tuple("dup" if number in step.active else "const" for number in range(len(parent.slots))),
        elements=tuple(slot.dtype.memory if slot.dtype.is_float else "" for slot in parent.slots),
        discard=outputs if step.derivative in ("jvp_only", "pullback") else (),
        strict_fp=parent.source.options.strict_fp, costs=parent.source.options.costs,
        strong_zero=True,  # 0 x inf in lanes whose value is not used
    )  # fmt: skip
    made = derive(module, request)
    if tuple(made.scratch) != tuple(child.stage.scratch):
        raise _refused("its derivative needs other memory than that of one sample")
    return made.name, to_text(module)


def _refused(because: str) -> Unsupported:
    return Unsupported("this cannot be widened before it is differentiated", because=because,
                       fix='width="auto" runs sample after sample where samples cannot be lanes')
