"""Kernels that stay on the CPU in programs of a GPU: with a driver that is none (`driver.c`), whose memory the host
cannot touch and which copies nothing before one waits for it; and what XLA's compiler for devices says."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import irgrad
from irgrad.engine.codegen.jit import compile_module
from irgrad.interop.cli import main
from irgrad.interop.jax import deserialize, export, host_transfer, primitive, serialize
from irgrad.interop.jax.handler import TARGETS
from irgrad.rules.errors import IRGradError, Unsupported

from .test_device import PLACED, _device, needs_library, needs_plugin
from .test_rules_matrix import MATRIX, SUBJECTS, _same

pytestmark = pytest.mark.long
jax.config.update("jax_enable_x64", True)

LIBRARY = irgrad.load(r"""
#include <math.h>
#include <stdio.h>
double told(const double *x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i];
    printf("told %ld\n", n);
    return s;
}
double deep(double x, long n) { return n <= 0 ? x : deep(sin(x) * x, n - 1) + x; }
int root(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) { if (x[i] < 0) return 1; y[i] = sqrt(x[i]); }
    return 0;
}
void scaled(const double *p, double *x, long n) { for (long i = 0; i < n; i++) x[i] = x[i] * x[i] * p[0]; }
""")
TOLD = LIBRARY.kernel("told", "f64(f64[n] x, i64 n)", device="cpu")
ROOT = LIBRARY.kernel("root", "i32(f64[n] x, out f64[n] y, i64 n)", errors={1: "negative"}, device="cpu")
SCALED = LIBRARY.kernel("scaled", "void(f64[1] p, inout f64[n] x, i64 n)", device="cpu")
X = np.linspace(0.5, 1.5, 6)
_TRAMPOLINE = "define ptr @go(ptr %c) {{\n  %r = call ptr {shim}(ptr %c, ptr {handler})\n  ret ptr %r\n}}"


class Driver:
    """The driver that is none. numbers: what it has counted; kept: code that XLA may call as long as the process."""

    kept: list[Any] = []  # noqa: RUF012 - of the process

    def __init__(self, path: Path) -> None:
        self.path, self.library = path, ctypes.CDLL(str(path))

    def __getattr__(self, word: str) -> int:
        return int(ctypes.c_int.in_dll(self.library, word).value)

    def say(self, word: str, value: int) -> None:
        ctypes.c_int.in_dll(self.library, word).value = value

    def register(self, name: str) -> str:
        """What a program calls in place of a target: the one for devices, given memory of this driver."""
        made = compile_module(host_transfer.transfer_text(name, TARGETS[name].text), [name])
        shim = ctypes.cast(self.library.on_device, ctypes.c_void_p).value
        words = {"shim": f"inttoptr (i64 {shim} to ptr)", "handler": f"inttoptr (i64 {made.address(name)} to ptr)"}
        outer = compile_module(_TRAMPOLINE.format(**words), ["go"])
        self.kept += [made, outer]
        other = f"{name}.copied.{len(self.kept)}"
        jax.ffi.register_ffi_target(other, jax.ffi.pycapsule(outer.address("go")), platform="cpu")
        return other


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    path = tmp_path_factory.mktemp("driver") / "libdriver.so"
    assert main(["cc", "-shared", "-fPIC", "-O1", str(Path(__file__).with_name("driver.c")), "-o", str(path)]) == 0
    return Driver(path)


@pytest.fixture
def driver(built: Driver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Calls on the CPU run as those that stay on it in a program of a GPU."""
    for word in ("fetched", "brought", "waits", "errors", "fail_fetch", "fail_bring"):
        built.say(word, 0)
    monkeypatch.setattr(host_transfer, "DRIVER", str(built.path))
    monkeypatch.setattr(primitive, "register_transfer", built.register)
    monkeypatch.setitem(primitive.LOWERINGS, "cpu", partial(primitive._lower, transfer=True))
    jax.clear_caches()
    yield built
    jax.clear_caches()
    assert built.errors == 0


