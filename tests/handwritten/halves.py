"""The two halves of a root whose tape is the caller's, as machine code, run apart on buffers that have moved."""

from __future__ import annotations

import ctypes
import json
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
from handwritten.made import Made, module_of

from irgrad.engine.differentiate.shared.request import Request
from irgrad.engine.differentiate.tape.tape_size import Room
from irgrad.engine.differentiate.with_tape import reverse_name
from irgrad.engine.pipeline.derivatives import derive


class Halves:
    """Both functions of `void f(double *x, double *y, long *n)` as machine code."""

    def __init__(self, source: str, width: int = 1, roles: str = "ioc") -> None:
        self.module = module_of(source, "f")
        self.roles = roles
        outputs = tuple(i for i, role in enumerate(roles) if role in "ob")
        activity = tuple("const" if role == "c" else "dup" for role in roles)
        request = Request("f", "forward_with_tape", activity, width=width, outputs=outputs)
        self.pair = derive(self.module, request)
        self.note: dict[str, str] = json.loads(self.pair.note)

    def bytes(self, n: int) -> int:
        found = Room.from_text(self.note["room"]).bytes({len(self.roles) - 1: n})
        assert found is not None
        return found

    def half(self, name: str) -> Made:
        made = Made(self.module, self.pair)  # type: ignore[arg-type]
        made.derived = Named(name)  # type: ignore[assignment]
        return made


class Named:
    """What `Made` wants to know."""

    def __init__(self, name: str) -> None:
        self.name = name


def read_only(data: np.ndarray) -> tuple[np.ndarray, Any]:
    """A copy at another address in pages that cannot be written."""
    memory = mmap.mmap(-1, max(data.nbytes, 1))
    copy = np.frombuffer(memory, np.uint8, data.nbytes)
    copy[:] = data
    address = ctypes.c_void_p(copy.__array_interface__["data"][0])
    assert ctypes.CDLL(None).mprotect(address, ctypes.c_size_t(max(data.nbytes, 1)), 1) == 0
    return copy, memory


def run_halves(made: Halves, x: np.ndarray, cotangents: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """y, and the gradient for each cotangent from a tape that was made once."""
    n = len(x)
    raw = np.full(made.bytes(n) + 192, 0xA5, np.uint8)
    first = 64 - raw.ctypes.data % 64
    tape = raw[first : first + made.bytes(n)]
    y, size, count = np.zeros(n), np.array([tape.nbytes]), np.array([n])
    made.half(made.pair.name)(x.copy(), y, count, tape, size)
    assert (raw[:first] == 0xA5).all() and (raw[first + tape.nbytes :] == 0xA5).all()
    moved, memory = read_only(tape)
    tape[:] = 0x5A
    reverse, gradients = made.half(reverse_name(made.pair.note)), []
    for w in cotangents:
        shape = w.shape[1:]
        dx, dy = np.zeros((n, *shape)), w.copy()
        reverse(x.copy(), dx, dy, count.copy(), moved)
        gradients.append(dx)
    del moved, memory
    return y, gradients


def complex_step(f: Callable[[Any], Any], x: np.ndarray, w: np.ndarray) -> np.ndarray:
    steps = [x + 1e-40j * row for row in np.eye(len(x))]
    return np.array([np.dot(w, np.imag(f(z))) / 1e-40 for z in steps])
