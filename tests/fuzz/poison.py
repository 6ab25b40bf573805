"""Derivatives as IR, run by the interpreter, which knows poison and undef: what machine code hides is an error there.

    python tests/fuzz/poison.py 0:200            random kernels of C, each in one of WAYS
    python tests/fuzz/poison.py 0:200 --lanes    random kernels of vectors with lanes that are not defined

Machine code gives some number for a poison lane, often a harmless one. The interpreter stops where such a lane reaches
a result, an adjoint, a branch or an address, and its results are compared with those of the machine code.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.build import to_ir
from oracle.differences import Subject, element_type
from oracle.generator import Kernel, generate, source_file
from oracle.interpreter import Machine
from oracle.lane_kernels import LaneKernel, lane_kernel, lane_module
from oracle.numbers import FloatDomain
from oracle.undefined import Fault

from fuzz.driver import Verdict, check, in_workers, summary, tolerance_of
from fuzz.variants import active_arguments

LIMIT = 5_000_000  # steps of the interpreter
Buffers = list[Any]


@dataclass(frozen=True)
class Way:
    """How the IR that is differentiated is made: the compiler's level and flags, and what irgrad does before."""

    level: str = "-O3"
    flags: tuple[str, ...] = ()
    preopt: bool = True


AVX2, AVX512 = ("-march=x86_64_v3",), ("-march=x86_64_v4", "-mprefer-vector-width=512")
WAYS = (Way(), Way(flags=AVX2), Way(preopt=False), Way("-O2", AVX512), Way("-O0"), Way(flags=AVX2, preopt=False))


def linked(program: Any) -> str:
    """The derivative's IR as it goes to the optimiser, with the arena of the tape left out (see oracle/tape.py)."""
    from irgrad.engine.pipeline.derivatives import scheduled
    from irgrad.engine.runtime.strong_products import link_strong
    from irgrad.engine.runtime.zero_tests import link_idle

    text = program.stage.text
    if program.word and program.word[-1].width > 1:
        text = scheduled(text, program.stage.name)
    return link_strong(link_idle(text))


def interpret(program: Any, buffers: Buffers, text: str | None = None) -> Buffers:
    """The buffers of all slots after the program has run on copies of these. Raises Fault.

    text: IR to run in place of the program's own.
    """
    from irgrad.engine.ir.text.reader import read

    name = program.stage.name
    machine = Machine(read(text or linked(program), roots=[name]), FloatDomain(), LIMIT)
    return _run(machine, name, program.slots, buffers)


def _run(
    machine: Machine, name: str, slots: Sequence[Any], buffers: Buffers, places: Mapping[int, int] | None = None
) -> Buffers:
    """Buffers after a call; None for those in `places`, addresses of what lies in the machine's memory already."""
    places = places or {}
    addresses = [
        places[slot.index] if slot.index in places else machine.array(element_type(slot.dtype), _numbers(buffer))
        for slot, buffer in zip(slots, buffers, strict=True)
    ]
    machine.call(name, addresses)
    return [
        None if slot.index in places else _array(machine.read(address, element_type(slot.dtype), buffer.size), buffer)
        for slot, buffer, address in zip(slots, buffers, addresses, strict=True)
    ]


def _numbers(buffer: Any) -> list[Any]:
    """Elements as the interpreter has them: integers without sign."""
    values: list[Any] = buffer.reshape(-1).tolist()
    if buffer.dtype.kind == "f":
        return values
    return [int(v) & ((1 << 8 * buffer.dtype.itemsize) - 1) for v in values]


def _array(numbers: list[Any], like: Any) -> Any:
    """The opposite of `_numbers`."""
    if like.dtype.kind == "f":
        return np.array(numbers, like.dtype).reshape(like.shape)
    unsigned = np.array([int(v) for v in numbers], f"u{like.dtype.itemsize}")
    return unsigned.view(like.dtype).reshape(like.shape)


