"""The first place of a program where a number is not finite: in its value, else in its derivatives.

The function in normal form, its forward and its reverse derivative run in turn with a look at each result of floating-
point arithmetic and of calls: derivatives keep the source locations of what they derive. Vectors are not looked at.
"""

from __future__ import annotations

import ctypes
import re
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from irgrad.engine.codegen import symbols
from irgrad.engine.ir.locations import place_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.run import Run
from irgrad.engine.kernel.select import active_outputs, at_types, selected
from irgrad.engine.kernel.trees import TreeKernel
from irgrad.engine.signature.parameter import Wrt

__all__ = ["NonFinite", "first_nonfinite", "first_nonfinite_of"]

_SEEN = "irgrad.nonfinite"
_seen = (ctypes.c_int64 * 2)()
_lock = threading.Lock()
_RESULT = re.compile(
    r"^  (?P<name>%\S+) = (?:(?:tail |notail )?(?P<call>call)|(?P<op>f(?:add|sub|mul|div|rem|neg)))"
    r"(?: [a-z_]+(?:\([^)]*\))?)*? (?P<type>double|float) (?P<rest>[^\n]*)$"
)
_AT = re.compile(r"!dbg (!\d+)")
_CALLEE = re.compile(r"@\"?(?:llvm\.)?([\w.$]+?)(?:\.f(?:32|64))?\"?\(")
_WATCH = f"""
@{_SEEN} = external global [2 x i64]
define internal void @irgrad.watch(double %x, i64 %number) nounwind {{
  %nought = fsub double %x, %x
  %bad = fcmp uno double %nought, %nought
  br i1 %bad, label %look, label %out
look:
  %before = load i64, ptr @{_SEEN}, align 8
  %first = icmp eq i64 %before, 0
  br i1 %first, label %take, label %out
take:
  store i64 %number, ptr @{_SEEN}, align 8
  %place = getelementptr i64, ptr @{_SEEN}, i64 1
  store double %x, ptr %place, align 8
  br label %out
out:
  ret void
}}
"""


@dataclass(frozen=True, slots=True)
class NonFinite:
    """A number that is not finite.

    what: "value" or "derivative"; operation: the function that was called, or the arithmetic ("fdiv"); where: its place
    `file.c:12:7`, "" without debug locations; line: the source there, "" where it is not known
    """

    what: str
    operation: str
    number: float
    where: str
    line: str = ""

    def __str__(self) -> str:
        subject = "the value" if self.what == "value" else "the value is finite, the derivative"
        place = f" at {self.where}" if self.where else ""
        return f"{subject} of `{self.operation}` is {self.number}{place}{':  ' if self.line else ''}{self.line}"


def first_nonfinite(
    kernel: Kernel | TreeKernel[Kernel], *args: Any, wrt: Wrt = None, seed: int = 0, **kwargs: Any
) -> NonFinite | None:
    """Where a value, or else a derivative, is first infinite or NaN at these arguments; None where all are finite.

    wrt:  arguments of the derivative, all floating-point ones by default
    seed: of the random tangents and cotangents

    The kernel and its derivatives run with a look at each number, which is slow, and made for this call. Raises as the
    kernel does.

        >>> print(irgrad.first_nonfinite(power, 1e200, 5))
        the value of `fmuladd` is inf at <string>:3:73:  ...
    """
    if isinstance(kernel, TreeKernel):
        given, wrt, kernel = kernel.named(args, kwargs), kernel.float_leaves(wrt), kernel.kernel
        args, kwargs = tuple(given[p.name] for p in kernel.signature.arguments), {}
    if hasattr(kernel, "kernel_for"):
        (kernel, args), kwargs = at_types(kernel, args, kwargs), {}
    positions, _ = selected(kernel, wrt, None, all_floats=True)
    return first_nonfinite_of(kernel, kernel.bind(args, kwargs), positions, seed)


def first_nonfinite_of(kernel: Kernel, bound: Bound, positions: tuple[int, ...], seed: int = 0) -> NonFinite | None:
    """`first_nonfinite` of bound arguments."""
    active = (*positions, *active_outputs(kernel))
    rng = np.random.default_rng(seed)
    primal = kernel.primal
    return (_watched(primal, bound, rng, "value") or _watched(primal.jvp(active), bound, rng, "derivative")
            or _watched(primal.pullback(active), bound, rng, "derivative"))  # fmt: skip


def _watched(program: Program, bound: Bound, rng: np.random.Generator, what: str) -> NonFinite | None:
    stage = program.stage
    text, rows = _with_watch(stage.text)
    watched = program.with_text(text)
    copied = Bound([None if b is None else b.copy() for b in bound.buffers], bound.sizes)
    run = Run(watched, copied, {})
    start = {number: rng.standard_normal(run.buffers[number].shape) for number, slot in enumerate(watched.slots)
             if slot.steps and slot.role != "out" and slot.dtype.is_float and slot.index >= 0}  # fmt: skip
    with _lock:
        symbols.define(_SEEN, ctypes.addressof(_seen))
        _seen[0] = 0
        run(start)
        number, value = int(_seen[0]), float(ctypes.c_double.from_buffer(_seen, 8).value)
    if not number:
        return None
    operation, at, _ = rows[number - 1]
    operation = next((name for name, place, called in rows if called and place and place == at), operation)
    module = read(text, roots=[stage.name])
    where = place_text(module, at) if at else ""
    return NonFinite(what, operation, value, where, _line(dict(program.source.code), where))


def _with_watch(text: str) -> tuple[str, list[tuple[str, str, bool]]]:
    """The text of a module that looks at its numbers; of each the operation, its location, whether it is a function."""
    rows: list[tuple[str, str, bool]] = []
    lines = []
    for line in text.splitlines():
        lines.append(line)
        found = _RESULT.match(line)
        if found is None:
            continue
        callee = _CALLEE.search(found["rest"]) if found["call"] else None
        at = _AT.search(found["rest"])
        rows.append((callee[1] if callee else found["op"] or "a call", at[1] if at else "", callee is not None))
        value, name = found["name"], f"%irgrad.watched.{len(rows)}"
        if found["type"] == "float":
            lines.append(f"  {name} = fpext float {value} to double")
            value = name
        lines.append(f"  call void @irgrad.watch(double {value}, i64 {len(rows)})")
    return "\n".join(lines) + _WATCH, rows


def _line(known: dict[str, str], where: str) -> str:
    """The source line of a place, of a text that is known or a file that is there."""
    from pathlib import Path

    name, _, rest = where.partition(":")
    number = rest.partition(":")[0]
    try:
        text = known[name] if name in known else Path(name).read_text(encoding="utf-8", errors="replace")
        return text.splitlines()[int(number) - 1].strip()
    except (OSError, ValueError, IndexError):
        return ""
