"""Exported programs run in a process that has never seen the kernel."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import irgrad
from irgrad.engine.codegen import nvptx
from irgrad.interop.jax import deserialize, export, serialize
from irgrad.interop.jax.device import TARGET as PTX

jax.config.update("jax_enable_x64", True)

SOURCE = """
#include <math.h>
double waves(const double *x, double a, long n) {
  double s = 0;
  for (long i = 0; i < n; i++) s += sin(a * x[i]);
  return s;
}
"""
READ = """
import sys, jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from irgrad.interop.jax import deserialize
program = deserialize(open(sys.argv[1], "rb").read())
x = jnp.arange(8.0).reshape(2, 4)
value, gradient = program.call(x, 1.5)
second = jax.grad(lambda x: program.call(x, 1.5)[1].sum())(x)
print(bool(jnp.allclose(value, jnp.sin(1.5 * x).sum(1), atol=1e-12)),
      bool(jnp.allclose(gradient, 1.5 * jnp.cos(1.5 * x), atol=1e-12)),
      bool(jnp.allclose(second, -2.25 * jnp.sin(1.5 * x), atol=1e-12)))
"""


@pytest.mark.long
def test_another_process_with_an_open_batch_size(tmp_path: Path) -> None:
    kernel = irgrad.load(SOURCE).kernel("waves", "f64(f64[n] x, f64 a, i64 n)")
    (size,) = jax.export.symbolic_shape("b")
    batched = jax.jit(jax.vmap(jax.value_and_grad(kernel), (0, None)))
    program = export(batched)(jax.ShapeDtypeStruct((size, 4), jnp.float64), 1.5)
    x = jnp.ones((3, 4))
    np.testing.assert_allclose(program.call(x, 1.5)[1], 1.5 * np.cos(1.5) * np.ones((3, 4)), rtol=1e-12)
    path = tmp_path / "program"
    path.write_bytes(serialize(program, vjp_order=1))
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.split() == ["True"] * 3, done.stderr


SHARED = """
import sys, warnings, jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
import irgrad
from irgrad.interop.jax import export, serialize

warnings.simplefilter("error")  # one that says that one thread runs it
kernel = irgrad.load(sys.argv[2]).kernel("waves", "f64(f64[n] x, f64 a, i64 n)", threads=2)
program = jax.jit(jax.grad(kernel))
x = jnp.ones(4)
print(bool(jnp.allclose(program(x, 1.5), 1.5 * jnp.cos(1.5))))
open(sys.argv[1], "wb").write(serialize(export(program)(x, 1.5)))
"""
READ_SHARED = """
import sys, jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
from irgrad.interop.jax import deserialize
from irgrad.interop.jax.handler import TARGETS
program = deserialize(open(sys.argv[1], "rb").read())
print(bool(jnp.allclose(program.call(jnp.ones(4), 1.5), 1.5 * jnp.cos(1.5))), [t.threads for t in TARGETS.values()])
"""


@pytest.mark.long
def test_shared_loops_of_a_process_without_numpy_calls_and_of_another_one(tmp_path: Path) -> None:
    written, source = tmp_path / "shared.bin", tmp_path / "waves.c"
    source.write_text(SOURCE)
    for script, words, said in ((SHARED, [str(source)], ["True"]), (READ_SHARED, [], ["True", "[2]"])):
        command = [sys.executable, "-c", script, str(written), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.stdout.split() == said, done.stderr


def _program() -> tuple[bytes, np.ndarray]:
    kernel = irgrad.load(SOURCE).kernel("waves", "f64(f64[n] x, f64 a, i64 n)")
    return serialize(export(jax.jit(jax.grad(kernel)))(jnp.ones(3), 1.5)), 1.5 * np.cos(1.5) * np.ones(3)


def _edited(data: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    """The archive with its members changed, or left out."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(packed, "w") as made:
        for name in archive.namelist():
            if (member := change(name, archive.read(name))) is not None:
                made.writestr(name, member)
    return packed.getvalue()


def test_foreign_bytes_are_refused() -> None:
    data, _ = _program()
    changes: list[Callable[[str, bytes], bytes | None]] = [
        lambda name, member: b"{}" if name.endswith("json") else member,
        lambda name, member: b"[1]" if name.endswith("json") else member,
        lambda name, member: b"{" if name.endswith("json") else member,
        lambda name, member: b'{"name": 1, "strict_fp": "no"}' if name.endswith("json") else member,
        lambda name, member: b"\xff" * 100 if name == "program" else member,
        lambda name, member: b"" if name.endswith("ll") else member,
        lambda name, member: None if name == "program" else member,
        lambda name, member: None if name[0] == "0" else member,
        lambda name, member: None if name == "digest" else member,
    ]
    foreign: list[Any] = [b"PK nothing", b"", None, "text", *(_edited(data, change) for change in changes)]
    for given in foreign:
        with pytest.raises(irgrad.LoadError, match=r"no exported program(.|\n)*because(.|\n)*to fix") as caught:
            deserialize(given)
        assert caught.value.because


def test_what_another_version_of_jax_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: bytearray) -> None:
        raise ValueError("a later format")

    data, _ = _program()
    monkeypatch.setattr(jax.export, "deserialize", refuse)
    with pytest.raises(irgrad.LoadError, match="says ValueError: a later format"):
        deserialize(data)


def test_damaged_bytes_are_refused_or_do_not_matter() -> None:
    """Single bytes that are others, and ends that are missing."""
    data, wanted = _program()
    rng = np.random.default_rng(0)
    damaged = [data[:end] for end in rng.integers(0, len(data), 40)]
    for place in rng.integers(0, len(data), 300):
        damaged.append(data[:place] + bytes([data[place] ^ int(rng.integers(1, 256))]) + data[place + 1 :])
    read = 0
    for given in damaged:
        try:
            program = deserialize(given)
        except irgrad.IRGradError:
            continue
        read += 1
        np.testing.assert_allclose(program.call(jnp.ones(3), 1.5), wanted, rtol=1e-12)
    assert read < 40  # dates and such


@pytest.mark.long
@pytest.mark.skipif(nvptx._library() is None, reason="libdevice is not installed")
@pytest.mark.parametrize("batch", [True, False], ids=["a batch", "one sample"])
def test_one_export_for_the_cpu_and_for_cuda(tmp_path: Path, batch: bool) -> None:
    """Which of the two a program runs is chosen where it runs: here, and in another process, the CPU's."""
    text = SOURCE.replace("  for", '  _Pragma("clang loop vectorize(assume_safety)") for')
    kernel = irgrad.load(SOURCE if batch else text).kernel("waves", "f64(f64[n] x, f64 a, i64 n)")
    function = jax.value_and_grad(kernel)
    function, x = (jax.vmap(function, (0, None)), jnp.ones((2, 4))) if batch else (function, jnp.ones(4))
    program = export(jax.jit(function), platforms=("cpu", "cuda"))(x, 1.5)
    module = program.mlir_module()
    assert program.platforms == ("cpu", "cuda") and "stablehlo.case" in module
    assert "irgrad." in module and module.count(f"@{PTX}(") == (1 if batch else 7)
    again = deserialize(serialize(program))
    for got, wanted in zip(again.call(x, 1.5), jax.jit(function)(x, 1.5), strict=True):
        np.testing.assert_array_equal(got, wanted)
    if batch:
        path = tmp_path / "program"
        path.write_bytes(serialize(program, vjp_order=1))
        command = [sys.executable, "-c", READ, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.stdout.split() == ["True"] * 3, done.stderr


@pytest.mark.long
@pytest.mark.skipif(nvptx._library() is None, reason="libdevice is not installed")
def test_an_export_for_cuda_alone_has_no_code_of_the_cpu() -> None:
    kernel = irgrad.load(SOURCE).kernel("waves", "f64(f64[n] x, f64 a, i64 n)")
    rows = jax.jit(jax.vmap(jax.grad(kernel), (0, None)))
    module = export(rows, platforms=("cuda",))(jnp.ones((2, 4)), 1.5).mlir_module()
    assert "irgrad." not in module.replace("irgrad_", "") and f"@{PTX}(" in module
