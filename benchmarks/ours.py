"""irgrad's derivative of a case, called as a user calls it, and what the report asks of it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.native import HERE, inputs_of

Call = Callable[[], list[Any]]


def kernel(case: Case, **options: Any) -> Any:
    """The kernel object of the case's source. options: of `lib.kernel`"""
    import irgrad

    return irgrad.load(HERE / "kernels" / case.source).kernel(case.function, case.signature, **options)


def derivative(case: Case, function: Any, data: dict[str, Any]) -> tuple[Any, Call]:
    """The derivative object and a call without arguments that returns the derivatives, in the order of `wrt`."""
    from irgrad import engine

    inputs = inputs_of(case.signature, data)
    seeds = tuple(data[name] for name in case.seeds)
    wrt = case.wrt[0] if len(case.wrt) == 1 else case.wrt
    if case.operation in ("grad", "jacfwd"):
        made = getattr(engine, case.operation)(function, wrt=wrt)
        return made, lambda: _listed(made(*inputs))
    if case.operation == "hvp":
        return engine.hvp, lambda: _listed(engine.hvp(function, inputs, seeds[0], wrt=wrt))
    if case.operation == "jvp":
        tangents = [*seeds, *[None] * (len(inputs) - len(seeds))]
        return engine.jvp, lambda: _listed(engine.jvp(function, inputs, tangents)[1])
    if case.operation == "vjp":
        pullback = engine.vjp(function, *inputs, wrt=wrt)[1]
        return pullback, lambda: _listed(pullback(seeds))
    assert case.operation == "rows"
    # Blocks of 2 x 15: observations do not share inputs, so that one cotangent per row of a block gives all blocks.
    rows = np.zeros((2, data["p"], 2))
    for number, row in enumerate(rows):
        row[:, number] = 1.0
    pullback = engine.multi_vjp(function, *inputs, wrt=wrt)[1]
    return pullback, lambda: _listed(pullback(rows))


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def tape_bytes(function: Any) -> int | None:
    """Bytes of tape of the last call of a derivative or program, None where it does not tell."""
    value = getattr(function, "tape_bytes", None)
    value = value() if callable(value) else value
    return None if value is None else int(value)


class Entries:
    """The native entries that one call ran, on that call's own buffers: no allocation, no checks, no copies.

    Calling it runs them again. Shadows then start from what the last run left, which changes values but no work;
    `buffers` and what they held `before` are there for kernels in place, whose work it may change.
    """

    def __init__(self, call: Call) -> None:
        from irgrad.engine.kernel.frames import MISSED, Calls
        from irgrad.engine.kernel.programs import Program

        ran: list[tuple[Any, list[Any]]] = []
        self.before: list[Any] = []
        original = Program.enter

        def recording(program: Any, frame: Any, buffers: list[Any]) -> Any:
            ran.append((program, list(buffers)))
            self.before += [buffer.copy() for buffer in buffers]
            return original(program, frame, buffers)

        ready = Calls.__call__  # calls of small kernels enter by frames of their own
        Program.enter = recording  # type: ignore[method-assign]
        Calls.__call__ = lambda *_: MISSED  # type: ignore[method-assign]
        try:
            call()
        finally:
            Program.enter = original  # type: ignore[method-assign]
            Calls.__call__ = ready  # type: ignore[method-assign]
        if not ran:
            raise RuntimeError("the call entered no native code, so there is nothing to time")
        self.programs = [program for program, _ in ran]
        self.buffers = [buffer for _, full in ran for buffer in full]
        self._frames = [(ctypes.c_void_p * len(full))(*(a.ctypes.data for a in full)) for _, full in ran]
        self._calls = [(p.entry, ctypes.addressof(f)) for p, f in zip(self.programs, self._frames, strict=True)]

    def __call__(self) -> None:
        for entry, address in self._calls:
            entry(address)

    def tape_bytes(self) -> int | None:
        """The largest tape of the programs that ran."""
        known = [size for size in map(tape_bytes, self.programs) if size is not None]
        return max(known) if known else None
