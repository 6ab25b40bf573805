"""Check derivatives of kernels against the interpreter; run batches in worker processes that may die.

    python tests/fuzz/driver.py 0:200                 check the kernels of these seeds, print a table of failures
    python tests/fuzz/driver.py 17 --show             one kernel: source, verdict, smallest failing kernel
    python tests/fuzz/driver.py 0:500 --features struct,heap
    python tests/fuzz/driver.py 0:500 --width 1,2,3,4,8,16     derivatives of these widths against as many separate ones
    python tests/fuzz/driver.py 0:500 --batches                batches against single calls
    python tests/fuzz/driver.py 0:500 --level=-O3              in C programs through `irgrad run`; --ir: as clang's IR
"""

# ruff: noqa: E501  (C sources and tables read better unbroken)
from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oracle.build import to_ir
from oracle.differences import Subject
from oracle.generator import HEADER, Kernel, generate, shrink, source_file
from oracle.memory import Fault

from fuzz.programs import LEVELS, check_programs
from fuzz.variants import active_arguments, run_program, second_order
from fuzz.verdicts import SECONDS, Verdict, flat, gap, in_workers, tolerance_of

TWICE = 5  # one kernel in so many is differentiated twice


def _names(kernel: Any, value: Any) -> dict[str, Any]:
    rows = [value] if len(kernel.output_names) == 1 else list(value)
    return {n: r for n, r in zip(kernel.output_names, rows, strict=True) if r is not None}


def check(
    kernel: Any, subject: Subject, inputs: Mapping[str, Any], wrt: Iterable[str], tolerance: float, seed: int = 0,
    identity: float = 1e-12, modes: Iterable[str] = ("forward", "reverse"), single: bool = False, valued: bool = False,
) -> Verdict:  # fmt: skip
    """Value, forward and reverse derivative of an irgrad kernel along random directions against the oracle.

    `tolerance` bounds |J v - oracle| and |<J^T w, v> - <w, J v>_oracle|, `identity` the same between the two modes, all
    relative. `single`: arithmetic in single precision, where the modes may differ by rounding. `valued`: by the programs
    that give the value with the gradient, and tangents without the value.
    """
    from irgrad import engine

    rng = np.random.default_rng(seed)
    name = subject.name
    wrt = list(wrt)
    directions = {n: np.asarray(rng.uniform(-1, 1, np.shape(inputs[n])), np.asarray(inputs[n]).dtype) for n in wrt}
    values, want = subject.directional(inputs, directions)
    if not all(np.isfinite(v).all() for v in (*want.values(), *values.values())):
        return Verdict(name, "rejected", "the oracle is not finite")
    order = [p.name for p in subject.signature.arguments]
    primals = [inputs[n] for n in order]
    problems = []

    def wrong(what: str, got: Any, right: Any) -> None:
        problems.append(f"{what}: got {np.array2string(flat(got), threshold=12)}, want "
                        f"{np.array2string(flat(right), threshold=12)}")  # fmt: skip

    out = _names(kernel, kernel(*primals))
    for n, v in values.items():
        if gap(out[n], v) > max(tolerance, 1e-11):
            wrong(f"value of {n}", out[n], v)
    weights = {n: rng.uniform(-1, 1, v.shape) for n, v in values.items()}
    target = sum(float(weights[n] @ want[n]) for n in want)
    scale = max(1.0, sum(float(np.abs(weights[n] * want[n]).sum()) for n in want))
    forward = None
    if "forward" in modes:
        if valued:
            full = run_program(kernel, "jvp_only", wrt, primals, directions)
            got = {n: full[n + "'"] for n in want}
        else:
            got = _names(kernel, engine.jvp(kernel, primals, [directions.get(n) for n in order])[1])
        for n in want:
            if gap(got[n], want[n]) > tolerance:
                wrong(f"forward, tangent of {n}", got[n], want[n])
        forward = sum(float(weights[n] @ flat(got[n])) for n in want)
    if "reverse" in modes:
        cotangents = [
            np.asarray(weights[n], np.asarray(out[n]).dtype).reshape(np.shape(out[n])) if n in weights else None
            for n in kernel.output_names
        ]
        if valued:
            weighted = {n: c for n, c in zip(kernel.output_names, cotangents, strict=True) if c is not None}
            full = run_program(kernel, "vjp", wrt, primals, weighted)
            gradients = [full[n + "'"] for n in wrt]
            for n, v in values.items():
                if gap(full[n], v) > max(tolerance, 1e-11):
                    wrong(f"value of {n} beside the gradient", full[n], v)
        else:
            _, pullback = engine.vjp(kernel, *primals, wrt=tuple(wrt))
            gradients = pullback(cotangents[0] if len(cotangents) == 1 else tuple(cotangents))
        back = sum(float(flat(g) @ flat(directions[n])) for n, g in zip(wrt, gradients, strict=True))
        size = max(scale, sum(float(np.abs(flat(g) * flat(directions[n])).sum()) for n, g in zip(wrt, gradients, strict=True)))
        if not abs(back - target) <= tolerance * size:
            problems.append(f"reverse: <J^T w, v> = {back!r}, want {target!r}")
            problems += _blame(subject, inputs, wrt, weights, gradients, tolerance)
        elif forward is not None and not single and abs(back - forward) > identity * size:
            problems.append(f"modes differ: <w, J v> = {forward!r}, <J^T w, v> = {back!r}")
    if not problems:
        return Verdict(name, "ok")
    if not _judgeable(subject, inputs, directions, want, tolerance):
        return Verdict(name, "rejected", "badly conditioned: exact and rounded oracle differ")
    return Verdict(name, "wrong", "\n".join(problems))


