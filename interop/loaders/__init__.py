"""From a source to LLVM IR: `load` and `Library`."""

from __future__ import annotations

from irgrad.interop.loaders.library import Library
from irgrad.interop.loaders.loading import load

__all__ = ["Library", "load"]
