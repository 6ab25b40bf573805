"""Random kernels inside C programs that ask for their derivatives themselves, through `irgrad run`.

A program holds many kernels. For each it writes, as doubles to the file of its last argument: the value, tangents, the
gradient, both by two halves, four tangents and four gradients at once, and estimates of rounding errors. They are
compared with the Jacobian of the interpreter: derivatives equal it, and an estimate is at least what relative errors of
the arguments move by themselves. A program that is refused or dies is cut in two, until the kernel is found that did it.
"""

# ruff: noqa: E501  (C text reads better unbroken)
from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from oracle.build import to_ir
from oracle.differences import Subject
from oracle.generator import Kernel, source_file
from oracle.memory import Fault

from fuzz.verdicts import Verdict, flat, gap, tolerance_of

LEVELS: dict[str, tuple[str, ...]] = {
    "-O0": ("-O0",), "-O1": ("-O1",), "-O2": ("-O2",), "-O3": ("-O3",), "-O3 -march=native": ("-O3", "-march=native"),
    "-O2 -ffast-math": ("-O2", "-ffast-math"),
}  # fmt: skip
"""The ways to compile that every random kernel meets."""

LANES = 4
AT_LEAST = "rounding errors, at least"
_NOT_FOR_ALL = {
    "fwdsplit": re.compile(r"a call that the tangent pass cannot run again\n +in +@(\w+?)(?:_ahead)? "),
    "rounding": re.compile(r"(?:an estimate of rounding errors goes through a rule for a call|the rounding error of an operation"
                           r" with several results is not estimated)\n +in +@(\w+?) "),
}  # fmt: skip
"""What a mode says of kernels that it does not take, by design: __enzyme_fwdsplit, for example, of one that prints."""
_C = {"f64": "double", "f32": "float", "i64": "long", "i32": "int"}
_START = """
extern int enzyme_dup, enzyme_const, enzyme_out, enzyme_width;
static FILE *results;
static void put(double v) { fwrite(&v, sizeof v, 1, results); }
"""


