"""Crates: modules, features, dependencies by path, messages, what is compiled anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from toolchains import needs_rustc

import irgrad
from irgrad import engine
from irgrad.interop.loaders import cargo
from irgrad.interop.loaders.compiler import Options

FILES = {
    "Cargo.toml": """
[package]
name = "my-model"
version = "0.1.0"
edition = "2021"

[dependencies]
parts = { path = "parts" }

[features]
default = ["damped"]
damped = []
""",
    "src/lib.rs": """pub mod springs;
pub fn energy(x: &[f64], k: f64) -> f64 {
    assert!(k > 0.0, "a spring that pushes");
    x.windows(2).map(|w| springs::one(w[1] - w[0], k)).sum::<f64>() + parts::anchor(x)
}
""",
    "src/springs.rs": """pub fn one(d: f64, k: f64) -> f64 {
    if cfg!(feature = "damped") { k * parts::soft(d) } else { k * d * d }
}
""",
    "parts/Cargo.toml": '[package]\nname = "parts"\nversion = "0.1.0"\nedition = "2021"\n',
    "parts/src/lib.rs": """pub fn soft(d: f64) -> f64 { (1.0 + d * d).sqrt() - 1.0 }
#[inline(never)]
pub fn anchor(x: &[f64]) -> f64 { x[0] * x[0] * soft(x[2]) }
""",
}
X = np.array([0.1, 0.5, -0.3, 0.7])


def _crate(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def _soft(d: float) -> float:
    return float(np.sqrt(1 + d * d) - 1)


@needs_rustc
def test_a_crate_with_modules_and_a_dependency(tmp_path: Path) -> None:
    lib = irgrad.load(_crate(tmp_path))
    assert {"energy", "springs::one"} <= set(lib.functions())
    energy = lib.kernel("energy", "f64(f64[n] x, f64 k)")
    wanted = 2 * sum(map(_soft, np.diff(X))) + X[0] ** 2 * _soft(X[2])
    np.testing.assert_allclose(energy(X, 2.0), wanted, rtol=1e-14)
    assert engine.check(energy, X, 2.0).ok
    np.testing.assert_allclose(engine.grad(lib.kernel("springs::one"))(0.3, 2.0), 0.6 / np.sqrt(1.09), rtol=1e-14)
    with pytest.raises(irgrad.KernelError, match=r"a spring that pushes at src/lib\.rs:3"):
        energy(X, -1.0)
    with pytest.raises(irgrad.KernelError, match="index out of bounds at "):
        engine.grad(energy)(X[:2], 1.0)


@needs_rustc
def test_sources_that_change_are_compiled_anew(tmp_path: Path) -> None:
    file = _crate(tmp_path) / "Cargo.toml"
    before = irgrad.load(file).kernel("springs::one")(1.0, 1.0)
    assert irgrad.load(file).kernel("springs::one")(1.0, 1.0) == before
    (tmp_path / "parts/src/lib.rs").write_text(FILES["parts/src/lib.rs"].replace("- 1.0 }", "- 2.0 }"))
    np.testing.assert_allclose(irgrad.load(file).kernel("springs::one")(1.0, 1.0), before - 1)
    file.write_text(FILES["Cargo.toml"].replace('["damped"]', "[]"))
    assert irgrad.load(file).kernel("springs::one")(3.0, 1.0) == 9


@needs_rustc
def test_what_cargo_says(tmp_path: Path) -> None:
    _crate(tmp_path)
    (tmp_path / "src/springs.rs").write_text("pub fn one(d: f64, k: f64) -> f64 { missing }\n")
    with pytest.raises(irgrad.CompileError, match=r"(?s)cargo says.*missing.*src/springs\.rs:1"):
        irgrad.load(tmp_path)


@pytest.mark.parametrize(("text", "said"), [
    ("[workspace]\nmembers = []\n", r"describes no library.*no \[package\]"),
    ('[package]\nname = "x"\n', "describes no library.*no src/lib.rs"), ("[package", "cannot be read"),
])  # fmt: skip
def test_files_without_a_library(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "Cargo.toml"
    file.write_text(text)
    (tmp_path / "cargo").write_text("#!/bin/sh\n")
    (tmp_path / "cargo").chmod(0o755)
    with pytest.raises(irgrad.LoadError, match=f"(?s){said}"):
        cargo.compile_crate(file, Options(), (str(tmp_path / "rustc"), ""))


def test_cargo_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(irgrad.LoadError, match="cargo was not found"):
        cargo.compile_crate(tmp_path / "Cargo.toml", Options(), (str(tmp_path / "rustc"), ""))
