"""The measurements of `check_rule`: what is selected, derivatives against their reference, adjoints, batches, kinks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irgrad.engine.functions.checking import _coarsest, _copied
from irgrad.engine.kernel.run import Run
from irgrad.engine.kernel.select import active_outputs, selected
from irgrad.engine.rulecheck.runs import Jacobian, Runs, entries
from irgrad.engine.rulecheck.subjects import Subject
from irgrad.rules.definitions.types import Kind, SoA
from irgrad.rules.errors import RuleError, Unsupported

__all__ = ["Checker", "Line"]

Array = np.ndarray[Any, Any]
# Errors relative to the largest derivative: against exact values, against differences, forward against reverse.
_TOLERANCES = {"f64": (1e-10, 1e-6, 1e-11), "f32": (2e-5, 2e-2, 2e-4), "f16": (2e-2, 2e-1, 2e-2),
               "bf16": (2e-1, 5e-1, 2e-1)}  # fmt: skip
_OF_ROWS = 2e-13  # partials of a function of the C library are good to the rounding of a few operations
_STEPS = {"f64": 7e-4, "f32": 4e-2, "f16": 2e-1, "bf16": 5e-1}


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement: its largest error, and where that is."""

    case: str
    error: float
    tolerance: float
    worst: str = ""

    @property
    def ok(self) -> bool:
        """Within the tolerance; NaN is not."""
        return self.error <= self.tolerance


