"""A disk cache of content-addressed entries: IR of compiled sources, machine code of optimised modules.

The cache may be damaged, read-only, full or shared by processes, and none of that may ever change a result: an entry
carries a checksum over its key and its contents, and is written to a temporary file and renamed; what does not verify
is ignored with one warning and written again; a cache that cannot be written is left alone with one warning.

Where: `IRGRAD_CACHE_DIR`, else `$XDG_CACHE_HOME/irgrad`, else `~/.cache/irgrad`. Bound: `IRGRAD_CACHE_LIMIT` bytes
(default 1 GiB), the entries that were unused for longest go first. `IRGRAD_CACHE=0` turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CacheInfo", "CacheWarning", "DiskCache", "default_cache", "fingerprint"]

_MAGIC = b"irgrad-cache-2\n"
_HEADER = struct.Struct("<Q32s")
_DEFAULT_LIMIT = 1 << 30
_TRIM_EVERY = 64
_FOLDERS = 256  # that keys are spread over
_NEW = ".new-"
_WRITING = 3600.0  # seconds


class CacheWarning(RuntimeWarning):
    """The disk cache could not be used as wished; results are unaffected."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What is in a cache: where it is, how many entries, how many bytes, and its bound in bytes."""

    root: Path
    entries: int
    size: int
    limit: int

    def __str__(self) -> str:
        mib = 1 << 20
        return f"{self.root}: {self.entries} entries, {self.size / mib:.1f} MiB of {self.limit / mib:.0f} MiB"


def fingerprint(*parts: str | bytes) -> str:
    """SHA-256 (hex) over length-prefixed parts, so that no two lists of parts share a digest by concatenation."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.hexdigest()


class DiskCache:
    """Entries of bytes under `root`, keyed by (kind, hex key). Safe to share between threads and processes."""

    __slots__ = ("_lock", "_puts", "_warned", "limit", "root")

    def __init__(self, root: Path, limit: int = _DEFAULT_LIMIT) -> None:
        self.root = root
        self.limit = limit
        self._lock = threading.Lock()
        self._puts = 0
        self._warned: set[str] = set()

    def path(self, kind: str, key: str) -> Path:
        """The file of an entry, whether it exists or not."""
        return self.root / kind / key[:2] / key[2:]

    def get(self, kind: str, key: str) -> bytes | None:
        """The entry's bytes, or None when it is absent or does not verify (one warning; the file is removed)."""
        path = self.path(kind, key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn("read", f"cannot read the cache: {error}")
            return None
        payload = _unwrap(data, _name(kind, key))
        if payload is None:
            self._warn("damaged", f"ignoring a damaged or foreign cache entry, it is made again: {path}")
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # last use, for the bound
        return payload

    def put(self, kind: str, key: str, payload: bytes) -> bool:
        """Write an entry atomically. Returns False (one warning per process) when it cannot be written."""
        import tempfile  # slow to import, and a cache that has the entry does not write

        path = self.path(kind, key)
        temporary: str | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(prefix=_NEW, dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC)
                file.write(_HEADER.pack(len(payload), _digest(_name(kind, key), payload)))
                file.write(payload)
            Path(temporary).replace(path)
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()
            self._warn("write", f"cannot write the cache, continuing without: {error}")
            return False
        with self._lock:
            self._puts += 1
            due = self._puts % _TRIM_EVERY == 1
        if due and self._may_be_full(path.parent):
            self.trim()
        return True

    def _may_be_full(self, folder: Path) -> bool:
        """Whether one folder of 256, which keys fill evenly, suggests that the cache is over its bound.

        Every process asks after its first entry: to look at all the files of a large cache would cost it more than
        most of what the cache saves.
        """
        size = 0
        with contextlib.suppress(OSError), os.scandir(folder) as rows:
            for row in rows:
                with contextlib.suppress(OSError):
                    size += row.stat().st_size
        return size * _FOLDERS > self.limit // 2  # the other kinds of entries take about as much

    def info(self) -> CacheInfo:
        """Count the entries and their bytes."""
        files = self._files()
        return CacheInfo(self.root, len(files), sum(size for _, size, _ in files), self.limit)

    def clear(self) -> int:
        """Remove every entry; returns how many were removed."""
        removed = 0
        for _, _, path in self._files():
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
        return removed

    def trim(self) -> int:
        """Bring the cache under its bound, unused entries first, to 3/4 of it; returns how many were removed."""
        files = self._files()
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return 0
        removed = 0
        for _, size, path in sorted(files, key=lambda row: row[0]):
            if total <= self.limit * 3 // 4:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size
                removed += 1
        return removed

    def _files(self) -> list[tuple[float, int, Path]]:
        rows: list[tuple[float, int, Path]] = []
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    status = path.stat()
                    if name.startswith(_NEW) and time.time() - status.st_mtime < _WRITING:
                        continue  # another process is writing it; older ones were left by a process that died
                    rows.append((status.st_mtime, status.st_size, path))
        return rows

    def _warn(self, kind: str, message: str) -> None:
        with self._lock:
            if kind in self._warned:
                return
            self._warned.add(kind)
        warnings.warn(message, CacheWarning, stacklevel=3)


class _NoCache(DiskCache):
    """What `IRGRAD_CACHE=0` gives: nothing is found, nothing is kept."""

    __slots__ = ()

    def get(self, kind: str, key: str) -> bytes | None:
        return None

    def put(self, kind: str, key: str, payload: bytes) -> bool:
        return False


def _name(kind: str, key: str) -> bytes:
    return f"{kind}/{key}\n".encode()


def _digest(name: bytes, payload: bytes) -> bytes:
    """Of an entry with its name: one that lies where another belongs does not verify."""
    digest = hashlib.sha256(name)
    digest.update(payload)
    return digest.digest()


def _unwrap(data: bytes, name: bytes) -> bytes | None:
    start = len(_MAGIC) + _HEADER.size
    if len(data) < start or not data.startswith(_MAGIC):
        return None
    length, digest = _HEADER.unpack_from(data, len(_MAGIC))
    payload = data[start:]
    if len(payload) != length or _digest(name, payload) != digest:
        return None
    return payload


_CACHES: dict[tuple[str, int, bool], DiskCache] = {}
_CACHES_LOCK = threading.Lock()


def default_root() -> Path:
    """The folder that the environment names (read at each call)."""
    named = os.environ.get("IRGRAD_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "irgrad"
    try:
        return Path.home() / ".cache" / "irgrad"
    except RuntimeError:  # no HOME and no entry in the user database
        import tempfile

        return Path(tempfile.gettempdir()) / f"irgrad-{os.getuid()}"


def default_cache() -> DiskCache:
    """The cache that the environment describes; one object per description, so that it warns once."""
    try:
        limit = int(os.environ.get("IRGRAD_CACHE_LIMIT", _DEFAULT_LIMIT))
    except ValueError:
        limit = _DEFAULT_LIMIT
    off = os.environ.get("IRGRAD_CACHE", "1") == "0"
    root = default_root()
    with _CACHES_LOCK:
        cache = _CACHES.get((str(root), limit, off))
        if cache is None:
            cache = (_NoCache if off else DiskCache)(root, limit)
            _CACHES[str(root), limit, off] = cache
    return cache
