"""Batches: one call for many samples. `batch`, `batch_grad`, `batch_value_and_grad`, `batch_jvp`, `batch_vjp`.

A batched function takes what the kernel takes, of which some arguments have one axis more, and runs all samples in
native code, on several threads when that pays. The options are described at `batch`.

Results are bitwise the same for any number of threads. A NaN stays in its sample (and in the sums that it is part of).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from irgrad.engine.batches.axes import AxesSpec, Data, Operands, data_of, operands_of, strides_of
from irgrad.engine.batches.plan import Job, Plan, make_plan
from irgrad.engine.batches.repeats import KEPT, Repeat, kind_of, kinds_of, repeat_of
from irgrad.engine.batches.results import arrays_for_results
from irgrad.engine.batches.threads import thread_limit
from irgrad.engine.batches.unit import Strategy, Unit, strategy_of, unit_of, varying
from irgrad.engine.kernel.kernel import Kernel, plain
from irgrad.engine.kernel.programs import Program
from irgrad.engine.kernel.run import like
from irgrad.engine.kernel.select import active_outputs, plain_kernel, scalar_output, selected, structured
from irgrad.engine.signature.parameter import Wrt
from irgrad.engine.signature.slots import Slot
from irgrad.engine.signature.status import failure
from irgrad.rules.errors import DTypeError, SignatureError, TapeMemoryError
from irgrad.rules.layers import token

__all__ = ["Batched", "batch", "batch_grad", "batch_jvp", "batch_value_and_grad", "batch_vjp"]

Array = np.ndarray[Any, Any]
Request = tuple[dict[int, Data], dict[int, str]]
LAYOUTS = ("auto", "aos", "soa")
WIDEST = 64  # lanes, at most
LARGEST = 1 << 18  # bytes of the buffers of a block of lanes: a share of the second-level cache


class _Made:
    """What all batched functions of a kernel share: strategies and machine code. It lives as long as the kernel."""

    __slots__ = ("strategies", "units")

    def __init__(self) -> None:
        self.strategies: dict[Any, Strategy] = {}
        self.units: dict[Any, Unit] = {}


_MADE: WeakKeyDictionary[Kernel, _Made] = WeakKeyDictionary()
_MADE_LOCK = threading.Lock()


def _made_of(kernel: Kernel) -> _Made:
    with _MADE_LOCK:
        return _MADE.setdefault(kernel, _Made())


class Batched:
    """A function over batches, made by `batch`, `batch_grad` and `batch_value_and_grad`. Thread-safe.

    kernel, program: what runs for each sample
    """

    def __init__(
        self, kernel: Kernel, program: Callable[[], Program], name: str, *, in_axes: AxesSpec, layout: str,
        width: int | str, threads: int | None, reduce: str | None,
    ) -> None:  # fmt: skip
        kernel = plain_kernel(kernel)
        _choice("layout", layout, LAYOUTS)
        _choice("reduce", reduce, (None, "sum"))
        if width != "auto" and (isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= WIDEST):
            raise SignatureError(f"width = {width!r} is not known", fix=f'width = "auto" or 1 to {WIDEST} lanes')
        thread_limit(threads)
        self.kernel = kernel
        self.in_axes = in_axes
        self.layout = "soa" if layout == "soa" else "aos"
        self.width = width
        self.threads = threads
        self.reduce = reduce
        self.__name__ = name
        self.__doc__ = f"`{name}` of `{kernel.signature}` over a batch."
        self._program = program
        self._known: tuple[object, Program] | None = None
        self._requests: dict[Any, Request] = {}
        self._repeats: dict[Any, Repeat] = {}
        self._longer: dict[Any, Program] = {}  # for calls in which the tape of a sample passes its limit
        self._kinds = kinds_of(kernel)
        self._made = _made_of(kernel)

    @property
    def program(self) -> Program:
        """What runs for each sample."""
        now = token()
        known = self._known
        if known is None or known[0] != now:
            known = self._known = now, self._program()
        return known[1]

    def strategy(
        self, uses: tuple[str, ...], samples: int, shapes: Sequence[tuple[int, ...]], program: Program | None = None
    ) -> Strategy:  # fmt: skip
        """How samples run, and why so, for these uses of the slots (see `blocks`): as lanes of vectors where a program
        can be widened, unless there are fewer samples than half of the lanes, or a block holds over `LARGEST` bytes."""
        program = program or self.program
        key = (program, varying(uses), self.width)
        found = self._made.strategies.get(key)
        if found is None:
            found = self._made.strategies[key] = strategy_of(program, uses, self.width)
        if found.name != "lanes" or self.width != "auto":
            return found
        if 2 * samples < found.lanes:
            return Strategy("loop", f"{samples} samples fill less than half of {found.lanes} lanes", found.serial)
        held = sum(math.prod(shapes[i]) * program.slots[i].dtype.size for i in varying(uses))
        if held * found.lanes > LARGEST:
            why = f"{found.lanes} lanes would hold {held * found.lanes} bytes, more than {LARGEST}"
            return Strategy("loop", why, found.serial)
        return found

    def strategy_at(self, *args: Any, **kwargs: Any) -> Strategy:
        """How the samples of a call with these arguments run; nothing runs. Raises as the call does."""
        given = self.operands(args, kwargs)
        program, (starts, wanted) = self.program, self.request(given)
        jobs = [self.job(n, slot, given, starts, wanted, {}) for n, slot in enumerate(program.slots)]
        uses = tuple(job.use(slot) for job, slot in zip(jobs, program.slots, strict=True))
        return self.strategy(uses, given.samples, program.shapes(given.bound.sizes))

    def operands(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Operands:
        """The checked arguments of a call."""
        return operands_of(self.kernel, self.kernel.ordered(tuple(args), kwargs), self.in_axes, self.layout)

    def request(self, given: Operands) -> Request:
        """Slots that start from given values, and what is wanted: slot -> "each" or "sum"."""
        raise NotImplementedError

    def results(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> list[Any]:
        """What a call asks for, in the order of the request."""
        kind = kind_of(args, self._kinds) if out is None and not kwargs else None
        key = None if kind is None else (self.program, kind)
        known = self._repeats.get(key)
        if known is not None:
            try:
                plan, targets = known.run(args, self.threads)
            except TapeMemoryError:
                del self._repeats[key]  # the other way does it with states in place of the tape, or raises it again
            else:
                return [plain(array) for array in self._finished(plan, targets, known.status).values()]
        given = self.operands(args, kwargs)
        starts, wanted = self.request(given)
        found = self.run(given, starts, wanted, out, (key, args))
        return [plain(found[i]) for i in wanted]

    def run(
        self, given: Operands, starts: dict[int, Data], wanted: dict[int, str], out: Any = None,
        call: tuple[Any, Sequence[Any]] = (None, ()),
    ) -> dict[int, Any]:  # fmt: skip
        """Run the program for all samples.

        starts: slots that start from given values (tangents, cotangents); wanted: slot -> "each" or "sum"
        call:   what calls like this one have in common (None: nothing), and the arguments
        Returns the results by slot. Raises KernelError when a sample's status is not 0. A batch in which the tape of a
        sample passes its limit (see `Unit`) begins anew, with states in place of the tape.
        """
        sizes = (self.program, *given.bound.sizes.values())
        program, asked = self._longer.get(sizes, self.program), wanted
        shapes = program.shapes(given.bound.sizes)
        targets = arrays_for_results(program.slots, shapes, given, wanted, self.layout, out)
        status = program.status_slot
        if status is not None:
            targets[status] = np.zeros(given.samples, program.slots[status].dtype.numpy)
            wanted = {**wanted, status: "each"}
        jobs = [self.job(n, slot, given, starts, wanted, targets) for n, slot in enumerate(program.slots)]
        if given.samples == 0:
            return {n: array if wanted[n] == "each" else _zeros(array) for n, array in targets.items() if n != status}
        uses = tuple(job.use(slot) for job, slot in zip(jobs, program.slots, strict=True))
        strategy = self.strategy(uses, given.samples, shapes, program)
        unit = unit_of(program, strategy, uses, self._made.units)
        plan = make_plan(unit, shapes, given.samples, jobs)
        key, values = call
        if key is not None and len(self._repeats) < KEPT:
            repeat = repeat_of(self.kernel, values, given, plan, jobs, targets, status)
            if repeat is not None:
                self._repeats[key] = repeat
        try:
            with unit.turn:
                plan.run(1 if strategy.serial else self.threads)
        except TapeMemoryError as error:
            self._repeats.pop(key, None)
            self._longer[sizes] = unit.keeping_states(error)
            return self.run(given, starts, asked, out)
        return self._finished(plan, targets, status)

    def _finished(self, plan: Plan, targets: dict[int, Array], status: int | None) -> dict[int, Array]:
        """The results of a plan that ran, without the statuses. Raises KernelError when a sample failed."""
        if status is not None:
            self._check(targets.pop(status))
        for n in plan.sums:
            if n in targets:
                targets[n][...] = plan.summed(n).reshape(targets[n].shape)
        return targets

    def _check(self, statuses: Array) -> None:
        """Raise KernelError when a sample failed."""
        failed = np.flatnonzero(statuses)
        if failed.size:
            source = self.kernel.source
            status = int(statuses[failed[0]])
            raise failure(source.name, source.signature, source.errors, status, failed.tolist())

    def job(
        self, number: int, slot: Slot, given: Operands, starts: dict[int, Data], wanted: dict[int, str],
        targets: dict[int, Array],
    ) -> Job:  # fmt: skip
        """What happens to one slot."""
        source = starts.get(number)
        if source is None and not slot.steps and slot.role in ("in", "inout"):
            source = given.data.get(slot.index)
        start = "zero" if source is None else "each" if source.sample else "one"
        target = None
        if wanted.get(number) == "each" and number in targets:
            array = targets[number]
            target = Data(array, *strides_of(array.shape, self._batch_axis(array), array.itemsize))
        return Job(start, source, wanted.get(number, ""), target)

    def _batch_axis(self, array: Array) -> int:
        return array.ndim - 1 if self.layout == "soa" else 0

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self.kernel.signature}>"


def _zeros(array: Array) -> Array:
    array[...] = 0
    return array


def _choice(name: str, value: Any, known: Sequence[Any]) -> None:
    if isinstance(value, bool) or value not in known:
        raise SignatureError(f"{name} = {value!r} is not known", fix=f"{name} = " + " or ".join(map(repr, known)))


class _Primal(Batched):
    """Made by `batch`."""

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """The kernel's results for all samples: one array, or a tuple in the order of a single call."""
        rows = self.results(args, kwargs, out)
        return rows[0] if len(rows) == 1 else tuple(rows) if rows else None


    def request(self, given: Operands) -> Request:
        """Every output."""
        wanted = dict.fromkeys(self.kernel.output_positions, self.reduce or "each")
        if self.reduce:
            _only_floats(self.kernel, self.program.slots, wanted)
        return {}, wanted


