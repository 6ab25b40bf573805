"""Every public way to get a derivative, on a random kernel, against the Jacobian of the interpreter.

A door is a function of a `Visit` that gives (what, got, want). Those that compile C programs are in programs.py, and
widths and batches of many shapes in widths.py and batches.py; `DOORS` names them all, and a test compares it with what
is public.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from oracle.build import to_ir
from oracle.differences import Subject
from oracle.generator import HEADER, Kernel

from fuzz.verdicts import Verdict, flat, gap, tolerance_of

Row = tuple[str, Any, Any]


class Visit:
    """A kernel at some inputs: what is right, and the arguments of the calls."""

    def __init__(self, k: Kernel, source: str, seed: int = 0) -> None:
        import irgrad
        from irgrad.engine.ir.text.reader import read

        rng = np.random.default_rng([k.seed, seed])
        self.k, self.source = k, source
        self.kernel: Any = irgrad.load(source).kernel(k.name, k.signature)
        self.subject = Subject(read(to_ir(source)), k.name, k.signature)
        self.named = k.sample(rng)
        self.inputs = list(self.named.values())
        self.wrt = k.wrt
        self.directions = {n: _like(rng, self.named[n]) for n in k.wrt}
        self.tangents = [self.directions.get(n) for n in self.named]
        self.seeds = [_like(rng, output) for output in self.rows(self.kernel(*self.inputs))]

    def rows(self, value: Any) -> list[Any]:
        """The outputs one by one."""
        return [value] if len(self.kernel.output_names) == 1 else list(value)

    @cached_property
    def jacobian(self) -> dict[tuple[str, str], Any]:
        """By output and argument, flat."""
        return self.subject.jacobian(self.named, self.wrt)

    @property
    def gradient(self) -> list[Any]:
        """Of the returned value."""
        return [self.jacobian["return", n] for n in self.wrt]

    @property
    def moved(self) -> list[Any]:
        """Each output's derivative along the directions."""
        j, directions = self.jacobian, self.directions.items()
        return [sum(j[o, n] @ flat(d) for n, d in directions) for o in self.kernel.output_names]

    @property
    def pulled(self) -> list[Any]:
        """Each argument's cotangent from the seeds."""
        seeds = list(zip(self.kernel.output_names, self.seeds, strict=True))
        return [sum(flat(s) @ self.jacobian[o, n] for o, s in seeds) for n in self.wrt]

    @cached_property
    def hessian(self) -> dict[tuple[str, str], Any]:
        """Of the returned value, by differences of the oracle's gradient."""
        out, h = {}, 1e-5
        for n in self.wrt:
            columns: dict[str, list[Any]] = {m: [] for m in self.wrt}
            for i in range(np.size(self.named[n])):
                ends = []
                for sign in (1, -1):
                    moved = np.array(self.named[n])
                    moved.reshape(-1)[i] += sign * h
                    ends.append(self.subject.jacobian({**self.named, n: moved}, self.wrt))
                for m in self.wrt:
                    columns[m].append((flat(ends[0]["return", m]) - flat(ends[1]["return", m])) / (2 * h))
            for m in self.wrt:
                out[m, n] = np.stack(columns[m], -1)
        return out

    def pair(self, what: str, got: Any, want: Any) -> Iterator[Row]:
        """Several results side by side."""
        got = list(got) if isinstance(got, tuple) else [got]
        assert len(got) == len(want), what
        for g, w in zip(got, want, strict=True):
            yield what, g, w


def _like(rng: np.random.Generator, value: Any) -> Any:
    return rng.uniform(-1, 1, np.shape(value)).astype(np.asarray(value).dtype)


def _seeds(v: Visit, many: int = 0) -> Any:
    rows = [np.stack([s] * many) for s in v.seeds] if many else v.seeds
    return rows[0] if len(rows) == 1 else tuple(rows)


def _samples(v: Visit, count: int = 5) -> list[Any]:
    """The inputs as a batch: the first sample is the visit's."""
    rng = np.random.default_rng(v.k.seed)
    more = [v.k.sample(rng) for _ in range(count - 1)]
    return [np.stack([value, *(row[n] for row in more)]) for n, value in v.named.items()]


# -- of the engine -------------------------------------------------------------------------------------------------


