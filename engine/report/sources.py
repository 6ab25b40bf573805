"""The source texts that debug locations speak of: files that are there, strings that a library was loaded from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from irgrad.engine.report.facts import Place, SourceText

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel

__all__ = ["source_texts"]

_LARGEST = 1 << 22  # bytes of a file that is shown


def source_texts(kernel: Kernel, places: Iterable[Place]) -> tuple[SourceText, ...]:
    """The texts of the files of these places, the most often named first; those that cannot be read are left out."""
    known = dict(kernel.source.code)
    named: dict[str, int] = {}
    for place in places:
        if place:
            named[place.file] = named.get(place.file, 0) + 1
    found = []
    for name in sorted(named, key=lambda name: -named[name]):
        text = known.get(name)
        if text is None:
            text = _read(name)
        if text is not None:
            found.append(SourceText(name, tuple(text.splitlines())))
    return tuple(found)


def _read(name: str) -> str | None:
    path = Path(name)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