class _Gradient(Batched):
    """Made by `batch_grad` and `batch_value_and_grad`."""

    positions: tuple[int, ...]
    single: bool
    with_value: bool

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """The gradients of all samples, `(values, gradients)` with values; `out` lists the values first."""
        rows = self.results(args, kwargs, _flat(out))
        result = structured(rows[self.with_value :], self.single)
        return (rows[0], result) if self.with_value else result

    def request(self, given: Operands) -> Request:
        """The value first, then the gradients; the cotangent of the value is one."""
        program = self.program
        key = (program, *given.axes)
        found = self._requests.get(key)
        if found is None:
            found = self._requests[key] = self._requested(program, given)
        return found

    def _requested(self, program: Program, given: Operands) -> Request:
        target = scalar_output(self.kernel)
        wanted = {_slot(program, target): self.reduce or "each"} if self.with_value else {}
        for position in self.positions:
            shared = self.reduce and position not in given.axes
            wanted[_slot(program, position, 0)] = "sum" if shared else "each"
        seed = _slot(program, target, 0)
        one = np.ones((), program.slots[seed].dtype.numpy)
        return {seed: Data(one, 0, one.itemsize)}, wanted


def batch(
    kernel: Kernel, *, in_axes: AxesSpec = None, layout: str = "auto", width: int | str = "auto",
    threads: int | None = None, reduce: str | None = None,
) -> _Primal:  # fmt: skip
    """The kernel over a batch: a function of its arguments, some of which have one axis more.

OPTIONS
    Returns what the kernel returns, each result with the batch in front (`[N, ...]`; `[..., N]` for layout="soa"); with
    reduce="sum" the sum over the samples (floating-point results only). Raises as the kernel does, and ShapeError or
    SignatureError for what does not fit the batch.

        >>> irgrad.batch(f)(np.array([1.0, 2.0]), 3.0)
        array([ 3., 12.])
    """
    return _Primal(kernel, lambda: kernel.primal, f"batch_{_name(kernel)}", in_axes=in_axes, layout=layout, width=width,
                   threads=threads, reduce=reduce)


