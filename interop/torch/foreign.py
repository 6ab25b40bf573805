"""`irgrad.torch.foreign("test.c", "f")(x)`: a function of a source file as one of torch, in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irgrad.engine.signature.signature import Signature
from irgrad.interop.loaders import load

__all__ = ["foreign"]


def foreign(
    source: Any, name: str, signature: str | Signature | None = None, *, errors: Mapping[int, str] | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """The function `name` of a source file (or text) as a kernel, which takes and gives tensors.

    source, options: as `irgrad.load` takes them;  signature, errors: as `Library.kernel` takes them. A function of
    scalars needs no signature. Raises as these two do.
    """
    return load(source, **options).kernel(name, signature, errors=errors)