def _grad(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    yield from v.pair("grad", engine.grad(v.kernel, wrt=v.wrt)(*v.inputs), v.gradient)


def _value_and_grad(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    value, gradient = engine.value_and_grad(v.kernel, wrt=v.wrt)(*v.inputs)
    yield "value", value, v.subject.values(v.named)["return"]
    yield from v.pair("value_and_grad", gradient, v.gradient)


def _jvp(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    yield from v.pair("jvp", engine.jvp(v.kernel, v.inputs, v.tangents)[1], v.moved)


def _vjp(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    yield from v.pair("vjp", engine.vjp(v.kernel, *v.inputs, wrt=v.wrt)[1](_seeds(v)), v.pulled)


def _multi_jvp(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    tangents = [None if t is None else np.stack([t, 2 * t, 0 * t]) for t in v.tangents]
    got = v.rows(engine.multi_jvp(v.kernel, v.inputs, tangents)[1])
    for g, w in zip(got, v.moved, strict=True):
        yield "multi_jvp", g, np.stack([flat(w), 2 * flat(w), 0 * flat(w)])


def _segments(v: Visit) -> Iterator[Row]:
    """Loops that keep states, as often as one of some choices says."""
    import irgrad

    choice = (1, 3, "binomial:2", "memory:4kB")[v.k.seed % 4]
    kernel: Any = irgrad.load(v.source).kernel(v.k.name, v.k.signature, checkpoint={"*": choice})
    _, pullback = irgrad.vjp(kernel, *v.inputs, wrt=tuple(v.wrt))
    seeds = tuple(v.seeds) if len(v.seeds) > 1 else v.seeds[0]
    for g, w in zip(pullback(seeds), v.pulled, strict=True):
        yield f"checkpoint {choice}", g, w


def _multi_vjp(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    got = engine.multi_vjp(v.kernel, *v.inputs, wrt=v.wrt)[1](_seeds(v, 3))
    yield from v.pair("multi_vjp", got, [np.stack([flat(w)] * 3) for w in v.pulled])


def _full(name: str) -> Callable[[Visit], Iterator[Row]]:
    def door(v: Visit) -> Iterator[Row]:
        from irgrad import engine

        outputs = v.kernel.output_names
        got = v.rows(getattr(engine, name)(v.kernel, wrt=v.wrt)(*v.inputs))
        for o, row in zip(outputs, got, strict=True):
            yield from v.pair(f"{name} of {o}", row, [v.jacobian[o, n] for n in v.wrt])

    return door


def _jac_sparse(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    for o in v.kernel.output_names:
        for n in v.wrt:
            if np.ndim(v.named[n]) and o != "return":
                got = engine.jac_sparse(v.kernel, wrt=n, of=o)(*v.inputs)
                yield f"jac_sparse of {o}", got.toarray(), v.jacobian[o, n]


def _hvp(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    got = engine.hvp(v.kernel, v.inputs, tuple(v.directions[n] for n in v.wrt), wrt=v.wrt)
    want = [sum(v.hessian[m, n] @ flat(v.directions[n]) for n in v.wrt) for m in v.wrt]
    yield from v.pair("second: hvp", got, want)


def _hessian(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    for n in v.wrt:
        yield "second: hessian", engine.hessian(v.kernel, wrt=n)(*v.inputs), v.hessian[n, n]


def _hessian_sparse(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    for n in v.wrt:
        if np.ndim(v.named[n]):
            yield "second: hessian_sparse", engine.hessian_sparse(v.kernel, wrt=n)(*v.inputs).toarray(), v.hessian[n, n]


def _batch_grad(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    got = engine.batch_grad(v.kernel, wrt=v.wrt)(*_samples(v))
    for row in v.pair("batch_grad", got, v.gradient):
        yield row[0], row[1][0], row[2]


def _batch_value_and_grad(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    value, got = engine.batch_value_and_grad(v.kernel, wrt=v.wrt)(*_samples(v))
    yield "value", value[0], v.subject.values(v.named)["return"]
    for row in v.pair("batch_value_and_grad", got, v.gradient):
        yield row[0], row[1][0], row[2]


def _batch_jvp(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    tangents = [None if t is None else np.stack([t] * 5) for t in v.tangents]
    for g, w in zip(v.rows(engine.batch_jvp(v.kernel, _samples(v), tangents)[1]), v.moved, strict=True):
        yield "batch_jvp", g[0], w


def _batch_vjp(v: Visit) -> Iterator[Row]:
    from irgrad import engine

    got = engine.batch_vjp(v.kernel, *_samples(v), wrt=v.wrt)[1](_seeds(v, 5))
    for row in v.pair("batch_vjp", got, v.pulled):
        yield row[0], row[1][0], row[2]


# -- of JAX --------------------------------------------------------------------------------------------------------


def _jax_function(v: Visit) -> Any:
    """The returned value, or the sum of the outputs' products with the seeds."""
    import jax.numpy as jnp

    def total(*arguments: Any) -> Any:
        return sum(jnp.vdot(s, o) for s, o in zip(v.seeds, v.rows(v.kernel(*arguments)), strict=True))

    return total


def _positions(v: Visit) -> tuple[int, ...]:
    return tuple(list(v.named).index(n) for n in v.wrt)


def _jax_grad(v: Visit) -> Iterator[Row]:
    import jax

    got = jax.jit(jax.grad(_jax_function(v), argnums=_positions(v)))(*v.inputs)
    for g, w in zip(got, v.pulled, strict=True):
        yield "jax.grad", g, w


def _jax_jvp(v: Visit) -> Iterator[Row]:
    import jax

    both = zip(v.inputs, v.tangents, strict=True)
    tangents = [np.zeros(np.shape(x), jax.dtypes.float0) if t is None else t for x, t in both]
    got = v.rows(jax.jvp(v.kernel, v.inputs, tangents)[1])
    for g, w in zip(got, v.moved, strict=True):
        yield "jax.jvp", g, w


def _jax_vmap(v: Visit) -> Iterator[Row]:
    import jax

    got = jax.jit(jax.vmap(jax.grad(_jax_function(v), argnums=_positions(v))))(*_samples(v))
    for g, w in zip(got, v.pulled, strict=True):
        yield "jax.vmap", g[0], w


def _jax_export(v: Visit) -> Iterator[Row]:
    import jax

    from irgrad.interop import jax as bridge

    gradient = jax.jit(jax.grad(_jax_function(v), argnums=_positions(v)))
    data = bridge.serialize(bridge.export(gradient)(*v.inputs))
    for g, w in zip(bridge.deserialize(data).call(*v.inputs), v.pulled, strict=True):
        yield "exported jax.grad", g, w


def _device_vmap(v: Visit) -> Iterator[Row]:
    """As a kernel of a device would run it, thread by thread; integers are constants of the call. What a device cannot
    run is refused by name, and gives no row."""
    import jax
    from grids import on_grid

    from irgrad.rules.errors import Unsupported

    samples = dict(zip(v.named, _samples(v), strict=True))
    floats = [a.name for a in v.k.arguments if a.extent or a.dtype.startswith("f")]

    def total(*given: Any) -> Any:
        return _jax_function(v)(*{**v.named, **dict(zip(floats, given, strict=True))}.values())

    positions = tuple(floats.index(n) for n in v.wrt)
    try:
        with on_grid(3):
            got = jax.jit(jax.vmap(jax.grad(total, argnums=positions)))(*(samples[n] for n in floats))
    except Unsupported as error:
        if not error.what.startswith("a GPU cannot run this"):
            raise
        return
    for g, w in zip(got, v.pulled, strict=True):
        yield "jax.vmap on a device", g[0], w


# -- of the command line -------------------------------------------------------------------------------------------


def _command_grad(v: Visit) -> Iterator[Row]:
    """A library that C calls: each argument, after an active one its gradient; of odd kernels behind a size."""
    from irgrad.interop.cli import main

    name, signature, text = v.k.name, v.k.signature, v.source
    sized: list[Any] = []
    array = next((a for a in v.k.arguments if a.extent), None)
    if v.k.seed % 2 and array is not None:
        name, sized = f"{v.k.name}_sized", [ctypes.c_int64(array.extent)]
        returned, call = ("double", "return ") if v.k.returns else ("void", "")
        text += f"{returned} {name}(long n_, {', '.join(a.c for a in v.k.arguments)}) {{ {call}{v.k.name}"
        text += f"({', '.join(a.name for a in v.k.arguments)}); }}\n"
        with_size = array.text.replace(f"[{array.extent}]", "[n_]")
        signature = signature.replace("(", "(i64 n_, ", 1).replace(array.text, with_size, 1)
    with tempfile.TemporaryDirectory(prefix="irgrad-fuzz-") as folder:
        source, output = Path(folder) / "k.c", Path(folder) / "k.so"
        source.write_text(text)
        words = [str(source), name, "--sig", signature, "--wrt", ",".join(v.wrt), "-o", str(output)]
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["grad", *words]) == 0
        library = ctypes.CDLL(str(output))
        kinds = {"f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_int64, "i32": ctypes.c_int32}
        given, kept, found = list(sized), [], []
        for a in v.k.arguments:
            value = np.array(v.named[a.name])
            kept.append(value)
            given.append(ctypes.c_void_p(value.ctypes.data) if a.extent else kinds[a.dtype](value.item()))
            if a.name in v.wrt:
                found.append(np.zeros_like(np.atleast_1d(value)))
                given.append(ctypes.c_void_p(found[-1].ctypes.data))
        getattr(library, f"{name}_grad")(*given)
    for g, w in zip(found, v.gradient, strict=True):
        yield "irgrad grad", g, w


def _command_cc(v: Visit) -> Iterator[Row]:
    """A program that was built, run later."""
    from fuzz.programs import Case, program
    from irgrad.engine.ir.text.reader import read
    from irgrad.interop.cli import main

    case = Case(v.k, read(to_ir(v.source)))
    with tempfile.TemporaryDirectory(prefix="irgrad-fuzz-") as folder:
        source, built, results = (Path(folder) / name for name in ("p.c", "p", "results"))
        source.write_text(program([case]))
        assert main(["cc", "-O2", "-w", str(source), "-lm", "-o", str(built)]) == 0
        subprocess.run([built, results], check=True, stdout=subprocess.DEVNULL)
        got = np.fromfile(results)
    for mode, numbers, want in case.compared(got):
        yield f"irgrad cc, {mode}", numbers, want


Door = Callable[[Visit], Iterator[Row]]

VALUED: dict[str, Door] = {
    "engine.grad": _grad, "engine.value_and_grad": _value_and_grad, "engine.hvp": _hvp, "engine.hessian": _hessian,
    "engine.hessian_sparse": _hessian_sparse, "engine.batch_grad": _batch_grad,
    "engine.batch_value_and_grad": _batch_value_and_grad, "irgrad grad": _command_grad,
}  # fmt: skip
"""Doors of functions that return a value."""

ANY: dict[str, Door] = {
    "engine.jvp": _jvp, "engine.vjp": _vjp, "lib.kernel(checkpoint=)": _segments,
    "engine.multi_jvp": _multi_jvp, "engine.multi_vjp": _multi_vjp,
    "engine.jacfwd": _full("jacfwd"), "engine.jacrev": _full("jacrev"), "engine.jacobian": _full("jacobian"),
    "engine.jac_sparse": _jac_sparse,
    "engine.batch_jvp": _batch_jvp, "engine.batch_vjp": _batch_vjp, "jax.grad": _jax_grad, "jax.jvp": _jax_jvp,
    "jax.vmap": _jax_vmap, "jax on CUDA": _device_vmap, "interop.jax.export": _jax_export, "irgrad cc": _command_cc,
}  # fmt: skip
"""Doors of any function."""

ELSEWHERE = {
    "irgrad run": "programs.check_programs", "irgrad.load of .ll": "driver.check_generated",
    "__enzyme_autodiff": "programs.Case", "__enzyme_fwddiff": "programs.Case", "__enzyme_augmentfwd": "programs.Case",
    "__enzyme_reverse": "programs.Case", "__enzyme_fwdsplit": "programs.Case",
    "__enzyme_error_estimate": "programs.Case",
}  # fmt: skip
"""Doors that other checks of this folder go through."""

DOORS = {*VALUED, *ANY, *ELSEWHERE}


def visit(kernels: list[Kernel], report: Callable[[Any], None], doors: dict[str, Door] | None = None) -> None:
    """Check each kernel through every door that fits it; `report` gets the name before, and the verdict after each."""
    import irgrad

    for k in kernels:
        report(k.name)
        inside = doors if doors is not None else {**ANY, **(VALUED if k.returns else {})}
        problems = []
        try:
            v = Visit(k, HEADER + k.source)
            if not all(np.isfinite(part).all() for part in v.jacobian.values()):
                report(Verdict(k.name, "rejected", "the oracle is not finite"))
                continue
            for name, door in inside.items():
                for what, got, want in door(v):
                    tolerance = tolerance_of(k) if not what.startswith("second") else 3e-2 if k.has_f32 else 1e-5
                    if gap(got, want) > tolerance:
                        problems.append(f"{name}, {what}: got {flat(got)}, want {flat(want)}")
        except irgrad.IRGradError as error:
            report(Verdict(k.name, "refused", f"{type(error).__name__}: {error}"))
            continue
        report(Verdict(k.name, "wrong" if problems else "ok", "\n".join(problems)))