def batch_grad(
    kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None, in_axes: AxesSpec = None, layout: str = "auto",
    width: int | str = "auto", threads: int | None = None, reduce: str | None = None,
) -> _Gradient:  # fmt: skip
    """Gradients of a scalar-valued kernel over a batch: a function of the kernel's arguments.

    wrt, argnums: as in `grad`; in_axes, layout, width, threads, reduce, and `out` in the call: as in `batch`

    Returns one array `[N, ...]` (`[..., N]` for layout="soa"), or a tuple of them when `wrt` is one: the gradient
    of each sample, also for shared arguments; with reduce="sum" the gradients of shared arguments are added up over the
    samples, always in the same order, and have their argument's shape. Raises as `grad` and `batch` do.

        >>> irgrad.batch_grad(f)(np.array([1.0, 2.0]), 3.0)
        array([ 6., 12.])
        >>> irgrad.batch_grad(f, wrt="y", reduce="sum")(np.array([1.0, 2.0]), 3.0)
        np.float64(5.0)
    """
    return _gradient(kernel, wrt, argnums, False, in_axes=in_axes, layout=layout, width=width, threads=threads,
                     reduce=reduce)


def batch_value_and_grad(
    kernel: Kernel, wrt: Wrt = None, *, argnums: Wrt = None, in_axes: AxesSpec = None, layout: str = "auto",
    width: int | str = "auto", threads: int | None = None, reduce: str | None = None,
) -> _Gradient:  # fmt: skip
    """Values and gradients of a scalar-valued kernel over a batch, from one pass over the samples.

    Arguments (wrt, argnums, in_axes, layout, width, threads, reduce) and errors are those of `batch_grad`. The function
    returns `(values, gradients)`: values of shape `[N]`, or their sum with reduce="sum".

        >>> irgrad.batch_value_and_grad(f)(np.array([1.0, 2.0]), 3.0)
        (array([ 3., 12.]), array([ 6., 12.]))
    """
    return _gradient(kernel, wrt, argnums, True, in_axes=in_axes, layout=layout, width=width, threads=threads,
                     reduce=reduce)


