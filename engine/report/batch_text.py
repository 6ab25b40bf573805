"""How a batch runs its samples, as text: the reason as a line of the source, and what to change there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irgrad.engine.batches.batched import Batched, batch
from irgrad.engine.report.sources import source_texts
from irgrad.engine.report.words import place_of

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel

__all__ = ["explain_batch"]


def explain_batch(batched: Batched | Kernel, *args: Any, **kwargs: Any) -> str:
    """How a batched function runs its samples, and why, as a text for people.

    batched: what `batch`, `batch_grad` or `batch_value_and_grad` made, or a kernel (which stands for `batch(kernel)`)
    args:    arguments of a call; nothing runs. Raises as the call does

    Where samples cannot run side by side, `at` is the line of the source that keeps them from it and `to change` what
    to write there.

        >>> print(irgrad.explain_batch(irgrad.batch_grad(f), np.ones(100), 3.0))
        <batch_grad_product of f64(f64 x, f64 y)>
          scalars: blocks of 64 samples in a loop that LLVM turns into vector code
          because all arguments are scalars and nothing loops
          threads: all cores when it takes long enough
    """
    if not isinstance(batched, Batched):
        batched = batch(batched)
    strategy = batched.strategy_at(*args, **kwargs)
    how = {
        "scalars": f"scalars: blocks of {strategy.lanes} samples in a loop that LLVM turns into vector code",
        "lanes": f"lanes: {strategy.lanes} samples side by side in vectors",
        "loop": "loop: sample after sample",
    }[strategy.name]
    threads = strategy.serial and f"one thread: {strategy.serial}"
    limit = "all cores when it takes long enough" if batched.threads is None else f"{batched.threads}"
    lines = [repr(batched), how, f"because {strategy.why}"]
    if strategy.at:
        lines.append(f"at {strategy.at}{_quoted(batched.kernel, strategy.at)}")
    if strategy.change:
        lines.append(f"to change: {strategy.change}")
    return "\n  ".join([*lines, f"threads: {threads or limit}"])


def _quoted(kernel: Kernel, at: str) -> str:
    """The text of the line, "" where the source cannot be read."""
    place = place_of(at)
    for text in source_texts(kernel, [place]):
        if 0 < place.line <= len(text.lines):
            return f": `{text.lines[place.line - 1].strip()}`"
    return ""
