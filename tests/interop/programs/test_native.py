"""Programs on memory of the caller."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from samples import sample

import irgrad
from irgrad.engine.batches import unit
from irgrad.engine.kernel import programs
from irgrad.interop.programs.arguments import Values, bound_call
from irgrad.interop.programs.native import Native, native_call
from irgrad.interop.programs.plans import Plan, plan_of

VALUES = Values(
    lambda value: isinstance(value, np.ndarray), lambda value, p: np.asarray(value), lambda value, p: int(value), "map"
)


def _made(kernel, values, batch=()) -> tuple[Native, list]:
    call = bound_call(kernel, values, VALUES)
    return native_call(call.spec, call.sizes, call.constants, batch), call.operands


def _run(native: Native, operands) -> list[np.ndarray]:
    rows = [np.ascontiguousarray(x) for x in operands]
    out = [np.full(shape, 0 if zero else 99, kind)
           for (shape, kind), zero in zip(native.results, native.zeroed, strict=True)]  # fmt: skip
    native([x.ctypes.data for x in rows], [y.ctypes.data for y in out], [x.shape for x in rows])
    return out


def test_results_lie_where_the_caller_wants_them() -> None:
    x = np.array([1.0, 2.0, -1.0])
    native, operands = _made(sample("scale"), [x, np.array(0.5)])
    for _ in range(3):  # frames are used again
        moved, squares = _run(native, operands)
        np.testing.assert_array_equal(moved, x * 0.5)
        np.testing.assert_array_equal(squares, (x * 0.5) ** 2)
    np.testing.assert_array_equal(x, [1.0, 2.0, -1.0])


def test_outputs_start_from_zero() -> None:
    lib = irgrad.load("void add(const double *x, double *y, long n) { for (long i = 1; i < n; i++) y[i] += x[i]; }")
    native, operands = _made(lib.kernel("add", "void(f64[n] x, out f64[n] y, i64 n)"), [np.ones(4)])
    assert native.zeroed == [True]
    for _ in range(2):
        np.testing.assert_array_equal(_run(native, operands)[0], [0, 1, 1, 1])


def test_arrays_without_elements() -> None:
    native, operands = _made(sample("scale"), [np.ones(0), np.array(0.5)])
    native([0, operands[1].ctypes.data], [0, 0])


def test_batch_axes_of_size_one_are_shared() -> None:
    rng = np.random.default_rng(1)
    pos, mass = rng.normal(size=(2, 3, 5, 3)), rng.uniform(1, 2, (1, 3, 5))
    energy = sample("energy")
    native, _ = _made(energy, [pos[0, 0], mass[0, 0]], (2, 3))
    wanted = [[energy(pos[i, j], mass[0, j]) for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(_run(native, [pos, mass])[0], wanted, rtol=1e-14)
    np.testing.assert_allclose(_run(native, [pos[:1, :1], mass[:, :1]])[0], np.full((2, 3), wanted[0][0]), rtol=1e-14)


def test_a_status_is_an_error_with_its_samples() -> None:
    lib = irgrad.load("int half(const double *x, double *y) { if (*x < 0) return 3; *y = *x / 2; return 0; }")
    kernel = lib.kernel("half", "i32(f64[] x, out f64 y)", errors={3: "negative"})
    native, _ = _made(kernel, [np.array(1.0)])
    assert _run(native, [np.array(1.0)])[0] == 0.5
    for _ in range(2):
        with pytest.raises(irgrad.KernelError, match="negative"):
            _run(native, [np.array(-1.0)])
    assert _run(native, [np.array(3.0)])[0] == 1.5
    batched, _ = _made(kernel, [np.array(1.0)], (3,))
    with pytest.raises(irgrad.KernelError, match="sample 1") as caught:
        _run(batched, [np.array([1.0, -1.0, 2.0])])
    assert caught.value.samples == (1,)


def test_threads_have_frames_of_their_own() -> None:
    native, _ = _made(sample("scale"), [np.ones(50), np.array(1.0)])
    wrong: list[float] = []

    def work(factor: float) -> None:
        for _ in range(300):
            moved, _ = _run(native, [np.ones(50), np.array(factor)])
            if (moved != factor).any():
                wrong.append(factor)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("batch", [(), (3,)])
def test_long_tapes_become_states(batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (programs, unit):
        monkeypatch.setattr(module, "free_memory", lambda: 1 << 20)
    library = irgrad.load("""
    void walk(const double *x, double p, double *y, long n, long steps) {
        for (long i = 0; i < n; i++) y[i] = x[i];
        for (long t = 0; t < steps; t++)
            for (long i = 0; i < n; i++) y[i] += 1e-3 * __builtin_sin(y[(i + 1) % n] * p);
    }""")
    found = []
    for how in (None, "auto"):
        kernel = library.kernel("walk", "void(f64[n] x, f64 p, out f64[n] y, i64 n, i64 steps)", tape_memory=how)
        values = [np.linspace(1, 2, 5), np.array(0.5), np.array(40_000)]
        call = bound_call(kernel, values, VALUES)
        plan = plan_of(Plan, call.spec, call.sizes, call.constants)
        ((plan, _),) = plan.gradients((0, 1), (0,))
        plan = plan.mapped(*batch) if batch else plan
        rows = [*call.operands, np.linspace(-1, 1, 5)]
        rows = [np.broadcast_to(row, (*batch, *row.shape)) for row in rows]
        for steps in (40_000, 5, 40_000):
            rows[2] = np.full(rows[2].shape, steps)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found.append(_run(plan.native, rows))
            names = {one.category.__name__ for one in told}
            assert names == ({"LongTape"} if how and steps > 5 and len(found) == 4 else set())
    for right, now in zip(found[:3], found[3:], strict=True):
        for a, b in zip(right, now, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9)
