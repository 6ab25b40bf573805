"""Compile C with the bundled clang: to IR text, or to a shared library for running natively."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

COMMON = ("-fno-sanitize=undefined", "-w", "-fno-stack-protector", "-U_FORTIFY_SOURCE")


def _folder() -> Path:
    base = os.environ.get("IRGRAD_CACHE_DIR") or tempfile.gettempdir()
    folder = Path(base) / "oracle"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _source(digest: str, source: str, language: str) -> Path:
    """The source as a file, put there whole: a compiler another process runs may have the same file mapped, and a
    file that is cut short under it ends it with SIGBUS."""
    file = _folder() / f"{digest}.{language}"
    part = file.with_name(f"{digest}.{os.getpid()}.part.{language}")
    part.write_text(source)
    part.replace(file)
    return file


def _run(source: str, suffix: str, flags: tuple[str, ...], language: str) -> Path:
    digest = hashlib.sha256("\0".join([source, suffix, language, *flags]).encode()).hexdigest()[:24]
    out = _folder() / f"{digest}{suffix}"
    if out.exists():
        return out
    file = _source(digest, source, language)
    part = out.with_name(f"{digest}.{os.getpid()}.part{suffix}")
    driver = "c++" if language in ("cc", "cpp") else "cc"
    command = [sys.executable, "-m", "ziglang", driver, *COMMON, *flags, str(file), "-o", str(part)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"the compiler refused:\n{done.stderr[:4000]}")
    part.replace(out)
    return out


def to_ir(source: str, level: str = "-O0", flags: tuple[str, ...] = (), language: str = "c") -> str:
    """LLVM IR of a C (or C++) source at an optimisation level."""
    return _run(source, ".ll", (level, "-S", "-emit-llvm", *flags), language).read_text()


def to_library(source: str, level: str = "-O1", flags: tuple[str, ...] = (), language: str = "c") -> ctypes.CDLL:
    """The source as a loaded shared library."""
    return ctypes.CDLL(str(_run(source, ".so", (level, "-shared", "-fPIC", "-lm", *flags), language)))
