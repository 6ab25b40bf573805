"""The reference: an entry for every public name, whose example runs."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import blocks

import irgrad

pytestmark = pytest.mark.long

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference.md"
NAMES = [name for name in irgrad.__all__ if name not in ("engine", "interop", "rules", "__version__")]
KINDS = {name: getattr(irgrad, name) for name in NAMES if isinstance(getattr(irgrad, name), type)}
ERRORS = {name for name, kind in KINDS.items() if issubclass(kind, Exception)}
CALLED = [name for name in NAMES if name not in ERRORS]


def test_every_public_name_has_an_entry() -> None:
    entries = re.findall(r"^::: irgrad\.(\w+)$", PAGE.read_text(encoding="utf-8"), re.M)
    assert sorted(entries) == sorted(NAMES)
    assert all(inspect.getdoc(getattr(irgrad, name)) for name in NAMES)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The kernels of the page."""
    found: dict[str, Any] = {}
    (block,) = [row for row in blocks(PAGE) if row.language == "python"]
    exec(block.text, found)
    return found


@pytest.mark.parametrize("name", [*CALLED, "Kernel.tape_bytes"])
def test_example(name: str, names: dict[str, Any]) -> None:
    subject: Any = irgrad
    for part in name.split("."):
        subject = getattr(subject, part)
    test = doctest.DocTestParser().get_doctest(subject.__doc__ or "", dict(names), name, None, None)
    assert test.examples, "the docstring has no example"
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert not result.failed


# How each kind of error comes about is in docs/errors.md and tests/first_hour; that a class can be caught by its name
# and as an IRGradError, with its parts, is the same for all.
@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors_have_parts(name: str) -> None:
    error = getattr(irgrad, name)("what failed", because="a reason", fix="a repair")
    assert isinstance(error, irgrad.IRGradError) and str(error).splitlines()[-1] == "  to fix  a repair"
