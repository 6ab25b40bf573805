"""Pictures of the site in a real browser: `python docs/screenshots.py FOLDER [page ...]`.

Builds the site, serves it on this machine, and lets Chromium (the PATH's, or CHROMIUM) draw five pages at the
widths of a desk and of a telephone. Exit code 1 when a page is wider than its window, or lacks a picture.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("index", "tutorial", "gallery", "reference", "errors")
WIDTHS = (1280, 390)
# what the browser measures stands in the title of the page that it prints
MEASURE = """<script>addEventListener("load", () => setTimeout(() => { document.title = [
    document.documentElement.scrollWidth - innerWidth,
    [...document.images].filter(image => image.loading != "lazy" && !image.naturalWidth).length] }, 500))</script>"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing: what is fetched is no news."""


def browser(*words: str) -> str:
    """What Chromium prints for these arguments, without a window."""
    command = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if command is None:
        sys.exit("no chromium: apt install chromium, or CHROMIUM=/path/to/it")
    always = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000"]
    return subprocess.run([command, *always, *words], check=True, capture_output=True, text=True, timeout=120).stdout


def main(folder: Path, pages: tuple[str, ...] = PAGES) -> int:
    """Draw every page at every width into the folder; the number of pages that look wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    site = folder / "site"
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(site)], cwd=ROOT, check=True)
    for name in pages:
        page = site / f"{name}.html"
        page.write_text(page.read_text(encoding="utf-8").replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wrong = 0
    for name in pages:
        for width in WIDTHS:
            url, size = f"http://127.0.0.1:{server.server_port}/{name}.html", f"--window-size={width},1800"
            browser(size, f"--screenshot={folder / f'{name}_{width}.png'}", url)
            measured = re.search(r"<title>(-?\d+),(\d+)</title>", browser(size, "--dump-dom", url))
            wider, lacking = map(int, measured.groups()) if measured else (0, 0)
            wrong += wider > 0 or lacking > 0 or measured is None
            print(f"{name}_{width}.png  wider by {max(wider, 0)} pixels, {lacking} pictures missing", flush=True)
    server.shutdown()
    return wrong


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(min(1, main(Path(sys.argv[1]), tuple(sys.argv[2:]) or PAGES)))
