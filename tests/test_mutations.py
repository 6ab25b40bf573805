"""The suite notices rules that are broken on purpose (mutations.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import MUTATIONS

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_suite_notices(name: str, repository: Path, tmp_path: Path) -> None:
    """Its tests fail, and not for another reason: they pass in this run of the suite, where nothing is broken."""
    path = os.pathsep.join([str(repository / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "IRGRAD_MUTATION": name, "IRGRAD_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--long", "-p", "mutations", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *MUTATIONS[name].noticed_by], cwd=repository, env=environment, capture_output=True,
                          text=True, timeout=500, check=False)  # fmt: skip
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout[-3000:] + done.stderr[-1000:]
    assert "error" not in done.stdout.splitlines()[-1], done.stdout[-3000:]
