"""Verdicts on kernels, how far numbers are apart, and worker processes that may die."""

from __future__ import annotations

import faulthandler
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from oracle.generator import Kernel

SECONDS = 180.0  # of silence: a hang, however busy the machine is (a kernel takes about a quarter of a second)


@dataclass(frozen=True)
class Verdict:
    """`kind` is ok, wrong, refused, error, crash, hang or rejected (the oracle cannot judge)."""

    name: str
    kind: str
    detail: str = ""

    @property
    def bad(self) -> bool:
        """Counts against the engine."""
        return self.kind not in ("ok", "rejected")


def count(check: Callable[[int], str], seeds: range) -> int:
    """Check seeds one after the other and print the findings; 1 when any is wrong. check: says "right", or "refused: "
    with the refusal; anything else, and an exception, is a finding."""
    begin, tally = time.time(), {"right": 0, "refused": 0, "wrong": 0}
    for seed in seeds:
        try:
            said = check(seed)
        except Exception as error:  # a crash is a finding
            said = f"{type(error).__name__}: {error}"
        kind = said.partition(":")[0] if said.startswith(("right", "refused")) else "wrong"
        tally[kind] += 1
        if kind != "right":
            print(seed, said, flush=True)
        if seed % 50 == 49:
            print(f"{seed + 1}: {tally} {time.time() - begin:.0f} s", flush=True)
    print(tally)
    return 1 if tally["wrong"] else 0


def flat(x: Any) -> Any:
    """As a list of doubles."""
    return np.asarray(x, dtype=float).reshape(-1)


def gap(got: Any, want: Any) -> float:
    """Largest difference relative to the size of the whole array (at least 1)."""
    got, want = flat(got), flat(want)
    if got.shape != want.shape:
        return float("inf")
    if not want.size:
        return 0.0
    gap = np.abs(got - want)
    return float("inf") if np.isnan(gap).any() else float(gap.max() / max(1.0, np.abs(want).max()))


def tolerance_of(kernel: Kernel) -> float:
    """1e-10, or what single precision allows."""
    return 3e-4 if kernel.has_f32 else 1e-10


def _child(work: Callable[..., None], items: list[Any], pipe: Any) -> None:
    faulthandler.disable()  # a death is a verdict, the stack of the runner says nothing about it
    work(items, pipe.send)
    pipe.send(None)


def in_workers(
    work: Callable[[list[Any], Callable[[Any], None]], None], items: list[Any], seconds: float = SECONDS
) -> list[Verdict]:
    """Run `work(items, report)` in a child process; when it dies or hangs, note it and go on with the rest."""
    context = multiprocessing.get_context("fork")
    verdicts: list[Verdict] = []
    left = list(items)
    while left:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_child, args=(work, left, theirs))
        child.start()
        theirs.close()
        current, ending = None, "crash"
        try:
            while True:
                if not ours.poll(seconds):
                    ending = "hang"
                    break
                message = ours.recv()
                if message is None:
                    ending = ""
                    break
                if isinstance(message, Verdict):
                    verdicts.append(message)
                    left = [k for k in left if k.name != message.name]
                    current = None
                else:
                    current = message
        except EOFError:
            pass
        if ending == "hang":
            child.kill()
        child.join()
        ours.close()
        if not ending:
            break
        name = current or left[0].name
        verdicts.append(Verdict(name, ending, f"exit code {child.exitcode}"))
        left = [k for k in left if k.name != name]
    return verdicts
