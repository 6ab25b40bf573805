"""Folders of C++ header libraries that tests differentiate: from the wheels of the `dev` extra, else the system's."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

_WHEEL = Path(sysconfig.get_path("purelib"), "cmeel.prefix", "include")


def header_folder(probe: str, *folders: str) -> str:
    """The folder to include for the header `probe`. Skips the test, saying why, where no such header is installed."""
    for base in (_WHEEL, Path("/usr/include"), Path("/usr/local/include"), Path("/opt/homebrew/include")):
        for folder in ("", *folders):
            if (base / folder / probe).is_file():
                return str(base / folder)
    pytest.skip(f"the header {probe} is not installed: pip install irgrad[dev], or Debian's libeigen3-dev libboost-dev")


EIGEN = "Eigen/Dense", "eigen3"
ODEINT = ("boost/numeric/odeint.hpp",)
