"""What the site does with docstrings: the lines that describe arguments, `wrt: names`, become a list."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ARGUMENT = re.compile(r"^(?P<names>\w+(?:, \w+)*): +(?P<text>\S.*)$")


def as_list(text: str) -> str:
    """The docstring with `name: text` and its indented lines as items of a list."""
    rows: list[str] = []
    inside = example = False
    for line in text.splitlines():
        match = _ARGUMENT.match(line)
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if match and (inside or not rows or not rows[-1].strip()):
            rows.append(f"- `{match['names']}`: {match['text']}")
            inside = True
        elif inside and line.startswith(" ") and not example:
            rows.append(f"    {line.strip()}")
        else:
            inside = inside and not line.strip()
            rows.append(line)
    return "\n".join(rows)


class Lists(griffe.Extension):
    """Rewrites each docstring that is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """One function, class or module."""
        if obj.docstring is not None:
            obj.docstring.value = as_list(obj.docstring.value)
