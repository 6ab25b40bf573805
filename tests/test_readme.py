"""What the README shows is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def _blocks(repository: Path, language: str) -> list[str]:
    text = (repository / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


def test_the_quick_start_is_two_lines(repository: Path) -> None:
    (block,) = _blocks(repository, "sh")
    first, second = block.splitlines()
    assert "irgrad demo" in first
    assert "[test]" in second and "pytest" in second


def test_the_example_runs(repository: Path) -> None:
    """In a process of its own: it switches JAX to 64 bits."""
    (code,) = _blocks(repository, "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "the derivatives agree" in done.stdout


def test_links_lead_somewhere(repository: Path) -> None:
    pages = [repository / "README.md", repository / "benchmarks" / "README.md", *(repository / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
