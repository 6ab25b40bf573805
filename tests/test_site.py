"""The documentation as a site: built strictly and without a network; its links, entries and spelling."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import irgrad

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]


def _missing(module: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {module}"], check=False, capture_output=True).returncode != 0


class _Page(HTMLParser):
    """The links, anchors and fetched files of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.add(given.get("id") or "")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        if tag in ("script", "img") and given.get("src"):
            self.fetched.append(given["src"] or "")
        if tag == "link" and given.get("rel") == "stylesheet":
            self.fetched.append(given.get("href") or "")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, _Page]:
    """The pages of the site by file."""
    if _missing("mkdocs") or _missing("mkdocstrings"):
        pytest.skip("mkdocs is not installed: pip install irgrad[docs]")
    site = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "http_proxy": "http://127.0.0.1:9",
                   "https_proxy": "http://127.0.0.1:9"}  # fmt: skip
    built = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(site)], cwd=ROOT,
                           env=environment, capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    found = {}
    for file in site.rglob("*.html"):
        found[file] = _Page()
        found[file].feed(file.read_text(encoding="utf-8"))
    return found


def test_every_page_is_there(pages: dict[Path, _Page]) -> None:
    made = {file.stem for file in pages}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= made


def test_links_lead_to_pages_and_anchors(pages: dict[Path, _Page]) -> None:
    missing = []
    for file, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link) or (file.stem == "404"):
                continue
            there = (file.parent / target).resolve() if target else file
            wanted = anchor and anchor != "__skip"
            if there.suffix == ".html" and (there not in pages or (wanted and anchor not in pages[there].anchors)):
                missing.append(f"{file.name}: {link}")
    assert not missing


def test_nothing_is_fetched_from_elsewhere(pages: dict[Path, _Page]) -> None:
    assert not [url for page in pages.values() for url in page.fetched if re.match(r"(https?:)?//", url)]


def test_the_reference_has_every_name(pages: dict[Path, _Page]) -> None:
    (page,) = [page for file, page in pages.items() if file.stem == "reference"]
    names = set(irgrad.__all__) - {"engine", "interop", "rules", "__version__"}
    assert {f"irgrad.{name}" for name in names} <= page.anchors


def test_spelling() -> None:
    """codespell, of the pages and of what messages and docstrings say."""
    command = shutil.which("codespell") or shutil.which(str(Path(sys.executable).parent / "codespell"))
    if command is None:
        pytest.skip("codespell is not installed: pip install irgrad[docs]")
    texts = ["README.md", "docs", "engine", "rules", "interop", "examples", "benchmarks"]
    run = subprocess.run([command, "--toml", "pyproject.toml", *texts], cwd=ROOT, capture_output=True, text=True,
                         timeout=120, check=False)  # fmt: skip
    assert run.returncode == 0, run.stdout