def differences(slot: Any, got: Any, want: Any, tolerance: float) -> list[str]:
    """A line where interpreted and compiled results differ by more than `tolerance` of the size of the array."""
    if slot.role == "scratch" or slot.dtype.kind != "f":
        return []
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    if (same | (np.abs(np.where(same, 0, got - want)) <= tolerance * scale)).all():
        return []
    return [f"{slot.name}: interpreted {got}, compiled {want}"]


class Case:
    """A kernel with arguments: what its programs start from. wrt: names of the arguments that are differentiated."""

    def __init__(self, kernel: Any, inputs: Mapping[str, Any], wrt: Iterable[str], seed: int = 0) -> None:
        from irgrad.engine.kernel.select import active_outputs

        self.kernel, self.inputs = kernel, inputs
        self.rng = np.random.default_rng(seed)
        self.index = {p.name: i for i, p in enumerate(kernel.signature.parameters)}
        self.given, self.asked = [self.index[n] for n in wrt], list(active_outputs(kernel))
        self.active = sorted({*self.given, *self.asked})

    def run(self, derivative: str, width: int = 1) -> Any:
        """A program (jvp, jvp_only, vjp, pullback) with random tangents or cotangents in its buffers."""
        from irgrad.engine.kernel.run import Run

        bound = self.kernel.bind(tuple(self.inputs[p.name] for p in self.kernel.signature.arguments), {})
        run = Run(getattr(self.kernel.primal, derivative)(self.active, width), bound, {})
        for i in self.given if derivative.startswith("jvp") else self.asked:
            number = run.program.find(i, 0)
            buffer = run.buffers[number]
            buffer[...] = self.rng.uniform(-1, 1, buffer.shape)
            run.start[number] = buffer.copy()
        return run

    def compare(self, derivative: str, width: int = 1, tolerance: float = 1e-10) -> list[str]:
        """What is wrong with a program of one derivative, by line."""
        run = self.run(derivative, width)
        before = [buffer.copy() for buffer in run.buffers]
        try:
            got = interpret(run.program, before)
        except Fault as fault:
            return [f"{derivative}{width}: {type(fault).__name__}: {fault}"]
        rows = zip(run.program.slots, got, run(), strict=True)
        return [f"{derivative}{width}: {line}" for s, a, b in rows for line in differences(s, a, b, tolerance)]

    def compare_halves(self, tolerance: float = 1e-10) -> list[str] | None:
        """The same for the halves A and B, against V; the tape holds nothing at first. None where there is no tape, or
        one that is too large."""
        from irgrad.engine.ir.text.reader import read
        from irgrad.engine.kernel.tapes import tape_of
        from irgrad.engine.signature.slots import TAPE, TAPE_BYTES

        scalars = {self.index[p.name]: int(self.inputs[p.name]) for p in self.kernel.signature.arguments
                   if not p.is_array and not p.dtype.is_float}  # fmt: skip
        size = tape_of(self.kernel.primal, self.active).bytes(scalars)
        if size is None:
            return None
        whole = self.run("vjp")
        slots = whole.program.slots
        before = {(s.index, s.steps): b.copy() for s, b in zip(slots, whole.buffers, strict=True)}
        after = {(s.index, s.steps): b for s, b in zip(slots, whole(), strict=True)}
        before[TAPE_BYTES, ()] = np.array(size)
        before[TAPE, ()] = np.zeros(0)
        primal = self.kernel.primal
        first, second = primal.forward_with_tape(self.active), primal.reverse_from_tape(self.active)
        machine = Machine(read(linked(first), roots=[first.stage.name, second.stage.name]), FloatDomain(), LIMIT)
        tape = {TAPE: machine.memory.allocate(size)}
        found = []
        try:
            for program in (first, second):
                buffers = [before[s.index, s.steps] for s in program.slots]
                got = _run(machine, program.stage.name, program.slots, buffers, tape)
                for slot, value in zip(program.slots, got, strict=True):
                    if slot.index >= 0:
                        found += differences(slot, value, after[slot.index, slot.steps], tolerance)
        except Fault as fault:
            found.append(f"{type(fault).__name__}: {fault}")
        return [f"halves: {line}" for line in found]


# -- random kernels ----------------------------------------------------------------------------------------------------


