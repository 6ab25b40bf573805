"""What the site does with pages that are written for the repository: links to its files become their paths."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]\n]*)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page, with the paths of files that are not part of the site in place of links to them."""
    return _OUTSIDE.sub(lambda match: f"`{match[2].removeprefix('../')}`", markdown)
