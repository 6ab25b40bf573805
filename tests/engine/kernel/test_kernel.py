"""Kernels on NumPy arrays."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading

import numpy as np
import pytest
from counting_work import lines_run
from samples import library, sample

import irgrad


def test_scalars_and_arrays() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert sample("cubes")(x, 2.0) == 72.0
    assert sample("cubes")(a=0.5, x=x) == 18.0
    assert sample("product")(3.0, 0.5) == pytest.approx(3 * np.sin(0.5), rel=1e-15)
    value = sample("halves")(np.array([2.0], np.float32))
    assert value == 2.0 and value.dtype == np.float32


def test_several_outputs_in_the_order_of_the_prototype() -> None:
    x = np.array([1.0, 2.0])
    total, y, z = sample("two")(x)
    assert total == 3.0 and z == 2.0
    np.testing.assert_allclose(y, np.sin(x), rtol=1e-15)
    assert sample("two").output_names == ("return", "y", "z")


def test_inout_returns_a_new_array() -> None:
    x = np.array([1.0, 2.0])
    moved, squares = sample("scale")(x, 3.0)
    assert x.tolist() == [1, 2] and moved.tolist() == [3, 6] and squares.tolist() == [9, 36]


def test_outputs_sized_by_an_argument_and_small_types() -> None:
    assert sample("ramp")(4, 2).tolist() == [0, 2, 4, 6]
    assert bool(sample("flip")(True, 7)) and not bool(sample("flip")(True, 200))
    assert sample("count")(np.array([1.0, -1.0, 2.0])) == 2


def test_empty_arrays() -> None:
    assert sample("cubes")(np.zeros(0), 2.0) == 0.0


def test_a_call_costs_little() -> None:
    """The plan is made once, by the second call: one more runs some dozens of lines of Python, whatever the size."""
    kernel = sample("cubes")

    def lines(size: int) -> int:
        x = np.ones(size)
        for _ in range(2):
            kernel(x, 1.0)
        return lines_run(lambda: kernel(x, 1.0))

    assert lines(10_000) == lines(3) < 50


def test_prepared_calls_repeat() -> None:
    prepared = sample("scale").prepare(np.array([1.0, 2.0]), 3.0)
    for _ in range(3):
        prepared()
        assert [row.tolist() for row in prepared.outputs] == [[3, 6], [9, 36]]


def test_sixteen_threads_compile_once() -> None:
    kernel = irgrad.load("double sq(double x) { return x * x; }").kernel("sq")
    barrier, results, seen = threading.Barrier(16), [], set()

    def work() -> None:
        barrier.wait()
        results.append(kernel(3.0))
        seen.add(id(kernel.primal.compiled))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [9.0] * 16 and len(seen) == 1


def test_errors_at_construction() -> None:
    with pytest.raises(irgrad.SignatureError, match="needs a signature"):
        library().kernel("cubes")
    with pytest.raises(irgrad.SignatureError, match="contradicts"):
        library().kernel("cubes", "f64(f64[n] x, f64 a, i32 n)")


def test_repr_names_the_signature() -> None:
    assert "f64[n] x" in repr(sample("cubes"))


def test_copies_are_the_kernel_itself() -> None:
    kernel = sample("cubes")
    assert copy.copy(kernel) is kernel
    assert copy.deepcopy({"k": [kernel]})["k"][0] is kernel


def test_pickled_kernels() -> None:
    x = np.array([1.0, 2.0])
    again = pickle.loads(pickle.dumps(sample("cubes")))
    assert again is not sample("cubes") and again.content_digest == sample("cubes").content_digest
    np.testing.assert_allclose(irgrad.engine.grad(again)(x, 2.0), 6 * x**2)
    tree = pickle.loads(pickle.dumps(sample("cubes").tree({"where": "x"}, "a")))
    assert tree({"where": x}, 2.0) == 18.0
    lib = irgrad.load("int f(double x, double *y) { *y = 2 * x; return x < 0; }")
    failing = lib.kernel("f", "i32(f64 x, out f64 y)", errors={1: "x is negative"})
    failing = pickle.loads(pickle.dumps(failing))
    assert failing(2.0) == 4.0
    with pytest.raises(irgrad.KernelError, match="x is negative"):
        failing(-2.0)


def test_arguments_are_known_to_inspect() -> None:
    assert str(inspect.signature(sample("cubes"))) == "(x, a)"
    reserved = irgrad.load("double f(double in) { return in; }").kernel("f")
    assert reserved(in_ := 2.0) == in_ and "args" in str(inspect.signature(reserved))  # `in` is a word of Python