def _blame(
    subject: Subject, inputs: Mapping[str, Any], wrt: list[str], weights: Mapping[str, Any], gradients: Any, tolerance: float
) -> list[str]:
    """Which gradient is wrong, and where."""
    jacobian = subject.jacobian(inputs, wrt)
    out = []
    for n, g in zip(wrt, gradients, strict=True):
        want = sum(weights[o] @ jacobian[o, n] for o in weights)
        if gap(g, want) > tolerance:
            out.append(f"  gradient of {n}: got {np.array2string(flat(g))}, want {np.array2string(flat(want))}")
    return out


def _judgeable(subject: Subject, inputs: Any, directions: Any, want: Any, tolerance: float) -> bool:
    """The same derivative with 40 digits and nothing rounded agrees: the oracle can be trusted here."""
    _, exact = subject.directional(inputs, directions, exact=True)
    return all(gap(want[n], exact[n]) <= 0.5 * tolerance for n in want)


def check_generated(kernels: list[Kernel], report: Callable[[Any], None], level: str | None = None) -> None:
    """Check kernels of one C file; `report` gets the name before, and the verdict after each. With a `level` they are
    loaded as the IR that clang writes at this level."""
    import irgrad
    from irgrad.engine.ir.text.reader import read

    text = source_file(kernels)
    module = read(to_ir(text))
    library = irgrad.load(to_ir(text, flags=LEVELS[level]), language="ll") if level else irgrad.load(text)
    for k in kernels:
        report(k.name)
        report(judge(k, module, library))


def judge(k: Kernel, module: Any = None, library: Any = None) -> Verdict:
    """One kernel; every exception becomes a verdict."""
    import irgrad
    from irgrad.engine.ir.text.reader import read

    try:
        if module is None:
            module, library = read(to_ir(HEADER + k.source)), irgrad.load(HEADER + k.source)
        subject = Subject(module, k.name, k.signature)
        inputs = k.sample(np.random.default_rng(k.seed))
        kernel = library.kernel(k.name, k.signature)
        wrt = active_arguments(k)
        verdict = check(kernel, subject, inputs, wrt, tolerance_of(k), k.seed, single=k.has_f32, valued=k.seed % 3 == 0)
        if verdict.kind == "ok" and k.seed % TWICE == 0:
            problems = second_order(kernel, subject, k, inputs, wrt)
            return Verdict(k.name, "wrong", "\n".join(problems)) if problems else verdict
        return verdict
    except irgrad.IRGradError as e:
        return Verdict(k.name, "refused", f"{type(e).__name__}: {e}")
    except Fault as e:
        return Verdict(k.name, "rejected", f"the oracle stopped: {e}")
    except Exception:
        return Verdict(k.name, "error", traceback.format_exc(limit=-4))


def check_widths(kernels: list[Kernel], report: Callable[[Any], None], widths: tuple[int, ...]) -> None:
    """Derivatives of several widths against separate ones, for kernels of one C file."""
    import irgrad

    library = irgrad.load(source_file(kernels))
    for k in kernels:
        report(k.name)
        report(judge_widths(k, library, widths))


def judge_widths(k: Kernel, library: Any, widths: tuple[int, ...]) -> Verdict:
    """One kernel at these widths, forward and reverse."""
    import irgrad
    from fuzz.widths import compare

    try:
        kernel = (library or irgrad.load(HEADER + k.source)).kernel(k.name, k.signature)
        inputs = k.sample(np.random.default_rng(k.seed))
        found: list[str] = []
        for width in widths:
            for mode in ("forward", "reverse"):
                found += compare(kernel, inputs, k.wrt, width, mode, 1e-4 if k.has_f32 else 1e-12, k.seed)
        return Verdict(k.name, "wrong" if found else "ok", "\n".join(found[:4]))
    except irgrad.IRGradError as e:
        return Verdict(k.name, "refused", f"{type(e).__name__}: {e}")
    except Exception:
        return Verdict(k.name, "error", traceback.format_exc(limit=-4))


