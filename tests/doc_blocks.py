"""The code blocks of a page in Markdown, and a session that runs them as a reader would.

Blocks of a page run in their order:

    ```python     in one process for the whole page, with one namespace; `<!-- setup ... -->` is Python as well, which a
                  reader does not see
    ```c ```cpp   written to a file of the page's folder if the first line names one (`// prog.c`), else to one of its
                  own; a program (it has a `main`) is run by `irgrad run`, everything else is parsed; nothing happens
                  to what says `(built below)` there
    ```make ```cmake ```meson   written to the file that the first line names (`# Makefile`)
    ```console    the lines that begin with `$ ` are run by bash in the page's folder; each line below a command has to
                  occur in what it prints (`...` stands for anything)

Everything has to succeed. Blocks of other languages (`text`, `sh`) are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BUILD", "Block", "Session", "blocks", "occurs"]

TIMEOUT = 300
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$|^<!-- setup\n(?P<setup>.*?)^-->$", re.S | re.M)
_NAMED = re.compile(r"(?://|/\*)\s*([\w.-]+\.(?:c|cc|cpp|h|hpp))\b")
_BUILD_FILE = re.compile(r"# ([\w.-]+)\n")
BUILD = ("make", "cmake", "meson")
"""Languages of the files of build tools; their names are those of the tools."""
_MAIN = re.compile(r"^int main\(", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it stands (`page.md:12`), its language (`setup` for a hidden one), its text."""

    place: str
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        place = f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}"
        setup = match["setup"]
        found.append(Block(place, match["language"] or "" if setup is None else "setup", setup or match["text"] or ""))
    return found


def occurs(line: str, output: str) -> bool:
    """Whether a line, in which `...` stands for anything, is within one line of the output."""
    pattern = re.compile(".*".join(re.escape(part) for part in line.strip().split("...")))
    return any(pattern.search(row) for row in output.splitlines())


class Session:
    """Runs the blocks of one page in a folder; `folder/bin` has an `irgrad` that is the one under test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        bin_ = folder / "bin"
        bin_.mkdir()
        command = bin_ / "irgrad"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m irgrad.interop.cli "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        path = os.pathsep.join([str(bin_), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self.environment = {**os.environ, "PATH": path, "IRGRAD_PROGRESS": "0", "MPLBACKEND": "agg"}

    def python(self, rows: list[Block]) -> str:
        """Run Python blocks in one process; what they print."""
        parts = [f"exec(compile({row.text!r}, {row.place!r}, 'exec'), names)" for row in rows]
        # One linecache entry per block, so that functions find their source, and tracebacks show it.
        cached = [f"linecache.cache[{row.place!r}] = ({len(row.text)}, None, {row.text.splitlines(True)!r}, '')"
                  for row in rows]  # fmt: skip
        script = self.folder / "blocks.py"
        head = "import linecache\nnames = {'__name__': '__main__'}\n"
        script.write_text(head + "\n".join([*cached, *parts]) + "\n", encoding="utf-8")
        return self._run([sys.executable, str(script)], rows[0].place)

    def c(self, row: Block) -> str:
        """Compile and run a program; parse anything else."""
        named = _NAMED.match(row.text)
        number = len(list(self.folder.iterdir()))
        path = self.folder / (named[1] if named else f"block{number}.{'cpp' if row.language == 'cpp' else 'c'}")
        path.write_text(row.text, encoding="utf-8")
        if "(built below)" in row.text.partition("\n")[0]:
            return ""
        if _MAIN.search(row.text):
            return self._run(["irgrad", "run", str(path), "-lm"], row.place)
        return self._run(["irgrad", "cc", "-fsyntax-only", "-Wno-everything", str(path)], row.place)

    def build_file(self, row: Block) -> None:
        """Write the file of a build tool."""
        named = _BUILD_FILE.match(row.text)
        assert named, f"{row.place}: the first line names the file: # Makefile"
        (self.folder / named[1]).write_text(row.text, encoding="utf-8")

    def console(self, row: Block) -> None:
        """Run the commands, and look for the lines below each of them in its output."""
        command = ""
        wanted: list[str] = []
        for line in [*row.text.splitlines(), "$ "]:
            if line.startswith("$ "):
                output = self._run(["bash", "-ec", command], f"{row.place}: {command}") if command else ""
                missing = [text for text in wanted if text.strip() and not occurs(text, output)]
                assert not missing, f"{row.place}: `{command}` does not print {missing}, but\n{output}"
                command, wanted = line[2:].partition("  #")[0], []
            else:
                wanted.append(line)

    def _run(self, command: list[str], place: str) -> str:
        if command[0] == "irgrad":
            command = [str(self.folder / "bin" / "irgrad"), *command[1:]]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=TIMEOUT, check=False, stdin=subprocess.DEVNULL)  # fmt: skip
        assert done.returncode == 0, f"{place}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr
