"""Calls as kernels of a device: JAX's transformations through kernels that run on the host, thread by thread; what the
lowering for CUDA says to XLA; what XLA makes of it, without a device, where its plugin for CUDA is installed."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from grids import on_grid

import irgrad
from benchmarks import ours
from benchmarks.cases import CASES, Case
from benchmarks.native import inputs_of
from irgrad.engine.codegen import nvptx
from irgrad.interop.jax import device
from irgrad.interop.jax.device import TARGET, Launch, launch_of
from irgrad.rules.errors import Unsupported

from .test_rules_matrix import MATRIX, SUBJECTS, _same

pytestmark = pytest.mark.long
jax.config.update("jax_enable_x64", True)

SOURCE = r"""
#include <math.h>
double swing(const double *x, const double *p, long n) {
  double y = x[0], v = x[1];
  for (long i = 0; i < n; i++) { double a = -p[0] * sin(y) - p[1] * v; v += 0.01 * a; y += 0.01 * v; }
  return y * y + v;
}
int root(const double *x, double *y, long n) {
  for (long i = 0; i < n; i++) { if (x[i] < 0) return 1; y[i] = sqrt(x[i]); }
  return 0;
}
double product(const double *x, long n) { double s = 1; for (long i = 0; i < n; i++) s *= x[i]; return s; }
"""
SWING = irgrad.load(SOURCE).kernel("swing", "f64(f64[2] x, f64[2] p, i64 n)")
PRODUCT = irgrad.load(SOURCE).kernel("product", "f64(f64[n] x, i64 n)")
needs_library = pytest.mark.skipif(nvptx._library() is None, reason="libdevice and ptxas are not installed")
needs_plugin = pytest.mark.skipif(
    not any(importlib.util.find_spec(f"jax_cuda{n}_plugin") for n in (12, 13)) or nvptx._library() is None,
    reason="JAX's plugin for CUDA is not installed: `bash .ci/gpu` runs this")  # fmt: skip
H100 = """
gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000
  l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA" dnn_version_info { major: 9 } device_description_str: "NVIDIA H100 80GB HBM3"
"""


def _cells() -> list[tuple[str, str]]:
    """Each composition with two kinds of kernels."""
    kinds = list(SUBJECTS)
    return [(name, kinds[(row + k) % len(kinds)]) for row, name in enumerate(MATRIX) for k in (0, 3)]


@pytest.mark.parametrize(("name", "subject"), _cells())
def test_matrix_on_threads(name: str, subject: str) -> None:
    """Every composition, with five threads: against the same function in jax.numpy, and against the CPU's own code."""
    composition, s = MATRIX[name][0], SUBJECTS[subject]
    wanted = jax.jit(lambda: composition(s.kernel, s))()
    with on_grid(5) as made:
        got = jax.jit(lambda: composition(s.kernel, s))()
    assert made, "no kernel was made"
    _same(got, composition(s.twin, s), s.tolerance)
    _same(got, wanted, 1e-5 if subject == "f32" else 1e-13)


@pytest.mark.parametrize("case", [case for case in CASES if case.operation == "grad"], ids=lambda case: case.name)
def test_kernels_of_the_benchmarks(case: Case) -> None:
    """Values and gradients of three samples: LSTM, Gaussian mixture, RK4, n-body, Burgers and the others."""
    kernel, inputs = ours.kernel(case), inputs_of(case.signature, case.inputs(True))
    names = [p.name for p in kernel.signature.arguments]
    floats = [n for n, value in enumerate(inputs) if np.asarray(value).dtype.kind == "f"]
    wrt = tuple(floats.index(names.index(name)) for name in case.wrt)

    def loss(*given: Any) -> Any:
        full = {**dict(enumerate(inputs)), **dict(zip(floats, given, strict=True))}
        outputs = [o for o in jax.tree.leaves(kernel(*full.values())) if o.dtype.kind == "f"]
        return sum(jnp.vdot(o, jnp.cos(jnp.arange(o.size)).reshape(o.shape)) for o in outputs)

    rows = [np.multiply.outer([1, 0.99, 1.01], np.asarray(inputs[n])) for n in floats]
    wanted = jax.jit(jax.vmap(jax.value_and_grad(loss, wrt)))(*rows)
    with on_grid(2) as made:
        got = jax.jit(jax.vmap(jax.value_and_grad(loss, wrt)))(*rows)
    assert made
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * float(jnp.abs(b).max()))


