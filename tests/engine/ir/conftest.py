"""The corpus of real C and C++, compiled once per session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WIDE = ("-mcpu=x86_64_v4", "-mprefer-vector-width=512")
UNITS = {
    "loops-O0": ("loops.c", "-O0", "-g"),
    "loops-O2": ("loops.c", "-O2", "-g"),
    "loops-Os": ("loops.c", "-Os", "-g0"),
    "data-O0": ("data.c", "-O0", "-g"),
    "data-O1": ("data.c", "-O1", "-g"),
    "wide-O0": ("wide.c", "-O0", "-g0"),
    "wide-O3": ("wide.c", "-O3", "-g", *WIDE),
    "classes-O0": ("classes.cc", "-O0", "-g"),
    "classes-O2": ("classes.cc", "-O2", "-g"),
}


def compile_unit(source: Path, flags: tuple[str, ...], out: Path) -> str:
    """The IR that the packaged clang emits for a file of the corpus."""
    kind = "c++" if source.suffix == ".cc" else "cc"
    command = [sys.executable, "-m", "ziglang", kind, "-fno-sanitize=undefined", "-w", *flags, "-S", "-emit-llvm"]
    done = subprocess.run(
        [*command, str(source), "-o", str(out)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return out.read_text()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name of a unit (`loops-O2`) -> IR text."""
    folder = tmp_path_factory.mktemp("corpus")
    here = Path(__file__).parent / "corpus"
    return {name: compile_unit(here / unit[0], unit[1:], folder / f"{name}.ll") for name, unit in UNITS.items()}
