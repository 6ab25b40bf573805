"""`check`: a kernel's derivatives against differences and against each other, as a readable report.

The outputs are contracted with random cotangents w to one scalar s(x) = <w, f(x)>. Then

- per argument: the reverse gradient against extrapolated differences of s with an estimate of their error, at up to
  `samples` elements, each with steps of its own and relative to its own slope (see slopes.py),
- per argument: the reverse gradient contracted with a random direction against forward mode,
- over all arguments: the adjoint identity <w, J v> = <J^T w, v>, which holds to rounding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irgrad.engine.functions.nonfinite import NonFinite, first_nonfinite_of
from irgrad.engine.functions.slopes import slope
from irgrad.engine.functions.special_cases import special_cases
from irgrad.engine.kernel.binding import Bound
from irgrad.engine.kernel.kernel import Kernel
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.run import Run
from irgrad.engine.kernel.select import active_outputs, at_types, selected
from irgrad.engine.kernel.trees import TreeKernel
from irgrad.engine.signature.parameter import Wrt
from irgrad.engine.support.axes import axes
from irgrad.rules.errors import ActivityError

__all__ = ["ArgumentCheck", "CheckReport", "Curve", "check"]

Array = np.ndarray[Any, Any]

# Tolerances by element type: (differences, forward against reverse). Differences of a smooth f64 kernel are
# good to about 1e-11 at best and lose digits with the conditioning of the kernel.
_TOLERANCES = {"f64": (1e-6, 1e-10), "f32": (2e-2, 1e-4), "f16": (2e-1, 2e-2), "bf16": (5e-1, 2e-1)}
_WORDS = {"bfloat": "bf16", "half": "f16", "float": "f32"}  # IR's names, from the coarsest
_UNBOUNDED = """\
  NaN: the value is a number, its derivative is not: branch around the argument where that is"""
_INFINITE = """, or, where the infinite
       slope meets a zero, as in sqrt(v * t) with v = 0: lib.kernel(..., strong_zero=True) takes 0 * inf as 0"""
_UNDEFINED = """\
  the value itself is NaN or infinite at these arguments (the log of a negative number, 0 / 0, an overflow), so there is
  no slope to compare: choose arguments where it is a number (`irgrad check`: --range LOW HIGH)"""
_COLUMNS = """\
  w is a random cotangent of the outputs, J'w its pullback, v a random direction. Relative errors: `differences` of J'w
  at single elements, `forward` of <J'w, v>"""
_UNTOLD = "differences cannot tell"
_GO_ON = """\
  forward and reverse mode agree, and so say nothing against the derivative; the differences have the noise shown, or
  straddle a kink. To go on: check at other arguments (`irgrad check`: --seed, --range), or a smaller problem."""
_SPECIAL = """\
  {}: floats are compared for equality and are equal at these arguments, so that the derivative is that of the special
  case, often of a constant: check beside this point, or let the special case be a limit of the general one"""
_ROUNDING = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


@dataclass(frozen=True, slots=True)
class ArgumentCheck:
    """One argument: largest error relative to the largest gradient, against differences and against forward mode."""

    name: str
    elements: int
    sampled: int
    gradient_norm: float
    difference_error: float
    forward_error: float
    tolerances: tuple[float, float]
    difference_noise: float = 0.0  # of the differences, relative to the gradient, where they cannot tell
    contradicted: bool = False  # the differences are good enough to say that an element is wrong

    @property
    def ok(self) -> bool:
        """Within both tolerances as far as differences can tell (`difference_noise` is 0 where they can). NaN is never
        ok."""
        return (not self.contradicted and self.difference_error <= self.tolerances[0]
                and self.forward_error <= self.tolerances[1])


