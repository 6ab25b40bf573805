"""Archives (`libx.a`) with members of bitcode, as `-c -flto` makes them: what the program needs of them.

An archive gives a program those members that define what nothing so far has defined, or all of them under
`--whole-archive`; a linker reads machine code only, so for bitcode the choice is made here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from irgrad.rules.errors import LoadError

__all__ = ["archives_of", "holds_bitcode", "machine_code", "members", "wanted", "whole"]

_MAGIC = b"!<arch>\n"
_HEADER = 60
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_STATES = ("--whole-archive", "--no-whole-archive", "--push-state", "--pop-state")
_NAME = r'@(?P<name>"[^"\n]+"|[-\w$.]+)'
_DEFINED = re.compile(rf"^(?:define\b(?! (?:internal|private))[^@\n]*{_NAME}\("
                      r'|@(?P<var>"[^"\n]+"|[-\w$.]+) = (?!external|internal|private))', re.M)  # fmt: skip
# A weak symbol takes no member from an archive.
_DECLARED = re.compile(r'^(?:declare (?![^@\n]*\bextern_weak\b)[^@\n]*|)@(?P<name>"[^"\n]+"|[-\w$.]+)'
                       r"(?:\(| = external )", re.M)  # fmt: skip


def archives_of(words: Sequence[str]) -> list[Path]:
    """The archives among a linker's words: named, or found as `-lNAME` in a folder of `-L`."""
    folders = [Path(word[2:]) for word in words if word.startswith("-L")]
    found = []
    for word in words:
        if word.endswith(".a") and not word.startswith("-"):
            found.append(Path(word))
        elif word.startswith("-l"):
            found += [folder / f"lib{word[2:]}.a" for folder in folders]
    return [path for path in dict.fromkeys(found) if path.is_file()]


def whole(words: Sequence[str]) -> list[Path]:
    """The archives among a linker's words of which `--whole-archive` wants every member."""
    folders = [word for word in words if word.startswith("-L")]
    found, on, before = [], False, []
    for word in _flat(words):
        match word:
            case "--push-state":
                before.append(on)
            case "--pop-state":
                on = before.pop() if before else False
            case "--whole-archive" | "--no-whole-archive":
                on = word == "--whole-archive"
            case _ if on:
                found += archives_of([*folders, word])
    return list(dict.fromkeys(found))


def machine_code(words: Sequence[str], folder: Path) -> list[str]:
    """A linker's words, archives that are wanted whole and hold bitcode as files of their other members."""
    replaced = [path for path in whole(words) if holds_bitcode([path])]
    if not replaced:
        return list(words)
    folders = [word for word in words if word.startswith("-L")]
    found = []
    for word in _flat(words):
        paths = archives_of([*folders, word])
        if paths and paths[0] in replaced:
            for number, (name, content) in enumerate(members(paths[0])):
                if not content.startswith(_BITCODE):
                    file = folder / f"{number}-{Path(name).name}"
                    file.write_bytes(content)
                    found.append(str(file))
        else:
            found.append(f"-Wl,{word}" if word in _STATES else word)
    return found


def _flat(words: Sequence[str]) -> Iterator[str]:
    """The words, those behind `-Wl,` that are about archives one by one."""
    for word in words:
        parts = word[len("-Wl,") :].split(",") if word.startswith("-Wl,") else []
        yield from parts if any(part in _STATES for part in parts) else [word]


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and contents of each member. Raises LoadError for a file that is cut off."""
    data = path.read_bytes()
    if not data.startswith(_MAGIC):
        return
    at, long_names = len(_MAGIC), b""
    while at + _HEADER <= len(data):
        head = data[at : at + _HEADER]
        name, size = head[:16].rstrip(), head[48:58].strip()
        if head[58:60] != b"`\n" or not size.isdigit() or at + _HEADER + int(size) > len(data):
            raise LoadError(f"`{path}` is a damaged archive", because=f"there is no member at byte {at}",
                            fix="build it again")
        content = data[at + _HEADER : at + _HEADER + int(size)]
        at += _HEADER + int(size) + int(size) % 2
        if name == b"//":
            long_names = content
        elif name not in (b"/", b"/SYM64/"):
            if name[:1] == b"/" and name[1:].isdigit():
                name = long_names[int(name[1:]) :].partition(b"\n")[0]
            yield name.rstrip(b"/").decode("utf-8", "surrogateescape"), content


def holds_bitcode(archives: Sequence[Path]) -> bool:
    """Whether some member of some archive is bitcode."""
    return any(content.startswith(_BITCODE) for path in archives for _, content in members(path))


def wanted(
    texts: Sequence[str], archives: Sequence[Path], roots: Collection[str] = (), entire: Collection[Path] = ()
) -> list[tuple[str, str]]:
    """Name and IR of the members of bitcode that modules want, or `roots` name, and that those want in turn; of the
    archives in `entire` all members."""
    from irgrad.interop.loaders.link import disassemble

    rest = [(f"{path}({name})", content) for path in archives for name, content in members(path)]
    parts = [(name, disassemble(content, name)) for name, content in rest if content.startswith(_BITCODE)]
    offers = [(name, text, _defined(text)) for name, text in parts]
    defined = set[str]().union(*map(_defined, texts))
    open_ = set(roots).union(*map(_declared, texts)) - defined
    first = {f"{path}({name})" for path in entire for name, _ in members(path)}
    found = [(name, text) for name, text, _ in offers if name in first]
    for _, text in found:
        defined |= _defined(text)
        open_ |= _declared(text)
    open_ -= defined
    offers = [offer for offer in offers if offer[0] not in first]
    while True:
        taken = next(((name, text, own) for name, text, own in offers if own & open_), None)
        if taken is None:
            return found
        offers.remove(taken)
        found.append(taken[:2])
        defined |= taken[2]
        open_ = (open_ | _declared(taken[1])) - defined


def _defined(text: str) -> set[str]:
    return {(match["name"] or match["var"]).strip('"') for match in _DEFINED.finditer(text)}


def _declared(text: str) -> set[str]:
    return {match["name"].strip('"') for match in _DECLARED.finditer(text)}
