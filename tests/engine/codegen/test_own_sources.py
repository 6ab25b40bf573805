"""The digest of irgrad's sources follows their contents, and the disk cache saves reading them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from irgrad.engine.codegen import own_sources
from irgrad.engine.codegen.own_sources import digest_of, source_digest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRGRAD_CACHE_DIR", str(tmp_path / "cache"))
    code = tmp_path / "code"
    (code / "inner").mkdir(parents=True)
    (code / "a.py").write_text("one = 1\n")
    (code / "inner" / "b.py").write_text("two = 2\n")
    return code


def test_it_follows_contents_and_names(folder: Path) -> None:
    first = digest_of((folder,))
    assert digest_of((folder,)) == first
    (folder / "notes.txt").write_text("no code")
    assert digest_of((folder,)) == first
    (folder / "inner" / "b.py").write_text("two = 3\n")
    second = digest_of((folder,))
    (folder / "a.py").rename(folder / "c.py")
    assert len({first, second, digest_of((folder,))}) == 3


def test_files_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_sources, "_RECENT", -1 << 60)
    first = digest_of((folder,))
    original = Path.read_bytes
    read: list[str] = []
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name) or original(path))
    assert digest_of((folder,)) == first
    assert not any(name.endswith(".py") for name in read)
    path = folder / "a.py"
    status = path.stat()
    path.write_text("one = 2\n")  # as long as before, with its old time: an edit that `make` would not see
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest_of((folder,)) != first
    assert "a.py" in read


def test_what_changed_just_now_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = digest_of((folder,))
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"other" if path.suffix == ".py" else original(path))
    assert digest_of((folder,)) != first


def test_the_engine_has_a_digest() -> None:
    assert len(source_digest()) == 64


def test_all_floors_below_interop_count(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Path, ...]] = []
    monkeypatch.setattr(own_sources, "digest_of", lambda folders: seen.append(folders) or "")
    source_digest.__wrapped__()
    (folders,) = seen
    for file in ("engine/ir/model.py", "engine/differentiate/derive.py", "rules/layers.py"):
        floor, _, rest = file.partition("/")
        assert any(folder.name == floor and (folder / rest).is_file() for folder in folders), file


def test_the_runtime_in_ir_counts(folder: Path) -> None:
    first = digest_of((folder,))
    (folder / "inner" / "arena.ll").write_text("; another arena")
    assert digest_of((folder,)) != first