class Case:
    """A kernel, its inputs, four directions and weights: what its part of a program computes, and what is right."""

    def __init__(self, k: Kernel, module: Any) -> None:
        rng = np.random.default_rng(k.seed)
        self.kernel, self.name = k, k.name
        self.without: set[str] = set()  # modes that do not take this kernel
        self.inputs = k.sample(rng)
        self.active = [a for a in k.arguments if a.dtype[0] == "f"]
        self.directions = [self._numbers(rng) for _ in range(LANES)]
        weights = [self._numbers(rng) for _ in range(LANES)]
        self.cotangents = [{n: w if self._inout(n) else np.zeros_like(w) for n, w in row.items()} for row in weights]
        self.subject = Subject(module, k.name, k.signature)

    def _numbers(self, rng: np.random.Generator) -> dict[str, Any]:
        return {a.name: rng.uniform(-1, 1, a.extent or 1).astype(np.float64 if a.dtype == "f64" else np.float32) for a in self.active}

    def _inout(self, name: str) -> bool:
        return any(a.name == name and a.inout for a in self.active)

    # ------------------------------------------------------------ what is right
    @cached_property
    def _right(self) -> tuple[Any, Any]:
        """Jacobian and values."""
        jacobian = self.subject.jacobian(self.inputs, [a.name for a in self.active])
        return jacobian, self.subject.directional(self.inputs, {})[0]

    def expected(self) -> list[tuple[str, Any]]:
        """(mode, numbers) in the order in which the program writes them. Raises Fault where the oracle stops."""
        jacobian, values = self._right
        outputs = ["return"] * self.kernel.returns + [a.name for a in self.active if a.inout]

        def forward(lane: int) -> Any:
            moved = {o: sum(jacobian[o, n] @ flat(d) for n, d in self.directions[lane].items()) for o in outputs}
            return np.concatenate([flat(moved[o]) for o in outputs])

        def reverse(lane: int) -> Any:
            seeds = {o: np.ones(1) if o == "return" else flat(self.cotangents[lane][o]) for o in outputs}
            return np.concatenate([flat(sum(seeds[o] @ jacobian[o, a.name] for o in outputs)) for a in self.active])

        return [
            ("value", np.concatenate([flat(values[o]) for o in outputs])), ("forward", forward(0)),
            ("reverse", reverse(0)), ("split", reverse(0)), *([] if "fwdsplit" in self.without else [("split forward", forward(0))]),
            *(("forward of width 4", forward(i)) for i in range(LANES)), *(("reverse of width 4", reverse(i)) for i in range(LANES)),
            *([] if "rounding" in self.without else [(AT_LEAST, self._moved_by_errors(outputs))]),
        ]  # fmt: skip

    def _moved_by_errors(self, outputs: list[str]) -> Any:
        """What the first direction, taken as relative errors of the arguments, moves each output by, relative to it: each
        estimate adds rounding to that, and takes each path through the program by its absolute value. Nothing is said
        of outputs that cancel to rounding errors, whose relative errors are those of the compiler's choice."""
        jacobian, values = self._right
        parts = []
        for o in outputs:
            at = {n: flat(self.inputs[n]) for n in self.directions[0]}
            moves = {n: np.where(at[n] == 0, flat(d), flat(d) * at[n]) for n, d in self.directions[0].items()}
            size, total = np.abs(flat(values[o])), sum(np.abs(jacobian[o, n]) @ np.abs(m) for n, m in moves.items())
            lost = size <= tolerance_of(self.kernel) * max(1.0, *(float(np.abs(v).max()) for v in values.values()))
            parts.append(np.where(lost, 0, total / np.where(lost, 1, size)))
        return np.concatenate(parts)

    def compared(self, numbers: Any) -> Iterator[tuple[str, Any, Any]]:
        """(mode, got, want) of the numbers that the program wrote. Of an estimate what counts is that it is not less."""
        at = 0
        for mode, want in self.expected():
            got = numbers[at : at + want.size]
            at += want.size
            yield mode, np.minimum(np.abs(got), want) if mode == AT_LEAST else got, want

    def judgeable(self) -> bool:
        """The oracle agrees with itself when nothing is rounded."""
        tolerance = tolerance_of(self.kernel)
        for d in self.directions:
            shaped = {n: v if np.ndim(self.inputs[n]) else v[0] for n, v in d.items()}
            (_, near), (_, exact) = (self.subject.directional(self.inputs, shaped, exact=e) for e in (False, True))
            if any(gap(near[n], exact[n]) > tolerance / 4 for n in near):
                return False
        return True

    # ------------------------------------------------------------ its part of the program
    def text(self) -> str:
        """A function `static void at_NAME(void)` that writes the results."""
        k, lines = self.kernel, list[str]()
        for a in k.arguments:
            lines.append(f"static const {_C[a.dtype]} {k.name}_{a.name}[] = {{{_row(self.inputs[a.name])}}};")
        for a in self.active:
            for what, rows in (("d", self.directions), ("w", self.cotangents)):
                lines.append(f"static const {_C[a.dtype]} {k.name}_{what}_{a.name}[{LANES}][{a.extent or 1}] = {{{', '.join('{' + _row(r[a.name]) + '}' for r in rows)}}};")
        scalars = [a for a in self.active if not a.extent]
        for lanes in (1, LANES):
            fields = " ".join(f"{_C[a.dtype]} {a.name}[{lanes}];" for a in scalars)
            if fields:
                lines.append(f"typedef struct {{ {fields} }} {k.name}_R{lanes};")
            if k.returns:
                lines.append(f"typedef struct {{ double r[{lanes}]; }} {k.name}_F{lanes};")
        result = "double" if k.returns else "void"
        if k.returns:
            lines.append(f"typedef struct {{ void *tape; double value; }} {k.name}_A;")
        lines += self._prototypes(scalars)
        lines.append(f"__attribute__((noinline)) static void at_{k.name}(void) {{")
        lines += [f"  {_C[a.dtype]} {a.name}[{a.extent or 1}]; (void){a.name};" for a in k.arguments]
        lines += [f"  {_C[a.dtype]} d_{a.name}[{LANES}][{a.extent or 1}]; (void)d_{a.name};" for a in self.active]
        plain = ", ".join(a.name if a.extent else f"{a.name}[0]" for a in k.arguments)
        lines.append(f"  {self._fresh('')} {'put(' if result == 'double' else ''}{k.name}({plain}){')' if result == 'double' else ''}; {self._outputs('')}")
        for mode, lanes in (*((mode, 1) for mode in ("fwddiff", "autodiff", "reverse", "fwdsplit")), ("fwddiff", LANES), ("autodiff", LANES), ("rounding", 1)):
            if mode not in self.without:
                lines.append("  { " + self._mode(mode, lanes, scalars) + " }")
        return "\n".join([*lines, "  fflush(results);", "}", ""])

    def _prototypes(self, scalars: list[Any]) -> list[str]:
        k = self.kernel
        tape = f"{k.name}_A" if k.returns else "void *"
        given = ", ".join(a.c for a in k.arguments)
        call = f"{k.name}({', '.join(a.name for a in k.arguments)});"
        out = [f"{tape} __enzyme_augmentfwd_{k.name}(void *, ...);",  # one function has one tape: another for fwdsplit
               f"static {'double' if k.returns else 'void'} {k.name}_ahead({given}) {{ {'return ' if k.returns else ''}{call} }}",
               f"{f'{k.name}_F1' if k.returns else 'void'} __enzyme_fwdsplit_{k.name}(void *, ...);"]
        for lanes in (1, LANES):
            out.append(f"{f'{k.name}_F{lanes}' if k.returns else 'void'} __enzyme_fwddiff_{k.name}_{lanes}(void *, ...);")
            out.append(f"{f'{k.name}_R{lanes}' if scalars else 'void'} __enzyme_autodiff_{k.name}_{lanes}(void *, ...);")
        out.append(f"{'double' if k.returns else 'void'} __enzyme_error_estimate_{k.name}(void *, ...);")
        return [*out, f"{f'{k.name}_R1' if scalars else 'void'} __enzyme_reverse_{k.name}(void *, ...);"]

    def _fresh(self, start: str) -> str:
        """The arguments as they are given; shadows are directions or cotangents."""
        k = self.kernel
        text = [f"memcpy({a.name}, {k.name}_{a.name}, sizeof {a.name});" for a in k.arguments]
        return " ".join(text + [f"memcpy(d_{a.name}, {k.name}_{start}_{a.name}, sizeof d_{a.name});" for a in self.active if start])

    def _outputs(self, lane: str) -> str:
        """Write the outputs, or a lane of their tangents."""
        return " ".join(f"for (int i = 0; i < {a.extent}; i++) put({f'd_{a.name}[{lane}]' if lane else a.name}[i]);" for a in self.active if a.inout)

    def _given(self, lanes: int, forward: bool, suffix: str) -> str:
        """The arguments of a call, with what the derivative is to do with them."""
        words = [f"(void *){self.kernel.name}{suffix}", *(["enzyme_width", str(lanes)] if lanes > 1 else [])]
        for a in self.kernel.arguments:
            value, place = (a.name, "") if a.extent else (f"{a.name}[0]", "[0]")
            if a not in self.active:
                words += ["enzyme_const", value]
            elif a.extent or forward:
                words += ["enzyme_dup", value, *(f"d_{a.name}[{i}]{place}" for i in range(lanes))]
            else:
                words += ["enzyme_out", value]
        return ", ".join(words)

    def _mode(self, mode: str, lanes: int, scalars: list[Any]) -> str:
        k = self.kernel
        forward = mode in ("fwddiff", "fwdsplit", "rounding")
        given = self._given(lanes, forward, "_ahead" if mode == "fwdsplit" else "")
        fresh = self._fresh("d" if forward else "w")
        kept, tape = (f"{k.name}_A t", "t.tape") if k.returns else ("void *t", "t")
        first = f"{kept} = __enzyme_augmentfwd_{k.name}({self._given(1, False, '_ahead' if mode == 'fwdsplit' else '')});"
        if mode == "rounding":
            call = f"__enzyme_error_estimate_{k.name}({given})"
            return f"{fresh} {f'put({call});' if k.returns else f'{call};'} {self._outputs('0')}"
        if forward:
            left = f"{k.name}_F{lanes} r = " if k.returns else ""
            rows = [(f"put(r.r[{i}]); " if k.returns else "") + self._outputs(str(i)) for i in range(lanes)]
            call = f"__enzyme_fwddiff_{k.name}_{lanes}({given});"
            if mode == "fwdsplit":
                first, call = first + " ", f"__enzyme_fwdsplit_{k.name}({given}, {tape});"
            else:
                first = ""
            return f"{fresh} {first}{left}{call} {' '.join(rows)}"
        left = f"{k.name}_R{lanes} g = " if scalars else ""
        if mode == "reverse":
            call = f"{first} {left}__enzyme_reverse_{k.name}({given}, {'1.0, ' if k.returns else ''}{tape});"
        else:
            call = f"{left}__enzyme_autodiff_{k.name}_{lanes}({given});"
        rows = []
        for lane in range(lanes):
            for a in self.active:
                rows.append(f"for (int i = 0; i < {a.extent}; i++) put(d_{a.name}[{lane}][i]);" if a.extent else f"put(g.{a.name}[{lane}]);")
        return f"{fresh} {call} {' '.join(rows)}"


