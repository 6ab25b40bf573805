"""Compilers of other languages that tests want: marks that skip, and say what was missing, where one is not there."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest

from irgrad.interop.loaders.languages import FLANG, RUSTC
from irgrad.rules.errors import IRGradError

__all__ = ["missing", "needs_flang", "needs_rustc"]

_FIND: dict[str, Callable[[], object]] = {"rustc": RUSTC.find, "flang": FLANG.find}


_LIBRARIES = {"torch": "PyTorch", "tensorflow": "TensorFlow"}


def missing(tool: str) -> str:
    """Why a compiler or a library cannot be used, empty where it can."""
    if tool in _LIBRARIES:
        return "" if find_spec(tool) else f"{_LIBRARIES[tool]} is not installed"
    try:
        _FIND[tool]()
    except IRGradError as error:
        return error.what
    return ""


def _needs(tool: str) -> pytest.MarkDecorator:
    why = missing(tool)
    return pytest.mark.skipif(bool(why), reason=f"{why}: `.ci/doors` installs what can be had")


needs_rustc = _needs("rustc")
needs_flang = _needs("flang")
