"""`irgrad ar`, `irgrad ranlib`, `irgrad cmake-file`: tools around `irgrad cc` that builds ask for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from irgrad.rules.errors import LoadError

__all__ = ["archiver", "toolchain"]


def archiver(words: Sequence[str]) -> int:
    """Run the archiver of the bundled compiler, `words` being `ar` or `ranlib` and its options: it reads the bitcode of
    `-flto` objects, which an older `llvm-ar` does not. Returns its exit code."""
    from irgrad.interop.loaders.compiler import wheel

    program = wheel()
    if program is None:
        raise LoadError("no archiver was found", because="the `ziglang` wheel is not installed",
                        fix="pip install 'ziglang>=0.17,<0.18'   or   ar of binutils")  # fmt: skip
    return subprocess.run([str(program), *words], check=False).returncode


def toolchain() -> str:
    """A toolchain file of CMake: `irgrad cc` compiles and links C and C++, `irgrad ar` makes static libraries."""
    command = Path(sys.executable).with_name("irgrad")
    words = [str(command)] if command.is_file() else [sys.executable, "-m", "irgrad.interop.cli"]
    listed, spoken = ";".join(words), " ".join(f'\\"{word}\\"' for word in words)
    rows = ["# cmake -B build --toolchain THIS_FILE"]
    for language in ("C", "CXX"):
        rows += [
            f'set(CMAKE_{language}_COMPILER "{listed};cc")',
            f'set(CMAKE_{language}_ARCHIVE_CREATE "{spoken} ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")',
            f'set(CMAKE_{language}_ARCHIVE_APPEND "{spoken} ar q <TARGET> <LINK_FLAGS> <OBJECTS>")',
            f'set(CMAKE_{language}_ARCHIVE_FINISH "{spoken} ranlib <TARGET>")',
        ]
    return "\n".join(rows) + "\n"