def _gradient(kernel: Kernel, wrt: Wrt, argnums: Wrt, with_value: bool, **options: Any) -> _Gradient:
    def program() -> Program:
        active = (*made.positions, scalar_output(kernel))
        return kernel.primal.vjp(active) if with_value else kernel.primal.pullback(active)

    made = _Gradient(kernel, program, f"batch_{'value_and_' if with_value else ''}grad_{_name(kernel)}", **options)
    made.positions, made.single = selected(kernel, wrt, argnums)
    scalar_output(kernel)  # raises for a kernel that is not scalar-valued
    made.with_value = with_value
    return made


def batch_jvp(
    kernel: Kernel, primals: Sequence[Any], tangents: Sequence[Any], *, in_axes: AxesSpec = None, layout: str = "auto",
    width: int | str = "auto", threads: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Outputs and their directional derivatives for all samples: `(out, tangent of out)`, forward mode.

    primals:  the kernel's arguments, some of them batched
    tangents: one per argument with its shape (batch included) and dtype; None for no perturbation
    in_axes, layout, width, threads: as in `batch`

    Results are those of `batch`; outputs that are not floating-point have the tangent None. Raises as `batch` does, and
    ShapeError, DTypeError or SignatureError for tangents that do not fit.

        >>> irgrad.batch_jvp(f, (np.array([1.0, 2.0]), 3.0), (np.ones(2), None))
        (array([ 3., 12.]), array([ 6., 12.]))
    """
    made = Batched(kernel, lambda: program, f"batch_jvp_{_name(kernel)}", in_axes=in_axes, layout=layout, width=width,
                   threads=threads, reduce=None)
    given = made.operands(primals, {})
    arguments = kernel.signature.arguments
    if len(tangents) != len(arguments):
        raise SignatureError(f"got {len(tangents)} tangents for {len(arguments)} arguments",
                             where=f"`{kernel.signature}`", fix="one per argument, None for no perturbation")
    index = {p.name: i for i, p in enumerate(kernel.signature.parameters)}
    moved: dict[int, Data] = {}
    for p, primal, tangent in zip(arguments, primals, tangents, strict=True):
        if tangent is not None and p.dtype.is_float:
            array = like(tangent, np.asarray(primal, p.dtype.numpy), f"tangent of `{p.name}`")
            axis = given.axes.get(index[p.name])
            moved[index[p.name]] = _shared(array) if axis is None else data_of(array, axis)
    program = kernel.primal.jvp((*moved, *active_outputs(kernel)))
    outputs = kernel.output_positions
    found_at = [(_slot(program, i), program.find(i, 0)) for i in outputs]
    wanted = dict.fromkeys([n for pair in found_at for n in pair if n is not None], "each")
    found = made.run(given, {_slot(program, i, 0): data for i, data in moved.items()}, wanted)
    rows = [[None if n is None else plain(found[n]) for n in column] for column in zip(*found_at, strict=True)]
    out, tangent = [row[0] if len(row) == 1 else tuple(row) for row in rows] if rows else (None, None)
    return out, tangent


def batch_vjp(
    kernel: Kernel, *primals: Any, wrt: Wrt = None, in_axes: AxesSpec = None, layout: str = "auto",
    width: int | str = "auto", threads: int | None = None,
) -> tuple[Any, Callable[[Any], Any]]:  # fmt: skip
    """Outputs for all samples and the pullback, reverse mode: `(out, pullback)`.

    `pullback(cotangent)` takes a cotangent of the outputs (a tuple when there are several, None for none) and gives the
    gradients of the arguments in `wrt` (all floating-point ones by default, then as a tuple). Gradients of batched
    arguments have the batch in front; those of shared arguments are summed over the samples, in a fixed order: it is
    the pullback of the batched function. Arguments are copied; in_axes, layout, width and threads as in `batch`. Raises
    as `batch` does, and ShapeError, DTypeError or SignatureError for cotangents that do not fit.

        >>> values, pullback = irgrad.batch_vjp(f, np.array([1.0, 2.0]), 3.0)
        >>> pullback(np.ones(2))[0]
        array([ 6., 12.])
    """
    positions, single = selected(kernel, wrt, None, all_floats=True)
    options: dict[str, Any] = {"in_axes": in_axes, "layout": layout, "width": width, "threads": threads}
    out = batch(kernel, **options)(*primals)
    program = kernel.primal.pullback((*positions, *active_outputs(kernel)))
    made = Batched(kernel, lambda: program, f"batch_vjp_{_name(kernel)}", reduce=None, **options)
    given = made.operands(primals, {})
    given = Operands(given.samples, given.axes, given.bound,
                     {i: Data(d.array.copy(), d.sample, d.element) for i, d in given.data.items()})
    outputs = kernel.output_positions
    results = [out] if len(outputs) == 1 else list(out)

    def pullback(cotangent: Any) -> Any:
        """Gradients of the arguments for this cotangent of the outputs."""
        rows = [cotangent] if len(outputs) == 1 else list(cotangent)
        if len(rows) != len(outputs):
            raise SignatureError(f"got {len(rows)} cotangents for {len(outputs)} outputs",
                                 where=f"`{kernel.signature}`", fix="one per output: " + ", ".join(kernel.output_names))
        starts: dict[int, Data] = {}
        for position, name, row, result in zip(outputs, kernel.output_names, rows, results, strict=True):
            number = program.find(position, 0)
            if number is not None and row is not None:
                array = like(row, np.asarray(result), f"cotangent of `{name}`")
                starts[number] = data_of(array, array.ndim - 1 if made.layout == "soa" else 0)
        slots = [_slot(program, i, 0) for i in positions]
        wanted = {n: "each" if i in given.axes else "sum" for n, i in zip(slots, positions, strict=True)}
        found = made.run(given, starts, wanted)
        return structured([plain(found[n]) for n in slots], single)

    return out, pullback


def _shared(array: Array) -> Data:
    return Data(np.ascontiguousarray(array), 0, array.itemsize)


def _flat(out: Any) -> Any:
    """`(values, (a, b))` as one tuple."""
    if out is None or isinstance(out, np.ndarray):
        return out
    return [array for part in out for array in (part if isinstance(part, tuple | list) else [part])]


def _only_floats(kernel: Kernel, slots: Sequence[Slot], wanted: dict[int, str]) -> None:
    for number in wanted:
        if not slots[number].differentiable:
            raise DTypeError(f"`{slots[number].name}` cannot be summed over the batch", where=f"`{kernel.signature}`",
                             because=f"its elements are {slots[number].dtype}", fix="reduce=None, np.sum the result")


def _name(kernel: Any) -> str:
    return getattr(kernel, "name", "?")


def _slot(program: Program, index: int, *steps: int) -> int:
    number = program.find(index, *steps)
    assert number is not None, f"a slot of {program!r} is missing: {index}, {steps}"
    return number