def judge(
    k: Any, library: Any, subject: Subject, wrt: Iterable[str], tolerance: float, single: bool = False
) -> Verdict:  # fmt: skip
    """Derivatives of one kernel against the oracle, and as IR; every exception becomes a verdict."""
    import irgrad

    try:
        wrt = list(wrt)
        inputs = k.sample(np.random.default_rng(k.seed))
        kernel = library.kernel(k.name, k.signature)
        verdict = check(kernel, subject, inputs, wrt, tolerance, k.seed, identity=tolerance, single=single)
        if verdict.kind == "rejected":
            return verdict
        case, found = Case(kernel, inputs, wrt, k.seed), [verdict.detail] if verdict.bad else []
        turn = k.seed // len(WAYS)  # so that each way meets each program
        for name in ("jvp_only", "pullback") if turn % 2 else ("jvp", "vjp"):
            found += case.compare(name, 3 if turn % 4 == 1 else 1, tolerance)
        if turn % 3 == 0:
            found += case.compare_halves(tolerance) or []
        return Verdict(k.name, "wrong" if found else "ok", "\n".join(found))
    except irgrad.IRGradError as e:
        return Verdict(k.name, "refused", f"{type(e).__name__}: {e}")
    except Fault as e:
        return Verdict(k.name, "rejected", f"the oracle stopped: {e}")
    except Exception:
        return Verdict(k.name, "error", traceback.format_exc(limit=-4))


def check_c(kernels: list[Kernel], report: Callable[[Any], None], way: Way) -> None:
    """Kernels of one C file, vectorised or not."""
    import irgrad
    from irgrad.engine.ir.text.reader import read

    text = source_file(kernels)
    module = read(to_ir(text))
    library = irgrad.load(to_ir(text, way.level, way.flags), language="ll", preopt=way.preopt)
    for k in kernels:
        report(k.name)
        subject = Subject(module, k.name, k.signature)
        report(judge(k, library, subject, active_arguments(k), tolerance_of(k), single=k.has_f32))


def check_lanes(kernels: list[LaneKernel], report: Callable[[Any], None], preopt: bool) -> None:
    """Kernels of one module in IR."""
    import irgrad
    from irgrad.engine.ir.text.reader import read

    text = lane_module(kernels)
    module, library = read(text), irgrad.load(text, language="ll", preopt=preopt)
    for k in kernels:
        report(k.name)
        report(judge(k, library, Subject(module, k.name, k.signature), k.wrt, 1e-9))


def run_c(seeds: Iterable[int]) -> list[tuple[Any, Verdict]]:
    """Check the C kernels of these seeds; the seed decides the way."""
    kernels = [generate(s) for s in seeds]
    out: list[tuple[Any, Verdict]] = []
    for number, way in enumerate(WAYS):
        part = [k for k in kernels if k.seed % len(WAYS) == number]
        out += _judged(part, partial(check_c, way=way))
    return out


def run_lanes(seeds: Iterable[int]) -> list[tuple[Any, Verdict]]:
    """Check the kernels of vectors of these seeds; every second one is not optimised before."""
    kernels = [lane_kernel(s) for s in seeds]
    out: list[tuple[Any, Verdict]] = []
    for preopt in (True, False):
        out += _judged([k for k in kernels if k.seed % 2 == preopt], partial(check_lanes, preopt=preopt))
    return out


def _judged(kernels: list[Any], work: Callable[..., None]) -> list[tuple[Any, Verdict]]:
    verdicts = {v.name: v for v in in_workers(work, kernels)} if kernels else {}
    return [(k, verdicts[k.name]) for k in kernels]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", help="one seed, or first:last")
    parser.add_argument("--lanes", action="store_true", help="kernels of vectors, in IR")
    args = parser.parse_args()
    first, _, last = args.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    results = run_lanes(seeds) if args.lanes else run_c(seeds)
    print(summary(results))
    for k, v in results:
        if v.bad:
            print(f"{v.name}: {v.kind}: {v.detail}\n{k.source if len(seeds) == 1 else ''}")
    return int(any(v.bad for _, v in results))


if __name__ == "__main__":
    raise SystemExit(main())
