"""Archives of bitcode: their members, and those that a program wants."""

from __future__ import annotations

from pathlib import Path

import pytest
from llvmlite import binding as llvm

from irgrad.interop.archives import archives_of, members, wanted
from irgrad.rules.errors import LoadError

LONG = "a_name_of_more_than_sixteen_letters.o"


def _archive(path: Path, rows: dict[str, bytes]) -> Path:
    """An archive as `ar` writes it: long names in a table of their own."""
    table, parts = b"", []
    for name, content in rows.items():
        short = f"{name}/".encode()
        if len(short) > 16:
            short, table = f"/{len(table)}".encode(), table + short + b"\n"
        parts.append(_member(short, content))
    path.write_bytes(b"!<arch>\n" + (_member(b"//", table) if table else b"") + b"".join(parts))
    return path


def _member(name: bytes, content: bytes) -> bytes:
    size = str(len(content)).encode().ljust(10)
    head = name.ljust(16) + b"0".ljust(12) + b"0".ljust(6) + b"0".ljust(6) + b"644".ljust(8) + size + b"`\n"
    return head + content + b"\n" * (len(content) % 2)


def _bitcode(text: str) -> bytes:
    return bytes(llvm.parse_assembly(text).as_bitcode())


def test_names_and_contents(tmp_path: Path) -> None:
    rows = {"a.o": b"odd", LONG: b"even", "b.o": b""}
    assert dict(members(_archive(tmp_path / "lib.a", rows))) == rows
    (tmp_path / "no.a").write_bytes(b"something else")
    assert list(members(tmp_path / "no.a")) == []


def test_an_archive_that_is_cut_off(tmp_path: Path) -> None:
    path = _archive(tmp_path / "lib.a", {"a.o": b"12345678"})
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(LoadError, match="damaged archive"):
        list(members(path))


def test_members_that_are_wanted_bring_what_they_want(tmp_path: Path) -> None:
    path = _archive(tmp_path / "lib.a", {
        "unused.o": _bitcode("declare void @nowhere()\ndefine void @unused() {\n call void @nowhere()\n ret void\n}"),
        LONG: _bitcode("@table = global i32 3\ndefine i32 @inner() {\n ret i32 1\n}"),
        "outer.o": _bitcode("declare i32 @inner()\ndefine i32 @outer() {\n %1 = call i32 @inner()\n ret i32 %1\n}"),
        "machine.o": b"\x7fELF",
        "again.o": _bitcode("define i32 @main() {\n ret i32 0\n}"),
    })  # fmt: skip
    main = "declare i32 @outer()\ndefine i32 @main() {\n %1 = call i32 @outer()\n ret i32 %1\n}\n"
    assert [name for name, _ in wanted([main], [path])] == [f"{path}(outer.o)", f"{path}({LONG})"]
    variable = "@table = external global i32\ndefine i32 @main() {\n %1 = load i32, ptr @table\n ret i32 %1\n}\n"
    assert [name for name, _ in wanted([variable], [path])] == [f"{path}({LONG})"]


def test_archives_of_a_link(tmp_path: Path) -> None:
    here, there = tmp_path / "libx.a", tmp_path / "more" / "liby.a"
    there.parent.mkdir()
    for path in (here, there):
        path.write_bytes(b"!<arch>\n")
    words = [str(here), "-lm", f"-L{there.parent}", "-ly", str(tmp_path / "missing.a"), "a.o"]
    assert archives_of(words) == [here, there]
