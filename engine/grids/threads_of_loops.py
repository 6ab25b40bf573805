"""Which loops of a kernel many threads share, and why the others are none of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from irgrad.engine.ir.locations import locate
from irgrad.engine.normalise.iterations import LOOP, outline_iterations

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel

__all__ = ["SharedLoops", "for_device", "shared_loops"]


@dataclass(frozen=True, slots=True)
class SharedLoops:
    """shared: places of the loops; others: for each other outermost loop its place and why one thread runs it."""

    shared: tuple[str, ...]
    others: tuple[str, ...]


@lru_cache(maxsize=256)
def for_device(kernel: Kernel) -> Kernel:
    """The kernel as devices have it: its tape is planned with their costs, independent loops call a function for each
    iteration, and where the source promises something of a loop none is vectorised."""
    return kernel.with_options(device=True)


@lru_cache(maxsize=256)
def shared_loops(kernel: Kernel) -> SharedLoops:
    """The loops of a kernel."""
    from irgrad.engine.ir.text.reader import read

    stage = for_device(kernel).primal.stage
    module = read(stage.text, roots=[stage.name])
    root = module.functions[stage.name]
    calls = [i for i in root.instructions() if i.is_call and LOOP in (i.callee_name or "")]
    shared = tuple(locate(module, call) or "a loop" for call in calls)
    return SharedLoops(shared, tuple(outline_iterations(module, root)))
