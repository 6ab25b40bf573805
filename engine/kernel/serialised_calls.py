"""Functions that keep data in global variables: their calls are serialised.

A C function with a static buffer is right in a program with one thread. Called from several Python threads (the GIL is
released while it runs), by a batch on several cores or by JAX on several devices it would run beside itself and give
wrong numbers in silence. Thread-local variables are no better: in a kernel all threads have one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

from irgrad.engine.runtime.arena import CONSTANT_SHADOW

__all__ = ["in_turn", "shared_state"]

_GLOBAL = re.compile(r"^@(?P<name>\"[^\"]+\"|[\w.$-]+) = (?P<head>[^\n]*?\bglobal) ", re.M)
_OWN = ("llvm.", "irgrad.tape.", "irgrad_tape_", "irgrad.kept.")


def shared_state(text: str) -> str:
    """Why calls must not run at the same time, "" when they may: the function writes, or may write, memory that they
    share."""
    for found in _GLOBAL.finditer(text):
        name, head = found["name"], found["head"].split()
        if name.startswith(_OWN) or _of_constant(name):
            continue
        if "external" in head and _only_loaded(text, name):
            continue
        return f"it uses the global variable `{name}`, which is not constant"
    return ""


def _of_constant(name: str) -> bool:
    """The shadow of a constant; that of such a shadow, in a second derivative, is made anew in each call."""
    return name.startswith("irgrad.") and CONSTANT_SHADOW in name and name.count(".shadow.") == 1


def _only_loaded(text: str, name: str) -> bool:
    """Whether a global of another module is read and nothing else."""
    uses = re.finditer(rf"^(?P<line>[^@\n][^\n]*)@{re.escape(name)}(?![\w.$-])", text, re.M)
    return all(" load " in use["line"] for use in uses)


def in_turn(entry: Callable[[int], Any], text: str) -> Callable[[int], Any]:
    """The entry of a module, called by one thread at a time where `shared_state` says that it has to be."""
    if not shared_state(text):
        return entry
    lock = threading.RLock()  # a rule in Python may call the function again

    def call(address: int) -> Any:
        with lock:
            return entry(address)

    return call