def _row(value: Any) -> str:
    """Numbers as C spells them, exactly."""
    numbers = np.atleast_1d(value)
    return ", ".join(str(v) if numbers.dtype.kind == "i" else float(v).hex() for v in numbers)


def program(cases: list[Case]) -> str:
    """One C program of many kernels. Its file of results is its first argument."""
    calls = " ".join(f"at_{c.name}();" for c in cases)
    body = f'int main(int argc, char **argv) {{ results = fopen(argv[argc - 1], "wb"); {calls} return fclose(results); }}\n'
    return source_file([c.kernel for c in cases]) + _START + "".join(c.text() for c in cases) + body


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """What is told goes into a text, what programs print nowhere."""
    told, kept, nowhere = io.StringIO(), os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        with contextlib.redirect_stderr(told):
            yield told
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def check_programs(kernels: list[Kernel], report: Callable[[Any], None], level: str) -> None:
    """Check kernels inside of programs compiled in this way; `report` gets the name before, and the verdict after each."""
    from irgrad.engine.ir.text.reader import read

    module = read(to_ir(source_file(kernels)))
    cases = []
    for k in kernels:
        report(k.name)
        case = Case(k, module)
        try:
            right = case.expected()
        except Fault as error:
            report(Verdict(k.name, "rejected", f"the oracle stopped: {error}"))
            continue
        if all(np.isfinite(numbers).all() for _, numbers in right):
            cases.append(case)
        else:
            report(Verdict(k.name, "rejected", "the oracle is not finite"))
    with tempfile.TemporaryDirectory(prefix="irgrad-fuzz-") as folder:
        _check(cases, report, level, Path(folder))