@pytest.mark.parametrize("threads", [1, 7, 256])
def test_any_number_of_threads_gives_the_same(threads: int) -> None:
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(100, 2)), rng.normal(size=(100, 2))
    f = jax.jit(jax.vmap(jax.value_and_grad(lambda x, p: SWING(x, p, 20), (0, 1))))
    wanted = f(x, p)
    with on_grid(threads):
        got = jax.jit(jax.vmap(jax.value_and_grad(lambda x, p: SWING(x, p, 20), (0, 1))))(x, p)
    _same(got, wanted, 1e-13)


def test_a_sample_that_fails_is_nan() -> None:
    """On a device nothing can be raised: the sample's results are NaN, those of the others stay."""
    kernel = irgrad.load(SOURCE).kernel("root", "i32(f64[n] x, out f64[n] y, i64 n)", errors={1: "negative"})
    x = jnp.array([[1.0, 4.0], [-1.0, 4.0], [9.0, 16.0]])
    with on_grid(2):
        y = jax.vmap(kernel)(x)
        slopes = jax.vmap(jax.grad(lambda x: kernel(x).sum()))(x)
    assert np.array_equal(y, [[1, 2], [np.nan, np.nan], [3, 4]], equal_nan=True)
    assert np.array_equal(np.isnan(slopes), np.isnan(y)) and np.allclose(slopes[2], [1 / 6, 1 / 8])


def test_a_loop_that_ends_by_what_it_computes_needs_a_bound() -> None:
    source = "double halved(double x, double a) { double s = 0; while (x > 0.01) s += x *= a * a * x; return s; }"
    library, rows = irgrad.load(source), np.array([0.9, 0.5, 0.005])
    wanted = jax.vmap(jax.grad(library.kernel("halved"), (0, 1)), (0, None))(rows, 0.9)
    with on_grid(2):
        got = jax.vmap(jax.grad(library.kernel("halved", device_tape=4096), (0, 1)), (0, None))(rows, 0.9)
        with pytest.raises(Unsupported, match="how much memory a sample needs is not known beforehand") as caught:
            jax.vmap(jax.grad(library.kernel("halved")), (0, None))(rows, 0.9)
    _same(got, wanted, 1e-14)
    assert caught.value.where.startswith("<string>:1:") and "device_tape=" in caught.value.fix


def test_launches() -> None:
    assert launch_of(1, 0) == Launch(1, 32)
    assert launch_of(100, 1000) == Launch(1, 128)
    assert launch_of(1 << 17, 1000) == Launch(1024, 128)
    assert launch_of(10**9, 0) == Launch(1056, 128), "more samples than threads: each runs several"
    few = launch_of(10**6, 1 << 24)
    assert few.blocks * few.threads * (1 << 24) <= 1 << 31, "tapes of all threads fit"
    assert launch_of(10, 1 << 40) == Launch(1, 32)


def test_launches_by_registers() -> None:
    """Devices of 132 multiprocessors are filled, in blocks that use what the registers allow; or in blocks by hand."""
    assert launch_of(10**9, 0, registers=255) == Launch(132 * 256 // 128, 128)
    assert launch_of(10**9, 0, registers=200) == Launch(132 * 320 // 64, 64)
    assert launch_of(10**9, 0, registers=32) == Launch(132 * 2048 // 128, 128)
    assert launch_of(10**9, 0, registers=200, block=256) == Launch(132 * 320 // 256, 256)
    assert launch_of(100, 0, block=1024) == Launch(1, 128), "no more threads than samples"


@needs_library
def test_a_block_by_hand() -> None:
    kernel = irgrad.load(SOURCE).kernel("swing", "f64(f64[2] x, f64[2] p, i64 n)", device_block=64)
    text = _lowered(jax.vmap(lambda x, p: kernel(x, p, 10), (0, None)), X, P)
    assert "block_x = 64 : i32" in text and "grid_x = 64 : i32" in text


def _lowered(function: Any, *shapes: Any) -> str:
    return str(jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text())


X, P = jax.ShapeDtypeStruct((4096, 2), np.float64), jax.ShapeDtypeStruct((2,), np.float64)


def _slopes(x: Any, p: Any) -> Any:
    return jax.vmap(jax.grad(lambda x, p: SWING(x, p, 100), (0, 1)), (0, None))(x, p)


@needs_library
def test_a_call_is_one_kernel_of_xla() -> None:
    text = _lowered(_slopes, X, P)
    assert text.count(TARGET) == 1
    words = ("grid_x = 32 : i32", "block_x = 128 : i32", 'kernel_type = "ptx"', ".entry irgrad_swing_G0", "sm_80")
    assert [word for word in words if word not in text] == []
    tape = re.search(r"tensor<(\d+)xui8>", text)
    assert tape is not None and int(tape[1]) % 4096 == 0 and int(tape[1]) >= 4096 * 100 * 8


@needs_library
def test_a_second_lowering_comes_from_the_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _lowered(_slopes, X, P)
    jax.clear_caches()
    device._compiled.cache_clear()
    monkeypatch.setattr(device, "device_grid", None)
    assert _lowered(_slopes, X, P).count(TARGET) == first.count(TARGET)


def test_open_sizes_stay_on_the_cpu() -> None:
    (n,) = jax.export.symbolic_shape("n")
    shape = jax.ShapeDtypeStruct((n, 2), np.float64)
    rows = jax.jit(jax.vmap(jax.grad(lambda x: SWING(x, np.ones(2), 5))))
    with pytest.raises(Unsupported, match="gets arrays of open sizes on a GPU"):
        jax.export.export(rows, platforms=["cuda"])(shape)


def test_other_platforms_are_refused() -> None:
    with pytest.raises(Unsupported, match="`product` cannot run on this platform"):
        jax.jit(PRODUCT).trace(jnp.ones(3)).lower(lowering_platforms=("tpu",))


@needs_library
def test_an_export_for_a_device() -> None:
    allowed = [jax.export.DisabledSafetyCheck.custom_call(TARGET)]
    rows = jax.jit(jax.vmap(jax.grad(PRODUCT)))
    exported = jax.export.export(rows, platforms=["cuda"], disabled_checks=allowed)
    again = jax.export.deserialize(exported(jax.ShapeDtypeStruct((4, 3), np.float64)).serialize())
    assert again.platforms == ("cuda",) and TARGET in again.mlir_module()


# -- what XLA makes of it, without a device ------------------------------------------------------------------------


def _device() -> Any:
    from jax.experimental import topologies

    return topologies.get_topology_desc(platform="cuda", target_config=H100, topology="1x1x1").devices[0]


def _compiled_for(composition: Any) -> Any:
    sharding = jax.sharding.SingleDeviceSharding(_device())
    traced = jax.jit(composition, out_shardings=sharding).trace()
    return traced.lower(lowering_platforms=("cuda",)).compile()


PLACED = ("shard_map", "shard_map, no check_vma", "sharded batch")
"""Compositions that name the CPU's devices themselves."""


@needs_plugin
@pytest.mark.parametrize(("name", "subject"), [cell for cell in _cells() if cell[0] not in PLACED])
def test_matrix_compiles_for_a_device(name: str, subject: str) -> None:
    """One kernel for each native call."""
    composition, scalar, other = MATRIX[name]
    s = SUBJECTS[subject]
    text = _compiled_for(lambda: composition(s.kernel, s)).as_text()
    assert text.count(f'custom_call_target="{TARGET}"') >= min(scalar, other)


@needs_plugin
def test_the_tape_is_memory_of_the_launch_and_nothing_is_copied() -> None:
    sharding = jax.sharding.SingleDeviceSharding(_device())
    traced = jax.jit(_slopes, in_shardings=sharding).trace(X, P)
    compiled = traced.lower(lowering_platforms=("cuda",)).compile()
    text, memory = compiled.as_text(), compiled.memory_analysis()
    assert text.count("custom-call(") == 1 and " copy(" not in text
    assert 4096 * 100 * 8 <= memory.temp_size_in_bytes < 4096 * 100 * 64


# -- on a device ---------------------------------------------------------------------------------------------------


def _on(platform: str, function: Any) -> Any:
    with jax.default_device(jax.devices(platform)[0]):
        return jax.tree.map(np.asarray, function())


@pytest.fixture
def gpu() -> None:
    """A device, or the test is skipped."""
    try:
        jax.devices("cuda")
    except RuntimeError:
        pytest.skip("no GPU")


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("name", "subject"), [cell for cell in _cells() if cell[0] not in PLACED])
def test_matrix_on_a_device(name: str, subject: str) -> None:
    composition, s = MATRIX[name][0], SUBJECTS[subject]

    def run() -> Any:
        return jax.jit(lambda x, a: composition(s.kernel, dataclasses.replace(s, x=x)))(np.asarray(s.x), 0.0)

    _same(_on("cuda", run), _on("cpu", run), 1e-4 if subject == "f32" else 1e-11)
