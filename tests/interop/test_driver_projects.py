"""Projects as their owners write them, built whole with `irgrad cc` as their compiler, and their own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECTS = Path(__file__).with_name("projects")
IRGRAD = f"{sys.executable} -m irgrad.interop.cli cc"


def _done(words: list[str], folder: Path) -> str:
    environment = {**os.environ, "CC": IRGRAD, "CXX": IRGRAD}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.mark.long
@pytest.mark.parametrize(("name", "options"), [
    ("heat", ()), ("heat", ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-march=x86-64-v3 -ffp-contract=off")),
    ("cloth", ()), ("openmp", ()), ("mixed", ()), ("mixed", ("-DCMAKE_BUILD_TYPE=MinSizeRel",)),
])  # fmt: skip
def test_cmake(name: str, options: tuple[str, ...], tmp_path: Path) -> None:
    cmake, ctest = _tool("cmake"), _tool("ctest")
    archiver = [f"-DCMAKE_AR={_tool('ar')}", f"-DCMAKE_RANLIB={_tool('ranlib')}"]  # an older llvm-ar knows no LLVM 22
    _done([cmake, "-S", str(PROJECTS / name), "-B", str(tmp_path), *archiver, *options], tmp_path)
    _done([cmake, "--build", str(tmp_path), "-j2"], tmp_path)
    told = _done([ctest, "--output-on-failure"], tmp_path)
    assert "100% tests passed" in told, told
    again = _done([cmake, "--build", str(tmp_path)], tmp_path)
    assert "Building C" not in again, "nothing has changed"


@pytest.mark.long
@pytest.mark.parametrize("flags", ["-O2 -g", "-O0", "-O3 -march=native"])
def test_make(flags: str, tmp_path: Path) -> None:
    make, folder = _tool("make"), tmp_path / "orbit"
    _tool("ar")
    shutil.copytree(PROJECTS / "orbit", folder)
    words = [make, f"CC={IRGRAD}", f"CFLAGS={flags} -std=c99 -Wall -flto -MMD -MP -Ilib -I."]
    _done([*words, "check"], folder)
    header = folder / "lib/orbit.h"
    header.write_text(header.read_text() + "/* changed */\n")
    assert "kepler.c" in _done([*words, "check"], folder)
