"""A digest of irgrad's own sources and of the costs by which they choose: part of the key of all that they make."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.engine.codegen.llvm import identity

__all__ = ["cost_file", "cost_text", "digest_of", "forget_costs", "source_digest"]

_RECENT = 2_000_000_000  # nanoseconds


@cache
def source_digest() -> str:
    """Digest of irgrad's own sources below interop: code that changed never meets IR that older code derived. Where
    this machine's costs were measured, of their table as well."""
    import irgrad.rules

    made = digest_of((Path(__file__).parents[1], Path(irgrad.rules.__file__).parent))
    table = cost_text()
    return made if table is None else fingerprint(made, table, *identity())


@cache
def cost_text() -> bytes | None:
    """The table that `irgrad tune` wrote, as it was when this process first asked; None where there is none. One that
    cannot be read is empty, which `machine_costs` refuses."""
    path = cost_file()
    if path is None:
        return None
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b"" if os.environ.get("IRGRAD_COSTS") else None
    except OSError:
        return b""


def cost_file() -> Path | None:
    """Where the table is: `IRGRAD_COSTS`, else `irgrad/costs.txt` in the folder of the user's settings. None where that
    is `0`, or nobody has such a folder."""
    named = os.environ.get("IRGRAD_COSTS")
    if named:
        return None if named == "0" else Path(named)
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
    except RuntimeError:  # no HOME and no entry in the user database
        return None
    return folder / "irgrad" / "costs.txt"


def forget_costs() -> None:
    """Read the table again when it is asked for next."""
    cost_text.cache_clear()
    source_digest.cache_clear()


def digest_of(folders: tuple[Path, ...]) -> str:
    """Digest of the contents of all Python, IR and C files below some folders.

    Reading them takes longer than a cached gradient, so the disk cache keeps the digest under what the file system says
    about each file: path, size, inode, times of the last change of contents and of the entry itself. Files that changed
    just now are read: a second change within the clock's step would look the same.
    """
    files = [row for folder in folders for row in sorted(_files(str(folder)))]
    store, key = default_cache(), fingerprint("sources-1", repr(files))
    known = store.get("sources", key)
    if known is not None:
        return known.decode()
    parts: list[str | bytes] = []
    for name, *_ in files:
        path = Path(name)
        parts += [path.name, path.read_bytes()]
    made = fingerprint(*parts)
    if all(changed < time.time_ns() - _RECENT for *_, changed in files):
        store.put("sources", key, made.encode())
    return made


def _files(folder: str) -> Iterator[tuple[str, int, int, int, int]]:
    with os.scandir(folder) as rows:
        for row in rows:
            if row.is_dir():
                yield from _files(row.path)
            elif row.name.endswith((".py", ".ll", ".c", ".h")):
                status = row.stat()
                yield row.path, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
