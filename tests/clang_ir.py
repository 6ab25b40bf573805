"""C source to textual IR with the packaged clang, for tests of the engine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

PLAIN = ("-fno-sanitize=undefined", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-fno-math-errno")


@cache
def clang_ir(source: str, *flags: str) -> str:
    """The IR that clang emits for one C file: scalar code, loops as they are."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "in.c", Path(folder) / "out.ll"
        path.write_text(source)
        command = [sys.executable, "-m", "ziglang", "cc", *PLAIN, *flags, "-g0", "-w", "-S", "-emit-llvm"]
        done = subprocess.run(
            [*command, str(path), "-o", str(out)], capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            raise AssertionError(f"clang failed:\n{done.stderr}")
        return out.read_text()