@dataclass(frozen=True, slots=True)
class Curve:
    """Errors of central differences of one element, relative to its derivative, by step."""

    name: str
    steps: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `check` found. `str(report)` is the table; `bool(report)` the verdict."""

    title: str
    arguments: tuple[ArgumentCheck, ...]
    adjoint_error: float
    adjoint_tolerance: float
    unbounded: bool = False  # a derivative is NaN where the value is a number
    undefined: bool = False  # the value is no number
    special: tuple[str, ...] = ()  # lines that compare floats for equality, and find them equal at these arguments
    nonfinite: NonFinite | None = None  # the first number that is not finite, where the derivative or value is not
    curves: Callable[[], list[Curve]] | None = field(default=None, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether everything is within its tolerance; where differences cannot tell, forward against reverse."""
        within = all(row.ok for row in self.arguments) and self.adjoint_error <= self.adjoint_tolerance
        return within and not self.undefined

    @property
    def verdict(self) -> str:
        """What is said: the derivatives agree, DISAGREE, cannot be compared, or differences cannot tell."""
        if not self.ok:
            return f"the derivatives {'cannot be compared' if self.undefined else 'DISAGREE'}"
        return _UNTOLD if any(row.difference_noise for row in self.arguments) else "the derivatives agree"

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        width = max(8, *(len(row.name) for row in self.arguments))
        columns = ("argument", "elements", "|J'w|", "differences", "forward")
        head = "  {:<{width}}  {:>9}  {:>11}  {:>12}  {:>9}".format(*columns, width=width)
        lines = [f"check of {self.title}", head]
        for row in self.arguments:
            mark = "WRONG" if not row.ok else f"noise {row.difference_noise:.1e}" if row.difference_noise else "ok"
            lines.append(f"  {row.name:<{width}}  {row.elements:>9}  {row.gradient_norm:>11.4g}  "
                         f"{row.difference_error:>12.1e}  {row.forward_error:>9.1e}  {mark}")
        lines.append(_COLUMNS)
        mark = "ok" if self.adjoint_error <= self.adjoint_tolerance else "WRONG"
        lines.append(f"  adjoint identity <w, Jv> = <J'w, v>: relative error {self.adjoint_error:.1e}  {mark}")
        lines.append(f"  verdict: {self.verdict}")
        if self.verdict == _UNTOLD:
            lines.append(_GO_ON)
        if self.undefined:
            lines.append(_UNDEFINED)
        if self.unbounded:
            slope = self.nonfinite is None or np.isinf(self.nonfinite.number)
            lines.append(_UNBOUNDED + (_INFINITE if slope else ""))
        if self.nonfinite:
            lines.append(f"  the first number that is not finite: {self.nonfinite}")
        lines += [_SPECIAL.format(where) for where in self.special]
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw, for the element of each argument with the largest slope, the error of central differences over their
        step: it falls with the step's square, then rises with rounding, where the derivative is right. The kernel runs
        for it. Axes given or new ones are returned; raises IRGradError without matplotlib."""
        ax = axes(ax)
        for curve in self.curves() if self.curves else ():
            ax.loglog(curve.steps, np.maximum(curve.errors, 1e-17), ".-", label=curve.name)
        ax.set(xlabel="step", ylabel="difference - derivative, relative", title=self.title)
        ax.legend()
        return ax


def check(
    kernel: Kernel | TreeKernel[Kernel], *args: Any, wrt: Wrt = None, samples: int = 24, seed: int = 0, **kwargs: Any
) -> CheckReport:
    """Compare reverse mode, forward mode and extrapolated differences at these arguments.

    wrt:     arguments to check, all floating-point ones by default; of `kernel.tree(...)` trees, which are checked leaf
             by leaf
    samples: elements of each argument at which differences are taken (all when it has no more)
    seed:    of the random directions and cotangents

    Returns a CheckReport. Tolerances are those of the least precise type of the argument and of the kernel's own
    arithmetic (an f64 kernel that computes in f32 inside is held to f32). Where the differences are too noisy or meet a
    kink, the verdict is "differences cannot tell", and forward against reverse decides whether the report is true. An
    element costs at most `slopes.EVALUATIONS` (191) values. Where the program compares floats for equality and they are
    equal here and not beside, the report names the lines (`special`): the derivative is that of the special case.

    Raises as the kernel does.

        >>> bool(irgrad.check(total, np.ones(3)))
        True
    """
    if isinstance(kernel, TreeKernel):
        given, wrt, kernel = kernel.named(args, kwargs), kernel.float_leaves(wrt), kernel.kernel
        args, kwargs = tuple(given[p.name] for p in kernel.signature.arguments), {}
    if hasattr(kernel, "kernel_for"):
        (kernel, args), kwargs = at_types(kernel, args, kwargs), {}
    positions, _ = selected(kernel, wrt, None, all_floats=True)
    outputs = active_outputs(kernel)
    if not outputs:
        raise ActivityError("there is nothing to check", where=f"`{kernel.signature}`",
                            because="the function has no floating-point output", fix="declare its outputs `out`")
    bound = kernel.bind(args, kwargs)
    rng = np.random.default_rng(seed)
    inner = _coarsest(kernel.primal.stage.text)
    tolerances = {i: _looser(kernel.signature.parameters[i].dtype.name, inner) for i in positions}
    reverse = Run(kernel.primal.vjp((*positions, *outputs)), _copied(bound), {})
    weights = {o: _random(rng, reverse.buffers[_at(reverse.program, o, 0)]) for o in outputs}
    full = reverse({_at(reverse.program, o, 0): w for o, w in weights.items()})
    gradients = {i: full[_at(reverse.program, i, 0)].astype(np.float64) for i in positions}
    forward = Run(kernel.primal.jvp((*positions, *outputs)), _copied(bound), {})
    directions = {i: _random(rng, gradients[i], reverse.buffers[_at(reverse.program, i, 0)].dtype) for i in positions}
    scalar = _Scalar(kernel, bound, weights)
    rows = []
    for i in positions:
        p = kernel.signature.parameters[i]
        rounding = max(_ROUNDING[p.dtype.name], _ROUNDING[inner])
        error, unknown, sampled, wrong = _differences(scalar, i, gradients[i], tolerances[i][0], samples, rng, rounding)
        moved = _pushed(forward, {i: directions[i]}, positions, weights)
        wanted = float(np.sum(gradients[i] * directions[i].astype(np.float64)))
        size = float(np.sum(np.abs(gradients[i] * directions[i].astype(np.float64))))
        rows.append(ArgumentCheck(p.name, gradients[i].size, sampled, _norm(gradients[i]), error,
                                  _relative(moved, wanted, size), tolerances[i], unknown, wrong))
    moved = _pushed(forward, directions, positions, weights)
    wanted = sum(float(np.sum(gradients[i] * directions[i])) for i in positions)
    size = sum(float(np.sum(np.abs(gradients[i] * directions[i]))) for i in positions)
    worst = max(tolerances[i][1] for i in positions)
    adjoint = _relative(moved, wanted, size)
    found = np.isnan([adjoint, *(x for row in rows for x in (row.gradient_norm, row.forward_error))]).any()
    valued = all(np.isfinite(full[_at(reverse.program, o)].astype(np.float64)).all() for o in outputs)
    special = special_cases(kernel, bound, positions, seed)
    lost = first_nonfinite_of(kernel, bound, positions, seed) if found or not valued else None
    names = {i: kernel.signature.parameters[i].name for i in positions}
    return CheckReport(
        str(kernel.signature), tuple(rows), adjoint, worst, bool(found and valued), not valued, special, lost,
        lambda: [_curve(scalar, i, names[i], gradients[i]) for i in positions if gradients[i].size],
    )  # fmt: skip


def _coarsest(text: str) -> str:
    """The least precise type that the code computes in: f32 inside of an f64 kernel rounds its derivatives too."""
    body = "\n".join(line for line in text.splitlines() if line.startswith("  "))
    return next((kind for word, kind in _WORDS.items() if re.search(rf"\b{word}\b", body)), "f64")


def _looser(kind: str, inner: str) -> tuple[float, float]:
    """The tolerances of two types, the larger of each."""
    first, second = _TOLERANCES[kind], _TOLERANCES[inner]
    return max(first[0], second[0]), max(first[1], second[1])


class _Scalar:
    """s(x) = <w, f(x)> as a function of one perturbed argument."""

    __slots__ = ("bound", "outputs", "run")

    def __init__(self, kernel: Kernel, bound: Bound, weights: dict[int, Array]) -> None:
        self.bound = bound
        self.run = Run(kernel.primal, _copied(bound), {})
        self.outputs = {_at(kernel.primal, o): w.astype(np.float64) for o, w in weights.items()}

    def __call__(self, position: int, argument: Array) -> tuple[float, float]:
        """The value, and the sum of the magnitudes of its terms."""
        full = self.run({_at(self.run.program, position): argument})
        terms = [full[o].astype(np.float64) * w for o, w in self.outputs.items()]
        return sum(float(np.sum(t)) for t in terms), sum(float(np.sum(np.abs(t))) for t in terms)


def _curve(scalar: _Scalar, position: int, name: str, gradient: Array) -> Curve:
    """Of the element with the largest slope."""
    start = scalar.bound.buffers[position]
    assert start is not None
    element = int(np.argmax(np.abs(gradient)))
    wanted, argument = float(gradient.reshape(-1)[element]), start.copy()
    flat = argument.reshape(-1)
    centre, errors = float(flat[element]), []
    steps = tuple(float((abs(centre) or 1.0) * 10.0**-k) for k in np.arange(1, 13, 0.5))
    for step in steps:
        values, places = [], []
        for moved in (centre + step, centre - step):
            flat[element] = moved
            places.append(float(flat[element]))
            values.append(scalar(position, argument)[0])
        width = places[0] - places[1]
        errors.append(abs((values[0] - values[1]) / width - wanted) / (abs(wanted) or 1.0) if width else float("nan"))
    scalar(position, start)
    index = f"[{', '.join(map(str, np.unravel_index(element, start.shape)))}]" if start.ndim else ""
    return Curve(f"{name}{index}", steps, tuple(errors))


def _differences(
    scalar: _Scalar, position: int, gradient: Array, tolerance: float, samples: int, rng: np.random.Generator,
    rounding: float,
) -> tuple[float, float, int, bool]:
    """Largest error of the gradient at the sampled elements, each relative to its own slope, where differences can
    tell; the largest error of the differences where they cannot; the number of samples; whether one is contradicted."""
    start = scalar.bound.buffers[position]
    if start is None or not gradient.size:
        return 0.0, 0.0, 0, False
    chosen = np.arange(gradient.size) if gradient.size <= samples else rng.choice(gradient.size, samples, replace=False)
    argument = start.copy()
    flat, wanted = argument.reshape(-1), gradient.reshape(-1)
    finite = np.abs(flat.astype(np.float64))
    scale = float(np.max(finite, initial=0.0, where=np.isfinite(finite))) or 1.0
    largest = float(np.max(np.abs(wanted)))
    worst, unknown, wrong = 0.0, 0.0, False
    for element in map(int, chosen):
        centre = flat[element].copy()

        def value(x: float, element: int = element) -> tuple[float, float, float]:
            flat[element] = x
            return (float(flat[element]), *scalar(position, argument))

        got = float(wanted[element])
        found = slope(value, float(centre), scale, got, tolerance, rounding, largest)
        flat[element] = centre
        size = max(abs(found.value), abs(got), largest if found.error <= tolerance * largest else 0.0)
        error = abs(found.value - got)
        if found.contradicts(got, tolerance) or not np.isfinite(got):
            wrong = True
            worst = max(worst, error / max(abs(found.value), abs(got))) if np.isfinite(got) else float("nan")
        elif found.error <= tolerance * size and not found.kink:
            worst = max(worst, error / size) if size > 0 else worst
        elif not (got == 0.0 and error <= 10 * found.error and not found.kink and found.flat):
            unknown = max(unknown, 1.0 if found.kink else found.error / size if size > 0 else float("inf"))
    scalar(position, start)
    return worst, unknown, len(chosen), wrong


def _pushed(forward: Run, directions: dict[int, Array], positions: tuple[int, ...], weights: dict[int, Array]) -> float:
    """<w, J v> by forward mode."""
    program = forward.program
    full = forward({_at(program, i, 0): directions.get(i, 0.0) for i in positions})
    return sum(float(np.sum(full[_at(program, o, 0)].astype(np.float64) * w)) for o, w in weights.items())


def _norm(x: Array) -> float:
    """The Euclidean norm, of very large and very small elements too."""
    largest = float(np.abs(x).max(initial=0.0))
    return largest * float(np.sqrt(np.sum((x / largest) ** 2))) if 0 < largest < np.inf else largest


def _relative(got: float, wanted: float, size: float) -> float:
    """Error relative to the sum of magnitudes: the inner product itself may cancel."""
    return abs(got - wanted) / size if size > 0 else abs(got - wanted)


def _random(rng: np.random.Generator, shape_of: Array, dtype: Any = None) -> Array:
    return np.asarray(rng.standard_normal(shape_of.shape)).astype(dtype or shape_of.dtype)


def _copied(bound: Bound) -> Bound:
    return Bound([None if b is None else b.copy() for b in bound.buffers], bound.sizes)


def _at(program: Program, index: int, *steps: int) -> int:
    number = program.find(index, *steps)
    if number is None:
        raise AssertionError("a slot of a derivative is missing")
    return number
