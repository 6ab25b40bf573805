"""The page: well formed, self-contained, with the facts beside the lines, and shown by a real browser where one is."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from explained import SIGNATURES, SOURCE, kernel, line

from irgrad.engine import explain
from irgrad.interop.loaders import load

_ALONE = {"meta", "br", "link", "img"}


@dataclass
class _Line:
    """A line of the source on the page: its classes, its chips, all text."""

    classes: set[str]
    chips: list[str] = field(default_factory=list)
    text: str = ""


class _Page(HTMLParser):
    """The lines of the source on a page, its elements, and whether each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.lines: dict[str, _Line] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag in _ALONE:
            return
        self.open.append((tag, found.get("class") or ""))
        if tag == "div" and (found.get("id") or "").startswith("L"):
            self.here = _Line(set((found.get("class") or "").split()))
            self.lines[str(found["id"])] = self.here

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if any(name == "source" for _, name in self.open):
            if self.open[-1][1].startswith("chip "):
                self.here.chips.append(data)
            if hasattr(self, "here"):
                self.here.text += data


@pytest.fixture(scope="module")
def page() -> str:
    return explain(kernel("nested"), "grad", "x").to_html()


def test_lines_carry_their_facts(page: str) -> None:
    lines = _Page(page).lines
    outer, inner = (lines[f"L{line(text)}"] for text in ("for (long i = 0; i < n; i++) {", "for (long j = 0; j < m"))
    assert "looped" in outer.classes
    assert "n iterations" in outer.chips
    assert "m iterations" in inner.chips
    assert "tape 8 B each, 8*m*n bytes" in inner.chips
    work = lines[f"L{line('s = sin(s * w[j])')}"]
    assert {"active", "kept", "again"} <= work.classes
    assert "kept 8 B" in work.chips
    assert "reloaded 1" in work.chips
    assert "read by the reverse of sin" in work.text
    assert "s = sin(s * w[j]) + 0.5 * s;" in work.text
    assert lines[f"L{line('return total;')}"].classes == {"line"}


def test_the_page_needs_nothing_else(page: str) -> None:
    found = _Page(page)
    for tag, attributes in found.tags:
        assert tag not in ("link", "img", "iframe")
        assert "src" not in attributes
        target = attributes.get("href")
        assert target is None or target.startswith("#")
    assert "http" not in page
    assert "@import" not in page
    assert "url(" not in page


def test_links_lead_somewhere(page: str) -> None:
    found = _Page(page)
    identities = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(set(identities)) == len(identities)
    links = {str(attributes["href"])[1:] for _, attributes in found.tags if "href" in attributes}
    assert links
    assert links <= set(identities)


def test_details_open_without_scripts(page: str) -> None:
    found = _Page(re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL))
    names = [tag for tag, _ in found.tags]
    assert names.count("details") == names.count("summary") > 3
    assert "because" in found.text or "active" in found.text


def test_both_colours(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    assert "color-scheme: light dark" in page


def test_text_is_escaped() -> None:
    source = "double f(const double *x, long n) {\n    double s = 1; // <b>&amp;\"\n" \
             "    for (long i = 0; i < n; i++) s = s * s + x[i]; // <script>\n    return s;\n}\n"  # fmt: skip
    page = explain(load(source).kernel("f", "f64(f64[n] x, i64 n)"), "grad", lanes=False).to_html()
    assert "// &lt;script&gt;" in page
    assert page.count("<script>") == 1
    _Page(page)


def test_every_kernel_has_a_page() -> None:
    for name in SIGNATURES:
        for derivative in ("vjp", "jvp"):
            found = explain(kernel(name), derivative, lanes=False)
            lines = _Page(found.to_html()).lines
            shown = {value.place.line for value in found.active if value.place}
            assert shown <= {int(name[1:]) for name, row in lines.items() if "active" in row.classes}


def test_without_lines_the_facts_are_in_tables() -> None:
    bare = load(SOURCE, flags=["-g0"]).kernel("nested", SIGNATURES["nested"])
    page = explain(bare, lanes=False).to_html()
    found = _Page(page)
    assert not found.lines
    assert "8*m*n bytes" in found.text
    assert "(no line)" in found.text


def _browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no browser: the page is not looked at in one (Debian: apt install chromium)")
    return found


def _run(browser: str, tmp_path: Path, *words: str) -> str:
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
               "--virtual-time-budget=2000", *words]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.xdist_group("browser")
def test_a_browser_shows_the_page(page: str, tmp_path: Path) -> None:
    browser = _browser()
    file = tmp_path / "page.html"
    file.write_text(page)
    at = line("s = sin(s * w[j])")
    shown = _run(browser, tmp_path, "--dump-dom", f"{file.as_uri()}#L{at}")
    found = _Page(shown.partition("<!DOCTYPE html>")[2])
    assert any(tag == "html" and attributes.get("class") == "scripted" for tag, attributes in found.tags)
    opened = [attributes for tag, attributes in found.tags if tag == "details" and "open" in attributes]
    assert len(opened) == 1  # the line that the address names
    assert "kept 8 B" in found.lines[f"L{at}"].chips
    picture = tmp_path / "page.png"
    _run(browser, tmp_path, f"--screenshot={picture}", "--window-size=1200,900", file.as_uri())
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000  # not an empty page


@pytest.mark.xdist_group("browser")
def test_the_switches_of_the_page_work(page: str, tmp_path: Path) -> None:
    browser = _browser()
    press = """<script>
    document.querySelector('button[data-filter="kept"]').click();
    document.getElementById("open-all").click();
    document.getElementById("theme").click();
    </script></body>"""
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", press))
    found = _Page(_run(browser, tmp_path, "--dump-dom", file.as_uri()).partition("<!DOCTYPE html>")[2])
    root = next(attributes for tag, attributes in found.tags if tag == "html")
    assert "faded" in (root.get("class") or "")
    assert root.get("data-theme") in ("dark", "light")
    shown = {name for name, row in found.lines.items() if "shown" in row.classes}
    assert shown == {name for name, row in found.lines.items() if "kept" in row.classes} != set()
    assert all("open" in attributes for tag, attributes in found.tags if tag == "details")
