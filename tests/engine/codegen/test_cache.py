"""The disk cache: whatever happens to it, results are right and there is one warning."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from pathlib import Path

import pytest

from irgrad.engine.codegen.cache import CacheWarning, DiskCache, default_cache, default_root, fingerprint

KEY = fingerprint("key")


@pytest.fixture
def store(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def test_what_is_put_is_got(store: DiskCache) -> None:
    assert store.get("object", KEY) is None
    assert store.put("object", KEY, b"payload")
    assert store.get("object", KEY) == b"payload"
    assert store.get("ir", KEY) is None, "kinds are apart"


def test_fingerprint_separates_its_parts() -> None:
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    assert fingerprint("ab") != fingerprint("ab", "")
    assert fingerprint("é") == fingerprint("é".encode())


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:7],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
        lambda data: data[:20] + bytes([data[20] ^ 0x80]) + data[21:],
        lambda data: data.replace(b"irgrad-cache-2", b"irgrad-cache-9"),
        lambda data: os.urandom(len(data)),
    ],
    ids=["empty", "header cut", "cut", "longer", "payload bit", "header bit", "foreign version", "noise"],
)
def test_a_damaged_entry_is_ignored_once_and_rewritten(store: DiskCache, damage) -> None:  # type: ignore[no-untyped-def]
    store.put("object", KEY, b"machine code" * 50)
    path = store.path("object", KEY)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(CacheWarning, match="damaged or foreign cache entry"):
        assert store.get("object", KEY) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.get("object", KEY) is None
        assert store.put("object", KEY, b"again")
        assert store.get("object", KEY) == b"again"


def test_a_cache_that_cannot_be_written_warns_once(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    store = DiskCache(blocked)
    with pytest.warns(CacheWarning, match="cannot write the cache"):
        assert not store.put("object", KEY, b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        assert not store.put("object", KEY, b"x")


def test_a_failed_write_leaves_nothing(store: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(CacheWarning, match="No space left"):
        assert not store.put("object", KEY, b"x" * 1000)
    assert store.info().entries == 0


def test_info_and_clear(store: DiskCache) -> None:
    for index in range(3):
        store.put("object", fingerprint(str(index)), b"12345")
    info = store.info()
    assert info.entries == 3
    assert info.size > 15
    assert "3 entries" in str(info)
    assert store.clear() == 3
    assert store.info().entries == 0


def test_the_bound_drops_what_was_unused_longest(tmp_path: Path) -> None:
    store = DiskCache(tmp_path, limit=10_000)
    keys = [fingerprint(str(index)) for index in range(20)]
    for age, key in enumerate(keys):
        store.put("object", key, bytes(1000))
        os.utime(store.path("object", key), (age + 1, age + 1))
    store.get("object", keys[0])  # used now: it stays
    assert store.trim() > 0
    assert store.info().size <= 10_000
    assert store.get("object", keys[0]) is not None
    assert store.get("object", keys[1]) is None
    assert store.get("object", keys[-1]) is not None


def test_what_a_killed_process_left_is_swept(store: DiskCache) -> None:
    store.put("object", KEY, b"x")
    fresh, old = (store.path("object", KEY).parent / name for name in (".new-fresh", ".new-old"))
    fresh.write_bytes(b"being written")
    old.write_bytes(b"half")
    os.utime(old, (1, 1))
    assert store.info().entries == 2
    assert store.clear() == 2
    assert fresh.exists()
    assert not old.exists()


def test_environment_chooses_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path / "named"))
    assert default_root() == tmp_path / "named"
    monkeypatch.delenv("IRGRAD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_root() == tmp_path / "xdg" / "irgrad"
    monkeypatch.setenv("IRGRAD_CACHE_LIMIT", "12345")
    assert default_cache().limit == 12345
    monkeypatch.setenv("IRGRAD_CACHE", "0")
    assert not default_cache().put("object", KEY, b"x")
    assert default_cache().get("object", KEY) is None
    assert not (tmp_path / "xdg").exists()


def _hammer(root: str, seed: int) -> int:
    store = DiskCache(Path(root))
    wrong = 0
    for turn in range(60):
        key = fingerprint(str(turn % 6))
        want = key.encode() * 200
        got = store.get("object", key)
        wrong += got is not None and got != want
        if (turn + seed) % 7 == 0:
            store.clear()
        store.put("object", key, want)
    return wrong


def test_processes_share_a_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        wrong = pool.starmap(_hammer, [(str(tmp_path), seed) for seed in range(8)])
    assert sum(wrong) == 0
    assert not list(tmp_path.rglob(".new-*"))


def test_a_cache_far_below_its_bound_is_not_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it missed when it is over: every process asks after its first entry, by one folder of 256."""
    walks: list[Path] = []
    monkeypatch.setattr(DiskCache, "trim", lambda self: walks.append(self.root))
    for limit in (1 << 30, 1000):
        for n in range(200):
            DiskCache(tmp_path / str(limit), limit).put("object", f"{n:02x}{n:062x}", b"x" * 100)
    assert set(walks) == {tmp_path / "1000"}
    assert len(walks) == 200


def test_an_entry_counts_only_where_it_belongs(tmp_path: Path) -> None:
    """A file that was copied to another key's place (by a tool that restores caches, say) is no entry of that key."""
    cache = DiskCache(tmp_path)
    mine, yours = fingerprint("a"), fingerprint("b")
    cache.put("ir", mine, b"mine")
    for kind, key in (("ir", yours), ("image", mine)):
        cache.path(kind, key).parent.mkdir(parents=True, exist_ok=True)
        cache.path(kind, key).write_bytes(cache.path("ir", mine).read_bytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)
            assert cache.get(kind, key) is None
        assert not cache.path(kind, key).exists()
    assert cache.get("ir", mine) == b"mine"