def _check(cases: list[Case], report: Callable[[Any], None], level: str, folder: Path) -> None:
    from irgrad.interop.cli import main

    if not cases:
        return
    report(cases[0].name)
    source, output = folder / "program.c", folder / "results"
    source.write_text(program(cases))
    output.unlink(missing_ok=True)
    with _quiet() as told:
        status = main(["run", *LEVELS[level], "-w", str(source), "-lm", "--", str(output)])
    for mode, says in _NOT_FOR_ALL.items():
        named = says.search(told.getvalue()) if status else None
        found = next((c for c in cases if named is not None and c.name == named[1] and mode not in c.without), None)
        if found is not None:
            found.without.add(mode)
            _check(cases, report, level, folder)
            return
    if status and len(cases) > 1:
        half = len(cases) // 2
        _check(cases[:half], report, level, folder)
        _check(cases[half:], report, level, folder)
        return
    if status:
        kind = "crash" if status > 128 else "refused"
        report(Verdict(cases[0].name, kind, f"{level}: status {status}\n{told.getvalue()[:2000]}"))
        return
    got = np.fromfile(output)
    at = 0
    for case in cases:
        wrong = []
        for mode, numbers, want in case.compared(got[at:]):
            at += want.size
            if gap(numbers, want) > tolerance_of(case.kernel):
                wrong.append(f"{level}, {mode}: got {np.array2string(numbers)}, want {np.array2string(want)}")
        if not wrong:
            report(Verdict(case.name, "ok"))
        elif case.judgeable():
            report(Verdict(case.name, "wrong", "\n".join(wrong)))
        else:
            report(Verdict(case.name, "rejected", "badly conditioned: exact and rounded oracle differ"))
    if at != got.size:
        raise AssertionError(f"the program wrote {got.size} numbers, {at} were expected")
