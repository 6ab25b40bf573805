"""Progress speaks only of what takes long."""

from __future__ import annotations

import time

import pytest

from irgrad.interop.progress import Progress


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("quick"):
        pass
    assert capsys.readouterr().err == ""


def test_long_work_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("slow work", after=0.01) as progress:
        time.sleep(0.1)
    err = capsys.readouterr().err
    assert err.startswith("irgrad: slow work ...") and "done after" in err
    assert progress.seconds >= 0.1
