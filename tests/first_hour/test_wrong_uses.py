"""Each wrong use is refused with its message, and what the message advises works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from first_hour.wrong_uses import SETUP, TABLE, Wrong

import irgrad

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("wrong uses")]

FILES = {
    "model.c": "double model(double x) { return x * x; }\n"
    "double total(const double *x, long n) {\n"
    "    double s = 0;\n    for (long i = 0; i < n; i++) s += x[i] * x[i];\n    return s;\n}\n",
    "outside.c": "double gone(double);\ndouble f(double x) { return x * gone(x); }\n",
    "inside.c": "double gone(double x) { return x * x; }\n",
    "outside.py": "import irgrad\n@irgrad.rule('gone')\ndef _(x): return 2 * x\n",
    "own.c": "double own(double x) { return x * x; }\n",
}
ASM = 'double f(double x) { double y; __asm__("fsqrt" : "=t"(y) : "0"(x)); return y; }'


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names that expressions see; their files are in `folder`."""
    folder = tmp_path_factory.mktemp("uses")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "irgrad.interop.cli"]

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert run("cc", "-shared", "own.c", "-o", "libown.so")[0] == 0
    found: dict[str, Any] = {"run": run, "folder": folder, "ASM": ASM}
    exec(SETUP, found)
    return found


def test_there_are_fifty() -> None:
    assert len(TABLE) >= 50 and len({row.wrong for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.wrong)
def test_wrong_use(row: Wrong, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = names["folder"]
    monkeypatch.chdir(folder)
    if row.kind:
        with pytest.raises(irgrad.IRGradError) as caught:
            eval(row.wrong, names)
        assert type(caught.value).__name__ == row.kind or row.kind == "IRGradError"
        said = str(caught.value)
        eval(row.repaired, names)
    else:
        code, said = eval(row.wrong, names)
        assert code in (1, 2) and "Traceback" not in said
        code, done = eval(row.repaired, names)
        assert code == 0, done
    assert row.says in said, said
