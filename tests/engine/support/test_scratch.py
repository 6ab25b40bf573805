"""Temporary folders go: behind a `with`, with a signal, and those of dead processes with the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from irgrad.engine.support import scratch
from irgrad.engine.support.scratch import scratch_folder

WAITS = """
import os, signal, sys, time
from irgrad.engine.support.scratch import orderly_end, scratch_folder
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests under nohup ignore it
with orderly_end(), scratch_folder("test") as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_takes_the_folder_along(number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.is_dir()
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert not folder.exists()


def test_a_compilation_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "slow.c"  # a program whose run never ends
    source.write_text("#include <stdio.h>\nint main(void) { puts(\"on\"); fflush(stdout); for (;;) ; }\n")
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "irgrad.interop.cli", "run", str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        assert list((tmp_path / "tmp").iterdir())
        process.terminate()
        assert process.wait(20) == 128 + signal.SIGTERM
    assert not list((tmp_path / "tmp").iterdir())


def test_folders_of_dead_processes_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    names = {"dead": f"irgrad-tmp-{gone.pid}-cc-x", "fresh": f"irgrad-tmp-{gone.pid}-cc-y",
             "alive": f"irgrad-tmp-{os.getpid()}-cc-x", "others": "irgrad-tmp-x", "foreign": "something"}  # fmt: skip
    for kind, name in names.items():
        (tmp_path / name).mkdir()
        if kind != "fresh":
            old = time.time() - 7200
            os.utime(tmp_path / name, (old, old))
    scratch._sweep.cache_clear()
    with scratch_folder("cc") as folder:
        left = {row.name for row in tmp_path.iterdir()}
        assert left == {names[kind] for kind in names if kind != "dead"} | {Path(folder).name}
    assert not Path(folder).exists()
