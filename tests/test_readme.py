"""The quick start, which continuous integration runs, and the links of all pages."""

from __future__ import annotations

import re
from pathlib import Path


def _blocks(repository: Path, language: str) -> list[str]:
    text = (repository / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


def test_the_quick_start_is_two_lines(repository: Path) -> None:
    (block,) = _blocks(repository, "sh")
    first, second = block.splitlines()
    assert "irgrad demo" in first
    assert "[test]" in second and "pytest" in second


def test_links_lead_somewhere(repository: Path) -> None:
    pages = [repository / "README.md", repository / "benchmarks" / "README.md", *(repository / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