@pytest.mark.parametrize("name", [name for name in MATRIX if name not in PLACED][::4])
def test_compositions(name: str, driver: Driver) -> None:
    """A quarter of the matrix of JAX's transformations, with kinds of kernels that change."""
    composition, subject = MATRIX[name][0], list(SUBJECTS)[list(MATRIX).index(name) // 4 % len(SUBJECTS)]
    s = SUBJECTS[subject]
    got = jax.jit(lambda: composition(s.kernel, s))()
    _same(got, composition(s.twin, s), s.tolerance)
    assert driver.fetched and driver.brought and driver.waits >= 2


def test_arrays_that_are_changed_in_place(driver: Driver) -> None:
    """An operand that gives its memory to a result: one copy on the host."""
    f = jax.jit(lambda p, x: SCALED(p, x), donate_argnums=1)
    assert np.array_equal(f(jnp.array([2.0]), jnp.asarray(X)), 2 * X * X)
    assert (driver.fetched, driver.brought, driver.waits) == (2, 1, 2)


def test_no_elements(driver: Driver) -> None:
    assert jax.jit(lambda x: TOLD(x))(jnp.zeros(0)) == 0
    assert (driver.fetched, driver.brought) == (0, 1), "nothing is asked for an array of no bytes"


def test_what_a_device_cannot_do(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    """Printing, recursion that nobody bounds, a status that is raised."""
    value, slopes = jax.jit(jax.vmap(jax.value_and_grad(TOLD)))(np.stack([X, 2 * X]))
    assert np.allclose(slopes, [2 * X, 4 * X]) and np.allclose(value, [X @ X, 4 * X @ X])
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out.count("told 6") == 2
    deep = LIBRARY.kernel("deep", device="cpu")
    assert np.isclose(jax.jit(jax.grad(lambda x: deep(x, 9)))(0.7), irgrad.grad(LIBRARY.kernel("deep"))(0.7, 9))
    assert np.allclose(jax.jit(ROOT)(X), np.sqrt(X))
    failures = (jax.errors.JaxRuntimeError, ValueError)  # the latter from XLA:CPU, on the thread that calls
    with pytest.raises(failures, match="`root` failed with status 1: negative"):
        jax.block_until_ready(jax.jit(ROOT)(-X))
    with pytest.raises(failures, match=r"`root` failed with status 1: negative \(sample 1\)"):
        jax.block_until_ready(jax.jit(jax.vmap(ROOT))(np.stack([X, -X])))


@pytest.mark.parametrize("word", ["fail_fetch", "fail_bring"])
def test_a_driver_that_fails(word: str, driver: Driver) -> None:
    driver.say(word, 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"`scaled` stays on the CPU, .* its arrays: CUDA error 719"):
        jax.block_until_ready(jax.jit(lambda x: SCALED(jnp.ones(1), x))(X))


def test_no_driver(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_transfer, "DRIVER", "libnodriver.so.9")
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"`scaled` stays on the CPU, and the driver .* was not found"):
        jax.block_until_ready(jax.jit(lambda x: SCALED(jnp.ones(1), x))(X))


@pytest.mark.parametrize(
    ("found", "planted"),
    [('self.ask("wait", f"ptr {self.stream}")', "pass"), ("self.copy(n), '24'", "self.copy('0'), '24'")],
)
def test_a_step_left_out_is_caught(found: str, planted: str, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting, or with the copy of another operand: other numbers."""
    source = Path(host_transfer.__file__).read_text()
    assert found in source
    space: dict[str, Any] = {"__name__": "planted"}
    exec(compile(source.replace(found, planted), "planted", "exec"), space)
    space["DRIVER"] = str(driver.path)
    monkeypatch.setattr(host_transfer, "transfer_text", space["transfer_text"])
    f = jax.jit(lambda p, x: SCALED(p, x), donate_argnums=1)
    try:
        wrong = not np.array_equal(f(jnp.array([2.0]), jnp.asarray(X)), 2 * X * X)
    except jax.errors.JaxRuntimeError:
        wrong = True
    driver.say("errors", 0)
    assert wrong


# -- for a device ----------------------------------------------------------------------------------------------------


def _lowered(function: Any, *shapes: Any) -> str:
    return str(jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text())


def test_the_same_kernel_without_it_is_refused() -> None:
    told = LIBRARY.kernel("told", "f64(f64[n] x, i64 n)")
    with pytest.raises(Unsupported, match="a GPU cannot run this: a call of `p") as caught:
        _lowered(jax.vmap(told), jax.ShapeDtypeStruct((2, 6), np.float64))
    assert 'device="cpu"' in caught.value.fix and caught.value.where.startswith("<string>:")


def test_one_call_of_the_host() -> None:
    text = _lowered(jax.vmap(jax.grad(TOLD)), jax.ShapeDtypeStruct((3, 6), np.float64))
    assert len(re.findall(r"custom_call @irgrad\.told", text)) == 1 and "ptx" not in text


def test_another_word_is_refused() -> None:
    with pytest.raises(IRGradError, match="device='gpu' is no choice") as caught:
        LIBRARY.kernel("deep", device="gpu")
    assert 'device="cpu"' in caught.value.fix


@needs_library
def test_a_program_of_both_kinds_is_exported(driver: Driver) -> None:
    """For the CPU and CUDA: one kernel of the device, one of the host; another process reads both."""
    smooth = LIBRARY.kernel("scaled", "void(f64[1] p, inout f64[n] x, i64 n)")
    both = jax.jit(jax.vmap(lambda x: TOLD(smooth(jnp.ones(1), x))))
    with pytest.MonkeyPatch.context() as plain:
        plain.setattr(primitive, "register_transfer", host_transfer.register_transfer)
        plain.setitem(primitive.LOWERINGS, "cpu", primitive._lower)
        made = export(both, platforms=("cpu", "cuda"))(jax.ShapeDtypeStruct((3, 6), np.float64))
        again = deserialize(serialize(made))
        assert again.platforms == ("cpu", "cuda") and "xla.gpu.ptx" in made.mlir_module()
        assert np.allclose(again.call(np.stack([X] * 3)), ((X * X) ** 2).sum())


@needs_plugin
def test_xla_compiles_it_for_a_device() -> None:
    """Both kinds in one program, and nothing of it in a CUDA graph."""
    smooth = LIBRARY.kernel("scaled", "void(f64[1] p, inout f64[n] x, i64 n)")
    both = jax.vmap(lambda x: TOLD(smooth(jnp.ones(1), x)))
    sharding = jax.sharding.SingleDeviceSharding(_device())
    shape = jax.ShapeDtypeStruct((3, 6), np.float64)
    traced = jax.jit(both, in_shardings=sharding).trace(shape)
    text = traced.lower(lowering_platforms=("cuda",)).compile().as_text()
    assert text.count('custom_call_target="irgrad.told') == 1 and "__gpu$xla.gpu.ptx" in text
