"""Draws the pictures of docs/gallery.md by running the examples: `python docs/pictures.py [name ...]`."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

from PIL import Image  # with matplotlib

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "gallery"
NAMES = re.findall(r"\(gallery/(\w+)\.png\)", (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))


def draw(name: str) -> None:
    """Run an example with its own defaults; its picture, of at most 800 pixels across and 64 colours."""
    picture = FOLDER / f"{name}.png"
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"](picture=str(picture))
    image = Image.open(picture).convert("RGB")
    image.thumbnail((800, 800))
    image.quantize(64, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        draw(name)