def check_batches(kernels: list[Kernel], report: Callable[[Any], None]) -> None:
    """Batched values and derivatives against single calls, for kernels of one C file."""
    import irgrad
    from fuzz.batches import compare

    library = irgrad.load(source_file(kernels))
    for k in kernels:
        report(k.name)
        try:
            inputs = k.sample(np.random.default_rng(k.seed))
            kernel = library.kernel(k.name, k.signature)
            found, _ = compare(kernel, inputs, k.wrt, 1e-3 if k.has_f32 else 1e-12, k.seed)
            report(Verdict(k.name, "wrong" if found else "ok", "\n".join(found[:4])))
        except irgrad.IRGradError as e:
            report(Verdict(k.name, "refused", f"{type(e).__name__}: {e}"))
        except Exception:
            report(Verdict(k.name, "error", traceback.format_exc(limit=-4)))


def run(
    seeds: Iterable[int], size: int = 6, features: set[str] | None = None, batch: int = 50, widths: tuple[int, ...] = (),
    batches: bool = False, level: str | None = None, ir: bool = False,
) -> list[tuple[Kernel, Verdict]]:  # fmt: skip
    """Check the kernels of these seeds: against the oracle, at these widths against separate derivatives, or batches
    against single calls. With a `level` in C programs compiled so, or, `ir`, as the IR that clang writes."""
    kernels = [generate(s, size, features) for s in seeds]
    work = check_batches if batches else partial(check_widths, widths=widths) if widths else check_generated
    if level:
        work = partial(check_generated if ir else check_programs, level=level)
    out = []
    for start in range(0, len(kernels), batch):
        part = kernels[start : start + batch]
        verdicts = {v.name: v for v in in_workers(work, part, 900.0 if level else SECONDS)}
        out += [(k, verdicts[k.name]) for k in part]
    return out


def hint(kernel: Kernel, verdict: Verdict, smaller: bool = True, options: str = "") -> str:
    """What a failure prints: how to run it again (with these options), what it contains, the source, a smaller one that
    fails alike."""

    def fails(k: Kernel) -> bool:
        def one(items: list[Kernel], report: Callable[[Any], None]) -> None:
            report(items[0].name)
            report(judge(items[0]))

        return in_workers(one, [k])[0].kind == verdict.kind

    small = shrink(kernel, fails) if smaller else kernel
    return (
        f"{verdict.kind}: {kernel.name}  {kernel.signature}\n{verdict.detail}\n"
        f"again: python tests/fuzz/driver.py {kernel.seed} {options}--show\nfeatures: {' '.join(sorted(kernel.features))}\n{small.source}"
    )


def summary(results: list[tuple[Kernel, Verdict]]) -> str:
    """Counts of verdicts, and for each kind but ok its features and messages by frequency."""
    kinds = Counter(v.kind for _, v in results)
    lines = [", ".join(f"{n} {k}" for k, n in kinds.most_common())]
    for kind in sorted({v.kind for _, v in results if v.kind != "ok"}):
        rows = [(k, v) for k, v in results if v.kind == kind]
        features = Counter(f for k, _ in rows for f in k.features)
        total = Counter(f for k, _ in results for f in k.features)
        often = sorted(features, key=lambda f: -features[f] / total[f])[:6]
        lines.append(f"{kind}: seeds {' '.join(str(k.seed) for k, _ in rows[:24])}")
        lines.append("  share of failing kernels by feature: " + ", ".join(f"{f} {features[f]}/{total[f]}" for f in often))
        heads = Counter((v.detail.strip().splitlines() or [""])[-1 if kind == "error" else 0][:140] for _, v in rows)
        lines += [f"  {n} x {text}" for text, n in heads.most_common(8)]
    return "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", help="one seed, or first:last")
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--features", default="")
    parser.add_argument("--width", default="", help="widths to compare with separate derivatives, as in 2,3,8")
    parser.add_argument("--batches", action="store_true", help="compare batches with single calls")
    parser.add_argument("--level", default="", help="in programs through `irgrad run`, compiled so: " + ", ".join(LEVELS))
    parser.add_argument("--ir", action="store_true", help="not in programs, but as the IR that clang writes at this level")
    parser.add_argument("--count", type=int, default=50, help="kernels in one program or file")
    parser.add_argument("--show", action="store_true", help="print each failure with a smaller kernel")
    args = parser.parse_args()
    first, _, last = args.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    widths = tuple(int(w) for w in args.width.split(",")) if args.width else ()
    results = run(seeds, args.size, set(args.features.split(",")) if args.features else None, args.count, widths, args.batches, args.level, args.ir)
    print(summary(results))
    if args.show:
        for k, v in results:
            print(hint(k, v, smaller=not widths and not args.batches and not args.level) if v.bad else k.source)
    return int(any(v.bad for _, v in results))


if __name__ == "__main__":
    raise SystemExit(main())
