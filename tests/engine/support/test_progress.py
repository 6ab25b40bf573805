"""Progress speaks only of what takes long, and only to somebody who watches."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from irgrad.engine.support import progress
from irgrad.engine.support.progress import Progress, enabled


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_PROGRESS", "1")
    with Progress("quick"):
        pass
    assert capsys.readouterr().err == ""


def test_long_work_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGRAD_PROGRESS", "1")
    with Progress("slow work", after=0.01) as shown:
        time.sleep(0.1)
    err = capsys.readouterr().err
    assert err.startswith("irgrad: slow work ... done after") and err.count("\n") == 1
    assert shown.seconds >= 0.1
    with pytest.raises(KeyboardInterrupt), Progress("more", after=0.01):
        time.sleep(0.1)
        raise KeyboardInterrupt
    assert "irgrad: more ... stopped after" in capsys.readouterr().err


def test_work_inside_has_no_line_of_its_own(capsys: pytest.CaptureFixture[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("IRGRAD_PROGRESS", "1")
    with Progress("outer", after=0.01):
        time.sleep(0.1)
        with Progress("inner", after=0.01):
            time.sleep(0.1)
    err = capsys.readouterr().err
    assert "outer" in err and "inner" not in err and err.count("\n") == 1


def test_where_nobody_watches_nothing_is_printed(capsys: pytest.CaptureFixture[str],
                                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.delenv("IRGRAD_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "_ALWAYS", [])
    with Progress("slow work", after=0.01) as silent:
        time.sleep(0.1)
    assert capsys.readouterr().err == "" and silent.seconds >= 0.1


def test_who_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IRGRAD_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "_ALWAYS", [])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not enabled()
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert enabled()
    monkeypatch.setenv("IRGRAD_PROGRESS", "0")
    assert not enabled()
    progress.show_always()
    assert not enabled(), "the user's word is the last"
    monkeypatch.delenv("IRGRAD_PROGRESS")
    monkeypatch.setattr(sys, "stderr", None)
    assert enabled()
    with Progress("nobody hears it", after=0.0):
        time.sleep(0.05)


def test_the_library_says_what_it_does(tmp_path: Path) -> None:
    code = (
        "import irgrad, irgrad.engine.support.progress as progress\n"
        "progress.PATIENCE = 0.0\n"
        "f = irgrad.load('double f(double x) { return x * x; }').kernel('f')\n"
        "assert irgrad.engine.grad(f)(3.0) == 6.0\n"
    )
    environment = {**os.environ, "IRGRAD_CACHE_DIR": str(tmp_path), "IRGRAD_PROGRESS": "1"}
    heard = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True,
                              timeout=120, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        heard.append(done.stderr)
    for what in ("compiling `<string>`", "differentiating `f`", "making machine code of `f`"):
        assert f"irgrad: {what} ... done after" in heard[0]
    assert heard[1] == "", "everything comes from the disk cache"
