"""A gradient from the disk cache imports what runs it, and nothing that made it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import startup

HEAVY = {
    "concurrent.futures", "difflib", "jax", "json", "llvmlite", "logging", "plum", "random", "scipy", "subprocess",
    "tempfile", "ziglang", "zipfile",
}  # fmt: skip
WITHOUT = (
    *(f"irgrad.engine.{package}" for package in
      "ir analyses normalise legality schedule differentiate enzyme widen batches".split()),
    "irgrad.interop.jax", "irgrad.rules.table",
)  # fmt: skip
MODULES = "\nimport sys\nprint(*sys.modules)\n"


def test_a_cached_gradient_imports_little(tmp_path: Path) -> None:
    environment = {**os.environ, "IRGRAD_CACHE_DIR": str(tmp_path)}
    environment.pop("IRGRAD_CACHE", None)
    numpy = _modules("import numpy", environment)
    cold = _modules(startup.program(), environment)
    assert "llvmlite" in cold and "irgrad.engine.differentiate.derive" in cold
    cached = _modules(startup.program(), environment)
    assert not HEAVY & (cached - numpy)
    assert not [name for name in cached if name.startswith(WITHOUT)]
    assert len([name for name in cached if name.startswith("irgrad")]) < 48  # of which 12 are packages


def _modules(code: str, environment: dict[str, str]) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code + MODULES], env=environment, capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_table_has_every_row(monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    asked: list[str] = []
    monkeypatch.setattr(startup, "cpu_seconds", lambda code, environment: asked.append(code) or float(len(asked)))
    startup.main(["3"])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:20].strip() for line in lines] == [
        "python", "import numpy", "import irgrad", "gradient, cold", "gradient, cached",
    ]  # fmt: skip
    assert asked.count(startup.program()) == 7
