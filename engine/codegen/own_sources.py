"""A digest of irgrad's own sources: part of the key of everything that they make."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from irgrad.engine.codegen.cache import default_cache, fingerprint

__all__ = ["digest_of", "source_digest"]

_RECENT = 2_000_000_000  # nanoseconds


@cache
def source_digest() -> str:
    """Digest of irgrad's own sources below interop: code that changed never meets IR that older code derived."""
    import irgrad.rules

    return digest_of((Path(__file__).parents[1], Path(irgrad.rules.__file__).parent))


def digest_of(folders: tuple[Path, ...]) -> str:
    """Digest of the contents of all Python and IR files below some folders.

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
            elif row.name.endswith((".py", ".ll")):
                status = row.stat()
                yield row.path, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