class Checker:
    """Measures one subject; `lines`, `kinks`, `notes` and `failures` collect what it finds."""

    def __init__(self, subject: Subject, rng: np.random.Generator) -> None:
        self.subject, self.kernel, self.rng = subject, subject.kernel, rng
        self.inputs, _ = selected(self.kernel, None, None, all_floats=True)
        self.outputs = active_outputs(self.kernel)
        if not self.outputs:
            raise RuleError("there is nothing to check", where=f"`{self.kernel.signature}`",
                            because="the function has no floating-point output", fix="declare its outputs `out`")
        kinds = [self.kernel.primal.slots[i].dtype.name for i in (*self.inputs, *self.outputs)]
        kinds.append(_coarsest(self.kernel.primal.stage.text))
        self.kind = max(kinds, key=lambda k: _TOLERANCES[k])
        self.lines: list[Line] = []
        self.kinks: list[str] = []
        self.notes: list[str] = []
        self.failures: list[str] = []
        self.against = ""
        self.args: tuple[Any, ...] = ()
        self._sides: dict[tuple[int, int], tuple[dict[int, Array], dict[int, Array]]] = {}

    def names(self, inputs: Sequence[int]) -> str:
        """The arguments, for people."""
        return ", ".join(self.kernel.signature.parameters[i].name for i in inputs)

    # -- selection ---------------------------------------------------------------------------------------------------

    def selected(self, mode: str, inputs: Sequence[int]) -> bool:
        """Whether an active call gets the rule under test when these arguments are active."""
        from irgrad.engine.analyses.memory.objects import resolve
        from irgrad.engine.differentiate.shared.rule_sites import site_of
        from irgrad.engine.report.calls import analysed_calls
        from irgrad.rules.lookup import find

        subject = self.subject
        unit, _ = analysed_calls(self.kernel, mode, {*inputs, *self.outputs})
        for fn in unit.pointers.functions:
            for instr in fn.instructions():
                if subject.key.kind == "opcode" or not instr.is_call:
                    row = subject.row
                    if row is not None and instr.opcode == row.opcode and unit.differentiable(instr):
                        return True
                    continue
                site, match = None, find(getattr(resolve(instr.callee), "name", "") or "")
                if unit.activity.call(instr):
                    site = site_of(unit, instr)
                elif subject.row is None or not subject.row.constant:
                    continue
                ours = site is not None and any(site.rule is rule for rule in subject.rules)
                if ours or (site is None and not subject.rules and match is not None and match.row is subject.row):
                    return True
        return False

    def why_not(self) -> str:
        """What the calls get instead."""
        from irgrad.engine.report.calls import explain_rules

        return "; ".join(explain_rules(self.kernel).splitlines())

    # -- a point -----------------------------------------------------------------------------------------------------

    def at(self, args: Sequence[Any]) -> None:
        """Go to these arguments: primal results and the reference."""
        self.args = tuple(args)
        self.bound = _copied(self.kernel.bind(self.args, {}))
        full = Run(self.kernel.primal, _copied(self.bound), {})()
        self.truth = {o: full[o].copy() for o in self.kernel.output_positions}
        self._sides = {}
        self.reference = self._reference()

    def _reference(self) -> Jacobian:
        subject = self.subject
        exact = _TOLERANCES[self.kind][0]
        if subject.reference is not None:
            self.against, self.tolerance = "the reference given" if self.subject.rules else "exact values", exact
            if subject.row is not None and self.kind == "f64":
                self.tolerance = _OF_ROWS
            table = subject.reference(*self.args)
        elif subject.has_body:
            from irgrad.engine.functions.jacobians import jacfwd
            from irgrad.rules.layers import layer
            from irgrad.rules.registry import opt_out

            self.against, self.tolerance = "the derivative of the function's own body", exact
            with layer():
                opt_out(subject.key)
                wrt = [self.kernel.signature.parameters[i].name for i in self.inputs]
                got = jacfwd(self.kernel, wrt)(*self.args)
            table = got if len(self.outputs) > 1 else (got,)
        else:
            self.against, self.tolerance = "five-point differences", _TOLERANCES[self.kind][1]
            return self._differences()
        full = {}
        for o, row in zip(self.outputs, table, strict=True):
            for i, block in zip(self.inputs, row, strict=True):
                size = self._size(i)
                full[o, i] = np.asarray(block, np.float64).reshape(-1, size)
        return full

    def _size(self, index: int) -> int:
        return int(np.prod(self.kernel.primal.shapes(self.bound.sizes)[index], dtype=np.int64))

    def _values(self, index: int, entry: int, by: float) -> dict[int, Array]:
        """The outputs with one entry of one argument moved."""
        moved = _copied(self.bound)
        buffer = moved.buffers[index]
        assert buffer is not None
        buffer.reshape(-1)[entry] += buffer.dtype.type(by)
        full = Run(self.kernel.primal, moved, {})()
        return {o: full[o].astype(np.float64).reshape(-1) for o in self.outputs}

    def _step(self, index: int, entry: int) -> float:
        buffer = self.bound.buffers[index]
        assert buffer is not None
        return _STEPS[self.kind] * max(abs(float(buffer.reshape(-1)[entry])), 1.0) * 0.5

    def _differences(self) -> Jacobian:
        found = {(o, i): np.full((self._size(o), self._size(i)), np.nan) for o in self.outputs for i in self.inputs}
        for i in self.inputs:
            for e in entries(self._size(i)):
                h = self._step(i, int(e))
                a, b, c, d = (self._values(i, int(e), k * h) for k in (-2, -1, 1, 2))
                for o in self.outputs:
                    found[o, i][:, e] = (a[o] - 8 * b[o] + 8 * c[o] - d[o]) / (12 * h)
        return found

    # -- derivatives -------------------------------------------------------------------------------------------------

    def runs(self, mode: str, inputs: Sequence[int], width: int) -> Runs | None:
        """The derivative in these arguments; None (and a note) where the engine refuses this width."""
        active = (*inputs, *self.outputs)
        primal = self.kernel.primal
        program = primal.jvp(active, width) if mode == "forward" else primal.vjp(active, width)
        try:
            return Runs(program, mode, self.bound, inputs, self.outputs, width, self.truth, self.rng)
        except (RuleError, Unsupported) as error:
            if width == 1:
                raise
            self.notes.append(f"{mode}, width {width}: {error.what}: {error.because}")
            return None

    def measure(self, mode: str, inputs: tuple[int, ...], width: int) -> None:
        """Every entry of the Jacobian against the reference."""
        case = f"{mode} in {self.names(inputs)}, width {width}"
        runs = self.runs(mode, inputs, width)
        if runs is None:
            return
        found = runs.jacobian()
        self.failures += [f"{case}: {text}" for text in runs.broken]
        worst, place = 0.0, ""
        for (o, i), got in found.items():
            error, at = self._compare(o, i, got, case)
            if not error <= worst:
                worst, place = error, at
        self.lines.append(Line(case, worst, self.tolerance, place))

    def _compare(self, o: int, i: int, got: Array, case: str) -> tuple[float, str]:
        """The largest error of one block that is no kink, and its place."""
        wanted = self.reference[o, i]
        known = np.isfinite(wanted)
        size = max(float(np.max(np.abs(wanted), where=known, initial=0.0)), 1e-2)
        errors = np.where(np.isnan(got) & np.isnan(wanted), 0.0, np.abs(got - wanted) / size)
        errors[(got == wanted)] = 0.0
        worst, place = 0.0, ""
        for row, column in np.argwhere(~(errors <= self.tolerance)):
            if self._kink(o, i, int(row), int(column), float(got[row, column])):
                errors[row, column] = 0.0
        if errors.size:
            row, column = np.unravel_index(int(np.argmax(np.where(np.isnan(errors), np.inf, errors))), errors.shape)
            worst = float(errors[row, column])
            place = f"d {self._entry(o, int(row))} / d {self._entry(i, int(column))} is {got[row, column]:.6g}, " \
                    f"wanted {wanted[row, column]:.6g}"  # fmt: skip
        return worst, place

    def _entry(self, index: int, entry: int) -> str:
        slot = self.kernel.primal.slots[index]
        return slot.name if self._size(index) == 1 else f"{slot.name}[{entry}]"

    def _kink(self, o: int, i: int, row: int, column: int, got: float) -> bool:
        """Whether the function has a left and a right derivative there that differ, with the value between them."""
        if (i, column) not in self._sides:
            h = self._step(i, column) * 1e-2
            here, left, right = (self._values(i, column, k * h) for k in (0, -1, 1))
            near, far = (self._values(i, column, k * h / 16) for k in (-1, 1))
            below = {o: np.stack([(here[o] - left[o]) / h, 16 * (here[o] - near[o]) / h]) for o in self.outputs}
            above = {o: np.stack([(right[o] - here[o]) / h, 16 * (far[o] - here[o]) / h]) for o in self.outputs}
            self._sides[i, column] = below, above
        below, above = self._sides[i, column]
        a, b = below[o][:, row], above[o][:, row]
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            text = "the function is not defined on both sides"
        elif (np.abs(a - b) > 0.05 * np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-2)).all():
            low, high = min(a[1], b[1]), max(a[1], b[1])
            if not low - 1e-3 <= got <= high + 1e-3:
                return False
            text = f"{a[1]:.6g} on the left, {b[1]:.6g} on the right"
        else:
            return False
        place = ", ".join(f"{float(v):.6g}" for b in self.bound.buffers if b is not None for v in b.reshape(-1)[:4])
        self.kinks.append(f"at ({place}), d {self._entry(o, row)} / d {self._entry(i, column)}: {text}, rule {got:.6g}")
        return True

    def adjoint(self, inputs: tuple[int, ...], width: int) -> None:
        """<w, J v> = <J'w, v> in random directions, and the same bits twice."""
        forward, reverse = self.runs("forward", inputs, width), self.runs("reverse", inputs, width)
        if forward is None or reverse is None:
            return
        v = {i: self.rng.standard_normal((self._size(i), width)) for i in inputs}
        w = {o: self.rng.standard_normal((self._size(o), width)) for o in self.outputs}
        v = {i: x.astype(self.kernel.primal.slots[i].dtype.numpy) for i, x in v.items()}
        w = {o: x.astype(self.kernel.primal.slots[o].dtype.numpy) for o, x in w.items()}
        pushed, pulled = forward.twice(v), reverse.twice(w)
        left = sum((pushed[o].astype(float) * w[o]).sum(axis=0) for o in self.outputs)
        right = sum((pulled[i].astype(float) * v[i]).sum(axis=0) for i in inputs)
        size = sum(np.abs(pulled[i].astype(float) * v[i]).sum(axis=0) for i in inputs)
        size = size + sum(np.abs(pushed[o].astype(float) * w[o]).sum(axis=0) for o in self.outputs) + 1e-2
        case = f"adjoint identity in {self.names(inputs)}, width {width}"
        self.failures += [f"{case}: {text}" for text in dict.fromkeys([*forward.broken, *reverse.broken])]
        error = np.abs(left - right) / size
        error = np.where(np.isfinite(left) | np.isfinite(right), error, 0.0)  # at a pole both are infinite or NaN
        self.lines.append(Line(case, float(np.max(error)), _TOLERANCES[self.kind][2], f"<w, Jv> = {left}, {right}"))

    # -- batches -----------------------------------------------------------------------------------------------------

    def batch(self, mode: str, count: int, layout: Kind) -> None:
        """Every sample of a batch against the same sample alone."""
        from irgrad.engine.batches.batched import batch_jvp, batch_vjp
        from irgrad.engine.functions.gradients import jvp, vjp

        axis = -1 if layout is SoA else 0
        options: dict[str, Any] = {"layout": "aos" if axis == 0 else "soa"}
        arguments = self.kernel.signature.arguments
        options["in_axes"] = [axis if p.dtype.is_float else None for p in arguments]
        samples = [self._sample(k) for k in range(count)]
        stacked = [np.stack([s[n] for s in samples], axis) if p.dtype.is_float else self.args[n]
                   for n, p in enumerate(arguments)]  # fmt: skip
        if mode == "forward":
            floats = [p.dtype.is_float for p in arguments]
            moves: list[tuple[Any, ...]] = [
                tuple(self._noise(v) if moving else None for v, moving in zip(s, floats, strict=True)) for s in samples
            ]
            tangents = [np.stack([m[n] for m in moves], axis) if p.dtype.is_float else None
                        for n, p in enumerate(arguments)]  # fmt: skip
            got = _rows(batch_jvp(self.kernel, stacked, tangents, **options)[1])
            wanted = [_rows(jvp(self.kernel, s, m)[1]) for s, m in zip(samples, moves, strict=True)]
        else:
            outs = [_rows(self.kernel(*s)) for s in samples]
            seeds: list[list[Any]] = [[self._noise(o) for o in out] for out in outs]
            _, pull = batch_vjp(self.kernel, *stacked, **options)
            stacks: list[Any] = [None if column[0] is None else np.stack(column, axis)
                                 for column in zip(*seeds, strict=True)]  # fmt: skip
            got = _rows(pull(_given(stacks)))
            wanted = [_rows(vjp(self.kernel, *s)[1](_given(w))) for s, w in zip(samples, seeds, strict=True)]
        self._compare_samples(f"{mode}, {count} samples {layout}", got, wanted, axis)

    def _compare_samples(self, case: str, got: list[Any], wanted: list[list[Any]], axis: int) -> None:
        worst, place = 0.0, ""
        for n, column in enumerate(got):
            for k, row in enumerate(wanted):
                if column is None or row[n] is None:
                    continue
                a, b = np.take(column, k, axis).astype(float), np.asarray(row[n], float)
                error = float(np.max(np.abs(a - b), initial=0) / max(float(np.max(np.abs(b), initial=0)), 1e-2))
                if not error <= worst:
                    worst, place = error, f"sample {k}: {a}, alone {b}"
        self.lines.append(Line(case, worst, _TOLERANCES[self.kind][2], place))

    def _sample(self, k: int) -> tuple[Any, ...]:
        """The arguments of one sample: near the point."""
        arguments = self.kernel.signature.arguments
        return tuple(np.asarray(np.asarray(v) * (1 - 0.01 * k), p.dtype.numpy) if p.dtype.is_float else v
                     for p, v in zip(arguments, self.args, strict=True))  # fmt: skip

    def _noise(self, like: Any) -> Any:
        array = np.asarray(like)
        return np.asarray(self.rng.standard_normal(array.shape), array.dtype) if array.dtype.kind == "f" else None

    # -- kinks -------------------------------------------------------------------------------------------------------

    def documented_kinks(self) -> None:
        """The derivatives at the kinks that the row documents."""
        row = self.subject.row
        called = self.kernel.name.startswith("irgrad.check.")
        if row is None or self.subject.rules or self.kind != "f64" or not called:
            return
        for kink in row.kinks:
            self.at_kink(kink)

    def at_kink(self, kink: Any) -> None:
        """The derivatives at one documented kink, through the engine."""
        from irgrad.engine.functions.jacobians import jacfwd

        arguments = self.kernel.signature.arguments
        args = [v if p.dtype.is_float else int(v) for p, v in zip(arguments, kink.at, strict=False)]
        first = []
        for p in arguments:  # one at a time: the tangent 0 of another one times an infinite partial is NaN
            if p.dtype.is_float:
                got = jacfwd(self.kernel, p.name)(*args)
                first.append(got[0] if len(self.outputs) > 1 else got)
        wanted = [kink.partials[n] for n, p in enumerate(arguments) if p.dtype.is_float]
        text = f"at {kink.at}: {', '.join(f'{float(g):g}' for g in first)} ({kink.why})"
        same = all(w is None or float(g) == w or (g != g and w != w) for g, w in zip(first, wanted, strict=True))
        (self.kinks if same else self.failures).append(text if same else f"{text}; documented {wanted}")


def _rows(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def _given(rows: Sequence[Any]) -> Any:
    return rows[0] if len(rows) == 1 else tuple(rows)


